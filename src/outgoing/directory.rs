//! The directory that a series is written to: all of it or nothing, and never over a person's own changes.
//!
//! Hides the manifest that tells what was written from what was edited since, and the plan by which a run that is killed is finished by
//! the next one. A directory that is there stays the same directory: a shell that is in it, a link to it, a mount and its mode are
//! somebody's. So its files are exchanged one by one: they are made aside, the plan is written, the old ones go, and the new ones come. At no
//! time are old and new ones there together.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::place::{Place, aside, parent, resolve, sweep};
use super::{Written, not_written, shown};
use crate::error::Refusal;
use crate::lock::{Hold, Lock};
use crate::repo::blob_id;

/// What reroll keeps for itself in the directory. No file: `git send-email DIRECTORY` takes every file for a mail.
const OWN: &str = ".reroll";
/// In it: the manifest, the plan, new files, and the lock.
const MANIFEST: &str = "written.json";
const PLAN: &str = "plan.json";
const NEW: &str = "new";
const LOCK: &str = "lock";
/// Where the manifest was in directories of the first version.
const OLD_MANIFEST: &str = ".reroll.json";

/// What was written, by name: git's blob id of the content.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    files: BTreeMap<String, String>,
    /// What was never proven of the base that they are for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unproven: Option<String>,
}

/// What is about to be done, once everything is at hand for it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Files of an earlier run that go.
    remove: Vec<String>,
    /// Files that come, from [`NEW`].
    place: Vec<String>,
    /// What is there then.
    then: Manifest,
}

/// Writes `files` (name and content) as the directory `dir`. What an earlier run wrote there is replaced; a
/// file of it that somebody has edited since is a refusal, unless `force`. Other files stay. That the base is `unproven` (what of it, in a
/// sentence) is kept in the manifest.
pub fn write(
    dir: &Path,
    files: &[(String, Vec<u8>)],
    unproven: Option<String>,
    force: bool,
) -> Result<Written> {
    let failed = |error: &io::Error| not_written(dir, error);
    let place = match resolve(dir).map_err(|error| failed(&error))? {
        Place::Entry(place) => place,
        Place::Descriptor(_) => return Err(no_directory(dir).into()),
    };
    match fs::metadata(&place) {
        Ok(meta) if meta.is_dir() => Directory::at(dir, &place).write(files, unproven, force),
        Ok(_) => Err(no_directory(dir).into()),
        Err(error) if error.kind() == ErrorKind::NotFound => anew(dir, &place, files, unproven),
        Err(error) => Err(failed(&error).into()),
    }
}

/// Makes a directory that is not there: aside, and then in its place.
fn anew(
    named: &Path,
    place: &Path,
    files: &[(String, Vec<u8>)],
    unproven: Option<String>,
) -> Result<Written> {
    let failed = |error: io::Error| not_written(named, &error);
    fs::create_dir_all(parent(place)).map_err(failed)?;
    sweep(place, |left| left.join(OWN).join(LOCK));
    let new = Aside(aside(place));
    fs::create_dir(&new.0).map_err(failed)?;
    Directory::at(named, &new.0).write(files, unproven, false)?;
    fs::rename(&new.0, place).map_err(failed)?;
    Ok(Written::New)
}

/// A directory that is not in its place yet; removed if it never comes there.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A directory that is there.
struct Directory<'a> {
    /// What the user calls it.
    named: &'a Path,
    dir: &'a Path,
}

/// What is under a name.
enum Entry {
    None,
    /// A file: git's blob id of its content.
    File(String),
    /// A directory, a link, a device.
    Other,
}

impl<'a> Directory<'a> {
    fn at(named: &'a Path, dir: &'a Path) -> Self {
        Self { named, dir }
    }

