//! `reroll diff`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use bstr::ByteSlice;
use serde::Serialize;

use super::select::{SeriesArgs, named};
use crate::cache::Cache;
use crate::error::{Exit, Refusal};
use crate::rangediff::{self, Authors, By, Detail, Kind, Letters, Options, Pair, Patch};
use crate::recipe::Recipe;
use crate::repo::{Base, Repo, Signature};
use crate::series::{self, Regenerated, regenerate};
use crate::ui::{Ui, shown_text};

/// Compare two versions of a series, as `git range-diff` does.
///
/// OLD and NEW are each a range `A..B` of a repository, a branch (with `--base`), a directory of patch files, or an mbox. Without them recipes are
/// regenerated: one on two bases (`--bases OLD..NEW`), or two on one (`--new-series NEW`), which leaves out what the base changed.
///
/// Patches are paired by identity (a recipe's name for them, a `Change-Id`, the subject within one `change-id`), then by equal text, then by git's
/// cost rule. The text is git's; exit code 1 says that the versions differ.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The old version: `A..B`, a branch, a directory of patches, or an mbox
    #[arg(requires = "new", conflicts_with = "series")]
    old: Option<String>,
    /// The new version
    new: Option<String>,
    /// The repository of ranges and bases [default: the one this is run in, else for recipes the cache]
    #[arg(long, value_name = "REPO")]
    tree: Option<PathBuf>,
    /// Where OLD and NEW begin if they are branches; the base of both recipes
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    #[command(flatten)]
    series: SeriesArgs,
    /// The recipe of the new version; `--series` is the old one's
    #[arg(long, value_name = "SERIES", conflicts_with = "old")]
    new_series: Option<String>,
    /// Regenerate the old version on OLDBASE and the new one on NEWBASE
    #[arg(long, value_name = "OLDBASE..NEWBASE", conflicts_with_all = ["old", "base"])]
    bases: Option<String>,
    /// With `--bases` and two recipes: regenerate the old version on NEWBASE as well, so that only what the author changed remains
    #[arg(
        long,
        requires = "bases",
        requires = "new_series",
        conflicts_with = "old"
    )]
    rebased: bool,
    /// How different a pair may be, in percent of a patch's lines
    #[arg(long, value_name = "N", default_value_t = 60)]
    creation_factor: u32,
    /// Only a line for each pair
    #[arg(short = 's', long)]
    no_patch: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The two versions.
struct Versions {
    old: Vec<Patch>,
    new: Vec<Patch>,
}

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    equal: bool,
    creation_factor: u32,
    pairs: Vec<PairReport<'a>>,
}

#[derive(Serialize)]
struct PairReport<'a> {
    kind: Kind,
    by: Option<By>,
    old: Option<PatchReport<'a>>,
    new: Option<PatchReport<'a>>,
    /// The numbers of the new patches that a split one went into.
    into: Vec<usize>,
    diff: String,
}

#[derive(Serialize)]
struct PatchReport<'a> {
    number: usize,
    id: Option<&'a str>,
    identity: Option<&'a str>,
    subject: String,
    author: String,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let versions = match (&args.old, &args.new) {
        (Some(old), Some(new)) => args.given(old, new, ui)?,
        _ => args.regenerated(ui)?,
    };
    let Versions { old, new } = &versions;
    let options = Options {
        creation_factor: args.creation_factor,
    };
    let pairs = rangediff::compare(old, new, &options)?;
    let odd = versions.odd(&pairs);
    for (old, new) in &odd {
        ui.warning(&format!(
            "old patch {} and new patch {} change binary files, and not to the same content, which their texts do not show",
            old + 1,
            new + 1
        ));
    }
    let equal = odd.is_empty() && pairs.iter().all(|pair| pair.kind == Kind::Equal);
    if args.json {
        let report = versions.report(&pairs, args.creation_factor, equal);
        ui.data(format!("{}\n", serde_json::to_string_pretty(&report)?).as_bytes())?;
    } else {
        versions.show(&pairs, args.no_patch, ui)?;
    }
    Ok(if equal { Exit::Done } else { Exit::Failed })
}

