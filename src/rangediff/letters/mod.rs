//! The patches of a version that is mails: a directory of patch files, or an mbox.
//!
//! Hides the form of the diffs in them. What `git am` would not take, or would take in part, is refused: a damaged hunk, a binary file.

mod hunks;
mod mail;

use std::path::Path;

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::Patch;
use crate::error::Refusal;
use crate::mail::inbox::{self, Inbound};
use mail::letter;

/// The patches of a version that was mailed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Letters {
    /// Them, in order.
    pub patches: Vec<Patch>,
    /// What the series is known by over its versions (b4's `change-id:`).
    pub change_id: Option<String>,
}

/// Reads a directory of patch files, or an mbox.
pub fn of_path(path: &Path) -> Result<Letters> {
    series(inbox::of_path(path)?, &path.display().to_string())
}

/// Reads an mbox; `what` is what messages call it. Answers in it are passed over.
pub fn of_mbox(mbox: &[u8], what: &str) -> Result<Letters> {
    series(inbox::of_mbox(mbox, what)?, what)
}

/// Lets the patches of two versions of one series know each other again: where both name the same `change-id`, a subject
/// that is in each version once is an identity; and where both have as many patches, and all that are known by then are
/// at the same places, the place is one for the rest.
pub fn same_series(old: &mut Letters, new: &mut Letters) {
    let Some(series) = old.change_id.clone() else {
        return;
    };
    if new.change_id.as_ref() != Some(&series) {
        return;
    }
    let once = |patches: &[Patch], subject: &BString| {
        let same = patches.iter().filter(|patch| patch.subject == *subject);
        same.count() == 1
    };
    let known =
        |patch: &Patch| once(&old.patches, &patch.subject) && once(&new.patches, &patch.subject);
    let old_known: Vec<bool> = old.patches.iter().map(known).collect();
    let new_known: Vec<bool> = new.patches.iter().map(known).collect();
    let places = old.patches.iter().zip(&new.patches).zip(&old_known);
    let by_place = old_known == new_known
        && places
            .into_iter()
            .all(|((old, new), &known)| !known || old.subject == new.subject);
    for (patches, known) in [(&mut old.patches, old_known), (&mut new.patches, new_known)] {
        for (place, (patch, known)) in patches.iter_mut().zip(known).enumerate() {
            if patch.identity.is_some() {
                continue;
            }
            let subject = patch.subject.to_str().ok().filter(|_| known);
            patch.identity = match subject {
                Some(subject) => Some(format!("{series} {subject}")),
                None => by_place.then(|| format!("{series} #{}", place + 1)),
            };
        }
    }
}

/// The patches of the mails of a version.
fn series(mails: Vec<Inbound>, what: &str) -> Result<Letters> {
    let letters: Vec<_> = mails.into_iter().map(letter).collect::<Result<_>>()?;
    if let Some(letter) = letters.iter().find(|letter| letter.is_lost()) {
        return Err(Refusal::usage(format!("{} holds no patch", letter.what))
            .hint("cover letters are `0/N`, answers `Re:`; move other mails away")
            .into());
    }
    let change_id = letters.iter().find_map(|letter| letter.change_id.clone());
    let patches: Vec<_> = letters.into_iter().filter_map(|it| it.patch).collect();
    if patches.is_empty() {
        return Err(Refusal::usage(format!("`{what}` holds no patch"))
            .hint("name a directory of patches, an mbox, or a range like `A..B`")
            .into());
    }
    Ok(Letters { patches, change_id })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAIL: &str = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n\
        From: =?UTF-8?q?A=20=C3=9C?= <a@example.org>\nSubject: [PATCH v2 1/1] mm: x\n\nText.\n---\n f | 1 +\n\n\
        diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nindex 1..2 100644\n--- \"a/\\303\\274\"\n+++ \"b/\\303\\274\"\n@@ -1,2 +1,3 @@ f\n a\n+-- \n b\n-- \n2.47.3\n\n";

    #[test]
    fn a_mail_is_read() {
        let letters = of_mbox(MAIL.as_bytes(), "mbox").expect("a mail");
        let patch = &letters.patches[0];
        assert_eq!(patch.author, "A Ü <a@example.org>");
        assert_eq!(patch.subject, "mm: x");
        assert!(patch.diff.ends_with(b"@@ f\n a\n+-- \n b\n"));
    }

    proptest! {
        #[test]
        fn no_damage_to_a_mail_makes_the_reader_panic(
            cut in 0..MAIL.len(), length in 0_usize..40, with in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut mail = MAIL.as_bytes().to_vec();
            mail.splice(cut..(cut + length).min(mail.len()), with);
            if let Ok(letters) = of_mbox(&mail, "mbox") {
                let pairs = super::super::compare(&letters.patches, &letters.patches, &super::super::Options::default());
                prop_assert!(pairs.expect("pairs").iter().all(|pair| pair.kind == super::super::Kind::Equal));
            }
        }
    }
}
