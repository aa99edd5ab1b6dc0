//! `reroll check`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::letters::{LetterArgs, typed_again};
use super::regen;
use super::select::{BaseArgs, SeriesArgs};
use crate::cache::Cache;
use crate::error::{Exit, Refusal, exit_of};
use crate::gate::settings::Settings;
use crate::gate::{Mails, Report, Subject, command, harness_directory, proof};
use crate::lab::Lab;
use crate::recipe::Recipe;
use crate::repo::{Base, Repo};
use crate::rests::record::ProvenBase;
use crate::rests::{self, Proven, Standing};
use crate::series::{self, Series, regenerate_left};
use crate::ui::Ui;

/// Prove that a series can go out: each gate says pass, fail, error (it could not run) or skipped (by the recipe).
///
/// Without PATCHES and `--branch` the series is regenerated on the base first, in memory, as `regen` does it. What earlier runs found is kept, by everything
/// it depends on: a second run says `cached`. Exit code 1: a gate failed; 4: none failed, but one could not run.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of patches, or an mbox, instead of the regenerated series; the base is what their `base-commit:` names, if anything
    #[arg(value_name = "PATCHES", conflicts_with = "branch")]
    directory: Option<PathBuf>,
    /// The commits from the base to REV instead of the regenerated series
    #[arg(long, value_name = "REV")]
    branch: Option<String>,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    series: SeriesArgs,
    #[command(flatten)]
    letters: LetterArgs,
    /// Keep, beside the series, what it rests on on this base as proven: the build and equality gates must pass in every configuration
    #[arg(long, conflicts_with_all = ["directory", "branch"])]
    record: bool,
    #[command(flatten)]
    gates: command::GateArgs,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.series.recipe(ui)?;
    let mails = args.directory.as_deref().map(Mails::of_path).transpose()?;
    let named = mails.as_ref().and_then(Mails::base_commit);
    let (mut repo, base) = args.base.open_or(named.as_deref(), ui)?;
    repo.keep_in_memory()?;
    let mut stands = None;
    let mut subject = match (mails, &args.branch) {
        (Some(mails), _) => {
            let settings = foreign_settings(&repo, &base, &recipe, ui)?;
            Subject::from_mails(&repo, base, mails, settings)?
        }
        (None, Some(branch)) => {
            let settings = foreign_settings(&repo, &base, &recipe, ui)?;
            Subject::from_branch(&repo, base, branch, settings)?
        }
        (None, None) => {
            let Some((series, subject)) = regenerated(args, &repo, &base, &recipe, ui)? else {
                return Ok(Exit::Done);
            };
            stands = Some(Stands::of(&recipe, &series, args.record)?);
            subject
        }
    };
    args.gates.skip(&mut subject.settings)?;
    let lab = Lab::open(&lab_directory()?)?;
    if let Some(equality) = &subject.settings.equality {
        subject.harness = Some(harness_directory(
            &lab,
            Path::new(&recipe.origin),
            equality,
        )?);
    }
    let report = command::run(&subject, &args.gates, &lab, ui)?;
    match stands {
        Some(stands) => stands.end(&report, &subject.settings, ui),
        None => Ok(report.exit()),
    }
}

/// The recipe's `[check]` for a series that it does not make; nothing of it where it is about functions that the base does not have.
fn foreign_settings(repo: &Repo, base: &Base, recipe: &Recipe, ui: Ui) -> Result<Settings> {
    let settings = series::places(repo, base, recipe).and_then(|it| Settings::on(recipe, &it));
    settings.or_else(|error| {
        if exit_of(&error) != Exit::Drift {
            return Err(error);
        }
        let name = &recipe.series.name;
        ui.note(&format!("`[check]` of `{name}` is about functions that this base does not have: nothing is built"));
        Ok(Settings::default())
    })
}

/// What the series rests on on the base, and what is to become of it.
struct Stands {
    standing: Option<Standing>,
    base: ProvenBase,
    /// Where it is recorded, and what is known there already.
    record: Option<(PathBuf, Proven)>,
}

