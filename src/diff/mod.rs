//! Patch text between two trees or two files, in git's bytes; the one place with diff options.
//!
//! Hides libgit2's diff, git's header lines, and how the label of an `@@` line is found.
//!
//! The rules are those of git's `diff.c`, `tree-diff.c` and `xdiff/xemit.c`. Renames are never
//! looked for (git's `--no-renames`), and no configuration is read.

mod attributes;
mod label;
mod path;

use std::cmp::Ordering;

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};
use git2::{DiffOptions, Patch};

use crate::error::Refusal;
use crate::repo::{Entry, ObjectId, Repo};
use crate::ui::shown_text;

use attributes::{Attributes, State};
pub use label::Driver;
pub use path::quoted;
pub(crate) use path::{quoted_with, unquoted};

/// How one file differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Where it is, from the tree's root.
    pub path: BString,
    /// What happened to it.
    pub change: Change,
    /// Lines added.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
    /// The patch text, from `diff --git` on.
    pub text: Vec<u8>,
}

/// What happened to a file, with git's modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added {
        /// The new mode.
        mode: u32,
    },
    /// It is gone.
    Deleted {
        /// The mode it had.
        mode: u32,
    },
    /// Its content, its mode or both changed.
    Modified {
        /// The mode it had.
        old_mode: u32,
        /// The mode it has.
        new_mode: u32,
    },
}

/// Where the labels of `@@` lines come from: the `.gitattributes` of one tree, the base's. A bare
/// repository then gives the same bytes as a work tree.
#[derive(Debug, Clone, Copy)]
pub struct Labels {
    tree_id: ObjectId,
}

impl Labels {
    /// Labels as the `.gitattributes` files in this tree ask for.
    #[must_use]
    pub fn of(tree_id: ObjectId) -> Self {
        Self { tree_id }
    }
}

/// One state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Git's mode.
    pub mode: u32,
    /// The blob, or a submodule's commit.
    pub id: ObjectId,
    /// Its content; a submodule's is git's `Subproject commit ...` line.
    pub bytes: Vec<u8>,
}

impl Version {
    fn is_regular(&self) -> bool {
        self.mode & MODE_KIND == MODE_REGULAR
    }
}

/// The hunks between two buffers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunks {
    /// From the first `@@` on; empty where the buffers are equal.
    pub text: Vec<u8>,
    /// Lines added.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
}

const MODE_TREE: u32 = 0o040_000;
const MODE_SUBMODULE: u32 = 0o160_000;
/// The bits of a mode that say whether it is a file, a symbolic link or a submodule.
const MODE_KIND: u32 = 0o170_000;
const MODE_REGULAR: u32 = 0o100_000;

/// The files that differ between two trees, in git's order, with their patch text. Trees that both
/// sides have are not read.
pub fn between(
    repo: &Repo,
    old_tree: ObjectId,
    new_tree: ObjectId,
    labels: &Labels,
) -> Result<Vec<FileDiff>> {
    let mut pairs = Vec::new();
    walk(
        repo,
        Some(old_tree),
        Some(new_tree),
        BStr::new(""),
        &mut pairs,
    )?;
    let mut attributes = Attributes::new(repo, labels.tree_id);
    pairs
        .into_iter()
        .map(|pair| pair.diff(repo, &mut attributes))
        .collect()
}

/// The patch of one file, `None` being no file; `driver` finds the labels. The caller has made sure
/// that it is text.
pub fn of_file<'a>(
    path: &BStr,
    old: Option<&'a Version>,
    new: Option<&'a Version>,
    driver: Driver,
) -> Result<FileDiff> {
    let bytes = |version: Option<&'a Version>| version.map_or(&b""[..], |it| &it.bytes);
    let found = hunks(bytes(old), bytes(new), driver)?;
    file_diff(path, old, new, driver, &found)
}

/// The same where the hunks are known.
fn file_diff(
    path: &BStr,
    old: Option<&Version>,
    new: Option<&Version>,
    driver: Driver,
    found: &Hunks,
) -> Result<FileDiff> {
    let (change, text) = match (old, new) {
        (Some(old), Some(new)) if old.mode & MODE_KIND != new.mode & MODE_KIND => {
            let gone = of_file(path, Some(old), None, driver)?.text;
            let come = of_file(path, None, Some(new), driver)?.text;
            (modified(old, new), [gone, come].concat())
        }
        (Some(old), Some(new)) => (modified(old, new), {
            let head = modified_head(old, new);
            patch_text(path, &head, [true, true], found)
        }),
        (None, Some(new)) => (Change::Added { mode: new.mode }, {
            let head = format!("new file mode {:06o}\n", new.mode) + &index_line(None, Some(new));
            patch_text(path, &head, [false, true], found)
        }),
        (Some(old), None) => (Change::Deleted { mode: old.mode }, {
            let head =
                format!("deleted file mode {:06o}\n", old.mode) + &index_line(Some(old), None);
            patch_text(path, &head, [true, false], found)
        }),
        (None, None) => anyhow::bail!("a file that is on neither side has no diff"),
    };
    Ok(FileDiff {
        path: path.to_owned(),
        change,
        insertions: found.insertions,
        deletions: found.deletions,
        text,
    })
}

