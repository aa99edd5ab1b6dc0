//! The kernels that reroll imported for this user: one bare repository, each base under a tag.
//!
//! Hides where it is, the lock between runs, and what a run that was killed leaves behind.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bstr::ByteSlice;
use serde::Serialize;

use crate::debian::{Apt, Wanted};
use crate::error::{Exit, Refusal, exit_of};
use crate::exec::Task;
use crate::import::{self, IMPORT_REF, Origin, Source, digest, kernel_release};
use crate::lock::{Hold, Lock};
use crate::repo::{IMPORT_TRAILER, ObjectId, Repo};
use crate::ui::{Ui, shown_text};

/// The base that is used where nothing else is said.
pub const DEFAULT_BASE: &str = "default";

const TAGS: &str = "refs/tags/";

/// The cache. Opening it creates nothing.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
    apt_config: Option<PathBuf>,
}

/// A base in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name: what `--base` takes.
    pub name: String,
    /// The import's commit.
    #[serde(serialize_with = "as_text")]
    pub commit_id: ObjectId,
    /// As `make kernelversion` prints it.
    pub release: String,
    /// `directory`, `sha256:DIGEST` of a file, or `NAME=VERSION` of a Debian package; empty when somebody else made
    /// the tag.
    pub origin: String,
    /// The package that it came in, if any: `name version`.
    pub package: Option<String>,
}

/// How [`Cache::add`] ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The base as it is now.
    pub base: Entry,
    /// What became of it.
    pub state: State,
}

/// What [`Cache::add`] did to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is new.
    New,
    /// It was another base before.
    Replaced,
    /// It was this very base before.
    Unchanged,
}

/// What to do where [`Cache::add`] has a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddOptions {
    /// Give a name that is taken to the new base.
    pub force: bool,
    /// Ask the mirror for new lists even if those of today are here.
    pub refresh: bool,
}

/// A tag with its commit.
struct Tag {
    name: String,
    commit_id: ObjectId,
    trailer: Option<String>,
}

impl Cache {
    /// The cache of this user: `reroll` in `XDG_CACHE_HOME` or in `.cache` of the home directory.
    pub fn open() -> Result<Self> {
        let home = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self::of(home("XDG_CACHE_HOME").as_deref(), home("HOME").as_deref())
    }

    /// The rule of the XDG base directories: what is not absolute is as good as not set.
    fn of(cache: Option<&OsStr>, home: Option<&OsStr>) -> Result<Self> {
        let absolute = |dir: &OsStr| Some(PathBuf::from(dir)).filter(|dir| dir.is_absolute());
        let cache = cache.and_then(absolute);
        let dir = cache.or_else(|| Some(home.and_then(absolute)?.join(".cache")));
        let dir = dir.ok_or_else(|| {
            Refusal::usage(
                "there is no place for a cache: neither `XDG_CACHE_HOME` nor `HOME` is set",
            )
            .hint("set one of them to an absolute path, or name a repository with `--tree`")
        })?;
        Ok(Self::at(&dir.join("reroll")))
    }

