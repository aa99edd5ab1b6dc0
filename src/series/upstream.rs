//! Looks in a base's history for patches that got in, whether they are still there, and for the commits that changed a function.
//!
//! Hides git's log and patch-ids. Every look is bounded, and nothing is fetched for it; where two bases have no history in common there is
//! nothing to be found.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use bstr::ByteSlice;
use serde::{Deserialize, Serialize};

use super::still::{Remains, Still};
use crate::error::{Exit, exit_of};
use crate::exec::Task;
use crate::rangediff::Patch;
use crate::recipe::{Action, Recipe, Spot, Target};
use crate::repo::{ObjectId, Repo};

/// A commit of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Suspect {
    /// Its id.
    pub commit: String,
    /// Its subject.
    pub subject: String,
    /// What it changed: `file: function()`, or empty.
    pub what: String,
}

/// What the history has of a patch.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    /// The commit.
    pub(crate) commit: Suspect,
    /// Whether its patch-id is the same; if not, its subject is, and most of its lines.
    pub(crate) exact: bool,
    /// What became of its change since.
    pub(crate) still: Still,
}

impl Match {
    /// What became of a patch that was upstream.
    pub(crate) fn fate(&self) -> String {
        let what = match self.still {
            Still::Gone => "reverted",
            Still::There | Still::Changed => "changed",
        };
        format!("upstream as {}, {what} since", self.commit.short_id())
    }

    /// Whether the base has nothing of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.still == Still::Gone
    }
}

/// What is said of a commit that is a patch of the series.
pub(crate) const SAME_PATCH_ID: &str = "has the same patch-id";
/// What is said of a patch that was proven to be in a base.
const SAME_FILES: &str = "the base's files are exactly what the patch makes of them";

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
pub(crate) struct History<'a> {
    repo: &'a Repo,
    base: ObjectId,
    range: String,
}

/// The commits of a stretch of history, newest first.
pub(crate) struct Commits<'a> {
    repo: &'a Repo,
    base: ObjectId,
    list: Vec<Upstream>,
}

/// A commit of the history as `git log -p` shows it.
struct Upstream {
    suspect: Suspect,
    diff: Vec<u8>,
}

/// How it is known that a base has a patch, once that is proven.
pub(crate) fn how(found: Option<&Match>) -> String {
    match found.filter(|found| !found.is_gone()) {
        Some(found) if found.exact => format!("{} {SAME_PATCH_ID}", found.commit.shown()),
        Some(found) => format!("{} has it: {SAME_FILES}", found.commit.shown()),
        None => SAME_FILES.to_owned(),
    }
}

