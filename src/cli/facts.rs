//! `reroll facts`.

use anyhow::Result;
use serde::Serialize;

use super::select::{ReadArgs, print_json};
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

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    base: &'a str,
    release: &'a str,
    facts: &'a [Found],
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.read.series.recipe()?;
    let (repo, base) = args.read.base.open(ui)?;
    let (release, facts) = series::facts(&repo, &base, &recipe)?;
    if args.read.json {
        let report = Report {
            version: 1,
            base: &base.rev,
            release: &release,
            facts: &facts,
        };
        print_json(&report, ui)?;
        return Ok(Exit::Done);
    }
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
    ui.text(&text)?;
    Ok(Exit::Done)
}
