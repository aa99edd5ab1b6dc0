//! Where kernels are built: exported sources, build directories and locks, all below one directory of the cache.
//!
//! Hides how a tree with a patch on top comes to be without a copy of the tree, and what survives a kill: a source
//! appears whole or not at all, and a build directory that somebody was killed in is built anew.

mod prune;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};

use crate::error::Refusal;
use crate::exec::{Task, check_interrupted};
use crate::lock::{Hold, Lock, Waiting};
use crate::repo::{self, ObjectId, Repo};
use crate::temporary;
use crate::ui::shown_text;

pub use prune::{Mode, Pruned, Pruning, prune_files};

/// The content of some paths of a tree; `None` is a path that is not there.
pub type Files = BTreeMap<BString, Option<repo::File>>;

/// A directory in the cache for sources and builds.
#[derive(Debug, Clone)]
pub struct Lab {
    root: PathBuf,
    /// Shared locks on the sources that were asked for: nobody prunes them under this run.
    sources: Arc<Mutex<BTreeMap<PathBuf, Lock>>>,
}

/// A source tree with some files of its own, and the `O=` directory that is built from it. Locked while it lives.
#[derive(Debug)]
pub struct BuildDir {
    root: PathBuf,
    lock: Lock,
}

/// A tree of links into a source, in which only some files are real and can change.
#[derive(Debug)]
pub struct Overlay {
    root: PathBuf,
    paths: BTreeSet<BString>,
}

/// What the name of a directory that is not whole yet, or not any more, ends in.
const PARTIAL: &str = "partial";

/// Mode bits of a symbolic link in git.
const MODE_LINK: u32 = 0o120_000;

