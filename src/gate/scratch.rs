//! A throw-away repository that holds only the files a series touches, where mails meet the real `git am`.
//!
//! Hides its place and its git children; nothing of the kernel's repository is checked out or changed.

use std::fs;
use std::path::Path;

use anyhow::Result;
use bstr::{BStr, BString, ByteSlice};

use crate::diff::unquoted;
use crate::exec::{Output, Task};
use crate::lab::{Files, safe_path};
use crate::repo::{Commit, File, MODE_NONE, ObjectId, Repo};
use crate::temporary;

/// A repository in a temporary directory.
pub(super) struct Scratch {
    dir: tempfile::TempDir,
}

/// Who commits in the scratch repository: nobody sees it.
const NOBODY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "reroll"),
    ("GIT_AUTHOR_EMAIL", "reroll@localhost"),
    ("GIT_COMMITTER_NAME", "reroll"),
    ("GIT_COMMITTER_EMAIL", "reroll@localhost"),
];

impl Scratch {
    /// An empty one.
    pub(super) fn new() -> Result<Self> {
        let dir = temporary::directory()?;
        let scratch = Self { dir };
        scratch.git(&["init", "-q", "--template="]).output()?;
        scratch.commit_all("start")?;
        Ok(scratch)
    }

    /// One that holds `files` in its first commit.
    pub(super) fn with(files: &Files) -> Result<Self> {
        let scratch = Self::new()?;
        scratch.set(files)?;
        Ok(scratch)
    }

    /// Makes the work tree hold `files` and nothing else, in a commit.
    pub(super) fn set(&self, files: &Files) -> Result<()> {
        self.git(&["rm", "-rqf", "--ignore-unmatch", "."])
            .output()?;
        for (path, file) in files {
            if let Some(file) = file {
                self.write(path.as_bstr(), file)?;
            }
        }
        self.commit_all("set")
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A git child there, which sees no configuration of the user.
    pub(super) fn git(&self, args: &[&str]) -> Task {
        let mut task = Task::git().dir(self.path());
        for (key, value) in NOBODY {
            task = task.env(key, value);
        }
        task.args(["-c", "gc.auto=0"]).args(args)
    }

    /// Applies one mail as `git am` does; the lines it said where it would not.
    pub(super) fn am(&self, mail: &[u8]) -> Result<Result<Commit, Vec<String>>> {
        let output = self.git(&["am", "-q", "--no-gpg-sign"]).input(mail).run()?;
        if !output.exit.success() {
            self.git(&["am", "--abort"]).run()?;
            return Ok(Err(said(&output)));
        }
        self.head().map(Ok)
    }

    /// The paths that a patch needs or makes: `diff` is the lower half of a mail, decoded.
    pub(super) fn paths(&self, diff: &[u8]) -> Result<Vec<BString>> {
        let output = self
            .git(&["apply", "--numstat", "-z"])
            .input(diff)
            .output()?;
        let lines = output.split_str("\0").filter(|line| !line.is_empty());
        let new = lines.filter_map(|line| line.splitn_str(3, "\t").nth(2));
        // Of a file that is renamed git says the new name only.
        let old = diff.lines().filter_map(|line| {
            line.strip_prefix(b"rename from ")
                .or_else(|| line.strip_prefix(b"copy from "))
        });
        let plain = |name: &[u8]| unquoted(name).map_or_else(|| name.into(), |(name, _)| name);
        let paths: Vec<BString> = new.map(BString::from).chain(old.map(plain)).collect();
        paths
            .iter()
            .try_for_each(|path| safe_path(path.as_bstr()))?;
        Ok(paths)
    }

    /// Whether any commit here knows `path`.
    pub(super) fn has_seen(&self, path: &BStr) -> Result<bool> {
        let log = self
            .git(&["log", "--format=%H", "-1", "--"])
            .arg(path.to_path()?)
            .output()?;
        Ok(!log.is_empty())
    }

    /// Adds the file at `path` of a tree, if there is one, in a commit of its own.
    pub(super) fn add_missing(&self, repo: &Repo, tree_id: ObjectId, path: &BStr) -> Result<()> {
        if let Some(file) = repo.file(tree_id, path)? {
            self.write(path, &file)?;
            self.commit_all("add a file of the base")?;
        }
        Ok(())
    }

    /// What the newest commit changed, as a commit of `repo` on top of `parent` (commit and tree).
    pub(super) fn transplant(
        &self,
        repo: &Repo,
        parent: (ObjectId, ObjectId),
        commit: &Commit,
    ) -> Result<(ObjectId, ObjectId)> {
        let here = Repo::open(self.path())?;
        let before = here.commit(commit.parent_ids[0])?.tree_id;
        let mut files = Vec::new();
        for path in here.changed_paths(before, commit.tree_id)? {
            let file = here.file(commit.tree_id, path.as_bstr())?;
            let (mode, bytes) = file.map_or((MODE_NONE, Vec::new()), |it| (it.mode, it.bytes));
            files.push((path, mode, repo.write_blob(&bytes)?));
        }
        let files: Vec<_> = files
            .iter()
            .map(|(path, mode, id)| (path.as_bstr(), *mode, *id))
            .collect();
        let tree_id = repo.write_tree(parent.1, &files)?;
        let commit_id = repo.write_commit(
            tree_id,
            Some(parent.0),
            &commit.author,
            commit.message.as_bstr(),
        )?;
        Ok((commit_id, tree_id))
    }

    /// Writes a file into the work tree.
    pub(super) fn write(&self, path: &BStr, file: &File) -> Result<()> {
        let place = self.path().join(path.to_path()?);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        crate::lab::write_file(&place, file)
    }

    /// Commits everything that is there.
    pub(super) fn commit_all(&self, message: &str) -> Result<()> {
        self.git(&["add", "-Af", "."]).output()?;
        self.git(&["commit", "-q", "--allow-empty", "-m", message])
            .output()
            .map(drop)
    }

    /// The newest commit.
    pub(super) fn head(&self) -> Result<Commit> {
        let repo = Repo::open(self.path())?;
        repo.commit(repo.base("HEAD")?.commit_id)
    }
}

/// What a child said, line by line.
pub(super) fn said(output: &Output) -> Vec<String> {
    let both = [&output.stderr[..], &output.stdout[..]];
    both.iter()
        .flat_map(|bytes| bytes.lines())
        // Git's advice is for who has a work tree to mend.
        .filter(|line| !line.starts_with(b"hint: "))
        .map(|line| line.to_str_lossy().into_owned())
        .collect()
}
