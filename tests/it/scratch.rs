//! A git repository in a temporary directory, and a hermetic `git` to ask about it.
//!
//! Hides environments, tree building and the random numbers of seeded loops.

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use reroll::exec::{Output, Task};
use reroll::repo::{MODE_FILE, ObjectId, Repo, Signature};
use tempfile::TempDir;

pub(crate) const MODE_EXECUTABLE: u32 = 0o100_755;
pub(crate) const MODE_LINK: u32 = 0o120_000;
pub(crate) const MODE_SUBMODULE: u32 = 0o160_000;

/// A bare repository `repo.git` with room beside it.
pub(crate) struct Scratch {
    dir: TempDir,
    pub(crate) repo: Repo,
}

/// A file of a tree: path, mode, content; a submodule's content is its commit id.
pub(crate) type TreeFile<'a> = (&'a str, u32, &'a [u8]);

impl Scratch {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let repo = Repo::init_bare(&dir.path().join("repo.git")).expect("a repository");
        Self { dir, repo }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A tree that holds these files and nothing else.
    pub(crate) fn tree(&self, files: &[TreeFile<'_>]) -> ObjectId {
        let ids: Vec<(&BStr, u32, ObjectId)> = files
            .iter()
            .map(|&(path, mode, bytes)| {
                let id = if mode == MODE_SUBMODULE {
                    bytes.to_str().expect("an id").parse().expect("an id")
                } else {
                    self.repo.write_blob(bytes).expect("a blob")
                };
                (BStr::new(path), mode, id)
            })
            .collect();
        self.repo.write_new_tree(&ids).expect("a tree")
    }

    /// A commit that no branch knows of.
    pub(crate) fn commit(
        &self,
        tree_id: ObjectId,
        parent: Option<ObjectId>,
        author: &Signature,
        message: &str,
    ) -> ObjectId {
        self.repo
            .write_commit(tree_id, parent, author, BStr::new(message))
            .expect("a commit")
    }

    /// Points `refs/heads/main` at a commit, so that a clone gets it.
    pub(crate) fn publish(&self, commit_id: ObjectId) {
        self.git(&["update-ref", "refs/heads/main", &commit_id.to_string()]);
        self.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    }

    /// Runs git in the bare repository.
    pub(crate) fn git(&self, args: &[&str]) -> Vec<u8> {
        self.git_in("repo.git", args)
    }

    /// Runs git in a directory beside it; it must succeed.
    pub(crate) fn git_in(&self, dir: &str, args: &[&str]) -> Vec<u8> {
        let output = self.try_git(dir, &[], args);
        assert!(
            output.exit.success(),
            "git {args:?}: {}",
            output.stderr.to_str_lossy()
        );
        output.stdout
    }

    /// Runs git with nothing in its environment but what is named here.
    pub(crate) fn try_git(&self, dir: &str, env: &[&str], args: &[&str]) -> Output {
        let path = std::env::var("PATH").expect("PATH");
        Task::new("env")
            .dir(&self.path(dir))
            .args(["-i", &format!("PATH={path}")])
            .arg(format!("HOME={}", self.path("home").display()))
            .args([
                "GIT_CONFIG_NOSYSTEM=1",
                "GIT_CONFIG_GLOBAL=/dev/null",
                "TZ=UTC",
            ])
            .args([
                "GIT_COMMITTER_NAME=A U Thor",
                "GIT_COMMITTER_EMAIL=author@example.org",
            ])
            .args(env)
            .args(["git", "-c", "protocol.file.allow=always"])
            .args(args)
            .run()
            .expect("git starts")
    }

    /// A clone with a work tree, at `name`.
    pub(crate) fn clone(&self, name: &str) -> PathBuf {
        let to = self.path(name);
        let args = ["clone", "-q", "repo.git", name];
        self.git_in(".", &args);
        to
    }
}

/// A person with a fixed date.
pub(crate) fn author(name: &str, email: &str) -> Signature {
    Signature {
        name: BString::from(name),
        email: BString::from(email),
        time: 1_700_000_000,
        offset: -210,
    }
}

/// The example person.
pub(crate) fn thor() -> Signature {
    author("A U Thor", "author@example.org")
}

/// A regular file of a tree.
pub(crate) fn file<'a>(path: &'a str, text: &'a str) -> TreeFile<'a> {
    (path, MODE_FILE, text.as_bytes())
}

/// Repeatable random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    /// One of these.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Both sides of an oracle as text a person can compare.
pub(crate) fn assert_same(ours: &[u8], gits: &[u8], what: &str) {
    if ours != gits {
        let pairs = ours.lines().zip(gits.lines()).enumerate();
        let first = pairs.into_iter().find(|(_, (ours, gits))| ours != gits);
        panic!(
            "{what}: differs at {first:?}\nours:\n{}\ngit's:\n{}",
            ours.to_str_lossy(),
            gits.to_str_lossy()
        );
    }
}

/// The path as git's arguments take it.
pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("a plain path").to_owned()
}