impl Lab {
    /// The lab at `root`, made as needed.
    pub fn open(root: &Path) -> Result<Self> {
        for part in ["source", "build", "outcome", "run"] {
            let dir = root.join(part);
            fs::create_dir_all(&dir).with_context(|| not_written(&dir))?;
        }
        let root = root.canonicalize().with_context(|| not_written(root))?;
        // Kbuild refuses these, and make cannot quote them.
        if root
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| b" :\t\n'\"$#\\".contains(byte))
        {
            return Err(Refusal::usage(format!(
                "kernels cannot be built below `{}`",
                root.display()
            ))
            .hint("choose a cache directory without blanks, colons and quotes (XDG_CACHE_HOME)")
            .into());
        }
        let sources = Arc::default();
        Ok(Self { root, sources })
    }

    /// Where outcomes are kept.
    #[must_use]
    pub fn outcomes(&self) -> PathBuf {
        self.root.join("outcome")
    }

    /// A new directory for the logs of one run; of older ones the newest few stay.
    pub fn new_run(&self) -> Result<PathBuf> {
        const KEPT: usize = 20;
        let runs = self.root.join("run");
        let mut old: Vec<_> = fs::read_dir(&runs)
            .with_context(|| not_written(&runs))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        old.sort();
        let surplus = old.len().saturating_sub(KEPT);
        for run in &old[..surplus] {
            // A log that stays is no harm.
            let _ = fs::remove_dir_all(run);
        }
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3f");
        let run = runs.join(format!("{now}-{}", std::process::id()));
        fs::create_dir_all(&run).with_context(|| not_written(&run))?;
        Ok(run)
    }

    /// A directory called `name` that holds these files; it appears whole or not at all.
    pub fn keep<'a>(
        &self,
        name: &str,
        files: impl Iterator<Item = (&'a Path, &'a [u8])>,
    ) -> Result<PathBuf> {
        let dir = self.root.join(name);
        let _lock = lock(&dir)?;
        if dir.is_dir() {
            return Ok(dir);
        }
        let partial = dir.with_extension(PARTIAL);
        remove_dir(&partial)?;
        for (path, bytes) in files {
            let file = partial.join(path);
            let parent = file.parent().unwrap_or(&partial);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&file, bytes))
                .with_context(|| not_written(&file))?;
        }
        fs::rename(&partial, &dir).with_context(|| not_written(&dir))?;
        Ok(dir)
    }

    /// The source of `tree_id`, exported once: never write to it. `progress` hears of files done and of all.
    pub fn source(
        &self,
        git_dir: &Path,
        tree_id: ObjectId,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<PathBuf> {
        let source = self.root.join("source").join(tree_id.to_string());
        let lock_file = lock_file(&source);
        let mut waiting = Waiting::new(&lock_file, &uses(&source));
        while !self.sources().contains_key(&source) {
            let hold = if source.is_dir() {
                Hold::Shared
            } else {
                Hold::Alone
            };
            let lock = Lock::try_take(&lock_file, hold).with_context(|| not_written(&source))?;
            let Some(lock) = lock else {
                waiting.pause()?;
                continue;
            };
            match (hold, source.is_dir()) {
                (Hold::Shared, true) => {
                    lock.stamp();
                    self.sources().insert(source.clone(), lock);
                }
                (Hold::Alone, false) => {
                    let partial = source.with_extension(PARTIAL);
                    remove_dir(&partial)?;
                    export(git_dir, tree_id, &partial, progress)?;
                    fs::rename(&partial, &source).with_context(|| not_written(&source))?;
                }
                // It came, or went, before it was locked.
                (Hold::Shared, false) | (Hold::Alone, true) => {}
            }
        }
        Ok(source)
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Lock>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The build directory called `key`, with a source that differs from `source` in at most the paths of `base`.
    pub fn build_dir(&self, key: &str, source: &Path, base: &Files) -> Result<BuildDir> {
        let root = self.root.join("build").join(key);
        let lock = lock(&root)?;
        lock.stamp();
        let dir = BuildDir { root, lock };
        if !dir.ready().is_file() || dir.busy().is_file() || !dir.source().is_dir() {
            remove_dir(&dir.root)?;
            fs::create_dir_all(dir.objects()).with_context(|| not_written(&dir.root))?;
            shadow(source, &dir.source(), base)?;
        }
        dir.put(base)?;
        Ok(dir)
    }
}

impl Overlay {
    /// A new one at `root` over `source`, in which these files can change; what they are is [`Self::put`].
    pub fn new(source: &Path, root: &Path, files: &Files) -> Result<Self> {
        shadow(source, root, files)?;
        let overlay = Self {
            root: root.to_owned(),
            paths: files.keys().cloned().collect(),
        };
        overlay.put(files)?;
        Ok(overlay)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Makes files be these. Another path than it was made for would be written into the source, through a link.
    pub fn put(&self, files: &Files) -> Result<()> {
        for (path, file) in files {
            anyhow::ensure!(self.paths.contains(path), "`{path}` cannot change here");
            put(&self.root.join(path.to_path()?), file.as_ref())?;
        }
        Ok(())
    }
}

impl BuildDir {
    /// The source tree to build from.
    #[must_use]
    pub fn source(&self) -> PathBuf {
        self.root.join("src")
    }

    /// The `O=` directory.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.root.join("obj")
    }

    /// A place for what is kept of the builds: `p0`, `p1` ...
    #[must_use]
    pub fn kept(&self, number: usize) -> PathBuf {
        self.root.join(format!("p{number}"))
    }

    /// Whether an earlier run has prepared it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready().is_file()
    }

    /// Says that it is prepared.
    pub fn set_ready(&self) -> Result<()> {
        File::create(self.ready())
            .map(drop)
            .with_context(|| not_written(&self.root))
    }

    /// Makes the source's files be these. What is equal already keeps its time, so that only what changed is built.
    pub fn put(&self, files: &Files) -> Result<()> {
        for (path, file) in files {
            put(&self.source().join(path.to_path()?), file.as_ref())?;
        }
        Ok(())
    }

    /// Makes files of the source new, so that what depends on them is built again whatever was built before.
    pub fn touch(&self, files: &Files) -> Result<()> {
        let now = std::time::SystemTime::now();
        for (path, file) in files {
            let path = self.source().join(path.to_path()?);
            // What is a link leads to the source that others build from, too.
            let is_own = path.symlink_metadata().is_ok_and(|it| it.is_file());
            if file.is_none() || !is_own {
                continue;
            }
            let opened = OpenOptions::new().write(true).open(&path);
            opened
                .and_then(|it| it.set_modified(now))
                .with_context(|| not_written(&path))?;
        }
        Ok(())
    }

    /// Runs a child that writes here. One that is killed together with us leaves a mark, and the directory is built
    /// anew; one that outlives us keeps the lock until it has ended.
    pub fn run(&self, task: Task) -> Result<crate::exec::Output> {
        let mark = || not_written(&self.root);
        File::create(self.busy()).with_context(mark)?;
        let output = task.holding(self.lock()?).run()?;
        fs::remove_file(self.busy()).with_context(mark)?;
        Ok(output)
    }

    /// Runs a child that writes only beside what kbuild made; a kill does no harm.
    pub fn run_with_output(&self, task: Task) -> Result<crate::exec::Output> {
        task.holding(self.lock()?).run()
    }

    /// The lock for a child to hold as well.
    fn lock(&self) -> Result<File> {
        let lock = self.lock.file().try_clone();
        lock.context("cannot hand a lock to a child")
    }

    fn ready(&self) -> PathBuf {
        self.root.join("ready")
    }

    fn busy(&self) -> PathBuf {
        self.root.join("busy")
    }
}

