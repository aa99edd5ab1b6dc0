//! The patches of a version that is mails: a directory of patch files, or an mbox.
//!
//! Hides how mails are read, and when they are not all of one version.
//!
//! The rules are those of git's `mailsplit.c` and `mailinfo.c`. What `git am` would not take, or would take in part, is
//! refused: a damaged hunk, a binary file, a patch of the series that is missing.

mod hunks;
mod mail;
mod mbox;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::Patch;
use crate::error::Refusal;
use mail::{Letter, letter};
use mbox::split;

/// The patches of a version that was mailed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Letters {
    /// Them, in order.
    pub patches: Vec<Patch>,
    /// What the series is known by over its versions (b4's `change-id:`).
    pub change_id: Option<String>,
}

/// No patch file is longer than this.
const LONGEST: u64 = 256 << 20;

/// Reads a directory of `*.patch` files, or an mbox.
pub fn of_path(path: &Path) -> Result<Letters> {
    if !path.is_dir() {
        return of_mbox(&read(path)?, &path.display().to_string());
    }
    let mut letters = Vec::new();
    for file in patch_files(path)? {
        let what = file.display().to_string();
        letters.extend(read_mails(&read(&file)?, &what)?);
    }
    series(letters, &path.display().to_string())
}

/// Reads an mbox; `what` is what messages call it. Answers in it are passed over.
pub fn of_mbox(mbox: &[u8], what: &str) -> Result<Letters> {
    series(read_mails(mbox, what)?, what)
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

fn patch_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(|error| not_read(dir, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| not_read(dir, &error))?.path();
        if path.extension().is_some_and(|end| end == "patch") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(
            Refusal::usage(format!("`{}` holds no `*.patch` file", dir.display()))
                .hint("name the directory that `reroll regen` or `git format-patch` wrote")
                .into(),
        );
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let about = fs::metadata(path).map_err(|error| not_read(path, &error))?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(
            Refusal::usage(format!("`{}` is no file of patches", path.display()))
                .hint("name a directory of patches, or an mbox of up to 256 MiB")
                .into(),
        );
    }
    Ok(fs::read(path).map_err(|error| not_read(path, &error))?)
}

fn not_read(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::usage(format!("cannot read `{}`: {error}", path.display()))
        .hint("name a directory of patches, an mbox, or a range like `A..B`")
}

/// Puts the mails of a version in order, and makes sure that it is one version and all of it.
fn series(mut letters: Vec<Letter>, what: &str) -> Result<Letters> {
    // An answer may have a diff that is no patch of the series, but where there is nothing else it is what was asked for.
    if letters.iter().any(|letter| !letter.tag.is_answer) {
        letters.retain(|letter| !letter.tag.is_answer);
    }
    let change_id = letters.iter().find_map(|letter| letter.change_id.clone());
    if let Some(letter) = letters.iter().find(|letter| letter.is_lost()) {
        return Err(Refusal::usage(format!("{} holds no patch", letter.what))
            .hint("cover letters are `0/N`, answers `Re:`; move other mails away")
            .into());
    }
    letters.retain(|letter| letter.patch.is_some());
    let mut versions: Vec<u32> = letters
        .iter()
        .map(|letter| letter.tag.version.unwrap_or(1))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    if let [first, second, ..] = versions[..] {
        return Err(Refusal::usage(format!(
            "`{what}` holds more than one version: v{first} and v{second}"
        ))
        .hint("keep each version in a directory or an mbox of its own")
        .into());
    }
    if letters.is_empty() {
        return Err(Refusal::usage(format!("`{what}` holds no patch"))
            .hint("name a directory of patches, an mbox, or a range like `A..B`")
            .into());
    }
    let numbers: Option<Vec<_>> = letters.iter().map(|letter| letter.tag.number).collect();
    if let Some(numbers) = numbers {
        complete(&numbers, what)?;
        letters.sort_by_key(|letter| letter.tag.number);
    }
    let patches = letters
        .into_iter()
        .filter_map(|letter| letter.patch)
        .collect();
    Ok(Letters { patches, change_id })
}

/// Refuses a version of which a patch is missing, or there twice.
fn complete(numbers: &[(usize, usize)], what: &str) -> Result<()> {
    let total = numbers
        .iter()
        .map(|&(_, total)| total)
        .max()
        .unwrap_or_default();
    for number in 1..=total {
        let count = numbers.iter().filter(|&&(it, _)| it == number).count();
        if count != 1 {
            let verb = if count == 0 {
                "is missing from"
            } else {
                "is more than once in"
            };
            return Err(
                Refusal::usage(format!("patch {number}/{total} {verb} `{what}`"))
                    .hint("compare whole versions; `git format-patch` and `b4 am` write them")
                    .into(),
            );
        }
    }
    Ok(())
}

fn read_mails(bytes: &[u8], what: &str) -> Result<Vec<Letter>> {
    let mails = split(bytes);
    let single = mails.len() == 1;
    let mut letters = Vec::new();
    for (at, mail) in mails.into_iter().enumerate() {
        let what = if single {
            format!("`{what}`")
        } else {
            format!("mail {} of `{what}`", at + 1)
        };
        letters.push(letter(mail, what)?);
    }
    Ok(letters)
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