    fn write(
        &self,
        files: &[(String, Vec<u8>)],
        unproven: Option<String>,
        force: bool,
    ) -> Result<Written> {
        let with_id =
            |(name, bytes): &(String, Vec<u8>)| (name.clone(), blob_id(bytes).to_string());
        let then = Manifest {
            files: files.iter().map(with_id).collect(),
            unproven,
        };
        let old = self.manifest();
        if old.as_ref() == Some(&then) && !self.own(PLAN).exists() && self.edited(&then).is_empty()
        {
            return Ok(Written::Unchanged);
        }
        if !force && !self.own(PLAN).exists() {
            // Who is refused has not even a place of ours.
            self.refuse(&old.unwrap_or_default(), &then)?;
        }
        fs::create_dir_all(self.dir.join(OWN)).map_err(|error| self.failed(&error))?;
        let _lock = self.lock()?;
        self.finish_what_was_begun()?;
        let old = self.manifest().unwrap_or_default();
        if !force {
            self.refuse(&old, &then)?;
        }
        let replaces = !old.files.is_empty() && old.files != then.files;
        let plan = self
            .prepare(&old, then, files)
            .inspect_err(|_| self.give_up())?;
        self.carry_out(&plan).map_err(|error| self.failed(&error))?;
        self.give_up();
        Ok(if replaces {
            Written::Replaced
        } else {
            Written::New
        })
    }

    fn own(&self, name: &str) -> PathBuf {
        self.dir.join(OWN).join(name)
    }

    /// Waits for another run that writes here. A file system without locks has to do without.
    fn lock(&self) -> Result<Option<Lock>> {
        let path = self.own(LOCK);
        let broken = || not_written(self.named, &ErrorKind::PermissionDenied.into());
        match Lock::try_take(&path, Hold::Alone) {
            Ok(Some(lock)) => Ok(Some(lock)),
            Ok(None) => {
                let doing = format!("writes to `{}`", shown(self.named));
                Lock::take(&path, Hold::Alone, &doing, broken).map(Some)
            }
            Err(error) if is_without_locks(&error) => Ok(None),
            Err(error) => Err(self.failed(&error).into()),
        }
    }

    /// What an earlier run has left; nothing where that is not to be read.
    fn manifest(&self) -> Option<Manifest> {
        let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        read(self.own(MANIFEST)).or_else(|| read(self.dir.join(OLD_MANIFEST)))
    }

    /// Does what a run that was killed had all at hand for, unless somebody has edited since what it was about to take away. What a run that was not
    /// that far has left is taken away.
    fn finish_what_was_begun(&self) -> Result<()> {
        let plan = fs::read(self.own(PLAN)).ok();
        let plan: Option<Plan> = plan.and_then(|json| serde_json::from_slice(&json).ok());
        let done = match plan.filter(|plan| self.may_go_on(plan)) {
            Some(plan) => self.carry_out(&plan),
            None => remove(&self.own(PLAN)),
        };
        self.give_up();
        done.map_err(|error| self.failed(&error).into())
    }

    fn may_go_on(&self, plan: &Plan) -> bool {
        let old = self.manifest().unwrap_or_default();
        let new = self.own(NEW);
        let waiting = plan.place.iter().filter(|name| new.join(name).exists());
        let mut going = plan.remove.iter().chain(waiting);
        going.all(|name| match self.entry(name) {
            Entry::None => true,
            Entry::File(id) => old.files.get(name) == Some(&id),
            Entry::Other => false,
        })
    }