/// The lock on a directory of the lab, once nobody else has it.
fn lock(dir: &Path) -> Result<Lock> {
    Lock::take(&lock_file(dir), Hold::Alone, &uses(dir), || {
        not_written(dir)
    })
}

/// The file beside a directory that is locked for it.
fn lock_file(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// What is said of whoever has the lock on a directory.
fn uses(dir: &Path) -> String {
    format!("uses `{}`", dir.display())
}

/// Refuses a path of a tree that would land outside of it, or in git's own directory.
pub fn safe_path(path: &BStr) -> Result<()> {
    let bad = |part: &[u8]| {
        matches!(part, b"" | b"." | b"..")
            || part.eq_ignore_ascii_case(b".git")
            || part.contains(&0)
    };
    if path.split_str("/").any(bad) {
        return Err(
            Refusal::usage(format!("`{}` is no path inside a tree", shown_text(path))).into(),
        );
    }
    Ok(())
}

/// Writes all files of a tree below `dir`, by several threads: git's own checkout would run the repository's filters.
fn export(
    git_dir: &Path,
    tree_id: ObjectId,
    dir: &Path,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<()> {
    let files = Repo::open(git_dir)?.files(tree_id)?;
    let parents: BTreeSet<_> = files.iter().map(|(path, ..)| parent(path)).collect();
    for parent in parents {
        let dir = dir.join(parent.to_path()?);
        fs::create_dir_all(&dir).with_context(|| not_written(&dir))?;
    }
    let next = AtomicUsize::new(0);
    let worker = || -> Result<()> {
        let repo = Repo::open(git_dir)?;
        while let Some((path, mode, id)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            check_interrupted()?;
            safe_path(path.as_bstr())?;
            let file = repo::File {
                mode: *mode,
                bytes: repo.blob(*id)?,
            };
            write_file(&dir.join(path.to_path()?), &file)?;
            progress(
                next.load(Ordering::Relaxed).min(files.len()) as u64,
                files.len() as u64,
            );
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

/// A tree of links into `source`, with real directories where `files` lie: kbuild sees a whole source tree, of which
/// only these files can change.
fn shadow(source: &Path, dir: &Path, files: &Files) -> Result<()> {
    let mut real: BTreeSet<&BStr> = BTreeSet::from([BStr::new("")]);
    for path in files.keys() {
        let mut above = parent(path);
        while !above.is_empty() {
            real.insert(above);
            above = parent(above);
        }
    }
    for &path in &real {
        let (from, to) = (source.join(path.to_path()?), dir.join(path.to_path()?));
        fs::create_dir_all(&to).with_context(|| not_written(&to))?;
        let Ok(entries) = fs::read_dir(&from) else {
            continue;
        };
        for entry in entries {
            let name = entry.with_context(|| not_written(&to))?.file_name();
            let below = [path.as_bytes(), name.as_bytes()];
            let below: BString = if path.is_empty() {
                name.as_bytes().into()
            } else {
                bstr::join("/", below).into()
            };
            if !real.contains(below.as_bstr()) && !files.contains_key(&below) {
                symlink(from.join(&name), to.join(&name)).with_context(|| not_written(&to))?;
            }
        }
    }
    Ok(())
}

/// Makes `path` be `file`, by a rename, unless it is so already.
fn put(path: &Path, file: Option<&repo::File>) -> Result<()> {
    let Some(file) = file else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| not_written(path))
            }
            _ => Ok(()),
        };
    };
    if is_file(path, file) {
        return Ok(());
    }
    let aside = temporary::aside(path);
    write_file(&aside, file)?;
    if file.mode != MODE_LINK {
        // The clock of file systems is coarse: an object made just before must be older than this for make.
        let now = std::time::SystemTime::now();
        let opened = OpenOptions::new().write(true).open(&aside);
        opened
            .and_then(|it| it.set_modified(now))
            .with_context(|| not_written(path))?;
    }
    fs::rename(&aside, path).with_context(|| not_written(path))
}

fn is_file(path: &Path, file: &repo::File) -> bool {
    let Ok(meta) = path.symlink_metadata() else {
        return false;
    };
    let runs = meta.permissions().mode() & 0o100 != 0;
    file.mode != MODE_LINK
        && meta.is_file()
        && runs == (file.mode & 0o100 != 0)
        && fs::read(path).is_ok_and(|bytes| bytes == file.bytes)
}

pub(crate) fn write_file(path: &Path, file: &repo::File) -> Result<()> {
    let context = || not_written(path);
    if file.mode == MODE_LINK {
        return symlink(file.bytes.as_bstr().to_path()?, path).with_context(context);
    }
    let mut options = OpenOptions::new();
    let mut out = options
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(context)?;
    out.write_all(&file.bytes).with_context(context)?;
    if file.mode & 0o111 != 0 {
        out.set_permissions(fs::Permissions::from_mode(0o755))
            .with_context(context)?;
    }
    Ok(())
}

fn parent(path: &[u8]) -> &BStr {
    path.rfind_byte(b'/')
        .map_or(BStr::new(""), |slash| path[..slash].as_bstr())
}

fn remove_dir(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| not_written(path))
        }
        _ => Ok(()),
    }
}

