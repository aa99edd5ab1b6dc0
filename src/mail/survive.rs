//! What git would damage on the way: a mail that does not come out of `git am` as it went in.
//!
//! Hides a model of git's `mailsplit.c`, `mailinfo.c`, `builtin/am.c` (which cleans white space up)
//! and `ident.c`.

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::rules::{Finding, Part};
use super::{Cover, Mailbox, Options, Patch};
use crate::error::Refusal;
use crate::repo::Signature;
use crate::ui::shown_text;

/// The longest line that mail can carry (RFC 5322).
const LONGEST_LINE: usize = 998;
/// A longer name is replaced by the address (git's `get_sane_name`).
const LONGEST_NAME: usize = 60;
/// The first second that git's date parser does not take any more: 1 January 2100.
const LAST_TIME: i64 = 4_102_444_800;

/// Refuses a series that git would damage; the message names the first place, the details the rest.
pub(super) fn refuse(cover: Option<&Cover>, patches: &[Patch], options: &Options) -> Result<()> {
    let found = damage(cover, patches, options);
    let Some((first, rest)) = found.split_first() else {
        return Ok(());
    };
    Err(Refusal::usage(first.to_string())
        .details(rest.iter().map(ToString::to_string).collect())
        .hint(first.fix)
        .into())
}

/// Everything in a series that would not survive `git mailsplit`, `git mailinfo` and `git am`.
#[must_use]
pub fn damage(cover: Option<&Cover>, patches: &[Patch], options: &Options) -> Vec<Finding> {
    let mut found = Found::default();
    if let Some(cover) = cover {
        found.patch = String::from("cover letter");
        found.cover(cover);
    }
    for patch in patches {
        found.patch = format!("patch `{}`", shown_text(patch.name.as_bytes()));
        found.patch(patch, options);
    }
    found.patch = String::from("series");
    found.options(options);
    found.list
}

#[derive(Default)]
struct Found {
    patch: String,
    list: Vec<Finding>,
}

impl Found {
    fn add(
        &mut self,
        rule: &'static str,
        part: &Part,
        line: Option<usize>,
        what: &str,
        fix: &'static str,
    ) {
        self.list.push(Finding {
            rule,
            patch: self.patch.clone(),
            part: part.clone(),
            line,
            what: what.to_owned(),
            fix,
        });
    }

    fn cover(&mut self, cover: &Cover) {
        self.subject(&cover.subject);
        let text = format!("{}\n\n{}", cover.subject, cover.blurb);
        self.text(&Part::Message, text.as_bytes());
        self.text(&Part::Notes, cover.notes.as_bytes());
    }

    fn patch(&mut self, patch: &Patch, options: &Options) {
        let message = patch.commit.message.as_bstr();
        if std::str::from_utf8(message).is_err() {
            let what = "the message is not valid UTF-8";
            let fix = "write the message in UTF-8";
            self.add("message-utf8", &Part::Message, None, what, fix);
        }
        self.message(message);
        self.text(&Part::Message, message);
        self.notes(&patch.notes);
        self.author(&patch.commit.author, options.sender.as_ref());
        if patch.files.is_empty() {
            let what = "the patch changes nothing, and `git am` takes no such patch";
            let fix = "drop the patch from the series";
            self.add("patch-empty", &Part::Message, None, what, fix);
        }
        for file in &patch.files {
            self.diff(&Part::Diff(shown_text(&file.path)), &file.text);
        }
    }

    /// A commit message: what `git mailinfo` takes for something else, and what `git am` cleans away.
    fn message(&mut self, message: &BStr) {
        let lines: Vec<&[u8]> = message.split(|&byte| byte == b'\n').collect();
        self.subject(&lines[0].to_str_lossy());
        if lines.get(1).is_some_and(|line| !line.is_empty()) {
            let what = "the subject goes on in the second line, and mail joins them";
            let fix = "keep the subject to one line, with a blank line after it";
            self.add("subject-one-line", &Part::Message, Some(2), what, fix);
        }
        self.spacing(&lines);
        for (at, line) in lines.iter().enumerate().skip(1) {
            if let Some(what) = cut(line) {
                let fix = "indent the line, or write it differently";
                self.add("message-cut", &Part::Message, Some(at + 1), what, fix);
            }
        }
        if let Some(first) = lines.get(2).filter(|line| is_in_body_header(line)) {
            let what = format!(
                "`{}` opens the text, and git takes it for a mail header",
                shown_text(first)
            );
            let fix = "let the text begin with another line";
            self.add("message-header", &Part::Message, Some(3), &what, fix);
        }
    }