    fn entry(&self, name: &str) -> Entry {
        let path = self.dir.join(name);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => match fs::read(&path) {
                Ok(bytes) => Entry::File(blob_id(&bytes).to_string()),
                Err(_) => Entry::Other,
            },
            Ok(_) => Entry::Other,
            Err(_) => Entry::None,
        }
    }

    /// What a manifest names and is there with other content, or is gone.
    fn edited<'m>(&self, manifest: &'m Manifest) -> Vec<&'m String> {
        let known = manifest.files.iter();
        let edited =
            known.filter(|(name, id)| !matches!(self.entry(name), Entry::File(is) if is == **id));
        edited.map(|(name, _)| name).collect()
    }

    /// Refuses to lose what somebody else wrote: an edited file of an earlier run, or one under a name that is about to be taken.
    fn refuse(&self, old: &Manifest, then: &Manifest) -> Result<()> {
        let names: std::collections::BTreeSet<_> =
            old.files.keys().chain(then.files.keys()).collect();
        let is_foreign = |name: &&&String| match self.entry(name) {
            Entry::None => false,
            Entry::Other => true,
            Entry::File(id) => {
                let id = Some(&id);
                old.files.get(**name) != id && then.files.get(**name) != id
            }
        };
        let names: Vec<_> = names
            .iter()
            .filter(is_foreign)
            .map(|name| format!("`{name}`"))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Refusal::usage(format!(
            "`{}` has files that were edited since they were written: {}",
            shown(self.named),
            names.join(", ")
        ))
        .hint("move them away, choose another directory with `-o`, or give them up with `--force`")
        .into())
    }

    /// Makes the new files aside, and writes the plan last of all.
    fn prepare(&self, old: &Manifest, then: Manifest, files: &[(String, Vec<u8>)]) -> Result<Plan> {
        let new = self.own(NEW);
        fs::create_dir(&new).map_err(|error| self.failed(&error))?;
        let is_there = |name: &str| matches!(self.entry(name), Entry::File(id) if then.files.get(name) == Some(&id));
        let mut place = Vec::new();
        for (name, bytes) in files.iter().filter(|(name, _)| !is_there(name)) {
            let file = new.join(name);
            fs::write(&file, bytes)
                .and_then(|()| keep_mode(&self.dir.join(name), &file))
                .map_err(|error| self.failed(&error))?;
            place.push(name.clone());
        }
        let gone = old
            .files
            .keys()
            .filter(|name| !then.files.contains_key(*name));
        let plan = Plan {
            remove: gone.cloned().collect(),
            place,
            then,
        };
        let aside = self.own("plan.new");
        fs::write(&aside, serde_json::to_vec(&plan)?)
            .and_then(|()| fs::rename(&aside, self.own(PLAN)))
            .map_err(|error| self.failed(&error))?;
        Ok(plan)
    }

    /// Exchanges the files. It can be done again from any point on: what has come is not taken away again.
    fn carry_out(&self, plan: &Plan) -> io::Result<()> {
        let new = self.own(NEW);
        let waiting: Vec<_> = plan
            .place
            .iter()
            .filter(|name| new.join(name).exists())
            .collect();
        for name in plan.remove.iter().chain(waiting.iter().copied()) {
            remove(&self.dir.join(name))?;
        }
        for name in waiting {
            fs::rename(new.join(name), self.dir.join(name))?;
        }
        let aside = self.own("written.new");
        fs::write(&aside, serde_json::to_vec_pretty(&plan.then)?)?;
        fs::rename(&aside, self.own(MANIFEST))?;
        remove(&self.dir.join(OLD_MANIFEST))?;
        remove(&self.own(PLAN))?;
        Ok(())
    }

    /// Takes away what was made aside.
    fn give_up(&self) {
        let _ = fs::remove_dir_all(self.own(NEW));
        let _ = fs::remove_file(self.own("plan.new"));
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        not_written(self.named, error)
    }
}

