//! The bot's memory: refs of the repository, each moved by compare and swap.
//!
//! Hides names, and the lock files that a killed run leaves behind.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bstr::ByteSlice;

use super::record::Record;
use crate::error::Refusal;
use crate::exec::check_interrupted;
use crate::repo::{MODE_FILE, ObjectId, Repo, Signature};

/// The file of a record's tree.
const FILE: &str = "record.json";
/// How long something else may hold the lock of a branch before it is taken for dead.
const BRANCH_LOCK: Duration = Duration::from_secs(2);
/// How far back a branch is looked for in what the bot left there.
const MOST_RECORDS: usize = 100;

/// The state in one repository.
pub struct State<'a> {
    /// The repository.
    pub repo: &'a Repo,
    namespace: &'a str,
}

/// A record with its commit.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The commit that keeps it.
    pub id: ObjectId,
    /// The record.
    pub record: Record,
}

/// How a result's branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// It is what the record says, or there is nothing to be there.
    Right,
    /// It is absent, or where the bot left it earlier.
    Behind(Option<ObjectId>),
    /// Somebody else moved it there.
    Edited(ObjectId),
}

impl<'a> State<'a> {
    /// The state below a namespace.
    #[must_use]
    pub fn new(repo: &'a Repo, namespace: &'a str) -> Self {
        Self { repo, namespace }
    }

    /// Where records are: a prefix of refs.
    #[must_use]
    pub fn records(&self) -> String {
        format!("{}/records/", self.namespace)
    }

    /// Where the bases that a watch fetched are.
    #[must_use]
    pub fn bases(&self, watch: &str) -> String {
        format!("{}/bases/{watch}/", self.namespace)
    }

    /// Keeps what is about to be overwritten; the ref that does.
    pub fn keep_replaced(&self, record: &Record, old: ObjectId) -> Result<String> {
        let (series, base) = (encode(&record.series), encode(&record.base.name));
        let name = format!("{}/replaced/{series}/{base}/{old}", self.namespace);
        if self.repo.reference(&name)?.is_none() {
            self.swap(&name, None, old)?;
        }
        Ok(name)
    }

    /// The ref of one record.
    #[must_use]
    pub fn record_ref(&self, series: &str, base: &str) -> String {
        format!("{}{}/{}", self.records(), encode(series), encode(base))
    }

    /// The record of a series on a base.
    pub fn get(&self, series: &str, base: &str) -> Result<Option<Kept>> {
        let name = self.record_ref(series, base);
        let id = self.repo.reference(&name)?;
        id.map(|id| self.read(id, &name)).transpose()
    }

    /// All records, by series and then by base.
    pub fn all(&self) -> Result<Vec<Kept>> {
        let refs = self.repo.references(&self.records())?;
        refs.into_iter()
            .map(|(name, id)| self.read(id, &name))
            .collect()
    }

    /// The record that a commit keeps.
    pub fn read(&self, id: ObjectId, place: &str) -> Result<Kept> {
        let tree_id = self.repo.commit(id)?.tree_id;
        let file = self.repo.file(tree_id, FILE.into())?;
        let bytes = file.map(|file| file.bytes).unwrap_or_default();
        let record = Record::parse(&bytes, place)?;
        Ok(Kept { id, record })
    }

    /// Writes a record's commit; no ref learns of it. What it speaks of stays reachable through its parents.
    pub fn write(&self, record: &Record) -> Result<ObjectId> {
        let blob_id = self.repo.write_blob(&record.json()?)?;
        let tree_id = self
            .repo
            .write_new_tree(&[(FILE.into(), MODE_FILE, blob_id)])?;
        let mut parents = Vec::new();
        for id in [&record.previous, &record.tip].into_iter().flatten() {
            parents.push(id.parse().context("a record names a commit")?);
        }
        if record.tip.is_none() {
            parents.push(
                record
                    .base
                    .commit
                    .parse()
                    .context("a record names a commit")?,
            );
        }
        let nobody = Signature {
            name: "reroll".into(),
            email: "reroll@localhost".into(),
            time: record.base.time,
            offset: 0,
        };
        let message = format!(
            "{} on {}: {}\n",
            record.series,
            record.base.name,
            record.state()
        );
        self.repo
            .write_merge(tree_id, &parents, &nobody, message.as_bytes().as_bstr())
    }

    /// Moves a ref by compare and swap. `false`: it is not at `old` any more.
    pub fn swap(&self, name: &str, old: Option<ObjectId>, new: ObjectId) -> Result<bool> {
        let _lock = self.lock()?;
        self.remove_dead_lock(name)?;
        if self.repo.reference(name)? != old {
            return Ok(false);
        }
        let moved = self.repo.update_reference(name, old, new, "reroll bot");
        match moved {
            Ok(()) => Ok(true),
            Err(_) if self.repo.reference(name)? != old => Ok(false),
            Err(error) => Err(error).context(Refusal::tool(format!("cannot move `{name}`")).hint(
                "check the permissions and the free space of the repository, and that no other ref is in the way",
            )),
        }
    }

