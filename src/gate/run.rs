//! Runs the chosen gates in parallel, within the machine's cores and memory, and gathers what they find.
//!
//! Hides the queue and the threads; the first interruption stops all of them.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use super::cache::{Cache, Key, quick_format};
use super::settings::Skip;
use super::toolchain::Tool;
use super::{
    Name, Outcome, Report, Subject, apply, build, checkpatch, guest, mail, maintainers, onto,
};
use crate::error::{Exit, Refusal, refusal};
use crate::exec::check_interrupted;
use crate::lab::Lab;
use crate::ui::{Board, shown_text};

/// What to run, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The chosen gates; empty is all but the slow ones.
    pub gates: Vec<Name>,
    /// Whether the slow gates are run, too.
    pub slow: bool,
    /// The chosen configurations; empty is all of them.
    pub configurations: Vec<String>,
    /// A revision other than the base that the patches are tried on.
    pub onto: Vec<String>,
    /// Whether earlier outcomes are looked at.
    pub cache: CachePolicy,
    /// How many builds run at once; `None` is what the machine can take.
    pub jobs: Option<usize>,
}

/// What is done with earlier outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CachePolicy {
    /// They are used.
    #[default]
    Use,
    /// Everything is found out anew.
    Renew,
}

/// What happens while gates run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Some work goes on; `done` of `total` steps are behind it.
    Step {
        /// What works: a gate's name or a configuration's.
        task: &'a str,
        /// What it does now.
        what: &'a str,
        /// Steps done.
        done: u64,
        /// Steps in all.
        total: u64,
    },
    /// The work of `task` has ended.
    End {
        /// What worked.
        task: &'a str,
    },
    /// Something was found out.
    Found(&'a Outcome),
}

impl Event<'_> {
    /// Draws what goes on; what was found is the caller's to tell.
    pub fn draw(&self, board: &Board) {
        match *self {
            Event::Step {
                task,
                what,
                done,
                total,
            } => board.step(task, what, done, total),
            Event::End { task } => board.end(task),
            Event::Found(_) => {}
        }
    }
}

/// What every gate sees.
pub(super) struct Context<'a> {
    pub(super) subject: &'a Subject,
    pub(super) options: &'a Options,
    pub(super) lab: &'a Lab,
    pub(super) cache: Cache,
    /// Where logs go.
    pub(super) run: PathBuf,
    /// How many jobs one `make` may run.
    pub(super) make_jobs: usize,
    observer: &'a (dyn Fn(Event<'_>) + Sync),
    outcomes: Mutex<Vec<Outcome>>,
    versions: Mutex<BTreeMap<String, String>>,
}

/// A gate that needs nothing built.
type Gate = fn(&Context<'_>) -> Result<()>;

type Job<'a> = Box<dyn FnOnce(&Context<'_>) -> Result<()> + Send + 'a>;

/// A piece of work with the gate that answers for it when it breaks.
struct Task<'a> {
    gate: Name,
    configuration: Option<String>,
    job: Job<'a>,
}

/// Memory that a build is counted with, in bytes.
const BUILD_MEMORY: u64 = 1 << 30;

