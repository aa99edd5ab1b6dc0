//! Which names a C file defines at file level, and which files it includes.
//!
//! Works on tokens and never fails: whatever the configuration, every alternative under `#if` counts, each with the conditions that it
//! stands under. Where a piece could be two things, it is taken for a definition rather than for nothing.

use std::ops::Range;
use std::rc::Rc;

use super::lex::{Kind as Token_, Token, tokens, tokens_in};

/// What a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A macro without parameters.
    Macro,
    /// A macro with parameters.
    Call,
    /// A function with its body.
    Function,
    /// A function without its body.
    Prototype,
    /// A `struct`, `union` or `enum` with its members.
    Tag,
    /// A `typedef`.
    Type,
    /// A constant of an `enum`.
    Enumerator,
    /// A variable.
    Variable,
    /// Something that a macro at file level defines.
    Generated,
}

/// The conditions that a definition stands under, outermost first.
pub type Conditions = Rc<[String]>;

/// A name with what defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Where its definition is in the file, comments in front of it left out.
    pub range: Range<usize>,
    /// The `#if`s around it.
    pub conditions: Conditions,
}

/// A file that is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// As it is written between the quotes or the angle brackets.
    pub path: String,
    /// Whether it is in quotes: looked for beside the file first.
    pub quoted: bool,
}

/// A macro that is called at file level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The macro.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it is.
    pub range: Range<usize>,
    /// The `#if`s around it.
    pub conditions: Conditions,
}

/// A macro that may define things where it is called: it puts names together, or calls other macros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    /// The macro.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<String>,
    /// The names that it puts together with `##`, piece by piece.
    pub pastes: Vec<Vec<String>>,
    /// The macros that it calls, with their arguments.
    pub calls: Vec<(String, Vec<String>)>,
}

/// What is in a file.
#[derive(Debug, Default)]
pub struct Scan {
    /// What it includes, in order.
    pub includes: Vec<Include>,
    /// What it defines, in order.
    pub definitions: Vec<Definition>,
    /// The macros that it calls outside of functions.
    pub invocations: Vec<Invocation>,
    /// The macros that may define things.
    pub generators: Vec<Generator>,
}

/// Words that take parentheses in a declaration and are not its name.
const NO_NAMES: [&str; 20] = [
    "__attribute__",
    "__aligned",
    "__printf",
    "__scanf",
    "__section",
    "typeof",
    "__typeof__",
    "__must_hold",
    "__acquires",
    "__releases",
    "__cond_acquires",
    "__alloc_size",
    "__nonnull",
    "__guarded_by",
    "__no_context_analysis",
    "__diag_ignore_all",
    "_Static_assert",
    "__counted_by",
    "__malloc",
    "__error",
];

/// Looks through a file.
#[must_use]
pub fn scan(text: &[u8]) -> Scan {
    let mut scanner = Scanner {
        text,
        tokens: tokens(text),
        at: 0,
        levels: Vec::new(),
        conditions: Rc::from([]),
        found: Scan::default(),
    };
    scanner.file();
    scanner.found
}

/// Whether a word of C is no name.
#[must_use]
pub fn is_keyword(word: &[u8]) -> bool {
    const KEYWORDS: [&str; 44] = [
        "_Bool",
        "__asm__",
        "__const",
        "__extension__",
        "__inline",
        "__inline__",
        "__restrict",
        "__signed__",
        "__volatile__",
        "asm",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
    ];
    word == b"while"
        || KEYWORDS
            .binary_search_by(|known| known.as_bytes().cmp(word))
            .is_ok()
}

struct Scanner<'a> {
    text: &'a [u8],
    tokens: Vec<Token>,
    at: usize,
    /// The open `#if`s; `None` is the guard against a second inclusion.
    levels: Vec<Option<String>>,
    conditions: Conditions,
    found: Scan,
}

/// What a `{` at file level opens.
enum Brace {
    Function(String),
    Members { name: Option<String>, is_enum: bool },
    Values,
    Linkage,
}

