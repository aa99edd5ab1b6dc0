//! The directory that a series is written to: all of it or nothing, and never over a person's own changes.
//!
//! Hides the manifest that tells what was written from what was edited since.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::repo::blob_id;

/// The manifest's name in the directory.
const MANIFEST: &str = ".reroll.json";

/// Whether anything had to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Yes.
    New,
    /// No: everything was there already, byte for byte.
    Unchanged,
}

/// What was written, by name: git's blob id of the content.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    files: BTreeMap<String, String>,
}

/// Writes `files` (name and content) as the directory `dir`. What an earlier run wrote there is replaced; a
/// file of it that somebody has edited since is a refusal, unless `force`. Other files stay.
pub fn write(dir: &Path, files: &[(String, Vec<u8>)], force: bool) -> Result<Written> {
    let old = Old::read(dir)?;
    let manifest = Manifest {
        files: files
            .iter()
            .map(|(name, bytes)| (name.clone(), blob_id(bytes).to_string()))
            .collect(),
    };
    if old.manifest.as_ref() == Some(&manifest) && old.edited().is_empty() {
        return Ok(Written::Unchanged);
    }
    if !force {
        old.refuse(dir, &manifest)?;
    }
    let parent = dir
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| not_written(parent, &error))?;
    let new = tempfile::Builder::new()
        .prefix(".reroll-")
        .tempdir_in(parent)
        .map_err(|error| not_written(parent, &error))?;
    for (name, bytes) in files {
        fs::write(new.path().join(name), bytes)
            .map_err(|error| not_written(&new.path().join(name), &error))?;
    }
    old.carry_over(&manifest, new.path())?;
    let json = serde_json::to_vec_pretty(&manifest)?;
    fs::write(new.path().join(MANIFEST), json).map_err(|error| not_written(dir, &error))?;
    make_public(new.path())?;
    swap(new, dir)?;
    Ok(Written::New)
}

/// The directory as it is.
struct Old {
    dir: PathBuf,
    manifest: Option<Manifest>,
    /// Every file in it, by name: git's blob id of its content.
    files: BTreeMap<String, String>,
}

impl Old {
    fn read(dir: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self {
                    dir: dir.to_owned(),
                    manifest: None,
                    files,
                });
            }
            Err(error) => return Err(not_written(dir, &error).into()),
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list `{}`", dir.display()))?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != MANIFEST {
                let id = if path.is_file() {
                    blob_id(&fs::read(&path)?).to_string()
                } else {
                    String::new()
                };
                files.insert(name, id);
            }
        }
        let manifest = fs::read(dir.join(MANIFEST))
            .ok()
            .and_then(|json| serde_json::from_slice(&json).ok());
        Ok(Self {
            dir: dir.to_owned(),
            manifest,
            files,
        })
    }

    /// What the manifest names and is there with other content, or is gone.
    fn edited(&self) -> Vec<&String> {
        let known = self.manifest.iter().flat_map(|manifest| &manifest.files);
        known
            .filter(|(name, id)| self.files.get(*name) != Some(*id))
            .map(|(name, _)| name)
            .collect()
    }

    /// Whether a file is one that an earlier run wrote.
    fn is_ours(&self, name: &str) -> bool {
        self.manifest
            .as_ref()
            .is_some_and(|manifest| manifest.files.contains_key(name))
    }

    fn refuse(&self, dir: &Path, new: &Manifest) -> Result<()> {
        let there = |name: &&String| self.files.contains_key(*name);
        let edited: Vec<_> = self.edited().into_iter().filter(there).collect();
        let foreign = self.files.keys().filter(|name| {
            new.files.contains_key(*name)
                && !self.is_ours(name)
                && self.files.get(*name) != new.files.get(*name)
        });
        let names: Vec<_> = edited
            .into_iter()
            .chain(foreign)
            .map(|name| format!("`{name}`"))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Refusal::usage(format!(
            "`{}` has files that were edited since they were written: {}",
            dir.display(),
            names.join(", ")
        ))
        .hint("move them away, choose another directory with `-o`, or give them up with `--force`")
        .into())
    }

    /// Keeps the files that are not ours.
    fn carry_over(&self, new: &Manifest, to: &Path) -> Result<()> {
        for name in self
            .files
            .keys()
            .filter(|name| !self.is_ours(name) && !new.files.contains_key(*name))
        {
            let (from, to) = (self.dir.join(name), to.join(name));
            if from.is_file() {
                fs::hard_link(&from, &to)
                    .or_else(|_| fs::copy(&from, &to).map(drop))
                    .with_context(|| format!("cannot keep `{}`", from.display()))?;
            } else {
                return Err(Refusal::usage(format!(
                    "`{}` is in the way: only files can stay beside the patches",
                    from.display()
                ))
                .hint("move it away, or choose another directory with `-o`")
                .into());
            }
        }
        Ok(())
    }
}

/// A temporary directory is its owner's alone; a directory of patches is like any other.
fn make_public(dir: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let probe = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(dir)?;
    let mode = fs::metadata(probe.path())?.permissions();
    drop(probe);
    fs::set_permissions(dir, mode)
        .with_context(|| format!("cannot set the mode of `{}`", dir.display()))
}

/// Puts the new directory in the place of the old one, in one step.
fn swap(new: tempfile::TempDir, dir: &Path) -> Result<()> {
    if dir.exists() {
        renameat_with(CWD, new.path(), CWD, dir, RenameFlags::EXCHANGE)
            .map_err(|error| not_written(dir, &error.into()))?;
        return new
            .close()
            .with_context(|| format!("cannot remove what `{}` held before", dir.display()));
    }
    let path = new.keep();
    fs::rename(&path, dir).map_err(|error| {
        let _ = fs::remove_dir_all(&path);
        not_written(dir, &error).into()
    })
}

fn not_written(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::usage(format!("cannot write to `{}`: {error}", path.display()))
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
            write(&dir, &files(&[("x", "1")]), false).unwrap(),
            Written::New
        );
        assert_eq!(
            write(&dir, &files(&[("x", "1")]), false).unwrap(),
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
        write(&dir, &files(&[("old", "1"), ("both", "1")]), false).unwrap();
        fs::write(dir.join("notes"), "mine").unwrap();
        write(&dir, &files(&[("both", "2")]), false).unwrap();
        assert!(!dir.join("old").exists());
        assert_eq!(fs::read_to_string(dir.join("both")).unwrap(), "2");
        assert_eq!(fs::read_to_string(dir.join("notes")).unwrap(), "mine");
    }

    #[test]
    fn an_edited_file_is_never_overwritten_without_force() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("v1");
        write(&dir, &files(&[("x", "1")]), false).unwrap();
        fs::write(dir.join("x"), "edited").unwrap();
        let error = write(&dir, &files(&[("x", "2")]), false).unwrap_err();
        assert!(error.to_string().contains("`x`"), "{error}");
        assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "edited");
        write(&dir, &files(&[("x", "2")]), true).unwrap();
        assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "2");
    }

    #[test]
    fn a_directory_that_is_not_ours_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("x"), "mine").unwrap();
        assert!(write(temp.path(), &files(&[("x", "1")]), false).is_err());
        assert_eq!(fs::read_to_string(temp.path().join("x")).unwrap(), "mine");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_one_clear_sentence() {
        let error = write(Path::new("/proc/no/v1"), &files(&[("x", "1")]), false).unwrap_err();
        assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Usage);
        assert!(
            error.to_string().starts_with("cannot write to `/proc/no"),
            "{error}"
        );
    }
}