    /// Deletes a ref by compare and swap. `false`: it is not at `old` any more.
    pub fn delete(&self, name: &str, old: ObjectId) -> Result<bool> {
        let _lock = self.lock()?;
        self.remove_dead_lock(name)?;
        if self.repo.reference(name)? != Some(old) {
            return Ok(false);
        }
        self.repo.delete_reference(name, old)?;
        Ok(true)
    }

    /// How the branch of a result is.
    pub fn branch(&self, kept: &Kept) -> Result<Branch> {
        let found = self.repo.reference(&branch_ref(&kept.record))?;
        let wanted = wanted_tip(&kept.record)?;
        match (found, wanted) {
            (found, Some(wanted)) if found == Some(wanted) => Ok(Branch::Right),
            (None, None) => Ok(Branch::Right),
            (None, Some(_)) => Ok(Branch::Behind(None)),
            (Some(found), wanted) if self.has_left(kept, found)? => Ok(match wanted {
                // Somebody works there.
                Some(_) if self.repo.used_by(&branch_ref(&kept.record))?.is_some() => {
                    Branch::Edited(found)
                }
                Some(_) => Branch::Behind(Some(found)),
                // The last good result stays until there is a better one.
                None => Branch::Right,
            }),
            (Some(found), _) => Ok(Branch::Edited(found)),
        }
    }

    /// Whether the bot itself has left this commit as a result there.
    pub fn has_left(&self, kept: &Kept, tip: ObjectId) -> Result<bool> {
        let mut kept = kept.clone();
        for _ in 0..MOST_RECORDS {
            if kept.record.tip == Some(tip.to_string()) {
                return Ok(true);
            }
            let Some(previous) = &kept.record.previous else {
                return Ok(false);
            };
            let id = previous.parse().context("a record names a commit")?;
            kept = self.read(id, previous)?;
        }
        Ok(false)
    }

    /// One bot a time changes refs; only for as long as that takes.
    fn lock(&self) -> Result<File> {
        let path = self.repo.common_path().join("reroll-bot.lock");
        let not_locked = || {
            Refusal::tool(format!("cannot lock `{}`", path.display()))
                .hint("check the permissions and the free space of the repository")
        };
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(not_locked)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {
                    check_interrupted()?;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(not_locked),
            }
        }
    }

    /// Removes the lock file of a ref whose writer was killed: among the bot's own refs nobody else is at work while the lock is held;
    /// on a branch somebody may be, but not for seconds.
    fn remove_dead_lock(&self, name: &str) -> Result<()> {
        let path = lock_path(self.repo.common_path(), name);
        let since = Instant::now();
        let patience = if name.starts_with(self.namespace) {
            Duration::ZERO
        } else {
            BRANCH_LOCK
        };
        while let Ok(found) = fs::symlink_metadata(&path) {
            let age = found.modified().ok().and_then(|then| then.elapsed().ok());
            if since.elapsed() >= patience || age.is_some_and(|age| age >= patience) {
                // Its owner may have removed it just now.
                let _ = fs::remove_file(&path);
                return Ok(());
            }
            check_interrupted()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn lock_path(git_dir: &Path, name: &str) -> PathBuf {
    git_dir.join(format!("{name}.lock"))
}

/// The branch that a result is left on.
#[must_use]
pub fn branch_ref(record: &Record) -> String {
    format!(
        "refs/heads/reroll/{}/{}",
        encode(&record.series),
        encode(&record.base.name)
    )
}

/// The commit that the branch of a result has to be at.
pub fn wanted_tip(record: &Record) -> Result<Option<ObjectId>> {
    let tip = record.tip.as_ref().filter(|_| record.is_ready());
    tip.map(|tip| tip.parse().context("a record names a commit"))
        .transpose()
}

/// A name as one part of a ref's name, whatever is in it; different names stay different.
#[must_use]
pub fn encode(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut encoded = String::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        let dot = byte == b'.'
            && (at == 0
                || at + 1 == bytes.len()
                || bytes[at + 1] == b'.'
                || &bytes[at..] == b".lock");
        let plain = byte.is_ascii_alphanumeric() || b"-_+=,.".contains(&byte);
        if plain && !dot && !(byte == b'-' && at == 0) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::is_ref_name;

    #[test]
    fn any_name_becomes_a_part_of_a_ref() {
        assert_eq!(encode("v7.3-rc1"), "v7.3-rc1");
        assert_eq!(encode("linux-next/master"), "linux-next%2fmaster");
        let names = [
            "..",
            ".",
            "a..b",
            "x.lock",
            "x.lock.lock",
            "-x",
            "@{u}",
            "a b",
            "a~1",
            "é",
            "a\u{1b}[31m",
            "%2f",
            "/",
            ".x",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let encoded = encode(name);
            assert!(
                is_ref_name(&format!("refs/x/{encoded}")),
                "{name}: {encoded}"
            );
            assert!(!encoded.contains('/') && seen.insert(encoded), "{name}");
        }
    }
}
