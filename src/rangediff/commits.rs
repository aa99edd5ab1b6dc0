//! The patches of a version that is commits: a range of a repository, or a series regenerated just now.
//!
//! Hides history walking, git's abbreviation of ids, notes and the mailmap.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use bstr::{BString, ByteSlice};
use git2::{ErrorCode, Mailmap, Repository, Sort};

use super::Patch;
use super::text::{is_space, subject};
use crate::diff::{self, Labels};
use crate::error::Refusal;
use crate::exec::Task;
use crate::repo::{Commit, ObjectId, Repo};
use crate::series::Series;
use crate::ui::shown_text;

/// How authors are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authors {
    /// As the commits have them: to compare with mails.
    AsWritten,
    /// As the repository's `.mailmap` has them, which is what `git range-diff` shows.
    Mapped,
}

/// The patches of a range.
#[derive(Debug)]
pub struct Range {
    /// Them, oldest first.
    pub patches: Vec<Patch>,
    /// How many merges are in the range: they are no patches, and git leaves them out as well.
    pub merges: usize,
    /// How many commits of the range `refs/replace` has others for, which are not looked at.
    pub replaced: usize,
}

/// More commits than this in one version are a mistake: the work grows with the square.
const MOST: usize = 2000;
/// Digits of an id that no repository abbreviates.
const DIGITS: usize = 12;
/// Git's shortest abbreviation.
const FEWEST_DIGITS: usize = 7;
/// The tree without an entry, which every repository has.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The patches of `from..to`.
pub fn of_range(repo: &Repo, from: &str, to: &str, authors: Authors) -> Result<Range> {
    let [from, to] = [repo.base(from)?, repo.base(to)?];
    let git = Repository::open(repo.path())
        .with_context(|| format!("cannot open `{}` again", repo.path().display()))?;
    let reader = Reader {
        digits: digits(repo),
        mailmap: match authors {
            Authors::Mapped => Some(mailmap(repo, &git)?),
            Authors::AsWritten => None,
        },
        labels: Labels::of(from.tree_id),
        git: &git,
        repo,
    };
    let ids = walk(&git, from.commit_id, to.commit_id).with_context(|| {
        let (from, to) = (
            shown_text(from.rev.as_bytes()),
            shown_text(to.rev.as_bytes()),
        );
        Refusal::usage(format!("cannot list the commits of `{from}..{to}`"))
            .hint("a shallow clone may lack them; `git fetch --unshallow` gets them")
    })?;
    let mut range = Range {
        patches: Vec::new(),
        merges: 0,
        replaced: 0,
    };
    let replaced = repo.references("refs/replace/")?;
    let mut commits = Vec::new();
    for id in ids {
        let commit = repo.commit(id)?;
        let name = format!("refs/replace/{id}");
        range.replaced += usize::from(replaced.iter().any(|(known, _)| *known == name));
        if commit.parent_ids.len() > 1 {
            range.merges += 1;
        } else if commits.len() == MOST {
            return Err(too_many(&from.rev, &to.rev).into());
        } else {
            commits.push(commit);
        }
    }
    let diffs = diffs(repo, from.tree_id, &commits)?;
    for commit in &commits {
        range.patches.push(reader.patch(commit, diffs.as_ref())?);
    }
    Ok(range)
}

/// The patches of a regenerated series; each is known by the recipe's name for it.
pub fn of_series(repo: &Repo, series: &Series) -> Result<Vec<Patch>> {
    let labels = Labels::of(series.base.tree_id);
    let mut before = series.base.tree_id;
    let mut patches = Vec::new();
    for patch in &series.patches {
        let commit = &patch.commit;
        let id = commit.id.to_string();
        patches.push(Patch {
            identity: Some(patch.name.clone()),
            short_id: id[..DIGITS].to_owned(),
            id,
            ..of_commit(repo, commit, before, &labels)?
        });
        before = commit.tree_id;
    }
    Ok(patches)
}

/// A commit's own data; nothing that a repository says about it.
fn of_commit(repo: &Repo, commit: &Commit, before: ObjectId, labels: &Labels) -> Result<Patch> {
    let files = diff::between(repo, before, commit.tree_id, labels)?;
    let diff = files.into_iter().flat_map(|file| file.text).collect();
    Ok(with_diff(commit, diff))
}

