//! Reads a kernel from a tarball, plain or compressed, or from the tarball inside of a Debian package.
//!
//! Hides the formats: they are told by their first bytes, never by a name, and read in one pass.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use anyhow::{Context, Result};
use bstr::{BStr, ByteSlice};
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::stream::{Mode, Stream, refused, tree_path};
use super::{open, read_some};
use crate::debian;
use crate::digest::hex;
use crate::error::{Refusal, refusal};
use crate::exec::check_interrupted;
use crate::ui::{Progress, Ui};

/// A tar file is made of blocks of this size, and ends with at least one of zeros.
const BLOCK: u64 = 512;

/// What decoding may take: `xz -9` needs 65 MB for a block.
const XZ_MEMORY: u64 = 256 << 20;

/// A package's `control` file is small.
const LARGEST_CONTROL: u64 = 1 << 20;

const HINT: &str =
    "a tarball (plain, xz, zst or gz) or a Debian package is needed, whole: get it again";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Tar,
    Xz,
    Gzip,
    Zstd,
    Package,
}

/// Adds all files in the tarball or package at `path`; its content must have this digest.
pub(super) fn read(path: &Path, sha256: &str, stream: &mut Stream<'_>, ui: Ui) -> Result<()> {
    let file = open(path)?;
    let length = file.metadata().map_or(0, |found| found.len());
    let mut metered = Metered {
        file,
        hasher: Sha256::new(),
        at: 0,
        progress: ui.progress("importing", length),
    };
    outermost(&mut metered, stream).map_err(|error| match refusal(&error) {
        Some(_) => error,
        None => error.context(
            Refusal::usage(format!("`{}` is broken or cut off", path.display())).hint(HINT),
        ),
    })?;
    let found = metered.finish()?;
    if found != sha256 {
        return Err(Refusal::tool(format!(
            "`{}` is not what it should be: its digest is {found}",
            path.display()
        ))
        .hint("it was changed while it was read, or by the download; run it again")
        .into());
    }
    Ok(())
}

fn outermost(from: &mut Metered, stream: &mut Stream<'_>) -> Result<()> {
    let (format, from) = sniff(from)?;
    match format {
        Format::Package => package(from, stream),
        _ => tarball(decoded(format, from)?, stream),
    }
}

/// Looks at the first bytes and gives them back.
fn sniff<'r>(mut from: impl Read + 'r) -> Result<(Format, Box<dyn Read + 'r>)> {
    let mut head = vec![0; 512];
    let mut length = 0;
    while length < head.len() {
        match read_some(&mut from, &mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    head.truncate(length);
    let format = match &head[..] {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Format::Xz,
        [0x1f, 0x8b, ..] => Format::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Format::Zstd,
        head if head.starts_with(b"!<arch>\n") => Format::Package,
        head if head.get(257..262) == Some(b"ustar") => Format::Tar,
        _ => {
            return Err(Refusal::usage("this is no archive that reroll can read")
                .hint(HINT)
                .into());
        }
    };
    Ok((format, Box::new(Cursor::new(head).chain(from))))
}

/// The tar file inside of a compressed one.
fn decoded<'r>(format: Format, from: Box<dyn Read + 'r>) -> Result<Box<dyn Read + 'r>> {
    let from = BufReader::with_capacity(1 << 18, from);
    Ok(match format {
        Format::Tar => Box::new(from),
        Format::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(from)),
        Format::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
        Format::Xz => {
            let decoder = liblzma::stream::Stream::new_stream_decoder(
                XZ_MEMORY,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(from, decoder))
        }
        Format::Package => {
            return Err(Refusal::usage("a package is inside of a package")
                .hint(HINT)
                .into());
        }
    })
}

/// Adds all files of a tar file.
fn tarball(from: impl Read, stream: &mut Stream<'_>) -> Result<()> {
    entries(from, |path, entry| {
        stream.dated(entry.header().mtime()?);
        let kind = entry.header().entry_type();
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                let mode = Mode::of_permissions(entry.header().mode()?);
                stream.file(path, mode, entry.size(), entry)
            }
            EntryType::Symlink => stream.link(path, &link_target(path, entry)?),
            EntryType::Link => {
                let target = tree_path(&link_target(path, entry)?)?.unwrap_or_default();
                stream.hard_link(path, target.as_bstr())
            }
            _ => Err(refused(path, "is neither a file nor a directory")),
        }
    })
}

fn link_target(path: &BStr, entry: &tar::Entry<'_, impl Read>) -> Result<Vec<u8>> {
    let target = entry.link_name_bytes();
    let target = target.ok_or_else(|| refused(path, "is a link to nothing"))?;
    Ok(target.into_owned())
}

