//! Pairs the patches of two versions of a series and shows what changed between them, as `git range-diff` does.
//!
//! Hides git's cost rule, the text that patches are compared as, and where patches come from (commits or mails).
//!
//! The rules are those of git's `range-diff.c` and `linear-assignment.c`. What both sides know by the same identity (a
//! recipe's name for a patch, a `Change-Id`) is paired before that, so that a pair is never lost to a rewrite.

mod assign;
mod commits;
mod letters;
mod pairing;
mod show;
mod split;
mod text;

use anyhow::Result;
use bstr::{BString, ByteSlice};
use serde::Serialize;

pub use commits::{Authors, Range, of_range, of_series};
pub use letters::{Letters, of_mbox, of_path, same_series};
pub use show::{Detail, as_text, for_terminal};
use text::Normal;

/// One patch of a version, as plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// What it is known by in every version; `None`: only its content tells.
    pub identity: Option<String>,
    /// Its commit's whole id; empty where nobody knows.
    pub id: String,
    /// The id as it is shown: git's abbreviation in a repository, else twelve digits.
    pub short_id: String,
    /// The message's first paragraph on one line.
    pub subject: BString,
    /// `Name <address>`.
    pub author: BString,
    /// The whole message, the subject first.
    pub message: BString,
    /// Git's notes on the commit; empty where there are none.
    pub notes: BString,
    /// Its patch text with `a/` and `b/`, from the first `diff --git` on.
    pub diff: Vec<u8>,
}

impl Patch {
    /// The contents of the binary files that it leaves, of which its text says nothing: the names and ids that git writes of each.
    #[must_use]
    pub fn binaries(&self) -> Vec<&[u8]> {
        let mut index: &[u8] = b"";
        let mut found = Vec::new();
        for line in self.diff.lines() {
            if let Some(ids) = line.strip_prefix(b"index ") {
                // Behind the old content's id is the new one's, and the mode.
                index = ids.split_once_str("..").map_or(ids, |(_, new)| new);
            } else if line.starts_with(b"Binary files ") {
                found.extend([index, line]);
            }
        }
        found
    }
}

/// How patches are paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How much a new patch costs, in percent of its lines: git's `--creation-factor`. The larger, the more different a
    /// pair may be.
    pub creation_factor: u32,
}

/// What became of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// In both versions, and the same.
    Equal,
    /// In both versions, and not the same.
    Changed,
    /// In the new version only.
    New,
    /// In the old version only.
    Dropped,
    /// Every change that the old patch makes is in the new version, but in two or more of its patches.
    Split,
}

/// Why two patches are a pair; earlier reasons win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Both are known by the same identity.
    Identity,
    /// Their diffs are the same text.
    Text,
    /// Git's cost rule: changing one into the other is less than to drop it and write it anew.
    Content,
}

/// A pair, or a patch that has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What became of it.
    pub kind: Kind,
    /// The old patch: its place in the old version, from 0.
    pub old: Option<usize>,
    /// The new patch: its place in the new version, from 0.
    pub new: Option<usize>,
    /// Why they are a pair; `None` where there is one patch.
    pub by: Option<By>,
    /// For [`Kind::Split`]: the new patches that hold the old one's changes.
    pub into: Vec<usize>,
    /// The difference of the two patches' texts, from the first `@@` on, not indented; empty where there is none.
    pub diff: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            creation_factor: 60,
        }
    }
}

/// Pairs the patches of two versions, in the order in which `git range-diff` lists them: the new version's, with those
/// that were dropped where all before them in the old version have been listed.
///
/// To compare without the noise of a changed base, hand in the old version regenerated on the new base.
pub fn compare(old: &[Patch], new: &[Patch], options: &Options) -> Result<Vec<Pair>> {
    let old_texts: Vec<Normal> = old.iter().map(Normal::of).collect();
    let new_texts: Vec<Normal> = new.iter().map(Normal::of).collect();
    let mut matches = pairing::Matches::new(old.len(), new.len());
    matches.by_identity(old, new);
    matches.by_text(&old_texts, &new_texts);
    matches.by_content(&old_texts, &new_texts, options.creation_factor)?;
    let mut pairs = Vec::new();
    for (old, new) in matches.in_order() {
        let by = new.and_then(|new| matches.reason(new));
        pairs.push(match (old, new) {
            (Some(before), Some(after)) => {
                let diff = text::difference(&old_texts[before], &new_texts[after])?;
                let same = old_texts[before].text == new_texts[after].text;
                let kind = if same { Kind::Equal } else { Kind::Changed };
                Pair::new(kind, old, new, by, diff)
            }
            (None, _) => Pair::new(Kind::New, None, new, None, Vec::new()),
            (_, None) => Pair::new(Kind::Dropped, old, None, None, Vec::new()),
        });
    }
    split::remark(&mut pairs, &old_texts, &new_texts);
    Ok(pairs)
}

/// What a choice of pairs costs by git's rule: about the lines that differ. [`compare`] finds the cheapest choice among those
/// that keep what is paired by identity and by equal text; this tells how much worse another one is.
pub fn cost(
    old: &[Patch],
    new: &[Patch],
    pairs: &[(Option<usize>, Option<usize>)],
    options: &Options,
) -> Result<i64> {
    let old_texts: Vec<Normal> = old.iter().map(Normal::of).collect();
    let new_texts: Vec<Normal> = new.iter().map(Normal::of).collect();
    let mut matches = pairing::Matches::new(old.len(), new.len());
    matches.by_identity(old, new);
    matches.by_text(&old_texts, &new_texts);
    matches.price(&old_texts, &new_texts, pairs, options.creation_factor)
}

impl Pair {
    fn new(
        kind: Kind,
        old: Option<usize>,
        new: Option<usize>,
        by: Option<By>,
        diff: Vec<u8>,
    ) -> Self {
        Self {
            kind,
            old,
            new,
            by,
            into: Vec::new(),
            diff,
        }
    }
}