    /// Blank lines that `git am` takes away.
    fn spacing(&mut self, lines: &[&[u8]]) {
        let fix = "separate paragraphs by one blank line, and end with one newline";
        let rule = "message-blank-lines";
        if lines.last().is_some_and(|last| !last.is_empty()) {
            let what = "the message does not end in a newline";
            self.add(rule, &Part::Message, Some(lines.len()), what, fix);
        }
        for (at, pair) in lines.windows(2).enumerate() {
            if pair.iter().all(|line| line.is_empty()) {
                let what = "two blank lines, or one at the end, which `git am` takes away";
                self.add(rule, &Part::Message, Some(at + 1), what, fix);
            }
        }
    }

    fn subject(&mut self, subject: &str) {
        let lower = subject.to_ascii_lowercase();
        let what = if subject.trim().is_empty() {
            "the subject is empty"
        } else if subject.starts_with('[') {
            "the subject begins with a bracket, which `git am` strips"
        } else if lower.starts_with("re:") || subject.starts_with(':') {
            "the subject begins with `re:` or `:`, which `git am` strips"
        } else if subject != collapse(subject) {
            "tabs, doubled or outer blanks in the subject, which mail makes one blank of"
        } else {
            return;
        };
        let fix = "write the subject as `subsystem: summary`, with single blanks";
        self.add("subject-survives", &Part::Message, Some(1), what, fix);
    }

    /// Text below the cut: `git apply` looks for patches in it.
    fn notes(&mut self, notes: &str) {
        self.text(&Part::Notes, notes.as_bytes());
        for (at, line) in notes.lines().enumerate() {
            let starts = ["diff -", "--- ", "+++ ", "@@ -", "Index: ", "GIT binary"];
            if line == "---" || starts.iter().any(|start| line.starts_with(start)) {
                let what = "the line looks like a part of a patch, and git would apply it";
                let fix = "indent the line";
                self.add("notes-diff", &Part::Notes, Some(at + 1), what, fix);
            }
        }
    }