    /// Where the indexes of trees are.
    #[must_use]
    pub fn index_path(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// A cache in any directory.
    #[must_use]
    pub fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            apt_config: None,
        }
    }

    /// Where it is kept which files were written for the user.
    #[must_use]
    pub(crate) fn written_path(&self) -> PathBuf {
        self.dir.join("written")
    }

    /// Reads the machine's apt set-up as if `APT_CONFIG` named this file.
    #[must_use]
    pub fn with_apt_config(mut self, config: &Path) -> Self {
        self.apt_config = Some(config.to_owned());
        self
    }

    /// The bare repository. It is there once a base was added.
    #[must_use]
    pub fn repo_path(&self) -> PathBuf {
        self.dir.join("bases.git")
    }

    /// All bases, sorted by name.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let Some(repo) = self.repo()? else {
            return Ok(Vec::new());
        };
        let tags = self.tags()?.into_iter();
        tags.map(|tag| entry(&repo, &tag.name, tag.commit_id))
            .collect()
    }

    /// The trees of all bases.
    pub fn trees(&self) -> Result<BTreeSet<ObjectId>> {
        let Some(repo) = self.repo()? else {
            return Ok(BTreeSet::new());
        };
        let tags = self.tags()?.into_iter();
        tags.map(|tag| Ok(repo.commit(tag.commit_id)?.tree_id))
            .collect()
    }

    /// Where kernels are built.
    #[must_use]
    pub fn lab_path(&self) -> PathBuf {
        self.dir.join("lab")
    }

    /// Where it is kept which files of a tree define a function.
    #[must_use]
    pub fn places_path(&self) -> PathBuf {
        self.dir.join("places")
    }

    /// The base to use where none is named: the one called [`DEFAULT_BASE`], which is fetched when it is not there yet.
    pub fn default_base(&self, ui: Ui) -> Result<Entry> {
        if let Some(repo) = self.repo()?
            && let Some(commit_id) = repo.reference(&tag_ref(DEFAULT_BASE))?
        {
            return entry(&repo, DEFAULT_BASE, commit_id);
        }
        ui.status("no kernel tree at hand: importing the newest of this machine's Debian, once");
        let source = Source::Debian(Wanted::Default);
        Ok(self
            .add(DEFAULT_BASE, &source, AddOptions::default(), ui)?
            .base)
    }

    /// Imports `source` and names it `name`.
    pub fn add(&self, name: &str, source: &Source, options: AddOptions, ui: Ui) -> Result<Added> {
        check_name(name)?;
        let lock = self.lock()?;
        self.remove_leftovers()?;
        self.init()?;
        self.delete_ref(IMPORT_REF)?;
        let added = self.import(name, source, options, lock.file(), ui);
        if added.is_err() {
            // The error that came first is the one to tell.
            let _ = self.remove_leftovers();
        }
        added
    }

    fn import(
        &self,
        name: &str,
        source: &Source,
        options: AddOptions,
        lock: &File,
        ui: Ui,
    ) -> Result<Added> {
        let repo = self.repo_path();
        match source {
            Source::Directory(path) => {
                let commit_id = import::directory(&repo, lock, path, ui)?;
                let named = self.name(name, commit_id, options);
                if named.is_err() {
                    self.delete_ref(IMPORT_REF)?;
                    self.repack()?;
                }
                named
            }
            Source::File(path) => {
                let sha256 = digest(path, ui)?;
                let origin = Origin::Digest(sha256.clone());
                self.add_file(name, &origin, options, || {
                    import::file((&repo, lock), path, &origin, &sha256, ui)
                })
            }
            Source::Debian(wanted) => {
                let apt = self.apt(lock, ui)?;
                let package = apt.find(wanted, options.refresh)?;
                let origin = Origin::Package(package.id.clone());
                let added = self.add_file(name, &origin, options, || {
                    let got = apt.download(&package)?;
                    import::file((&repo, lock), &got.path, &origin, &got.sha256, ui)
                })?;
                apt.tidy()?;
                Ok(added)
            }
        }
    }

    /// Whatever has the same origin is the same: it is imported only where no base has it yet.
    fn add_file(
        &self,
        name: &str,
        origin: &Origin,
        options: AddOptions,
        import: impl FnOnce() -> Result<ObjectId>,
    ) -> Result<Added> {
        let tags = self.tags()?;
        let trailer = origin.trailer();
        let known = tags
            .iter()
            .find(|tag| tag.trailer.as_ref() == Some(&trailer));
        if let Some(tag) = known {
            return self.name(name, tag.commit_id, options);
        }
        if !options.force && tags.iter().any(|tag| tag.name == name) {
            return Err(taken(name));
        }
        self.name(name, import()?, options)
    }

    /// Moves the tag, by compare and swap, and lets go of the import's own ref.
    fn name(&self, name: &str, commit_id: ObjectId, options: AddOptions) -> Result<Added> {
        let repo = Repo::open(&self.repo_path())?;
        let tag = tag_ref(name);
        let old = repo.reference(&tag)?;
        let state = match old {
            Some(old) if old == commit_id => State::Unchanged,
            Some(_) if !options.force => return Err(taken(name)),
            Some(_) => State::Replaced,
            None => State::New,
        };
        if state != State::Unchanged {
            repo.update_reference(&tag, old, commit_id, "reroll base add")?;
        }
        self.delete_ref(IMPORT_REF)?;
        if state == State::Replaced {
            self.repack()?;
        }
        Ok(Added {
            base: entry(&repo, name, commit_id)?,
            state,
        })
    }

    /// Forgets a base and gives its disk space back.
    pub fn remove(&self, name: &str) -> Result<Entry> {
        check_name(name)?;
        let missing = || {
            Refusal::usage(format!("there is no base `{name}`"))
                .hint("`reroll base list` shows which there are")
        };
        if self.repo()?.is_none() {
            return Err(missing().into());
        }
        let _lock = self.lock()?;
        self.remove_leftovers()?;
        let repo = Repo::open(&self.repo_path())?;
        let commit_id = repo.reference(&tag_ref(name))?.ok_or_else(missing)?;
        let removed = entry(&repo, name, commit_id)?;
        self.delete_ref(&tag_ref(name))?;
        self.repack()?;
        Ok(removed)
    }

    fn repo(&self) -> Result<Option<Repo>> {
        let path = self.repo_path();
        if !path.join("HEAD").exists() {
            return Ok(None);
        }
        Repo::open(&path).map(Some)
    }

    fn apt(&self, lock: &File, ui: Ui) -> Result<Apt> {
        Apt::open(&self.dir.join("apt"), self.apt_config.as_deref(), lock, ui)
    }

    /// Waits until no other run changes the cache.
    fn lock(&self) -> Result<Lock> {
        let path = self.dir.join("lock");
        let not_locked = || {
            Refusal::tool(format!("cannot use the cache `{}`", self.dir.display()))
                .hint("check its permissions, or set `XDG_CACHE_HOME` to another place")
        };
        fs::create_dir_all(&self.dir).with_context(not_locked)?;
        let doing = "changes the cache of bases";
        Lock::take(&path, Hold::Alone, doing, not_locked)
    }

    fn git(&self) -> Task {
        Task::git().arg("--git-dir").arg(self.repo_path())
    }

    /// Makes the repository, or mends one whose making was interrupted.
    fn init(&self) -> Result<()> {
        Task::git()
            .env("GIT_DEFAULT_HASH", "sha1")
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .args(["init", "--quiet", "--bare", "--template="])
            .arg(self.repo_path())
            .output()
            .map(drop)
    }

    /// Removes what a run that was killed has left: nobody else is at work, for the lock is held.
    fn remove_leftovers(&self) -> Result<()> {
        let repo = self.repo_path();
        for (dir, left) in [
            ("", "fast_import_crash_"),
            ("objects/pack", "tmp_"),
            ("objects/pack", ".tmp-"),
        ] {
            remove_files(&repo.join(dir), |name| name.starts_with(left.as_bytes()))?;
        }
        for dir in ["", "refs/tags", "refs/reroll"] {
            remove_files(&repo.join(dir), |name| name.ends_with(b".lock"))?;
        }
        Ok(())
    }

    fn delete_ref(&self, name: &str) -> Result<()> {
        self.git()
            .args(["update-ref", "-d", name])
            .output()
            .map(drop)
    }

    /// Drops what no ref needs any more; what stays is copied as it is.
    fn repack(&self) -> Result<()> {
        self.git()
            .args(["-c", "repack.writeBitmaps=false"])
            .args(["-c", "core.packedGitWindowSize=16m"])
            .args(["-c", "core.packedGitLimit=128m"])
            .args(["repack", "-a", "-d", "-q", "--window=0", "--depth=0"])
            .output()
            .map(drop)
    }

    fn tags(&self) -> Result<Vec<Tag>> {
        let listing = self
            .git()
            .args(["for-each-ref", "refs/tags"])
            .arg("--format=%(refname:strip=2) %(objectname)")
            .output()?;
        let repo = Repo::open(&self.repo_path())?;
        let mut tags = Vec::new();
        for line in listing.to_str_lossy().lines() {
            let Some((name, _)) = line.rsplit_once(' ') else {
                continue;
            };
            let commit_id = repo.base(&tag_ref(name))?.commit_id;
            tags.push(Tag {
                name: name.to_owned(),
                commit_id,
                trailer: trailer(&repo.commit(commit_id)?.message),
            });
        }
        Ok(tags)
    }
}

