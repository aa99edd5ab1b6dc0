//! `reroll report`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;

use super::bot::ConfigArgs;
use crate::bench::record::Performance;
use crate::bot::{Bot, found_in};
use crate::error::{Exit, Refusal};
use crate::outgoing::{Output, Sort};
use crate::report::Report;
use crate::ui::{Ui, shown_text};

/// Show what the bot found: a page for a browser, and formats for machines.
///
/// Without a format a Markdown summary goes to standard output. The page is one file that needs nothing else.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Write the page to FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show what `reroll bench` measured on these bases: files of `bench --record`, or what `bench --json` printed
    ///
    /// What is recorded beside the series is shown anyway. Of two results for one base the newer one counts.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    performance: Vec<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
    /// Write `JUnit` XML to FILE
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a Markdown summary to FILE
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Overwrite a FILE though somebody else wrote it
    #[arg(long)]
    force: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fold what the cells of a plan found into the records
    Merge {
        #[command(flatten)]
        config: ConfigArgs,
        /// The directory with the files that the cells left
        directory: PathBuf,
    },
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    if let Some(Command::Merge { config, directory }) = &args.command {
        let found = found_in(directory)?;
        return config.bot()?.merge(&found, ui);
    }
    let bot = args.config.bot()?;
    let report = Report::of(bot.status()?).with_performance(performance(&bot, &args.performance)?);
    let mut written = false;
    let mut write = |file: &Option<PathBuf>, sort: Sort, bytes: &dyn Fn() -> Result<Vec<u8>>| {
        let Some(path) = file else { return Ok(()) };
        let force = args.force;
        written = true;
        in_directory(path)?;
        Output { path, sort, force }.write(&bytes()?).map(drop)
    };
    let markdown = || format!("{}\n{}", Sort::WRITTEN, report.markdown());
    write(&args.output, Sort::Page, &|| {
        Ok(report.html()?.into_bytes())
    })?;
    write(&args.junit, Sort::JUnit, &|| report.junit())?;
    write(&args.markdown, Sort::Markdown, &|| {
        Ok(markdown().into_bytes())
    })?;
    if args.json {
        ui.data(&report.json()?)?;
    } else if !written {
        ui.data(report.markdown().as_bytes())?;
    }
    Ok(Exit::Done)
}

/// What was measured: beside the series of the bot, and in files.
fn performance(bot: &Bot, files: &[PathBuf]) -> Result<Vec<Performance>> {
    let read = |file: &PathBuf| {
        let label = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| {
            Refusal::usage(format!("cannot read `{}`", shown_text(label.as_bytes())))
                .hint("name a file that `reroll bench --record` or `--json` has left")
        })?;
        Performance::parse(&label, &text)
    };
    let beside = bot
        .recorded()
        .map(|(label, text)| Performance::parse(label, text));
    beside.chain(files.iter().map(read)).collect()
}

/// Makes the directory that a file is to be in: a place for pages is often new.
fn in_directory(file: &Path) -> Result<()> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent
        .map_or(Ok(()), std::fs::create_dir_all)
        .with_context(|| {
            Refusal::tool(format!("cannot write `{}`", file.display()))
                .hint("name a file in a directory that can be written to")
        })
}
