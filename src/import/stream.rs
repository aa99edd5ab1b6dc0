//! Feeds files to `git fast-import`, which makes one pack of them, and ends with the commit.
//!
//! Hides the stream's format, and what a path in a tree may be: the whole list is checked before the commit is made.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};

use super::{Kernel, Origin, kernel_release};
use crate::error::Refusal;
use crate::exec::{Task, check_interrupted};
use crate::repo::{ObjectId, Repo};
use crate::ui::shown_text;

/// Where a commit stands between being made and being tagged.
pub(crate) const IMPORT_REF: &str = "refs/reroll/importing";

/// No kernel has so many files; a larger list would only fill the memory.
const MOST_FILES: usize = 1_000_000;

/// Files up to this size are kept while they may turn out to be the kernel's `Makefile`.
const LARGEST_MAKEFILE: u64 = 1 << 20;

/// The later of two times that git can be told without doubt (2106).
const LATEST: u64 = u32::MAX as u64;

/// What a path in a tree is, by git's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Executable,
    Link,
}

impl Mode {
    /// Git keeps one bit of the permissions: whether the owner may execute.
    pub(super) fn of_permissions(mode: u32) -> Self {
        if mode & 0o100 == 0 {
            Self::Plain
        } else {
            Self::Executable
        }
    }

