//! `bot.toml`: which series are kept alive on which bases, and where results go.
//!
//! Hides how the file is written; what cannot be meant is refused with file and line before anything is done.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::error::Refusal;
use crate::gate::Name;
use crate::repo::is_ref_name;
use crate::ui::shown_text;

/// The whole of `bot.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The repository that has bases, results and state; made (bare) where there is none.
    pub repository: PathBuf,
    /// The series: names, or directories with a `series.toml`.
    pub series: Vec<String>,
    /// Who wrote the patches, where the recipe does not say: `Name <address>`.
    pub author: Option<String>,
    /// Whether the author signs off every patch.
    #[serde(default)]
    pub sign_off: bool,
    /// The gates that every result goes through.
    #[serde(default = "gates")]
    pub gates: Vec<Name>,
    /// Below which the state is kept; another one is another bot.
    #[serde(default = "namespace")]
    pub namespace: String,
    /// A repository that results and state are pushed to, and taken from.
    pub push: Option<String>,
    /// What is done about fetches and tools that fail.
    #[serde(default)]
    pub retry: Retry,
    /// Where bases come from.
    pub watch: Vec<Watch>,
    /// The directory that relative paths are relative to.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// What is done about the errors of the surroundings.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Retry {
    /// How often something is tried in one run.
    pub tries: u32,
    /// The pause before the second try, in seconds; it doubles each time.
    pub seconds: f64,
}

/// One place that bases come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Watch {
    /// Its name: a part of the names of refs.
    pub name: String,
    /// A repository to fetch from: an URL or a path.
    pub remote: Option<String>,
    /// Patterns of its tags: `v*-rc*`; with `!` in front: not these.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Patterns of its branches.
    #[serde(default)]
    pub branches: Vec<String>,
    /// Patterns of whole names of refs in the bot's own repository: `refs/tags/v*`.
    #[serde(default)]
    pub refs: Vec<String>,
    /// A package of Debian, as `reroll base add` takes it after `debian:`.
    pub debian: Option<String>,
    /// Only so many of them: the newest by the version in their `Makefile`, then by date.
    pub newest: Option<usize>,
}

/// What a watch looks at.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// Another repository.
    Remote(&'a str),
    /// Refs of the bot's own repository.
    Local,
    /// A package of Debian.
    Debian(&'a str),
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            tries: 3,
            seconds: 2.0,
        }
    }
}

fn gates() -> Vec<Name> {
    vec![Name::Apply, Name::Mail]
}

fn namespace() -> String {
    "refs/reroll".to_owned()
}

impl Config {
    /// Reads and checks a `bot.toml`.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            Refusal::usage(format!("cannot read `{}`", path.display()))
                .hint("`--config` names a `bot.toml`; the README has one to start from")
        })?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..start].matches('\n').count() + 1;
            Refusal::usage(format!("{}:{line}: {}", path.display(), error.message()))
                .hint("mend the file; a key that nobody knows is an error")
        })?;
        path.parent()
            .unwrap_or(Path::new(""))
            .clone_into(&mut config.dir);
        config.validate().map_err(|wrong| {
            Refusal::usage(format!("{}: {wrong}", path.display())).hint("mend the file")
        })?;
        Ok(config)
    }

    /// The repository's path.
    #[must_use]
    pub fn repository_path(&self) -> PathBuf {
        self.dir.join(&self.repository)
    }

    /// An URL or a path as git is to be told: a path is relative to the file.
    #[must_use]
    pub fn remote(&self, written: &str) -> String {
        if written.contains("://") || is_scp_like(written) {
            return written.to_owned();
        }
        let path = self.dir.join(written);
        let path = std::path::absolute(&path).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }

    fn validate(&self) -> Result<(), String> {
        if self.series.is_empty() {
            return Err("`series` names nothing".to_owned());
        }
        let namespace = &self.namespace;
        if !namespace.starts_with("refs/reroll") || !is_ref_name(&format!("{namespace}/x")) {
            let shown = shown_text(namespace.as_bytes());
            return Err(format!(
                "`namespace` is `{shown}`, but has to be below `refs/reroll`"
            ));
        }
        if self.retry.tries == 0 || !(0.0..=3600.0).contains(&self.retry.seconds) {
            return Err("`retry` wants `tries` from 1 and `seconds` from 0 to 3600".to_owned());
        }
        if let Some(push) = &self.push {
            is_remote(push)?;
        }
        for (index, watch) in self.watch.iter().enumerate() {
            let twice = self.watch[..index]
                .iter()
                .any(|other| other.name == watch.name);
            if twice {
                return Err(format!("two `[[watch]]` are called `{}`", watch.name));
            }
            watch.place()?;
        }
        Ok(())
    }
}

