//! One file that is written for the user.
//!
//! Hides how it comes to be there whole or not at all where it is a file, and that it is written through where it is none: a device, a pipe.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use bstr::ByteSlice;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::place::{Place, aside, parent, resolve, sweep};
use super::{Written, memory, not_written, shown};
use crate::error::Refusal;
use crate::exec::check_interrupted;

/// A file to write.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// What the user calls it.
    pub path: &'a Path,
    /// What it is to hold.
    pub sort: Sort,
    /// Whether a file that somebody else wrote is given up.
    pub force: bool,
}

/// What a file holds. By its mark a file is known as reroll's own work wherever it was made; nobody edits such a report by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The mails of a series, which a person may well edit: no mark is enough.
    Mails,
    /// A page for a browser.
    Page,
    /// `JUnit` XML.
    JUnit,
    /// A summary in Markdown.
    Markdown,
    /// What a cell of a matrix found.
    Cell,
    /// What `reroll bench` measured.
    Performance,
    /// A picture of that.
    Picture,
    /// A page of the manual.
    Manual,
}

/// How far a mark may be from the beginning.
const HEAD: usize = 4096;

/// How long between two looks at whether somebody reads a FIFO.
const PAUSE: Duration = Duration::from_millis(20);

impl Sort {
    /// The first line of a file in Markdown, which is not shown.
    pub const WRITTEN: &'static str = "<!-- written by reroll -->";

    /// Words that stand at the beginning of such a file, all of them.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Mails => &[],
            Self::Page => &[
                "<!DOCTYPE html>",
                "<meta name=\"generator\" content=\"reroll ",
            ],
            Self::JUnit => &["<?xml ", "<testsuites name=\"reroll "],
            Self::Markdown => &[Self::WRITTEN],
            Self::Cell => &["{\n  \"id\": \"", "  \"record\": {\n"],
            Self::Performance => &["{\n  \"version\": ", "\n  \"run\": {\n", "\"patches\": ["],
            Self::Picture => &["<svg xmlns=", ": nanoseconds per struct page"],
            Self::Manual => &[".TH reroll"],
        }
    }

    fn is_marked(self, bytes: &[u8]) -> bool {
        let head = &bytes[..bytes.len().min(HEAD)];
        let marks = self.marks();
        !marks.is_empty() && marks.iter().all(|mark| head.contains_str(mark))
    }
}

