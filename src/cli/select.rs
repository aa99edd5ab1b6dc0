//! Options that say which base and which series; the same for every subcommand that takes one.
//!
//! Hides the defaults: the kernel that one stands in, a base of the cache, the newest kernel of the distribution.

use std::path::{Path, PathBuf};

use anyhow::Result;
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
    /// Reads the recipe.
    pub(super) fn recipe(&self) -> Result<Recipe> {
        let here = Path::new(".");
        if let Some(series) = &self.series {
            return recipe::load(series, here);
        }
        let found = std::fs::read_dir(here.join("patches"))
            .into_iter()
            .flatten()
            .flatten();
        let local: Vec<_> = found
            .filter(|entry| entry.path().join("series.toml").is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let names = if local.is_empty() {
            recipe::embedded()
        } else {
            local
        };
        match names.as_slice() {
            [name] => recipe::load(name, here),
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

impl BaseArgs {
    /// Opens the repository and resolves the base.
    pub(super) fn open(&self, ui: Ui) -> Result<(Repo, Base)> {
        if let Some(tree) = &self.tree {
            let repo = Repo::open(tree)?;
            let base = repo.base(self.base.as_deref().unwrap_or("HEAD"))?;
            return Ok((repo, base));
        }
        if let Some(repo) = Repo::discover(Path::new("."))?.filter(holds_a_kernel) {
            let base = repo.base(self.base.as_deref().unwrap_or("HEAD"))?;
            return Ok((repo, base));
        }
        let cache = Cache::open()?;
        let name = if let Some(name) = &self.base {
            name.clone()
        } else {
            let entry = cache.default_base(ui)?;
            ui.status(&format!("base: {} ({})", entry.name, entry.release));
            entry.commit_id.to_string()
        };
        let repo = cache.repo_path();
        if !repo.exists() {
            return Err(unknown(&name, &[]));
        }
        let repo = Repo::open(&repo)?;
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
