//! Looks in a base's history for patches that got in, and for the commits that changed a function.
//!
//! Hides git's log and patch-ids. Every look is bounded; where two bases have no history in common there is nothing to be found.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use bstr::{BString, ByteSlice};

use super::record::Suspect;
use crate::diff::{self, Labels};
use crate::exec::Task;
use crate::recipe::{Action, Recipe, Spot, Target};
use crate::repo::{ObjectId, Repo};
use crate::series::Series;

/// What the history has of a patch.
#[derive(Debug, Clone)]
pub(super) struct Match {
    /// The commit.
    pub(super) commit: Suspect,
    /// Whether its patch-id is the same; if not, its subject is, and most of its lines.
    pub(super) exact: bool,
}

/// Commits that are looked at.
const MOST_COMMITS: usize = 2000;
/// Commits that are named for one function.
const MOST_SUSPECTS: usize = 3;
/// Functions that are asked about.
const MOST_FUNCTIONS: usize = 4;
/// How long git may search.
const SEARCH: Duration = Duration::from_mins(2);
/// Digits of an id in a sentence.
const DIGITS: usize = 12;

/// A stretch of history: what `base` has, and an older base has not.
pub(super) struct History<'a> {
    repo: &'a Repo,
    range: String,
}

/// A commit of the history as `git log -p` shows it.
struct Upstream {
    suspect: Suspect,
    message: BString,
    diff: Vec<u8>,
}

impl<'a> History<'a> {
    /// The history between two bases; `None` where they have nothing in common.
    pub(super) fn between(repo: &'a Repo, before: ObjectId, base: ObjectId) -> Result<Option<Self>> {
        let common = repo.merge_base(before, base)?;
        Ok(common.filter(|common| *common != base).map(|common| Self {
            repo,
            range: format!("{common}..{base}"),
        }))
    }

    fn git(&self, args: &[&str]) -> Result<Vec<u8>> {
        let task = Task::git().arg("--literal-pathspecs").arg("--git-dir").arg(self.repo.path());
        let task = task.args(["-c", "core.quotePath=true", "-c", "log.showSignature=false", "-c", "diff.noprefix=false"]);
        task.args(args).timeout(SEARCH).output()
    }

    /// Whether anything touched these files at all.
    pub(super) fn touches(&self, paths: &[String]) -> Result<bool> {
        let mut args = vec!["log", "-1", "--format=%H", &self.range, "--"];
        args.extend(paths.iter().map(String::as_str));
        Ok(!self.git(&args)?.is_empty())
    }

    /// For each patch of a series (made on the older base) the commit that has it, or something like it.
    pub(super) fn find(&self, series: &Series, paths: &[String]) -> Result<Vec<Option<Match>>> {
        let commits = self.commits(paths)?;
        let reverted: BTreeSet<String> = commits.iter().flat_map(|it| reverts(&it.message)).collect();
        let by_id = self.patch_ids(&commits)?;
        let mut found = Vec::new();
        for (index, diff) in diffs(self.repo, series)?.iter().enumerate() {
            let subject = series.patches[index].commit.subject();
            let ids = patch_ids(&[(ZERO, diff)])?;
            let exact = ids.first().and_then(|(id, _)| by_id.get(id)).copied();
            let alike = || {
                commits.iter().position(|it| {
                    it.suspect.subject.as_bytes() == subject.as_bytes() && is_alike(&it.diff, diff)
                })
            };
            let place = exact.or_else(alike);
            let place = place.filter(|&place| !reverted.contains(&commits[place].suspect.commit));
            found.push(place.map(|place| Match {
                commit: commits[place].suspect.clone(),
                exact: exact == Some(place),
            }));
        }
        Ok(found)
    }