impl Scanner<'_> {
    fn file(&mut self) {
        let mut chunk: Option<usize> = None;
        let mut conditions = self.conditions.clone();
        while let Some(&token) = self.tokens.get(self.at) {
            if token.kind == Token_::Directive {
                self.directive(token);
                self.at += 1;
                continue;
            }
            let start = *chunk.get_or_insert_with(|| {
                conditions = self.conditions.clone();
                self.at
            });
            if token.is(self.text, "{") {
                chunk = self.brace(start, &conditions);
            } else if token.is(self.text, "(") || token.is(self.text, "[") {
                self.skip_group();
            } else if token.is(self.text, ";") {
                self.declaration(start, &conditions);
                self.at += 1;
                chunk = None;
            } else if token.is(self.text, "}") {
                self.at += 1;
                chunk = None;
            } else {
                self.at += 1;
            }
        }
    }

    /// Goes over what is in brackets, with its directives; a `}` in column 0 ends whatever is open, as in the kernel's style.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(&token) = self.tokens.get(self.at) {
            match (token.kind, token.text(self.text)) {
                (Token_::Directive, _) => self.directive(token),
                (_, b"(" | b"[" | b"{") => depth += 1,
                (_, b")" | b"]" | b"}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            let closes = token.is(self.text, "}") && self.in_column_0(token);
            if depth == 0 || closes {
                self.at += 1;
                return;
            }
            self.at += 1;
        }
    }

    fn in_column_0(&self, token: Token) -> bool {
        token.start == 0 || self.text[token.start - 1] == b'\n'
    }

    /// A `{` at file level; the start of the chunk that goes on behind its `}`.
    fn brace(&mut self, start: usize, conditions: &Conditions) -> Option<usize> {
        let start = self.split_invocations(start, self.at, conditions);
        let open = self.at;
        match self.opens(start) {
            Brace::Linkage => {
                self.at += 1;
                None
            }
            Brace::Function(name) => {
                self.skip_group();
                self.define(name, Kind::Function, start, self.at, conditions);
                None
            }
            Brace::Values => {
                self.skip_group();
                Some(start)
            }
            Brace::Members { name, is_enum } => {
                self.skip_group();
                let close = self.at;
                if is_enum {
                    self.enumerators(open, close, conditions);
                }
                if let Some(name) = name {
                    self.define(name, Kind::Tag, start, close, conditions);
                }
                Some(start)
            }
        }
    }

    fn opens(&self, start: usize) -> Brace {
        let before = self.code(start, self.at);
        let text = |token: &Token| token.text(self.text);
        let last = before.last().map(text).unwrap_or_default();
        if before.len() == 2 && text(&before[0]) == b"extern" && before[1].kind == Token_::Text {
            return Brace::Linkage;
        }
        let outside = self.outside(&before);
        if outside.iter().any(|&index| text(&before[index]) == b"=") {
            return Brace::Values;
        }
        let keyword = before
            .iter()
            .rposition(|token| matches!(text(token), b"struct" | b"union" | b"enum"));
        if let Some(keyword) = keyword.filter(|_| last != b")" || !has_call(&before[..], self.text))
        {
            let tail = &before[keyword + 1..];
            let words = tail.iter().filter(|token| token.kind == Token_::Word);
            let name = words
                .map(text)
                .rfind(|word| !word.starts_with(b"__") || tail.len() == 1);
            let only_words = tail.iter().all(|token| token.kind == Token_::Word);
            if only_words {
                return Brace::Members {
                    name: name.map(string),
                    is_enum: text(&before[keyword]) == b"enum",
                };
            }
        }
        match self.called(&before) {
            Some(name) => Brace::Function(name),
            None => Brace::Values,
        }
    }

    /// The tokens between two places, without directives.
    fn code(&self, start: usize, end: usize) -> Vec<Token> {
        let tokens = self.tokens[start..end].iter();
        let code = tokens.filter(|token| token.kind != Token_::Directive);
        code.copied().collect()
    }

    /// Which of these tokens are outside of brackets.
    fn outside(&self, tokens: &[Token]) -> Vec<usize> {
        let mut depth = 0_usize;
        let mut outside = Vec::new();
        for (index, token) in tokens.iter().enumerate() {
            match token.text(self.text) {
                b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
                b"(" | b"[" | b"{" => {
                    if depth == 0 {
                        outside.push(index);
                    }
                    depth += 1;
                }
                _ if depth == 0 => outside.push(index),
                _ => {}
            }
        }
        outside
    }

    /// The word that has the parameters of a function.
    fn called(&self, tokens: &[Token]) -> Option<String> {
        let outside = self.outside(tokens);
        outside.windows(2).find_map(|pair| {
            let (word, open) = (&tokens[pair[0]], &tokens[pair[1]]);
            let name = word.text(self.text);
            let fits = word.kind == Token_::Word
                && pair[1] == pair[0] + 1
                && open.is(self.text, "(")
                && !is_keyword(name)
                && !NO_NAMES.iter().any(|known| known.as_bytes() == name);
            fits.then(|| string(name))
        })
    }

    fn define(
        &mut self,
        name: String,
        kind: Kind,
        start: usize,
        end: usize,
        conditions: &Conditions,
    ) {
        let range = self.tokens[start].start..self.tokens[end.max(start + 1) - 1].end;
        self.found.definitions.push(Definition {
            name,
            kind,
            range,
            conditions: conditions.clone(),
        });
    }

    /// Takes the macro calls off the front of a chunk (`PAGEFLAG(A, a)` without `;`); where the rest starts.
    fn split_invocations(
        &mut self,
        mut start: usize,
        end: usize,
        conditions: &Conditions,
    ) -> usize {
        loop {
            let Some(close) = self.group_behind(start, end) else {
                return start;
            };
            let next = self.tokens[close..end]
                .iter()
                .position(|it| it.kind != Token_::Directive);
            let next = next.map(|skip| close + skip);
            let follows = next.is_some_and(|next| {
                self.tokens[next].kind == Token_::Word
                    && !NO_NAMES
                        .iter()
                        .any(|name| self.tokens[next].is(self.text, name))
                    && self.tokens[next].start > self.line_end(self.tokens[close - 1].end)
            });
            let (true, Some(next)) = (follows, next) else {
                return start;
            };
            self.invocation(start, close, conditions);
            start = next;
        }
    }

    fn line_end(&self, at: usize) -> usize {
        crate::syntax::line_end(self.text, at) - 1
    }

    /// Behind the brackets of a macro call that starts at `start`, if there is one.
    fn group_behind(&self, start: usize, end: usize) -> Option<usize> {
        let word = self.tokens.get(start)?;
        let open = self.tokens.get(start + 1)?;
        let name = word.text(self.text);
        if word.kind != Token_::Word || is_keyword(name) || !open.is(self.text, "(") {
            return None;
        }
        let mut depth = 0_usize;
        for (index, token) in self.tokens[start + 1..end].iter().enumerate() {
            match token.text(self.text) {
                b"(" => depth += 1,
                b")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(start + 1 + index + 1);
            }
        }
        None
    }

    fn invocation(&mut self, start: usize, close: usize, conditions: &Conditions) {
        let name = string(self.tokens[start].text(self.text));
        let arguments = self.arguments(&self.tokens[start + 2..close - 1]);
        let range = self.tokens[start].start..self.tokens[close - 1].end;
        self.found.invocations.push(Invocation {
            name,
            arguments,
            range,
            conditions: conditions.clone(),
        });
    }

    /// What stands between the commas of an argument list, each as its tokens with blanks between.
    fn arguments(&self, inner: &[Token]) -> Vec<String> {
        let mut depth = 0_usize;
        let mut arguments = vec![Vec::new()];
        for token in inner {
            match token.text(self.text) {
                b"(" | b"[" | b"{" => depth += 1,
                b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
                b"," if depth == 0 => {
                    arguments.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = arguments.last_mut() {
                last.push(string(token.text(self.text)));
            }
        }
        arguments.iter().map(|words| words.join(" ")).collect()
    }

    /// What ends with a `;` at file level.
    fn declaration(&mut self, start: usize, conditions: &Conditions) {
        let end = self.at;
        let start = self.split_invocations(start, end, conditions);
        if self.group_behind(start, end) == Some(end) {
            self.invocation(start, end, conditions);
            return;
        }
        let code = self.code(start, end);
        let outside = self.outside(&code);
        let text = |index: usize| code[index].text(self.text);
        let has = |word: &[u8]| outside.iter().any(|&index| text(index) == word);
        let values = has(b"=");
        if code
            .first()
            .is_some_and(|token| token.is(self.text, "typedef"))
        {
            if let Some(name) = self.type_name(&code, &outside) {
                self.define(name, Kind::Type, start, end, conditions);
            }
        } else if let Some(name) = self.called(&code).filter(|_| !values && !has(b"{")) {
            self.define(name, Kind::Prototype, start, end, conditions);
        } else {
            for name in self.declarators(&code, &outside) {
                self.define(name, Kind::Variable, start, end, conditions);
            }
        }
    }

    /// The name of a `typedef`: the last word, or the one behind the first `(*`.
    fn type_name(&self, code: &[Token], outside: &[usize]) -> Option<String> {
        let pointer = code.windows(3).find(|three| {
            three[0].is(self.text, "(")
                && three[1].is(self.text, "*")
                && three[2].kind == Token_::Word
        });
        let last = outside.iter().rev().map(|&index| &code[index]);
        let mut last = last.filter(|token| token.kind == Token_::Word);
        let named = pointer.map(|three| &three[2]).or_else(|| last.next())?;
        Some(string(named.text(self.text)))
    }

    /// The variables that a declaration declares.
    fn declarators(&self, code: &[Token], outside: &[usize]) -> Vec<String> {
        let mut names = Vec::new();
        let (mut words, mut last, mut taken, mut tag, mut closed) = (0, None, false, false, false);
        let end = outside
            .iter()
            .map(|&index| Some(&code[index]))
            .chain([None]);
        for token in end {
            let text = token.map(|token| token.text(self.text));
            match (token.map(|token| token.kind), text) {
                (Some(Token_::Word), Some(word)) => {
                    words += 1;
                    let attribute = closed && word.starts_with(b"__");
                    if !taken && !tag && !attribute && !is_keyword(word) {
                        last = Some(string(word));
                    }
                    tag = matches!(word, b"struct" | b"union" | b"enum");
                }
                (_, Some(b"," | b"=" | b"[") | None) => {
                    if let Some(name) = last.take().filter(|_| words > 1 && !taken) {
                        names.push(name);
                    }
                    taken = text != Some(b",".as_slice());
                }
                // What was in front of the members is a name of the type's, or an attribute.
                (_, Some(b"{")) => {
                    last = None;
                    closed = true;
                }
                _ => {}
            }
        }
        names
    }

    /// The constants between the braces of an `enum`.
    fn enumerators(&mut self, open: usize, close: usize, conditions: &Conditions) {
        let mut expected = true;
        let mut depth = 0_usize;
        for index in open + 1..close.saturating_sub(1) {
            let token = self.tokens[index];
            match (token.kind, token.text(self.text)) {
                (Token_::Directive, _) => {}
                (_, b"(" | b"{" | b"[") => depth += 1,
                (_, b")" | b"}" | b"]") => depth = depth.saturating_sub(1),
                (_, b",") if depth == 0 => expected = true,
                (Token_::Word, word) if expected => {
                    let name = string(word);
                    let end = self.enumerator_end(index, close);
                    self.define(name, Kind::Enumerator, index, end, conditions);
                    expected = false;
                }
                _ => expected = false,
            }
        }
    }

    fn enumerator_end(&self, start: usize, close: usize) -> usize {
        let tokens = self.tokens[start..close - 1].iter();
        let length = tokens.take_while(|token| !token.is(self.text, ",")).count();
        start + length
    }

    fn directive(&mut self, token: Token) {
        let parts = tokens_in(self.text, token.start..token.end);
        let words: Vec<&[u8]> = parts.iter().map(|part| part.text(self.text)).collect();
        let rest = || {
            let rest = words.iter().skip(2).map(|word| string(word));
            rest.collect::<Vec<_>>().join(" ")
        };
        match words.get(1).copied().unwrap_or_default() {
            b"include" => self.include(token, &parts),
            b"define" => self.macro_(token, &parts),
            b"if" => self.open(rest()),
            b"ifdef" => self.open(format!("defined ( {} )", rest())),
            b"ifndef" => {
                let guard = self.levels.is_empty()
                    && self.found.definitions.is_empty()
                    && self.found.includes.is_empty();
                let name = rest();
                if guard && self.defines_next(&name) {
                    self.levels.push(None);
                } else {
                    self.open(format!("! defined ( {name} )"));
                }
            }
            b"elif" => self.turn(&rest()),
            b"else" => self.turn(""),
            b"endif" => {
                self.levels.pop();
                self.settle();
            }
            _ => {}
        }
    }

    /// Whether the next line defines `name`: then the `#ifndef` above it is a guard.
    fn defines_next(&self, name: &str) -> bool {
        let next = self.tokens.get(self.at + 1);
        next.is_some_and(|next| {
            let words: Vec<_> = tokens_in(self.text, next.start..next.end)
                .iter()
                .map(|part| string(part.text(self.text)))
                .collect();
            next.kind == Token_::Directive
                && words.get(1).is_some_and(|word| word == "define")
                && words.get(2).is_some_and(|word| word == name)
        })
    }

    fn open(&mut self, condition: String) {
        self.levels.push(Some(condition));
        self.settle();
    }

    /// `#else` and `#elif`: what was so far is not, and `condition` is.
    fn turn(&mut self, condition: &str) {
        if let Some(Some(level)) = self.levels.last_mut() {
            *level = format!("! ( {level} ) {condition}");
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.conditions = self.levels.iter().flatten().cloned().collect();
    }

    fn include(&mut self, token: Token, parts: &[Token]) {
        let Some(first) = parts.get(2) else { return };
        let quoted = first.kind == Token_::Text;
        let text = &self.text[first.start..token.end];
        let close = if quoted { b'"' } else { b'>' };
        if !quoted && text.first() != Some(&b'<') {
            return;
        }
        let path = text[1..].split(|&byte| byte == close).next();
        self.found.includes.push(Include {
            path: string(path.unwrap_or_default()),
            quoted,
        });
    }

    fn macro_(&mut self, token: Token, parts: &[Token]) {
        let Some(name) = parts.get(2) else { return };
        let call = parts
            .get(3)
            .is_some_and(|open| open.is(self.text, "(") && open.start == name.end);
        if call {
            self.generator(&parts[2..]);
        }
        self.found.definitions.push(Definition {
            name: string(name.text(self.text)),
            kind: if call { Kind::Call } else { Kind::Macro },
            range: token.start..token.end,
            conditions: self.conditions.clone(),
        });
    }
}

impl Scanner<'_> {
    /// Keeps a macro (its name, its parameters, its body) that may define things.
    fn generator(&mut self, parts: &[Token]) {
        let Some(close) = parts.iter().position(|part| part.is(self.text, ")")) else {
            return;
        };
        let body = &parts[close + 1..];
        let is =
            |index: usize, text: &str| body.get(index).is_some_and(|it| it.is(self.text, text));
        let mut pastes: Vec<Vec<String>> = Vec::new();
        let mut calls = Vec::new();
        let mut index = 0;
        while let Some(token) = body.get(index) {
            let text = token.text(self.text);
            if is(index + 1, "##") {
                let mut pieces = vec![string(text)];
                while is(index + 1, "##") {
                    index += 2;
                    pieces.extend(body.get(index).map(|piece| string(piece.text(self.text))));
                }
                pastes.push(pieces);
            } else if token.kind == Token_::Word && is(index + 1, "(") && !is_keyword(text) {
                calls.push((
                    string(text),
                    self.arguments(group(&body[index + 1..], self.text)),
                ));
            }
            index += 1;
        }
        if !pastes.is_empty() || !calls.is_empty() {
            self.found.generators.push(Generator {
                name: string(parts[0].text(self.text)),
                parameters: self.arguments(&parts[2..close]),
                pastes,
                calls,
            });
        }
    }
}

/// What is between the brackets that these tokens start with.
fn group<'t>(tokens: &'t [Token], text: &[u8]) -> &'t [Token] {
    let mut depth = 0_usize;
    let end = tokens.iter().position(|token| {
        match token.text(text) {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    &tokens[1.min(tokens.len())..end.unwrap_or(tokens.len())]
}

/// Whether brackets stand among these tokens.
fn has_call(tokens: &[Token], text: &[u8]) -> bool {
    tokens.iter().any(|token| token.is(text, "("))
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, Kind)> {
        let found = scan(text.as_bytes()).definitions;
        found.into_iter().map(|it| (it.name, it.kind)).collect()
    }

    fn one(text: &str, name: &str, kind: Kind) {
        assert_eq!(names(text), [(name.to_owned(), kind)], "{text}");
    }

    #[test]
    fn every_kind_of_definition_is_found() {
        one("#define A 1\n", "A", Kind::Macro);
        one("#define A(x) \\\n\t(x)\n", "A", Kind::Call);
        one("#define A (x)\n", "A", Kind::Macro);
        one(
            "static inline int f(int a)\n{\n\treturn a;\n}\n",
            "f",
            Kind::Function,
        );
        one(
            "void __printf(1, 2) f(const char *s, ...) { }\n",
            "f",
            Kind::Function,
        );
        one(
            "struct a *f(void)\n\t__releases(x)\n{\n}\n",
            "f",
            Kind::Function,
        );
        one("extern int f(int);\n", "f", Kind::Prototype);
        one("typedef unsigned long pfn_t;\n", "pfn_t", Kind::Type);
        one("typedef int (*cb)(int);\n", "cb", Kind::Type);
        one(
            "extern unsigned long volatile jiffies;\n",
            "jiffies",
            Kind::Variable,
        );
        one("static struct a b = { .c = 1 };\n", "b", Kind::Variable);
        one("struct a { int b; struct { int c; }; };\n", "a", Kind::Tag);
        one(
            "struct a {\n\tint (*f)(int);\n} __packed;\n",
            "a",
            Kind::Tag,
        );
        let both = [
            ("a".to_owned(), Kind::Variable),
            ("b".to_owned(), Kind::Variable),
        ];
        assert_eq!(names("int a[3] = { 1, 2 }, *b;\n"), both);
        let members = names("enum e { A, B = F(1, 2), C };\n");
        let members: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(members, ["A", "B", "C", "e"]);
        assert_eq!(names("struct a;\n"), []);
        assert_eq!(
            names("extern \"C\" {\nint f(void);\n}\n"),
            [("f".to_owned(), Kind::Prototype)]
        );
    }

    #[test]
    fn macros_that_define_things_are_told_from_what_follows() {
        let text = "FLAG(Red, red)\n\tFLAG(Blue, blue)\n\nstatic int f(void)\n{\n}\nKEY(x);\n";
        let found = scan(text.as_bytes());
        let calls: Vec<_> = found
            .invocations
            .iter()
            .map(|it| it.arguments.join("/"))
            .collect();
        assert_eq!(calls, ["Red/red", "Blue/blue", "x"]);
        assert_eq!(found.definitions.len(), 1);
        let range = found.definitions[0].range.clone();
        assert!(text[range].starts_with("static int f"));
    }

    #[test]
    fn conditions_are_kept_and_the_guard_is_none() {
        let text = "#ifndef H\n#define H\n#if A > 1\nint a;\n#elif B\nint b;\n#else\nint c;\n#endif\nint d;\n#endif\n";
        let found = scan(text.as_bytes()).definitions;
        let conditions = |name: &str| {
            let found = found.iter().find(|it| it.name == name).expect("a name");
            found.conditions.join(" / ")
        };
        assert_eq!(conditions("a"), "A > 1");
        assert_eq!(conditions("b"), "! ( A > 1 ) B");
        assert_eq!(conditions("c"), "! ( ! ( A > 1 ) B ) ");
        assert_eq!(conditions("d"), "");
    }

    #[test]
    fn includes_are_found_in_both_forms() {
        let found =
            scan(b"#include <linux/a.h>\n# include \"b.h\" // x\n#include MACRO\n").includes;
        let paths: Vec<_> = found
            .iter()
            .map(|it| (it.path.as_str(), it.quoted))
            .collect();
        assert_eq!(paths, [("linux/a.h", false), ("b.h", true)]);
    }

    #[test]
    fn braces_that_do_not_match_end_at_column_0() {
        let text = "void f(void)\n{\n#ifdef A\n\tif (a) {\n#else\n\tif (b) {\n#endif\n\t}\n}\nint g(void)\n{\n}\n";
        let names: Vec<_> = names(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["f", "g"]);
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(is_keyword(b"struct") && is_keyword(b"_Bool") && is_keyword(b"while"));
        assert!(!is_keyword(b"page"));
    }

    #[test]
    fn garbage_is_survived() {
        for text in [
            "{",
            "}",
            "(",
            ")",
            "a(",
            "enum {",
            "enum { A",
            "typedef",
            "typedef;",
            "= {",
            "#",
            "#define",
            "#include",
            "#else\n#endif\n#endif",
            "X(",
            "X()",
            "X() y",
        ] {
            assert!(scan(text.as_bytes()).includes.is_empty(), "{text}");
        }
    }
}