impl Versions {
    /// Pairs whose texts are equal and whose binary files are not.
    fn odd(&self, pairs: &[Pair]) -> Vec<(usize, usize)> {
        let equal = pairs.iter().filter(|pair| pair.kind == Kind::Equal);
        let equal = equal.filter_map(|pair| pair.old.zip(pair.new));
        let differ =
            |(old, new): &(usize, usize)| self.old[*old].binaries() != self.new[*new].binaries();
        equal.filter(differ).collect()
    }

    /// In git's bytes where a program reads them; escaped and coloured where a person does.
    fn show(&self, pairs: &[Pair], no_patch: bool, ui: Ui) -> Result<()> {
        let detail = if no_patch {
            Detail::Summary
        } else {
            Detail::Full
        };
        let stdout = std::io::stdout();
        let is_plain = AutoStream::choice(&stdout) == ColorChoice::Never && !stdout.is_terminal();
        if is_plain {
            ui.data(&rangediff::as_text(&self.old, &self.new, pairs, detail))?;
        } else {
            ui.text(&rangediff::for_terminal(
                &self.old, &self.new, pairs, detail,
            ))?;
        }
        for pair in pairs.iter().filter(|pair| pair.kind == Kind::Split) {
            let Some(old) = pair.old else { continue };
            let into: Vec<_> = pair.into.iter().map(|at| (at + 1).to_string()).collect();
            ui.status(&format!(
                "old patch {} (`{}`) is split: each of its changes is in one of the new patches {}",
                old + 1,
                shown_text(&self.old[old].subject),
                into.join(", ")
            ));
        }
        Ok(())
    }

    fn report(&self, pairs: &[Pair], creation_factor: u32, equal: bool) -> Report<'_> {
        let pairs = pairs.iter().map(|pair| PairReport {
            kind: pair.kind,
            by: pair.by,
            old: pair.old.map(|at| patch_report(&self.old, at)),
            new: pair.new.map(|at| patch_report(&self.new, at)),
            into: pair.into.iter().map(|at| at + 1).collect(),
            diff: pair.diff.to_str_lossy().into_owned(),
        });
        Report {
            version: 1,
            equal,
            creation_factor,
            pairs: pairs.collect(),
        }
    }
}

fn patch_report(patches: &[Patch], at: usize) -> PatchReport<'_> {
    let patch = &patches[at];
    PatchReport {
        number: at + 1,
        id: Some(patch.id.as_str()).filter(|id| !id.is_empty()),
        identity: patch.identity.as_deref(),
        subject: patch.subject.to_string(),
        author: patch.author.to_string(),
    }
}

/// What OLD or NEW names.
enum Source<'a> {
    Mails(&'a Path),
    Commits { from: &'a str, to: &'a str },
}

impl Args {
    /// The versions that are there already.
    fn given(&self, old: &str, new: &str, ui: Ui) -> Result<Versions> {
        let sources = [self.source(old)?, self.source(new)?];
        let commits = |source: &Source<'_>| matches!(source, Source::Commits { .. });
        let repo = if sources.iter().any(commits) {
            Some(self.repo()?)
        } else {
            None
        };
        // A mail has its author as written, so a commit beside it must have the same.
        let authors = if sources.iter().all(commits) {
            Authors::Mapped
        } else {
            Authors::AsWritten
        };
        let mut versions = Vec::new();
        for source in &sources {
            versions.push(match (source, &repo) {
                (Source::Commits { from, to }, Some(repo)) => {
                    let range = rangediff::of_range(repo, from, to, authors)?;
                    if range.merges > 0 {
                        ui.warning(&format!(
                            "{} merges of `{from}..{to}` are left out, as git leaves them out",
                            range.merges
                        ));
                    }
                    if range.replaced > 0 {
                        ui.warning(&format!(
                            "for {} commits of `{from}..{to}` there are others below refs/replace, which are not looked at",
                            range.replaced
                        ));
                    }
                    Letters {
                        patches: range.patches,
                        change_id: None,
                    }
                }
                (Source::Mails(path), _) => rangediff::of_path(path)?,
                (Source::Commits { .. }, None) => anyhow::bail!("a range without a repository"),
            });
        }
        if let [old, new] = versions.as_mut_slice() {
            rangediff::same_series(old, new);
        }
        let mut versions = versions.into_iter().map(|letters| letters.patches);
        Ok(Versions {
            old: versions.next().unwrap_or_default(),
            new: versions.next().unwrap_or_default(),
        })
    }

