//! Whether a value stays what it is: code that runs once for many things must not use what may change between two of them.
//!
//! A name that the function does not declare is looked up, through macros: a constant stays what it is, a variable (`jiffies`) does not,
//! and a macro may hide what varies.

use std::ops::Range;

use bstr::ByteSlice;

use crate::index::lex::{Kind as Token, tokens_in, words};
use crate::index::{Kind, is_keyword};
use crate::syntax::{Scope, Source};

/// Looks up what names are for the code of a base.
pub trait Sees {
    /// The definitions of a name: what each is, and its text. Empty: nothing that can be seen.
    fn definitions(&self, name: &str) -> Vec<(Kind, Vec<u8>)>;
}

/// Code that sees nothing: every name that is not declared in it is unknown.
#[derive(Debug, Clone, Copy)]
pub struct Blind;

impl Sees for Blind {
    fn definitions(&self, _name: &str) -> Vec<(Kind, Vec<u8>)> {
        Vec::new()
    }
}

/// Words that the language or every compiler knows.
const KNOWN: [&str; 5] = ["true", "false", "NULL", "__func__", "offsetof"];

/// How deep macros in macros are looked into.
const DEEPEST: usize = 8;

/// What is looked for.
pub(super) struct Steady<'a> {
    /// What a base sees.
    pub(super) sees: &'a dyn Sees,
    /// What the function declares.
    pub(super) scope: &'a Scope,
    /// What differs between the many things.
    pub(super) varying: &'a [String],
    /// The functions that may be called.
    pub(super) calls: &'a [String],
}

impl Steady<'_> {
    /// Why code in a range is not the same for all, and where.
    pub(super) fn objection(
        &self,
        source: &Source,
        range: &Range<usize>,
    ) -> Option<(String, usize)> {
        let text = source.text();
        let tokens = tokens_in(text, range.clone());
        let unsteady = tokens.iter().find(|token| is_unsteady(token.text(text)));
        if let Some(token) = unsteady {
            let word = token.text(text).to_str_lossy();
            return Some((format!("has `{word}`, whose value may change"), token.start));
        }
        let uses = self
            .scope
            .uses
            .iter()
            .filter(|used| range.contains(&used.at));
        // What stands behind `case` is a constant, or it does not compile.
        let is_label = |at: usize| text[..at].trim_end().ends_with(b"case");
        for used in uses.filter(|used| used.declared.is_none() && !used.member) {
            if is_label(used.at) {
                continue;
            }
            if let Some(why) = self.name(&used.name, used.called, 0) {
                return Some((why, used.at));
            }
        }
        None
    }

    fn name(&self, name: &str, called: bool, depth: usize) -> Option<String> {
        if KNOWN.contains(&name) || self.calls.iter().any(|call| call == name) {
            return None;
        }
        if called {
            return Some(format!(
                "calls `{name}()`, which may not always give the same"
            ));
        }
        if depth == DEEPEST {
            return Some(format!(
                "uses `{name}`, which is defined by macros in macros"
            ));
        }
        let definitions = self.sees.definitions(name);
        if definitions.is_empty() {
            return Some(format!("uses `{name}`, of which nothing is known"));
        }
        definitions.iter().find_map(|(kind, text)| match kind {
            Kind::Macro => self.body(name, text, depth),
            Kind::Variable if !is_constant(text) => {
                Some(format!("reads the variable `{name}`, which may change"))
            }
            Kind::Call => Some(format!(
                "calls `{name}()`, which may not always give the same"
            )),
            _ => None,
        })
    }

    /// Looks into a macro.
    fn body(&self, name: &str, text: &[u8], depth: usize) -> Option<String> {
        let tokens = tokens_in(text, 0..text.len());
        // `#`, `define` and the name are no part of the body.
        let body = tokens.get(3..).unwrap_or_default();
        for (index, token) in body.iter().enumerate() {
            let word = token.text(text).to_str_lossy();
            let before = index.checked_sub(1).map(|before| body[before].text(text));
            let is_member = matches!(before, Some(b"->" | b"."));
            let is_tag = matches!(before, Some(b"struct" | b"union" | b"enum"));
            if is_unsteady(word.as_bytes()) {
                return Some(format!("uses the macro `{name}`, which has `{word}` in it"));
            }
            if token.kind != Token::Word || is_member || is_tag || is_keyword(word.as_bytes()) {
                continue;
            }
            if self.varying.iter().any(|varying| **varying == *word) {
                return Some(format!("uses the macro `{name}`, which hides `{word}`"));
            }
            if self.scope.declares(&word) {
                continue;
            }
            let called = body.get(index + 1).is_some_and(|next| next.is(text, "("));
            if let Some(why) = self.name(&word, called, depth + 1) {
                return Some(format!("uses the macro `{name}`, which {why}"));
            }
        }
        None
    }
}

