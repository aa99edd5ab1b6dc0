//! The equality gate: the kernel's own objects run natively, and what they write is compared.
//!
//! Hides the harness and what it says; a caller hears whether base and patch wrote the same.

mod harness;
mod native;
mod placement;
mod replay;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bstr::ByteSlice;
use serde_json::Value;

use super::build::counted;
use super::kbuild::{Bench, Step, Trouble, flat, step};
use super::run::Context;
use super::settings::{Configuration, Equality};
use super::{Outcome, Subject};
use crate::error::Refusal;
use crate::exec::{End, Task};
use harness::{Harness, Variant};

pub use harness::{digest as harness_files, directory as harness_directory};
pub use native::{Native, Unfit, build as build_native};
pub use replay::{Complaints, Plan, Replay, Unit};

/// Longer than a run takes under an emulator.
const TIMEOUT: Duration = Duration::from_mins(30);

/// What a run of a harness said.
struct Said {
    end: End,
    /// Comparisons made in all.
    checks: u64,
    /// Those that differed, with the variant's name.
    differing: Vec<(String, String)>,
}

/// Whether the settings want this patch run.
pub(super) fn is_wanted(context: &Context<'_>, patch: usize) -> bool {
    let Some(equality) = &context.subject.settings.equality else {
        return false;
    };
    equality.after.is_empty() || equality.after.contains(&patch)
}

/// A digest of the harness's files.
pub(super) fn harness_digest(subject: &Subject) -> Result<String> {
    harness::digest(directory(subject)?)
}

/// Where the harness of the series is.
pub(super) fn directory(subject: &Subject) -> Result<&Path> {
    subject
        .harness
        .as_deref()
        .with_context(|| Refusal::usage("the series comes without its harness"))
}

fn spec<'a>(bench: &Bench<'a, '_>) -> Result<&'a Equality> {
    bench
        .context
        .subject
        .settings
        .equality
        .as_ref()
        .context("equality without `[check.equality]`")
}

/// Keeps what was built of the patch for [`run`]; of the base, other objects as well.
pub(super) fn keep(
    bench: &Bench<'_, '_>,
    configuration: &Configuration,
    number: usize,
) -> Result<Result<(), Trouble>> {
    let spec = spec(bench)?;
    let dir = bench.dir.kept(number);
    fs::create_dir_all(&dir).context("cannot make a directory for objects")?;
    let log = |name: &str| format!("{}-p{number}-equality-{}", configuration.name, flat(name));
    let keep = |object: &str| {
        let copied = fs::copy(bench.dir.objects().join(object), dir.join(flat(object)));
        copied
            .map(drop)
            .with_context(|| format!("cannot keep `{object}`"))
    };
    if let Err(trouble) = bench.make(
        configuration,
        &log(&spec.object),
        std::slice::from_ref(&spec.object),
    )? {
        return Ok(Err(trouble));
    }
    keep(&spec.object)?;
    let with: &[String] = if number == 0 { &spec.with } else { &[] };
    for object in bench.make_what_can(configuration, &log("with"), with)? {
        keep(&object)?;
    }
    Ok(Ok(()))
}

/// Runs the base's object and the patch's, and compares; then proves that the harness would have seen a fault.
pub(super) fn run(
    bench: &Bench<'_, '_>,
    configuration: &Configuration,
    patch: usize,
    blank: Outcome,
) -> Result<Outcome> {
    let tools = configuration.emulator_tools();
    if let Some((names, packages)) = super::toolchain::missing(&tools) {
        return Ok(blank
            .error(format!("not installed: {}", names.join(", ")))
            .packages(&packages));
    }
    let spec = spec(bench)?;
    let harness = Harness::open(directory(bench.context.subject)?)?;
    let trial = Trial {
        bench,
        configuration,
        spec,
        harness: &harness,
        patch,
    };
    let object = |number: usize| Some(bench.dir.kept(number).join(flat(&spec.object)));
    let reference = || Variant::new("base", object(0));

    let pair = [reference(), Variant::new("patch", object(patch))];
    let (said, log) = match trial.run("equality", &pair, harness.verify(configuration))? {
        Ok(ran) => ran,
        Err(trouble) => return Ok(trouble.outcome(blank, "cannot run the object")),
    };
    let outcome = judge(blank.log(log), &said);
    if outcome.status != super::Status::Pass {
        return Ok(outcome);
    }

    let faults = &harness.manifest.faults;
    let planted = faults.iter().map(|fault| Variant::new(fault, None));
    let all: Vec<_> = [reference()].into_iter().chain(planted).collect();
    let (said_of_faults, log) = match trial.run("faults", &all, &harness.manifest.verify_faults)? {
        Ok(ran) => ran,
        Err(trouble) => return Ok(trouble.outcome(outcome, "cannot plant faults")),
    };
    Ok(judge_faults(outcome, &said, faults, &said_of_faults, log))
}

/// What is needed to run objects of one patch in one configuration.
struct Trial<'a> {
    bench: &'a Bench<'a, 'a>,
    configuration: &'a Configuration,
    spec: &'a Equality,
    harness: &'a Harness,
    patch: usize,
}

