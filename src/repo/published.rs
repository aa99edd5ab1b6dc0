//! Whether others can have a commit: what `base-commit:` of a mail may name.
//!
//! Nothing on this machine knows what others have fetched. What is known is what was fetched from them, and what was tagged.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use bstr::ByteSlice;
use git2::{ObjectType, Reference};

use super::store::{ObjectId, Repo};
use crate::exec::Task;

/// What bots of any namespace have fetched from the repositories that they watch.
const FETCHED: &str = "refs/reroll*/bases/*";

impl Repo {
    /// Whether a commit is reachable from a tag or a branch of a remote repository. In a bare repository that has a remote, the branches are
    /// that one's.
    pub(super) fn is_published(&self, commit_id: ObjectId) -> Result<bool> {
        let mut input = format!("{commit_id}\n");
        for reference in self.published()? {
            let tip = self.tip(&reference);
            if tip == Some(commit_id) {
                return Ok(true);
            }
            // One whose object is not here says nothing: git would end where it finds the first of them.
            if let Some(tip) = tip.filter(|tip| self.git.odb().is_ok_and(|odb| odb.exists(*tip))) {
                let _ = writeln!(input, "^{tip}");
            }
        }
        let rest = Task::git_reading(self.common_path())?
            .args(["rev-list", "--max-count=1", "--stdin"])
            .input(input)
            .run()?;
        // A history with holes in it proves nothing.
        Ok(rest.exit.success() && rest.stdout.trim().is_empty())
    }

    /// Tags, remote branches, and what a bot has fetched.
    fn published(&self) -> Result<Vec<Reference<'_>>> {
        let mut globs = vec!["refs/tags/*", "refs/remotes/*", FETCHED];
        if self.git.is_bare() && !self.git.remotes()?.is_empty() {
            globs.push("refs/heads/*");
        }
        let mut references = Vec::new();
        for glob in globs {
            references.extend(self.git.references_glob(glob)?.flatten());
        }
        Ok(references)
    }

    /// The commit that a reference is at; `None` for a tree, a file, a damaged object, or a link to another reference.
    fn tip(&self, reference: &Reference<'_>) -> Option<ObjectId> {
        // `packed-refs` has what a tag is of.
        if let Some(peeled) = reference.target_peel() {
            return Some(peeled);
        }
        let mut id = reference.target()?;
        // A tag may be of a tag. What is in a file of its own is not read by libgit2, which waits for ever for one that was cut short.
        let mut seen = BTreeSet::new();
        while seen.insert(id) {
            let (kind, bytes) = if let Some(object) = self.loose(id).ok()? {
                object
            } else {
                let objects = self.git.odb().ok()?;
                let object = objects.read(id).ok()?;
                (object.kind(), object.data().to_vec())
            };
            match kind {
                ObjectType::Commit => return Some(id),
                ObjectType::Tag => {
                    let of = bytes.lines().next()?.strip_prefix(b"object ")?;
                    id = of.to_str().ok()?.parse().ok()?;
                }
                _ => return None,
            }
        }
        None
    }
}
