//! Which bytes of a text are code: neither in a comment, nor in a literal, nor below an `#if 0`.
//!
//! Hides that most of a text is never looked at byte by byte: only where something might hide code from the eye.

use std::ops::Range;

use bstr::{ByteSlice, Finder};

use super::line_end;

/// What is known at the start of a line.
#[derive(Default)]
pub(in crate::syntax) struct Lexer {
    in_comment: bool,
    /// How many conditionals are open since the `#if 0` whose lines are left out.
    left_out: usize,
}

impl Lexer {
    /// Whether the lines so far leave a comment open.
    pub(super) fn in_comment(&self) -> bool {
        self.in_comment
    }

    /// Takes in a line, with those that a backslash joins to it; where its code is, without the comments and the blanks behind it. It is
    /// empty where there is none.
    pub(in crate::syntax) fn line(&mut self, line: &[u8]) -> Range<usize> {
        let mut start = 0;
        if self.in_comment {
            let Some(close) = line.find("*/") else {
                return 0..0;
            };
            self.in_comment = false;
            start = close + 2;
        }
        let end = self.code_end(line, start);
        let was_left_out = self.left_out > 0;
        if let Some(directive) = line[start..end].trim_ascii_start().strip_prefix(b"#") {
            self.directive(directive);
        }
        if was_left_out && self.left_out > 0 {
            return 0..0;
        }
        start..end
    }

    /// Where the code of a line ends that starts at `start`; it may leave a comment open.
    fn code_end(&mut self, line: &[u8], start: usize) -> usize {
        let mut end = start;
        if !may_hold_comment(&line[start..]) {
            return end + line[start..].trim_ascii_end().len();
        }
        let mut at = start;
        while at < line.len() {
            let rest = &line[at..];
            if rest.starts_with(b"//") {
                break;
            } else if rest.starts_with(b"/*") {
                let Some(close) = rest[2..].find("*/") else {
                    self.in_comment = true;
                    break;
                };
                at += close + 4;
            } else if matches!(rest[0], b'"' | b'\'') {
                at += literal(rest);
                end = at;
            } else {
                at += 1;
                end = if rest[0].is_ascii_whitespace() {
                    end
                } else {
                    at
                };
            }
        }
        end
    }

    fn directive(&mut self, directive: &[u8]) {
        let directive = directive.trim_ascii();
        let word = directive
            .split(|byte| !byte.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        match (word, self.left_out) {
            (b"if" | b"ifdef" | b"ifndef", 1..) => self.left_out += 1,
            (b"endif", 1..) => self.left_out -= 1,
            (b"else" | b"elif" | b"elifdef" | b"elifndef", 1) => self.left_out = 0,
            (b"if", 0) if is_zero(directive) => self.left_out = 1,
            _ => {}
        }
    }
}

/// How long the literal is that a text starts with: no further than the text.
pub(in crate::syntax) fn literal(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            byte if byte == text[0] => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn may_hold_comment(line: &[u8]) -> bool {
    places(line, b'/').any(|at| matches!(line.get(at + 1), Some(b'*' | b'/')))
}

/// Where a byte is in a text.
fn places(text: &[u8], byte: u8) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text[from..].find_byte(byte)?;
        from = at + 1;
        Some(at)
    })
}

/// Whether a directive is `if 0`.
fn is_zero(directive: &[u8]) -> bool {
    let condition = directive.strip_prefix(b"if").unwrap_or_default();
    condition.trim_ascii() == b"0"
}

/// The `}` in column 0 that closes the body which opens at `open`.
pub(super) fn close_of(text: &[u8], open: usize, closing: &Finder<'_>) -> Option<usize> {
    let close = open + closing.find(&text[open..])? + 1;
    if is_plain(&text[open + 1..close]) {
        return Some(close);
    }
    let mut lexer = Lexer::default();
    let mut at = open + 1;
    while at < text.len() {
        let end = logical_line_end(text, at);
        let code = lexer.line(&text[at..end]);
        if at > open + 1 && code.start == 0 && text[at..at + code.end].starts_with(b"}") {
            return Some(at);
        }
        at = end;
    }
    None
}

/// Whether what follows a body so far is certainly code. Where in doubt it is not.
fn is_plain(body: &[u8]) -> bool {
    !joins_the_next(body)
        && !places(body, b'#').any(|at| is_left_out(&body[at + 1..]))
        && !is_in_comment(body)
}

/// Whether a comment may be open at the end of a text: the last that opens or closes one opens one.
fn is_in_comment(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(slash) = rest.rfind_byte(b'/') {
        if rest[..slash].ends_with(b"*") {
            return false;
        }
        if text[slash + 1..].starts_with(b"*") {
            return true;
        }
        rest = &rest[..slash];
    }
    false
}

/// Whether what follows a `#` may leave lines out.
fn is_left_out(directive: &[u8]) -> bool {
    let line = directive.lines().next().unwrap_or_default();
    line.trim_ascii_start()
        .strip_prefix(b"if")
        .is_some_and(|condition| condition.trim_ascii_start().starts_with(b"0"))
}

/// Whether a text ends in a line that the next one continues.
fn joins_the_next(text: &[u8]) -> bool {
    let line = text.strip_suffix(b"\n").unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line).ends_with(b"\\")
}

/// The offset behind the line that `offset` lies in and those that a backslash joins to it.
#[must_use]
pub fn logical_line_end(text: &[u8], offset: usize) -> usize {
    let mut end = line_end(text, offset);
    while end < text.len() && joins_the_next(&text[offset..end]) {
        end = line_end(text, end);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of each line.
    fn code(text: &str) -> Vec<&str> {
        let mut lexer = Lexer::default();
        let lines = text.split_inclusive('\n');
        lines
            .map(|line| &line[lexer.line(line.as_bytes())])
            .collect()
    }

    #[test]
    fn comments_and_blanks_behind_code_are_no_code() {
        assert_eq!(code("int f(void) { /* x */ // y\n"), ["int f(void) {"]);
        assert_eq!(code("a /* b */ c; \t\n"), ["a /* b */ c;"]);
        assert_eq!(code("x; /* a\n}\nb */ y;\n"), ["x;", "", " y;"]);
        assert_eq!(code("/* all */\n"), [""]);
    }

    #[test]
    fn a_literal_opens_no_comment() {
        assert_eq!(code("p = \"/*\";\n}\n"), ["p = \"/*\";", "}"]);
        assert_eq!(code("p = \"\\\"/*\";\n"), ["p = \"\\\"/*\";"]);
        assert_eq!(code("c = '\"'; /* x\n*/\n"), ["c = '\"';", ""]);
        assert_eq!(code("d = a / b;\n"), ["d = a / b;"]);
    }

    #[test]
    fn what_is_below_an_if_0_is_left_out() {
        let text = "#if 0\n}\n#ifdef A\n}\n#else\n}\n#endif\n#else\nx;\n#endif\ny;\n";
        let found = code(text);
        let found: Vec<_> = found.into_iter().filter(|line| !line.is_empty()).collect();
        assert_eq!(found, ["#if 0", "#else", "x;", "#endif", "y;"]);
        assert_eq!(code("#if 0x10\n}\n#endif\n"), ["#if 0x10", "}", "#endif"]);
        assert_eq!(
            code("# if 0 /* no */\n}\n# endif\n"),
            ["# if 0", "", "# endif"]
        );
    }
}