    fn git(self) -> &'static str {
        match self {
            Self::Plain => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// The files of one import.
pub(super) struct Stream<'a> {
    out: BufWriter<&'a mut dyn Write>,
    files: BTreeMap<BString, (Mode, usize)>,
    makefiles: BTreeMap<BString, Vec<u8>>,
    newest: u64,
    package: Option<String>,
    marks: usize,
}

/// Runs `git fast-import` on the bare repository at `repo` while `read` names files to it, and commits them.
///
/// The child holds `lock`, too: where this process is killed, nobody else begins before it is gone.
pub(super) fn commit(
    repo: &Path,
    lock: &File,
    origin: &Origin,
    read: impl FnOnce(&mut Stream<'_>) -> Result<()>,
) -> Result<ObjectId> {
    let lock = lock.try_clone().context("cannot hand on the lock")?;
    fast_import(repo).holding(lock).feed(|out| {
        let mut stream = Stream::new(out);
        read(&mut stream)?;
        stream.finish(origin)
    })?;
    let repo = Repo::open(repo)?;
    repo.reference(IMPORT_REF)?
        .with_context(|| format!("`git fast-import` ended well without writing `{IMPORT_REF}`"))
}

/// Deltas would take minutes and are of no use to whoever reads a single tree; level 1 makes a pack a quarter
/// larger than git's default in less than half of the time.
fn fast_import(repo: &Path) -> Task {
    Task::git()
        .arg("--git-dir")
        .arg(repo)
        .args(["-c", "core.compression=1"])
        .args(["-c", "fastimport.unpackLimit=0"])
        .args(["fast-import", "--quiet", "--done", "--depth=0"])
        .args(["--big-file-threshold=64m", "--date-format=raw"])
}

impl<'a> Stream<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 16, out),
            files: BTreeMap::new(),
            makefiles: BTreeMap::new(),
            newest: 0,
            package: None,
            marks: 0,
        }
    }

    /// The time of something in the archive, seconds since 1970: the commit gets the newest.
    pub(super) fn dated(&mut self, time: u64) {
        self.newest = self.newest.max(time.min(LATEST));
    }

    /// The package that the files come in.
    pub(super) fn packaged(&mut self, package: String) {
        self.package = Some(package);
    }

    /// Adds a file of `size` bytes.
    pub(super) fn file(
        &mut self,
        path: &BStr,
        mode: Mode,
        size: u64,
        from: &mut dyn Read,
    ) -> Result<()> {
        self.add(path, mode)?;
        write!(self.out, "blob\nmark :{}\ndata {size}\n", self.marks)?;
        if mode != Mode::Link && size <= LARGEST_MAKEFILE && is_makefile(path) {
            let mut bytes = Vec::new();
            from.take(size).read_to_end(&mut bytes)?;
            self.out.write_all(&bytes)?;
            whole(path, size, bytes.len() as u64)?;
            self.makefiles.insert(path.into(), bytes);
        } else {
            whole(path, size, copy(from, &mut self.out, size)?)?;
        }
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Adds a symbolic link; where it points to is nobody's business here.
    pub(super) fn link(&mut self, path: &BStr, target: &[u8]) -> Result<()> {
        if target.is_empty() {
            return Err(refused(path, "is a symbolic link to nothing"));
        }
        let size = target.len() as u64;
        self.file(path, Mode::Link, size, &mut &target[..])
    }

    /// Adds one more name for a file that was added before.
    pub(super) fn hard_link(&mut self, path: &BStr, target: &BStr) -> Result<()> {
        let Some(&known) = self.files.get(target) else {
            return Err(refused(
                path,
                "is a hard link to a file that is not before it",
            ));
        };
        let mark = self.marks;
        self.add(path, known.0)?;
        self.marks = mark;
        self.files.insert(path.into(), known);
        Ok(())
    }

    fn add(&mut self, path: &BStr, mode: Mode) -> Result<()> {
        check_interrupted()?;
        if self.files.len() >= MOST_FILES {
            return Err(refused(path, "is one file too many for a kernel"));
        }
        self.marks += 1;
        if self.files.insert(path.into(), (mode, self.marks)).is_some() {
            return Err(refused(path, "is there twice"));
        }
        Ok(())
    }

    /// Checks the list as a whole and writes the commit.
    fn finish(mut self, origin: &Origin) -> Result<()> {
        self.check_directories()?;
        let top = self.top()?;
        let kernel = self.kernel(top.as_bstr())?;
        let message = message(&kernel, origin);
        write!(
            self.out,
            "commit {IMPORT_REF}\ncommitter reroll <reroll@localhost> {} +0000\ndata {}\n{message}\n",
            self.newest,
            message.len()
        )?;
        for (path, (mode, mark)) in &self.files {
            write!(self.out, "M {} :{mark} ", mode.git())?;
            self.out.write_all(&quoted(&path[top.len()..]))?;
            self.out.write_all(b"\n")?;
        }
        self.out.write_all(b"\ndone\n")?;
        self.out.flush()?;
        Ok(())
    }

    /// No file may stand where another path needs a directory.
    fn check_directories(&self) -> Result<()> {
        for path in self.files.keys() {
            for slash in path.find_iter("/") {
                if self.files.contains_key(path[..slash].as_bstr()) {
                    return Err(refused(path.as_bstr(), "needs a directory where a file is"));
                }
            }
        }
        Ok(())
    }

    /// The directory that holds everything, with its slash: tarballs have one, directories do not.
    fn top(&self) -> Result<BString> {
        let none = BString::default();
        let Some(first) = self.files.keys().next() else {
            return Err(no_kernel("there is no file in it"));
        };
        let Some((top, _)) = first.split_once_str("/") else {
            return Ok(none);
        };
        let top = BString::from([top, b"/"].concat());
        let all = self.files.keys().all(|path| path.starts_with(&top));
        Ok(if all { top } else { none })
    }

    /// Makes sure that this is a kernel, and which.
    fn kernel(&self, top: &BStr) -> Result<Kernel> {
        let at = |name: &str| BString::from([top.as_bytes(), name.as_bytes()].concat());
        let Some(makefile) = self.makefiles.get(&at("Makefile")) else {
            return Err(no_kernel("it has no `Makefile` at its top"));
        };
        let Some(release) = kernel_release(makefile) else {
            return Err(no_kernel("its `Makefile` does not set a kernel's version"));
        };
        if !self.files.contains_key(&at("Kconfig")) {
            return Err(no_kernel("it has no `Kconfig` at its top"));
        }
        Ok(Kernel {
            release,
            package: self.package.clone(),
        })
    }
}

