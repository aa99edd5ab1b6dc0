//! The command line: what the subcommands take, and one short function for each that gathers, calls and prints.
//!
//! Hides clap; help, man pages and completions come from the definitions here.

mod base;
mod bench;
mod bot;
mod check;
mod diff;
mod doctor;
mod explain;
mod facts;
pub(crate) mod letters;
mod regen;
mod report;
mod select;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::Exit;
use crate::outgoing::{Output, Sort};
use crate::temporary;
use crate::ui::{Color, Ui};

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 a check failed or versions differ; 2 the command line or the recipe is wrong;
3 the base does not fit the recipe; 4 an outside tool is missing or broke; 130 interrupted.

A first run: reroll regen --author 'A U Thor <author@example.org>' --signoff";

/// Regenerate a kernel patch series on any base, instead of replaying it.
///
/// A series is a recipe: templates for new code, and structural edits of the base's own source. reroll makes the patches
/// and their mails for a base, or refuses where the base is not what the recipe knows.
#[derive(Debug, Parser)]
#[command(name = "reroll", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
    /// Only say what is wrong
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Run as if started in DIR
    #[arg(id = "run_in", short = 'C', global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

// An `about` alone leaves the longer help of the arguments as it is; a comment would take its place.
#[derive(Debug, Subcommand)]
enum Command {
    #[command(about = "Regenerate the series on a base and write its mails")]
    Regen(regen::Args),
    #[command(about = "Show what is probed in a base, and where it was found")]
    Facts(facts::Args),
    #[command(about = "Show where each edit would land, without writing anything")]
    Explain(explain::Args),
    #[command(about = "Prove a series before it is sent")]
    Check(check::Args),
    #[command(about = "Measure what the series gains, and record it for its letters")]
    Bench(bench::Args),
    #[command(about = "Show which outside tools are there, and what the missing ones would enable")]
    Doctor(doctor::Args),
    #[command(about = "Compare two versions of a series")]
    Diff(diff::Args),
    #[command(about = "Import kernels as bases, list them, and give their space back")]
    Base(base::Args),
    #[command(about = "Regenerate series on new bases as they come, and keep what was found")]
    Bot(bot::Args),
    #[command(about = "Show what the bot found as a page, or for a machine")]
    Report(report::Args),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory
    Man {
        /// The directory
        // Not `directory`: clap would take it for `-C`, which is global.
        #[arg(value_name = "DIRECTORY")]
        pages: PathBuf,
        /// Overwrite a file though somebody else wrote it
        #[arg(long)]
        force: bool,
    },
}

impl Cli {
    /// Reads the command line; and whether it asks for JSON.
    pub fn read() -> Result<(Self, bool), clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let mut deepest = &matches;
        while let Some((_, matches)) = deepest.subcommand() {
            deepest = matches;
        }
        let json = deepest.try_get_one::<bool>("json").ok().flatten();
        let json = json.is_some_and(|json| *json);
        Ok((Self::from_arg_matches(&matches)?, json))
    }

    /// The terminal as the options want it.
    #[must_use]
    pub fn ui(&self) -> Ui {
        Ui::new(self.color, self.quiet)
    }

    /// Runs the subcommand.
    pub fn run(self, ui: Ui) -> Result<Exit> {
        if let Some(directory) = &self.directory {
            std::env::set_current_dir(directory).map_err(|error| {
                crate::error::Refusal::usage(format!(
                    "cannot go to `{}`: {error}",
                    directory.display()
                ))
                .hint("`-C` takes a directory")
            })?;
        }
        match self.command {
            Command::Regen(args) => regen::run(&args, ui),
            Command::Facts(args) => facts::run(&args, ui),
            Command::Explain(args) => explain::run(&args, ui),
            Command::Check(args) => check::run(&args, ui),
            Command::Bench(args) => bench::run(&args, ui),
            Command::Doctor(args) => doctor::run(&args, ui),
            Command::Diff(args) => diff::run(&args, ui),
            Command::Base(args) => base::run(&args, ui),
            Command::Bot(args) => bot::run(&args, ui),
            Command::Report(args) => report::run(&args, ui),
            Command::Completions { shell } => completions(shell, ui),
            Command::Man { pages, force } => man(&pages, force),
        }
    }
}

fn completions(shell: clap_complete::Shell, ui: Ui) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reroll", &mut script);
    ui.data(&script)?;
    Ok(Exit::Done)
}

fn man(directory: &Path, force: bool) -> Result<Exit> {
    let made = temporary::directory()?;
    let pages = clap_mangen::generate_to(Cli::command(), made.path())
        .and_then(|()| std::fs::read_dir(made.path()))
        .with_context(|| temporary::not_written(made.path()))?;
    for page in pages {
        let page = page.with_context(|| temporary::not_written(made.path()))?;
        let bytes =
            std::fs::read(page.path()).with_context(|| temporary::not_written(made.path()))?;
        let output = Output {
            path: &directory.join(page.file_name()),
            sort: Sort::Manual,
            force,
        };
        output.write(&bytes)?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
