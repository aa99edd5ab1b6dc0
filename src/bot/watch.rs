//! Finds the bases that the bot is to look at, and fetches those that are new.
//!
//! Hides where they are from: another repository, this one, or a package of Debian. Names are hostile: only what git takes for the name of
//! a ref gets in, and what a name says is never run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use bstr::ByteSlice;

use super::config::{Config, Place, Watch, is_wanted};
use super::state::{State, encode};
use crate::cache::{AddOptions, Cache};
use crate::error::{Exit, Refusal, exit_of, refusal};
use crate::exec::Task;
use crate::facts;
use crate::import::Source;
use crate::repo::{Base, ObjectId, Repo, is_ref_name};
use crate::ui::{Ui, shown_text};

/// A base to regenerate on.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    /// It; its `rev` is its name.
    pub base: Base,
    /// The kernel's release; empty where the base does not say.
    pub release: String,
}

/// What a watch has found.
#[derive(Default)]
struct Found {
    /// Bases by their names; some may be no commits.
    bases: BTreeMap<String, ObjectId>,
    /// The names that were not known before.
    new: BTreeSet<String>,
    /// The patterns that fit nothing.
    idle: Vec<String>,
}

/// How long a question to a remote may take, and how long a fetch or push.
const ASK: Duration = Duration::from_mins(2);
const TRANSFER: Duration = Duration::from_hours(2);

/// What one watch looks at, in the order of versions.
pub(super) fn bases(
    config: &Config,
    state: &State<'_>,
    watch: &Watch,
    ui: Ui,
) -> Result<Vec<Watched>> {
    let place = watch.place().map_err(Refusal::usage)?;
    let Found {
        bases: found,
        new,
        idle,
    } = match place {
        Place::Remote(remote) => fetched(state, watch, &config.remote(remote))?,
        Place::Local => local(state, watch)?,
        Place::Debian(wanted) => debian(state, watch, wanted, ui)?,
    };
    for pattern in idle {
        ui.note(&format!(
            "`{}` of the watch `{}` fits nothing that is there",
            shown_text(pattern.as_bytes()),
            watch.name
        ));
    }
    let mut bases = Vec::new();
    for (name, id) in found {
        match state.repo.base(&id.to_string()) {
            Ok(base) => bases.push(watched(state.repo, name, base)?),
            // A kernel has tags of trees: that is said when they come, and not for ever.
            Err(error) if exit_of(&error) == Exit::Usage => {
                if new.contains(&name) {
                    ui.warning(&format!(
                        "`{}` of the watch `{}` is no commit, and is left out",
                        shown_text(name.as_bytes()),
                        watch.name
                    ));
                }
            }
            // One that cannot be read is left out as well, and said as long as it is so.
            Err(error) => ui.warning(&format!(
                "`{}` of the watch `{}` is left out: {error:#}",
                shown_text(name.as_bytes()),
                watch.name
            )),
        }
    }
    sort(&mut bases);
    let surplus = bases
        .len()
        .saturating_sub(watch.newest.unwrap_or(usize::MAX));
    Ok(bases.split_off(surplus))
}

/// Oldest version first.
pub(super) fn sort(bases: &mut [Watched]) {
    bases.sort_by_cached_key(|it| (version(&it.release), it.base.time, it.base.rev.clone()));
}

fn watched(repo: &Repo, name: String, mut base: Base) -> Result<Watched> {
    base.rev = name;
    let makefile = repo.file(base.tree_id, b"Makefile".as_bstr())?;
    let release = makefile.and_then(|file| facts::release(&file.bytes));
    Ok(Watched {
        base,
        release: release.unwrap_or_default(),
    })
}