    /// A path that exists is a path; else it is a range or a branch.
    fn source<'a>(&'a self, name: &'a str) -> Result<Source<'a>> {
        if Path::new(name).exists() {
            return Ok(Source::Mails(Path::new(name)));
        }
        if name.contains("...") {
            return Err(
                Refusal::usage(format!("`{}` is no range", shown_text(name.as_bytes())))
                    .hint("write both versions as ranges: `A..B C..D`")
                    .into(),
            );
        }
        let head = |rev: &'a str| if rev.is_empty() { "HEAD" } else { rev };
        if let Some((from, to)) = name.split_once("..") {
            return Ok(Source::Commits {
                from: head(from),
                to: head(to),
            });
        }
        match &self.base {
            Some(base) => Ok(Source::Commits {
                from: base,
                to: name,
            }),
            None => Err(Refusal::usage(format!(
                "`{}` is neither a range, a directory of patches nor an mbox",
                shown_text(name.as_bytes())
            ))
            .hint("a branch needs `--base`, which says where it begins")
            .into()),
        }
    }

    /// The repository of commits.
    fn repo(&self) -> Result<Repo> {
        if let Some(tree) = &self.tree {
            return Repo::open(tree);
        }
        Repo::discover(Path::new("."))?.ok_or_else(|| {
            Refusal::usage("there is no repository here")
                .hint("name the one that holds the commits with `--tree`")
                .into()
        })
    }

    /// The versions that recipes give.
    fn regenerated(&self, ui: Ui) -> Result<Versions> {
        if self.bases.is_none() && self.new_series.is_none() {
            return Err(Refusal::usage("there is nothing to compare")
                .hint("name OLD and NEW; or two bases of a recipe with `--bases OLD..NEW`; or two recipes with `--series` and `--new-series`")
                .into());
        }
        let old = self.series.recipe(ui)?;
        let new = match &self.new_series {
            Some(name) => named(name)?,
            None => old.clone(),
        };
        let (mut repo, [old_base, new_base]) = self.open_bases()?;
        repo.keep_in_memory()?;
        let old_base = if self.rebased { &new_base } else { &old_base };
        Ok(Versions {
            old: patches(&repo, old_base, &old, ui)?,
            new: patches(&repo, &new_base, &new, ui)?,
        })
    }

    fn open_bases(&self) -> Result<(Repo, [Base; 2])> {
        let head = |rev: &str| if rev.is_empty() { "HEAD" } else { rev }.to_owned();
        let [old, new] = match &self.bases {
            Some(bases) => {
                let (old, new) = bases.split_once("..").ok_or_else(|| {
                    Refusal::usage(format!(
                        "`{}` are no two bases",
                        shown_text(bases.as_bytes())
                    ))
                    .hint("write them like `--bases v6.1..v6.12`")
                })?;
                [head(old), head(new)]
            }
            None => [
                head(self.base.as_deref().unwrap_or_default()),
                head(self.base.as_deref().unwrap_or_default()),
            ],
        };
        let repo = match (&self.tree, Repo::discover(Path::new("."))?) {
            (Some(tree), _) => Repo::open(tree)?,
            (None, Some(repo)) if repo.base(&old).is_ok() => repo,
            _ => Repo::open(&Cache::open()?.repo_path())?,
        };
        let bases = [repo.base(&old)?, repo.base(&new)?];
        Ok((repo, bases))
    }
}

/// A recipe's patches on a base. A base that has the whole series gives none, and that is said.
fn patches(repo: &Repo, base: &Base, recipe: &Recipe, ui: Ui) -> Result<Vec<Patch>> {
    let nobody = Signature {
        name: "nobody".into(),
        email: "nobody".into(),
        time: base.time,
        offset: 0,
    };
    let options = series::Options {
        author: nobody,
        sign_off: false,
        version: recipe.series.version,
    };
    match regenerate(repo, base, recipe, &options)? {
        Regenerated::Series(series) => rangediff::of_series(repo, &series),
        Regenerated::Applied(what) => {
            ui.warning(&format!(
                "`{}` has the whole series already: {}",
                base.rev,
                what.join(", ")
            ));
            Ok(Vec::new())
        }
    }
}
