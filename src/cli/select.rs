//! Options that say which base and which series; the same for every subcommand that takes one.
//!
//! Hides the defaults: the kernel that one stands in, a base of the cache, the newest kernel of the distribution.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bstr::ByteSlice;
use serde::Serialize;

use crate::cache::Cache;
use crate::edit::Landing;
use crate::error::{Exit, Refusal};
use crate::facts::{Found, release};
use crate::recipe::{self, Recipe};
use crate::repo::{Base, Repo};
use crate::rests::Rest;
use crate::series::Whereabouts;
use crate::ui::{Ui, shown_text};

/// Which base.
#[derive(Debug, clap::Args)]
pub(super) struct BaseArgs {
    /// The git repository of the base: a work tree, or a bare one [default: the kernel tree this is run in, else the cache]
    #[arg(long, value_name = "REPO")]
    tree: Option<PathBuf>,
    /// The revision to regenerate on, or the name of a base in the cache [default: HEAD of the tree; without a tree the newest
    /// kernel that the machine's Debian sources offer, which is fetched once]
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

/// Which series.
#[derive(Debug, clap::Args)]
pub(super) struct SeriesArgs {
    /// A directory that holds a `series.toml`, or the name of a series [default: the only one there is]
    #[arg(long, value_name = "SERIES")]
    series: Option<String>,
}

/// What a subcommand takes that only reads.
#[derive(Debug, clap::Args)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    pub(super) base: BaseArgs,
    #[command(flatten)]
    pub(super) series: SeriesArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What a subcommand that only reads has found.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Findings<'a> {
    Facts(&'a [Found]),
    Edits(&'a [Landing]),
    #[serde(rename = "rests-on")]
    RestsOn(&'a [Rest]),
}

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    base: &'a str,
    release: &'a str,
    functions: &'a [Whereabouts],
    #[serde(flatten)]
    findings: Findings<'a>,
}

impl ReadArgs {
    /// Prints what was found on a base: as one JSON object, or as this text.
    pub(super) fn print(
        &self,
        (base, release): (&Base, &str),
        functions: &[Whereabouts],
        findings: Findings<'_>,
        text: &str,
        ui: Ui,
    ) -> Result<Exit> {
        if self.json {
            let report = Report {
                version: 1,
                base: &base.rev,
                release,
                functions,
                findings,
            };
            print_json(&report, ui)?;
        } else {
            ui.text(text)?;
        }
        Ok(Exit::Done)
    }
}

/// Where the functions of the recipe are, as text.
pub(super) fn functions_text(functions: &[Whereabouts]) -> String {
    let mut text = String::new();
    for it in functions {
        let Whereabouts { id, function, .. } = it;
        let found = if it.listed {
            ""
        } else {
            ", which the recipe does not list"
        };
        let file = shown_text(it.file.as_bytes());
        text.push_str(&format!(
            "  {id}: {function}() at {file}:{}{found} [{}]\n",
            it.line, it.recipe
        ));
    }
    if text.is_empty() {
        return text;
    }
    format!("functions\n{text}\n")
}

/// Prints an object as `--json` has it.
pub(super) fn print_json(report: &impl Serialize, ui: Ui) -> Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    ui.data(format!("{json}\n").as_bytes())
}

impl SeriesArgs {
    /// What was said, as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        option("--series", self.series.clone())
    }

    /// Reads the recipe.
    ///
    /// A name is looked for where one stands and in the directories above, up to the top of the repository; a recipe that is found higher up
    /// or in the binary is said, since nobody has named it.
    pub(super) fn recipe(&self, ui: Ui) -> Result<Recipe> {
        let recipe = self.find()?;
        let name = shown_text(recipe.series.name.as_bytes());
        let place = match recipe.directory {
            Some(_) => shown_text(recipe.origin.as_bytes()),
            None => "this binary".to_owned(),
        };
        ui.status(&format!("series: {name}, from {place}"));
        Ok(recipe)
    }

    fn find(&self) -> Result<Recipe> {
        if let Some(series) = &self.series {
            return named(series);
        }
        let mut places = above().map(|dir| (series_in(&dir), dir));
        let found = places.find(|(names, _)| !names.is_empty());
        let (local, here) = found.unwrap_or_else(|| (Vec::new(), PathBuf::from(".")));
        let names = if local.is_empty() {
            recipe::embedded()
        } else {
            local
        };
        match names.as_slice() {
            [name] => recipe::load(name, &here),
            names => Err(Refusal::usage(format!(
                "there are {} series: {}",
                names.len(),
                names.join(", ")
            ))
            .hint("say which one with `--series`")
            .into()),
        }
    }
}

