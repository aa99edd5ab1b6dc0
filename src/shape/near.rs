//! What is shown of a base where something is not as the recipe says: lines, and what comes closest.
//!
//! Hides how likeness is measured.

use std::ops::Range;

use bstr::ByteSlice;

use crate::carry;
use crate::pattern::Pattern;
use crate::recipe::PartSpec;
use crate::syntax::{Source, Statement, line_end, line_start, mentions, token_texts};

/// A few lines of source, each with its file and line number.
#[must_use]
pub fn quote(source: &Source, file: &str, range: &Range<usize>) -> Vec<String> {
    const MOST: usize = 8;
    let first = source.line(range.start);
    let start = line_start(source.text(), range.start);
    let lines: Vec<_> = source.text()[start..range.end].lines().collect();
    let shown = lines.iter().take(MOST).enumerate();
    let mut quoted: Vec<_> = shown
        .map(|(index, line)| format!("  {file}:{}: {}", first + index, line.as_bstr()))
        .collect();
    if lines.len() > MOST {
        quoted.push(format!("  ... and {} more lines", lines.len() - MOST));
    }
    quoted
}

/// The statements that look most like what a part wants.
pub(super) fn nearest(
    source: &Source,
    file: &str,
    part: &PartSpec,
    statements: &[Statement<'_>],
) -> Vec<String> {
    let candidates = statements.iter().map(|statement| {
        (
            source.slice(statement.node.byte_range()).to_string(),
            statement.node.byte_range(),
        )
    });
    closest(
        &part
            .patterns
            .iter()
            .map(Pattern::written)
            .collect::<Vec<_>>(),
        candidates,
    )
    .into_iter()
    .flat_map(|range| quote(source, file, &range))
    .collect()
}

/// The heads of the functions whose names resemble `name` most.
fn similar_functions(source: &Source, file: &str, name: &str) -> Vec<String> {
    let functions = source
        .layout()
        .map(|(name, definition)| (name.to_string(), definition.head()));
    let near = closest(&[name], functions);
    near.into_iter()
        .flat_map(|head| quote(source, file, &head))
        .collect()
}

/// Of the candidates, the (at most three) that resemble one of the `wanted` texts most, the best first.
pub fn closest<T>(wanted: &[&str], candidates: impl Iterator<Item = (String, T)>) -> Vec<T> {
    const MOST: usize = 3;
    const LEAST: f32 = 0.4;
    let ratio = |a: &str, b: &str| similar::TextDiff::from_chars(a, b).ratio();
    let mut scored: Vec<_> = candidates
        .map(|(text, candidate)| {
            (
                wanted
                    .iter()
                    .map(|wanted| ratio(wanted, &text))
                    .fold(0.0, f32::max),
                candidate,
            )
        })
        .filter(|(score, _)| *score >= LEAST)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored
        .into_iter()
        .take(MOST)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// A range of source with the first line's indentation taken from every line; bytes that are no text are carried.
#[must_use]
pub fn left_aligned(source: &Source, range: &Range<usize>) -> String {
    let indentation = source.text()[line_start(source.text(), range.start)..].to_vec();
    let indentation: Vec<u8> = indentation
        .into_iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .collect();
    // A carriage return is a part of its line.
    let lines = source.text()[range.clone()]
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_prefix(&indentation[..]).unwrap_or(line));
    let lines: Vec<_> = lines.map(carry::pack).collect();
    lines.join("\n")
}

/// Why a file has no function of a name that can be read.
pub struct Missing {
    /// What it has instead, in a sentence.
    pub message: String,
    /// Lines of it that show that, or what comes closest.
    pub details: Vec<String>,
}

/// What a file has instead of a function of this name that can be read as one.
#[must_use]
pub fn missing(source: &Source, file: &str, name: &str) -> Missing {
    const MOST: usize = 3;
    let text = source.text();
    let mentions = mentions(text, name);
    let Some(&first) = mentions.first() else {
        let near = similar_functions(source, file, name);
        let heading = (!near.is_empty()).then(|| "nearest in the base:".to_owned());
        return Missing {
            message: format!("`{file}` does not define `{name}()`"),
            details: heading.into_iter().chain(near).collect(),
        };
    };
    let kinds = mentions.iter().map(|at| (mention(text, *at), *at));
    let (kind, at) = kinds
        .min_by_key(|(kind, _)| *kind)
        .unwrap_or((Mention::Use, first));
    let place = format!("`{file}:{}`", source.line(at));
    let message = match kind {
        Mention::Definition => {
            format!("{place} has `{name}()`, but not as one definition that can be read")
        }
        Mention::Macro => format!("{place} defines `{name}` as a macro, not as a function"),
        Mention::Declaration => {
            format!("{place} declares `{name}()`, but `{file}` does not define it")
        }
        Mention::Use => format!("{place} mentions `{name}`, but `{file}` does not define it"),
    };
    let lines = mentions
        .iter()
        .filter(|other| mention(text, **other) == kind);
    let details = lines
        .take(MOST)
        .flat_map(|at| quote(source, file, &(*at..line_end(text, *at))));
    Missing {
        message,
        details: details.collect(),
    }
}

/// Where a file has a function of this name that cannot be read as one definition; asked where none can.
#[must_use]
pub fn unreadable(source: &Source, name: &str) -> Option<usize> {
    let text = source.text();
    let is_one = |at: &usize| mention(text, *at) == Mention::Definition;
    mentions(text, name).into_iter().find(is_one)
}

/// What a file says of a name, the most telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mention {
    /// Parameters and a body, or what looks like it.
    Definition,
    /// A `#define`.
    Macro,
    /// Parameters and no body, outside of functions.
    Declaration,
    /// Anything else.
    Use,
}

