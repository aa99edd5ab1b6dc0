//! One mail, read: which patch it is, and the patch.
//!
//! Hides MIME, header encodings, and headers in the text.

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};
use mailparse::{MailHeaderMap, ParsedMail};

use super::hunks::diff;
use super::mbox::{from_line, unix_lines};
use crate::error::Refusal;
use crate::rangediff::Patch;
use crate::rangediff::commits::{change_id, person};
use crate::rangediff::text::{is_space, subject, trim_end};

/// Digits of an id that is shown.
const DIGITS: usize = 12;

/// One mail, read.
#[derive(Debug)]
pub(super) struct Letter {
    /// What messages call it.
    pub(super) what: String,
    pub(super) tag: Tag,
    /// Its patch; `None` for a cover letter or an answer.
    pub(super) patch: Option<Patch>,
    pub(super) change_id: Option<String>,
}

/// What the brackets in front of a subject say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) version: Option<u32>,
    /// Which patch of how many.
    pub(super) number: Option<(usize, usize)>,
    pub(super) is_answer: bool,
}

impl Letter {
    /// Neither a patch nor a cover letter.
    pub(super) fn is_lost(&self) -> bool {
        self.patch.is_none() && self.tag.number.is_none_or(|(number, _)| number > 0)
    }
}

/// Reads a mail; `what` is what messages call it.
pub(super) fn letter(mail: &[u8], what: String) -> Result<Letter> {
    let unread = || {
        Refusal::usage(format!("{what} is no mail"))
            .hint("a patch file has `From:` and `Subject:` lines in front; `git format-patch` writes them")
    };
    let mail = unix_lines(mail);
    let (id, mail) = from_line(&mail);
    let parsed = mailparse::parse_mail(mail).with_context(unread)?;
    let header = |name: &str| parsed.headers.get_first_value(name);
    let (Some(raw_subject), Some(from)) = (header("Subject"), header("From")) else {
        return Err(unread().into());
    };
    let (tag, mut title) = tagged(&raw_subject);
    let mut author = author(&from).unwrap_or_else(|| from.clone().into());
    let body = Body::of(&parsed)?;
    let (inner, message) = in_body(&body.message);
    if let Some(from) = inner.from {
        author = self::author(&from).unwrap_or_else(|| from.into());
    }
    if let Some(subject) = inner.subject {
        title = tagged(&subject).1;
    }
    let (diff, foot) = diff(&body.rest, &what)?;
    let is_cover = tag.number.is_some_and(|(number, _)| number == 0);
    let has_patch = !diff.is_empty() && !is_cover && !tag.is_answer;
    let mut text = title.into_bytes();
    text.extend_from_slice(b"\n\n");
    text.extend_from_slice(message);
    let patch = Patch {
        identity: change_id(&text),
        short_id: id
            .as_ref()
            .map_or("-".repeat(DIGITS), |id| id[..DIGITS].to_owned()),
        id: id.unwrap_or_default(),
        subject: subject(&text),
        author,
        message: text.into(),
        notes: BString::default(),
        diff,
    };
    let known = series_id(&foot).or_else(|| is_cover.then(|| series_id(&body.message)).flatten());
    Ok(Letter {
        what,
        tag,
        patch: has_patch.then_some(patch),
        change_id: known,
    })
}

/// `Name <address>` as git writes it.
fn author(from: &str) -> Option<BString> {
    let list = mailparse::addrparse(from).ok()?;
    let single = list.extract_single_info()?;
    let name = single.display_name.unwrap_or_else(|| single.addr.clone());
    Some(person(name.as_bytes(), single.addr.as_bytes()))
}

