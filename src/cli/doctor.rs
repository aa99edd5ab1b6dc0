//! `reroll doctor`.

use anyhow::Result;

use super::select::SeriesArgs;
use crate::doctor::examine;
use crate::error::Exit;
use crate::gate::settings::Settings;
use crate::ui::Ui;

/// Show which outside tools the gates of a series need, which are there, and what each missing one would enable.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    series: SeriesArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let diagnosis = examine(&Settings::of(&args.series.recipe(ui)?)?)?;
    if args.json {
        ui.data(&diagnosis.json()?)?;
    } else {
        ui.text(&diagnosis.text())?;
    }
    Ok(Exit::Done)
}