impl Stands {
    /// Refuses at once what could not be recorded at the end.
    fn of(recipe: &Recipe, series: &Series, record: bool) -> Result<Self> {
        let name = &recipe.series.name;
        let refuse = |message: String, hint: &str| Err(Refusal::usage(message).hint(hint).into());
        let mut target = None;
        if record {
            let Some(directory) = &recipe.directory else {
                return refuse(
                    format!("the series `{name}` is in this binary, which cannot be written"),
                    "record it in a clone of its project, or name a directory with `--series`",
                );
            };
            if series.standing.is_none() {
                return refuse(
                    format!("the recipe of `{name}` does not say what it rests on"),
                    "add `[rests-on]` to its `series.toml`; ARCHITECTURE.md has the keys",
                );
            }
            if series.merged > 0 {
                return refuse(
                    format!(
                        "this base has the first patches of `{name}`; only the whole series is recorded"
                    ),
                    "name a base without them",
                );
            }
            let known = match rests::proven(recipe)? {
                Ok(known) => known,
                // What was proven of other code says nothing of this.
                Err(_) => Proven::nothing(&recipe.code_digest()),
            };
            target = Some((directory.clone(), known));
        }
        Ok(Self {
            standing: series.standing.clone(),
            base: ProvenBase {
                release: series.release.clone(),
                tree: series.base.tree_id.to_string(),
                configurations: Vec::new(),
            },
            record: target,
        })
    }

    /// Records what was proven, or says what was not.
    fn end(mut self, report: &Report, settings: &Settings, ui: Ui) -> Result<Exit> {
        let Some(standing) = self.standing.take() else {
            return Ok(report.exit());
        };
        let proof = proof(report.patches.len(), &report.outcomes, settings);
        if let Some((directory, mut proven)) = self.record.take() {
            let configurations = proof.map_err(|missing| {
                Refusal::drift("nothing is recorded: the gates do not prove the series on this base")
                    .details(missing.iter().map(|line| format!("  {line}")).collect())
                    .hint("a record needs the gates `build` and `equality` to pass, without `--configuration`; `reroll doctor` says which tools are missing")
            })?;
            self.base.configurations = configurations;
            let count = standing.items.len();
            let release = self.base.release.clone();
            proven.add(self.base, &standing.items);
            rests::write(&directory, &proven)?;
            ui.status(&format!(
                "recorded in {}: {count} definitions and texts as proven on {release}",
                directory.join(rests::record::FILE).display()
            ));
            return Ok(report.exit());
        }
        if standing.is_proven() {
            return Ok(report.exit());
        }
        let sentence = standing.sentence();
        if proof.is_ok() {
            ui.note(&format!(
                "{sentence}; these gates prove it: `--record` keeps that"
            ));
            return Ok(report.exit());
        }
        ui.warning(&format!("unproven: {sentence}"));
        Ok(match report.exit() {
            Exit::Done => Exit::Drift,
            exit => exit,
        })
    }
}

/// The series made anew on the base; `None` where the base has it.
fn regenerated(
    args: &Args,
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    ui: Ui,
) -> Result<Option<(Box<Series>, Subject)>> {
    let author = args.letters.author(recipe, typed_again)?;
    let options = args.letters.options(&author, recipe, base)?;
    let (regenerated, taken) = regenerate_left(repo, base, recipe, &options)?;
    let Some(series) = regen::series(regenerated, &taken, false, ui)? else {
        return Ok(None);
    };
    if let Some(warning) = &series.unfit_performance {
        ui.warning(warning);
    }
    let letters = args.letters.letters(repo, recipe, &series, &options)?;
    let settings = Settings::on(recipe, &series.places)?;
    let subject = Subject::from_series(repo, &series, letters, settings)?;
    Ok(Some((series, subject)))
}

pub(super) fn lab_directory() -> Result<PathBuf> {
    Ok(Cache::open()?.lab_path())
}