fn tag_ref(name: &str) -> String {
    format!("{TAGS}{name}")
}

/// The line of an import's message that tells where it is from.
fn trailer(message: &[u8]) -> Option<String> {
    let mut lines = message.lines();
    let line = lines.rfind(|line| line.starts_with(IMPORT_TRAILER.as_bytes()))?;
    Some(line.to_str().ok()?.to_owned())
}

fn entry(repo: &Repo, name: &str, commit_id: ObjectId) -> Result<Entry> {
    let commit = repo.commit(commit_id)?;
    let makefile = repo.file(commit.tree_id, b"Makefile".as_bstr())?;
    let release = makefile.and_then(|file| kernel_release(&file.bytes));
    let release = release.with_context(|| {
        Refusal::usage(format!(
            "the base `{}` is no kernel",
            shown_text(name.as_bytes())
        ))
        .hint("something other than reroll made that tag; `git tag -d` removes it")
    })?;
    let origin = trailer(&commit.message);
    let origin = origin.and_then(|line| Some(line.strip_prefix(IMPORT_TRAILER)?.trim().to_owned()));
    let subject = commit.subject().to_str_lossy().into_owned();
    let package = subject
        .split_once(" (")
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    Ok(Entry {
        name: name.to_owned(),
        commit_id,
        release,
        origin: origin.unwrap_or_default(),
        package: package.map(str::to_owned),
    })
}

