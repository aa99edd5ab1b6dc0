//! The `reroll` command: reads the command line, runs it, prints the error, sets the exit code.

use std::io::Write;
use std::process::ExitCode;

use reroll::cli::Cli;
use reroll::error::{Exit, exit_of, json_of};
use reroll::exec::catch_signals;
use reroll::ui::{Color, Ui, printed};

fn main() -> ExitCode {
    let (cli, wants_json) = match Cli::read() {
        Ok(read) => read,
        Err(told) => return ExitCode::from(told_by_clap(&told) as u8),
    };
    let ui = cli.ui();
    match catch_signals().and_then(|()| cli.run(ui)) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => {
            ui.error(&error);
            // Who has asked for JSON has a program that reads it; that it cannot be told makes it no worse.
            if wants_json {
                let _ = ui.data(&json_of(&error));
            }
            ExitCode::from(exit_of(&error) as u8)
        }
    }
}

/// Prints the help, the version, or what is wrong with the command line.
fn told_by_clap(told: &clap::Error) -> Exit {
    let done = told.print().and_then(|()| std::io::stdout().flush());
    match printed(done) {
        Err(error) => {
            Ui::new(Color::Auto, false).error(&error);
            exit_of(&error)
        }
        Ok(()) if told.exit_code() == 0 => Exit::Done,
        Ok(()) => Exit::Usage,
    }
}