/// The hunks between two buffers: Myers with git's indent heuristic, three lines of context.
/// Nothing outside the two buffers has any influence.
pub fn hunks(old: &[u8], new: &[u8], driver: Driver) -> Result<Hunks> {
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut options()))
        .context("libgit2 cannot diff two buffers")?;
    hunks_of(&patch, old, driver)
}

/// Git's own choices.
fn options() -> DiffOptions {
    let mut options = DiffOptions::new();
    options
        .context_lines(3)
        .interhunk_lines(0)
        .indent_heuristic(true)
        .force_text(true);
    options
}

fn hunks_of(patch: &Patch<'_>, old: &[u8], driver: Driver) -> Result<Hunks> {
    let mut labels = label::Search::new(old, driver);
    let mut found = Hunks::default();
    for at in 0..patch.num_hunks() {
        let (hunk, lines) = patch.hunk(at).context("libgit2 lost a hunk")?;
        let old_range = (hunk.old_start() as usize, hunk.old_lines() as usize);
        let new_range = (hunk.new_start() as usize, hunk.new_lines() as usize);
        found.text.extend_from_slice(b"@@ -");
        push_range(&mut found.text, old_range);
        found.text.extend_from_slice(b" +");
        push_range(&mut found.text, new_range);
        found.text.extend_from_slice(b" @@");
        // A range without lines is named by the line before it.
        let first = old_range.0 - usize::from(old_range.1 > 0);
        labels.push_label(&mut found.text, first);
        for line in 0..lines {
            let line = patch
                .line_in_hunk(at, line)
                .context("libgit2 lost a line")?;
            found.push_line(line.origin(), line.content());
        }
    }
    Ok(found)
}

