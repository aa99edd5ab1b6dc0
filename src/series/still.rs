//! Whether what a commit did is still in a tree: it can be taken out of the tree's files, and put in again.
//!
//! Hides how commits that stand on each other are told: the newest is taken out first, and the others are looked for in what is left.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};

use crate::exec::Task;
use crate::repo::{File, ObjectId, Repo};

/// What became of a commit's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Still {
    /// It is there, all of it.
    There,
    /// Nothing of it is: its old lines are there.
    Gone,
    /// Neither: something else is at its places.
    Changed,
}

/// The files of a tree while commits are taken out.
pub(crate) struct Remains<'a> {
    repo: &'a Repo,
    tree_id: ObjectId,
    files: BTreeMap<BString, Option<File>>,
}

impl<'a> Remains<'a> {
    /// All of a tree.
    pub(crate) fn of(repo: &'a Repo, tree_id: ObjectId) -> Self {
        Self {
            repo,
            tree_id,
            files: BTreeMap::new(),
        }
    }

    /// Takes a commit's change out, if all of it is there.
    pub(crate) fn take_out(&mut self, commit: ObjectId) -> Result<Still> {
        let Ok(commit) = self.repo.commit(commit) else {
            return Ok(Still::Changed);
        };
        // A shallow clone ends somewhere.
        let parent = commit.parent_ids.first().map(|id| self.repo.commit(*id));
        let Some(Ok(parent)) = parent else {
            return Ok(Still::Changed);
        };
        let paths = self.repo.changed_paths(parent.tree_id, commit.tree_id)?;
        let mut found = Vec::new();
        let mut left = self.files.clone();
        for path in paths {
            let read = |tree_id| self.repo.file(tree_id, path.as_bstr());
            let (with, without) = (read(commit.tree_id)?, read(parent.tree_id)?);
            let now = match self.files.get(&path) {
                Some(known) => known.clone(),
                None => read(self.tree_id)?,
            };
            let (still, rest) = of_file(now, with.as_ref(), without.as_ref())?;
            found.push(still);
            left.insert(path, rest);
        }
        if found.iter().all(|it| *it == Still::There) {
            self.files = left;
        }
        let first = found
            .first()
            .copied()
            .filter(|first| found.iter().all(|it| it == first));
        Ok(first.unwrap_or(Still::Changed))
    }
}

/// What became of a change (from `without` to `with`) in a file, and the file without it.
fn of_file(
    now: Option<File>,
    with: Option<&File>,
    without: Option<&File>,
) -> Result<(Still, Option<File>)> {
    if now.as_ref() == with {
        return Ok((Still::There, without.cloned()));
    }
    if now.as_ref() == without {
        return Ok((Still::Gone, now));
    }
    let (Some(now), Some(with), Some(without)) = (&now, with, without) else {
        return Ok((Still::Changed, now));
    };
    let Some(rest) = merge([&now.bytes, &with.bytes, &without.bytes])? else {
        return Ok((Still::Changed, Some(now.clone())));
    };
    let again = merge([&rest, &without.bytes, &with.bytes])?;
    let still = if rest == now.bytes {
        Still::Gone
    } else if again.as_ref() == Some(&now.bytes) {
        Still::There
    } else {
        Still::Changed
    };
    let mode = now.mode;
    Ok((still, Some(File { mode, bytes: rest })))
}

/// Git's own three-way merge of one file (ours, ancestor, theirs); `None` where it conflicts.
pub(super) fn merge(sides: [&[u8]; 3]) -> Result<Option<Vec<u8>>> {
    let dir = crate::temporary::directory()?;
    let names = ["ours", "ancestor", "theirs"];
    for (name, bytes) in names.into_iter().zip(sides) {
        fs::write(dir.path().join(name), bytes).context("cannot write a temporary file")?;
    }
    let merge = Task::git_alone()
        .dir(dir.path())
        .args(["merge-file", "-p", "-q"]);
    let output = merge.args(names).run()?;
    Ok(output.exit.success().then_some(output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(now: &str, with: &str, without: &str) -> (Still, String) {
        let file = |lines: &str| {
            let bytes = lines.chars().map(|char| format!("{char}\n"));
            Some(File {
                mode: crate::repo::MODE_FILE,
                bytes: bytes.collect::<String>().into_bytes(),
            })
        };
        let (still, rest) =
            of_file(file(now), file(with).as_ref(), file(without).as_ref()).unwrap();
        let rest = String::from_utf8(rest.unwrap().bytes).unwrap();
        (still, rest.replace('\n', ""))
    }

    #[test]
    fn a_change_is_there_where_it_can_be_taken_out_and_put_in_again() {
        assert_eq!(of("abXcdefg", "abXcd", "abcd").0, Still::There);
        assert_eq!(
            of("0000abXcd", "abXcd", "abcd"),
            (Still::There, "0000abcd".into())
        );
        assert_eq!(of("0000abcd", "abXcd", "abcd").0, Still::Gone);
        assert_eq!(of("0000abYcd", "abXcd", "abcd").0, Still::Changed);
        // Only one of two places is as it was.
        assert_eq!(
            of("0000abXcdefgh", "abXcdefYgh", "abcdefgh").0,
            Still::Changed
        );
    }
}
