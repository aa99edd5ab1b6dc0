//! What earlier runs found, kept by everything that it depends on.
//!
//! Hides the keys and the files: an outcome is found again exactly when nothing that made it has changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Name, Outcome, Status};
use crate::temporary::write_whole;

/// Outcomes of gates that worked otherwise than today's are not found again.
const FORMAT: u32 = 1;

/// The same for the quick gates alone, whose keys it is a part of: a build is not thrown away for them.
pub(super) fn quick_format(gate: Name) -> u32 {
    match gate {
        // From 2 on no configuration of the user's is seen.
        Name::Apply | Name::Checkpatch | Name::Maintainers => 2,
        _ => 1,
    }
}

/// The outcomes below one directory.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    reads: bool,
}

/// The name of everything that an outcome depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// The key of `parts`, which hold all that the outcome depends on.
    pub(super) fn of(parts: &impl Serialize) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let text = serde_json::to_vec(&(FORMAT, version, parts)).unwrap_or_default();
        let mut name = digest(&text);
        name.truncate(40);
        Self(name)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A digest of bytes, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    crate::digest::hex(&Sha256::digest(bytes))
}

impl Cache {
    /// The cache at `dir`; without `reads` everything is found out anew.
    pub(super) fn new(dir: PathBuf, reads: bool) -> Self {
        Self { dir, reads }
    }

    /// What was found under `key`. A file that cannot be read is as good as none: it is found out again.
    pub(super) fn get(&self, key: &Key) -> Option<Vec<Outcome>> {
        let bytes = self
            .reads
            .then(|| fs::read(self.path(key)).ok())
            .flatten()?;
        let mut outcomes: Vec<Outcome> = serde_json::from_slice(&bytes).ok()?;
        for outcome in &mut outcomes {
            outcome.cached = true;
            outcome.log = outcome.log.take().filter(|log| log.exists());
        }
        Some(outcomes)
    }

    /// Keeps outcomes under `key`, unless one of them could not be found out. A cache that cannot be written is none.
    pub(super) fn put(&self, key: &Key, outcomes: &[Outcome]) {
        let known = |outcome: &Outcome| matches!(outcome.status, Status::Pass | Status::Fail);
        let bytes = serde_json::to_vec(outcomes)
            .ok()
            .filter(|_| outcomes.iter().all(known));
        if let Some(bytes) = bytes {
            let _ = write_whole(&self.path(key), &bytes);
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        Path::new(&self.dir).join(format!("{}.json", key.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Name;

    fn cache() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = Cache::new(dir.path().to_owned(), true);
        (dir, cache)
    }

    #[test]
    fn an_outcome_comes_back_under_its_key_and_no_other() {
        let (_dir, cache) = cache();
        let key = Key::of(&("tree", 1));
        cache.put(&key, &[Outcome::new(Name::Build)]);
        let found = cache.get(&key).expect("found");
        assert!(found[0].cached);
        assert_eq!(cache.get(&Key::of(&("tree", 2))), None);
    }

    #[test]
    fn what_could_not_run_is_not_kept() {
        let (_dir, cache) = cache();
        let key = Key::of(&"x");
        cache.put(&key, &[Outcome::new(Name::Build).error("no compiler")]);
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn a_file_cut_short_is_found_out_again() {
        let (_dir, cache) = cache();
        let key = Key::of(&"x");
        cache.put(&key, &[Outcome::new(Name::Build)]);
        let bytes = fs::read(cache.path(&key)).expect("kept");
        fs::write(cache.path(&key), &bytes[..bytes.len() / 2]).expect("written");
        assert_eq!(cache.get(&key), None);
    }
}
