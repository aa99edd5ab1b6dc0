//! Whether others can have a commit: what `base-commit:` of a mail may name.
//!
//! Nothing on this machine knows what others have fetched. What is known is what was fetched from them, and what was tagged.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bstr::ByteSlice;
use git2::{ObjectType, Odb, Reference};

use super::commit::Base;
use super::store::{ObjectId, Repo};
use crate::exec::Task;

/// What bots of any namespace have fetched from the repositories that they watch.
const FETCHED: &str = "refs/reroll*/bases/*";

impl Repo {
    /// Whether others can have the commit of a base: it is no import, and is reachable from a tag or a branch of a remote repository. In a bare
    /// repository that has a remote, the branches are that one's. Asked of git once for each commit.
    pub fn is_official(&self, base: &Base) -> Result<bool> {
        if base.imported {
            return Ok(false);
        }
        let known = self.published.borrow().get(&base.commit_id).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.is_published(base.commit_id)?;
        self.published.borrow_mut().insert(base.commit_id, found);
        Ok(found)
    }

    fn is_published(&self, commit_id: ObjectId) -> Result<bool> {
        let objects = self.git.odb().context("cannot open the object database")?;
        let mut input = format!("{commit_id}\n");
        for reference in self.published()? {
            match self.tip(&reference, &objects) {
                Some(tip) if tip == commit_id => return Ok(true),
                Some(tip) => input += &format!("^{tip}\n"),
                None => {}
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

    /// The commit that a reference is at; `None` for a tree, a file, a link to another reference, and an object that is damaged or not here:
    /// git would end at the first of those. Nothing is fetched for it, which would need the network to say that others have it.
    fn tip(&self, reference: &Reference<'_>, objects: &Odb<'_>) -> Option<ObjectId> {
        // `packed-refs` has what a tag is of.
        let mut id = reference.target_peel().or_else(|| reference.target())?;
        // A tag may be of a tag.
        let mut seen = BTreeSet::new();
        while seen.insert(id) && objects.exists(id) {
            let (kind, bytes) = self.read(id).ok()?;
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
