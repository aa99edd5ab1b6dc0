//! One set of sources, and the kernels that its lists know.
//!
//! Hides when lists are fetched, what apt says about them, and how Debian numbers its kernels.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use bstr::ByteSlice;

use super::apt::{Apt, OTHER_WAYS, complaints, write};
use super::sources::{self, AptSource};
use crate::error::Refusal;
use crate::exec::{Output, Task};

/// A package that the archive has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// `name=version`.
    pub(crate) id: String,
    /// The set of sources that has it.
    pub(super) view: String,
}

/// One set of sources, with a package cache of its own.
#[derive(Debug)]
pub(super) struct View<'a> {
    apt: &'a Apt,
    name: String,
    pub(super) sources: Vec<AptSource>,
    /// Those whose lists are here, with who made them.
    pub(super) fetched: Vec<Fetched>,
}

#[derive(Debug)]
pub(super) struct Fetched {
    source: AptSource,
    origin: String,
    label: String,
}

impl Fetched {
    pub(super) fn is_debian(&self) -> bool {
        self.origin == "Debian" || self.origin == "Debian Backports"
    }
}

/// Whether a release candidate will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rc {
    Allowed,
    Refused,
}

/// How long lists are good for.
const FRESH: Duration = Duration::from_hours(24);

const PREFIX: &str = "linux-source-";

impl Apt {
    /// Makes sure that the lists of these sources are here and fresh.
    pub(super) fn view(
        &self,
        name: &str,
        sources: Vec<AptSource>,
        refresh: bool,
    ) -> Result<View<'_>> {
        let mut view = View {
            apt: self,
            name: name.to_owned(),
            sources,
            fetched: Vec::new(),
        };
        let text = sources::write(&view.sources, &self.machine.architecture);
        write(&self.view_path(name, "sources"), &text)?;
        let stamp = self.view_path(name, "updated");
        if refresh || !is_fresh(&stamp, &text) {
            self.ui.status("fetching Debian's package lists");
            let output = view.task("apt-get")?.args(["-q", "update"]).run()?;
            view.fetched = view.look()?;
            // Its age counts, so it is written anew.
            let _ = fs::remove_file(&stamp);
            if view.judge(&output) {
                write(&stamp, &text)?;
            }
        } else {
            view.fetched = view.look()?;
        }
        view.warn_of_missing();
        Ok(view)
    }
}

