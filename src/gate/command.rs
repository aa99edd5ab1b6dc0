//! The options of `reroll check` and what it prints.
//!
//! Hides which renderer writes where; where the series comes from is the caller's.

use std::path::PathBuf;

use anyhow::Result;

use super::run::CachePolicy;
use super::settings::{Accept, Settings, Skip};
use super::{Event, Name, Options, Report, Subject, check};
use crate::error::Refusal;
use crate::lab::Lab;
use crate::outgoing::{Output, Sort};
use crate::ui::{Ui, shown_text};

/// Options of `reroll check` that say what is run and how it is reported.
#[derive(Debug, Clone, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct GateArgs {
    /// Run only these gates
    #[arg(long = "gate", value_name = "GATE", value_delimiter = ',')]
    gates: Vec<Name>,
    /// Run the slow gates, too: a kernel boots in an emulator, with and without the patches
    #[arg(long)]
    slow: bool,
    /// Build only in these configurations
    #[arg(long = "configuration", value_name = "NAME")]
    configurations: Vec<String>,
    /// Tell for each patch how it fits REV too: clean, drifted, conflict or upstream; can be given more than once
    #[arg(long, value_name = "REV")]
    onto: Vec<String>,
    /// Find everything out anew, whatever earlier runs found
    #[arg(long)]
    renew: bool,
    /// Run at most N builds at once [default: what cores and memory can take]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Print the outcomes as one JSON object
    #[arg(long)]
    json: bool,
    /// Write the outcomes to FILE as `JUnit` XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Let a finding stay, and show why: RULE is a rule of the gates `mail` and `maintainers` (`cover-missing`), or checkpatch's name of a finding (`LONG_LINE`)
    #[arg(long = "skip", value_name = "RULE=REASON")]
    skips: Vec<String>,
    /// Overwrite FILE though somebody else wrote it
    #[arg(long)]
    force: bool,
}

impl GateArgs {
    /// Adds what is skipped by hand to what a recipe says.
    pub fn skip(&self, settings: &mut Settings) -> Result<()> {
        for text in &self.skips {
            let (rule, reason) = text.split_once('=').unwrap_or((text, ""));
            let (rule, reason) = (rule.trim().to_owned(), reason.trim().to_owned());
            let wrong = |what: &str| {
                Refusal::usage(format!("`--skip {}`: {what}", shown_text(text.as_bytes()))).hint(
                    "write `--skip RULE=REASON`; the reports name the rules of what they find",
                )
            };
            if reason.is_empty() {
                return Err(wrong("there is no reason").into());
            }
            let is_checkpatch = !rule.is_empty()
                && rule
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            if is_checkpatch {
                settings.accept.push(Accept {
                    kind: rule,
                    patch: None,
                    message: None,
                    reason,
                });
            } else if super::is_rule(&rule) {
                settings.skip.push(Skip {
                    gate: super::gate_of(&rule),
                    configuration: None,
                    patch: None,
                    rule: Some(rule),
                    reason,
                });
            } else {
                return Err(wrong("there is no such rule").into());
            }
        }
        Ok(())
    }

    fn options(&self) -> Options {
        Options {
            gates: self.gates.clone(),
            slow: self.slow,
            configurations: self.configurations.clone(),
            onto: self.onto.clone(),
            cache: if self.renew {
                CachePolicy::Renew
            } else {
                CachePolicy::Use
            },
            jobs: self.jobs,
        }
    }
}

/// Runs the gates on `subject` and prints what they found.
pub fn run(subject: &Subject, args: &GateArgs, lab: &Lab, ui: Ui) -> Result<Report> {
    let junit = args.junit.as_deref().map(|path| Output {
        path,
        sort: Sort::JUnit,
        force: args.force,
    });
    // Not after an hour of builds.
    junit.map_or(Ok(()), |it| it.check())?;
    let board = ui.board();
    let report = check(subject, &args.options(), lab, &|event| match event {
        Event::Found(outcome) => board.status(&outcome.line()),
        event => event.draw(&board),
    })?;
    drop(board);
    if let Some(output) = &junit {
        output.write(&report.junit()?)?;
    }
    let printed = if args.json {
        ui.data(&report.json()?)
    } else {
        ui.text(&report.table())
    };
    printed?;
    Ok(report)
}
