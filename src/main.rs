//! The `reroll` command: reads the command line, runs it, prints the error, sets the exit code.

use std::process::ExitCode;

use clap::Parser;
use reroll::cli::Cli;
use reroll::error::exit_of;
use reroll::exec::catch_signals;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ui = cli.ui();
    match catch_signals().and_then(|()| cli.run(ui)) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            ui.error(&error);
            ExitCode::from(exit_of(&error) as u8)
        }
    }
}