    /// The commits that touch these files, newest first, with all that they change.
    fn commits(&self, paths: &[String]) -> Result<Vec<Upstream>> {
        let most = format!("-{MOST_COMMITS}");
        let mut args = vec![
            "log", &most, "--no-merges", "-p", "--full-diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames",
            "--src-prefix=a/", "--dst-prefix=b/", "--format=%x00%H%x00%s%x00%B%x00", &self.range, "--",
        ];
        args.extend(paths.iter().map(String::as_str));
        let log = self.git(&args)?;
        let mut commits = Vec::new();
        let mut parts = log.split_str("\0").skip(1);
        while let (Some(id), Some(subject), Some(message), Some(diff)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        {
            commits.push(Upstream {
                suspect: Suspect {
                    commit: id.to_str_lossy().into_owned(),
                    subject: subject.to_str_lossy().into_owned(),
                    what: String::new(),
                },
                message: message.into(),
                diff: diff.trim_start().to_vec(),
            });
        }
        Ok(commits)
    }

    fn patch_ids(&self, commits: &[Upstream]) -> Result<BTreeMap<String, usize>> {
        let patches: Vec<_> = commits.iter().map(|it| (it.suspect.commit.as_str(), &it.diff)).collect();
        let places: BTreeMap<&str, usize> = patches.iter().enumerate().map(|(place, (id, _))| (*id, place)).collect();
        let ids = patch_ids(&patches)?.into_iter();
        Ok(ids.filter_map(|(id, commit)| Some((id, *places.get(commit.as_str())?))).collect())
    }

    /// The commits that changed the functions which `text` speaks of, newest first.
    pub(super) fn suspects(&self, recipe: &Recipe, text: &str) -> Result<Vec<Suspect>> {
        let mut suspects: Vec<Suspect> = Vec::new();
        let named = functions(recipe).into_iter().filter(|(_, name)| text.contains(&format!("{name}(")) || text.contains(&format!("`{name}`")));
        for (file, name) in named.take(MOST_FUNCTIONS) {
            for suspect in self.changed(&file, &name)? {
                if !suspects.iter().any(|known| known.commit == suspect.commit) {
                    suspects.push(suspect);
                }
            }
        }
        Ok(suspects)
    }

    /// The commits that changed one function; where the base has it no more, those that mention it.
    fn changed(&self, file: &str, name: &str) -> Result<Vec<Suspect>> {
        let most = format!("-{MOST_SUSPECTS}");
        let place = format!("-L:{name}:{file}");
        let word = format!("-G\\<{name}\\>");
        let lines = ["log", "-s", &most, "--no-merges", "--format=%H %s", &place, &self.range];
        let mentions = ["log", "-s", &most, "--no-merges", "--format=%H %s", &word, &self.range, "--", file];
        // Git fails where the file or the function is not there, which is an answer as well.
        let mut log = self.git(&lines).unwrap_or_default();
        if log.is_empty() {
            log = self.git(&mentions)?;
        }
        let lines = log.lines().filter_map(|line| line.split_once_str(" "));
        Ok(lines
            .map(|(id, subject)| Suspect {
                commit: id.to_str_lossy().into_owned(),
                subject: subject.to_str_lossy().into_owned(),
                what: format!("{file}: {name}()"),
            })
            .collect())
    }
}

impl Suspect {
    /// `123456789abc ("subject")`, as the kernel's people name commits.
    #[must_use]
    pub fn shown(&self) -> String {
        let id = self.commit.get(..DIGITS).unwrap_or(&self.commit);
        format!("{id} (\"{}\")", self.subject)
    }
}

/// The files that a recipe touches.
pub(super) fn files(recipe: &Recipe) -> Vec<String> {
    let edits = recipe.patches.iter().flat_map(|patch| &patch.edits);
    let files: BTreeSet<_> = edits.map(|edit| edit.file.clone()).collect();
    files.into_iter().collect()
}

/// The functions that a recipe is about, with their files.
fn functions(recipe: &Recipe) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for spec in &recipe.functions {
        found.insert((spec.file.clone(), spec.name.clone()));
    }
    for edit in recipe.patches.iter().flat_map(|patch| &patch.edits) {
        let target = match &edit.action {
            Action::Insert(Spot::Before(target) | Spot::After(target), _)
            | Action::Replace(target, _)
            | Action::Extract { target, .. } => Some(target),
            _ => None,
        };
        let name = match (&edit.action, target) {
            (_, Some(Target::Statement { function, .. } | Target::Function(function)))
            | (
                Action::Insert(
                    Spot::BeforeFunction(function)
                    | Spot::AfterFunction(function)
                    | Spot::End(function)
                    | Spot::Parameter(function, _),
                    _,
                ),
                _,
            ) => function,
            _ => continue,
        };
        found.insert((edit.file.clone(), name.clone()));
    }
    found.into_iter().collect()
}

