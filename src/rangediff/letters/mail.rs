//! The patch of one mail.
//!
//! Hides what the foot of a letter says.

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::hunks::diff;
use crate::mail::inbox::Inbound;
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
    pub(super) is_cover: bool,
    /// Its patch; `None` for a cover letter.
    pub(super) patch: Option<Patch>,
    pub(super) change_id: Option<String>,
}

impl Letter {
    /// Neither a patch nor a cover letter.
    pub(super) fn is_lost(&self) -> bool {
        self.patch.is_none() && !self.is_cover
    }
}

/// The patch of a mail.
pub(super) fn letter(mail: Inbound) -> Result<Letter> {
    let is_cover = mail.is_cover();
    let Inbound { what, read, .. } = mail;
    let id = read.commit_id;
    let (diff, foot) = diff(&read.rest, &what)?;
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
        is_cover,
        patch: has_patch.then_some(patch),
        change_id: known,
    })
}

/// b4's line that names a series.
fn series_id(text: &[u8]) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(b"change-id: "))?;
    Some(value.trim().to_str().ok()?.to_owned())
}
