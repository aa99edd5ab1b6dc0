//! Where lines and definitions are in a text that is laid out as the kernel does it.
//!
//! Hides the scan: a body opens alone in column 0 or at the end of the line that its parameters end on, and closes in column 0; or all of
//! it is on one line. No parser is asked, and what the scan takes for the end of a body is never inside a comment, a literal or an `#if 0`.

mod code;

use std::ops::Range;

use bstr::{ByteSlice, Finder};

use self::code::close_of;
pub use self::code::logical_line_end;
pub(super) use self::code::{Lexer, literal};
use super::attributes::{is_attribute, is_word};

/// Something that is laid out like a function definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// From the comment above it to the end of the line that closes it.
    pub range: Range<usize>,
    /// Where it starts, comment excluded.
    pub start: usize,
    /// Where its body's opening brace is.
    pub(super) open: usize,
    /// Behind its body's closing brace.
    pub(super) end: usize,
}

impl Definition {
    /// What stands in front of the body.
    #[must_use]
    pub fn head(&self) -> Range<usize> {
        self.start..self.open
    }
}

/// What the scan of a file knows at the start of a line.
#[derive(Default)]
struct Scan {
    /// Where the lines began that may be the head of a function, and where their code ends, if there are any.
    head: Option<Range<usize>>,
    /// The last comment that began in column 0 outside of functions, newline included.
    comment: Option<Range<usize>>,
    /// The comment that is not closed yet began here, in column 0.
    opened: Option<usize>,
}

/// Finds definitions by their layout.
pub(super) fn definitions(text: &[u8]) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut scan = Scan::default();
    let mut lexer = Lexer::default();
    let closing = Finder::new("\n}");
    let mut at = 0;
    while at < text.len() {
        let mut end = logical_line_end(text, at);
        let was_open = lexer.in_comment();
        let code = lexer.line(&text[at..end]);
        let code = at + code.start..at + code.end;
        match scan.body(text, at, &code) {
            Some(Body::Opens(open)) => {
                // One that never ends is no body, and nothing behind it can be told.
                let Some(close) = close_of(text, open, &closing) else {
                    break;
                };
                found.extend(scan.definition(open, close, line_end(text, close)));
                scan = Scan::default();
                end = logical_line_end(text, close);
                // What stands behind the brace may begin a comment.
                lexer.line(&text[close + 1..end]);
            }
            Some(Body::Whole(body)) => {
                found.extend(scan.definition(body.start, body.end, end));
                scan = Scan::default();
            }
            None => scan.line(text, at..end, &code, [was_open, lexer.in_comment()]),
        }
        at = end;
    }
    found
}

/// A body that starts on a line.
enum Body {
    /// Its opening brace ends the line.
    Opens(usize),
    /// All of it is on the line: both braces.
    Whole(Range<usize>),
}

impl Scan {
    /// The body that starts on a line, where what stands in front of it is a head.
    fn body(&mut self, text: &[u8], at: usize, code: &Range<usize>) -> Option<Body> {
        let line = &text[code.clone()];
        let is_alone = line == b"{" && code.start == at;
        let starts = self.head.as_ref().map(|head| head.start);
        let starts = starts.or_else(|| (code.start == at && starts_a_word(line)).then_some(at));
        if is_alone || line.ends_with(b"{") {
            let open = code.end - 1;
            let before = self.head.as_ref().map_or(open, |head| head.end);
            let head = starts?..if is_alone { before } else { open };
            let is_head = ends_a_head(&text[head.clone()]);
            return (is_head && (is_alone || !text[head.clone()].contains(&b'='))).then(|| {
                self.head = Some(head);
                Body::Opens(open)
            });
        }
        let open = one_line_body(line)?;
        self.head.get_or_insert(at..code.end);
        Some(Body::Whole(code.start + open..code.end - 1))
    }

    /// Takes in a line that opens no body; whether a comment was open before it, and is behind it.
    fn line(&mut self, text: &[u8], range: Range<usize>, code: &Range<usize>, open: [bool; 2]) {
        let line = &text[code.clone()];
        let in_column_0 = code.start == range.start;
        match (open, line.is_empty()) {
            ([true, true], _) => {}
            ([true, false], true) => self.comment_ends(range.end),
            ([false, _], true) => self.no_code(text, range, open[1]),
            _ if line.ends_with(b";")
                || line.ends_with(b"}")
                || line.trim_ascii_start().starts_with(b"#")
                || in_column_0 && matches!(line[0], b'{' | b'}') =>
            {
                *self = Self::default();
            }
            _ => match &mut self.head {
                Some(head) => head.end = code.end,
                None if in_column_0 && starts_a_word(line) => self.head = Some(code.clone()),
                None => {}
            },
        }
    }

