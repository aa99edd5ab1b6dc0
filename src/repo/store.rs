//! An open repository and its objects as bytes.
//!
//! Hides packs, alternates, partial clones, and whether what is written is kept.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use bstr::ByteSlice;
use git2::{ErrorCode, ObjectType, Repository};

use crate::error::Refusal;
use crate::exec::Task;

/// The name of an object: a commit, a tree or a blob.
pub type ObjectId = git2::Oid;

/// Objects written while this priority is in use land in memory: above libgit2's own backends (1 and 2).
const IN_MEMORY_PRIORITY: i32 = 1000;

/// An open repository. One a thread.
pub struct Repo {
    pub(super) git: Repository,
    pub(super) in_memory: bool,
    object_dirs: OnceCell<Vec<PathBuf>>,
    /// Objects that were read or written already: a series reads the same few files again and again.
    known: RefCell<HashMap<ObjectId, Object>>,
    /// Which commits others can have, as far as that was asked.
    pub(super) published: RefCell<HashMap<ObjectId, bool>>,
}

/// An object's kind and bytes.
pub(super) type Object = (ObjectType, Rc<[u8]>);

/// A chain of borrowing repositories is not followed further than this.
const MOST_DIRS: usize = 16;

/// Objects larger than this are not kept, nor more than this many.
const KNOWN_BYTES: usize = 1 << 20;
const KNOWN_OBJECTS: usize = 256;

