//! Text that an edit would write, with holes where it would show the base's own code, looked for in a file.
//!
//! Hides how a template is rendered without knowing what its inputs are: each is a mark of two lines, between which what the
//! template puts in front of every further line can be read.

use std::collections::BTreeMap;
use std::ops::Range;

use bstr::ByteSlice;

use crate::carry;
use crate::template::indent;

/// What a mark begins with, how its first line ends, and how its second one does.
const MARK: [char; 3] = ['\u{1}', '\u{2}', '\u{3}'];
/// How many places are looked at for one start.
const MOST: usize = 8;

/// A text with holes.
#[derive(Debug, Clone)]
pub(super) struct Draft(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What the input of this number stands for; its further lines have this in front.
    Hole(usize, String),
}

/// What holes stand for, by number.
pub(super) type Holes = BTreeMap<usize, String>;

/// A place where a draft is.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) holes: Holes,
}

/// Where a text stops being what a draft says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The offset.
    pub at: usize,
    /// The line that the draft has there.
    pub expected: String,
}

/// What stands for the input of this number while a template is rendered.
pub(super) fn mark(number: usize) -> String {
    let [begin, first, second] = MARK;
    format!("{begin}{number}{first}\n{begin}{number}{second}")
}

impl Draft {
    /// Reads a text that was rendered with marks; `None` where a filter tore one apart.
    pub(super) fn read(rendered: &str) -> Option<Self> {
        let [begin, first, second] = MARK;
        let mut pieces = Vec::new();
        let mut rest = rendered;
        while let Some((text, mark)) = rest.split_once(begin) {
            let (number, behind) = mark.split_once(first)?;
            let behind = behind.strip_prefix('\n')?;
            let (prefix, again) = behind.split_once(begin)?;
            let (same, behind) = again.split_once(second)?;
            if same != number || !prefix.trim_matches([' ', '\t']).is_empty() {
                return None;
            }
            pieces.push(Piece::Text(text.to_owned()));
            pieces.push(Piece::Hole(number.parse().ok()?, prefix.to_owned()));
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Some(Self(pieces))
    }

    /// The ways in which `text` is what the draft says, from `range.start` on and up to `range.end` at most; where it is none, how far it goes.
    pub(super) fn at(
        &self,
        text: &[u8],
        range: Range<usize>,
        holes: &Holes,
    ) -> Result<Vec<Found>, Miss> {
        let mut attempt = Attempt {
            text: &text[..range.end],
            start: range.start,
            holes: holes.clone(),
            found: Vec::new(),
            miss: Miss {
                at: range.start,
                expected: String::new(),
            },
        };
        attempt.pieces(&self.0, range.start);
        if attempt.found.is_empty() {
            Err(attempt.miss)
        } else {
            Ok(attempt.found)
        }
    }
}

impl Draft {
    /// These statements with the white space that the draft has in its place; `None` where it does not say them.
    pub(super) fn laid_out(&self, statements: &str) -> Option<String> {
        let whole = || {
            let mut rest = statements;
            let mut laid = String::new();
            for (number, piece) in self.0.iter().enumerate() {
                match piece {
                    Piece::Text(text) => {
                        rest = without_prefix(rest, text)?;
                        laid.push_str(text);
                    }
                    Piece::Hole(_, prefix) => {
                        let next = self.0.get(number + 1);
                        let end = match next {
                            Some(Piece::Text(next)) => ends(rest)
                                .find(|end| without_prefix(&rest[*end..], next).is_some())?,
                            _ => rest.len(),
                        };
                        laid.push_str(&indent(rest[..end].trim(), prefix));
                        rest = &rest[end..];
                    }
                }
            }
            rest.trim().is_empty().then_some(laid)
        };
        whole().or_else(|| {
            self.0.iter().find_map(|piece| match piece {
                Piece::Text(text) => lines_that_say(text, statements),
                Piece::Hole(..) => None,
            })
        })
    }
}

/// Where a text may end: between any two of its characters.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

/// What is behind `prefix`, whatever white space there is in both.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text;
    for wanted in prefix.chars().filter(|char| !char.is_whitespace()) {
        rest = rest.trim_start().strip_prefix(wanted)?;
    }
    Some(rest)
}

/// The lines of a text that say the same as some statements, moved to the left margin.
fn lines_that_say(text: &str, statements: &str) -> Option<String> {
    let starts = text.match_indices('\n').map(|(newline, _)| newline + 1);
    std::iter::once(0).chain(starts).find_map(|start| {
        let rest = without_prefix(&text[start..], statements)?;
        let lines = &text[start..text.len() - rest.len()];
        let own = lines.trim_start_matches([' ', '\t']);
        let ends_a_line = rest.is_empty() || rest.starts_with('\n');
        let own = outdent(own, &lines[..lines.len() - own.len()])?;
        (ends_a_line && !own.is_empty()).then_some(own)
    })
}

struct Attempt<'a> {
    text: &'a [u8],
    start: usize,
    holes: Holes,
    found: Vec<Found>,
    miss: Miss,
}

