//! Temporary directories and files: the one way to get one.
//!
//! Hides where they are, how one takes the place of another file, and that a place which cannot be written to is the machine's fault and not reroll's.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::{NamedTempFile, TempDir};

use crate::error::Refusal;

/// A new directory for nobody else, removed when dropped.
pub fn directory() -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("reroll-").tempdir();
    made.with_context(|| not_written(&std::env::temp_dir()))
}

/// Writes a file: aside, renamed last, so that who reads it finds all of it or what was there before.
pub fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut aside = NamedTempFile::new_in(directory)?;
    aside.write_all(bytes)?;
    aside.persist(file)?;
    Ok(())
}

/// What to say where a temporary file cannot be written.
pub(crate) fn not_written(path: &Path) -> Refusal {
    Refusal::tool(format!(
        "cannot write temporary files to `{}`",
        path.display()
    ))
    .hint("make room there, or set TMPDIR to a directory that is there and can be written to")
}
