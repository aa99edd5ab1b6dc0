//! The ways to start git: with nobody's configuration, on no repository, on a repository's objects alone, or on a remote.
//!
//! Hides how configuration is kept away. A variable or a `-c` for each key that could change an output would be a list that is never whole
//! (git has hundreds, and more with each release); so whoever only reads gets a git directory of its own, which borrows the objects and
//! has no configuration, no attributes, no hooks and no refs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use bstr::ByteSlice;

use super::Task;
use super::surroundings::{self, NO_HOME};
use crate::error::Refusal;
use crate::temporary;

/// The configuration of a git directory that was made to read.
const CONFIGURATION: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";

/// What is kept of the user's configuration for a remote: how it is reached, and how to be let in. Nothing of it can change what is found there.
const REMOTE_SECTIONS: [&str; 6] = ["credential", "http", "protocol", "safe", "ssh", "url"];
const REMOTE_KEYS: [&str; 3] = ["core.askpass", "core.gitproxy", "core.sshcommand"];

/// Settings of a repository that would push or fetch something else than what was asked for, or start something afterwards.
const TRANSFER: [&str; 12] = [
    "fetch.negotiationAlgorithm=default",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.negotiate=false",
    "push.pushOption=",
    "push.recurseSubmodules=no",
];

impl Task {
    /// A `git` child that no user or system configuration, hook, filter, pager or prompt can change; only the repository's own configuration is
    /// left, where it is run in one.
    #[must_use]
    pub fn git() -> Self {
        Self::new("git")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", NO_HOME)
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .args([
                "--no-pager",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
            ])
    }

    /// A `git` child that works on what it is given: wherever it is run, it sees no repository.
    #[must_use]
    pub fn git_alone() -> Self {
        Self::git().env("GIT_DIR", NO_HOME)
    }

    /// A `git` child that reads the objects of a repository, named by their ids, and cannot see anything else of it. `common_dir` is the repository's
    /// own directory: for a linked work tree, that of the repository it belongs to.
    pub fn git_reading(common_dir: &Path) -> Result<Self> {
        let place = temporary::directory()?;
        let dir = place.path();
        let write = |name: &str, text: &[u8]| fs::write(dir.join(name), text);
        write("config", CONFIGURATION.as_bytes())
            .and_then(|()| write("HEAD", b"ref: refs/heads/none\n"))
            .and_then(|()| fs::create_dir(dir.join("refs")))
            .and_then(|()| match fs::read(common_dir.join("shallow")) {
                Ok(list) => write("shallow", &list),
                Err(_) => Ok(()),
            })
            .with_context(|| temporary::not_written(dir))?;
        let objects = common_dir.join("objects");
        let objects = objects.canonicalize().unwrap_or(objects);
        let mut task = Self::git()
            .env("GIT_DIR", dir)
            .env("GIT_OBJECT_DIRECTORY", objects)
            .arg("--literal-pathspecs");
        task.place = Some(place);
        Ok(task)
    }

    /// A `git` child that talks to a remote for the repository at `git_dir`. The repository's own configuration counts, which has the names of its
    /// remotes; of the user's, only how remotes are reached.
    pub fn git_remote(git_dir: &Path) -> Result<Self> {
        let settings = remote_settings()?;
        let mut task = Self::git().network();
        task = task.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.iter().enumerate() {
            task = task
                .env(&format!("GIT_CONFIG_KEY_{number}"), key)
                .env(&format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        for setting in TRANSFER {
            task = task.args(["-c", setting]);
        }
        Ok(task.arg("--git-dir").arg(git_dir))
    }
}

/// What the user has configured about remotes, wherever it stands: in files, in what they include, or in the environment.
fn remote_settings() -> Result<Vec<(String, std::ffi::OsString)>> {
    let list = Task::new("git")
        .envs(surroundings::configuration())
        .env("GIT_DIR", NO_HOME)
        .args(["config", "--list", "-z", "--includes"])
        .output()
        .context(
            Refusal::tool(
                "git cannot read your configuration, which may say how remotes are reached",
            )
            .hint("`git config --list` shows what is wrong with it"),
        )?;
    let settings = list.split_str("\0").filter(|entry| !entry.is_empty());
    Ok(settings.filter_map(remote_setting).collect())
}

/// One entry of `git config --list -z`, if it is about remotes; a key without a value is `true`.
fn remote_setting(entry: &[u8]) -> Option<(String, std::ffi::OsString)> {
    let (key, value) = entry.split_once_str("\n").unwrap_or((entry, b"true"));
    let key = key.to_str().ok()?;
    let section = key.split('.').next()?;
    let is_wanted = REMOTE_SECTIONS.contains(&section) || REMOTE_KEYS.contains(&key);
    is_wanted.then(|| (key.to_owned(), value.to_os_str_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_users_configuration_only_how_remotes_are_reached_is_kept() {
        let kept = [
            "credential.helper\nstore",
            "credential.https://example.org.username\nme",
            "http.proxy\nhttp://proxy.example.org",
            "http.https://example.org.extraheader\nAuthorization: x",
            "url.ssh://git@example.org/.insteadof\nhttps://example.org/",
            "core.sshcommand\nssh -i key",
            "protocol.version\n2",
            "ssh.variant\nssh",
        ];
        let dropped = [
            "color.ui\nalways",
            "core.abbrev\n5",
            "core.hookspath\n/hooks",
            "diff.noprefix",
            "push.followtags\ntrue",
            "alias.push\n!false",
        ];
        for entry in kept {
            assert!(remote_setting(entry.as_bytes()).is_some(), "{entry}");
        }
        for entry in dropped {
            assert_eq!(remote_setting(entry.as_bytes()), None, "{entry}");
        }
    }
}
