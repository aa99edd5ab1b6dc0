//! A build that somebody else judges by: prepared by kbuild once, then its commands are run again on changed sources.
//!
//! Hides where it is and which commands were saved. Whoever replays writes nothing into it, so several can at once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::harness::{self, Harness, Site, Variant};
use super::native::Unfit;
use super::{keep, spec};
use crate::exec::{Output, Task};
use crate::gate::kbuild::{Bench, Trouble, flat};
use crate::gate::run::{Context, Event, Options};
use crate::gate::settings::{Configuration, Equality};
use crate::gate::toolchain::Tool;
use crate::gate::warnings::{self, Warning};
use crate::gate::{Name, Subject};
use crate::lab::Lab;

/// A prepared build of a base in one configuration.
#[derive(Debug)]
pub struct Replay {
    source: PathBuf,
    objects: PathBuf,
    kept: PathBuf,
    command: Vec<String>,
    configuration: Configuration,
    spec: Equality,
    compiler: String,
}

/// A file to compile.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The source tree that it is in, which is the base's but for some files.
    pub tree: &'a Path,
    /// Its path in there: `mm/mm_init.c`.
    pub file: &'a str,
    /// Flags beyond those of the saved command.
    pub flags: &'a [String],
}

/// A program to link.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The directory of the harness.
    pub harness: &'a Path,
    /// The source tree whose headers the harness is compiled with.
    pub tree: &'a Path,
    /// Flags beyond those of the saved command.
    pub flags: &'a [String],
    /// Where the objects are that functions come from which the object under test has not.
    pub kept: &'a Path,
    /// The function that is called.
    pub entry: &'a str,
    /// The objects, each under a name of its own; the first is the reference.
    pub variants: &'a [(String, PathBuf)],
    /// A directory to work in.
    pub work: &'a Path,
}

/// What a compiler complained about.
#[derive(Debug, Clone, Default)]
pub struct Complaints(Vec<Warning>);

impl Complaints {
    /// The first line of each that `before` has not.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<String> {
        let new = warnings::new_ones(&before.0, &self.0);
        new.into_iter()
            .filter_map(|it| it.lines.into_iter().next())
            .collect()
    }
}

impl Replay {
    /// Prepares the build of the subject's base, unless an earlier run has. `Ok(Err(_))` says something about the machine.
    pub fn prepare(
        subject: &Subject,
        lab: &Lab,
        configuration: &Configuration,
        observer: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<Result<Self, Unfit>> {
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
        let spec = spec(&bench)?;
        let kept = bench.dir.kept(0);
        let made = kept.join("made");
        if !made.is_file() {
            if let Err(trouble) = keep(&bench, configuration, 0)? {
                return Ok(Err(Unfit::of(trouble, "the base does not build", None)));
            }
            fs::write(&made, "").context("cannot write a mark")?;
        }
        // An empty run directory says nothing.
        let _ = fs::remove_dir(&context.run);
        Ok(Ok(Self {
            source: bench.dir.source(),
            objects: bench.dir.objects(),
            command: harness::command(&bench.dir.objects(), &spec.object)?,
            kept,
            configuration: configuration.clone(),
            spec: spec.clone(),
            compiler: Tool::new(&configuration.cc(), "").version()?,
        }))
    }

    /// The base's source tree. Never write to it.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Where the base's own objects are.
    #[must_use]
    pub fn kept(&self) -> &Path {
        &self.kept
    }

    /// What the compiler says about its version.
    #[must_use]
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Compiles a file with the flags of the object under test; what the compiler complained about, or the errors.
    pub fn compile(
        &self,
        unit: Unit<'_>,
        object: &Path,
    ) -> Result<Result<Complaints, Vec<String>>> {
        let command = self.command(unit.tree, unit.flags);
        let task = Task::new(&command[0])
            .args(&command[1..])
            .arg("-o")
            .arg(object)
            .arg(unit.tree.join(unit.file));
        let output = self.run(task)?;
        let text = [&output.stdout[..], &output.stderr].concat();
        let tree = unit.tree.display().to_string();
        if output.exit.success() {
            return Ok(Ok(Complaints(warnings::parse(&text, &tree))));
        }
        Ok(Err(warnings::errors(&text, &tree)))
    }

    /// Links objects to a program that calls them in turn; or why that cannot be.
    pub fn link(&self, plan: Plan<'_>) -> Result<Result<PathBuf, Vec<String>>> {
        let harness = Harness::open(plan.harness)?;
        let spec = Equality {
            entry: plan.entry.to_owned(),
            ..self.spec.clone()
        };
        let log = plan.work.join("log");
        let site = Site {
            configuration: &self.configuration,
            spec: &spec,
            command: &self.command(plan.tree, plan.flags),
            objects: &self.objects,
            kept: plan.kept,
            log: &log,
            run: &|task| task.run(),
        };
        let variants = plan
            .variants
            .iter()
            .map(|(name, object)| Variant::new(name, Some(object.clone())));
        let linked = harness.link_at(&site, &variants.collect::<Vec<_>>(), plan.work)?;
        Ok(linked.map_err(|trouble| reasons(&trouble)))
    }

    /// The names of the objects that functions come from which the object under test has not, as sources and as files of
    /// [`Self::kept`].
    #[must_use]
    pub fn helpers(&self) -> Vec<(String, String)> {
        let source = |object: &String| {
            let source = Path::new(object).with_extension("c");
            (source.display().to_string(), flat(object))
        };
        self.spec.with.iter().map(source).collect()
    }

    /// The saved command for sources that are in another tree.
    fn command(&self, tree: &Path, flags: &[String]) -> Vec<String> {
        let (from, to) = (
            self.source.display().to_string(),
            tree.display().to_string(),
        );
        let moved = self.command.iter().map(|word| word.replace(&from, &to));
        moved.chain(flags.iter().cloned()).collect()
    }

    fn run(&self, task: Task) -> Result<Output> {
        task.home().dir(&self.objects).run()
    }
}

fn reasons(trouble: &Trouble) -> Vec<String> {
    let mut lines = vec![trouble.reason.clone()];
    lines.extend(trouble.lines.iter().cloned());
    lines
}