impl Attempt<'_> {
    fn pieces(&mut self, pieces: &[Piece], at: usize) {
        match pieces.split_first() {
            None => self.found.push(Found {
                range: self.start..at,
                holes: self.holes.clone(),
            }),
            Some((Piece::Text(text), rest)) => {
                if let Some(end) = self.literally(text, at) {
                    self.pieces(rest, end);
                }
            }
            Some((Piece::Hole(number, prefix), rest)) => match self.holes.get(number) {
                Some(known) => {
                    if let Some(end) = self.literally(&indent(known, prefix), at) {
                        self.pieces(rest, end);
                    }
                }
                None => self.fill(*number, prefix, rest, at),
            },
        }
    }

    /// Where a text ends that is here.
    fn literally(&mut self, text: &str, at: usize) -> Option<usize> {
        let text = &*carry::unpack(text);
        if self.text[at..].starts_with(text) {
            return Some(at + text.len());
        }
        let pairs = self.text[at..].iter().zip(text);
        let same = pairs.take_while(|(here, wanted)| here == wanted).count();
        if at + same >= self.miss.at {
            let line = text[..same].rfind_byte(b'\n');
            let line = &text[line.map_or(0, |newline| newline + 1)..];
            let line = line.lines().next().unwrap_or_default();
            self.miss = Miss {
                at: at + same,
                expected: line.to_str_lossy().into_owned(),
            };
        }
        None
    }

    /// Lets a hole stand for ever more text, as long as that is laid out as the draft would do it.
    fn fill(&mut self, number: usize, prefix: &str, rest: &[Piece], at: usize) {
        let stops: Vec<usize> = match rest.first() {
            Some(Piece::Text(next)) => {
                let next = carry::unpack(next);
                self.text[at..]
                    .find_iter(&*next)
                    .map(|it| at + it)
                    .collect()
            }
            Some(Piece::Hole(..)) => return,
            None => {
                let newlines = self.text[at..].find_iter("\n").map(|it| at + it);
                newlines.chain([self.text.len()]).collect()
            }
        };
        for stop in stops {
            let value = outdent(&carry::pack(&self.text[at..stop]), prefix);
            let (Some(value), true) = (value, self.found.len() < MOST) else {
                return;
            };
            self.holes.insert(number, value);
            self.pieces(rest, stop);
            self.holes.remove(&number);
        }
    }
}

/// The opposite of [`indent`]; `None` where a line does not begin with the prefix.
fn outdent(text: &str, prefix: &str) -> Option<String> {
    let mut lines = text.split('\n');
    let mut plain = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let bare = line.is_empty() || line.starts_with('#');
        let rest = if bare {
            line
        } else {
            line.strip_prefix(prefix)?
        };
        plain.push('\n');
        plain.push_str(rest);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rendered: &str, text: &str) -> Vec<(usize, Holes)> {
        let draft = Draft::read(rendered).unwrap();
        let found = draft.at(text.as_bytes(), 0..text.len(), &Holes::new());
        let found = found.unwrap_or_default().into_iter();
        found.map(|found| (found.range.end, found.holes)).collect()
    }

    #[test]
    fn a_hole_stands_for_lines_that_are_laid_out_as_it_would_be() {
        let rendered = format!("while (x) {{\n\t{}\n}}\n", indent(&mark(0), "\t"));
        let text = "while (x) {\n\ta();\n\n\tif (y) {\n\t\tb();\n\t}\n}\n\t}\n";
        let found = found(&rendered, text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1[&0], "a();\n\nif (y) {\n\tb();\n}");
    }

    #[test]
    fn the_same_hole_stands_for_the_same_text() {
        let rendered = format!("f({0}, {0});\n", mark(3));
        assert_eq!(found(&rendered, "f(a, a);\n").len(), 1);
        assert!(found(&rendered, "f(a, b);\n").is_empty());
    }

    #[test]
    fn where_it_is_another_text_is_said_with_the_line_that_was_expected() {
        let draft = Draft::read("void f(void)\n{\n\tint i;\n}\n").unwrap();
        let text = b"void f(void)\n{\n\tunsigned int i;\n}\n";
        let miss = draft.at(text, 0..text.len(), &Holes::new()).unwrap_err();
        assert_eq!((miss.at, miss.expected.as_str()), (16, "\tint i;"));
    }

    #[test]
    fn what_an_edit_wrote_has_its_white_space() {
        let laid =
            |rendered: &str, statements: &str| Draft::read(rendered).unwrap().laid_out(statements);
        let call = format!("call(a,\n     {},\n     b);", indent(&mark(2), "     "));
        assert_eq!(
            laid(&call, "call(a, n(1, 2), b);").unwrap(),
            "call(a,\n     n(1, 2),\n     b);"
        );
        assert_eq!(laid(&call, "call(a, n);"), None);
        let lines = "if (x) {\n\tcall(a,\n\t     b);\n\tother();\n}";
        assert_eq!(laid(lines, "call(a, b);").unwrap(), "call(a,\n     b);");
        assert_eq!(laid(lines, "all(a, b);"), None);
    }

    #[test]
    fn a_mark_that_was_torn_apart_is_no_draft() {
        assert!(Draft::read(&mark(1).replace('\n', " ")).is_none());
        assert!(Draft::read(&indent(&mark(1), "> ")).is_none());
    }
}
