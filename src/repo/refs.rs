//! Refs: read, listed, and moved by compare and swap.
//!
//! Hides which names git takes, and how work trees say what they stand on.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use bstr::ByteSlice;
use git2::{ErrorCode, Repository};

use super::store::{ObjectId, Repo};
use crate::error::Refusal;
use crate::ui::shown_text;

impl Repo {
    /// What a ref points at; `None` where there is no such ref. Its name is written in full.
    pub fn reference(&self, name: &str) -> Result<Option<ObjectId>> {
        if !name.starts_with("refs/") {
            return Err(not_a_ref(name));
        }
        match self.git.refname_to_id(name) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) if error.code() == ErrorCode::InvalidSpec => Err(not_a_ref(name)),
            Err(error) => Err(anyhow!(error))
                .with_context(|| format!("cannot read the ref `{}`", shown_text(name.as_bytes()))),
        }
    }

    /// The refs whose names begin with `prefix` (which ends in `/`), with what they point at, sorted by name. Names that are not
    /// UTF-8 are left out.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, ObjectId)>> {
        let found = self.git.references_glob(&format!("{prefix}*"));
        let mut refs = Vec::new();
        for reference in found.context("cannot list the refs")? {
            let reference = reference.context("cannot read a ref")?;
            if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                refs.push((name.to_owned(), id));
            }
        }
        refs.sort();
        Ok(refs)
    }

    /// The work tree, the main one or a linked one, that stands on a branch, or is in the middle of a rebase or a bisection of it:
    /// where `git branch --force` refuses to move it.
    pub fn used_by(&self, name: &str) -> Result<Option<PathBuf>> {
        let common = self.git.commondir();
        let linked = match fs::read_dir(common.join("worktrees")) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let linked = linked.context("cannot list the linked work trees")?;
        let mut linked = linked.iter().map(fs::DirEntry::path);
        if let Some(dir) = linked.find(|dir| stands_on(dir, name)) {
            return Ok(Some(linked_root(&dir)));
        }
        let main = Repository::open(common).context("cannot open the main repository")?;
        let root = main.workdir().filter(|_| stands_on(common, name));
        // libgit2 ends it with a slash.
        Ok(root.map(|root| root.components().collect()))
    }

    /// Deletes a ref by compare and swap: it must still be at `old`.
    pub fn delete_reference(&self, name: &str, old: ObjectId) -> Result<()> {
        let found = self.git.find_reference(name);
        let mut found = found
            .with_context(|| format!("cannot read the ref `{}`", shown_text(name.as_bytes())))?;
        if found.target() != Some(old) {
            return Err(Refusal::usage(format!(
                "`{}` was moved meanwhile",
                shown_text(name.as_bytes())
            ))
            .hint("look at it and run again")
            .into());
        }
        found
            .delete()
            .with_context(|| format!("cannot delete the ref `{}`", shown_text(name.as_bytes())))
    }

    /// Moves a ref by compare and swap: it must still be at `old` (`None`: must not exist yet).
    pub fn update_reference(
        &self,
        name: &str,
        old: Option<ObjectId>,
        new: ObjectId,
        why: &str,
    ) -> Result<()> {
        if self.in_memory {
            return Err(anyhow!(
                "a ref cannot point at an object that is kept in memory"
            ));
        }
        let moved = match old {
            Some(old) => self.git.reference_matching(name, new, true, old, why),
            None => self.git.reference(name, new, false, why),
        };
        moved.map(drop).map_err(|error| {
            Refusal::usage(format!("cannot move `{}` to {new}: {}", shown_text(name.as_bytes()), error.message()))
                .hint("something else moved it meanwhile, or its name is not one git accepts; look at it and run again")
                .into()
        })
    }
}

/// Whether git takes this for the whole name of a ref.
#[must_use]
pub fn is_ref_name(name: &str) -> bool {
    name.starts_with("refs/") && git2::Reference::is_valid_name(name)
}

/// Whether the work tree whose own part of the repository is `dir` stands on a branch.
fn stands_on(dir: &Path, name: &str) -> bool {
    let first_line = |file: &str| {
        let text = fs::read(dir.join(file)).unwrap_or_default();
        text.lines().next().unwrap_or_default().trim().to_owned()
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
    let head = first_line("HEAD");
    head.strip_prefix(b"ref: ") == Some(name.as_bytes())
        || ["rebase-merge/head-name", "rebase-apply/head-name"]
            .iter()
            .any(|file| first_line(file) == name.as_bytes())
        || first_line("BISECT_START") == branch.as_bytes()
        || is_to_be_updated(dir, name)
}

/// Whether a rebase with `--update-refs` will move a ref when it ends: its file has three lines for each (git's `write_update_refs_state`).
fn is_to_be_updated(dir: &Path, name: &str) -> bool {
    let text = fs::read(dir.join("rebase-merge/update-refs")).unwrap_or_default();
    text.lines().step_by(3).any(|line| line == name.as_bytes())
}

/// The root of a linked work tree: its `gitdir` names the `.git` file there.
fn linked_root(dir: &Path) -> PathBuf {
    let file = fs::read(dir.join("gitdir")).unwrap_or_default();
    let file = file.trim().to_path_lossy().into_owned();
    file.parent().unwrap_or(dir).to_owned()
}

fn not_a_ref(name: &str) -> anyhow::Error {
    Refusal::usage(format!(
        "`{}` is no name of a ref",
        shown_text(name.as_bytes())
    ))
    .hint("write it in full, such as `refs/heads/series`")
    .into()
}