fn not_written(path: &Path) -> Refusal {
    Refusal::tool(format!("cannot write below `{}`", path.display()))
        .hint("check the permissions and the free space; an exported kernel takes about 2 GB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        let file = |text: &str| repo::File {
            mode: repo::MODE_FILE,
            bytes: text.into(),
        };
        list.iter()
            .map(|(path, text)| ((*path).into(), Some(file(text))))
            .collect()
    }

    #[test]
    fn an_overlay_changes_its_own_files_and_never_the_source() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        for path in ["a/b", "a/c", "d/e"] {
            let path = source.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, "old").expect("a file");
        }
        let old = files(&[("a/b", "old")]);
        let overlay = Overlay::new(&source, &dir.path().join("over"), &old).expect("an overlay");
        overlay
            .put(&files(&[("a/b", "new")]))
            .expect("it is its own");
        let read = |path: PathBuf| fs::read_to_string(path).expect("a file");
        assert_eq!(read(overlay.path().join("a/b")), "new");
        assert_eq!(read(overlay.path().join("d/e")), "old");
        // Behind these are links into the source.
        for path in ["a/c", "d/e", "d/new"] {
            assert!(overlay.put(&files(&[(path, "new")])).is_err(), "{path}");
        }
        assert_eq!(read(source.join("a/b")), "old");
        assert_eq!(read(source.join("d/e")), "old");
        assert!(!source.join("d/new").exists());
    }
}
