//! Commits as data: the bases that are read, and the commits that are made.
//!
//! Hides how git spells a commit, and how one is told that only this machine has.

use anyhow::{Context, Result};
use bstr::{BStr, BString, ByteSlice};
use git2::{ErrorCode, ObjectType};

use super::store::{ObjectId, Repo};
use super::tree::tree_entries;
use crate::error::Refusal;
use crate::exec::Task;
use crate::ui::shown_text;

/// A trailer in the message of commits that reroll made from a directory, a tarball or a package:
/// no official tree has such a commit.
pub const IMPORT_TRAILER: &str = "Reroll-import:";

/// One revision of a kernel, read-only: what a series is regenerated on.
#[derive(Debug, Clone)]
pub struct Base {
    /// The revision as the user named it.
    pub rev: String,
    /// The commit.
    pub commit_id: ObjectId,
    /// Its tree.
    pub tree_id: ObjectId,
    /// Whether it was made from a directory, a tarball or a package: it has no parent, and its id means nothing to anybody else.
    pub imported: bool,
    /// The committer's time, seconds since 1970.
    pub time: i64,
}

/// A person at a time, as git records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name; bytes, since git does not check it.
    pub name: BString,
    /// The address.
    pub email: BString,
    /// Seconds since 1970.
    pub time: i64,
    /// Minutes east of UTC.
    pub offset: i32,
}

/// A commit as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree_id: ObjectId,
    /// Its parents, first parent first.
    pub parent_ids: Vec<ObjectId>,
    /// Who wrote it.
    pub author: Signature,
    /// Who committed it.
    pub committer: Signature,
    /// The whole message.
    pub message: BString,
}

impl Commit {
    /// The message's first paragraph on one line, as git shows it.
    #[must_use]
    pub fn subject(&self) -> BString {
        let lines = self.message.trim_start().lines();
        let first = lines.take_while(|line| !line.trim().is_empty());
        bstr::join(" ", first.map(ByteSlice::trim)).into()
    }
}

impl Repo {
    /// Resolves `rev` (any of git's spellings) to a commit.
    pub fn base(&self, rev: &str) -> Result<Base> {
        self.is_readable(rev)?;
        let found = self.git.revparse_single(rev);
        if let Some(commit) = self.nameless(rev, found.as_ref().err())? {
            return Ok(Base {
                rev: rev.to_owned(),
                commit_id: commit.id,
                tree_id: commit.tree_id,
                imported: commit.parent_ids.is_empty()
                    || commit.message.contains_str(IMPORT_TRAILER),
                time: commit.committer.time,
            });
        }
        let object = found.map_err(|error| {
            let repo = self.path().display();
            Refusal::usage(format!(
                "`{}` is no revision of `{repo}`: {}",
                shown_text(rev.as_bytes()),
                shown_text(error.message().as_bytes())
            ))
            .hint("`--base` takes a tag, a branch or a commit, as `git rev-parse` does")
        })?;
        let object_id = object.id();
        let commit = object.peel_to_commit().map_err(|_| {
            Refusal::usage(format!(
                "`{}` ({object_id}) is not a commit",
                shown_text(rev.as_bytes())
            ))
            .hint("`--base` takes a tag, a branch or a commit, as `git rev-parse` does")
        })?;
        Ok(Base {
            rev: rev.to_owned(),
            commit_id: commit.id(),
            tree_id: commit.tree_id(),
            imported: is_import(&commit),
            time: commit.committer().when().seconds(),
        })
    }

    /// A commit by its id.
    pub fn commit(&self, id: ObjectId) -> Result<Commit> {
        self.loose(id)?;
        let found = self.git.find_commit(id);
        if found.as_ref().is_err_and(is_nameless) {
            return self.raw_commit(id);
        }
        let commit = found.with_context(|| {
            Refusal::usage(format!(
                "there is no commit {id} in `{}`",
                self.path().display()
            ))
        })?;
        Ok(Commit {
            id,
            tree_id: commit.tree_id(),
            parent_ids: commit.parent_ids().collect(),
            author: signature(&commit.author()),
            committer: signature(&commit.committer()),
            message: commit.message_raw_bytes().into(),
        })
    }

