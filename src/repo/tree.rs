//! Trees: the files and directories of a revision, read and made anew.
//!
//! Hides git's format of a tree object, and that a directory which is not touched is never read: a partial clone need not fetch it.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use bstr::{BStr, BString, ByteSlice};
use git2::ObjectType;

use super::store::{ObjectId, Repo};

/// A regular file's mode.
pub const MODE_FILE: u32 = 0o100_644;
/// The mode of a path where there is no file, as git writes it in a raw diff.
pub const MODE_NONE: u32 = 0;

/// A file in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Git's mode: `0o100644`, `0o100755`, `0o120000` (a symbolic link) ...
    pub mode: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Git's mode; `0o040000` is a directory, `0o160000` a submodule.
    pub mode: u32,
    /// Its name in the directory.
    pub name: BString,
    /// The blob, the tree, or the submodule's commit.
    pub id: ObjectId,
}

impl Repo {
    /// The file at `path` (with `/`, relative to the root) of a tree; `None` where there is none.
    /// A directory or a submodule is no file.
    pub fn file(&self, tree_id: ObjectId, path: &BStr) -> Result<Option<File>> {
        let Some((mode, id, ObjectType::Blob)) = self.entry(tree_id, path)? else {
            return Ok(None);
        };
        Ok(Some(File {
            mode,
            bytes: self.blob(id)?,
        }))
    }

    /// The names in the directory at `path` of a tree, in git's order; empty where there is none.
    pub fn directory(&self, tree_id: ObjectId, path: &BStr) -> Result<Vec<BString>> {
        let Some((_, id, ObjectType::Tree)) = self.entry(tree_id, path)? else {
            return Ok(Vec::new());
        };
        let (_, bytes) = self.object(id)?;
        Ok(tree_entries(&bytes)?
            .into_iter()
            .map(|entry| entry.name.to_owned())
            .collect())
    }

    /// The entries of the directory at `path` of a tree, in git's order; empty where there is none.
    pub fn entries_at(&self, tree_id: ObjectId, path: &BStr) -> Result<Vec<Entry>> {
        match self.directory_id(tree_id, path)? {
            Some(id) => self.entries(id),
            None => Ok(Vec::new()),
        }
    }

    /// Every blob below the directory at `path` of a tree, with its path and mode, submodules left out.
    pub fn files_below(
        &self,
        tree_id: ObjectId,
        path: &BStr,
    ) -> Result<Vec<(BString, u32, ObjectId)>> {
        let mut files = Vec::new();
        if let Some(id) = self.directory_id(tree_id, path)? {
            // What a clone without trees has not, comes with all that is below it.
            self.fetch_missing(&[id])?;
            self.collect(id, [path.as_bytes(), b"/"].concat().as_bstr(), &mut files)?;
        }
        Ok(files)
    }

    fn directory_id(&self, tree_id: ObjectId, path: &BStr) -> Result<Option<ObjectId>> {
        if path.is_empty() {
            return Ok(Some(tree_id));
        }
        let found = self.entry(tree_id, path)?;
        Ok(found.and_then(|(_, id, kind)| (kind == ObjectType::Tree).then_some(id)))
    }

    /// The entries of a tree, in git's order; nothing below it is read.
    pub fn entries(&self, tree_id: ObjectId) -> Result<Vec<Entry>> {
        let (_, bytes) = self.object(tree_id)?;
        let entries = tree_entries(&bytes)?.into_iter();
        Ok(entries
            .map(|TreeEntry { mode, name, id }| Entry {
                mode,
                name: name.to_owned(),
                id,
            })
            .collect())
    }

    /// The paths at which two trees differ, in git's order. Subtrees that are equal are never read.
    pub fn changed_paths(&self, old: ObjectId, new: ObjectId) -> Result<Vec<BString>> {
        let mut paths = Vec::new();
        self.compare(Some(old), Some(new), BStr::new(""), &mut paths)?;
        paths.sort();
        Ok(paths)
    }