/// Words that make a value one that may change.
fn is_unsteady(word: &[u8]) -> bool {
    matches!(
        word,
        b"volatile" | b"__volatile__" | b"asm" | b"__asm__" | b"++" | b"--"
    )
}

/// Whether a variable's definition says that it is never changed.
fn is_constant(text: &[u8]) -> bool {
    let mut words = words(text).take_while(|word| !matches!(*word, b"=" | b";" | b"*" | b"["));
    words.any(|word| word == b"const")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::scan;

    struct Header(&'static str);

    impl Sees for Header {
        fn definitions(&self, name: &str) -> Vec<(Kind, Vec<u8>)> {
            let found = scan(self.0.as_bytes()).definitions.into_iter();
            let own = found.filter(|it| it.name == name);
            own.map(|it| (it.kind, self.0.as_bytes()[it.range].to_vec()))
                .collect()
        }
    }

    const HEADER: &str = "enum { RED };\n#define TWO (1 + 1)\n#define COLOUR RED\n#define HIDDEN (i + 1)\n#define DEEP HIDDEN\n#define NOW ticks\n#define READ (*(volatile int *)0)\n#define ASK ask()\n#define GET(x) x\nextern unsigned long ticks;\nextern const int limit;\n#define LOOP LOOP\nint ask(void);\n";

    fn why(value: &str) -> Option<String> {
        let text = format!(
            "void f(struct lamp *lamp, struct bus *bus, int i)\n{{\n\tlamp->level = {value};\n}}\n"
        );
        let source = Source::new(text.into_bytes());
        let function = source.functions().expect("functions").remove(0);
        let scope = Scope::of(&source, &function).expect("a scope");
        let at = source.text().find("= ").expect("a value") + 2;
        let varying = ["i".to_owned(), "lamp".to_owned()];
        let calls = ["allowed".to_owned()];
        let steady = Steady {
            sees: &Header(HEADER),
            scope: &scope,
            varying: &varying,
            calls: &calls,
        };
        steady
            .objection(&source, &(at..at + value.len()))
            .map(|(why, _)| why)
    }

    #[test]
    fn constants_stay_what_they_are() {
        for value in [
            "1",
            "NULL",
            "RED",
            "TWO",
            "COLOUR",
            "limit",
            "bus->level",
            "allowed(bus)",
            "bus->level + TWO",
            "\"x\"",
        ] {
            assert_eq!(why(value), None, "{value}");
        }
    }

    #[test]
    fn what_may_change_or_hides_something_is_told() {
        for (value, expected) in [
            ("ticks", "reads the variable `ticks`"),
            ("NOW", "reads the variable `ticks`"),
            ("HIDDEN", "hides `i`"),
            ("DEEP", "hides `i`"),
            ("READ", "has `volatile` in it"),
            ("*(volatile int *)bus", "has `volatile`"),
            ("ask()", "calls `ask()`"),
            ("ASK", "calls `ask()`"),
            ("GET(1)", "calls `GET()`"),
            ("unheard", "nothing is known"),
            ("LOOP", "macros in macros"),
        ] {
            let found = why(value).unwrap_or_default();
            assert!(found.contains(expected), "{value}: {found}");
        }
    }
}
