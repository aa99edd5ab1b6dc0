//! `reroll base`.

use anyhow::Result;
use clap::Subcommand;

use super::select::print_json;
use crate::cache::{AddOptions, Cache, State};
use crate::error::Exit;
use crate::import::Source;
use crate::ui::{Ui, shown_text};

/// Import kernels into the cache, as bases that `--base NAME` finds, and list them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Import a kernel under a name
    ///
    /// SOURCE is a directory, a tarball (plain, xz, zst or gz), a `.deb` that holds a `linux-source` tarball, or a package of the
    /// machine's Debian mirror: `debian:7.3` (a kernel version), `debian:experimental` (a suite), `debian:newest`. A second import of the same
    /// thing changes nothing.
    Add {
        /// The base's name, as `--base` will take it
        name: String,
        /// Where the kernel is
        source: String,
        /// Give a name that is taken to this kernel
        #[arg(long)]
        force: bool,
        /// Ask the mirror for new package lists even if those of today are there
        #[arg(long)]
        refresh: bool,
    },
    /// List the bases in the cache
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove a base from the cache
    Remove {
        /// The base's name
        name: String,
    },
}

pub(super) fn run(args: &Args, ui: Ui) -> Result<Exit> {
    let cache = Cache::open()?;
    match &args.command {
        Command::Add {
            name,
            source,
            force,
            refresh,
        } => {
            let options = AddOptions {
                force: *force,
                refresh: *refresh,
            };
            let added = cache.add(name, &Source::parse(source)?, options, ui)?;
            let verb = match added.state {
                State::New => "imported",
                State::Replaced => "replaced",
                State::Unchanged => "unchanged:",
            };
            ui.status(&format!(
                "{verb} {} (Linux {})",
                added.base.name,
                shown_text(added.base.release.as_bytes())
            ));
        }
        Command::List { json } => list(&cache, *json, ui)?,
        Command::Remove { name } => {
            let removed = cache.remove(name)?;
            ui.status(&format!(
                "removed {} (Linux {})",
                removed.name,
                shown_text(removed.release.as_bytes())
            ));
        }
    }
    Ok(Exit::Done)
}

fn list(cache: &Cache, json: bool, ui: Ui) -> Result<()> {
    let bases = cache.list()?;
    if json {
        let report = serde_json::json!({ "version": 1, "bases": bases });
        return print_json(&report, ui);
    }
    if bases.is_empty() {
        ui.status("there are no bases yet");
        ui.hint("`reroll base add NAME SOURCE` imports one, for example `reroll base add v7.3 debian:7.3`");
    }
    let width = bases
        .iter()
        .map(|base| base.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for base in &bases {
        let from = base.package.as_ref().unwrap_or(&base.origin);
        text.push_str(&format!(
            "{:width$}  Linux {}  {}\n",
            shown_text(base.name.as_bytes()),
            shown_text(base.release.as_bytes()),
            shown_text(from.as_bytes())
        ));
    }
    Ok(ui.text(&text)?)
}
