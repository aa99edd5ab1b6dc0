//! Remembers which files reroll has written, and what they held then.
//!
//! Hides where that is kept: in the user's cache. Without a cache nothing is remembered, and a file that is there is taken for a person's.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::digest::hex;
use crate::repo::blob_id;
use crate::temporary::write_whole;

/// What is known of one file.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    /// Git's blob id of what was written.
    content: String,
}

/// When there are more entries than this, those of files that are gone are dropped.
const MANY: usize = 500;

/// Whether a file holds what reroll wrote to it last.
pub(super) fn wrote(path: &Path, bytes: &[u8]) -> bool {
    let entry = place(path).and_then(|place| read(&place));
    entry.is_some_and(|entry| entry.content == blob_id(bytes).to_string())
}

/// Keeps in mind that a file was written. Where that cannot be kept, the next run asks for `--force`, which is safe.
pub(super) fn remember(path: &Path, bytes: &[u8]) {
    let (Some(place), Ok(path)) = (place(path), path.canonicalize()) else {
        return;
    };
    let content = blob_id(bytes).to_string();
    let Ok(json) = serde_json::to_vec(&Entry { path, content }) else {
        return;
    };
    if let Some(dir) = place.parent() {
        let _ = fs::create_dir_all(dir);
        forget_what_is_gone(dir);
    }
    let _ = write_whole(&place, &json);
}

/// Where the entry of a file is.
fn place(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let name = Sha256::digest(path.as_os_str().as_encoded_bytes());
    Some(Cache::open().ok()?.written_path().join(hex(&name)))
}

fn read(place: &Path) -> Option<Entry> {
    serde_json::from_slice(&fs::read(place).ok()?).ok()
}

fn forget_what_is_gone(dir: &Path) {
    let entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    if entries.len() < MANY {
        return;
    }
    for entry in entries.iter().map(fs::DirEntry::path) {
        if read(&entry).is_none_or(|it| !it.path.exists()) {
            let _ = fs::remove_file(entry);
        }
    }
}
