//! Starts a script of the kernel's: `checkpatch.pl`, `get_maintainer.pl`.
//!
//! Hides what such a script reads besides its arguments: files of options in the directory it runs in and in the home. Of these only the
//! base's own count, which everybody who has the base has as well.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::exec::Task;
use crate::temporary;

/// A directory for a script to run in. Of the base's files it has the one with the script's options, where there is one.
pub(super) fn place(source: &Path, options: &str) -> Result<TempDir> {
    let dir = temporary::directory()?;
    let own = source.join(options);
    if own.is_file() {
        fs::copy(&own, dir.path().join(options))
            .with_context(|| temporary::not_written(dir.path()))?;
    }
    Ok(dir)
}

/// Perl, to run a script in `dir`, with no home and no perl options of the user's.
pub(super) fn perl(script: &Path, dir: &Path) -> Task {
    Task::new("perl").dir(dir).arg(script)
}