fn with_diff(commit: &Commit, diff: Vec<u8>) -> Patch {
    let author = &commit.author;
    Patch {
        identity: change_id(&commit.message),
        subject: subject(&commit.message),
        author: person(&author.name, &author.email),
        message: commit.message.clone(),
        diff,
        ..Patch::default()
    }
}

/// What git says that commits change, by their ids: renames, binary files and all. `None` where objects are missing that only a fetch
/// gets.
fn diffs(
    repo: &Repo,
    attributes: ObjectId,
    commits: &[Commit],
) -> Result<Option<HashMap<String, Vec<u8>>>> {
    let ids = commits.iter().map(|commit| format!("{}\n", commit.id));
    let list: String = ids.collect();
    let ran = Task::git_reading(repo.common_path())?
        .env("GIT_ATTR_SOURCE", attributes.to_string())
        .args([
            "diff-tree",
            "--stdin",
            "--root",
            "-r",
            "-p",
            "-M",
            "--no-color",
            "--full-index",
        ])
        .args(["--no-ext-diff", "--no-textconv", "--submodule=short"])
        .input(list)
        .run()?;
    if !ran.exit.success() {
        return Ok(None);
    }
    let mut found: HashMap<String, Vec<u8>> = HashMap::new();
    let mut id = String::new();
    for line in ran.stdout.lines_with_terminator() {
        let is_id = line.len() == 41 && line[..40].iter().all(u8::is_ascii_hexdigit);
        if is_id {
            id = line[..40].to_str_lossy().into_owned();
        }
        let diff = found.entry(id.clone()).or_default();
        if !is_id {
            diff.extend_from_slice(line);
        }
    }
    Ok(Some(found))
}

/// The `Change-Id` trailer of a message's last paragraph.
pub(super) fn change_id(message: &[u8]) -> Option<String> {
    let lines = message.trim_end().lines().rev();
    let mut last = lines.take_while(|line| !line.iter().all(|&byte| is_space(byte)));
    last.find_map(|line| {
        let (key, value) = line.split_once_str(":")?;
        let value = value.trim().to_str().ok()?;
        (key.eq_ignore_ascii_case(b"change-id") && !value.is_empty())
            .then(|| format!("Change-Id: {value}"))
    })
}

/// `Name <address>`.
pub(super) fn person(name: &[u8], email: &[u8]) -> BString {
    [name, b" <", email, b">"].concat().into()
}

fn too_many(from: &str, to: &str) -> Refusal {
    let (from, to) = (shown_text(from.as_bytes()), shown_text(to.as_bytes()));
    Refusal::usage(format!("`{from}..{to}` has more than {MOST} patches"))
        .hint("compare the commits of a series: name its own base in front of the `..`")
}

/// The commits of a range, parents first.
fn walk(git: &Repository, from: ObjectId, to: ObjectId) -> Result<Vec<ObjectId>> {
    let mut walk = git.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME | Sort::REVERSE)?;
    walk.push(to)?;
    walk.hide(from)?;
    Ok(walk.collect::<Result<_, _>>()?)
}

/// What turns the commits of one repository into patches.
struct Reader<'r> {
    repo: &'r Repo,
    git: &'r Repository,
    digits: usize,
    mailmap: Option<Mailmap>,
    labels: Labels,
}