/// Divides the brackets of a subject from its text (git's `cleanup_subject`).
fn tagged(subject: &str) -> (Tag, String) {
    let mut tag = Tag::default();
    let mut rest = subject.trim();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ':']);
        if rest
            .get(..3)
            .is_some_and(|start| start.eq_ignore_ascii_case("re:"))
            && rest.len() > 3
        {
            tag.is_answer = true;
            rest = &rest[3..];
        } else if let Some((words, after)) =
            rest.strip_prefix('[').and_then(|it| it.split_once(']'))
        {
            tag.learn(words);
            rest = after;
        } else {
            return (tag, single_blanks(rest));
        }
    }
}

/// Git's `cleanup_space`.
fn single_blanks(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl Tag {
    fn learn(&mut self, words: &str) {
        for word in words.split([' ', ',', '\t']) {
            let numbers = word.split_once('/');
            if let Some((number, total)) = numbers
                && let (Ok(number), Ok(total)) = (number.parse(), total.parse())
            {
                self.number = Some((number, total));
            } else if let Some(version) = word.strip_prefix(['v', 'V'])
                && let Ok(version) = version.parse()
            {
                self.version = Some(version);
            }
        }
    }
}

/// The two halves of a mail's text.
struct Body {
    /// In UTF-8.
    message: Vec<u8>,
    /// From the `---`, or from the first line of a diff, as the bytes are.
    rest: Vec<u8>,
}

impl Body {
    fn of(mail: &ParsedMail<'_>) -> Result<Self> {
        let (mut raw, mut decoded) = (Vec::new(), Vec::new());
        for part in mail.parts() {
            if !part.ctype.mimetype.starts_with("text/") || part.ctype.mimetype == "text/html" {
                continue;
            }
            let bytes = part
                .get_body_raw()
                .context("a mail's encoding is damaged")?;
            let charset = part.ctype.charset.to_ascii_lowercase();
            if matches!(charset.as_str(), "utf-8" | "us-ascii") {
                decoded.extend_from_slice(&bytes);
            } else {
                decoded.extend(
                    part.get_body()
                        .context("a mail's encoding is damaged")?
                        .into_bytes(),
                );
            }
            raw.extend(bytes);
        }
        let end = message_end(&decoded);
        decoded.truncate(end);
        raw.drain(..message_end(&raw));
        Ok(Self {
            message: decoded,
            rest: raw,
        })
    }
}

/// Where a mail's message ends (git's `patchbreak`).
fn message_end(body: &[u8]) -> usize {
    let mut at = 0;
    for line in body.lines_with_terminator() {
        let dashes = line.strip_prefix(b"---").is_some_and(|rest| {
            trim_end(rest).is_empty()
                || (rest[0] == b' ' && rest.get(1).is_some_and(|&it| !is_space(it)))
        });
        if dashes || line.starts_with(b"diff -") || line.starts_with(b"Index: ") {
            return at;
        }
        at += line.len();
    }
    body.len()
}

/// Headers that open the text, because the author did not send the mail.
#[derive(Debug, Default)]
struct InBody {
    from: Option<String>,
    subject: Option<String>,
}

fn in_body(message: &[u8]) -> (InBody, &[u8]) {
    let mut inner = InBody::default();
    let mut rest = message.trim_start_with(|char| char == '\n');
    loop {
        let (line, after) = rest.split_once_str("\n").unwrap_or((rest, b""));
        let text = line.to_str_lossy();
        let (key, value) = text.split_once(": ").unwrap_or_default();
        match key.to_ascii_lowercase().as_str() {
            "from" => inner.from = Some(value.to_owned()),
            "subject" => inner.subject = Some(value.to_owned()),
            "date" => {}
            _ => return (inner, rest.trim_start_with(|char| char == '\n')),
        }
        rest = after;
        while let (Some(b' ' | b'\t'), Some(subject)) = (rest.first(), &mut inner.subject) {
            let (line, after) = rest.split_once_str("\n").unwrap_or((rest, b""));
            subject.push_str(&line.to_str_lossy());
            rest = after;
        }
    }
}

/// b4's line that names a series.
fn series_id(text: &[u8]) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(b"change-id: "))?;
    Some(value.trim().to_str().ok()?.to_owned())
}