impl Hunks {
    fn push_line(&mut self, origin: char, content: &[u8]) {
        let sign = match origin {
            ' ' => b' ',
            '+' => b'+',
            '-' => b'-',
            // libgit2's own marks for a missing newline at the end of the file.
            _ => return,
        };
        self.insertions += usize::from(sign == b'+');
        self.deletions += usize::from(sign == b'-');
        self.text.push(sign);
        self.text.extend_from_slice(content);
        if !content.ends_with(b"\n") {
            self.text
                .extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

fn push_range(text: &mut Vec<u8>, (start, count): (usize, usize)) {
    text.extend_from_slice(start.to_string().as_bytes());
    if count != 1 {
        text.extend_from_slice(format!(",{count}").as_bytes());
    }
}

fn modified(old: &Version, new: &Version) -> Change {
    Change::Modified {
        old_mode: old.mode,
        new_mode: new.mode,
    }
}

/// The lines between `diff --git` and `---` of a file that is on both sides.
fn modified_head(old: &Version, new: &Version) -> String {
    let mut head = String::new();
    if old.mode != new.mode {
        head = format!("old mode {:06o}\nnew mode {:06o}\n", old.mode, new.mode);
    }
    if old.id != new.id {
        head += &index_line(Some(old), Some(new));
    }
    head
}

/// Twelve digits whatever the repository's size; the mode stands there when it did not change.
fn index_line(old: Option<&Version>, new: Option<&Version>) -> String {
    let id = |version: Option<&Version>| {
        let id = version.map_or(ObjectId::ZERO_SHA1, |version| version.id);
        id.to_string()[..12].to_owned()
    };
    let mode = match (old, new) {
        (Some(old), Some(new)) if old.mode == new.mode => format!(" {:06o}", old.mode),
        _ => String::new(),
    };
    format!("index {}..{}{mode}\n", id(old), id(new))
}

/// A whole patch; `sides` says on which side the file is.
fn patch_text(path: &BStr, head: &str, sides: [bool; 2], hunks: &Hunks) -> Vec<u8> {
    let names = ["a/", "b/"].map(|prefix| quoted_with(prefix, path));
    let mut text = [b"diff --git ", &names[0][..], b" ", &names[1], b"\n"].concat();
    text.extend_from_slice(head.as_bytes());
    if hunks.text.is_empty() {
        return text;
    }
    for ((mark, name), there) in ["--- ", "+++ "].iter().zip(&names).zip(sides) {
        let name: &[u8] = if there { name } else { b"/dev/null" };
        text.extend_from_slice(mark.as_bytes());
        text.extend_from_slice(name);
        // So that a reader can tell where a name with blanks ends.
        text.extend_from_slice(if name.contains(&b' ') { b"\t\n" } else { b"\n" });
    }
    text.extend_from_slice(&hunks.text);
    text
}

/// A file that differs, as the two trees name it.
struct Pair {
    path: BString,
    old: Option<Entry>,
    new: Option<Entry>,
}

impl Pair {
    fn diff(self, repo: &Repo, attributes: &mut Attributes<'_>) -> Result<FileDiff> {
        let path = self.path.as_bstr();
        let read = |entry: Option<&Entry>| entry.map(|entry| version(repo, entry)).transpose();
        let old = read(self.old.as_ref())?;
        let new = read(self.new.as_ref())?;
        let regular = [&old, &new]
            .into_iter()
            .flatten()
            .any(|version| version.mode & MODE_KIND == MODE_REGULAR);
        let wanted = if regular {
            attributes.diff(path)?
        } else {
            State::Unspecified
        };
        for version in [&old, &new].into_iter().flatten() {
            refuse_binary(path, version, &wanted)?;
        }
        let driver = match (&wanted, &old) {
            (State::Value(name), Some(old)) if old.mode & MODE_KIND == MODE_REGULAR => {
                Driver::named(name.as_bstr(), path)?
            }
            _ => Driver::Plain,
        };
        match (&old, &new) {
            // As blobs: libgit2 then need not hash both sides to find out their names.
            (Some(old), Some(new))
                if regular && [old, new].iter().all(|side| side.is_regular()) =>
            {
                let found = repo.with_patch((old.id, new.id), &mut options(), |patch| {
                    hunks_of(patch, &old.bytes, driver)
                })?;
                file_diff(path, Some(old), Some(new), driver, &found)
            }
            _ => of_file(path, old.as_ref(), new.as_ref(), driver),
        }
    }
}

fn version(repo: &Repo, entry: &Entry) -> Result<Version> {
    let bytes = if entry.mode == MODE_SUBMODULE {
        format!("Subproject commit {}\n", entry.id).into_bytes()
    } else {
        repo.blob(entry.id)?
    };
    Ok(Version {
        mode: entry.mode,
        id: entry.id,
        bytes,
    })
}

/// Git takes a file for binary when an attribute says so, or when there is a NUL in its first 8000 bytes.
fn refuse_binary(path: &BStr, version: &Version, wanted: &State) -> Result<()> {
    let regular = version.mode & MODE_KIND == MODE_REGULAR;
    let binary = match wanted {
        State::Unset if regular => true,
        State::Set if regular => false,
        _ => version.bytes[..version.bytes.len().min(8000)].contains(&0),
    };
    if !binary {
        return Ok(());
    }
    let path = shown_text(path);
    Err(Refusal::usage(format!(
        "`{path}` is binary, and a patch for review holds text only"
    ))
    .hint("leave the file out of the series, or generate it at build time")
    .into())
}

/// Collects what differs below one directory; `None` is a directory that is not there.
fn walk(
    repo: &Repo,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    directory: &BStr,
    pairs: &mut Vec<Pair>,
) -> Result<()> {
    let entries = |tree: Option<ObjectId>| tree.map_or(Ok(Vec::new()), |id| repo.entries(id));
    let mut old = entries(old)?.into_iter().peekable();
    let mut new = entries(new)?.into_iter().peekable();
    loop {
        let side = match (old.peek(), new.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => sort_key(old).cmp(sort_key(new)),
        };
        let old = if side.is_le() { old.next() } else { None };
        let new = if side.is_ge() { new.next() } else { None };
        if old != new {
            differ(repo, old, new, directory, pairs)?;
        }
    }
}

/// One entry that differs: a file is collected, a directory looked into.
fn differ(
    repo: &Repo,
    old: Option<Entry>,
    new: Option<Entry>,
    directory: &BStr,
    pairs: &mut Vec<Pair>,
) -> Result<()> {
    let Some(entry) = old.as_ref().or(new.as_ref()) else {
        return Ok(());
    };
    let mut path = directory.to_owned();
    path.extend_from_slice(&entry.name);
    if entry.mode == MODE_TREE {
        path.push(b'/');
        let (old, new) = (old.map(|entry| entry.id), new.map(|entry| entry.id));
        walk(repo, old, new, path.as_bstr(), pairs)
    } else {
        pairs.push(Pair { path, old, new });
        Ok(())
    }
}

/// Git sorts a directory as if its name ended in `/`, so a file and a directory of one name are two entries.
fn sort_key(entry: &Entry) -> impl Iterator<Item = &u8> {
    let slash: &[u8] = if entry.mode == MODE_TREE { b"/" } else { b"" };
    entry.name.iter().chain(slash)
}
