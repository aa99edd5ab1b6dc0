//! Where a name leads to, and the names of what is not there yet.
//!
//! Hides symbolic links, also those whose end is not there, and the files behind descriptors.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An entry of a directory, which is no symbolic link; it need not be there.
    Entry(PathBuf),
    /// A file that this process has open: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/3`.
    Descriptor(u32),
}

/// Links in a row that the kernel follows, too.
const MOST_LINKS: usize = 40;

/// Between making a file and locking it a run may be halted for this long.
const YOUNG: Duration = Duration::from_mins(1);

/// Follows symbolic links to their end.
pub(super) fn resolve(path: &Path) -> io::Result<Place> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let parent = parent(&path);
        if let Some(number) = descriptor(&parent, &path) {
            return Ok(Place::Descriptor(number));
        }
        match fs::read_link(&path) {
            Ok(target) => path = parent.join(target),
            // It is no link, or is not there.
            Err(_) => return Ok(Place::Entry(path)),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// The number of an open file of this process.
fn descriptor(parent: &Path, path: &Path) -> Option<u32> {
    let own = format!("/proc/{}/fd", std::process::id());
    let is_own = parent.canonicalize().is_ok_and(|it| it == Path::new(&own));
    is_own.then(|| path.file_name()?.to_str()?.parse().ok())?
}

/// The directory that an entry is in.
pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// What the names beside an entry begin with, under which it is made before it is put in place.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.reroll-")
}

/// A name beside an entry that nobody else uses.
pub(super) fn aside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}{}-{next}", stem(path), std::process::id());
    parent(path).join(name)
}

/// Removes what runs that were killed have left beside an entry. `lock` is the file that a living run holds, for what lies at a path.
pub(super) fn sweep(path: &Path, lock: impl Fn(&Path) -> PathBuf) {
    let stem = stem(path);
    let entries = fs::read_dir(parent(path)).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&stem)) else {
            continue;
        };
        let process = rest.split('-').next().and_then(|it| it.parse::<u32>().ok());
        let left = entry.path();
        if process.is_some_and(|process| is_left(&left, &lock(&left), process)) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_file(&left).or_else(|_| fs::remove_dir_all(&left));
        }
    }
}

/// Whether nobody is at work on what lies at a path.
fn is_left(path: &Path, lock: &Path, process: u32) -> bool {
    let age = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let age = age
        .ok()
        .and_then(|then| SystemTime::now().duration_since(then).ok());
    let is_old = age.is_some_and(|age| age > YOUNG);
    let is_gone = !Path::new(&format!("/proc/{process}")).exists();
    let is_free = File::open(lock).map_or(true, |file| file.try_lock().is_ok());
    is_free && (is_gone || is_old)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end_whether_it_is_there_or_not() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        symlink("b", dir.join("a")).unwrap();
        symlink("sub/c", dir.join("b")).unwrap();
        let end = Place::Entry(dir.join("sub/c"));
        assert_eq!(resolve(&dir.join("a")).unwrap(), end);
        symlink("round", dir.join("round")).unwrap();
        assert!(resolve(&dir.join("round")).is_err());
        assert_eq!(
            resolve(Path::new("x")).unwrap(),
            Place::Entry(PathBuf::from("x"))
        );
    }

    #[test]
    fn descriptors_are_known_by_all_their_names() {
        for name in ["/dev/fd/1", "/proc/self/fd/1", "/dev/stdout"] {
            assert_eq!(
                resolve(Path::new(name)).unwrap(),
                Place::Descriptor(1),
                "{name}"
            );
        }
    }

    #[test]
    fn only_what_a_dead_run_left_is_swept_away() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        let mine = aside(&path);
        fs::write(&mine, "x").unwrap();
        // No process has this number.
        let dead = temp.path().join(".file.reroll-4194304999-0");
        let other = temp.path().join(".other.reroll-4194304999-0");
        let held = temp.path().join(".file.reroll-4194304999-1");
        let wrong = temp.path().join(".file.reroll-notes");
        for path in [&other, &held, &wrong] {
            fs::write(path, "x").unwrap();
        }
        fs::create_dir(&dead).unwrap();
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        sweep(&path, Path::to_owned);
        assert!(!dead.exists());
        for path in [&mine, &other, &held, &wrong] {
            assert!(path.exists(), "{}", path.display());
        }
    }
}
