//! `reroll check`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::letters::LetterArgs;
use super::regen;
use super::select::{BaseArgs, SeriesArgs};
use crate::cache::Cache;
use crate::error::Exit;
use crate::gate::settings::Settings;
use crate::gate::{Subject, command, harness_directory};
use crate::lab::Lab;
use crate::recipe::Recipe;
use crate::repo::{Base, Repo};
use crate::series::{self, regenerate_left};
use crate::ui::Ui;

/// Prove that a series can go out: each gate says pass, fail, error (it could not run) or skipped (by the recipe).
///
/// Without PATCHES and `--branch` the series is regenerated on the base first, in memory, as `regen` does it. What earlier runs found is kept, by everything
/// it depends on: a second run says `cached`. Exit code 1: a gate failed; 4: none failed, but one could not run.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of patches instead of the regenerated series
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
    #[command(flatten)]
    gates: command::GateArgs,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.series.recipe()?;
    let (mut repo, base) = args.base.open(ui)?;
    repo.keep_in_memory()?;
    let settings = || Settings::on(&recipe, &series::places(&repo, &base, &recipe)?);
    let subject = match (&args.directory, &args.branch) {
        (Some(directory), _) => {
            let settings = settings()?;
            Some(Subject::from_directory(&repo, base, directory, settings)?)
        }
        (None, Some(branch)) => {
            let settings = settings()?;
            Some(Subject::from_branch(&repo, base, branch, settings)?)
        }
        (None, None) => regenerated(args, &repo, &base, &recipe, ui)?,
    };
    let Some(mut subject) = subject else {
        return Ok(Exit::Done);
    };
    let lab = Lab::open(&lab_directory()?)?;
    if let Some(equality) = &subject.settings.equality {
        subject.harness = Some(harness_directory(
            &lab,
            Path::new(&recipe.origin),
            equality,
        )?);
    }
    Ok(command::run(&subject, &args.gates, &lab, ui)?.exit())
}

/// The series made anew on the base; `None` where the base has it.
fn regenerated(
    args: &Args,
    repo: &Repo,
    base: &Base,
    recipe: &Recipe,
    ui: Ui,
) -> Result<Option<Subject>> {
    let author = args.letters.author(recipe)?;
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
    Subject::from_series(repo, &series, letters, settings).map(Some)
}

pub(super) fn lab_directory() -> Result<PathBuf> {
    Ok(Cache::open()?.lab_path())
}