/// The commits that a message says it reverts.
fn reverts(message: &[u8]) -> Vec<String> {
    const WORDS: &str = "This reverts commit ";
    let ids = message.find_iter(WORDS).map(|at| &message[at + WORDS.len()..]);
    ids.map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit());
        digits.map(|&byte| char::from(byte)).collect()
    })
    .collect()
}

/// The patch text of each patch of a series.
pub(super) fn diffs(repo: &Repo, series: &Series) -> Result<Vec<Vec<u8>>> {
    let labels = Labels::of(series.base.tree_id);
    let mut before = series.base.tree_id;
    let mut diffs = Vec::new();
    for patch in &series.patches {
        let files = diff::between(repo, before, patch.commit.tree_id, &labels)?;
        before = patch.commit.tree_id;
        diffs.push(files.into_iter().flat_map(|file| file.text).collect());
    }
    Ok(diffs)
}

/// An id for patch text that is no commit.
const ZERO: &str = "0000000000000000000000000000000000000000";

/// Git's patch-ids of patches: (patch-id, commit).
fn patch_ids(patches: &[(&str, &Vec<u8>)]) -> Result<Vec<(String, String)>> {
    let mut input = Vec::new();
    for (commit, diff) in patches {
        input.extend_from_slice(format!("commit {commit}\n\n").as_bytes());
        input.extend_from_slice(diff);
        input.push(b'\n');
    }
    let output = Task::git().args(["patch-id", "--stable"]).input(input).timeout(SEARCH).output()?;
    let lines = output.lines().filter_map(|line| line.to_str().ok()?.split_once(' '));
    Ok(lines.map(|(id, commit)| (id.to_owned(), commit.to_owned())).collect())
}

/// The lines that a patch takes out and puts in, with how often.
pub(super) fn changed_lines(diff: &[u8]) -> BTreeMap<&[u8], usize> {
    let mut lines = BTreeMap::new();
    let mut in_hunk = false;
    for line in diff.lines() {
        if line.starts_with(b"diff --git ") {
            in_hunk = false;
        } else if line.starts_with(b"@@ ") {
            in_hunk = true;
        } else if in_hunk && matches!(line.first(), Some(b'+' | b'-')) {
            *lines.entry(line).or_insert(0) += 1;
        }
    }
    lines
}

/// Whether most of the lines that two patches change are the same ones.
fn is_alike(one: &[u8], two: &[u8]) -> bool {
    let (one, two) = (changed_lines(one), changed_lines(two));
    let count = |lines: &BTreeMap<&[u8], usize>| lines.values().sum::<usize>();
    let both: usize = one
        .iter()
        .map(|(line, times)| two.get(line).map_or(0, |others| *times.min(others)))
        .sum();
    both > 0 && both * 2 > count(&one).max(count(&two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_lines_is_more_than_half_of_the_larger() {
        let patch = |lines: &str| format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n{lines}").into_bytes();
        let one = patch("+a\n+b\n+c\n-d\n e\n");
        assert!(is_alike(&one, &patch("+a\n+b\n+c\n-other\n e\n")));
        assert!(!is_alike(&one, &patch("+a\n+b\n+x\n-y\n e\n")), "half is not most");
        assert!(!is_alike(&patch(""), &patch("")));
    }

    #[test]
    fn reverts_are_read_in_messages() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let message = format!("Revert \"x\"\n\nThis reverts commit {id}.\n");
        assert_eq!(reverts(message.as_bytes()), [id]);
        assert!(reverts(b"This reverts nothing").is_empty());
    }
}