/// The path of something in an archive as a tree has it: relative, without `.` and empty parts.
/// `None` is the archive's own top.
pub(super) fn tree_path(raw: &[u8]) -> Result<Option<BString>> {
    if raw.starts_with(b"/") {
        return Err(refused(raw.as_bstr(), "is an absolute path"));
    }
    let mut path = BString::default();
    for part in raw.split_str("/") {
        match part {
            b"" | b"." => continue,
            b".." => return Err(refused(raw.as_bstr(), "leaves the tree")),
            part if is_git(part) => return Err(refused(raw.as_bstr(), "is inside of a `.git`")),
            _ if part.contains(&0) => return Err(refused(raw.as_bstr(), "holds a NUL")),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    Ok((!path.is_empty()).then_some(path))
}

/// Whether git, on any file system, could take this for its own directory (git's `verify_path`): any case, Windows'
/// short name, and what macOS leaves of a name.
fn is_git(part: &[u8]) -> bool {
    let visible: String = part
        .chars()
        .filter(|&char| !matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
        .collect();
    let name = visible.trim_end_matches([' ', '.']);
    let name = name.split(':').next().unwrap_or(name);
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

fn is_makefile(path: &BStr) -> bool {
    let name = path
        .split_once_str("/")
        .map_or(path, |(_, rest)| rest.as_bstr());
    path == "Makefile" || name == "Makefile"
}

/// Subject and trailer: nothing in it depends on the machine or the day.
fn message(kernel: &Kernel, origin: &Origin) -> String {
    let package = kernel.package.as_deref();
    let package = package.map_or_else(String::new, |package| format!(" ({package})"));
    format!(
        "Linux {}{package}\n\n{}\n",
        kernel.release,
        origin.trailer()
    )
}

/// A path as fast-import reads it: quoted as in C.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            0..0x20 | 0x7f => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Copies at most `size` bytes and says how many there were.
fn copy(from: &mut dyn Read, to: &mut dyn Write, size: u64) -> Result<u64> {
    let mut buffer = [0; 1 << 14];
    let mut left = size;
    while left > 0 {
        let want = usize::try_from(left)
            .unwrap_or(buffer.len())
            .min(buffer.len());
        let count = super::read_some(&mut &mut *from, &mut buffer[..want])?;
        if count == 0 {
            break;
        }
        to.write_all(&buffer[..count])?;
        left -= count as u64;
        if left > 0 {
            check_interrupted()?;
        }
    }
    Ok(size - left)
}

fn whole(path: &BStr, size: u64, read: u64) -> Result<()> {
    if read == size {
        return Ok(());
    }
    Err(refused(path, &format!("ends after {read} of {size} bytes")))
}

/// Something in the source that cannot be taken as it is.
pub(super) fn refused(path: &BStr, why: &str) -> anyhow::Error {
    Refusal::usage(format!("`{}` {why}", shown_text(path)))
        .hint("nothing was imported; the source is broken, or not made by people who mean well")
        .into()
}

fn no_kernel(why: &str) -> anyhow::Error {
    Refusal::usage(format!("this is no kernel: {why}"))
        .hint("the source must hold a kernel's whole tree, at its top or in one directory")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_could_leave_the_tree_or_touch_git_is_refused() {
        let hostile: [&[u8]; 12] = [
            b"/etc/passwd",
            b"../x",
            b"a/../x",
            b"a/..",
            b".git/config",
            b"a/.GIT/hooks/x",
            b"a/.gIt",
            b"git~1/x",
            b".git /x",
            b".git./x",
            b".git::$INDEX_ALLOCATION/x",
            "a/.g\u{200c}it/x".as_bytes(),
        ];
        for raw in hostile {
            assert!(tree_path(raw).is_err(), "{:?}", raw.as_bstr());
        }
    }

    #[test]
    fn other_paths_are_kept_and_made_plain() {
        let same = |raw: &str, path: &str| {
            let found = tree_path(raw.as_bytes()).expect("fine");
            assert_eq!(found.expect("a path"), path);
        };
        same("./a//b/./c", "a/b/c");
        same(".gitignore", ".gitignore");
        same("a/.gitattributes", "a/.gitattributes");
        same("a/..b/c..", "a/..b/c..");
        assert_eq!(tree_path(b"./").expect("fine"), None);
    }

    #[test]
    fn a_path_is_quoted_as_fast_import_reads_it() {
        assert_eq!(
            quoted(b"a \"b\\\n\xff").as_bstr(),
            b"\"a \\\"b\\\\\\012\xff\"".as_bstr()
        );
    }
}
