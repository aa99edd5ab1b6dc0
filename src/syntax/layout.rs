//! Where lines and definitions are in a text that is laid out as the kernel does it.
//!
//! Hides the scan: a body has its braces in column 0, or all of it is on one line. No parser is asked.

use std::ops::Range;

use bstr::{ByteSlice, Finder};

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
    /// Where the lines began that may be the head of a function, if there are any.
    head: Option<usize>,
    /// The last comment that began in column 0 outside of functions, newline included.
    comment: Option<Range<usize>>,
    /// Inside of a comment, and where that began.
    inside: Option<usize>,
}

/// Finds definitions by their layout: lines from column 0 that end in `)`, a `{` alone in column 0, and the next `}` in
/// column 0; or all of it on one line.
pub(super) fn definitions(text: &[u8]) -> Vec<Definition> {
    let closing = Finder::new("\n}");
    let mut found = Vec::new();
    let mut scan = Scan::default();
    let mut at = 0;
    while at < text.len() {
        let mut end = line_end(text, at);
        let line = text[at..end].trim_ascii_end();
        if scan.inside.is_some() {
            scan.inside_comment(line, end);
        } else if line == b"{" && scan.head.is_some_and(|head| ends_a_head(&text[head..at])) {
            // The body may be empty: its `}` on the next line.
            let close = closing.find(&text[end - 1..]).map(|skip| end + skip);
            let close = close.unwrap_or(text.len() - 1);
            end = line_end(text, close);
            found.extend(scan.definition(at, close, end));
            scan = Scan::default();
        } else if let Some(open) = one_line_body(line) {
            scan.head.get_or_insert(at);
            found.extend(scan.definition(at + open, at + line.len() - 1, end));
            scan = Scan::default();
        } else {
            scan.line(line, at..end);
        }
        at = end;
    }
    found
}

impl Scan {
    fn inside_comment(&mut self, line: &[u8], end: usize) {
        if line.contains_str("*/") {
            *self = Self {
                comment: self.inside.map(|start| start..end),
                ..Self::default()
            };
        }
    }

    /// Takes in a line that neither opens a body nor lies in a comment.
    fn line(&mut self, line: &[u8], range: Range<usize>) {
        let first = line.first().copied().unwrap_or(b'\n');
        if line.starts_with(b"/*") {
            let closed = line.contains_str("*/");
            *self = Self {
                comment: closed.then(|| range.clone()),
                inside: (!closed).then_some(range.start),
                head: None,
            };
        } else if line.ends_with(b";")
            || line.ends_with(b"}")
            || matches!(first, b'\n' | b'#' | b'{' | b'}')
        {
            *self = Self::default();
        } else if self.head.is_none() && (first.is_ascii_alphabetic() || first == b'_') {
            self.head = Some(range.start);
        }
    }

    fn definition(&self, open: usize, close: usize, end: usize) -> Option<Definition> {
        let start = self.head?;
        let comment = self.comment.as_ref().filter(|comment| comment.end == start);
        Some(Definition {
            range: comment.map_or(start, |comment| comment.start)..end,
            start,
            open,
            end: close + 1,
        })
    }
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
    let starts = line.first().is_some_and(|byte| {
        byte.is_ascii_alphabetic() || *byte == b'_' || byte.is_ascii_whitespace()
    });
    let open = line
        .find_byte(b'{')
        .filter(|_| starts && line.ends_with(b"}"))?;
    line[..open].trim_end().ends_with(b")").then_some(open)
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
