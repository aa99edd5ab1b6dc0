//! The section gate: the base's own modpost on the objects, linked as if they were the whole kernel.
//!
//! Hides modpost's command line; only mismatches that the base does not have count.

use std::fs;

use anyhow::{Context as _, Result};

use super::Outcome;
use super::build::{State, against_base, counted};
use super::kbuild::{Bench, Built, Trouble};
use super::settings::Configuration;
use super::warnings::{self, Warning};
use crate::exec::Task;

/// What modpost says about the objects as they are now.
pub(super) fn look(
    bench: &Bench<'_, '_>,
    configuration: &Configuration,
    number: usize,
) -> Result<Result<Built, Trouble>> {
    let settings = &bench.context.subject.settings;
    let mut objects = settings.objects.clone();
    objects.extend(bench.make_what_can(
        configuration,
        &format!("{}-p{number}-section", configuration.name),
        &settings.section.with,
    )?);
    objects.sort();
    objects.dedup();
    let dir = bench.dir.kept(number).join("section");
    fs::create_dir_all(&dir).context("cannot make a directory for modpost")?;
    let paths = objects
        .iter()
        .map(|object| bench.dir.objects().join(object));
    let log = bench
        .context
        .log(&format!("{}-p{number}-link", configuration.name));
    // Modpost looks at sections only where it takes the file for the kernel itself.
    let link = Task::new(configuration.binutil("ld"))
        .home()
        .dir(&dir)
        .args(["-r", "-o", "vmlinux.o"])
        .args(paths);
    if !bench.dir.run(link.log(&log))?.exit.success() {
        return Ok(Err(trouble("the objects cannot be linked", log)));
    }
    let log = bench
        .context
        .log(&format!("{}-p{number}-modpost", configuration.name));
    let modpost = bench.dir.objects().join("scripts/mod/modpost");
    let task = Task::new(&modpost)
        .home()
        .dir(&dir)
        .args(["-o", "vmlinux.symvers", "vmlinux.o"]);
    if !bench.dir.run(task.log(&log))?.exit.success() {
        return Ok(Err(trouble("modpost failed", log)));
    }
    let text = fs::read(&log).context("cannot read modpost's log")?;
    let mut mismatches = warnings::parse(&text, "");
    mismatches.retain(is_mismatch);
    Ok(Ok(Built {
        warnings: mismatches,
        log,
    }))
}

/// Compares the mismatches of a patch with the base's.
pub(super) fn judge(blank: Outcome, base: &State, now: &State) -> Outcome {
    let (base, now) = match (&base.section, &now.section) {
        (Some(Ok(base)), Some(Ok(now))) => (base, now),
        (Some(Err(trouble)), _) => return trouble.outcome(blank, "no modpost on the base"),
        (_, Some(Err(trouble))) => return trouble.outcome(blank, "no modpost on the patch"),
        (None, _) | (_, None) => return blank.error("modpost was not run"),
    };
    against_base(blank, base, now, |count| {
        counted(count, "new section mismatch").replace("mismatchs", "mismatches")
    })
}

fn is_mismatch(warning: &Warning) -> bool {
    warning
        .key
        .to_ascii_lowercase()
        .contains("section mismatch")
}

fn trouble(reason: &str, log: std::path::PathBuf) -> Trouble {
    let text = fs::read(&log).unwrap_or_default();
    Trouble {
        reason: reason.to_owned(),
        lines: warnings::errors(&text, ""),
        log,
    }
}
