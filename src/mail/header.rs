//! Mail headers in git's bytes: RFC 2047 words, quoted names, folding, dates, file-name slugs.
//!
//! Hides every rule of git's `pretty.c`, `utf8.c` and `log-tree.c` that decides where a line is cut.
//!
//! What comes in has passed [`super::survive`]: valid UTF-8, no control characters, single blanks.

use anyhow::{Context, Result};
use unicode_width::UnicodeWidthChar;

use crate::repo::Signature;

/// Where an encoded word stands: inside a name fewer characters may stand for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Subject,
    Name,
}

/// How text continues a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrap {
    /// Columns already used.
    pub(super) column: usize,
    /// Whether the first word may go to a new line.
    pub(super) may_break: bool,
    /// Blanks before a continuation line.
    pub(super) indent: usize,
    /// The last column.
    pub(super) width: usize,
}

/// Header lines are folded to this, encoded words to two less (RFC 2047).
const WIDTH: usize = 78;
const ENCODED_WIDTH: usize = 76;

/// `LABEL: name <address>`, with its newline.
pub(super) fn mailbox(label: &str, name: &str, email: &str) -> String {
    let mut line = format!("{label}: ");
    push_mailbox(&mut line, name, email);
    line.push('\n');
    line
}

/// `LABEL: a <a@b>,` with the other addresses on lines of their own; nothing where there is none.
pub(super) fn mailboxes(label: &str, list: &[super::Mailbox]) -> String {
    let mut lines = String::new();
    for (at, mailbox) in list.iter().enumerate() {
        if at == 0 {
            lines.extend([label, ": "]);
        } else {
            lines.extend([",\n", &" ".repeat(label.len() + 2)]);
        }
        push_mailbox(&mut lines, &mailbox.name, &mailbox.email);
    }
    if !list.is_empty() {
        lines.push('\n');
    }
    lines
}

fn push_mailbox(line: &mut String, name: &str, email: &str) {
    if name.is_empty() {
        line.push_str(email);
        return;
    }
    let mut width = WIDTH;
    let wrap = Wrap {
        column: last_line(line),
        may_break: true,
        indent: 1,
        width,
    };
    if needs_encoding(name) {
        push_encoded(line, name, Place::Name);
        width = ENCODED_WIDTH;
    } else if needs_quotes(name) {
        push_wrapped(line, &quoted(name), wrap);
    } else {
        push_wrapped(line, name, wrap);
    }
    if width < last_line(line) + " <>".len() + email.len() {
        line.push('\n');
    }
    line.extend([" <", email, ">"]);
}

/// `Subject: TAG text`, folded, with its newline.
pub(super) fn subject(tag: &str, text: &str) -> String {
    let mut line = format!("Subject: {tag} ");
    if needs_encoding(text) {
        push_encoded(&mut line, text, Place::Subject);
    } else {
        let wrap = Wrap {
            column: line.len(),
            may_break: true,
            indent: 1,
            width: WIDTH,
        };
        push_wrapped(&mut line, text, wrap);
    }
    line.push('\n');
    line
}

/// `Date: Thu, 7 Apr 2005 22:13:13 +0200`, in the signature's own zone, with its newline.
pub(super) fn date(signature: &Signature) -> Result<String> {
    let zone = jiff::tz::Offset::from_seconds(signature.offset * 60)
        .context("a commit's time zone is out of range")?;
    let time =
        jiff::Timestamp::from_second(signature.time).context("a commit's time is out of range")?;
    let local = zone.to_datetime(time).strftime("%a, %-d %b %Y %H:%M:%S");
    let sign = if signature.offset < 0 { '-' } else { '+' };
    let minutes = signature.offset.abs();
    Ok(format!(
        "Date: {local} {sign}{:02}{:02}\n",
        minutes / 60,
        minutes % 60
    ))
}