    /// Bytes that a person's text must not have.
    fn text(&mut self, part: &Part, text: &[u8]) {
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let at = Some(at + 1);
            self.line(part, at, line);
            if line.starts_with(b"From ") {
                let what = "a line begins with `From `, which separates mails in an mbox";
                let fix = "break the line elsewhere, or indent it";
                self.add("mbox-from", part, at, what, fix);
            }
            if line.ends_with(b" ") || line.ends_with(b"\t") {
                let what = "white space at the end of the line, which `git am` takes away";
                let fix = "remove it";
                self.add("trailing-blank", part, at, what, fix);
            }
            // A NUL or a carriage return at the end has been found by now.
            let rest = line.strip_suffix(b"\r").unwrap_or(line);
            let is_control = |char: char| char.is_control() && !matches!(char, '\t' | '\0');
            if rest.chars().any(is_control) {
                let what = "a control character";
                let fix = "write it as text";
                self.add("control-character", part, at, what, fix);
            }
        }
    }

    /// A file's patch: kernel files may hold tabs and blanks at the end of a line, but mail has its limits.
    fn diff(&mut self, part: &Part, text: &[u8]) {
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            self.line(part, Some(at + 1), line);
        }
    }

    /// What no line of a mail may have.
    fn line(&mut self, part: &Part, at: Option<usize>, line: &[u8]) {
        if line.ends_with(b"\r") {
            let what = "a carriage return at the end of the line, which `git am` takes away";
            let fix = "use newlines alone";
            self.add("carriage-return", part, at, what, fix);
        }
        if line.contains(&0) {
            let fix = "remove it";
            self.add("nul", part, at, "a NUL, which cuts the line", fix);
        }
        if line.len() > LONGEST_LINE {
            let what = format!(
                "a line of {} bytes; mail carries {LONGEST_LINE}",
                line.len()
            );
            let fix = "break the line";
            self.add("line-length", part, at, &what, fix);
        }
    }

    fn author(&mut self, author: &Signature, sender: Option<&Mailbox>) {
        let fix = "change the author's name or address in the recipe";
        let (Ok(name), Ok(email)) = (author.name.to_str(), author.email.to_str()) else {
            let what = "the author's name or address is not valid UTF-8";
            return self.add("author-survives", &Part::Author, None, what, fix);
        };
        let in_body = sender.is_some_and(|sender| sender.name != name || sender.email != email);
        self.address(email);
        if recovered(name, in_body).as_deref() != Some(name) || name.is_empty() {
            let what = format!(
                "git loses a part of the name `{}`",
                shown_text(name.as_bytes())
            );
            let fix = "leave out quotes, parentheses, `@`, `<`, `>` and punctuation at the ends; at most 60 bytes";
            self.add("author-survives", &Part::Author, None, &what, fix);
        }
        if !(0..LAST_TIME).contains(&author.time) || author.offset.abs() >= 24 * 60 {
            let what = "the author's date is before 1970 or after 2099, or its zone is no zone";
            let fix = "change the commit's date";
            self.add("author-date", &Part::Author, None, what, fix);
        }
    }

    fn address(&mut self, email: &str) {
        if !is_address(email) {
            let what = format!("`{}` is no mail address", shown_text(email.as_bytes()));
            let fix = "write a plain `user@host`";
            self.add("address", &Part::Author, None, &what, fix);
        }
    }

    fn options(&mut self, options: &Options) {
        let people = options.sender.iter().chain(&options.to).chain(&options.cc);
        for Mailbox { name, email } in people {
            self.address(email);
            if name.contains(char::is_control) || *name != collapse(name) {
                let what =
                    "a recipient's or the sender's name has control characters or odd blanks";
                self.add("address", &Part::Options, None, what, "write it plainly");
            }
        }
        self.text(&Part::Options, options.signature.as_bytes());
        let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let prefix = &options.prefix;
        if prefix.is_empty() || prefix.contains(['[', ']']) || !prefix.bytes().all(is_plain) {
            let what = "the text in the subject's bracket is not plain ASCII, or has brackets";
            let fix = "use `PATCH`, `RFC PATCH` or `PATCH RESEND`";
            self.add("subject-prefix", &Part::Options, None, what, fix);
        }
    }
}

/// Why git would end the message at this line (`mailinfo.c`: `patchbreak`).
fn cut(line: &[u8]) -> Option<&'static str> {
    if line.starts_with(b"diff -") {
        return Some("`diff -` begins a patch: git cuts the message here and applies what follows");
    }
    if line.starts_with(b"Index: ") {
        return Some("`Index: ` begins a patch: git cuts the message here");
    }
    let rest = line.strip_prefix(b"---")?;
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let names_file = rest.first() == Some(&b' ') && rest.get(1).is_some_and(|byte| !is_blank(byte));
    (names_file || rest.iter().all(is_blank))
        .then_some("`---` ends the message: git drops what follows, tags too")
}

/// What `git mailinfo` takes for a header at the start of the text (`check_inbody_header`).
fn is_in_body_header(line: &[u8]) -> bool {
    let lower = line.to_ascii_lowercase();
    let starts = [&b"from:"[..], b"subject:", b"date:"];
    let tag = line.strip_prefix(b"[PATCH]").and_then(<[u8]>::first);
    starts.iter().any(|start| lower.starts_with(start))
        || tag.is_some_and(u8::is_ascii_whitespace)
        || line.strip_prefix(b">From ").is_some_and(is_separator)
}