/// What a mention of a name is, by the words around it.
fn mention(text: &[u8], at: usize) -> Mention {
    let start = line_start(text, at);
    let before: Vec<_> = token_texts(&text[start..at]).collect();
    if before == [&b"#"[..], b"define"] {
        return Mention::Macro;
    }
    let is_outside = !text[start..].starts_with(b"\t") && !text[start..].starts_with(b" ");
    let mut behind = token_texts(&text[at..]).skip(1).peekable();
    if !is_outside || behind.peek() != Some(&&b"("[..]) {
        return Mention::Use;
    }
    let mut depth = 0_usize;
    let end = behind.find(|token| {
        match *token {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(*token, b";" | b"{" | b"}" | b"=")
    });
    match end {
        Some(b"{") => Mention::Definition,
        Some(b";") if !before.is_empty() => Mention::Declaration,
        _ => Mention::Use,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> String {
        let source = Source::new(text.as_bytes().to_vec());
        let Missing { message, details } = missing(&source, "a.c", "lamp_on");
        format!("{message}\n{}", details.join("\n"))
    }

    #[test]
    fn what_is_there_instead_of_a_function_is_told() {
        for (text, message) in [
            ("int x;\n", "`a.c` does not define `lamp_on()`\n"),
            (
                "/* lamp_on() */\n#if 0\nvoid lamp_on(void)\n{\n}\n#endif\n",
                "`a.c` does not define `lamp_on()`\n",
            ),
            (
                "\n#define lamp_on(x) lamp_set(x, 1)\n",
                "`a.c:2` defines `lamp_on` as a macro, not as a function\n  a.c:2: #define lamp_on(x)",
            ),
            (
                "# define lamp_on\n",
                "`a.c:1` defines `lamp_on` as a macro, not as a function\n",
            ),
            (
                "extern int lamp_on(struct lamp *lamp);\n",
                "`a.c:1` declares `lamp_on()`, but `a.c` does not define it\n",
            ),
            (
                "void f(void)\n{\n\tlamp_on(x);\n}\nEXPORT_SYMBOL(lamp_on);\n",
                "`a.c:3` mentions `lamp_on`, but `a.c` does not define it\n  a.c:3: \tlamp_on(x);\n  a.c:5: EXPORT",
            ),
            (
                "int lamp_on(int a\n#ifdef A\n\t, int b\n#endif\n\t)\n{\n}\n",
                "`a.c:1` has `lamp_on()`, but not as one definition that can be read\n  a.c:1: int lamp_on(int a",
            ),
            (
                "int lamp_on(void);\nint lamp_on(void)\n\t{\n\t}\n",
                "`a.c:2` has `lamp_on()`, but not as one definition that can be read\n",
            ),
        ] {
            let found = says(text);
            assert!(found.starts_with(message), "{text}\n{found}");
        }
    }

    #[test]
    fn the_nearest_are_others() {
        let others = "void lamp_of(void)\n{\n}\n/* lamp_on() */\nvoid table(void)\n{\n}\n";
        assert_eq!(
            says(others),
            "`a.c` does not define `lamp_on()`\nnearest in the base:\n  a.c:1: void lamp_of(void)"
        );
    }
}
