//! `reroll report`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;

use super::bot::ConfigArgs;
use crate::bot::found_in;
use crate::error::Exit;
use crate::lab::write_whole;
use crate::report::Report;
use crate::ui::Ui;

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
    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
    /// Write `JUnit` XML to FILE
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a Markdown summary to FILE
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
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
    let report = Report::of(args.config.bot()?.status()?);
    let mut written = false;
    let mut write = |file: &Option<PathBuf>, bytes: &dyn Fn() -> Result<Vec<u8>>| -> Result<()> {
        if let Some(file) = file {
            in_directory(file)?;
            write_whole(file, &bytes()?)?;
            written = true;
        }
        Ok(())
    };
    write(&args.output, &|| Ok(report.html()?.into_bytes()))?;
    write(&args.junit, &|| report.junit())?;
    write(&args.markdown, &|| Ok(report.markdown().into_bytes()))?;
    if args.json {
        ui.data(&report.json()?)?;
    } else if !written {
        ui.data(report.markdown().as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Makes the directory that a file is to be in.
fn in_directory(file: &Path) -> Result<()> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent
        .map_or(Ok(()), std::fs::create_dir_all)
        .with_context(|| {
            crate::error::Refusal::usage(format!("cannot write `{}`", file.display()))
                .hint("name a file in a directory that can be written to")
        })
}
