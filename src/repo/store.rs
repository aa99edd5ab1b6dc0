//! A git repository as the source of bases and the sink of commits; knows git2.
//!
//! Hides object storage: packs, alternates, partial clones, and whether what is written is kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use bstr::{BStr, BString, ByteSlice};
use git2::{ErrorCode, ObjectType, Repository};

use crate::error::Refusal;
use crate::exec::Task;
use crate::ui::shown_text;

/// The name of an object: a commit, a tree or a blob.
pub type ObjectId = git2::Oid;

/// A regular file's mode.
pub const MODE_FILE: u32 = 0o100_644;

/// Objects written while this priority is in use land in memory: above libgit2's own backends (1 and 2).
const IN_MEMORY_PRIORITY: i32 = 1000;

/// A trailer in the message of commits that reroll made from a directory, a tarball or a package:
/// no official tree has such a commit.
pub const IMPORT_TRAILER: &str = "Reroll-import:";

/// An open repository. One a thread.
pub struct Repo {
    git: Repository,
    in_memory: bool,
    /// Objects that were read or written already: a series reads the same few files again and again.
    known: RefCell<HashMap<ObjectId, Object>>,
}

/// An object's kind and bytes.
type Object = (ObjectType, Rc<[u8]>);

/// Objects larger than this are not kept, nor more than this many.
const KNOWN_BYTES: usize = 1 << 20;
const KNOWN_OBJECTS: usize = 256;

/// One revision of a kernel, read-only: what a series is regenerated on.
#[derive(Debug, Clone)]
pub struct Base {
    /// The revision as the user named it.
    pub rev: String,
    /// The commit.
    pub commit_id: ObjectId,
    /// Its tree.
    pub tree_id: ObjectId,
    /// Whether a tree that others have may hold this commit. An import made from a directory, a tarball or a package
    /// has no parent, and its id means nothing to anybody else.
    pub official: bool,
    /// The committer's time, seconds since 1970.
    pub time: i64,
}

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

/// A person at a time, as git records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name; bytes, since git does not check it.
    pub name: BString,
    /// The address.
    pub email: BString,
    /// Seconds since 1970.
    pub time: i64,
    /// Minutes east of UTC.
    pub offset: i32,
}

/// A commit as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree_id: ObjectId,
    /// Its parents, first parent first.
    pub parent_ids: Vec<ObjectId>,
    /// Who wrote it.
    pub author: Signature,
    /// Who committed it.
    pub committer: Signature,
    /// The whole message.
    pub message: BString,
}

impl Commit {
    /// The message's first paragraph on one line, as git shows it.
    #[must_use]
    pub fn subject(&self) -> BString {
        let lines = self.message.trim_start().lines();
        let first = lines.take_while(|line| !line.trim().is_empty());
        bstr::join(" ", first.map(ByteSlice::trim)).into()
    }
}

impl Repo {
    fn of(git: Repository) -> Self {
        // Like git, which checks what it reads against its name only in `git fsck`; a fifth of a run was spent on it.
        git2::opts::strict_hash_verification(false);
        Self {
            git,
            in_memory: false,
            known: RefCell::default(),
        }
    }

    /// Opens the repository at `path`: a work tree, a linked work tree, or a bare one.
    pub fn open(path: &Path) -> Result<Self> {
        let git = Repository::open(path).map_err(|error| not_opened(path, &error))?;
        Ok(Self::of(git))
    }