    /// Refuses a name of an object that is damaged, before libgit2 reads it.
    fn is_readable(&self, rev: &str) -> Result<()> {
        let plain = rev.split(['^', '~', '@', ':']).next().unwrap_or_default();
        let named = match ObjectId::from_str(plain) {
            Ok(id) if plain.len() == 40 => Some(id),
            _ => {
                let found = self.git.resolve_reference_from_short_name(plain);
                found.ok().and_then(|found| found.resolve().ok()?.target())
            }
        };
        let Some(id) = named else { return Ok(()) };
        self.loose(id)?;
        // What an annotated tag is of.
        let tagged = self.git.find_tag(id).ok().map(|tag| tag.target_id());
        tagged.map_or(Ok(()), |id| self.loose(id).map(drop))
    }

    /// The commit that a revision names where libgit2 does not read it for want of somebody's name, which git does.
    fn nameless(&self, rev: &str, error: Option<&git2::Error>) -> Result<Option<Commit>> {
        if !error.is_some_and(is_nameless) {
            return Ok(None);
        }
        let ran = Task::git()
            .arg("--git-dir")
            .arg(self.path())
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{rev}^{{commit}}"))
            .output()?;
        let id = ran
            .trim()
            .to_str_lossy()
            .parse()
            .context("git names no commit")?;
        self.raw_commit(id).map(Some)
    }

    /// A commit read line by line, as git does.
    fn raw_commit(&self, id: ObjectId) -> Result<Commit> {
        let (kind, bytes) = self.object(id)?;
        let broken = || Refusal::tool(format!("{id} is no commit that can be read"));
        if kind != ObjectType::Commit {
            return Err(broken().into());
        }
        let (head, message) = bytes.split_once_str("\n\n").unwrap_or((&bytes, b""));
        let values = |name: &'static str| {
            let lines = head.lines();
            lines.filter_map(move |line| line.strip_prefix(name.as_bytes())?.strip_prefix(b" "))
        };
        let ids = |name| -> Result<Vec<ObjectId>> {
            let ids = values(name).map(|id| id.to_str_lossy().parse());
            ids.collect::<Result<_, _>>().with_context(broken)
        };
        let person = |name| values(name).next().map(read_signature).with_context(broken);
        Ok(Commit {
            id,
            tree_id: *ids("tree")?.first().with_context(broken)?,
            parent_ids: ids("parent")?,
            author: person("author")?,
            committer: person("committer")?,
            message: message.into(),
        })
    }

    /// The character set that a commit says its message is in, if it is not UTF-8.
    pub fn encoding(&self, id: ObjectId) -> Result<Option<BString>> {
        let (_, bytes) = self.object(id)?;
        let head = bytes.lines().take_while(|line| !line.is_empty());
        let mut named = head.filter_map(|line| line.strip_prefix(b"encoding "));
        let named = named.next().map(|name| name.trim().as_bstr());
        let is_utf8 = |name: &&BStr| {
            [&b"utf-8"[..], b"utf8"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it))
        };
        Ok(named.filter(|name| !is_utf8(name)).map(BStr::to_owned))
    }

    /// Writes a commit; no ref learns of it. The committer is the author.
    pub fn write_commit(
        &self,
        tree_id: ObjectId,
        parent_id: Option<ObjectId>,
        author: &Signature,
        message: &BStr,
    ) -> Result<ObjectId> {
        self.write_merge(tree_id, parent_id.as_slice(), author, message)
    }

    /// Writes a commit with any number of parents; no ref learns of it.
    pub fn write_merge(
        &self,
        tree_id: ObjectId,
        parent_ids: &[ObjectId],
        author: &Signature,
        message: &BStr,
    ) -> Result<ObjectId> {
        let mut bytes = format!("tree {tree_id}\n").into_bytes();
        for parent_id in parent_ids {
            bytes.extend_from_slice(format!("parent {parent_id}\n").as_bytes());
        }
        for role in ["author", "committer"] {
            bytes.extend_from_slice(role.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(&author.line());
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(message);
        self.write(ObjectType::Commit, &bytes)
    }

    /// Copies commits, and what of theirs is not here, from `memory`: another [`Repo`] on this very repository.
    pub fn keep(&self, memory: &Self, commit_ids: &[ObjectId]) -> Result<()> {
        let (from, to) = (memory.git.odb(), self.git.odb());
        let (from, to) = (
            from.context("cannot open the object database")?,
            to.context("cannot open the object database")?,
        );
        let mut open = commit_ids.to_vec();
        let mut missing = Vec::new();
        while let Some(id) = open.pop() {
            if to.exists(id) {
                continue;
            }
            // What is in neither is a part of the base that a partial clone has left out.
            let Ok(object) = from.read(id) else { continue };
            match object.kind() {
                ObjectType::Commit => open.push(memory.commit(id)?.tree_id),
                ObjectType::Tree => {
                    open.extend(tree_entries(object.data())?.iter().map(|entry| entry.id));
                }
                _ => {}
            }
            missing.push(id);
        }
        // Children first: what is there is there with all that it needs, even if this is cut short.
        for id in missing.into_iter().rev() {
            let object = from.read(id).context("an object in memory is gone")?;
            to.write(object.kind(), object.data())
                .with_context(|| self.not_written())?;
        }
        Ok(())
    }

    /// The newest commit that two histories have in common; none for bases that were imported.
    pub fn merge_base(&self, one: ObjectId, two: ObjectId) -> Result<Option<ObjectId>> {
        match self.git.merge_base(one, two) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error).context("cannot compare two histories"),
        }
    }
}

