//! Pairs as text: `git range-diff`'s, byte for byte, or for a terminal with the changed words marked.
//!
//! Hides the columns of the header lines, and which words of a changed line are new.

use anstyle::{AnsiColor, Effects, Style};
use bstr::ByteSlice;
use similar::{ChangeTag, TextDiff};

use super::{Kind, Pair, Patch};
use crate::ui::shown_text;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A line for each pair.
    Summary,
    /// With the differences.
    Full,
}

const OLD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const NEW: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const BOTH: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
const PLACE: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));
const MARKED: Effects = Effects::BOLD.insert(Effects::INVERT);
/// Lines that have less in common than this are not compared word by word.
const ALIKE: f64 = 0.4;
const INDENT: &str = "    ";

/// What `git range-diff --no-color` prints; with [`Detail::Summary`] what it prints with `-s`. The bytes of the patches
/// are not escaped: this is for files and pipes.
#[must_use]
pub fn as_text(old: &[Patch], new: &[Patch], pairs: &[Pair], detail: Detail) -> Vec<u8> {
    let heads = Heads::of(old, new, pairs);
    let mut text = Vec::new();
    for pair in pairs {
        let head = heads.parts(pair);
        text.extend_from_slice(head.before.as_bytes());
        text.push(head.status);
        text.extend_from_slice(head.after.as_bytes());
        text.push(b' ');
        text.extend_from_slice(head.subject);
        text.push(b'\n');
        for line in shown_lines(pair, detail) {
            text.extend_from_slice(INDENT.as_bytes());
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    text
}

/// The same for a person: coloured, words that changed marked, and control characters shown instead of sent.
#[must_use]
pub fn for_terminal(old: &[Patch], new: &[Patch], pairs: &[Pair], detail: Detail) -> String {
    let heads = Heads::of(old, new, pairs);
    let mut text = String::new();
    for pair in pairs {
        let head = heads.parts(pair);
        let (left, middle, right) = match head.status {
            b'!' => (OLD, BOTH, NEW),
            b'<' => (OLD, OLD, OLD),
            b'>' => (NEW, NEW, NEW),
            _ => (BOTH, BOTH, BOTH),
        };
        let subject = shown_text(head.subject);
        push(&mut text, left, &shown_text(head.before.as_bytes()));
        push(&mut text, middle, &char::from(head.status).to_string());
        push(&mut text, right, &shown_text(head.after.as_bytes()));
        push(&mut text, middle, &format!(" {subject}"));
        text.push('\n');
        let lines: Vec<String> = shown_lines(pair, detail).map(shown_text).collect();
        push_difference(&mut text, &lines);
    }
    text
}

fn shown_lines(pair: &Pair, detail: Detail) -> impl Iterator<Item = &[u8]> {
    let diff: &[u8] = match detail {
        Detail::Summary => b"",
        Detail::Full => &pair.diff,
    };
    diff.lines_with_terminator()
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// What all header lines have in common.
struct Heads<'a> {
    old: &'a [Patch],
    new: &'a [Patch],
    /// The width of a patch's number.
    width: usize,
    /// In the place of an id.
    dashes: String,
}

/// A header line: `1:  abc1234 ! 1:  def5678 subject`.
struct Head<'a> {
    before: String,
    status: u8,
    after: String,
    subject: &'a [u8],
}

impl<'a> Heads<'a> {
    fn of(old: &'a [Patch], new: &'a [Patch], pairs: &[Pair]) -> Self {
        let mut heads = Self {
            old,
            new,
            width: (1 + old.len().max(new.len())).to_string().len(),
            dashes: String::new(),
        };
        let first = pairs.first().and_then(|pair| heads.shown(pair));
        heads.dashes = "-".repeat(first.map_or(0, |patch| patch.short_id.len()));
        heads
    }

    /// The patch that a header line is about.
    fn shown(&self, pair: &Pair) -> Option<&'a Patch> {
        let new = || pair.new.and_then(|at| self.new.get(at));
        pair.old.and_then(|at| self.old.get(at)).or_else(new)
    }

    fn parts(&self, pair: &Pair) -> Head<'a> {
        Head {
            before: self.side(self.old, pair.old) + " ",
            status: match (pair.old, pair.new) {
                (_, None) => b'<',
                (None, _) => b'>',
                _ if pair.kind == Kind::Equal => b'=',
                _ => b'!',
            },
            after: format!(" {}", self.side(self.new, pair.new)),
            subject: self.shown(pair).map_or(b"", |patch| &patch.subject),
        }
    }

    fn side(&self, patches: &[Patch], at: Option<usize>) -> String {
        let patch = at.and_then(|at| patches.get(at).map(|patch| (at + 1, patch)));
        let (number, id) = match patch {
            Some((number, patch)) => (number.to_string(), patch.short_id.as_str()),
            None => ("-".to_owned(), self.dashes.as_str()),
        };
        format!("{number:>width$}:  {id}", width = self.width)
    }
}