/// The rest of the line that begins a mail of `git format-patch`.
fn is_separator(rest: &[u8]) -> bool {
    rest.split_at_checked(40).is_some_and(|(id, rest)| {
        id.iter().all(u8::is_ascii_hexdigit) && rest == b" Mon Sep 17 00:00:00 2001"
    })
}

/// The name that `git mailinfo` and then git's own tidying of names make of what we write; `None` where
/// the address takes its place.
fn recovered(name: &str, in_body: bool) -> Option<String> {
    let encoded = !name.is_ascii() || name.contains("=?");
    if name.contains(char::is_control) || in_body && name.contains("=?") {
        return None;
    }
    // A quoted name comes out as it went in; git neither quotes encoded names nor those in the body.
    let plain = if encoded || in_body {
        unquoted(name)
    } else {
        name.to_owned()
    };
    let mut plain = collapse(&plain);
    if let Some(inner) = plain.strip_prefix('(').and_then(|it| it.strip_suffix(')')) {
        plain = inner.to_owned();
    }
    if plain.len() > LONGEST_NAME || plain.contains(['@', '<', '>']) {
        return None;
    }
    let is_crud = |char: char| char <= ' ' || ",:;<>\"\\'".contains(char);
    Some(plain.trim_matches(is_crud).to_owned())
}

/// Without quotes and backslashes (`mailinfo.c`: `unquote_quoted_pair`).
fn unquoted(name: &str) -> String {
    let mut plain = String::new();
    let mut chars = name.chars();
    let mut quoted = false;
    let mut depth = 0;
    while let Some(char) = chars.next() {
        match char {
            '\\' if quoted || depth > 0 => plain.extend(chars.next()),
            '"' if depth == 0 => quoted = !quoted,
            _ => {
                if !quoted {
                    depth += i32::from(char == '(') - i32::from(char == ')' && depth > 0);
                }
                plain.push(char);
            }
        }
    }
    plain
}

/// White space runs become one blank, none at the ends (`mailinfo.c`: `cleanup_space`).
fn collapse(text: &str) -> String {
    let is_space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r');
    let words = text.split(is_space).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn is_address(email: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>()[]\",:;\\".contains(&byte);
    let parts = email.split_once('@');
    parts.is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && !email.ends_with(['.', '\''])
    }) && email.bytes().all(is_plain)
        && !email.starts_with(['.', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &[u8]) -> Vec<&'static str> {
        let mut found = Found::default();
        found.text(&Part::Message, text);
        found.list.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_byte_that_mail_cannot_carry_is_found() {
        assert_eq!(found("plain, tab\tand ünï\n".as_bytes()), [""; 0]);
        assert_eq!(found(b"a\0b\n"), ["nul"]);
        assert_eq!(found(b"a\r\n"), ["carriage-return"]);
        assert_eq!(found(b"a\x1b[31m\n"), ["control-character"]);
        assert_eq!(found(b"a\rb\n"), ["control-character"]);
        assert_eq!(found(b"x\nFrom here on\n"), ["mbox-from"]);
        assert_eq!(found(b"a \n"), ["trailing-blank"]);
        assert_eq!(found(&[b'x'; 998]), [""; 0]);
        assert_eq!(found(&[b'x'; 999]), ["line-length"]);
    }

    #[test]
    fn notes_that_look_like_a_patch_are_found() {
        for line in [
            "---",
            "--- a/f",
            "+++ b/f",
            "@@ -1 +1 @@",
            "diff --git a/f b/f",
        ] {
            let mut found = Found::default();
            found.notes(&format!("fine\n{line}\n"));
            assert_eq!(found.list.len(), 1, "{line}");
            assert_eq!(found.list[0].line, Some(2));
        }
    }

    #[test]
    fn only_plain_addresses_pass() {
        assert!(is_address("a.b+c@example.org"));
        for wrong in [
            "",
            "a",
            "a@",
            "@b",
            "a b@c",
            "a@b@c",
            "<a@b>",
            "ü@b",
            "a@b\nX: y",
        ] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}
