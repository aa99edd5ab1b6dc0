//! Gives the space of sources and builds back that nobody has used for a while.
//!
//! Hides how a use is known (by the stamp of a lock), which source a build stands on, and what a killed run has left.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::{Lab, PARTIAL, lock_file, not_written, remove_dir};
use crate::exec::check_interrupted;
use crate::lock::{Hold, Lock, last_used};
use crate::repo::ObjectId;

/// What the blocks of a file's metadata are, in bytes, on every file system.
const BLOCK: u64 = 512;

/// Whether something is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Remove,
    /// It is only told what would be.
    Tell,
}

/// A directory that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Where it was, below the lab.
    pub path: PathBuf,
    /// How much space it took on the disk.
    pub bytes: u64,
}

/// What became of a lab.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pruning {
    /// What was removed, or would be.
    pub gone: Vec<Pruned>,
    /// How many would have gone, but are in use.
    pub in_use: usize,
}

impl Pruning {
    /// How much space all of it took.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.gone.iter().map(|pruned| pruned.bytes).sum()
    }
}

impl Lab {
    /// Removes the builds that were not used for so long, and the sources for which that is true as well, no build that stays stands
    /// on, and whose tree is not `needed`. What is locked stays. What a killed run left half-made goes at any age.
    pub fn prune(
        &self,
        needed: &BTreeSet<ObjectId>,
        unused_for: Duration,
        mode: Mode,
    ) -> Result<Pruning> {
        let mut pruner = Pruner {
            lab: self,
            before: SystemTime::now().checked_sub(unused_for),
            mode,
            pruning: Pruning::default(),
        };
        let mut stays: BTreeSet<_> = needed.iter().map(ToString::to_string).collect();
        for build in directories(&self.root.join("build"))? {
            if !pruner.prune(&build)? {
                stays.extend(self.source_of(&build));
            }
        }
        for source in directories(&self.root.join("source"))? {
            let name = source.file_name().unwrap_or_default().to_string_lossy();
            if !stays.contains(name.as_ref()) {
                pruner.prune(&source)?;
            }
        }
        Ok(pruner.pruning)
    }

    /// The name of the source that the links of a build lead to.
    fn source_of(&self, build: &Path) -> Option<String> {
        let entries = fs::read_dir(build.join("src")).ok()?;
        let sources = self.root.join("source");
        entries.flatten().find_map(|entry| {
            let link = fs::read_link(entry.path()).ok()?;
            let name = link.strip_prefix(&sources).ok()?.iter().next()?;
            Some(name.to_str()?.to_owned())
        })
    }
}

/// Removes the files in a directory of the cache that were made so long ago: what is known of trees, which is found out again. Nobody locks
/// them: they are read whole, and made aside.
pub fn prune_files(dir: &Path, made_before: Duration, mode: Mode) -> Result<Pruning> {
    let before = SystemTime::now().checked_sub(made_before);
    let mut bytes = 0;
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Pruning::default()),
        Err(error) => return Err(error).with_context(|| not_written(dir)),
    };
    for entry in entries {
        let path = entry.with_context(|| not_written(dir))?.path();
        let found = path.symlink_metadata();
        let Some(found) = found.ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        let is_old = found
            .modified()
            .is_ok_and(|made| before.is_some_and(|it| made <= it));
        if !is_old {
            continue;
        }
        bytes += found.blocks() * BLOCK;
        if mode == Mode::Remove {
            fs::remove_file(&path).with_context(|| not_written(&path))?;
        }
    }
    let name = dir.file_name().unwrap_or_default();
    let gone = Pruned {
        path: name.into(),
        bytes,
    };
    Ok(Pruning {
        gone: (bytes > 0).then_some(gone).into_iter().collect(),
        in_use: 0,
    })
}

/// A pruning on its way.
struct Pruner<'a> {
    lab: &'a Lab,
    /// What was used after this stays; `None`: everything was.
    before: Option<SystemTime>,
    mode: Mode,
    pruning: Pruning,
}

impl Pruner<'_> {
    /// Removes a directory if it may go; whether it may.
    fn prune(&mut self, dir: &Path) -> Result<bool> {
        let whole = dir.with_extension("");
        let may_go = || dir != whole || self.is_unused(dir);
        if !may_go() {
            return Ok(false);
        }
        let lock = Lock::try_take(&lock_file(&whole), Hold::Alone);
        let Some(_lock) = lock.with_context(|| not_written(dir))? else {
            self.pruning.in_use += 1;
            return Ok(false);
        };
        // Somebody may have used it, or finished it, before it was locked.
        if !dir.is_dir() || !may_go() {
            return Ok(false);
        }
        let bytes = space(dir)?;
        if self.mode == Mode::Remove {
            remove(dir)?;
        }
        let path = dir.strip_prefix(&self.lab.root).unwrap_or(dir).to_owned();
        self.pruning.gone.push(Pruned { path, bytes });
        Ok(true)
    }

    fn is_unused(&self, dir: &Path) -> bool {
        let used = last_used(&lock_file(dir)).or_else(|_| last_used(dir));
        used.is_ok_and(|used| self.before.is_some_and(|before| used <= before))
    }
}

/// Takes the name away first: nobody may find half of it.
fn remove(dir: &Path) -> Result<()> {
    let partial = dir.with_extension(PARTIAL);
    if dir != partial {
        remove_dir(&partial)?;
        fs::rename(dir, &partial).with_context(|| not_written(dir))?;
    }
    remove_dir(&partial)
}

/// The directories in a directory, sorted by name.
fn directories(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| not_written(dir))? {
        let entry = entry.with_context(|| not_written(dir))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// How much space a directory takes, with all that is below it. Links are not followed.
fn space(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        check_interrupted()?;
        let found = path
            .symlink_metadata()
            .with_context(|| not_written(&path))?;
        bytes += found.blocks() * BLOCK;
        if found.is_dir() {
            let entries = fs::read_dir(&path).with_context(|| not_written(&path))?;
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    Ok(bytes)
}
