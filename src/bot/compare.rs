//! What changed between two results of a series: the range-diff, and what of it is the base's doing.
//!
//! Hides how an earlier result is read back: from its commits, which its record names.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};

use super::record::{LandingRecord, MOST_LINES, PairRecord, PatchRecord, Record};
use super::upstream::changed_lines;
use crate::diff::{self, Labels};
use crate::repo::{ObjectId, Repo};

/// One patch of a result.
pub(super) struct Version {
    name: String,
    message: BString,
    diff: Vec<u8>,
}

impl Version {
    /// Whether it is this patch of the recipe.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }
}

/// Lines around a change in a range-diff.
const CONTEXT: usize = 3;

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
        let parent = commit.parent_ids.first().context("a patch stands on something")?;
        let before = repo.commit(*parent)?.tree_id;
        let labels = labels.get_or_insert_with(|| Labels::of(before));
        let files = diff::between(repo, before, commit.tree_id, labels)?;
        versions.push(Version {
            name: patch.name.clone(),
            message: commit.message,
            diff: files.into_iter().flat_map(|file| file.text).collect(),
        });
    }
    Ok(versions)
}

/// The range-diff: patches are paired by their names in the recipe. What is equal is left out.
pub(super) fn pairs(old: &[Version], new: &[Version]) -> Vec<PairRecord> {
    let mut pairs = Vec::new();
    for version in new {
        let before = old.iter().find(|before| before.name == version.name);
        let (kind, lines) = match before {
            None => ("new", Vec::new()),
            Some(before) => ("changed", difference(before, version)),
        };
        if kind == "new" || !lines.is_empty() {
            pairs.push(pair(&version.name, kind, lines));
        }
    }
    let dropped = old.iter().filter(|before| new.iter().all(|it| it.name != before.name));
    pairs.extend(dropped.map(|before| pair(&before.name, "dropped", Vec::new())));
    pairs
}

fn pair(patch: &str, kind: &str, lines: Vec<String>) -> PairRecord {
    PairRecord {
        patch: patch.to_owned(),
        kind: kind.to_owned(),
        lines,
    }
}

/// The difference of two patches, line numbers and ids aside, as `git range-diff` shows it.
fn difference(old: &Version, new: &Version) -> Vec<String> {
    let [old, new] = [old, new].map(normal);
    let diff = similar::TextDiff::from_lines(old.as_bytes(), new.as_bytes());
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push("@@".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().to_str_lossy();
            lines.push(format!("{}{}", change.tag(), text.trim_end_matches('\n')));
        }
    }
    lines.truncate(MOST_LINES);
    lines
}

/// The text that two patches are compared as.
fn normal(version: &Version) -> BString {
    let mut text = version.message.trim_end().to_vec();
    text.push(b'\n');
    let mut in_hunk = false;
    for line in version.diff.lines() {
        if line.starts_with(b"diff --git ") {
            in_hunk = false;
        }
        if let Some((_, label)) = line.strip_prefix(b"@@ ").and_then(|rest| rest.split_once_str(" @@")) {
            in_hunk = true;
            text.extend_from_slice(b"@@");
            text.extend_from_slice(label);
        } else if in_hunk || !line.starts_with(b"index ") {
            text.extend_from_slice(line);
        }
        text.push(b'\n');
    }
    text.into()
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
        match old.0.landings.iter().find(|other| other.edit == landing.edit) {
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
        reasons.push(format!("edit `{}` landed in {}, before in {}", new.edit, place(new), place(old)));
    }
    if old.matched != new.matched {
        reasons.push(format!("the code that edit `{}` works on changed", new.edit));
        details.push(format!("- {}", old.matched));
        details.push(format!("+ {}", new.matched));
    }
}

/// The lines of one side that the other has not, or has less often.
fn only<'a>(
    one: &'a BTreeMap<&[u8], usize>,
    other: &'a BTreeMap<&[u8], usize>,
) -> impl Iterator<Item = String> + 'a {
    let more = one.iter().filter(|(line, times)| other.get(*line).is_none_or(|others| others < times));
    more.map(|(line, _)| line.to_str_lossy().into_owned())
}
