//! The trailers of a message, by git's own rule for what is one (`trailer.c`; `git interpret-trailers --parse` is the measure).
//!
//! Hides the rule. The last paragraph is a block of trailers if all of its lines are trailers, or if one is git's own (a sign-off, a
//! line of `cherry-pick -x`) and at least a quarter are trailers. The first paragraph, the subject, never is one.

use std::ops::Range;

use bstr::{BStr, ByteSlice};

/// One trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer<'a> {
    /// What stands before the colon.
    pub key: &'a BStr,
    /// What stands after it, with the lines that continue it.
    pub value: &'a BStr,
    /// The line of the message that it starts on, from 1.
    pub line: usize,
}

impl Trailer<'_> {
    /// The value on one line, as git unfolds it.
    #[must_use]
    pub fn unfolded(&self) -> String {
        let lines = self.value.lines().map(ByteSlice::trim);
        bstr::join(" ", lines).to_str_lossy().trim().to_owned()
    }
}

/// What git writes itself: one of them makes a mixed paragraph a block of trailers.
const GITS_OWN: [&str; 2] = ["Signed-off-by: ", "(cherry picked from commit "];

/// Comments of an editor, which are none of the message for this rule.
const COMMENT: u8 = b'#';

/// Where the block of trailers is; empty, at the end, where there is none.
#[must_use]
pub fn block(message: &[u8]) -> Range<usize> {
    let message = &message[..without_remains(message)];
    let none = message.len()..message.len();
    let title = end_of_title(message);
    let lines: Vec<Range<usize>> = lines(message).filter(|line| line.start >= title).collect();
    let mut seen = Seen::default();
    for line in lines.iter().rev() {
        let text = &message[line.clone()];
        if is_blank(text) && text.first() != Some(&COMMENT) {
            if !seen.any {
                continue;
            }
            return if seen.is_block() {
                line.end..message.len()
            } else {
                none
            };
        }
        seen.take(text);
    }
    none
}

/// The trailers, in order.
#[must_use]
pub fn trailers(message: &[u8]) -> Vec<Trailer<'_>> {
    let block = block(message);
    let before = message[..block.start].iter();
    let mut number = before.filter(|&&byte| byte == b'\n').count();
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    let mut may_go_on = false;
    for line in lines(&message[..block.end]).filter(|line| line.start >= block.start) {
        number += 1;
        let text = &message[line.clone()];
        if may_go_on && text.first().is_some_and(u8::is_ascii_whitespace) {
            if let Some((last, _)) = found.last_mut() {
                last.end = line.end;
            }
            continue;
        }
        may_go_on = separator(text).is_some_and(|at| at > 0);
        if may_go_on && text.first() != Some(&COMMENT) {
            found.push((line, number));
        }
    }
    let found = found.into_iter().filter_map(|(range, line)| {
        let text = &message[range];
        let at = separator(text)?;
        Some(Trailer {
            key: text[..at].trim().as_bstr(),
            value: text[at + 1..].trim().as_bstr(),
            line,
        })
    });
    found.collect()
}

/// The message with this sign-off as its last trailer, unless it has it already: what `git format-patch --signoff` does.
#[must_use]
pub fn signed_off(message: &str, sign_off: &str) -> String {
    let message = message.trim_end();
    let block = block(message.as_bytes());
    let wanted = sign_off.trim();
    let is_there = message[block.clone()]
        .lines()
        .any(|line| line.trim_end() == wanted);
    if is_there {
        return format!("{message}\n");
    }
    let gap = if block.is_empty() { "\n" } else { "" };
    format!("{message}\n{gap}{wanted}\n")
}

/// The lines of a paragraph, from its last one up.
#[derive(Default)]
struct Seen {
    any: bool,
    is_gits_own: bool,
    trailers: usize,
    others: usize,
    /// Lines that continue what is not known yet.
    continuations: usize,
}

impl Seen {
    fn take(&mut self, line: &[u8]) {
        if line.first() == Some(&COMMENT) {
            self.others += std::mem::take(&mut self.continuations);
            return;
        }
        self.any = true;
        let starts_blank = line.first().is_some_and(u8::is_ascii_whitespace);
        let is_own = GITS_OWN.iter().any(|own| line.starts_with_str(own));
        if is_own || (!starts_blank && separator(line).is_some_and(|at| at > 0)) {
            self.is_gits_own |= is_own;
            self.trailers += 1;
            self.continuations = 0;
        } else if starts_blank {
            self.continuations += 1;
        } else {
            self.others += 1 + std::mem::take(&mut self.continuations);
        }
    }

    fn is_block(&self) -> bool {
        let others = self.others + self.continuations;
        self.is_gits_own && self.trailers * 3 >= others || self.trailers > 0 && others == 0
    }
}

/// Where the colon of a trailer is: a word of letters, digits and `-`, perhaps blanks, a colon.
fn separator(line: &[u8]) -> Option<usize> {
    let mut blank = false;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            b':' => return Some(at),
            _ if !blank && (byte.is_ascii_alphanumeric() || byte == b'-') => {}
            b' ' | b'\t' if at > 0 => blank = true,
            _ => return None,
        }
    }
    None
}

/// Where the paragraphs behind the first one start.
fn end_of_title(message: &[u8]) -> usize {
    let mut title = lines(message).skip_while(|line| {
        let text = &message[line.clone()];
        text.first() == Some(&COMMENT) || !is_blank(text)
    });
    title.next().map_or(message.len(), |line| line.start)
}

/// Where the message ends for this rule: in front of comments, blank lines and the list of conflicts that old gits left there.
fn without_remains(message: &[u8]) -> usize {
    let mut end = None;
    let mut conflicts = false;
    for line in lines(message) {
        let text = &message[line.clone()];
        if text == b"\n" || text.first() == Some(&COMMENT) {
            end = end.or(Some(line.start));
        } else if text == b"Conflicts:\n" {
            conflicts = true;
            end = end.or(Some(line.start));
        } else if !(conflicts && text.first() == Some(&b'\t')) {
            end = None;
            conflicts = false;
        }
    }
    end.unwrap_or(message.len())
}

fn lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    text.lines_with_terminator().map(move |line| {
        at += line.len();
        at - line.len()..at
    })
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_off_goes_where_git_puts_it() {
        let sign = "Signed-off-by: A U Thor <author@example.org>";
        for (message, expected) in [
            ("a: b\n", format!("a: b\n\n{sign}\n")),
            ("io-uring: b\n", format!("io-uring: b\n\n{sign}\n")),
            ("a: b\n\nText.\n", format!("a: b\n\nText.\n\n{sign}\n")),
            (
                "a: b\n\nCloses: https://example.org/1\n",
                format!("a: b\n\nCloses: https://example.org/1\n{sign}\n"),
            ),
            (
                "a: b\n\nThe option is in: a file.\nText.\n",
                format!("a: b\n\nThe option is in: a file.\nText.\n\n{sign}\n"),
            ),
        ] {
            assert_eq!(signed_off(message, sign), expected);
            // Twice is once.
            assert_eq!(signed_off(&expected, sign), expected);
        }
    }

    #[test]
    fn trailers_know_their_lines_and_continue() {
        let message = b"a: b\n\nFixes: 1 (\"x\n  y\")\nCc: <s@example.org> # 6.1.x\n";
        let found = trailers(message);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[1].line), (3, 5));
        assert_eq!(found[0].unfolded(), "1 (\"x y\")");
        assert_eq!(found[1].key, "Cc");
    }
}
