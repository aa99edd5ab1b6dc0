//! One mail, read: which patch it is, and the patch.
//!
//! Hides what the brackets of a subject and the foot of a letter say.

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::hunks::diff;
use super::mbox::commit_id;
use crate::mail::Received;
use crate::rangediff::Patch;
use crate::rangediff::commits::{change_id, person};
use crate::rangediff::text::subject;

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
    let read = Received::read(mail, &what)?;
    let tag = Tag::of(&read.header);
    let id = commit_id(mail);
    let (diff, foot) = diff(&read.rest, &what)?;
    let is_cover = tag.number.is_some_and(|(number, _)| number == 0);
    let has_patch = !diff.is_empty() && !is_cover;
    let mut text = read.subject.to_vec();
    text.extend_from_slice(b"\n\n");
    text.extend_from_slice(&read.message);
    let patch = Patch {
        identity: change_id(&text),
        short_id: id
            .as_ref()
            .map_or("-".repeat(DIGITS), |id| id[..DIGITS].to_owned()),
        id: id.unwrap_or_default(),
        subject: subject(&text),
        author: person(&read.name, &read.email),
        message: text.into(),
        notes: BString::default(),
        diff,
    };
    let known = series_id(&foot).or_else(|| is_cover.then(|| series_id(&read.message)).flatten());
    Ok(Letter {
        what,
        tag,
        patch: has_patch.then_some(patch),
        change_id: known,
    })
}

impl Tag {
    /// What stands in front of a subject's text (git's `cleanup_subject`).
    pub(super) fn of(subject: &str) -> Self {
        let mut tag = Self::default();
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
                return tag;
            }
        }
    }

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

/// b4's line that names a series.
fn series_id(text: &[u8]) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(b"change-id: "))?;
    Some(value.trim().to_str().ok()?.to_owned())
}