    fn compare(
        &self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        above: &BStr,
        paths: &mut Vec<BString>,
    ) -> Result<()> {
        let read = |id: Option<ObjectId>| id.map_or(Ok(Rc::from([])), |id| Ok(self.object(id)?.1));
        let [old, new]: [Result<Rc<[u8]>>; 2] = [read(old), read(new)];
        let (old, new) = (old?, new?);
        let mut sides: BTreeMap<&BStr, [Option<TreeEntry<'_>>; 2]> = BTreeMap::new();
        for (side, bytes) in [&old, &new].into_iter().enumerate() {
            for entry in tree_entries(bytes)? {
                let name = entry.name;
                sides.entry(name).or_default()[side] = Some(entry);
            }
        }
        for (name, [old, new]) in sides {
            let same =
                |old: &TreeEntry<'_>, new: &TreeEntry<'_>| (old.mode, old.id) == (new.mode, new.id);
            if old
                .as_ref()
                .zip(new.as_ref())
                .is_some_and(|(old, new)| same(old, new))
            {
                continue;
            }
            let path: BString = [above.as_bytes(), name.as_bytes()].concat().into();
            let is_tree = |entry: &TreeEntry<'_>| entry.kind() == ObjectType::Tree;
            if [&old, &new]
                .into_iter()
                .flatten()
                .any(|entry| !is_tree(entry))
            {
                paths.push(path.clone());
            }
            let [old, new] = [old, new].map(|entry| entry.filter(is_tree).map(|entry| entry.id));
            if old.is_some() || new.is_some() {
                self.compare(old, new, [&path[..], b"/"].concat().as_bstr(), paths)?;
            }
        }
        Ok(())
    }

    /// Every blob of a tree with its path and mode, submodules left out.
    pub fn files(&self, tree_id: ObjectId) -> Result<Vec<(BString, u32, ObjectId)>> {
        let mut files = Vec::new();
        self.collect(tree_id, BStr::new(""), &mut files)?;
        Ok(files)
    }

    fn collect(
        &self,
        tree_id: ObjectId,
        above: &BStr,
        files: &mut Vec<(BString, u32, ObjectId)>,
    ) -> Result<()> {
        let bytes = self.object(tree_id)?.1;
        for entry in tree_entries(&bytes)? {
            let path: BString = [above.as_bytes(), entry.name.as_bytes()].concat().into();
            match entry.kind() {
                ObjectType::Tree => {
                    self.collect(entry.id, [&path[..], b"/"].concat().as_bstr(), files)?;
                }
                ObjectType::Blob => files.push((path, entry.mode, entry.id)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Walks down `path` from a tree.
    fn entry(&self, tree_id: ObjectId, path: &BStr) -> Result<Option<(u32, ObjectId, ObjectType)>> {
        let mut found = (0o040_000, tree_id, ObjectType::Tree);
        for name in path.split_str("/") {
            let (kind, bytes) = self.object(found.1)?;
            if kind != ObjectType::Tree {
                return Ok(None);
            }
            match tree_entries(&bytes)?
                .into_iter()
                .find(|entry| entry.name == name)
            {
                Some(entry) => found = (entry.mode, entry.id, entry.kind()),
                None => return Ok(None),
            }
            if found.2 == ObjectType::Commit {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// A copy of `tree_id` in which each path has this mode and blob. Directories come into being as needed.
    pub fn write_tree(
        &self,
        tree_id: ObjectId,
        files: &[(&BStr, u32, ObjectId)],
    ) -> Result<ObjectId> {
        self.rebuild(Some(tree_id), files)
    }

    fn empty_tree(&self) -> Result<ObjectId> {
        self.write(ObjectType::Tree, b"")
    }

    /// A new tree from these files alone.
    pub fn write_new_tree(&self, files: &[(&BStr, u32, ObjectId)]) -> Result<ObjectId> {
        self.rebuild(None, files)
    }

    /// One directory level of [`Self::write_tree`]: the trees that are not touched are never read, so
    /// that a partial clone need not fetch them.
    fn rebuild(
        &self,
        tree_id: Option<ObjectId>,
        files: &[(&BStr, u32, ObjectId)],
    ) -> Result<ObjectId> {
        let old = match tree_id {
            Some(id) => self.object(id)?.1,
            None => Rc::from([]),
        };
        let mut entries: Vec<TreeEntry<'_>> = tree_entries(&old)?;
        let mut rest = files.to_vec();
        while let Some(&(path, mode, id)) = rest.first() {
            let (name, below) = match path.split_once_str("/") {
                Some((name, _)) => (name.as_bstr(), true),
                None => (path, false),
            };
            let place = entries.iter().position(|entry| entry.name == name);
            let new = if below {
                let inside = |path: &BStr| {
                    path.strip_prefix(name.as_bytes())
                        .and_then(|rest| rest.strip_prefix(b"/"))
                        .is_some()
                };
                let (here, others): (Vec<_>, Vec<_>) =
                    rest.into_iter().partition(|(path, ..)| inside(path));
                rest = others;
                let here: Vec<_> = here
                    .into_iter()
                    .map(|(path, mode, id)| (path[name.len() + 1..].as_bstr(), mode, id))
                    .collect();
                let old = place
                    .map(|place| &entries[place])
                    .filter(|entry| entry.kind() == ObjectType::Tree)
                    .map(|entry| entry.id);
                let id = self.rebuild(old, &here)?;
                // A directory without a file is none.
                let mode = if id == self.empty_tree()? {
                    MODE_NONE
                } else {
                    0o040_000
                };
                TreeEntry { mode, name, id }
            } else {
                rest.remove(0);
                TreeEntry { mode, name, id }
            };
            match place {
                Some(place) if new.mode == MODE_NONE => drop(entries.remove(place)),
                Some(place) => entries[place] = new,
                None if new.mode == MODE_NONE => {}
                None => entries.push(new),
            }
        }
        entries.sort_by_key(TreeEntry::sort_key);
        self.write(ObjectType::Tree, &tree_bytes(&entries))
    }
}

/// One entry of a tree object, borrowed from its bytes.
pub(super) struct TreeEntry<'a> {
    mode: u32,
    name: &'a BStr,
    pub(super) id: ObjectId,
}

impl TreeEntry<'_> {
    fn kind(&self) -> ObjectType {
        match self.mode {
            0o040_000 => ObjectType::Tree,
            0o160_000 => ObjectType::Commit,
            _ => ObjectType::Blob,
        }
    }

    /// Git sorts a directory as if its name ended in `/` (git's `base_name_compare`).
    fn sort_key(&self) -> Vec<u8> {
        let mut key = self.name.to_vec();
        if self.kind() == ObjectType::Tree {
            key.push(b'/');
        }
        key
    }
}

/// Reads a tree object: `mode name NUL id`, over and over (git's `tree-walk.c`).
pub(super) fn tree_entries(mut bytes: &[u8]) -> Result<Vec<TreeEntry<'_>>> {
    let broken = || anyhow!("a tree object is broken");
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (mode, rest) = bytes.split_once_str(" ").ok_or_else(broken)?;
        let (name, rest) = rest.split_once_str("\0").ok_or_else(broken)?;
        let (id, rest) = rest.split_at_checked(20).ok_or_else(broken)?;
        let mode =
            u32::from_str_radix(mode.to_str().map_err(|_| broken())?, 8).map_err(|_| broken())?;
        entries.push(TreeEntry {
            mode,
            name: name.as_bstr(),
            id: ObjectId::from_bytes(id)?,
        });
        bytes = rest;
    }
    Ok(entries)
}

fn tree_bytes(entries: &[TreeEntry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 48);
    for entry in entries {
        bytes.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
        bytes.extend_from_slice(entry.name);
        bytes.push(0);
        bytes.extend_from_slice(entry.id.as_bytes());
    }
    bytes
}
