//! Where the files of a tree define a function, found by its name.
//!
//! Hides how much is read: first what is near, then the whole tree, in threads, and neither twice for the same tree, since the answer is
//! kept in the cache.

mod answers;
mod sweep;

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use crate::repo::{Entry, ObjectId, Repo};
use answers::Answers;

pub use sweep::Site;

/// What can be said about where a function is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sites {
    /// The files that define it, in the tree's order; none is nowhere.
    Found(Vec<Site>),
    /// So many files of a partial clone are not here, and were not fetched for it.
    Missing(usize),
}

/// Looks for functions in one tree.
pub struct Locator<'r> {
    repo: &'r Repo,
    tree_id: ObjectId,
    /// What may be asked for: found at once, where anything has to be looked for.
    names: Vec<String>,
    answers: Answers,
}

impl<'r> Locator<'r> {
    /// A look at a tree for functions with some of these names; what is found is kept in the user's cache, where there is one.
    #[must_use]
    pub fn of(repo: &'r Repo, tree_id: ObjectId, names: Vec<String>) -> Self {
        let cache = crate::cache::Cache::open().ok();
        let answers = Answers::of(cache.map(|cache| cache.places_path()), tree_id);
        Self {
            repo,
            tree_id,
            names,
            answers,
        }
    }

    /// The files that define `name` in the directory of one of `near`, but for `near` itself; where there is none, those of the whole
    /// tree.
    pub fn find(&self, name: &str, near: &[String]) -> Result<Sites> {
        let mut directories: Vec<&str> = near.iter().map(|file| directory(file)).collect();
        directories.dedup();
        for directory in directories {
            let sites = self.answer(name, directory, || self.sources_in(directory))?;
            let others = sites.without(near);
            if others != Sites::Found(Vec::new()) {
                return Ok(others);
            }
        }
        let sites = self.answer(name, WHOLE_TREE, || self.sources())?;
        Ok(sites.without(near))
    }

    /// What is known of one stretch of the tree, or found out now.
    fn answer(
        &self,
        name: &str,
        stretch: &str,
        files: impl FnOnce() -> Result<Vec<(String, ObjectId)>>,
    ) -> Result<Sites> {
        if let Some(known) = self.answers.get(stretch, name) {
            return Ok(Sites::Found(known));
        }
        let is_open = |other: &&str| *other != name && self.answers.get(stretch, other).is_none();
        let others = self.names.iter().map(String::as_str).filter(is_open);
        let names: Vec<&str> = std::iter::once(name).chain(others).collect();
        match sweep::sweep(self.repo, &files()?, &names)? {
            Ok(sites) => {
                let names = names.iter().map(|name| (*name).to_owned());
                let first = sites.first().cloned().unwrap_or_default();
                self.answers.put(stretch, names.zip(sites));
                Ok(Sites::Found(first))
            }
            Err(missing) => Ok(Sites::Missing(missing)),
        }
    }

    /// The C files of a directory, without those below it.
    fn sources_in(&self, directory: &str) -> Result<Vec<(String, ObjectId)>> {
        let entries = self.repo.entries_at(self.tree_id, BStr::new(directory))?;
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let sources = entries
            .into_iter()
            .filter(|entry| is_source(entry.mode, &entry.name));
        let path =
            |Entry { name, id, .. }: Entry| Some((format!("{prefix}{}", name.to_str().ok()?), id));
        let sources: Vec<_> = sources.filter_map(path).collect();
        // They are few: what a partial clone left out of them is worth a connection.
        self.repo
            .fetch_missing(&sources.iter().map(|(_, id)| *id).collect::<Vec<_>>())?;
        Ok(sources)
    }

    /// Every C file of the tree.
    fn sources(&self) -> Result<Vec<(String, ObjectId)>> {
        let files = self.repo.files(self.tree_id)?.into_iter();
        let sources = files.filter(|(path, mode, _)| is_source(*mode, path));
        Ok(sources
            .filter_map(|(path, _, id)| Some((path.to_str().ok()?.to_owned(), id)))
            .collect())
    }
}

/// What the whole tree is called beside its directories: no directory has this name.
const WHOLE_TREE: &str = "/";

impl Sites {
    fn without(self, files: &[String]) -> Self {
        match self {
            Self::Found(mut sites) => {
                sites.retain(|site| !files.contains(&site.file));
                Self::Found(sites)
            }
            missing @ Self::Missing(_) => missing,
        }
    }
}

/// Whether something in a tree is a regular file that C is in.
fn is_source(mode: u32, name: &[u8]) -> bool {
    mode & 0o170_000 == 0o100_000 && (name.ends_with(b".c") || name.ends_with(b".h"))
}

/// The directory that a file is in; the root is empty.
fn directory(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}