fn is_without_locks(error: &io::Error) -> bool {
    let errors = [
        rustix::io::Errno::NOLCK,
        rustix::io::Errno::NOSYS,
        rustix::io::Errno::OPNOTSUPP,
        rustix::io::Errno::INVAL,
    ];
    errors
        .iter()
        .any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// Gives a new file the mode of the one that it replaces. Where all files have one mode there is nothing to give.
fn keep_mode(old: &Path, new: &Path) -> io::Result<()> {
    let Some(old) = fs::symlink_metadata(old).ok().filter(fs::Metadata::is_file) else {
        return Ok(());
    };
    let mode = old.permissions().mode() & 0o7777;
    if fs::metadata(new)?.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(new, Permissions::from_mode(mode))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn no_directory(path: &Path) -> Refusal {
    let name = shown(path);
    Refusal::usage(format!("cannot write to `{name}`: it is no directory"))
        .hint("choose another directory with `-o`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        names
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn a_second_run_with_the_same_bytes_writes_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/v1");
        assert_eq!(
            write(&dir, &files(&[("x", "1")]), None, false).unwrap(),
            Written::New
        );
        assert_eq!(
            write(&dir, &files(&[("x", "1")]), None, false).unwrap(),
            Written::Unchanged
        );
        assert_eq!(
            fs::read_dir(temp.path().join("a")).unwrap().count(),
            1,
            "nothing temporary is left"
        );
    }

    #[test]
    fn what_an_earlier_run_wrote_is_replaced_and_other_files_stay() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("v1");
        write(&dir, &files(&[("old", "1"), ("both", "1")]), None, false).unwrap();
        fs::write(dir.join("notes"), "mine").unwrap();
        let again = write(&dir, &files(&[("both", "2")]), None, false).unwrap();
        assert_eq!(again, Written::Replaced);
        assert!(!dir.join("old").exists());
        assert_eq!(fs::read_to_string(dir.join("both")).unwrap(), "2");
        assert_eq!(fs::read_to_string(dir.join("notes")).unwrap(), "mine");
    }

    #[test]
    fn an_edited_file_is_never_overwritten_without_force() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("v1");
        write(&dir, &files(&[("x", "1")]), None, false).unwrap();
        fs::write(dir.join("x"), "edited").unwrap();
        let error = write(&dir, &files(&[("x", "2")]), None, false).unwrap_err();
        assert!(error.to_string().contains("`x`"), "{error}");
        assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "edited");
        write(&dir, &files(&[("x", "2")]), None, true).unwrap();
        assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "2");
    }

    #[test]
    fn a_directory_that_is_not_ours_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("x"), "mine").unwrap();
        assert!(write(temp.path(), &files(&[("x", "1")]), None, false).is_err());
        assert_eq!(fs::read_to_string(temp.path().join("x")).unwrap(), "mine");
    }

    /// A directory whose manifest says that `x` was written, and in which a run was killed that wanted `y` instead.
    fn killed() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("v1");
        write(&dir, &files(&[("x", "1")]), None, false).unwrap();
        let directory = Directory::at(&dir, &dir);
        let then = Manifest {
            unproven: None,
            files: BTreeMap::from([("y".to_owned(), blob_id(b"2").to_string())]),
        };
        let old = directory.manifest().unwrap();
        directory
            .prepare(&old, then, &files(&[("y", "2")]))
            .unwrap();
        (temp, dir)
    }

    #[test]
    fn what_a_killed_run_had_at_hand_is_done_by_the_next() {
        let (_temp, dir) = killed();
        assert!(dir.join("x").exists() && !dir.join("y").exists());
        let again = write(&dir, &files(&[("y", "2")]), None, false).unwrap();
        assert_eq!(again, Written::New);
        assert!(!dir.join("x").exists() && dir.join("y").exists());
        let left: Vec<_> = fs::read_dir(dir.join(OWN)).unwrap().collect();
        assert_eq!(left.len(), 2, "the manifest and the lock: {left:?}");
    }

    #[test]
    fn what_was_edited_after_a_kill_is_not_taken_away() {
        let (_temp, dir) = killed();
        fs::write(dir.join("x"), "edited").unwrap();
        assert!(write(&dir, &files(&[("y", "2")]), None, false).is_err());
        assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "edited");
    }

    #[test]
    fn the_manifest_of_the_first_version_is_known() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("v1");
        write(&dir, &files(&[("x", "1")]), None, false).unwrap();
        fs::rename(dir.join(OWN).join(MANIFEST), dir.join(OLD_MANIFEST)).unwrap();
        write(&dir, &files(&[("y", "1")]), None, false).unwrap();
        assert!(!dir.join("x").exists() && !dir.join(OLD_MANIFEST).exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_one_clear_sentence() {
        let error =
            write(Path::new("/proc/no/v1"), &files(&[("x", "1")]), None, false).unwrap_err();
        assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Tool);
        assert!(
            error.to_string().starts_with("cannot write to `/proc/no"),
            "{error}"
        );
    }
}
