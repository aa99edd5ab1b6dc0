//! The base's object and the one after each patch, in one program that runs natively: what `reroll bench` measures.
//!
//! Hides how they are built and compared: who gets the program knows that all of it writes the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bstr::ByteSlice;

use super::harness::{self, Harness, Variant};
use super::placement::Placement;
use super::{End, Said, judge, keep, say, spec, work_dir};
use crate::exec::Task;
use crate::gate::kbuild::{Bench, Trouble, flat, step};
use crate::gate::run::{Context, Event, Options};
use crate::gate::settings::Configuration;
use crate::gate::toolchain::{Tool, missing};
use crate::gate::{Name, Outcome, Status, Subject};
use crate::lab::{BuildDir, Lab};

/// A program with the base's object and the one after each patch, `base`, `p1`, `p2` ..., at each of several placements.
#[derive(Debug)]
pub struct Native {
    dir: BuildDir,
    program: PathBuf,
    arguments: Vec<String>,
    /// What the compiler says about its version.
    pub compiler: String,
    /// The command that compiled the object, without source and output.
    pub command: Vec<String>,
    /// Comparisons of what the objects write, all of them equal; those between placements of one object are not counted.
    pub comparisons: u64,
    /// Where the objects are kept: `p0` is the base's, `p1` the one after the first patch.
    pub objects: PathBuf,
    /// Where logs go.
    pub run_directory: PathBuf,
}

/// Why there is no such program.
#[derive(Debug)]
pub struct Unfit {
    /// The patch whose object does not do; `None` where it is not the series' fault.
    pub patch: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// The lines that matter.
    pub lines: Vec<String>,
    /// The whole log, where there is one.
    pub log: Option<PathBuf>,
}

/// `Ok(Err(_))` says something about the series or the machine, not about us.
type Step<T> = Result<Result<T, Unfit>>;