/// The recipe of this name: a directory, or one of the series where one stands and above.
pub(super) fn named(series: &str) -> Result<Recipe> {
    let here = Path::new(".");
    let is_path = here.join(series).join("series.toml").is_file();
    let is_there = |dir: &PathBuf| {
        dir.join("patches")
            .join(series)
            .join("series.toml")
            .is_file()
    };
    let place = above().find(is_there).filter(|_| !is_path);
    recipe::load(series, place.as_deref().unwrap_or(here))
}

/// The directory that one stands in and those above it, up to the top of a repository: relative, for messages.
fn above() -> impl Iterator<Item = PathBuf> {
    let mut next = Some(PathBuf::from("."));
    std::iter::from_fn(move || {
        let dir = next.take()?;
        let is_top =
            dir.join(".git").exists() || dir.canonicalize().is_ok_and(|it| it.parent().is_none());
        next = (!is_top && dir.is_dir()).then(|| match dir.as_path() {
            here if here == Path::new(".") => PathBuf::from(".."),
            dir => Path::new("..").join(dir),
        });
        Some(dir)
    })
}

/// The names of the series in a directory's `patches`.
fn series_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("patches"))
        .into_iter()
        .flatten()
        .flatten();
    let series = entries.filter(|entry| entry.path().join("series.toml").is_file());
    let mut names: Vec<_> = series
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// An option with its value as words of a command line; nothing where it has none.
pub(super) fn option(name: &str, value: Option<String>) -> Vec<String> {
    let words = value.map(|value| vec![name.to_owned(), value]);
    words.unwrap_or_default()
}

/// A command of reroll as one types it.
pub(super) fn command_line(words: &[String]) -> String {
    let words = std::iter::once("reroll").chain(words.iter().map(String::as_str));
    shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
}

impl BaseArgs {
    /// What was said, as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        let tree = self.tree.as_ref().map(|tree| tree.display().to_string());
        [option("--tree", tree), option("--base", self.base.clone())].concat()
    }

    /// Opens the repository and resolves the base.
    pub(super) fn open(&self, ui: Ui) -> Result<(Repo, Base)> {
        self.open_or(None, ui)
    }

    /// The same where mails name their base (`base-commit:`), if a person does not.
    pub(super) fn open_or(&self, mails: Option<&str>, ui: Ui) -> Result<(Repo, Base)> {
        let own = match &self.tree {
            Some(tree) => Some(Repo::open(tree)?),
            None => Repo::discover(Path::new("."))?.filter(holds_a_kernel),
        };
        if let Some(repo) = own {
            let base = self.resolve(&repo, mails)?;
            return Ok((repo, base));
        }
        let cache = Cache::open()?;
        let name = match (&self.base, mails) {
            (Some(name), _) => name.clone(),
            (None, Some(id)) => id.to_owned(),
            (None, None) => {
                let entry = cache.default_base(ui)?;
                ui.status(&format!("base: {} ({})", entry.name, entry.release));
                entry.commit_id.to_string()
            }
        };
        let path = cache.repo_path();
        if !path.exists() {
            return Err(unknown(&name, &[]));
        }
        let repo = Repo::open(&path)?;
        if self.base.is_none() && mails.is_some() {
            let base = self.resolve(&repo, mails)?;
            return Ok((repo, base));
        }
        let mut base = repo.base(&name).map_err(|_| {
            let names: Vec<_> = cache
                .list()
                .unwrap_or_default()
                .into_iter()
                .map(|entry| entry.name)
                .collect();
            unknown(&name, &names)
        })?;
        base.rev = self.base.clone().unwrap_or(base.rev);
        Ok((repo, base))
    }

    fn resolve(&self, repo: &Repo, mails: Option<&str>) -> Result<Base> {
        match (&self.base, mails) {
            (Some(rev), _) => repo.base(rev),
            (None, Some(id)) => repo.base(id).with_context(|| {
                Refusal::usage(format!(
                    "the mails name their base, `base-commit: {}`, which is not there",
                    shown_text(id.as_bytes())
                ))
                .hint("fetch it, or name another base with `--base`")
            }),
            (None, None) => repo.base("HEAD"),
        }
    }
}

fn unknown(name: &str, known: &[String]) -> anyhow::Error {
    let known = if known.is_empty() {
        "there are none yet".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    Refusal::usage(format!("the cache has no base `{}`; {known}", shown_text(name.as_bytes())))
        .hint("`reroll base add NAME SOURCE` imports one; a revision of your own repository needs `--tree`")
        .into()
}

/// Whether HEAD of the repository that this is run in is a kernel.
fn holds_a_kernel(repo: &Repo) -> bool {
    let makefile = repo
        .base("HEAD")
        .and_then(|head| repo.file(head.tree_id, b"Makefile".as_bstr()));
    makefile.is_ok_and(|file| file.is_some_and(|file| release(&file.bytes).is_some()))
}