/// Calls `each` for whatever is not a directory, to the very end of `from`.
fn entries<R: Read>(
    from: R,
    mut each: impl FnMut(&BStr, &mut tar::Entry<'_, &mut Counted<R>>) -> Result<()>,
) -> Result<()> {
    let mut counted = Counted { from, count: 0 };
    let mut archive = tar::Archive::new(&mut counted);
    let mut end = 0;
    for entry in archive.entries()? {
        check_interrupted()?;
        let mut entry = entry?;
        end = end_of(&entry).context("a file in it claims an impossible size")?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let raw = entry.path_bytes().into_owned();
        let path = tree_path(&raw)?;
        if kind == EntryType::Directory || (kind == EntryType::Regular && raw.ends_with(b"/")) {
            continue;
        }
        let path = path.ok_or_else(|| refused(raw.as_bstr(), "names no file"))?;
        if is_sparse(&mut entry)? {
            return Err(refused(path.as_bstr(), "is stored as a sparse file"));
        }
        each(path.as_bstr(), &mut entry)?;
    }
    drain(&mut counted)?;
    // Without the closing block, a file cut off between two entries would pass for a whole one.
    if counted.count < end.saturating_add(BLOCK) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(())
}

fn end_of(entry: &tar::Entry<'_, impl Read>) -> Option<u64> {
    let size = entry.size().checked_next_multiple_of(BLOCK)?;
    entry.raw_file_position().checked_add(size)
}

fn is_sparse(entry: &mut tar::Entry<'_, impl Read>) -> Result<bool> {
    if entry.header().entry_type() == EntryType::GNUSparse {
        return Ok(true);
    }
    for extension in entry.pax_extensions()?.into_iter().flatten() {
        if extension?.key_bytes().starts_with(b"GNU.sparse.") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds the kernel's tarball in a Debian package (deb(5)): an `ar` file with a `control.tar` and a `data.tar`.
fn package(from: impl Read, stream: &mut Stream<'_>) -> Result<()> {
    let mut members = ar::Archive::new(from);
    let mut found = false;
    while let Some(member) = members.next_entry() {
        let mut member = member?;
        let name = member.header().identifier().to_vec();
        if name.starts_with(b"control.tar") {
            let (format, from) = sniff(&mut member)?;
            stream.packaged(package_name(decoded(format, from)?)?);
        } else if name.starts_with(b"data.tar") {
            let (format, from) = sniff(&mut member)?;
            source_in_package(decoded(format, from)?, stream)?;
            found = true;
        }
    }
    if found {
        return Ok(());
    }
    Err(
        Refusal::usage("there is no `data.tar` in it, so it is no Debian package")
            .hint(HINT)
            .into(),
    )
}

/// `name version` from a package's `control` file.
fn package_name(control: impl Read) -> Result<String> {
    let mut name = None;
    entries(control, |path, entry| {
        if path == "control" {
            let mut text = Vec::new();
            entry.take(LARGEST_CONTROL).read_to_end(&mut text)?;
            name = debian::package_of_control(&text);
        }
        Ok(())
    })?;
    name.ok_or_else(|| {
        Refusal::usage("its `control` file does not say which package it is")
            .hint(HINT)
            .into()
    })
}

/// Adds the files of the one `usr/src/linux-source-*.tar.*` among a package's files.
fn source_in_package(data: impl Read, stream: &mut Stream<'_>) -> Result<()> {
    let mut count = 0;
    entries(data, |path, entry| {
        let name = path.strip_prefix(b"usr/src/linux-source-");
        let is_source = name.is_some_and(|name| name.contains_str(".tar") && !name.contains(&b'/'));
        if !is_source || entry.header().entry_type() != EntryType::Regular {
            return Ok(());
        }
        count += 1;
        if count > 1 {
            return Err(refused(path, "is a second kernel in the package"));
        }
        let (format, from) = sniff(&mut *entry)?;
        tarball(decoded(format, from)?, stream)
    })?;
    if count == 1 {
        return Ok(());
    }
    Err(Refusal::usage("the package has no `usr/src/linux-source-*.tar.*`")
        .hint("packages called `linux-source-7.3` and the like hold a kernel; `linux-image-*` do not")
        .into())
}

/// Reads what is left, so that checksums at the end are looked at.
fn drain(from: &mut impl Read) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while read_some(from, &mut buffer)? > 0 {
        check_interrupted()?;
    }
    Ok(())
}

/// Counts what was read.
struct Counted<R> {
    from: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

/// The file itself: shows how far it is and takes its digest.
struct Metered {
    file: File,
    hasher: Sha256,
    at: u64,
    progress: Progress,
}

impl Metered {
    fn finish(mut self) -> Result<String> {
        drain(&mut self)?;
        Ok(hex(&self.hasher.finalize()))
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.at += count as u64;
        self.progress.set(self.at);
        Ok(count)
    }
}