/// What a release is sorted by: its numbers, then its release candidate, of which the release itself is the last.
pub(super) fn version(release: &str) -> (Vec<u64>, u64) {
    let (numbers, rest) = release.split_once('-').unwrap_or((release, ""));
    let numbers = numbers
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    let candidate = rest.strip_prefix("rc").map(|rest| {
        let digits = rest.split(|char: char| !char.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    });
    (numbers, candidate.unwrap_or(u64::MAX))
}

/// The patterns that fit none of these names.
fn idle<'n>(patterns: &[String], names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let names: Vec<_> = names.collect();
    let patterns = patterns.iter().filter(|pattern| !pattern.starts_with('!'));
    let idle = patterns.filter(|pattern| {
        let only = std::slice::from_ref(*pattern);
        !names.iter().any(|name| is_wanted(only, name))
    });
    idle.cloned().collect()
}

/// Asks a remote what it has, and fetches what is new of it.
fn fetched(state: &State<'_>, watch: &Watch, remote: &str) -> Result<Found> {
    let mut found = Found::default();
    let mut missing = Vec::new();
    let refs = ask(state.repo, remote)?;
    for (patterns, prefix) in [
        (&watch.tags, "refs/tags/"),
        (&watch.branches, "refs/heads/"),
    ] {
        let names = refs
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(prefix));
        found.idle.extend(idle(patterns, names));
    }
    for (name, id) in refs {
        let (kind, short) = match (
            name.strip_prefix("refs/tags/"),
            name.strip_prefix("refs/heads/"),
        ) {
            (Some(tag), _) if is_wanted(&watch.tags, tag) => ("tags", tag),
            (_, Some(branch))
                if is_wanted(&watch.branches, branch) && !branch.starts_with("reroll/") =>
            {
                ("heads", branch)
            }
            _ => continue,
        };
        let mine = format!("{}{kind}/{}", state.bases(&watch.name), encode(short));
        let old = state.repo.reference(&mine)?;
        if old != Some(id) {
            missing.push((name.clone(), mine, old, id));
            found.new.insert(short.to_owned());
        }
        // A tag comes before a branch of the same name.
        if kind == "tags" || !found.bases.contains_key(short) {
            found.bases.insert(short.to_owned(), id);
        }
    }
    let names: Vec<_> = missing.iter().map(|(name, ..)| name.as_str()).collect();
    fetch(state.repo, remote, &names)?;
    for (_, mine, old, id) in &missing {
        // Where another bot was faster there is nothing left to do.
        state.swap(mine, *old, *id)?;
    }
    Ok(found)
}

/// The refs of a remote, without those that stand for what a tag points at.
pub(super) fn ask(repo: &Repo, remote: &str) -> Result<Vec<(String, ObjectId)>> {
    let listing = Task::git_remote(repo.path())?
        .args(["ls-remote", "--quiet", "--refs", "--"])
        .arg(remote)
        .timeout(ASK)
        .output()
        .map_err(|error| masked(&error, remote, "ask"))?;
    let mut refs = Vec::new();
    for line in listing.lines() {
        let Some((id, name)) = line.split_once_str("\t") else {
            continue;
        };
        let (Ok(id), Ok(name)) = (id.to_str_lossy().parse(), name.to_str()) else {
            continue;
        };
        if is_ref_name(name) {
            refs.push((name.to_owned(), id));
        }
    }
    Ok(refs)
}

/// Fetches objects only: refs are moved by who asked, by compare and swap.
pub(super) fn fetch(repo: &Repo, remote: &str, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    Task::git_remote(repo.path())?
        .args([
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--stdin",
            "--",
        ])
        .arg(remote)
        .input(names.join("\n") + "\n")
        .timeout(TRANSFER)
        .output()
        .map(drop)
        .map_err(|error| masked(&error, remote, "fetch from"))
}

/// An error of git's about a remote, without what may be a password in an URL.
pub(super) fn masked(error: &anyhow::Error, remote: &str, verb: &str) -> anyhow::Error {
    let Some(refused) = refusal(error) else {
        return anyhow::anyhow!("{}", mask(&format!("{error:#}")));
    };
    if refused.exit == crate::error::Exit::Interrupted {
        return Refusal::interrupted().into();
    }
    let details = refused.details.iter().map(|line| mask(line)).collect();
    Refusal::tool(format!("cannot {verb} `{}`", mask(remote)))
        .details(details)
        .hint("check the name and the network; the next run tries again")
        .into()
}