fn push(text: &mut String, style: Style, part: &str) {
    text.push_str(&format!("{style}{part}{style:#}"));
}

/// The difference of two patches, coloured; removed lines with the added ones behind them are compared by words.
fn push_difference(text: &mut String, lines: &[String]) {
    let run = |from: usize, sign: char| {
        let rest = &lines[from..];
        rest.iter()
            .take_while(|line| line.starts_with(sign))
            .count()
    };
    let mut at = 0;
    while at < lines.len() {
        let removed = run(at, '-');
        let added = run(at + removed, '+');
        if removed + added > 0 {
            let middle = at + removed;
            push_run(text, &lines[at..middle], &lines[middle..middle + added]);
            at = middle + added;
            continue;
        }
        text.push_str(INDENT);
        if lines[at].starts_with("@@") {
            push(text, PLACE, &lines[at]);
        } else {
            text.push_str(&lines[at]);
        }
        text.push('\n');
        at += 1;
    }
}

fn push_run(text: &mut String, removed: &[String], added: &[String]) {
    let joined = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(|line| &line[1..]).collect();
        lines.join("\n")
    };
    let (old, new) = (joined(removed), joined(added));
    let words = TextDiff::from_words(&old, &new);
    let is_marked = !removed.is_empty() && !added.is_empty() && f64::from(words.ratio()) >= ALIKE;
    for (sign, style, own, lines) in [
        ("-", OLD, ChangeTag::Delete, removed),
        ("+", NEW, ChangeTag::Insert, added),
    ] {
        if lines.is_empty() {
            continue;
        }
        let mut pen = Pen::new(text, sign, style);
        for change in words.iter_all_changes() {
            if change.tag() == own || change.tag() == ChangeTag::Equal {
                pen.write(change.value(), is_marked && change.tag() == own);
            }
        }
        pen.end_line();
    }
}

/// Writes the lines of one side word by word; what stands together in one style is styled once.
struct Pen<'a> {
    text: &'a mut String,
    sign: &'a str,
    style: Style,
    /// What is not written yet, and its style.
    held: String,
    held_style: Style,
}

impl<'a> Pen<'a> {
    fn new(text: &'a mut String, sign: &'a str, style: Style) -> Self {
        let mut pen = Self {
            text,
            sign,
            style,
            held: String::new(),
            held_style: style,
        };
        pen.begin_line();
        pen
    }

    fn begin_line(&mut self) {
        self.text.push_str(INDENT);
        self.hold(self.sign, self.style);
    }

    fn write(&mut self, words: &str, is_marked: bool) {
        for (at, part) in words.split('\n').enumerate() {
            if at > 0 {
                self.end_line();
                self.begin_line();
            }
            let marks = is_marked && !part.trim().is_empty();
            let style = if marks {
                self.style.effects(MARKED)
            } else {
                self.style
            };
            self.hold(part, style);
        }
    }

    fn hold(&mut self, part: &str, style: Style) {
        if part.is_empty() {
            return;
        }
        if style != self.held_style {
            self.flush();
            self.held_style = style;
        }
        self.held.push_str(part);
    }

    fn flush(&mut self) {
        if !self.held.is_empty() {
            push(self.text, self.held_style, &self.held);
            self.held.clear();
        }
    }

    fn end_line(&mut self) {
        self.flush();
        self.text.push('\n');
    }
}