impl Trial<'_> {
    /// Links `variants` to a program, runs it with `args`, and returns what it said and the log of that.
    fn run(&self, name: &str, variants: &[Variant], args: &[String]) -> Step<(Said, PathBuf)> {
        let (bench, configuration, patch) = (self.bench, self.configuration, self.patch);
        let work = work_dir(bench, patch, name)?;
        let linked = self
            .harness
            .link(bench, configuration, self.spec, variants, &work);
        let program = step!(linked);
        let log = format!("{}-p{patch}-{name}", configuration.name);
        let log = bench.context.log(&log);
        let said = say(bench, configuration, &program, args, &log)?;
        Ok(Ok((said, log)))
    }
}

/// A pass counts only where the same harness has noticed every planted fault.
fn judge_faults(
    passed: Outcome,
    said: &Said,
    faults: &[String],
    said_of_faults: &Said,
    log: PathBuf,
) -> Outcome {
    let differing = said_of_faults.differing.iter();
    let seen: BTreeSet<_> = differing.map(|(name, _)| name.as_str()).collect();
    let missed: Vec<_> = faults
        .iter()
        .map(String::as_str)
        .filter(|fault| !seen.contains(fault))
        .collect();
    if !missed.is_empty() {
        let missed = missed.join(", ");
        let reason = format!("the harness does not notice planted faults: {missed}");
        return passed.error(reason).log(log);
    }
    let comparisons = usize::try_from(said.checks).unwrap_or(usize::MAX);
    let line = format!(
        "{}, {} noticed",
        counted(comparisons, "comparison"),
        counted(seen.len(), "planted fault")
    );
    passed.lines(vec![line])
}

fn work_dir(bench: &Bench<'_, '_>, patch: usize, name: &str) -> Result<PathBuf> {
    let dir = bench.dir.kept(patch).join(format!("{name}-p{patch}"));
    fs::create_dir_all(&dir).context("cannot make a directory for the harness")?;
    Ok(dir)
}

fn say(
    bench: &Bench<'_, '_>,
    configuration: &Configuration,
    program: &Path,
    args: &[String],
    log: &Path,
) -> Result<Said> {
    let task = match configuration.emulator.split_first() {
        Some((emulator, rest)) => Task::new(emulator).args(rest).arg(program),
        None => Task::new(program),
    };
    let output = bench
        .dir
        .run_with_output(task.home().args(args).timeout(TIMEOUT))?;
    fs::write(log, [&output.stdout[..], &output.stderr].concat()).context("cannot write a log")?;
    Ok(read(output.exit, &output.stdout))
}

/// Reads JSON lines: one with `checks` counts the comparisons, one with an `..._equal` that is false has found a difference.
fn read(end: End, stdout: &[u8]) -> Said {
    let mut said = Said {
        end,
        checks: 0,
        differing: Vec::new(),
    };
    for line in stdout.lines() {
        let Ok(Value::Object(record)) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if let Some(checks) = record.get("checks").and_then(Value::as_u64) {
            said.checks = checks;
        }
        if record
            .iter()
            .any(|(key, value)| key.ends_with("_equal") && *value != Value::Bool(true))
        {
            let name = record
                .get("variant")
                .and_then(Value::as_str)
                .unwrap_or_default();
            said.differing
                .push((name.to_owned(), line.to_str_lossy().into_owned()));
        }
    }
    said
}

fn judge(blank: Outcome, said: &Said) -> Outcome {
    let lines: Vec<_> = said
        .differing
        .iter()
        .map(|(_, line)| line.clone())
        .collect();
    match said.end {
        _ if !lines.is_empty() => {
            let reason = format!("{} of {} not equal", lines.len(), counted(usize::try_from(said.checks).unwrap_or(0), "comparison"));
            blank.fail(reason).lines(lines)
        }
        End::Code(0) if said.checks > 0 => blank,
        End::Code(code) => blank.error(format!("the harness ended with {code} after {}", counted(usize::try_from(said.checks).unwrap_or(0), "comparison"))),
        // What is not stubbed is address 0, and a kernel's warning is an illegal instruction.
        End::Signal(signal) => blank.fail(format!("the object crashed with signal {signal}: it warned, or called what the harness does not have")),
        // The machine may be too slow for it: that is neither a pass nor, for good, a failure.
        End::TimedOut => blank.error(format!(
            "the object did not come to an end in {} minutes",
            TIMEOUT.as_secs() / 60
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Name, Status};

    fn status(end: End, text: &str) -> Status {
        judge(Outcome::new(Name::Equality), &read(end, text.as_bytes())).status
    }

    #[test]
    fn only_comparisons_that_were_made_and_are_equal_pass() {
        let equal = "{\"variant\":\"patch\",\"bytes_equal\":true}\n{\"checks\":1,\"failed\":0}\n";
        assert_eq!(status(End::Code(0), equal), Status::Pass);
        assert_eq!(status(End::Code(0), ""), Status::Error);
        assert_eq!(status(End::Code(0), "{\"checks\":0}\n"), Status::Error);
        assert_eq!(status(End::Code(1), equal), Status::Error);
        assert_eq!(status(End::Signal(4), ""), Status::Fail);
        assert_eq!(status(End::TimedOut, equal), Status::Error);
        let differs = equal.replace("true", "false");
        assert_eq!(status(End::Code(0), &differs), Status::Fail);
    }
}