impl Reader<'_> {
    fn patch(&self, commit: &Commit, diffs: Option<&HashMap<String, Vec<u8>>>) -> Result<Patch> {
        let commit = &self.in_utf8(commit)?;
        let mut patch = if let Some(diffs) = diffs {
            let diff = diffs.get(&commit.id.to_string());
            with_diff(commit, diff.cloned().unwrap_or_default())
        } else {
            let before = match commit.parent_ids.first() {
                Some(&parent) => self.repo.commit(parent)?.tree_id,
                None => EMPTY_TREE.parse().context("an id")?,
            };
            of_commit(self.repo, commit, before, &self.labels)?
        };
        let author = &commit.author;
        let written = git2::Signature::new(
            &author.name.to_str_lossy(),
            &author.email.to_str_lossy(),
            &git2::Time::new(0, 0),
        );
        // Who has no name has none in the map.
        if let (Some(mailmap), Ok(written)) = (&self.mailmap, written) {
            let mapped = mailmap.resolve_signature(&written)?;
            patch.author = person(mapped.name_bytes(), mapped.email_bytes());
        }
        patch.notes = self.notes(commit.id)?;
        patch.id = commit.id.to_string();
        patch.short_id = self.short(&patch.id)?;
        Ok(patch)
    }

    /// A commit whose message and names are in another character set than UTF-8, as git shows it.
    fn in_utf8(&self, commit: &Commit) -> Result<Commit> {
        let mut commit = commit.clone();
        if self.repo.encoding(commit.id)?.is_none() {
            return Ok(commit);
        }
        let shown = Task::git_reading(self.repo.common_path())?
            .args([
                "log",
                "--no-walk",
                "--encoding=UTF-8",
                "--format=%an%x00%ae%x00%B",
            ])
            .arg(commit.id.to_string())
            .output()?;
        let mut fields = shown.splitn_str(3, "\0");
        let mut next = || BString::from(fields.next().unwrap_or_default());
        (commit.author.name, commit.author.email, commit.message) = (next(), next(), next());
        Ok(commit)
    }

    /// Git's notes, from the ref that it uses where nothing is configured.
    fn notes(&self, id: ObjectId) -> Result<BString> {
        match self.git.find_note(Some("refs/notes/commits"), id) {
            Ok(note) => Ok(note.message_bytes().into()),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(BString::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read the notes on {id}")),
        }
    }

    /// The shortest abbreviation that names no other object, but no shorter than git's.
    fn short(&self, id: &str) -> Result<String> {
        let odb = self.git.odb()?;
        let is_unique = |&digits: &usize| {
            let prefix = ObjectId::from_str(&id[..digits]);
            prefix.is_ok_and(|prefix| odb.exists_prefix(prefix, digits).is_ok())
        };
        let digits = (self.digits..id.len()).find(is_unique).unwrap_or(id.len());
        Ok(id[..digits].to_owned())
    }
}

/// How many digits git abbreviates ids to in a repository of this size (`object-name.c`): as many as make a collision
/// unlikely, going by the objects in packs.
fn digits(repo: &Repo) -> usize {
    let count: u64 = repo.object_dirs().iter().map(|dir| packed(dir)).sum();
    let bits = u64::BITS - count.leading_zeros();
    FEWEST_DIGITS.max(bits.div_ceil(2) as usize)
}

/// The objects in the packs of one directory, by the packs' indexes.
fn packed(objects: &Path) -> u64 {
    let packs = std::fs::read_dir(objects.join("pack"));
    let paths = packs
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let indexes = paths.filter(|path| path.extension().is_some_and(|end| end == "idx"));
    indexes.filter_map(|path| index_size(&path)).sum()
}

/// The last number of the fan-out table of a pack index, version 2.
fn index_size(path: &Path) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    let mut number = [0; 4];
    let file = std::fs::File::open(path).ok()?;
    file.read_exact_at(&mut number, 8 + 255 * 4).ok()?;
    Some(u64::from(u32::from_be_bytes(number)))
}

/// The `.mailmap` that git would read; no configuration is asked for others.
fn mailmap(repo: &Repo, git: &Repository) -> Result<Mailmap> {
    let path = git.workdir().map(|dir| dir.join(".mailmap"));
    let bytes = match path {
        Some(path) if path.is_symlink() => Vec::new(),
        Some(path) => std::fs::read(path).unwrap_or_default(),
        None => {
            let head = repo.base("HEAD").ok();
            let file = head.map(|head| repo.file(head.tree_id, b".mailmap".as_bstr()));
            file.transpose()?
                .flatten()
                .map_or(Vec::new(), |file| file.bytes)
        }
    };
    // Git reads each line up to a NUL.
    let lines = bytes
        .lines()
        .map(|line| line.split(|&byte| byte == 0).next().unwrap_or_default());
    let text = bstr::join("\n", lines);
    Mailmap::from_buffer(&text.to_str_lossy()).context("cannot read the `.mailmap`")
}
