//! The mails of one version of a series, as they lie on a disk: a directory of patch files, or an mbox.
//!
//! Hides how mails are found and divided, and when they are not all of one version. What `git am` would not take, or would take in part, is
//! refused.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::mbox::split;
use super::received::{Received, Tag};
use crate::error::Refusal;

/// A mail of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// What messages call it.
    pub what: String,
    /// The file that it was in.
    pub file: Option<PathBuf>,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What it says.
    pub read: Received,
    /// What the brackets of its subject say.
    pub tag: Tag,
}

/// No patch file is longer than this.
const LONGEST: u64 = 256 << 20;

impl Inbound {
    /// Whether it is the letter in front of a series.
    #[must_use]
    pub fn is_cover(&self) -> bool {
        self.tag.number.is_some_and(|(number, _)| number == 0)
    }
}

/// The mails of the version in a directory of `*.patch` (or `*.eml`) files, or in an mbox: in their order, the cover letter first.
pub fn of_path(path: &Path) -> Result<Vec<Inbound>> {
    let mut mails = Vec::new();
    if path.is_dir() {
        for file in patch_files(path)? {
            let what = file.display().to_string();
            let found = mails_in(&read(&file)?, &what, Some(&file))?;
            mails.extend(found);
        }
    } else {
        mails = mails_in(&read(path)?, &path.display().to_string(), None)?;
    }
    version(mails, &path.display().to_string())
}

/// The mails of the version in an mbox; `what` is what messages call it.
pub fn of_mbox(mbox: &[u8], what: &str) -> Result<Vec<Inbound>> {
    version(mails_in(mbox, what, None)?, what)
}

fn mails_in(bytes: &[u8], what: &str, file: Option<&Path>) -> Result<Vec<Inbound>> {
    let mails = split(bytes);
    let single = mails.len() == 1;
    let mut found = Vec::new();
    for (at, mail) in mails.into_iter().enumerate() {
        let what = if single {
            format!("`{what}`")
        } else {
            format!("mail {} of `{what}`", at + 1)
        };
        let read = Received::read(mail, &what)?;
        found.push(Inbound {
            tag: Tag::of(&read.header),
            what,
            file: file.map(Path::to_owned),
            bytes: mail.to_owned(),
            read,
        });
    }
    Ok(found)
}

/// Puts the mails of a version in order, and makes sure that it is one version and all of it. Answers are passed over.
fn version(mut mails: Vec<Inbound>, what: &str) -> Result<Vec<Inbound>> {
    // An answer may have a diff that is no patch of the series, but where there is nothing else it is what was asked for.
    if mails.iter().any(|mail| !mail.tag.is_answer) {
        mails.retain(|mail| !mail.tag.is_answer);
    }
    let patches = || mails.iter().filter(|mail| !mail.is_cover());
    let mut versions: Vec<u32> = patches().map(|it| it.tag.version.unwrap_or(1)).collect();
    versions.sort_unstable();
    versions.dedup();
    if let [first, second, ..] = versions[..] {
        return Err(Refusal::usage(format!(
            "`{what}` holds more than one version: v{first} and v{second}"
        ))
        .hint("keep each version in a directory or an mbox of its own")
        .into());
    }
    let numbers: Option<Vec<_>> = patches().map(|mail| mail.tag.number).collect();
    if let Some(numbers) = numbers {
        complete(&numbers, what)?;
        mails.sort_by_key(|mail| mail.tag.number);
    }
    Ok(mails)
}

/// Refuses a version of which a patch is missing, or there twice.
fn complete(numbers: &[(usize, usize)], what: &str) -> Result<()> {
    let totals = numbers.iter().map(|&(_, total)| total);
    let total = totals.max().unwrap_or_default();
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
                    .hint("name a directory or an mbox with one whole version; `git format-patch` and `b4 am` write them")
                    .into(),
            );
        }
    }
    Ok(())
}

fn patch_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(|error| not_read(dir, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| not_read(dir, &error))?.path();
        if path
            .extension()
            .is_some_and(|end| end == "patch" || end == "eml")
        {
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