    /// Opens the repository that `dir` lies in, as git finds it; none is `None`.
    pub fn discover(dir: &Path) -> Result<Option<Self>> {
        match Repository::discover(dir) {
            Ok(git) => Ok(Some(Self::of(git))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(not_opened(dir, &error)),
        }
    }

    /// Makes a bare repository at `path`, or opens the one that is there.
    pub fn init_bare(path: &Path) -> Result<Self> {
        let git = Repository::init_bare(path).map_err(|error| {
            Refusal::tool(format!(
                "cannot make a repository at `{}`: {}",
                path.display(),
                error.message()
            ))
        })?;
        Ok(Self::of(git))
    }

    /// The repository's own directory (`.git`, or the bare repository).
    #[must_use]
    pub fn path(&self) -> &Path {
        self.git.path()
    }

    /// The work tree's root, if there is one.
    #[must_use]
    pub fn work_tree(&self) -> Option<PathBuf> {
        self.git.workdir().map(Path::to_owned)
    }

    /// From now on what is written stays in memory and is gone when the repository is closed.
    pub fn keep_in_memory(&mut self) -> Result<()> {
        let odb = self.git.odb().context("cannot open the object database")?;
        odb.add_new_mempack_backend(IN_MEMORY_PRIORITY)
            .context("cannot add an in-memory object database")?;
        self.in_memory = true;
        Ok(())
    }

    /// Resolves `rev` (any of git's spellings) to a commit.
    pub fn base(&self, rev: &str) -> Result<Base> {
        let object = self.git.revparse_single(rev).map_err(|error| {
            let repo = self.path().display();
            Refusal::usage(format!(
                "`{}` is no revision of `{repo}`: {}",
                shown_text(rev.as_bytes()),
                shown_text(error.message().as_bytes())
            ))
            .hint("`--base` takes a tag, a branch or a commit, as `git rev-parse` does")
        })?;
        let object_id = object.id();
        let commit = object.peel_to_commit().map_err(|_| {
            Refusal::usage(format!(
                "`{}` ({object_id}) is not a commit",
                shown_text(rev.as_bytes())
            ))
            .hint("`--base` takes a tag, a branch or a commit, as `git rev-parse` does")
        })?;
        Ok(Base {
            rev: rev.to_owned(),
            commit_id: commit.id(),
            tree_id: commit.tree_id(),
            official: is_official(&commit),
            time: commit.committer().when().seconds(),
        })
    }

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

    /// A blob's content.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        Ok(self.object(id)?.1.to_vec())
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

    /// An object's kind and bytes. What a partial clone left out is fetched by git, which can; libgit2 cannot.
    fn object(&self, id: ObjectId) -> Result<Object> {
        if let Some(known) = self.known.borrow().get(&id) {
            return Ok(known.clone());
        }
        let (kind, bytes) = self.read(id)?;
        let object = (kind, Rc::from(bytes));
        self.remember(id, &object);
        Ok(object)
    }

    fn remember(&self, id: ObjectId, object: &Object) {
        let mut known = self.known.borrow_mut();
        if object.1.len() <= KNOWN_BYTES && known.len() < KNOWN_OBJECTS {
            known.insert(id, object.clone());
        }
    }

    fn read(&self, id: ObjectId) -> Result<(ObjectType, Vec<u8>)> {
        let odb = self.git.odb().context("cannot open the object database")?;
        match odb.read(id) {
            Ok(object) => return Ok((object.kind(), object.data().to_vec())),
            Err(error) if error.code() == ErrorCode::NotFound && self.is_partial() => {}
            Err(error) => {
                return Err(anyhow!(error)).with_context(|| {
                    Refusal::tool(format!(
                        "cannot read object {id} of `{}`",
                        self.path().display()
                    ))
                    .hint("`git fsck` tells what is wrong with the repository")
                });
            }
        }
        Task::git()
            .arg("--git-dir")
            .arg(self.path())
            .args(["cat-file", "-e"])
            .arg(id.to_string())
            .output()
            .with_context(|| {
                Refusal::tool(format!(
                    "object {id} is missing from the partial clone `{}`",
                    self.path().display()
                ))
                .hint("check that its remote can be reached, or fetch without `--filter`")
            })?;
        odb.refresh()
            .context("cannot look at the object database again")?;
        let object = odb
            .read(id)
            .with_context(|| format!("git fetched object {id}, but it cannot be read"))?;
        Ok((object.kind(), object.data().to_vec()))
    }

    /// Whether a remote has promised the objects that are not here.
    fn is_partial(&self) -> bool {
        let Ok(config) = self.git.config() else {
            return false;
        };
        if config.get_string("extensions.partialclone").is_ok() {
            return true;
        }
        config
            .entries(Some("remote\\..*\\.promisor"))
            .is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Reads the difference between two blobs, whose names no configuration and no attribute knows. For `diff`.
    pub(crate) fn with_patch<T>(
        &self,
        (old, new): (ObjectId, ObjectId),
        options: &mut git2::DiffOptions,
        read: impl FnOnce(&git2::Patch<'_>) -> Result<T>,
    ) -> Result<T> {
        let blob = |id| {
            self.git
                .find_blob(id)
                .with_context(|| format!("blob {id} is gone"))
        };
        let (old, new) = (blob(old)?, blob(new)?);
        let patch = git2::Patch::from_blobs(&old, None, &new, None, Some(options));
        read(&patch.context("libgit2 cannot diff two blobs")?)
    }

    /// Writes a blob.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<ObjectId> {
        let id = self.git.blob(bytes).with_context(|| self.not_written())?;
        self.remember(id, &(ObjectType::Blob, Rc::from(bytes)));
        Ok(id)
    }

    /// A copy of `tree_id` in which each path has this mode and blob. Directories come into being as needed.
    pub fn write_tree(
        &self,
        tree_id: ObjectId,
        files: &[(&BStr, u32, ObjectId)],
    ) -> Result<ObjectId> {
        self.rebuild(Some(tree_id), files)
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
                TreeEntry {
                    mode: 0o040_000,
                    name,
                    id: self.rebuild(old, &here)?,
                }
            } else {
                rest.remove(0);
                TreeEntry { mode, name, id }
            };
            match place {
                Some(place) => entries[place] = new,
                None => entries.push(new),
            }
        }
        entries.sort_by_key(TreeEntry::sort_key);
        let odb = self.git.odb().context("cannot open the object database")?;
        odb.write(ObjectType::Tree, &tree_bytes(&entries))
            .with_context(|| self.not_written())
    }