/// The commits in the history of `base` that change a file of the recipe's, newest first.
pub(super) fn touching(repo: &Repo, base: ObjectId, recipe: &Recipe) -> Result<Vec<ObjectId>> {
    let most = format!("-{MOST_COMMITS}");
    let (base, files) = (base.to_string(), files(recipe));
    let mut args = vec!["log", &most, "--no-merges", "--format=%H", &base, "--"];
    args.extend(files.iter().map(String::as_str));
    let log = git(repo, &args)?;
    let ids = log.lines().map(|line| line.to_str_lossy().parse());
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The files that a recipe changes.
fn files(recipe: &Recipe) -> Vec<String> {
    let edits = recipe.patches.iter().flat_map(|patch| &patch.edits);
    let files: BTreeSet<_> = edits.flat_map(|edit| recipe.files_of(edit)).collect();
    files.into_iter().map(str::to_owned).collect()
}

fn git(repo: &Repo, args: &[&str]) -> Result<Vec<u8>> {
    // What a partial clone lacks is not fetched: that would write to a repository which is only looked at.
    let task = Task::git_reading(repo.common_path())?;
    task.args(args).timeout(SEARCH).output()
}

impl<'a> History<'a> {
    /// The history between two bases; `None` where they have nothing in common.
    pub(crate) fn between(
        repo: &'a Repo,
        before: ObjectId,
        base: ObjectId,
    ) -> Result<Option<Self>> {
        let common = repo.merge_base(before, base)?;
        Ok(common.filter(|common| *common != base).map(|common| Self {
            repo,
            base,
            range: format!("{common}..{base}"),
        }))
    }

    /// The commits that touch a recipe's files; to be had once.
    pub(crate) fn commits_of(&self, recipe: &Recipe) -> Result<Commits<'a>> {
        self.commits(&files(recipe))
    }

    /// The commits that touch these files, with all that they change; to be had once.
    pub(crate) fn commits(&self, paths: &[String]) -> Result<Commits<'a>> {
        let most = format!("-{MOST_COMMITS}");
        let mut args = vec![
            "log",
            &most,
            "--no-merges",
            "-p",
            "--full-diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--format=%x00%H%x00%s%x00",
            &self.range,
            "--",
        ];
        args.extend(paths.iter().map(String::as_str));
        let log = git(self.repo, &args)?;
        let mut list = Vec::new();
        let mut parts = log.split_str("\0").skip(1);
        while let (Some(id), Some(subject), Some(diff)) = (parts.next(), parts.next(), parts.next())
        {
            list.push(Upstream {
                suspect: Suspect {
                    commit: id.to_str_lossy().into_owned(),
                    subject: subject.to_str_lossy().into_owned(),
                    what: String::new(),
                },
                diff: diff.trim_start().to_vec(),
            });
        }
        Ok(Commits {
            repo: self.repo,
            base: self.base,
            list,
        })
    }

    /// The commits that changed the functions which `text` speaks of, newest first.
    pub(crate) fn suspects(&self, recipe: &Recipe, text: &str) -> Result<Vec<Suspect>> {
        let mut suspects: Vec<Suspect> = Vec::new();
        let named = functions(recipe).into_iter().filter(|(_, name)| {
            text.contains(&format!("{name}(")) || text.contains(&format!("`{name}`"))
        });
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
        let lines = [
            "log",
            "-s",
            &most,
            "--no-merges",
            "--format=%H %s",
            &place,
            &self.range,
        ];
        let mentions = [
            "log",
            "-s",
            &most,
            "--no-merges",
            "--format=%H %s",
            &word,
            &self.range,
            "--",
            file,
        ];
        // Git fails where the base has the function no more.
        let log = match git(self.repo, &lines) {
            Err(error) if exit_of(&error) != Exit::Interrupted => git(self.repo, &mentions)?,
            other => other?,
        };
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

impl Commits<'_> {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The newest commit with this subject, which says nothing of what it does.
    pub(crate) fn namesake(&self, subject: &[u8]) -> Option<&Suspect> {
        let suspects = self.list.iter().map(|it| &it.suspect);
        suspects
            .into_iter()
            .find(|it| it.subject.as_bytes() == subject)
    }

    /// For each patch (made on the older base) the newest commit that has it, or something like it, and whether its change is still there.
    pub(crate) fn find(&self, patches: &[Patch]) -> Result<Vec<Option<Match>>> {
        let by_id = self.patch_ids(patches)?;
        let tree_id = self.repo.commit(self.base)?.tree_id;
        let mut remains = Remains::of(self.repo, tree_id);
        let mut found = Vec::new();
        // A later patch may stand on an earlier one.
        for (place, patch) in patches.iter().enumerate().rev() {
            let exact = by_id.iter().find(|(known, _)| *known == place);
            let exact = exact.map(|(_, commit)| *commit);
            let alike = || {
                self.list.iter().position(|it| {
                    it.suspect.subject.as_bytes() == patch.subject.as_bytes()
                        && is_alike(&it.diff, &patch.diff)
                })
            };
            let commit = exact
                .or_else(alike)
                .map(|commit| &self.list[commit].suspect);
            let of = |commit: &Suspect| -> Result<Match> {
                Ok(Match {
                    commit: commit.clone(),
                    exact: exact.is_some(),
                    still: remains.take_out(commit.commit.parse()?)?,
                })
            };
            found.push(commit.map(of).transpose()?);
        }
        found.reverse();
        Ok(found)
    }

    /// The pairs of a patch and a commit that have the same patch-id. Only commits that change a line of a patch's are asked about.
    fn patch_ids(&self, patches: &[Patch]) -> Result<Vec<(usize, usize)>> {
        let lines: BTreeSet<Vec<u8>> = patches
            .iter()
            .flat_map(|patch| bare_lines(&patch.diff))
            .collect();
        let likely = |it: &&Upstream| bare_lines(&it.diff).any(|line| lines.contains(&line));
        let likely: Vec<_> = self.list.iter().filter(likely).collect();
        if likely.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = (0..patches.len())
            .map(|place| format!("{place:040}"))
            .collect();
        let mine = names
            .iter()
            .map(String::as_str)
            .zip(patches.iter().map(|patch| &patch.diff));
        let theirs = likely
            .iter()
            .map(|it| (it.suspect.commit.as_str(), &it.diff));
        let ids = patch_ids(&mine.chain(theirs).collect::<Vec<_>>())?;
        let (mine, theirs): (Vec<_>, Vec<_>) =
            ids.iter().partition(|(_, commit)| names.contains(commit));
        let mut pairs = Vec::new();
        for (id, name) in mine {
            let commit = theirs
                .iter()
                .find(|(other, _)| other == id)
                .map(|(_, commit)| commit);
            let commit = commit
                .and_then(|commit| self.list.iter().position(|it| it.suspect.commit == *commit));
            let place = names.iter().position(|known| known == name);
            pairs.extend(place.zip(commit));
        }
        Ok(pairs)
    }
}