impl Watch {
    /// What it looks at.
    pub fn place(&self) -> Result<Place<'_>, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if self.name.is_empty() || !self.name.bytes().all(plain) {
            let shown = shown_text(self.name.as_bytes());
            return Err(format!(
                "`{shown}` cannot be the name of a watch: use letters, digits, `-` and `_`"
            ));
        }
        let wrong = |what: &str| Err(format!("`[[watch]]` `{}` {what}", self.name));
        match (&self.remote, &self.debian, self.refs.is_empty()) {
            (Some(remote), None, true) => {
                is_remote(remote)?;
                if self.tags.is_empty() && self.branches.is_empty() {
                    return wrong("has neither `tags` nor `branches`");
                }
                Ok(Place::Remote(remote))
            }
            (None, Some(wanted), true) => Ok(Place::Debian(wanted)),
            (None, None, false) => Ok(Place::Local),
            _ => wrong("needs one of `remote`, `refs` and `debian`"),
        }
    }
}

/// `host:path`, as ssh's own tools have it.
fn is_scp_like(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(host, _)| !host.contains('/'))
}

/// Something that git cannot take for an option, or for a program to run.
fn is_remote(text: &str) -> Result<(), String> {
    let runs = text.contains("::") && !text.contains("://");
    if text.is_empty() || text.starts_with('-') || runs || text.contains(char::is_control) {
        let shown = shown_text(text.as_bytes());
        return Err(format!(
            "`{shown}` is no repository to fetch from or push to"
        ));
    }
    Ok(())
}

/// Whether `name` is one of `patterns`: `*` stands for anything, `?` for one character. A pattern with `!` in front takes out.
#[must_use]
pub fn is_wanted(patterns: &[String], name: &str) -> bool {
    let (without, with): (Vec<&String>, Vec<&String>) = patterns
        .iter()
        .partition(|pattern| pattern.starts_with('!'));
    let fits = |pattern: &str| fits(pattern.as_bytes(), name.as_bytes());
    with.iter().any(|pattern| fits(pattern)) && !without.iter().any(|pattern| fits(&pattern[1..]))
}

/// The usual way with one place to come back to, so that hostile names cost no more than their length.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((back, from)) = star else {
                    return false;
                };
                star = Some((back, from + 1));
                at = back + 1;
                seen = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("bot.toml");
        std::fs::write(&path, text).expect("a file");
        Config::load(&path)
    }

    const WATCH: &str = "[[watch]]\nname = \"main\"\nremote = \"r.git\"\ntags = [\"v*\"]\n";

    #[test]
    fn a_short_file_is_enough() {
        let config = load(&format!(
            "repository = \"b.git\"\nseries = [\"s\"]\n{WATCH}"
        ))
        .unwrap();
        assert_eq!(config.gates, [Name::Apply, Name::Mail]);
        assert_eq!(config.namespace, "refs/reroll");
        assert!(config.remote("r.git").ends_with("/r.git"));
        assert_eq!(config.remote("https://h/x"), "https://h/x");
        assert_eq!(config.remote("git@h:x"), "git@h:x");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let head = "repository = \"b.git\"\nseries = [\"s\"]\n";
        for (text, word) in [
            (format!("{head}typo = 1\n{WATCH}"), ":3: unknown field"),
            (
                format!("{head}namespace = \"refs/heads\"\n{WATCH}"),
                "namespace",
            ),
            (
                format!("{head}push = \"--upload-pack=x\"\n{WATCH}"),
                "no repository",
            ),
            (
                format!("{head}push = \"ext::sh -c x\"\n{WATCH}"),
                "no repository",
            ),
            (format!("{head}retry = {{ tries = 0 }}\n{WATCH}"), "retry"),
            (format!("{head}{WATCH}{WATCH}"), "two"),
            (
                format!("{head}[[watch]]\nname = \"a/b\"\nrefs = [\"x\"]\n"),
                "name of a watch",
            ),
            (format!("{head}[[watch]]\nname = \"a\"\n"), "needs one of"),
            (
                format!("{head}[[watch]]\nname = \"a\"\nremote = \"x\"\n"),
                "neither",
            ),
        ] {
            let error = load(&text).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn patterns_are_stars_and_question_marks() {
        let wanted = |patterns: &[&str], name: &str| {
            let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
            is_wanted(&patterns, name)
        };
        assert!(wanted(&["v*-rc*"], "v7.3-rc1"));
        assert!(!wanted(&["v*-rc*"], "v7.3"));
        assert!(!wanted(&["v*", "!*-rc*"], "v7.3-rc1"));
        assert!(wanted(&["v?.*"], "v7.3"));
        assert!(!wanted(&["v?"], "v"));
        assert!(wanted(&["*"], ""));
        let long = "a".repeat(5000);
        assert!(!wanted(
            &[&"a*".repeat(50)],
            &format!("{long}b").replace('b', "c")[..0]
        ));
        assert!(!wanted(&[&("*a".repeat(50) + "b")], &long));
    }
}
