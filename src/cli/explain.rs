//! `reroll explain`.

use anyhow::Result;

use super::regen;
use super::select::{Findings, ReadArgs, functions_text};
use crate::edit::Landing;
use crate::error::{Exit, Refusal};
use crate::repo::Signature;
use crate::rests::{Rest, Standing};
use crate::series::{Options, regenerate_left};
use crate::ui::{Ui, shown_text};

/// Show where each edit of the series would land on a base: file, line, function and the text that its anchor matched.
///
/// Nothing is written, and no author is needed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    read: ReadArgs,
    /// Show what the series rests on and does not edit instead: each definition, where it is, what led to it, and whether it was proven
    #[arg(long)]
    rests_on: bool,
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let recipe = args.read.series.recipe(ui)?;
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
    let base = (&base, series.release.as_str());
    if args.rests_on {
        let Some(standing) = &series.standing else {
            return Err(Refusal::usage(format!(
                "the recipe of `{}` does not say what it rests on",
                recipe.series.name
            ))
            .hint("add `[rests-on]` to its `series.toml`; ARCHITECTURE.md has the keys")
            .into());
        };
        let rests = standing.report();
        return args.read.print(
            base,
            &series.places,
            Findings::RestsOn(&rests),
            &rests_on(&rests),
            ui,
        );
    }
    let mut text = functions_text(&series.places) + &text(&series.landings);
    if let Some(standing) = &series.standing {
        text.push_str(&summary(standing));
    }
    args.read.print(
        base,
        &series.places,
        Findings::Edits(&series.landings),
        &text,
        ui,
    )
}

/// How the base stands, on a line.
fn summary(standing: &Standing) -> String {
    let count = standing.items.len();
    let state = if standing.is_proven() {
        "all as they were proven".to_owned()
    } else {
        format!("unproven: {}", standing.sentence())
    };
    format!("\nrests on {count} definitions and texts (`--rests-on` lists them): {state}\n")
}

/// What the series rests on, a line each.
fn rests_on(rests: &[Rest]) -> String {
    let lines = rests.iter().map(|rest| {
        let state = if rest.proven { "proven  " } else { "unproven" };
        let by = if rest.by.is_empty() {
            String::new()
        } else {
            format!(", by way of {}", rest.by)
        };
        let what = format!("{state} {} at {}{by}", rest.name, rest.place);
        format!("{}\n", shown_text(what.as_bytes()))
    });
    lines.collect()
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
