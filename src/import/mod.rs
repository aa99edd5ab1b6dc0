//! Turns a directory, a tarball or a Debian package that holds a kernel into one commit.
//!
//! Hides archive formats and how objects get into a repository: everything is streamed, nothing is unpacked to disk.

mod archive;
mod directory;
mod stream;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::ByteSlice;
use sha2::{Digest, Sha256};

use crate::debian::Wanted;
use crate::error::Refusal;
use crate::exec::check_interrupted;
use crate::repo::{IMPORT_TRAILER, ObjectId};
use crate::ui::{Ui, shown_text};

pub(crate) use stream::IMPORT_REF;

/// Where a kernel is to be taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A directory that holds a kernel's source.
    Directory(PathBuf),
    /// A tarball (plain, xz, zst or gz) or a `.deb` with a `linux-source-*.tar.*` in it.
    File(PathBuf),
    /// A `linux-source-*` package from the Debian mirror of this machine.
    Debian(Wanted),
}

impl Source {
    /// Reads `debian:WHAT`, or the path of a directory or a file that is there.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(wanted) = text.strip_prefix("debian:") {
            return Ok(Self::Debian(Wanted::parse(wanted)?));
        }
        let path = PathBuf::from(text);
        let found = std::fs::metadata(&path).with_context(|| {
            Refusal::usage(format!("cannot read `{}`", shown_text(text.as_bytes()))).hint(
                "a source is a directory, a tarball, a `.deb`, or `debian:7.3`, `debian:experimental`, `debian:newest`",
            )
        })?;
        Ok(if found.is_dir() {
            Self::Directory(path)
        } else {
            Self::File(path)
        })
    }
}

/// What is known of a source before it is read: the same text is the same content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing: only its tree tells directories apart.
    Directory,
    /// A file's content.
    Digest(String),
    /// A package of the Debian archive, as `name=version`.
    Package(String),
}

impl Origin {
    /// The line of the commit's message that holds it.
    pub(crate) fn trailer(&self) -> String {
        match self {
            Self::Directory => format!("{IMPORT_TRAILER} directory"),
            Self::Digest(digest) => format!("{IMPORT_TRAILER} sha256:{digest}"),
            Self::Package(id) => format!("{IMPORT_TRAILER} {id}"),
        }
    }
}

/// A kernel on its way into the repository.
#[derive(Debug)]
struct Kernel {
    /// As `make kernelversion` prints it.
    release: String,
    /// Name and version of the package it came in.
    package: Option<String>,
}

/// The SHA-256 of a file, in hexadecimal digits.
pub(crate) fn digest(path: &Path, ui: Ui) -> Result<String> {
    let mut file = open(path)?;
    let length = file.metadata().map_or(0, |found| found.len());
    let mut progress = ui.progress("reading", length);
    let (mut hasher, mut at) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 18];
    loop {
        check_interrupted()?;
        let count = read_some(&mut file, &mut buffer).with_context(|| not_read(path))?;
        if count == 0 {
            return Ok(crate::digest::hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
        at += count as u64;
        progress.set(at);
    }
}

/// Imports `path` into the bare repository at `repo` and leaves the commit at [`IMPORT_REF`].
pub(crate) fn directory(repo: &Path, lock: &File, path: &Path, ui: Ui) -> Result<ObjectId> {
    stream::commit(repo, lock, &Origin::Directory, |stream| {
        directory::walk(path, stream, ui)
    })
    .with_context(|| not_imported(path))
}

/// Imports the tarball or package at `path`, whose SHA-256 must be `sha256`, in the same way.
pub(crate) fn file(
    (repo, lock): (&Path, &File),
    path: &Path,
    origin: &Origin,
    sha256: &str,
    ui: Ui,
) -> Result<ObjectId> {
    stream::commit(repo, lock, origin, |stream| {
        archive::read(path, sha256, stream, ui)
    })
    .with_context(|| not_imported(path))
}

/// The release that the top of a kernel's `Makefile` says, as its tag is called: `7.3-rc7`, where `make kernelversion` prints `7.3.0-rc7`.
pub(crate) fn kernel_release(makefile: &[u8]) -> Option<String> {
    let value = |name: &str| {
        let mut lines = makefile.lines().take(64);
        lines.find_map(|line| {
            let rest = line.strip_prefix(name.as_bytes())?.trim_start();
            let value = rest.strip_prefix(b"=")?.trim();
            value.to_str().ok()
        })
    };
    let number = |name| {
        value(name).filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
    };
    let extra = value("EXTRAVERSION").unwrap_or("");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-+._~".contains(&byte);
    if !extra.bytes().all(plain) {
        return None;
    }
    let (version, patchlevel) = (number("VERSION")?, number("PATCHLEVEL")?);
    let sublevel = match number("SUBLEVEL")? {
        "0" => String::new(),
        sublevel => format!(".{sublevel}"),
    };
    Some(format!("{version}.{patchlevel}{sublevel}{extra}"))
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| not_read(path))
}

fn not_imported(path: &Path) -> String {
    format!("cannot import `{}`", path.display())
}

fn not_read(path: &Path) -> Refusal {
    Refusal::usage(format!("cannot read `{}`", path.display()))
        .hint("check that it is there, and its permissions")
}

/// Reads what there is, however often a signal comes in between.
fn read_some(from: &mut impl std::io::Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_what_its_tag_is_called() {
        let makefile =
            b"# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\nEXTRAVERSION = -rc7\nNAME = X\n";
        assert_eq!(kernel_release(makefile).as_deref(), Some("7.3-rc7"));
        let plain = b"VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n";
        assert_eq!(kernel_release(plain).as_deref(), Some("6.1.192"));
        assert_eq!(kernel_release(b"all:\n\ttrue\n"), None);
        let hostile = b"VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 1\nEXTRAVERSION = \x1b[2J\n";
        assert_eq!(kernel_release(hostile), None);
    }

    #[test]
    fn a_source_is_told_by_its_look() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = dir.path().to_str().expect("plain");
        assert_eq!(
            Source::parse(text).expect("a directory"),
            Source::Directory(dir.path().into())
        );
        assert_eq!(
            Source::parse("debian:7.3").expect("a release"),
            Source::Debian(Wanted::Release("7.3".into()))
        );
        for wrong in ["debian:", "debian:../x", "debian:-o", "/no/such/file"] {
            let error = Source::parse(wrong).expect_err("refused");
            assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Usage);
        }
    }
}