impl Repo {
    fn of(git: Repository) -> Self {
        // Like git, which checks what it reads against its name only in `git fsck`; a fifth of a run was spent on it.
        git2::opts::strict_hash_verification(false);
        Self {
            git,
            in_memory: false,
            object_dirs: OnceCell::new(),
            known: RefCell::default(),
            published: RefCell::default(),
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

    /// The directory that the objects and refs are in: of a linked work tree, that of the repository it belongs to.
    #[must_use]
    pub fn common_path(&self) -> &Path {
        self.git.commondir()
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

    /// A blob's content.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        Ok(self.object(id)?.1.to_vec())
    }

    /// A blob's content, for who reads many files once: it is not kept.
    pub fn blob_once(&self, id: ObjectId) -> Result<Vec<u8>> {
        Ok(self.read(id)?.1)
    }

    /// Fetches those of these objects that a partial clone left out, all in one go: asked for one by one, each costs a connection.
    pub fn fetch_missing(&self, ids: &[ObjectId]) -> Result<()> {
        let Some(remote) = self.promisor() else {
            return Ok(());
        };
        let odb = self.git.odb().context("cannot open the object database")?;
        let missing = ids.iter().filter(|id| !odb.exists(**id));
        let missing: Vec<_> = missing.map(|id| format!("{id}\n")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        // As git itself fetches what it misses (git's `promisor-remote.c`).
        Task::git()
            .arg("--git-dir")
            .arg(self.path())
            .args(["-c", "fetch.negotiationAlgorithm=noop", "fetch", &remote])
            .args([
                "--no-tags",
                "--no-write-fetch-head",
                "--recurse-submodules=no",
            ])
            .args(["--filter=blob:none", "--stdin"])
            .input(missing.concat())
            .output()
            .with_context(|| {
                Refusal::tool(format!(
                    "{} objects are missing from the partial clone `{}`",
                    missing.len(),
                    self.path().display()
                ))
                .hint("check that its remote can be reached, or fetch without `--filter`")
            })?;
        odb.refresh()
            .context("cannot look at the object database again")
    }

    /// The remote that has promised the objects that are not here.
    fn promisor(&self) -> Option<String> {
        let config = self.git.config().ok()?;
        if let Ok(remote) = config.get_string("extensions.partialclone") {
            return Some(remote);
        }
        let mut entries = config.entries(Some("remote\\..*\\.promisor")).ok()?;
        let name = entries.next()?.ok()?.name().ok()?.to_owned();
        let name = name.strip_prefix("remote.")?.strip_suffix(".promisor");
        name.map(str::to_owned)
    }

    /// An object's kind and bytes. What a partial clone left out is fetched by git, which can; libgit2 cannot.
    pub(super) fn object(&self, id: ObjectId) -> Result<Object> {
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

    /// The same of an object that is not asked for again.
    pub(super) fn read(&self, id: ObjectId) -> Result<(ObjectType, Vec<u8>)> {
        if let Some(object) = self.loose(id)? {
            return Ok(object);
        }
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
        Task::git_remote(self.path())?
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

    /// An object that is in a file of its own, here or in a repository that this one borrows from; `None` where it is not. One that was cut
    /// short is refused: libgit2 waits for the rest of it for ever.
    pub(super) fn loose(&self, id: ObjectId) -> Result<Option<(ObjectType, Vec<u8>)>> {
        let name = id.to_string();
        let (fan, rest) = name.split_at(2);
        let dirs = self.object_dirs().iter();
        let Some(file) = dirs
            .map(|dir| dir.join(fan).join(rest))
            .find_map(|it| File::open(it).ok())
        else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = flate2::read::ZlibDecoder::new(file).read_to_end(&mut bytes);
        let object = read.ok().and_then(|_| {
            let (head, body) = bytes.split_once_str("\0")?;
            let (kind, size) = head.split_once_str(" ")?;
            let size: usize = size.to_str().ok()?.parse().ok()?;
            let kind = ObjectType::from_str(kind.to_str().ok()?)?;
            (size == body.len()).then(|| (kind, body.to_vec()))
        });
        object.map(Some).ok_or_else(|| {
            Refusal::tool(format!(
                "object {id} of `{}` is damaged: its file is cut short, or is none of git's",
                self.path().display()
            ))
            .hint("`git fsck` tells what else is wrong with the repository; `git fetch` gets a lost object again once its file is gone")
            .into()
        })
    }

    /// The directories that objects are in: the repository's own, and those that it borrows from.
    #[must_use]
    pub fn object_dirs(&self) -> &[PathBuf] {
        self.object_dirs.get_or_init(|| {
            let mut dirs = vec![self.common_path().join("objects")];
            let mut at = 0;
            while at < dirs.len() && dirs.len() < MOST_DIRS {
                let list = fs::read(dirs[at].join("info/alternates")).unwrap_or_default();
                let lines = list
                    .lines()
                    .filter(|line| !line.is_empty() && line[0] != b'#');
                let new: Vec<_> = lines
                    .map(|line| dirs[at].join(line.to_path_lossy()))
                    .collect();
                dirs.extend(new);
                at += 1;
            }
            dirs
        })
    }

    /// Whether a remote has promised the objects that are not here.
    fn is_partial(&self) -> bool {
        self.promisor().is_some()
    }

    /// How many of these objects a partial clone left out.
    pub fn missing(&self, ids: impl Iterator<Item = ObjectId>) -> Result<usize> {
        if !self.is_partial() {
            return Ok(0);
        }
        let odb = self.git.odb().context("cannot open the object database")?;
        Ok(ids.filter(|id| !odb.exists(*id)).count())
    }

    /// Reads the difference between two blobs. For `diff`. It is made in a repository that has nothing but the objects: no configuration, and
    /// no work tree, whose index libgit2 would read to look for attributes.
    pub(crate) fn with_patch<T>(
        &self,
        (old, new): (ObjectId, ObjectId),
        options: &mut git2::DiffOptions,
        read: impl FnOnce(&git2::Patch<'_>) -> Result<T>,
    ) -> Result<T> {
        let odb = self.git.odb().context("cannot open the object database")?;
        let objects = git2::Repository::from_odb(odb).context("cannot use the object database")?;
        let blob = |id| {
            objects
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

    /// Writes an object of any kind; the bytes are its whole content.
    pub(super) fn write(&self, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId> {
        let odb = self.git.odb().context("cannot open the object database")?;
        odb.write(kind, bytes).with_context(|| self.not_written())
    }

    pub(super) fn not_written(&self) -> Refusal {
        Refusal::tool(format!(
            "cannot write an object to `{}`",
            self.path().display()
        ))
        .hint("check the permissions and the free space; without `--ref` nothing is written there")
    }
}

/// The id that git gives a blob with this content.
#[must_use]
pub fn blob_id(bytes: &[u8]) -> ObjectId {
    ObjectId::hash_object(ObjectType::Blob, bytes).unwrap_or(ObjectId::ZERO_SHA1)
}

fn not_opened(path: &Path, error: &git2::Error) -> anyhow::Error {
    let hint = match error.code() {
        ErrorCode::NotFound => "name a git repository with `--tree`; a bare one will do",
        ErrorCode::Owner => {
            "it belongs to another user: `git config --global --add safe.directory` allows it"
        }
        _ if error.class() == git2::ErrorClass::Config => {
            "mend the file that the message names; `git config --list` reads it, too"
        }
        _ if error.message().contains("partialclone") => {
            "in it, `git config remote.origin.promisor true` and `git config --unset extensions.partialClone` say the same as git does since 2.24 (for the remote that it names)"
        }
        _ if error.message().contains("object format") => {
            "objects with sha256 names cannot be read; `git archive --prefix=linux/ --output=base.tar HEAD` there and `reroll base add NAME base.tar` import its files as a base"
        }
        _ => "a repository with reftable refs cannot be read; clone it with `--ref-format=files`",
    };
    Refusal::usage(format!(
        "cannot open `{}` as a git repository: {}",
        path.display(),
        error.message()
    ))
    .hint(hint)
    .into()
}