/// A subject as a file name: runs of other characters become one `-` (git's `format_sanitized_subject`).
pub(super) fn slug(subject: &str) -> String {
    let mut slug = String::new();
    let mut gap = false;
    for byte in subject.bytes() {
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_')) {
            gap = true;
            continue;
        }
        if byte == b'.' && slug.ends_with('.') && !gap {
            continue;
        }
        if gap && !slug.is_empty() {
            slug.push('-');
        }
        gap = false;
        slug.push(char::from(byte));
    }
    slug.trim_end_matches(['.', '-']).to_owned()
}

/// Text in words, cut before the word that would pass the width (git's `strbuf_add_wrapped_text`).
pub(super) fn push_wrapped(out: &mut String, text: &str, wrap: Wrap) {
    let mut column = wrap.column;
    let mut may_break = wrap.may_break;
    for (at, word) in text.split(' ').enumerate() {
        let blank = usize::from(at > 0);
        if may_break && column + blank + width(word) > wrap.width {
            out.push('\n');
            out.push_str(&" ".repeat(wrap.indent));
            column = wrap.indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        may_break = true;
        out.push_str(word);
        column += width(word);
    }
}

/// The columns of a text, each character by itself, as git counts.
fn width(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

/// Git encodes for bytes over 127, and for what would be taken for an encoded word.
fn needs_encoding(text: &str) -> bool {
    !text.is_ascii() || text.contains("=?")
}

fn needs_quotes(name: &str) -> bool {
    name.contains(|char| "()<>[]:;@,.\"\\".contains(char))
}

fn quoted(name: &str) -> String {
    let mut quoted = String::from("\"");
    for char in name.chars() {
        if matches!(char, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

/// Encoded words, none of which splits a character (git's `add_rfc2047`).
fn push_encoded(line: &mut String, text: &str, place: Place) {
    const START: &str = "=?UTF-8?q?";
    let mut column = last_line(line) + START.len();
    line.push_str(START);
    for char in text.chars() {
        let mut bytes = [0; 4];
        let bytes = char.encode_utf8(&mut bytes).as_bytes();
        let encode = bytes.len() > 1 || is_special(bytes[0], place);
        let length = if encode { 3 * bytes.len() } else { 1 };
        if column + length + "?=".len() > ENCODED_WIDTH {
            line.extend(["?=\n ", START]);
            column = 1 + START.len();
        }
        if encode {
            line.extend(bytes.iter().map(|byte| format!("={byte:02X}")));
        } else {
            line.push(char);
        }
        column += length;
    }
    line.push_str("?=");
}

/// Whether a byte cannot stand for itself in an encoded word.
fn is_special(byte: u8, place: Place) -> bool {
    match place {
        _ if !byte.is_ascii_graphic() || matches!(byte, b'=' | b'?' | b'_') => true,
        Place::Subject => false,
        Place::Name => !(byte.is_ascii_alphanumeric() || b"!*+-/".contains(&byte)),
    }
}

/// The length of the last line so far.
fn last_line(text: &str) -> usize {
    text.len() - text.rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_cut_as_git_does() {
        assert_eq!(slug("mm: add a.. b... (x)"), "mm-add-a.-b.-x");
        assert_eq!(slug("..."), "");
        assert_eq!(slug("ünï: cödé."), "n-c-d");
    }

    #[test]
    fn a_subject_of_one_long_word_goes_to_its_own_line() {
        let word = "x".repeat(80);
        assert_eq!(
            subject("[PATCH]", &word),
            format!("Subject: [PATCH] \n {word}\n")
        );
    }

    #[test]
    fn an_encoded_word_never_splits_a_character() {
        let folded = subject("[PATCH 1/1]", &"世".repeat(30));
        for line in folded.lines() {
            assert!(line.len() <= 76, "{line}");
            let word = line.split("?q?").nth(1).expect("an encoded word");
            assert_eq!(word.trim_end_matches("?=").len() % 9, 0, "{word}");
        }
    }

    #[test]
    fn a_date_keeps_its_zone() {
        let signature = Signature {
            name: "A".into(),
            email: "a@example.org".into(),
            time: 1_700_000_000,
            offset: -210,
        };
        let date = date(&signature).expect("a date");
        assert_eq!(date, "Date: Tue, 14 Nov 2023 18:43:20 -0330\n");
    }
}
