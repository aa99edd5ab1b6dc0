//! `reroll facts`.

use anyhow::Result;

use super::select::{Findings, ReadArgs};
use crate::error::Exit;
use crate::facts::Found;
use crate::series;
use crate::ui::{Ui, shown_text};

/// Show every fact that the recipe probes in a base, its value, and where it was found.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.read.series.recipe()?;
    let (repo, base) = args.read.base.open(ui)?;
    let (release, facts) = series::facts(&repo, &base, &recipe)?;
    let mut text = format!("Linux {}\n", shown_text(release.as_bytes()));
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
    args.read.print((&base, &release), found, &text, ui)
}