impl View<'_> {
    fn task(&self, program: &str) -> Result<Task> {
        self.apt.view_task(&self.name, program)
    }

    /// Which of the sources' lists are here.
    fn look(&self) -> Result<Vec<Fetched>> {
        let format = "$(REPO_URI)\t$(RELEASE)\t$(ORIGIN)\t$(LABEL)";
        let targets = self
            .task("apt-get")?
            .args(["indextargets", "--format", format, "Created-By: Packages"])
            .output()?;
        let mut all = Vec::new();
        for line in targets.to_str_lossy().lines() {
            let fields: Vec<_> = line.split('\t').collect();
            let [uri, suite, origin, label] = fields[..] else {
                continue;
            };
            let uri = uri.trim_end_matches('/');
            let mut sources = self.sources.iter();
            let source = sources.find(|source| source.uri == uri && source.suite == suite);
            all.extend(source.map(|source| Fetched {
                source: source.clone(),
                origin: origin.to_owned(),
                label: label.to_owned(),
            }));
        }
        Ok(all)
    }

    /// Passes on what apt complained about; the answer is whether asking again tomorrow is soon enough.
    fn judge(&self, output: &Output) -> bool {
        let failed = output.stderr.contains_str("Failed to fetch");
        if failed || self.fetched.is_empty() {
            for line in complaints(output) {
                self.apt.ui.warning(&line);
            }
        }
        !failed && !self.fetched.is_empty()
    }

    /// Says which sources nothing is known of.
    fn warn_of_missing(&self) {
        for source in &self.sources {
            if !self.fetched.iter().any(|found| found.source == *source) {
                let AptSource { uri, suite, .. } = source;
                let ui = self.apt.ui;
                ui.warning(&format!(
                    "`{suite}` of `{uri}` could not be fetched: left out"
                ));
            }
        }
    }

    /// The sources that are Debian's.
    pub(super) fn debian(&self) -> impl Iterator<Item = &AptSource> {
        let debian = self.fetched.iter().filter(|found| found.is_debian());
        debian.map(|found| &found.source)
    }

    /// The machine's mirror for a suite: security updates are an archive of their own.
    pub(super) fn archive_of(&self, suite: &str) -> Result<&AptSource> {
        let label = if suite.ends_with("-security") {
            "Debian-Security"
        } else {
            "Debian"
        };
        let mut found = self.fetched.iter();
        let found = found.find(|found| found.is_debian() && found.label == label);
        found.map(|found| &found.source).ok_or_else(|| {
            Refusal::tool(format!(
                "apt on this machine has no source labelled `{label}`"
            ))
            .hint(OTHER_WAYS)
            .into()
        })
    }

    /// The newest kernel, or the newest package of one release.
    pub(super) fn newest(&self, release: Option<&str>, rc: Rc) -> Result<Package> {
        let mut names = self.names()?;
        if let Some(release) = release {
            names.retain(|(_, name)| name.strip_prefix(PREFIX) == Some(release));
        }
        names.sort_by(|a, b| b.cmp(a));
        for (_, name) in &names {
            if let Some(version) = self.newest_version(name, rc)? {
                return Ok(Package {
                    id: format!("{name}={version}"),
                    view: self.name.clone(),
                });
            }
        }
        let what = release.map_or_else(|| "kernel source".to_owned(), |r| format!("{PREFIX}{r}"));
        let known: Vec<_> = self.names()?.into_iter().map(|(_, name)| name).collect();
        let known = match known.join("`, `") {
            known if known.is_empty() => "it has none at all".to_owned(),
            known => format!("there is `{known}`"),
        };
        Err(Refusal::usage(format!(
            "the mirror has no {what}, candidates aside: {known}"
        ))
        .hint("release candidates are in `debian:experimental`; `--refresh` renews the lists")
        .into())
    }

    /// The packages that hold a kernel, with their numbers.
    fn names(&self) -> Result<Vec<((u32, u32), String)>> {
        let names = self
            .task("apt-cache")?
            .args(["pkgnames", PREFIX])
            .output()?;
        let names = names.to_str_lossy();
        Ok(names.lines().filter_map(numbered).collect())
    }

    /// The first version that will do; apt lists the newest first.
    fn newest_version(&self, name: &str, rc: Rc) -> Result<Option<String>> {
        let table = self.task("apt-cache")?.args(["madison", name]).output()?;
        let table = table.to_str_lossy();
        let places: Vec<_> = self
            .debian()
            .map(|source| format!("{} {}/", source.uri, source.suite))
            .collect();
        let mut versions = table.lines().filter_map(|line| {
            let mut cells = line.splitn(3, " | ").map(str::trim);
            let (found, version, place) = (cells.next()?, cells.next()?, cells.next()?);
            let known = places.iter().any(|known| place.starts_with(known.as_str()));
            (found == name && known && is_version(version)).then_some(version)
        });
        let version = versions.find(|version| rc == Rc::Allowed || !is_candidate(version));
        Ok(version.map(str::to_owned))
    }
}

/// `linux-source-7.3` with its numbers; not `linux-source` alone, nor anything longer.
fn numbered(name: &str) -> Option<((u32, u32), String)> {
    let (major, minor) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some(((major.parse().ok()?, minor.parse().ok()?), name.to_owned()))
}

/// Debian sorts a candidate before its release with a `~`; experimental marks its own in the same way.
fn is_candidate(version: &str) -> bool {
    version.contains("~rc") || version.contains("~exp")
}

/// Characters that a version may have (deb-version(7)).
fn is_version(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".+-~:".contains(&b);
    !text.is_empty() && text.bytes().all(plain)
}

fn is_fresh(stamp: &Path, text: &str) -> bool {
    let age = fs::metadata(stamp)
        .and_then(|found| found.modified())
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age < FRESH) && fs::read_to_string(stamp).is_ok_and(|found| found == text)
}

/// `name version` from the text of a package's `control` file.
pub(crate) fn package_of_control(text: &[u8]) -> Option<String> {
    let stanza = sources::stanzas(text).into_iter().next()?;
    let field = |name: &str| {
        let mut found = stanza
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        Some(found.next()?.1.clone())
    };
    let (name, version) = (field("Package")?, field("Version")?);
    (is_version(&name) && is_version(&version)).then(|| format!("{name} {version}"))
}
