//! What is written for the user: the directory that a series goes to, and single files.
//!
//! Hides what may be written over: a file that reroll wrote itself, and never one that somebody else wrote or has edited since, unless forced. What
//! is there stays what it is: a link a link, a device a device, a directory the same directory, with its mode. A run that is killed leaves
//! what was there, or what was to come, and the next run takes its remains away.

mod directory;
mod file;
mod memory;
mod place;

pub use directory::write;
pub use file::{Output, Sort};

use std::io;
use std::path::Path;

use crate::error::Refusal;
use crate::ui::shown_text;

/// Whether anything had to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Yes.
    New,
    /// Yes, and mails that an earlier run left there are gone.
    Replaced,
    /// No: everything was there already, byte for byte.
    Unchanged,
}

/// The disk does not take it (exit 4), or the name is none that could be written to (exit 2).
fn not_written(path: &Path, error: &io::Error) -> Refusal {
    let what = format!("cannot write to `{}`: {error}", shown(path));
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Refusal::usage(what).hint("a part of the path is something else: name another place")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Refusal::tool(what).hint("make room on that disk")
        }
        _ => Refusal::tool(what).hint("check the permissions, or name another place"),
    }
}

/// A path as it is shown.
fn shown(path: &Path) -> String {
    shown_text(path.as_os_str().as_encoded_bytes())
}