    /// A line with nothing but a comment or blanks.
    fn no_code(&mut self, text: &[u8], range: Range<usize>, opens: bool) {
        let line = &text[range.clone()];
        if line.starts_with(b"/*") && opens {
            *self = Self {
                opened: Some(range.start),
                ..Self::default()
            };
        } else if line.starts_with(b"/*") {
            *self = Self::commented(range);
        } else if line.starts_with(b"//") {
            let above = self.comment.take();
            let above = above.filter(|above| above.end == range.start);
            let above = above.filter(|above| text[above.start..].starts_with(b"//"));
            *self = Self::commented(above.map_or(range.start, |above| above.start)..range.end);
        } else if matches!(line.first(), Some(b'\n' | b'\r')) {
            *self = Self::default();
        }
    }

    fn comment_ends(&mut self, end: usize) {
        if let Some(start) = self.opened.take() {
            *self = Self::commented(start..end);
        }
    }

    fn commented(comment: Range<usize>) -> Self {
        Self {
            comment: Some(comment),
            ..Self::default()
        }
    }

    fn definition(&self, open: usize, close: usize, end: usize) -> Option<Definition> {
        let start = self.head.as_ref()?.start;
        let comment = self.comment.as_ref().filter(|comment| comment.end == start);
        Some(Definition {
            range: comment.map_or(start, |comment| comment.start)..end,
            start,
            open,
            end: close + 1,
        })
    }
}

fn starts_a_word(line: &[u8]) -> bool {
    line.first()
        .is_some_and(|&first| first.is_ascii_alphabetic() || first == b'_')
}

/// Whether these lines end in parameters, or in an attribute behind them (`void f(void) __cold`).
fn ends_a_head(head: &[u8]) -> bool {
    let head = head.trim_ascii_end();
    let word = head
        .iter()
        .rposition(|&byte| !is_word(byte))
        .map_or(0, |last| last + 1);
    head.ends_with(b")")
        || is_attribute(&head[word..]) && head[..word].trim_ascii_end().ends_with(b")")
}

/// Where the body of a function on a single line opens.
fn one_line_body(line: &[u8]) -> Option<usize> {
    if !line.ends_with(b"}") {
        return None;
    }
    let starts = starts_a_word(line.trim_ascii_start());
    let open = line.find_byte(b'{').filter(|_| starts)?;
    line[..open]
        .trim_ascii_end()
        .ends_with(b")")
        .then_some(open)
}

/// Where the lines of a C file are that hold code, each with those that a backslash joins to it, without the comments at their ends.
pub fn code_lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut lexer = Lexer::default();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            at = logical_line_end(text, start);
            let code = lexer.line(&text[start..at]);
            if !text[start + code.start..start + code.end]
                .trim_ascii()
                .is_empty()
            {
                return Some(start + code.start..start + code.end);
            }
        }
        None
    })
}

/// The word of a line of the preprocessor, and what follows it; `None` for any other line.
#[must_use]
pub fn directive(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line
        .trim_ascii_start()
        .strip_prefix(b"#")?
        .trim_ascii_start();
    let end = rest
        .iter()
        .position(|&byte| !is_word(byte))
        .unwrap_or(rest.len());
    let (word, rest) = rest.split_at(end);
    Some((word, rest.trim_ascii()))
}

/// Whether most lines of a file end in a carriage return and a newline.
#[must_use]
pub fn has_crlf(text: &[u8]) -> bool {
    if text.find_byte(b'\r').is_none() {
        return false;
    }
    let lines = text.find_iter("\n").count();
    2 * text.find_iter("\r\n").count() > lines
}

