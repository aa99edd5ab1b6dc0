//! `reroll check`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::letters::LetterArgs;
use super::regen::applied;
use super::select::{BaseArgs, SeriesArgs};
use crate::cache::Cache;
use crate::error::Exit;
use crate::gate::settings::Settings;
use crate::gate::{Mail, Subject, command, harness_directory};
use crate::lab::Lab;
use crate::recipe::Recipe;
use crate::repo::{Base, Repo};
use crate::series::{Regenerated, regenerate};
use crate::ui::Ui;

/// Prove that a series can go out: each gate says pass, fail, error (it could not run) or skipped (by the recipe).
///
/// Without PATCHES and `--branch` the series is regenerated on the base first, in memory. What earlier runs found is kept, by everything
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
    let settings = Settings::of(&recipe)?;
    let (mut repo, base) = args.base.open(ui)?;
    repo.keep_in_memory()?;
    let subject = match (&args.directory, &args.branch) {
        (Some(directory), _) => Some(Subject::from_directory(&repo, base, directory, settings)?),
        (None, Some(branch)) => Some(Subject::from_branch(&repo, base, branch, settings)?),
        (None, None) => regenerated(args, &repo, base, &recipe, settings, ui)?,
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
    base: Base,
    recipe: &Recipe,
    settings: Settings,
    ui: Ui,
) -> Result<Option<Subject>> {
    let author = args.letters.author(recipe)?;
    let options = args.letters.options(&author, recipe, &base)?;
    let series = match regenerate(repo, &base, recipe, &options)? {
        Regenerated::Series(series) => series,
        Regenerated::Applied(what) => {
            applied(&what, false, ui)?;
            return Ok(None);
        }
    };
    if let Some(warning) = &series.unfit_performance {
        ui.warning(warning);
    }
    let letters = args.letters.letters(repo, recipe, &series, &options)?;
    let first = usize::from(letters.cover.is_none());
    let mails = letters.compose()?.into_iter().enumerate();
    let mails = mails.map(|(index, mail)| Mail {
        file_name: mail.file_name,
        bytes: mail.bytes,
        number: index + first,
    });
    let patches = series
        .patches
        .iter()
        .map(|patch| (patch.name.clone(), patch.commit.id))
        .collect();
    let mut subject = Subject::new(repo, base, patches, mails.collect(), settings)?;
    subject.letters = letters;
    Ok(Some(subject))
}

pub(super) fn lab_directory() -> Result<PathBuf> {
    Ok(Cache::open()?.lab_path())
}