impl Signature {
    /// As a commit object holds it: `Name <address> seconds +hhmm`.
    fn line(&self) -> Vec<u8> {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs();
        let when = format!(
            "> {} {sign}{:02}{:02}",
            self.time,
            minutes / 60,
            minutes % 60
        );
        [&self.name[..], b" <", &self.email[..], when.as_bytes()].concat()
    }
}

/// A commit without a parent that holds a kernel was imported; git's own history of the kernel starts in 2005.
/// The raw header is asked, since a shallow clone hides parents.
fn is_import(commit: &git2::Commit<'_>) -> bool {
    let has_parent = commit
        .raw_header_bytes()
        .lines()
        .any(|line| line.starts_with(b"parent "));
    !has_parent || commit.message_raw_bytes().contains_str(IMPORT_TRAILER)
}

/// Whether libgit2 does not read a commit because somebody's name or address is empty.
fn is_nameless(error: &git2::Error) -> bool {
    error.message().contains("signature")
}

/// `Name <address> seconds +hhmm`, of which anything may be missing.
fn read_signature(line: &[u8]) -> Signature {
    let (name, rest) = line.split_once_str("<").unwrap_or((line, b""));
    let (email, when) = rest.split_once_str(">").unwrap_or((rest, b""));
    let when = when.to_str_lossy();
    let mut when = when.split_ascii_whitespace();
    let time = when.next().and_then(|it| it.parse().ok()).unwrap_or(0);
    let zone: i32 = when.next().and_then(|it| it.parse().ok()).unwrap_or(0);
    Signature {
        name: name.trim().into(),
        email: email.trim().into(),
        time,
        offset: zone / 100 * 60 + zone % 100,
    }
}

fn signature(signature: &git2::Signature<'_>) -> Signature {
    Signature {
        name: signature.name_bytes().into(),
        email: signature.email_bytes().into(),
        time: signature.when().seconds(),
        offset: signature.when().offset_minutes(),
    }
}
