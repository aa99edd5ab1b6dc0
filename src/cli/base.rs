//! `reroll base`.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;

use super::select::print_json;
use crate::cache::{AddOptions, Cache, State};
use crate::error::Exit;
use crate::import::Source;
use crate::lab::{Lab, Mode, Pruned, Pruning, prune_files};
use crate::ui::{Ui, shown_size, shown_text};

/// Import kernels into the cache, as bases that `--base NAME` finds, list them, and give their space back.
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
    /// Remove sources and builds that `check` and `bench` left in the cache and nobody has used for a while, and indexes of trees as old
    ///
    /// The source of a base in the cache stays, and so does the one of a build that stays. What a run uses now is never touched. Whatever is
    /// removed is made again when it is needed.
    Prune {
        /// How long it has to be unused
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        older_than: u32,
        /// Only say what would be removed
        #[arg(short = 'n', long)]
        dry_run: bool,
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
        Command::Prune {
            older_than,
            dry_run,
        } => {
            let mode = if *dry_run { Mode::Tell } else { Mode::Remove };
            prune(&cache, *older_than, mode, ui)?;
        }
    }
    Ok(Exit::Done)
}

fn prune(cache: &Cache, days: u32, mode: Mode, ui: Ui) -> Result<()> {
    let lab = cache.lab_path();
    let unused_for = Duration::from_hours(24 * u64::from(days));
    let mut pruning = if lab.is_dir() {
        Lab::open(&lab)?.prune(&cache.trees()?, unused_for, mode)?
    } else {
        Pruning::default()
    };
    for dir in [cache.index_path(), cache.places_path()] {
        pruning
            .gone
            .extend(prune_files(&dir, unused_for, mode)?.gone);
    }
    let (removed, freed) = match mode {
        Mode::Remove => ("removed", "freed"),
        Mode::Tell => ("would remove", "would free"),
    };
    for Pruned { path, bytes } in &pruning.gone {
        let size = shown_size(*bytes);
        ui.status(&format!("{removed} {} ({size})", path.display()));
    }
    if pruning.in_use > 0 {
        ui.status(&format!("left alone, in use: {}", pruning.in_use));
    }
    ui.status(&format!("{freed} {}", shown_size(pruning.bytes())));
    Ok(())
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
    ui.text(&text)
}