/// The line that an offset lies in, counted from 1.
#[must_use]
pub fn line_of(text: &[u8], offset: usize) -> usize {
    text[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The offset of the start of the line that `offset` lies in.
#[must_use]
pub fn line_start(text: &[u8], offset: usize) -> usize {
    text[..offset]
        .rfind_byte(b'\n')
        .map_or(0, |newline| newline + 1)
}

/// The offset behind the newline that ends the line `offset` lies in.
#[must_use]
pub fn line_end(text: &[u8], offset: usize) -> usize {
    text[offset..]
        .find_byte(b'\n')
        .map_or(text.len(), |newline| offset + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is laid out like a definition, without the comment above it.
    fn found(text: &str) -> Vec<&str> {
        let definitions = definitions(text.as_bytes()).into_iter();
        definitions
            .map(|found| &text[found.start..found.range.end])
            .collect()
    }

    #[test]
    fn a_brace_may_stand_alone_or_end_the_line_of_the_parameters() {
        for text in [
            "int f(void)\n{\n\ta();\n}\n",
            "int f(void) {\n\ta();\n}\n",
            "int f(void){\n}\n",
            "static int f(int a,\n\t     int b) {\n\ta();\n}\n",
            "int\nf(int a)\n{\n}\n",
            "void f(void) __cold {\n}\n",
            "int f(void) { /* why */\n\ta();\n}\n",
            "int f(int a) // why\n{ // and why\n}\n",
            "int f(int a, /* the\n{ number */ int b)\n{\n}\n",
            "int f(int a,\n      /* about b */\n      int b)\n{\n}\n",
            "int f(void) { return 0; } /* all of it */\n",
        ] {
            assert_eq!(found(text), [text]);
            let twice = format!("{text}\n{text}");
            assert_eq!(found(&twice), [text, text], "{text}");
        }
    }

    #[test]
    fn a_brace_in_column_0_that_is_no_code_ends_no_body() {
        for inside in [
            "/*\n}\n*/",
            "\t/* a\n}\n{\n */",
            "\tp = \"\\\n}\";",
            "// a \\\n}",
            "#if 0\n}\n#endif",
            "# if 0\n#ifdef A\n}\n#else\n}\n#endif\n#else\n\tb();\n#endif",
            "#define M do { \\\n} while (0)",
            "\tq = \"/*\";\n\t/* \"\n}\n*/",
        ] {
            for head in ["int f(void)\n{\n", "int f(void) {\n"] {
                let text = format!("{head}{inside}\n\tend();\n}}\nint g(void)\n{{\n}}\n");
                let expected = text.find("int g").expect("g");
                assert_eq!(found(&text), [&text[..expected], &text[expected..]]);
            }
        }
        // What only looks as if something were open leaves the end where it is.
        for inside in [
            "\tp = \"/*\";",
            "\td = a / *b;",
            "\t// it's /* nothing",
            "#if 1",
        ] {
            let text = format!("int f(void)\n{{\n{inside}\n}}\nint g(void)\n{{\n}}\n");
            assert_eq!(found(&text).len(), 2, "{text}");
        }
    }

    #[test]
    fn what_is_no_code_defines_nothing() {
        let definition = "int f(void)\n{\n}\n";
        for (before, after) in [
            ("/*\n", "*/\n"),
            ("int x; /* see\n", "*/\n"),
            ("#if 0\n", "#endif\n"),
            ("#if 0\n#if 1\n#endif\n", "#endif\n"),
        ] {
            let hidden = format!("{before}{definition}{after}");
            assert!(found(&hidden).is_empty(), "{hidden}");
            assert_eq!(found(&format!("{hidden}{definition}")), [definition]);
        }
        assert_eq!(
            found(&format!("char *p = \"/*\";\n{definition}")),
            [definition]
        );
        assert_eq!(
            found(&format!("#if 0\n}}\n#else\n{definition}#endif\n")),
            [definition]
        );
        assert!(found("#define F(x) \\\nint x(void) {\\\n}\n").is_empty());
        assert!(found("struct a b = (struct a) {\n\t1\n};\n").is_empty());
    }

    #[test]
    fn the_comment_above_belongs_to_a_definition() {
        let definition = "int f(void) {\n}\n";
        for comment in ["/* a */\n", "/*\n\n * a\n { */\n", "// a\n", "// a\n// b\n"] {
            let text = format!("int x;\n{comment}{definition}");
            let range = definitions(text.as_bytes())[0].range.clone();
            assert_eq!(text[range], format!("{comment}{definition}"));
        }
        for other in ["/* a */\n\n", "int x; /* a */\n", "int x; /* a\n */\n"] {
            let text = format!("{other}{definition}");
            assert_eq!(definitions(text.as_bytes())[0].range.start, other.len());
        }
    }
}