/// Runs the gates that `options` choose on `subject`. Failures are in the report; an `Err` is an interruption or a lab that
/// cannot be used.
pub fn check(
    subject: &Subject,
    options: &Options,
    lab: &Lab,
    observer: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Report> {
    known_configurations(subject, options)?;
    let workers = options.jobs.unwrap_or_else(capacity).max(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let make_jobs = (cores / workers).max(1);
    let context = Context::new(subject, options, lab, make_jobs, observer)?;
    let queue = Mutex::new(tasks(&context));
    let worker = || -> Result<()> {
        while let Some(task) = { locked(&queue).pop_front() } {
            check_interrupted()?;
            context.run(task)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let ends: Vec<_> = workers
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        ends.into_iter().try_for_each(|end| match end {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let mut outcomes = context
        .outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    sort(&mut outcomes, subject);
    // An empty run directory says nothing.
    let _ = fs::remove_dir(&context.run);
    Ok(Report {
        base: subject.base.rev.clone(),
        patches: subject
            .patches
            .iter()
            .map(|patch| patch.name.clone())
            .collect(),
        outcomes,
        run_directory: context.run,
    })
}

/// Refuses a chosen configuration that the recipe does not have (exit 2).
fn known_configurations(subject: &Subject, options: &Options) -> Result<()> {
    let names: Vec<_> = subject
        .settings
        .configuration
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    match options
        .configurations
        .iter()
        .find(|name| !names.contains(&name.as_str()))
    {
        Some(name) => Err(Refusal::usage(format!(
            "the recipe has no configuration `{}`",
            shown_text(name.as_bytes())
        ))
        .hint(format!("it has: {}", names.join(", ")))
        .into()),
        None => Ok(()),
    }
}

fn tasks<'a>(context: &Context<'a>) -> VecDeque<Task<'a>> {
    let quick: [(Name, Gate); 4] = [
        (Name::Apply, apply::run),
        (Name::Mail, mail::run),
        (Name::Checkpatch, checkpatch::run),
        (Name::Maintainers, maintainers::run),
    ];
    let task = |gate, job| Task {
        gate,
        configuration: None,
        job,
    };
    let mut tasks = VecDeque::new();
    for (gate, job) in quick {
        if context.wants(gate) {
            tasks.push_back(task(gate, Box::new(job)));
        }
    }
    if !context.options.onto.is_empty() && context.wants(Name::Apply) {
        tasks.push_back(task(Name::Apply, Box::new(onto::run)));
    }
    if context.wants(Name::Guest) {
        tasks.push_back(task(Name::Guest, Box::new(guest::run)));
    }
    for group in build::groups(context) {
        let configuration = Some(group.name().to_owned());
        tasks.push_back(Task {
            gate: Name::Build,
            configuration,
            job: Box::new(move |context| build::run(context, &group)),
        });
    }
    tasks
}

impl<'a> Context<'a> {
    /// What the gates see, with nothing found yet and a new directory for logs.
    pub(super) fn new(
        subject: &'a Subject,
        options: &'a Options,
        lab: &'a Lab,
        make_jobs: usize,
        observer: &'a (dyn Fn(Event<'_>) + Sync),
    ) -> Result<Self> {
        Ok(Self {
            subject,
            options,
            lab,
            cache: Cache::new(lab.outcomes(), options.cache == CachePolicy::Use),
            run: lab.new_run()?,
            make_jobs,
            observer,
            outcomes: Mutex::default(),
            versions: Mutex::default(),
        })
    }

    /// Whether a gate was chosen.
    pub(super) fn wants(&self, gate: Name) -> bool {
        let options = self.options;
        options.gates.contains(&gate)
            || (options.gates.is_empty() && !gate.is_slow())
            || (options.slow && gate.is_slow())
    }

    /// Why the recipe leaves this out, if it does.
    pub(super) fn skip(
        &self,
        gate: Name,
        configuration: Option<&str>,
        patch: Option<usize>,
    ) -> Option<&'a Skip> {
        let fits = |skip: &&Skip| {
            skip.gate == gate
                && skip.rule.is_none()
                && skip
                    .configuration
                    .as_deref()
                    .is_none_or(|name| Some(name) == configuration)
                && skip
                    .patch
                    .as_deref()
                    .is_none_or(|name| self.subject.is_patch(patch, name))
        };
        self.subject.settings.skip.iter().find(fits)
    }

    /// The numbers of the patches, from 1.
    pub(super) fn numbers(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.subject.patches.len()
    }

    /// A log in the run directory.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        let plain = |char: char| {
            if char.is_ascii_alphanumeric() || "-_.".contains(char) {
                char
            } else {
                '-'
            }
        };
        let name: String = name.chars().map(plain).collect();
        self.run.join(format!("{name}.log"))
    }

    /// The base's source, exported if it is not there yet.
    pub(super) fn source(&self, task: &str) -> Result<PathBuf> {
        let subject = self.subject;
        self.lab
            .source(&subject.git_dir, subject.base.tree_id, &|done, total| {
                if done % 256 == 0 {
                    self.step(task, "exporting the source", done, total);
                }
            })
    }

    /// The version of a tool, asked once a run.
    pub(super) fn version(&self, tool: &Tool) -> Result<String> {
        if let Some(version) = locked(&self.versions).get(&tool.name) {
            return Ok(version.clone());
        }
        let version = tool.version()?;
        locked(&self.versions).insert(tool.name.clone(), version.clone());
        Ok(version)
    }

    /// Tells that work goes on.
    pub(super) fn step(&self, task: &str, what: &str, done: u64, total: u64) {
        (self.observer)(Event::Step {
            task,
            what,
            done,
            total,
        });
    }

    /// Takes what was found out.
    pub(super) fn found(&self, outcome: Outcome) {
        (self.observer)(Event::Found(&outcome));
        locked(&self.outcomes).push(outcome);
    }

    /// Takes what was found out earlier.
    pub(super) fn found_all(&self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            self.found(outcome);
        }
    }

    /// The key under which an outcome is still to be found out; `None` where it was told at once: the recipe leaves it out, the tools are
    /// `missing` (names and packages), or it is known already.
    pub(super) fn unknown(
        &self,
        blank: Outcome,
        missing: Option<&(Vec<String>, Vec<String>)>,
        key: impl FnOnce() -> Result<Key>,
    ) -> Result<Option<Key>> {
        if let Some(skip) = self.skip(blank.gate, blank.configuration.as_deref(), blank.patch) {
            self.found(blank.skipped(&skip.reason));
            return Ok(None);
        }
        if let Some((names, packages)) = missing {
            let reason = format!("not installed: {}", names.join(", "));
            self.found(blank.error(reason).packages(packages));
            return Ok(None);
        }
        let key = key()?;
        let Some(outcomes) = self.cache.get(&key) else {
            return Ok(Some(key));
        };
        self.found_all(outcomes);
        Ok(None)
    }

    /// Takes what a gate finds about one patch: what the recipe leaves out, what is known already of `parts`, or what
    /// `find` finds out in the base's source.
    pub(super) fn cached(
        &self,
        gate: Name,
        patch: Option<usize>,
        parts: &impl serde::Serialize,
        find: impl FnOnce(&Path) -> Result<Outcome>,
    ) -> Result<()> {
        let mut blank = Outcome::new(gate);
        blank.patch = patch;
        let key = || Ok(Key::of(&(gate, quick_format(gate), patch, parts)));
        let Some(key) = self.unknown(blank, None, key)? else {
            return Ok(());
        };
        let source = self.source(gate.as_str())?;
        let since = Instant::now();
        let mut outcome = find(&source)?;
        outcome.seconds = since.elapsed().as_secs_f64();
        self.cache.put(&key, std::slice::from_ref(&outcome));
        self.found(outcome);
        Ok(())
    }

    /// Runs one task. One that breaks is an outcome; an interruption ends everything.
    fn run(&self, task: Task<'_>) -> Result<()> {
        let result = (task.job)(self);
        let name = task.configuration.as_deref().unwrap_or(task.gate.as_str());
        (self.observer)(Event::End { task: name });
        let Err(error) = result else {
            return Ok(());
        };
        check_interrupted()?;
        if refusal(&error).is_some_and(|refusal| refusal.exit == Exit::Interrupted) {
            return Err(error);
        }
        let mut outcome = Outcome::new(task.gate).error(format!("{error:#}"));
        outcome.configuration = task.configuration;
        outcome.lines = refusal(&error)
            .map(|refusal| refusal.details.clone())
            .unwrap_or_default();
        self.found(outcome);
        Ok(())
    }
}

/// How many builds the cores and the free memory can take.
fn capacity() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string(Path::new("/proc/meminfo"))
        .ok()
        .and_then(|text| available(&text));
    let builds = memory.map_or(cores as u64, |bytes| bytes / BUILD_MEMORY);
    cores.min(usize::try_from(builds).unwrap_or(cores)).max(1)
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace()
        .next()?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

fn sort(outcomes: &mut [Outcome], subject: &Subject) {
    let names: Vec<_> = subject
        .settings
        .configuration
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    outcomes.sort_by_key(|outcome| {
        let place = outcome
            .configuration
            .as_deref()
            .map(|name| names.iter().position(|it| *it == name));
        (
            outcome.gate,
            place,
            outcome.configuration.clone(),
            outcome.patch,
        )
    });
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read_in_bytes() {
        assert_eq!(
            available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"),
            Some(2 << 20)
        );
    }
}
