//! All headers that a C file includes, through whatever they include.
//!
//! A header of `<asm/...>` is taken from each architecture that is asked about, and from `asm-generic` where one has none of its own, as
//! kbuild does it. Headers that a build generates are not there, and not followed.

use std::collections::{BTreeSet, HashMap};

use anyhow::Result;
use bstr::{BStr, ByteSlice};

use super::Question;
use super::scan::{Include, Scan, scan};
use crate::repo::{ObjectId, Repo};

/// The files that one file sees, itself first, each scanned.
pub(super) struct Closure {
    pub(super) files: Vec<(String, Scan)>,
}

/// Where headers can be: paths below these directories, and in those of the files that ask.
struct Headers<'a> {
    repo: &'a Repo,
    tree_id: ObjectId,
    architectures: Vec<String>,
    /// The blobs by their paths.
    blobs: HashMap<String, ObjectId>,
    /// The directories that were listed.
    listed: BTreeSet<String>,
}

impl Closure {
    /// Follows the includes of `roots` (paths in the tree) and of `headers` (as they are written between angle brackets).
    pub(super) fn of(repo: &Repo, tree_id: ObjectId, question: &Question) -> Result<Self> {
        let Question {
            files: roots,
            headers,
            architectures,
        } = question;
        let mut all = Headers {
            repo,
            tree_id,
            architectures: if architectures.is_empty() {
                let names = repo.directory(tree_id, "arch".into())?;
                names.iter().map(ToString::to_string).collect()
            } else {
                architectures.clone()
            },
            blobs: HashMap::new(),
            listed: BTreeSet::new(),
        };
        all.list("include")?;
        for architecture in all.architectures.clone() {
            all.list(&format!("arch/{architecture}/include"))?;
        }
        for root in roots {
            all.list_beside(root)?;
        }
        let mut seen = BTreeSet::new();
        let mut files = Vec::new();
        let mut level: Vec<String> = roots.clone();
        level.extend(headers.iter().flat_map(|path| {
            let include = Include {
                path: path.clone(),
                quoted: false,
            };
            all.resolve("", &include)
        }));
        while !level.is_empty() {
            level.retain(|path| seen.insert(path.clone()));
            let ids: Vec<_> = level
                .iter()
                .filter_map(|path| all.blobs.get(path))
                .copied()
                .collect();
            repo.fetch_missing(&ids)?;
            let mut next = Vec::new();
            for path in level {
                let Some(&id) = all.blobs.get(&path) else {
                    continue;
                };
                let found = scan(&repo.blob_once(id)?);
                for include in &found.includes {
                    all.list_beside(&path)?;
                    next.extend(all.resolve(&path, include));
                }
                files.push((path, found));
            }
            level = next;
        }
        Ok(Self { files })
    }
}

impl Headers<'_> {
    fn list(&mut self, directory: &str) -> Result<()> {
        if self.listed.insert(directory.to_owned()) {
            for (path, mode, id) in self.repo.files_below(self.tree_id, directory.into())? {
                if mode & 0o170_000 == 0o100_000 && path.ends_with(b".h") {
                    self.blobs.insert(path.to_str_lossy().into_owned(), id);
                }
            }
        }
        Ok(())
    }

    /// Lists the directory of a file, without what is below it.
    fn list_beside(&mut self, path: &str) -> Result<()> {
        let directory = directory(path);
        let known = |listed: &String| {
            directory == listed
                || directory
                    .strip_prefix(listed.as_str())
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        if self.listed.iter().any(known) || !self.listed.insert(format!("{directory}/")) {
            return Ok(());
        }
        for entry in self.repo.entries_at(self.tree_id, BStr::new(directory))? {
            if entry.mode & 0o170_000 == 0o100_000 {
                let path = join(directory, &entry.name.to_str_lossy());
                self.blobs.insert(path, entry.id);
            }
        }
        Ok(())
    }

    /// The files that an `#include` in the file at `from` can mean.
    fn resolve(&self, from: &str, include: &Include) -> Vec<String> {
        let there = |path: String| self.blobs.contains_key(&path).then_some(path);
        if include.quoted {
            let beside = normal(&join(directory(from), &include.path));
            if let Some(path) = beside.and_then(there) {
                return vec![path];
            }
        }
        let path = &include.path;
        let general = ["include", "include/uapi"].map(|root| format!("{root}/{path}"));
        let mut found: Vec<String> = general.into_iter().filter_map(there).collect();
        let mut generic = false;
        for architecture in &self.architectures {
            let own = ["include", "include/uapi"]
                .map(|root| format!("arch/{architecture}/{root}/{path}"));
            let own: Vec<_> = own.into_iter().filter_map(there).collect();
            generic |= own.is_empty();
            found.extend(own);
        }
        if let Some(name) = path.strip_prefix("asm/").filter(|_| generic) {
            let fallback =
                ["include", "include/uapi"].map(|root| format!("{root}/asm-generic/{name}"));
            found.extend(fallback.into_iter().filter_map(there));
        }
        found
    }
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// A path without `.` and `..`; `None` where it leaves the tree.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