impl Output<'_> {
    /// Refuses a file that must not be written over: to be asked before long work.
    pub fn check(&self) -> Result<()> {
        let resolved = self.resolve()?;
        match &resolved {
            Place::Entry(entry) if !self.force => match metadata(entry) {
                Ok(Some(meta)) if meta.is_file() => self.refuse(&self.read(entry)?),
                Ok(Some(meta)) if meta.is_dir() => Err(self.is_directory().into()),
                Ok(_) => Ok(()),
                Err(error) => Err(self.failed(&error)),
            },
            _ => Ok(()),
        }
    }

    /// Writes it: through what is no file, and otherwise whole or not at all.
    pub fn write(&self, bytes: &[u8]) -> Result<Written> {
        let entry = match self.resolve()? {
            Place::Descriptor(number) => return self.finish(to_descriptor(number, bytes)),
            Place::Entry(entry) => entry,
        };
        let meta = metadata(&entry).map_err(|error| self.failed(&error))?;
        match meta {
            None => {
                self.directory_is_there(&entry)?;
                self.replace(&entry, None, bytes)?;
            }
            Some(meta) if meta.is_dir() => return Err(self.is_directory().into()),
            Some(meta) if !meta.is_file() => return self.finish(through(&entry, &meta, bytes)),
            Some(meta) => {
                let old = self.read(&entry)?;
                if old == bytes {
                    memory::remember(&entry, bytes);
                    return Ok(Written::Unchanged);
                }
                if !self.force {
                    self.refuse(&old)?;
                }
                self.replace(&entry, Some(&meta), bytes)?;
            }
        }
        memory::remember(&entry, bytes);
        Ok(Written::New)
    }

    fn resolve(&self) -> Result<Place> {
        resolve(self.path).map_err(|error| self.failed(&error))
    }

    fn read(&self, entry: &Path) -> Result<Vec<u8>> {
        fs::read(entry).map_err(|error| self.failed(&error))
    }

    /// Refuses to write over what holds `old`, unless reroll wrote that itself or it is nothing.
    fn refuse(&self, old: &[u8]) -> Result<()> {
        if old.is_empty() || self.sort.is_marked(old) || memory::wrote(self.path, old) {
            return Ok(());
        }
        let name = shown(self.path);
        Err(Refusal::usage(format!(
            "`{name}` is there, and is not as reroll has left it"
        ))
        .hint("move it away, name another file, or give it up with `--force`")
        .into())
    }

    /// Puts the bytes in the place of a file, by a rename; where that would lose something of the file, they are written into it.
    fn replace(&self, entry: &Path, old: Option<&Metadata>, bytes: &[u8]) -> Result<()> {
        sweep(entry, Path::to_owned);
        let many_names = old.is_some_and(|old| old.nlink() > 1);
        let renamed = if many_names {
            Err(ErrorKind::Unsupported.into())
        } else {
            by_rename(entry, old, bytes)
        };
        renamed
            .or_else(|error| match old {
                // No room is no reason to empty what is there.
                Some(_) if error.kind() != ErrorKind::StorageFull => into(entry, bytes),
                _ => Err(error),
            })
            .map_err(|error| self.failed(&error))
    }

    fn finish(&self, done: io::Result<()>) -> Result<Written> {
        match done {
            // Who reads may have had enough.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(self.failed(&error)),
            _ => check_interrupted().map(|()| Written::New),
        }
    }

    /// A directory that is not there is a slip of the pen.
    fn directory_is_there(&self, entry: &Path) -> Result<()> {
        let dir = parent(entry);
        if dir.exists() {
            return Ok(());
        }
        let (name, dir) = (shown(self.path), shown(&dir));
        Err(Refusal::usage(format!(
            "cannot write to `{name}`: there is no directory `{dir}`"
        ))
        .hint("make it, or name another place")
        .into())
    }

    fn is_directory(&self) -> Refusal {
        let name = shown(self.path);
        Refusal::usage(format!("cannot write to `{name}`: it is a directory")).hint("name a file")
    }

    fn failed(&self, error: &io::Error) -> anyhow::Error {
        not_written(self.path, error).into()
    }
}

/// What is there; `None` where nothing is.
fn metadata(entry: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(entry) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes beside, with the old file's owner and mode, and renames.
fn by_rename(entry: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let aside = Aside(aside(entry));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&aside.0)?;
    // Where there are no locks, what a killed run leaves is taken away once it is old.
    let _ = file.try_lock();
    if let Some(old) = old {
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        if new.mode() != old.mode() {
            file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        }
    }
    file.write_all(bytes)?;
    fs::rename(&aside.0, entry)
}

/// A file that is not in its place yet; removed if it never comes there.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes into a file that is there.
fn into(entry: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(entry)?;
    file.write_all(bytes)
}

/// Writes to a device or a pipe.
fn through(entry: &Path, meta: &Metadata, bytes: &[u8]) -> io::Result<()> {
    let mut file = if meta.file_type().is_fifo() {
        match open_fifo(entry)? {
            Some(file) => file,
            // The user has stopped waiting, which the caller sees.
            None => return Ok(()),
        }
    } else {
        OpenOptions::new().write(true).open(entry)?
    };
    file.write_all(bytes)
}

/// Opens a FIFO once somebody reads it; `None` where the user stops that.
fn open_fifo(entry: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    loop {
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(entry);
        match opened {
            Ok(file) => {
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(Some(file));
            }
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if check_interrupted().is_err() {
                    return Ok(None);
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Writes behind what was written to an open file before.
fn to_descriptor(number: u32, bytes: &[u8]) -> io::Result<()> {
    match number {
        1 => {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        2 => io::stderr().lock().write_all(bytes),
        number => {
            let name = format!("/proc/self/fd/{number}");
            let mut file = OpenOptions::new().append(true).open(name)?;
            file.write_all(bytes)
        }
    }
}
