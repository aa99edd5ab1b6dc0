//! Reads a kernel from a directory.
//!
//! Hides the walk: symbolic links are never followed, and nothing is left out by a `.gitignore`.

use std::fs::{self, DirEntry, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};

use super::not_read;
use super::stream::{Mode, Stream, refused, tree_path};
use crate::error::Refusal;
use crate::ui::{Progress, Ui};

/// Adds all files below `top`.
pub(super) fn walk(top: &Path, stream: &mut Stream<'_>, ui: Ui) -> Result<()> {
    if fs::symlink_metadata(top.join(".git")).is_ok() {
        let shown = top.display();
        return Err(Refusal::usage(format!("`{shown}` is a git repository"))
            .hint(format!("use it as it is: `--tree {shown}`"))
            .into());
    }
    let mut walk = Walk {
        stream,
        progress: ui.progress("importing files", 0),
        count: 0,
    };
    walk.directory(top, &BString::default())
}

struct Walk<'s, 'o> {
    stream: &'s mut Stream<'o>,
    progress: Progress,
    count: u64,
}

impl Walk<'_, '_> {
    /// One directory, in the order of names, so that neighbours lie together in the pack.
    fn directory(&mut self, dir: &Path, above: &BString) -> Result<()> {
        let entries: Result<Vec<DirEntry>, _> = fs::read_dir(dir)
            .and_then(Iterator::collect)
            .map_err(anyhow::Error::new);
        let mut entries = entries.with_context(|| not_read(dir))?;
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let raw = [above.as_slice(), name.as_bytes()].concat();
            if let Some(path) = tree_path(&raw)? {
                self.entry(&entry, path)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, entry: &DirEntry, mut path: BString) -> Result<()> {
        let from = entry.path();
        let kind = entry.file_type().with_context(|| not_read(&from))?;
        if kind.is_dir() {
            path.push(b'/');
            return self.directory(&from, &path);
        }
        self.count += 1;
        self.progress.set(self.count);
        if kind.is_symlink() {
            let target = fs::read_link(&from).with_context(|| not_read(&from))?;
            return self
                .stream
                .link(path.as_bstr(), target.as_os_str().as_bytes());
        }
        if !kind.is_file() {
            return Err(refused(path.as_bstr(), "is neither a file nor a directory"));
        }
        let mut file = File::open(&from).with_context(|| not_read(&from))?;
        let found = file.metadata().with_context(|| not_read(&from))?;
        let mode = Mode::of_permissions(found.mode());
        self.stream
            .file(path.as_bstr(), mode, found.len(), &mut file)
    }
}