    /// Writes a commit; no ref learns of it. The committer is the author.
    pub fn write_commit(
        &self,
        tree_id: ObjectId,
        parent_id: Option<ObjectId>,
        author: &Signature,
        message: &BStr,
    ) -> Result<ObjectId> {
        self.write_merge(tree_id, parent_id.as_slice(), author, message)
    }

    /// Writes a commit with any number of parents; no ref learns of it.
    pub fn write_merge(
        &self,
        tree_id: ObjectId,
        parent_ids: &[ObjectId],
        author: &Signature,
        message: &BStr,
    ) -> Result<ObjectId> {
        let mut bytes = format!("tree {tree_id}\n").into_bytes();
        for parent_id in parent_ids {
            bytes.extend_from_slice(format!("parent {parent_id}\n").as_bytes());
        }
        for role in ["author", "committer"] {
            bytes.extend_from_slice(role.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(&author.line());
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(message);
        let odb = self.git.odb().context("cannot open the object database")?;
        odb.write(ObjectType::Commit, &bytes)
            .with_context(|| self.not_written())
    }

    /// Copies commits, and what of theirs is not here, from `memory`: another [`Repo`] on this very repository.
    pub fn keep(&self, memory: &Self, commit_ids: &[ObjectId]) -> Result<()> {
        let (from, to) = (memory.git.odb(), self.git.odb());
        let (from, to) = (
            from.context("cannot open the object database")?,
            to.context("cannot open the object database")?,
        );
        let mut open = commit_ids.to_vec();
        let mut missing = Vec::new();
        while let Some(id) = open.pop() {
            if to.exists(id) {
                continue;
            }
            // What is in neither is a part of the base that a partial clone has left out.
            let Ok(object) = from.read(id) else { continue };
            match object.kind() {
                ObjectType::Commit => open.push(memory.commit(id)?.tree_id),
                ObjectType::Tree => {
                    open.extend(tree_entries(object.data())?.iter().map(|entry| entry.id));
                }
                _ => {}
            }
            missing.push(id);
        }
        // Children first: what is there is there with all that it needs, even if this is cut short.
        for id in missing.into_iter().rev() {
            let object = from.read(id).context("an object in memory is gone")?;
            to.write(object.kind(), object.data())
                .with_context(|| self.not_written())?;
        }
        Ok(())
    }

    /// A commit by its id.
    pub fn commit(&self, id: ObjectId) -> Result<Commit> {
        let commit = self.git.find_commit(id).with_context(|| {
            Refusal::usage(format!(
                "there is no commit {id} in `{}`",
                self.path().display()
            ))
        })?;
        Ok(Commit {
            id,
            tree_id: commit.tree_id(),
            parent_ids: commit.parent_ids().collect(),
            author: signature(&commit.author()),
            committer: signature(&commit.committer()),
            message: commit.message_raw_bytes().into(),
        })
    }

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

    /// The newest commit that two histories have in common; none for bases that were imported.
    pub fn merge_base(&self, one: ObjectId, two: ObjectId) -> Result<Option<ObjectId>> {
        match self.git.merge_base(one, two) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error).context("cannot compare two histories"),
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

    fn not_written(&self) -> Refusal {
        Refusal::tool(format!(
            "cannot write an object to `{}`",
            self.path().display()
        ))
        .hint("check the permissions and the free space; without `--ref` nothing is written there")
    }
}

impl Signature {
    /// As a commit object holds it: `Name <address> seconds +hhmm`.
    fn line(&self) -> Vec<u8> {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs();
        let when = format!(
            "> {} {sign}{:02}{:02}",
            self.time,
            minutes / 60,
            minutes % 60
        );
        [&self.name[..], b" <", &self.email[..], when.as_bytes()].concat()
    }
}

/// Whether git takes this for the whole name of a ref.
#[must_use]
pub fn is_ref_name(name: &str) -> bool {
    name.starts_with("refs/") && git2::Reference::is_valid_name(name)
}

/// The id that git gives a blob with this content.
#[must_use]
pub fn blob_id(bytes: &[u8]) -> ObjectId {
    ObjectId::hash_object(ObjectType::Blob, bytes).unwrap_or(ObjectId::ZERO_SHA1)
}

/// One entry of a tree object, borrowed from its bytes.
struct TreeEntry<'a> {
    mode: u32,
    name: &'a BStr,
    id: ObjectId,
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
fn tree_entries(mut bytes: &[u8]) -> Result<Vec<TreeEntry<'_>>> {
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

/// A commit without a parent that holds a kernel was imported; git's own history of the kernel starts in 2005.
/// The raw header is asked, since a shallow clone hides parents.
fn is_official(commit: &git2::Commit<'_>) -> bool {
    let has_parent = commit
        .raw_header_bytes()
        .lines()
        .any(|line| line.starts_with(b"parent "));
    has_parent && !commit.message_raw_bytes().contains_str(IMPORT_TRAILER)
}

fn signature(signature: &git2::Signature<'_>) -> Signature {
    Signature {
        name: signature.name_bytes().into(),
        email: signature.email_bytes().into(),
        time: signature.when().seconds(),
        offset: signature.when().offset_minutes(),
    }
}

fn not_a_ref(name: &str) -> anyhow::Error {
    Refusal::usage(format!(
        "`{}` is no name of a ref",
        shown_text(name.as_bytes())
    ))
    .hint("write it in full, such as `refs/heads/series`")
    .into()
}

fn not_opened(path: &Path, error: &git2::Error) -> anyhow::Error {
    let hint = match error.code() {
        ErrorCode::NotFound => "name a git repository with `--tree`; a bare one will do",
        ErrorCode::Owner => {
            "it belongs to another user: `git config --global --add safe.directory` allows it"
        }
        _ => {
            "repositories with sha256 objects or reftable refs cannot be read; clone with `--ref-format=files`"
        }
    };
    Refusal::usage(format!(
        "cannot open `{}` as a git repository: {}",
        path.display(),
        error.message()
    ))
    .hint(hint)
    .into()
}