/// Builds the object of the base and of each patch in `configuration`, links them to one program, each at `placements` places, and has it
/// compare what they write.
pub fn build(
    subject: &Subject,
    lab: &Lab,
    configuration: &Configuration,
    placements: u32,
    observer: &(dyn Fn(Event<'_>) + Sync),
) -> Step<Native> {
    if let Some((names, packages)) = missing(&configuration.tools()) {
        return Ok(Err(Unfit::plain(format!(
            "not installed: {}",
            names.join(", ")
        ))
        .lines(vec![format!("apt-get install {}", packages.join(" "))])));
    }
    let options = Options {
        gates: vec![Name::Equality],
        ..Options::default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let context = Context::new(subject, &options, lab, cores, observer)?;
    let bench = match Bench::prepare(&context, configuration)? {
        Ok(bench) => bench,
        Err(trouble) => return Ok(Err(Unfit::of(trouble, "cannot prepare the build", None))),
    };
    let builder = Builder {
        harness: Harness::open(super::directory(subject)?)?,
        bench: &bench,
        configuration,
        placements,
    };
    if builder.harness.manifest.bench.is_empty() || builder.harness.manifest.verify_bench.is_empty()
    {
        return Ok(Err(Unfit::plain(
            "the harness does not say how to measure (`bench` and `verify-bench` in `harness.toml`)",
        )));
    }
    step!(builder.objects());
    step!(builder.faults());
    let comparisons = step!(builder.compare());
    let program = step!(builder.placed());
    let command = harness::command(&bench.dir.objects(), &spec(&bench)?.object)?;
    let arguments = builder.harness.manifest.bench.clone();
    Ok(Ok(Native {
        compiler: Tool::new(&configuration.cc(), "").version()?,
        program,
        arguments,
        command,
        comparisons,
        objects: bench.dir.objects().with_file_name(""),
        run_directory: context.run.clone(),
        dir: bench.dir,
    }))
}

impl Native {
    /// A run of the program with these arguments behind the harness's own. Its output goes to `log`, line by line.
    pub fn measure(&self, arguments: &[String], log: &Path) -> Result<End> {
        let task = Task::new(&self.program)
            .home()
            .args(&self.arguments)
            .args(arguments)
            .log(log);
        Ok(self.dir.run_with_output(task)?.exit)
    }
}

impl Unfit {
    pub(super) fn plain(reason: impl Into<String>) -> Self {
        Self {
            patch: None,
            reason: reason.into(),
            lines: Vec::new(),
            log: None,
        }
    }

    pub(super) fn lines(mut self, lines: Vec<String>) -> Self {
        self.lines = lines;
        self
    }

    fn log(self, log: PathBuf) -> Self {
        Self {
            log: Some(log),
            ..self
        }
    }

    pub(super) fn of(trouble: Trouble, what: &str, patch: Option<usize>) -> Self {
        Self {
            patch,
            reason: format!("{what}: {}", trouble.reason),
            lines: trouble.lines,
            log: Some(trouble.log),
        }
    }
}

/// What the harness calls a state of the source.
fn name(number: usize) -> String {
    match number {
        0 => "base".to_owned(),
        number => format!("p{number}"),
    }
}

/// One program in the making.
struct Builder<'a, 'b> {
    harness: Harness,
    bench: &'a Bench<'a, 'b>,
    configuration: &'a Configuration,
    placements: u32,
}

impl Builder<'_, '_> {
    /// Builds the object of every state of the source.
    fn objects(&self) -> Step<()> {
        let context = self.bench.context;
        let subject = context.subject;
        let states = [&subject.base_files]
            .into_iter()
            .chain(subject.patches.iter().map(|patch| &patch.files));
        let total = subject.patches.len() as u64 + 1;
        for (number, files) in states.enumerate() {
            let what = if number == 0 {
                "building the base".to_owned()
            } else {
                format!("building patch {number}")
            };
            context.step(&self.configuration.name, &what, number as u64, total);
            self.bench.dir.put(files)?;
            if let Err(trouble) = keep(self.bench, self.configuration, number)? {
                let patch = (number > 0).then_some(number);
                let what = if number == 0 {
                    "the base does not build"
                } else {
                    "it does not build"
                };
                return Ok(Err(Unfit::of(trouble, what, patch)));
            }
        }
        Ok(Ok(()))
    }

    /// Proves that the comparison would notice a fault.
    fn faults(&self) -> Step<()> {
        let manifest = &self.harness.manifest;
        let planted = manifest.faults.iter().map(|name| Variant::new(name, None));
        let base = self.variant(0)?;
        let variants: Vec<_> = [base].into_iter().chain(planted).collect();
        let program = step!(self.link(&variants, "bench-faults"));
        let said = self.say(&program, &manifest.verify_faults, "faults")?;
        let seen: BTreeSet<_> = said
            .differing
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let missed: Vec<_> = manifest
            .faults
            .iter()
            .filter(|name| !seen.contains(name.as_str()))
            .cloned()
            .collect();
        if missed.is_empty() {
            return Ok(Ok(()));
        }
        Ok(Err(Unfit::plain(format!(
            "the harness does not notice planted faults: {}",
            missed.join(", ")
        ))))
    }

    /// Numbers of the states: 0 is the base.
    fn states(&self) -> std::ops::RangeInclusive<usize> {
        0..=self.bench.context.subject.patches.len()
    }

    /// Compares what the object after each patch writes with what the base's does; the number of comparisons.
    fn compare(&self) -> Step<u64> {
        self.tell("comparing what they write");
        let variants: Result<Vec<_>> = self.states().map(|number| self.variant(number)).collect();
        let program = step!(self.link(&variants?, "bench-equal"));
        let mut comparisons = 0;
        for args in &self.harness.manifest.verify_bench {
            let said = self.say(&program, args, "compare")?;
            let outcome = judge(Outcome::new(Name::Equality), &said);
            if outcome.status == Status::Pass {
                comparisons += said.checks;
                continue;
            }
            let name = said.differing.first().map(|(name, _)| name.as_str());
            let patch = name.and_then(|name| name.strip_prefix('p')?.parse().ok());
            return Ok(Err(Unfit {
                patch: if patch.is_some() {
                    patch
                } else {
                    step!(self.blame(args))
                },
                reason: outcome.reason,
                lines: outcome.lines,
                log: Some(self.log("compare")),
            }));
        }
        Ok(Ok(comparisons))
    }

    /// The program that is measured: every object at every placement. The same code anywhere else writes the same; this notices where
    /// putting it there broke it.
    fn placed(&self) -> Step<PathBuf> {
        self.tell("linking the placements");
        let mut variants = Vec::new();
        for placement in Placement::all(self.placements) {
            let padding = step!(self.padding(placement));
            let mut placed = Vec::new();
            for number in self.states() {
                placed.push(step!(self.place(number, placement, &padding)));
            }
            variants.extend(placement.order(placed));
        }
        let program = step!(self.link(&variants, "bench"));
        for args in &self.harness.manifest.verify_placed {
            let said = self.say(&program, args, "compare-placements")?;
            let outcome = judge(Outcome::new(Name::Equality), &said);
            if outcome.status != Status::Pass {
                let reason = format!(
                    "at another place, the code is not the same: {}",
                    outcome.reason
                );
                return Ok(Err(Unfit::plain(reason)
                    .lines(outcome.lines)
                    .log(self.log("compare-placements"))));
            }
        }
        Ok(Ok(program))
    }

    fn tell(&self, what: &str) {
        let context = self.bench.context;
        let total = context.subject.patches.len() as u64 + 1;
        context.step(&self.configuration.name, what, total, total);
    }

    /// The first patch whose object crashes or hangs: each is run alone with the base, the base first of all.
    fn blame(&self, args: &[String]) -> Step<Option<usize>> {
        for number in self.states() {
            let mut suspect = self.variant(number)?;
            if number == 0 {
                "again".clone_into(&mut suspect.name);
            }
            let base = self.variant(0)?;
            let program = step!(self.link(&[base, suspect], "bench-blame"));
            let said = self.say(&program, args, "blame")?;
            if judge(Outcome::new(Name::Equality), &said).status != Status::Pass {
                return Ok(Ok((number > 0).then_some(number)));
            }
        }
        Ok(Ok(None))
    }

    /// A state's object.
    fn object(&self, number: usize) -> Result<PathBuf> {
        Ok(self
            .bench
            .dir
            .kept(number)
            .join(flat(&spec(self.bench)?.object)))
    }

    /// A state's object, wherever the linker puts it.
    fn variant(&self, number: usize) -> Result<Variant> {
        Ok(Variant::new(name(number), Some(self.object(number)?)))
    }

    /// A state's object at a placement, behind `padding`.
    fn place(&self, number: usize, placement: Placement, padding: &Path) -> Step<Variant> {
        let object = format!("placed-{}.o", placement.number);
        let object = self.bench.dir.kept(number).join(object);
        let task = Task::new(self.configuration.binutil("ld"))
            .args(["-r", "-o"])
            .arg(&object)
            .arg(padding)
            .arg(self.object(number)?);
        step!(self.tool(task, "the linker does not take the object"));
        Ok(Ok(Variant {
            placement: placement.number,
            ..Variant::new(name(number), Some(object))
        }))
    }

    /// An object with nothing but the padding of a placement.
    fn padding(&self, placement: Placement) -> Step<PathBuf> {
        let work = work_dir(self.bench, 0, "bench")?;
        let source = work.join(format!("padding-{}.S", placement.number));
        std::fs::write(&source, placement.padding())
            .context("cannot write a file of the harness")?;
        let object = source.with_extension("o");
        let task = Task::new(self.configuration.host_cc())
            .args(["-c", "-o"])
            .arg(&object)
            .arg(&source);
        step!(self.tool(task, "the padding of a placement cannot be assembled"));
        Ok(Ok(object))
    }

    /// Runs a tool; `wrong` is what to say where it fails.
    fn tool(&self, task: Task, wrong: &str) -> Step<()> {
        let output = self.bench.dir.run_with_output(task.home())?;
        if output.exit.success() {
            return Ok(Ok(()));
        }
        let lines = output
            .stderr
            .lines()
            .map(|line| line.to_str_lossy().into_owned());
        Ok(Err(Unfit::plain(wrong).lines(lines.collect())))
    }

    fn link(&self, variants: &[Variant], name: &str) -> Step<PathBuf> {
        let work = work_dir(self.bench, 0, name)?;
        let linked = self.harness.link(
            self.bench,
            self.configuration,
            spec(self.bench)?,
            variants,
            &work,
        )?;
        Ok(linked.map_err(|trouble| Unfit::of(trouble, "cannot run the objects", None)))
    }

    fn say(&self, program: &Path, args: &[String], name: &str) -> Result<Said> {
        say(
            self.bench,
            self.configuration,
            program,
            args,
            &self.log(name),
        )
    }

    fn log(&self, name: &str) -> PathBuf {
        self.bench
            .context
            .log(&format!("{}-bench-{name}", self.configuration.name))
    }
}
