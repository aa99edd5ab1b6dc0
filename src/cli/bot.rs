//! `reroll bot`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::bot::config::Config;
use crate::bot::plan::{self, Format};
use crate::bot::record::{Record, Verdict};
use crate::bot::state::Branch;
use crate::bot::{Bot, wait};
use crate::error::{Exit, exit_of};
use crate::outgoing::{Output, Sort};
use crate::report::Report;
use crate::ui::{Ui, shown_text};

/// Keep series alive on bases as they come.
///
/// All state is in refs of the repository that the configuration names: records below `refs/reroll`, results on `refs/heads/reroll/SERIES/BASE`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "bot.toml")]
    pub(super) config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look for new bases, regenerate, check and record; tell what changed
    ///
    /// Where there is nothing new nothing is written. Errors of the surroundings (a fetch, a tool, the disk) are no verdicts: they are tried
    /// again, then told with exit code 4, and the next run goes on.
    Run {
        #[command(flatten)]
        config: ConfigArgs,
        /// Overwrite the branch of this result, though somebody else has moved it
        #[arg(long, value_name = "SERIES/BASE")]
        recreate: Vec<String>,
        /// Look again every so many seconds, until a signal comes
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
        watch: Option<u32>,
    },
    /// Forget a base and the results on it, as when its tag is gone
    ///
    /// Records and what a watch has fetched are deleted, here and on the push remote; branches stay. A base that is still watched comes back
    /// with the next run.
    Forget {
        #[command(flatten)]
        config: ConfigArgs,
        /// The base, as `status` has it
        base: String,
    },
    /// Show every record
    Status {
        #[command(flatten)]
        config: ConfigArgs,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Exit with 3 where a base does not fit or is unproven, with 1 where a gate failed
        #[arg(long)]
        exit_code: bool,
    },
    /// Print the cells that are to be run, as a matrix for a CI engine
    Plan {
        #[command(flatten)]
        config: ConfigArgs,
        /// The engine
        #[arg(long)]
        format: Format,
        /// Print those that are done as well
        #[arg(long)]
        all: bool,
    },
    /// Run one cell of a plan; what it finds goes to a file, for `reroll report merge`
    Cell {
        #[command(flatten)]
        config: ConfigArgs,
        /// The cell
        id: String,
        /// The file
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Overwrite FILE though somebody else wrote it
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    match &args.command {
        Command::Run {
            config,
            recreate,
            watch,
        } => match watch {
            None => config.bot()?.run(recreate, ui),
            Some(seconds) => {
                keep_running(config, recreate, Duration::from_secs((*seconds).into()), ui)
            }
        },
        Command::Forget { config, base } => config.bot()?.forget(base, ui).map(|()| Exit::Done),
        Command::Status {
            config,
            json,
            exit_code,
        } => status(&config.bot()?, *json, *exit_code, ui),
        Command::Plan {
            config,
            format,
            all,
        } => {
            let cells = config.bot()?.plan(*all, ui)?;
            let fit = plan::that_fit(&cells, *format)?;
            if fit.len() < cells.len() {
                ui.note(&format!(
                    "the matrix holds {} of {} cells: plan again when they have run",
                    fit.len(),
                    cells.len()
                ));
            }
            let name = config.config.to_string_lossy();
            ui.data(&plan::matrix(fit, *format, &name)?)?;
            Ok(Exit::Done)
        }
        Command::Cell {
            config,
            id,
            output,
            force,
        } => {
            let output = Output {
                path: output,
                sort: Sort::Cell,
                force: *force,
            };
            output.check()?;
            let found = config.bot()?.run_cell(id, ui)?;
            let mut bytes = serde_json::to_vec_pretty(&found).context("a cell is always JSON")?;
            bytes.push(b'\n');
            output.write(&bytes)?;
            Ok(Exit::Done)
        }
    }
}

impl ConfigArgs {
    /// The bot that the configuration describes.
    pub(super) fn bot(&self) -> Result<Bot> {
        Bot::open(Config::load(&self.config)?)
    }
}

/// Runs until a signal comes, which is the way to stop it. The files are read anew each time.
fn keep_running(config: &ConfigArgs, recreate: &[String], pause: Duration, ui: Ui) -> Result<Exit> {
    loop {
        let ended = config.bot().and_then(|bot| bot.run(recreate, ui));
        let ended = match ended {
            Err(error) if exit_of(&error) != Exit::Interrupted => {
                ui.error(&error);
                Ok(exit_of(&error))
            }
            other => other,
        };
        if ended.and_then(|_| wait(pause)).is_err() {
            ui.status("stopped");
            return Ok(Exit::Done);
        }
    }
}

fn status(bot: &Bot, json: bool, exit_code: bool, ui: Ui) -> Result<Exit> {
    let records = bot.status()?;
    let branch = |branch: &Branch| match branch {
        Branch::Right => "",
        Branch::Behind(_) => "behind",
        Branch::Edited(_) => "edited",
    };
    if json {
        ui.data(&Report::of(records.clone()).json()?)?;
    } else {
        let rows: Vec<_> = records
            .iter()
            .map(|(kept, state)| {
                let name = format!("{} on {}", kept.record.series, kept.record.base.name);
                let branch = branch(state);
                let branch = if branch.is_empty() {
                    String::new()
                } else {
                    format!(", its branch is {branch}")
                };
                (
                    shown_text(name.as_bytes()),
                    format!("{}{branch}", kept.record.state()),
                )
            })
            .collect();
        let width = rows
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        let lines = rows
            .iter()
            .map(|(name, state)| format!("{name:width$}  {state}\n"));
        ui.text(&lines.collect::<String>())?;
    }
    let any = |which: fn(&Record) -> bool| records.iter().any(|(kept, _)| which(&kept.record));
    Ok(match () {
        () if !exit_code => Exit::Done,
        () if any(|record| record.verdict >= Verdict::Unproven) => Exit::Drift,
        () if any(Record::gates_failed) => Exit::Failed,
        () => Exit::Done,
    })
}
