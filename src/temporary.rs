//! Temporary directories and files: the one way to get one.
//!
//! Hides where they are, how one takes the place of another file, and that a place which cannot be written to is the machine's fault and not reroll's.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::error::Refusal;

/// A new directory for nobody else, removed when dropped.
pub fn directory() -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("reroll-").tempdir();
    made.with_context(|| not_written(&std::env::temp_dir()))
}

/// Writes `bytes` to `path` so that it is there whole or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = aside(path);
    fs::write(&aside, bytes)?;
    fs::rename(&aside, path)
}

/// A name beside `path` that nobody else uses now.
pub(crate) fn aside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{next}.new", std::process::id()));
    PathBuf::from(name)
}

/// What to say where a temporary file cannot be written.
pub(crate) fn not_written(path: &Path) -> Refusal {
    Refusal::tool(format!(
        "cannot write temporary files to `{}`",
        path.display()
    ))
    .hint("make room there, or set TMPDIR to a directory that is there and can be written to")
}
