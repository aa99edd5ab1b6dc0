//! What changed between two results of a series: the range-diff, and what of it is the base's doing.
//!
//! Hides how an earlier result is read back: from its commits, which its record names.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};

use super::record::{LandingRecord, MOST_LINES, PairRecord, PatchRecord, Record};
use crate::diff::{self, Labels};
use crate::rangediff::{self, Kind, Pair, Patch};
use crate::repo::{ObjectId, Repo};
use crate::series::upstream::changed_lines;

/// One patch of a result; its identity is its name in the recipe.
pub(super) type Version = Patch;

/// The patches of an earlier result.
pub(super) fn recorded(repo: &Repo, record: &Record) -> Result<Vec<Version>> {
    read(repo, &record.patches)
}

/// The patches that these records name, in order.
pub(super) fn read(repo: &Repo, patches: &[PatchRecord]) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    let mut labels: Option<Labels> = None;
    for patch in patches {
        let Some(commit) = &patch.commit else {
            continue;
        };
        let id: ObjectId = commit.parse().context("a record names a commit")?;
        let commit = repo.commit(id)?;
        let parent = commit
            .parent_ids
            .first()
            .context("a patch stands on something")?;
        let before = repo.commit(*parent)?.tree_id;
        let labels = labels.get_or_insert_with(|| Labels::of(before));
        let files = diff::between(repo, before, commit.tree_id, labels)?;
        versions.push(Patch {
            identity: Some(patch.name.clone()),
            id: id.to_string(),
            short_id: id.to_string()[..DIGITS].to_owned(),
            subject: commit.subject(),
            author: [&commit.author.name[..], b" <", &commit.author.email, b">"]
                .concat()
                .into(),
            message: commit.message,
            notes: BString::default(),
            diff: files.into_iter().flat_map(|file| file.text).collect(),
        });
    }
    Ok(versions)
}

/// Digits of an id that no repository abbreviates.
const DIGITS: usize = 12;

/// The range-diff of two results. What is equal is left out.
pub(super) fn pairs(old: &[Version], new: &[Version]) -> Result<Vec<PairRecord>> {
    let pairs = rangediff::compare(old, new, &rangediff::Options::default())?;
    let changed = pairs.into_iter().filter(|pair| pair.kind != Kind::Equal);
    Ok(changed.map(|pair| record(&pair, old, new)).collect())
}

fn record(pair: &Pair, old: &[Version], new: &[Version]) -> PairRecord {
    let patch = match (pair.new, pair.old) {
        (Some(place), _) => &new[place],
        (None, place) => &old[place.unwrap_or_default()],
    };
    let kind = match pair.kind {
        Kind::Equal => "equal",
        Kind::Changed => "changed",
        Kind::New => "new",
        Kind::Dropped => "dropped",
        Kind::Split => "split",
    };
    let lines = pair.diff.lines().take(MOST_LINES);
    PairRecord {
        patch: patch.identity.clone().unwrap_or_default(),
        kind: kind.to_owned(),
        lines: lines.map(|line| line.to_str_lossy().into_owned()).collect(),
    }
}

/// What is different about a patch on another base, where the recipe is the same: a sentence, and lines that show it. `None`: it changes the
/// same lines in the same places, line numbers aside.
pub(super) fn drift(
    old: (&PatchRecord, &Version),
    new: (&[LandingRecord], &Version),
) -> Option<(String, Vec<String>)> {
    let mut reasons = Vec::new();
    let mut details = Vec::new();
    for landing in new.0 {
        match old
            .0
            .landings
            .iter()
            .find(|other| other.edit == landing.edit)
        {
            None => reasons.push(format!("edit `{}` was not made before", landing.edit)),
            Some(before) => moved(before, landing, &mut reasons, &mut details),
        }
    }
    for before in &old.0.landings {
        if new.0.iter().all(|landing| landing.edit != before.edit) {
            reasons.push(format!("edit `{}` is not made any more", before.edit));
        }
    }
    let lines = [old.1, new.1].map(|version| changed_lines(&version.diff));
    if lines[0] != lines[1] {
        reasons.push("it changes other lines".to_owned());
        details.extend(only(&lines[0], &lines[1]).map(|line| format!("- {line}")));
        details.extend(only(&lines[1], &lines[0]).map(|line| format!("+ {line}")));
    }
    details.truncate(MOST_LINES);
    (!reasons.is_empty()).then(|| (reasons.join("; "), details))
}

/// What is different about one edit.
fn moved(
    old: &LandingRecord,
    new: &LandingRecord,
    reasons: &mut Vec<String>,
    details: &mut Vec<String>,
) {
    let place = |it: &LandingRecord| match &it.function {
        Some(function) => format!("`{}` in `{function}()`", it.file),
        None => format!("`{}`", it.file),
    };
    if place(old) != place(new) {
        reasons.push(format!(
            "edit `{}` landed in {}, before in {}",
            new.edit,
            place(new),
            place(old)
        ));
    }
    if old.matched != new.matched {
        reasons.push(format!(
            "the code that edit `{}` works on changed",
            new.edit
        ));
        details.push(format!("- {}", old.matched));
        details.push(format!("+ {}", new.matched));
    }
}

/// The lines of one side that the other has not, or has less often.
fn only<'a>(
    one: &'a BTreeMap<&[u8], usize>,
    other: &'a BTreeMap<&[u8], usize>,
) -> impl Iterator<Item = String> + 'a {
    let more = one
        .iter()
        .filter(|(line, times)| other.get(*line).is_none_or(|others| others < times));
    more.map(|(line, _)| line.to_str_lossy().into_owned())
}