impl Suspect {
    /// Its id, as far as a person needs it.
    pub(crate) fn short_id(&self) -> &str {
        self.commit.get(..DIGITS).unwrap_or(&self.commit)
    }

    /// `123456789abc ("subject")`, as the kernel's people name commits.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{} (\"{}\")", self.short_id(), self.subject)
    }
}

/// The functions that a recipe is about, with their files.
fn functions(recipe: &Recipe) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for spec in &recipe.functions {
        let files = spec.files().into_iter();
        found.extend(files.map(|file| (file.to_owned(), spec.name.clone())));
    }
    for edit in recipe.patches.iter().flat_map(|patch| &patch.edits) {
        let target = match &edit.action {
            Action::Insert(Spot::Before(target) | Spot::After(target), _)
            | Action::Replace(target, _)
            | Action::Extract { target, .. } => Some(target),
            _ => None,
        };
        let beside = match &edit.action {
            Action::Insert(
                Spot::BeforeFunction(function)
                | Spot::AfterFunction(function)
                | Spot::End(function)
                | Spot::Parameter(function, _),
                _,
            ) => Some(function),
            _ => None,
        };
        let inside = match target {
            Some(Target::Statement { function, .. } | Target::Function(function)) => Some(function),
            _ => None,
        };
        for name in beside.into_iter().chain(inside) {
            let files = recipe.files_of(edit).into_iter();
            found.extend(files.map(|file| (file.to_owned(), name.clone())));
        }
    }
    found.into_iter().collect()
}

/// Git's patch-ids of patches: (patch-id, commit).
fn patch_ids(patches: &[(&str, &Vec<u8>)]) -> Result<Vec<(String, String)>> {
    let mut input = Vec::new();
    for (commit, diff) in patches {
        input.extend_from_slice(format!("commit {commit}\n\n").as_bytes());
        input.extend_from_slice(diff);
        input.push(b'\n');
    }
    let output = Task::git_alone()
        .args(["patch-id", "--stable"])
        .input(input)
        .timeout(SEARCH)
        .output()?;
    let lines = output
        .lines()
        .filter_map(|line| line.to_str().ok()?.split_once(' '));
    Ok(lines
        .map(|(id, commit)| (id.to_owned(), commit.to_owned()))
        .collect())
}

/// The lines that a patch takes out and puts in, with how often.
pub(crate) fn changed_lines(diff: &[u8]) -> BTreeMap<&[u8], usize> {
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

/// The lines that a patch changes, without white space, which patch-ids do not see.
fn bare_lines(diff: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let lines = changed_lines(diff).into_keys();
    let bare = lines.map(|line| {
        line.iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect::<Vec<u8>>()
    });
    // A sign alone is an empty line, which many change.
    bare.filter(|line| line.len() > 1)
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
        let patch = |lines: &str| {
            format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n{lines}").into_bytes()
        };
        let one = patch("+a\n+b\n+c\n-d\n e\n");
        assert!(is_alike(&one, &patch("+a\n+b\n+c\n-other\n e\n")));
        assert!(
            !is_alike(&one, &patch("+a\n+b\n+x\n-y\n e\n")),
            "half is not most"
        );
        assert!(!is_alike(&patch(""), &patch("")));
    }
}
