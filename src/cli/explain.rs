//! `reroll explain`.

use anyhow::Result;

use super::regen;
use super::select::{Findings, ReadArgs, functions_text};
use crate::edit::Landing;
use crate::error::Exit;
use crate::repo::Signature;
use crate::series::{Options, regenerate_left};
use crate::ui::{Ui, shown_text};

/// Show where each edit of the series would land on a base: file, line, function and the text that its anchor matched.
///
/// Nothing is written, and no author is needed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.read.series.recipe()?;
    let (mut repo, base) = args.read.base.open(ui)?;
    repo.keep_in_memory()?;
    let nobody = Signature {
        name: "nobody".into(),
        email: "nobody".into(),
        time: base.time,
        offset: 0,
    };
    let options = Options {
        author: nobody,
        sign_off: false,
        version: recipe.series.version,
    };
    let (regenerated, taken) = regenerate_left(&repo, &base, &recipe, &options)?;
    let Some(series) = regen::series(regenerated, &taken, args.read.json, ui)? else {
        return Ok(Exit::Done);
    };
    let text = functions_text(&series.places) + &text(&series.landings);
    let found = Findings::Edits(&series.landings);
    let base = (&base, series.release.as_str());
    args.read.print(base, &series.places, found, &text, ui)
}

/// The edits, patch by patch.
fn text(landings: &[Landing]) -> String {
    let mut text = String::new();
    let mut patch = "";
    for landing in landings {
        if landing.patch != patch {
            patch = &landing.patch;
            text.push_str(&format!(
                "{}patch {patch}\n",
                if text.is_empty() { "" } else { "\n" }
            ));
        }
        text.push_str(&line(landing));
    }
    text
}

fn line(landing: &Landing) -> String {
    let Landing {
        edit,
        action,
        file,
        function,
        line,
        matched,
        recipe,
        ..
    } = landing;
    let function = function
        .as_ref()
        .map(|name| format!(" {name}()"))
        .unwrap_or_default();
    let matched = if matched.is_empty() {
        String::new()
    } else {
        format!("\n      {}", shown_text(matched.as_bytes()))
    };
    format!(
        "  {edit}: {action} at {}:{line}{function} [{recipe}]{matched}\n",
        shown_text(file.as_bytes())
    )
}
