//! Refs: read, listed, and moved by compare and swap.
//!
//! Hides which names git takes.

use anyhow::{Context, Result, anyhow};
use git2::ErrorCode;

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

fn not_a_ref(name: &str) -> anyhow::Error {
    Refusal::usage(format!(
        "`{}` is no name of a ref",
        shown_text(name.as_bytes())
    ))
    .hint("write it in full, such as `refs/heads/series`")
    .into()
}
