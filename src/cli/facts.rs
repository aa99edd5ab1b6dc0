//! `reroll facts`.

use anyhow::Result;

use super::select::{Findings, ReadArgs, functions_text};
use crate::error::Exit;
use crate::facts::Found;
use crate::series::{self, Probed};
use crate::ui::{Ui, shown_text};

/// Show every fact that the recipe probes in a base, its value, and where it was found.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.read.series.recipe(ui)?;
    let (repo, base) = args.read.base.open(ui)?;
    let Probed {
        release,
        places,
        facts,
    } = series::facts(&repo, &base, &recipe)?;
    let mut text = format!("Linux {}\n", shown_text(release.as_bytes()));
    if !places.is_empty() {
        text.push_str(&format!("\n{}\n", functions_text(&places).trim_end()));
    }
    for Found {
        name,
        about,
        value,
        place,
    } in &facts
    {
        text.push_str(&format!(
            "\n{name} = {value}\n    {about}\n    {}\n",
            shown_text(place.as_bytes())
        ));
    }
    let found = Findings::Facts(&facts);
    args.read
        .print((&base, &release), &places, found, &text, ui)
}