/// Takes the part between `://` and `@` out.
fn mask(text: &str) -> String {
    let mut parts = text.split("://");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ' ', '\'', '"']).unwrap_or(part.len());
        let kept = part[..end].rfind('@').map_or(part, |at| &part[at..]);
        masked.push_str("://");
        masked.push_str(if kept.len() < part.len() { "***" } else { "" });
        masked.push_str(kept);
    }
    masked
}

/// Refs of the bot's own repository.
fn local(state: &State<'_>, watch: &Watch) -> Result<Found> {
    let mut found = Found::default();
    let refs = state.repo.references("refs/")?;
    found.idle = idle(&watch.refs, refs.iter().map(|(name, _)| name.as_str()));
    for (name, id) in refs {
        let own = name.starts_with("refs/reroll/") || name.starts_with("refs/heads/reroll/");
        if own || !is_wanted(&watch.refs, &name) {
            continue;
        }
        let short = ["refs/tags/", "refs/heads/", "refs/"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        if let Some(short) = short {
            // Nothing is kept of these, so each is new each time.
            found.new.insert(short.to_owned());
            found.bases.entry(short.to_owned()).or_insert(id);
        }
    }
    Ok(found)
}

/// A package that cannot be taken is the mirror's affair, not the configuration's: the other watches go on.
fn no_kernel(error: anyhow::Error, watch: &Watch) -> anyhow::Error {
    if exit_of(&error) != Exit::Usage {
        return error;
    }
    error.context(
        Refusal::tool(format!("watch `{}` got no kernel from Debian", watch.name))
            .hint("`reroll base add` with the same source tells more; the next run tries again"),
    )
}

/// The newest package that is meant: imported into the cache once, and fetched from there.
fn debian(state: &State<'_>, watch: &Watch, wanted: &str, ui: Ui) -> Result<Found> {
    let cache = Cache::open()?;
    let source = Source::parse(&format!("debian:{wanted}"))?;
    let options = AddOptions {
        force: true,
        refresh: false,
    };
    let tag = format!("bot-{}", watch.name);
    let added = cache.add(&tag, &source, options, ui);
    let entry = added.map_err(|error| no_kernel(error, watch))?.base;
    let package = entry
        .package
        .context("a package has a name and a version")?;
    let version = package.rsplit(' ').next().unwrap_or_default();
    let name = format!("debian-{version}");
    let mine = format!("{}debian/{}", state.bases(&watch.name), encode(&name));
    let old = state.repo.reference(&mine)?;
    if old != Some(entry.commit_id) {
        let path = cache.repo_path();
        fetch(
            state.repo,
            &path.to_string_lossy(),
            &[&format!("refs/tags/{tag}")],
        )?;
        state.swap(&mine, old, entry.commit_id)?;
    }
    // Packages that were the newest once stay bases.
    let prefix = format!("{}debian/", state.bases(&watch.name));
    let mut found = Found::default();
    for (reference, id) in state.repo.references(&prefix)? {
        let short = reference[prefix.len()..]
            .replace("%7e", "~")
            .replace("%3a", ":");
        found.bases.insert(short, id);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_comes_after_its_candidates() {
        let mut releases = [
            "7.3", "7.3-rc10", "6.12.117", "7.3-rc2", "6.1", "7.2", "", "7.3.1",
        ];
        releases.sort_by_key(|release| version(release));
        assert_eq!(
            releases,
            [
                "", "6.1", "6.12.117", "7.2", "7.3-rc2", "7.3-rc10", "7.3", "7.3.1"
            ]
        );
    }

    #[test]
    fn no_password_is_shown() {
        assert_eq!(
            mask("fatal: unable to access 'https://me:s3cret@host/x.git/': no"),
            "fatal: unable to access 'https://***@host/x.git/': no"
        );
        assert_eq!(mask("https://t0ken@h"), "https://***@h");
        assert_eq!(
            mask("see https://h/a@b and git@h:x"),
            "see https://h/a@b and git@h:x"
        );
    }
}