/// A name has to be good for a tag, and must not look like anything else that git takes for a revision.
fn check_name(name: &str) -> Result<()> {
    let wrong = |why: &str| {
        let shown = shown_text(name.as_bytes());
        Err(
            Refusal::usage(format!("`{shown}` cannot be the name of a base: {why}"))
                .hint("use letters, digits, `.`, `-` and `_`, such as `v7.3` or `debian-6.12`")
                .into(),
        )
    };
    if name.contains('/')
        || name.starts_with(['-', '@'])
        || name == "HEAD"
        || name.ends_with("_HEAD")
    {
        return wrong("git would take it for something else");
    }
    if name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return wrong("it looks like a commit's id");
    }
    let checked = Task::git_alone()
        .args(["check-ref-format", &tag_ref(name)])
        .output();
    match checked {
        Ok(_) => Ok(()),
        Err(error) if exit_of(&error) == Exit::Interrupted => Err(error),
        Err(_) => wrong("git does not take it for a tag"),
    }
}

fn taken(name: &str) -> anyhow::Error {
    Refusal::usage(format!(
        "the base `{name}` is there already, with other content"
    ))
    .hint("take another name, or `--force` to replace it")
    .into()
}

fn remove_files(dir: &Path, which: impl Fn(&[u8]) -> bool) -> Result<()> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry.context("cannot list the cache")?;
        if which(entry.file_name().as_encoded_bytes()) {
            fs::remove_file(entry.path())
                .with_context(|| format!("cannot remove `{}`", entry.path().display()))?;
        }
    }
    Ok(())
}

fn as_text<S: serde::Serializer>(id: &ObjectId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_xdg_rules_say() {
        let dir = |cache: Option<&str>, home: Option<&str>| {
            let found = Cache::of(cache.map(OsStr::new), home.map(OsStr::new));
            found.map(|cache| cache.dir)
        };
        let at = |path: &str| PathBuf::from(path);
        assert_eq!(dir(Some("/c"), Some("/h")).expect("set"), at("/c/reroll"));
        assert_eq!(dir(None, Some("/h")).expect("set"), at("/h/.cache/reroll"));
        assert_eq!(
            dir(Some("c"), Some("/h")).expect("set"),
            at("/h/.cache/reroll")
        );
        let error = dir(None, None).expect_err("neither is set");
        assert_eq!(exit_of(&error), Exit::Usage);
        assert!(crate::error::refusal(&error).is_some_and(|refusal| refusal.hint.is_some()));
    }

    #[test]
    fn a_name_that_git_would_misread_is_refused() {
        for name in [
            "v7.3",
            "debian-6.12",
            "next_1",
            "default",
            "beef",
            "ünïcode",
        ] {
            check_name(name).expect(name);
        }
        for name in [
            "",
            "-x",
            "a b",
            "a..b",
            "a/b",
            "../x",
            "a.lock",
            "x~1",
            "x^",
            "x:y",
            "a\nb",
            "@",
            "@{u}",
            "HEAD",
            "FETCH_HEAD",
            "deadbeef",
            "a\\b",
            "*",
            ".x",
            "x.",
        ] {
            let error = check_name(name).expect_err(name);
            assert_eq!(exit_of(&error), Exit::Usage, "{name}");
        }
    }
}
