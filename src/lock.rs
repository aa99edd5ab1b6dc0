//! Locks between runs: files that one run holds alone, or several share. A lock ends with the last process that holds it.
//!
//! Hides waiting: who waits for another run says so, once and after a while; threads of one run wait for each other in silence.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};

use crate::error::Refusal;
use crate::exec::check_interrupted;
use crate::ui::notice;

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nobody else may hold it.
    Alone,
    /// Others may share it.
    Shared,
}

/// Waits for a lock that somebody else holds.
#[derive(Debug)]
pub struct Waiting<'a> {
    /// The lock's file.
    path: &'a Path,
    /// What the other run does: `uses ...`.
    doing: String,
    since: Instant,
    told: bool,
}

/// How long between two looks at a lock that somebody else holds.
const PAUSE: Duration = Duration::from_millis(50);

/// How long somebody waits before it is said why.
const PATIENCE: Duration = Duration::from_secs(1);

/// The locks that this very process holds, and how often.
static OURS: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

impl Lock {
    /// Takes the lock file at `path`, which is made as needed, and waits for whoever has it: another run that `doing`.
    /// `broken` is what to say when the file cannot be used.
    pub fn take(
        path: &Path,
        hold: Hold,
        doing: &str,
        broken: impl Fn() -> Refusal,
    ) -> Result<Self> {
        let mut waiting = Waiting::new(path, doing);
        loop {
            if let Some(lock) = Self::try_take(path, hold).with_context(&broken)? {
                return Ok(lock);
            }
            waiting.pause()?;
        }
    }

    /// The same without waiting; `None` where somebody has it.
    pub fn try_take(path: &Path, hold: Hold) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).read(true).write(true);
        let file = options.open(path)?;
        let taken = match hold {
            Hold::Alone => file.try_lock(),
            Hold::Shared => file.try_lock_shared(),
        };
        match taken {
            Ok(()) => {
                *ours().entry(path.to_owned()).or_default() += 1;
                let path = path.to_owned();
                Ok(Some(Self { file, path }))
            }
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// The open file, for a child to hold as well.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Notes that what the lock is for is used now; see [`last_used`].
    pub fn stamp(&self) {
        // Without the stamp it counts as unused too early, which costs time and nothing else.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut ours = ours();
        if let Some(count) = ours.get_mut(&self.path) {
            *count -= 1;
        }
        ours.retain(|_, count| *count > 0);
    }
}

impl<'a> Waiting<'a> {
    /// Begins to wait for the lock file at `path`, which another run that `doing` has.
    #[must_use]
    pub fn new(path: &'a Path, doing: &str) -> Self {
        Self {
            path,
            doing: doing.to_owned(),
            since: Instant::now(),
            told: false,
        }
    }

    /// Lets a little time pass.
    pub fn pause(&mut self) -> Result<()> {
        check_interrupted()?;
        let is_ours = || ours().contains_key(self.path);
        if !self.told && self.since.elapsed() >= PATIENCE && !is_ours() {
            self.told = true;
            notice(&format!("waiting for another reroll that {}", self.doing));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }
}

/// When a lock was stamped last, or made.
pub fn last_used(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

fn ours() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_alone_or_shared_and_ends_when_it_is_dropped() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let take = |hold| Lock::try_take(&path, hold).expect("a file");
        let alone = take(Hold::Alone).expect("nobody has it");
        assert!(take(Hold::Alone).is_none());
        assert!(take(Hold::Shared).is_none());
        assert!(ours().contains_key(&path));
        drop(alone);
        assert!(!ours().contains_key(&path));
        let shared = [take(Hold::Shared), take(Hold::Shared)];
        assert!(shared.iter().all(Option::is_some));
        assert!(take(Hold::Alone).is_none());
        drop(shared);
        assert!(take(Hold::Alone).is_some());
    }
}
