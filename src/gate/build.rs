//! The build gate, and the machine room of the gates that need objects: kbuild after every patch, in every configuration.
//!
//! Hides `O=` directories and what can share one: a caller names a group of configurations and hears outcomes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::cache::Key;
use super::run::Context;
use super::settings::Configuration;
use super::toolchain::missing;
use super::warnings::{self, Warning};
use super::{Name, Outcome, equality, section};
use crate::exec::{End, Task};
use crate::lab::{BuildDir, Files};

/// Configurations that share one `O=` directory, since kbuild sees no difference between them.
pub(super) struct Group<'a> {
    configurations: Vec<&'a Configuration>,
}

/// An outcome that is still to be found out.
struct Cell<'a> {
    configuration: &'a Configuration,
    gate: Name,
    patch: usize,
    key: Key,
}

/// A prepared `O=` directory.
pub(super) struct Bench<'a, 'b> {
    pub(super) context: &'a Context<'b>,
    pub(super) dir: BuildDir,
    /// How many jobs `make` may run.
    jobs: usize,
}

/// Why something could not be built.
pub(super) struct Trouble {
    pub(super) reason: String,
    pub(super) lines: Vec<String>,
    pub(super) log: PathBuf,
}

/// How a build ended.
pub(super) struct Built {
    pub(super) warnings: Vec<Warning>,
    pub(super) log: PathBuf,
}

/// Longer than any single step takes on a slow machine: what hangs is stopped.
const TIMEOUT: Duration = Duration::from_mins(45);

/// What sparse says about this file proves that it ran, and on which file: kbuild skips a sparse that it finds too old
/// and says nothing that changes its exit code.
const CANARY: &str = "static int reroll_canary(const int __attribute__((noderef, address_space(1))) *pointer)\n\
                      {\n\treturn *pointer;\n}\n";
const CANARY_NAME: &str = "reroll-canary.h";

/// The groups that the chosen gates need built.
pub(super) fn groups<'a>(context: &Context<'a>) -> Vec<Group<'a>> {
    let settings = &context.subject.settings;
    let mut groups: Vec<Group<'a>> = Vec::new();
    for configuration in &settings.configuration {
        if gates(context, configuration).is_empty() {
            continue;
        }
        let same = |group: &&mut Group<'_>| {
            identity(context, group.configurations[0]) == identity(context, configuration)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.configurations.push(configuration),
            None => groups.push(Group {
                configurations: vec![configuration],
            }),
        }
    }
    // What takes longest comes first: programs of another architecture run ten times as long.
    groups.sort_by_key(|group| group.configurations.iter().all(|it| it.emulator.is_empty()));
    groups
}

/// The chosen gates that look at a configuration.
fn gates(context: &Context<'_>, configuration: &Configuration) -> Vec<Name> {
    let chosen = &context.options.configurations;
    if !chosen.is_empty() && !chosen.contains(&configuration.name) {
        return Vec::new();
    }
    let has = |gate| match gate {
        Name::Build => true,
        Name::Section => configuration.section,
        Name::Equality => configuration.equality,
        _ => false,
    };
    Name::ALL
        .into_iter()
        .filter(|&gate| has(gate) && context.wants(gate))
        .collect()
}

/// All that decides what kbuild makes of a source.
fn identity<'a>(
    context: &'a Context<'_>,
    configuration: &'a Configuration,
) -> (Vec<String>, Vec<String>) {
    let wanted = context.subject.settings.wanted(configuration);
    let options = wanted
        .map(|wanted| format!("{}={}", wanted.name, wanted.value))
        .collect();
    let mut variables = configuration.make_variables();
    variables.push(configuration.defconfig.clone());
    (variables, options)
}

impl Group<'_> {
    /// The name it goes by.
    pub(super) fn name(&self) -> &str {
        &self.configurations[0].name
    }
}

/// Builds what is not known yet and tells what was found.
pub(super) fn run(context: &Context<'_>, group: &Group<'_>) -> Result<()> {
    let mut cells = Vec::new();
    for configuration in &group.configurations {
        cells.extend(unknown(context, configuration)?);
    }
    if cells.is_empty() {
        return Ok(());
    }
    let since = Instant::now();
    match Bench::prepare(context, group.configurations[0])? {
        Ok(bench) => bench.find_out(group, cells),
        Err(trouble) => {
            for cell in cells {
                context.found(trouble.outcome(cell.outcome(since), "cannot prepare the build"));
            }
            Ok(())
        }
    }
}

/// The outcomes that have to be found out; the others are told at once.
fn unknown<'a>(context: &Context<'_>, configuration: &'a Configuration) -> Result<Vec<Cell<'a>>> {
    let tools = configuration.tools();
    let missing = missing(&tools);
    let mut versions = Vec::new();
    if missing.is_none() {
        for tool in tools
            .iter()
            .chain(&configuration.emulator_tools())
            .filter(|tool| tool.find().is_some())
        {
            versions.push(context.version(tool)?);
        }
    }
    let mut cells = Vec::new();
    for gate in gates(context, configuration) {
        for patch in context.numbers() {
            let blank = Outcome::new(gate)
                .configuration(&configuration.name)
                .patch(patch);
            if gate == Name::Equality && !equality::is_wanted(context, patch) {
                continue;
            }
            if let Some(skip) = context.skip(gate, Some(&configuration.name), Some(patch)) {
                context.found(blank.skipped(&skip.reason));
                continue;
            }
            if let Some((names, packages)) = &missing {
                let reason = format!("not installed: {}", names.join(", "));
                context.found(blank.error(reason).packages(packages));
                continue;
            }
            let key = key(context, configuration, gate, patch, &versions)?;
            match context.cache.get(&key) {
                Some(outcomes) => context.found_all(outcomes),
                None => cells.push(Cell {
                    configuration,
                    gate,
                    patch,
                    key,
                }),
            }
        }
    }
    Ok(cells)
}

fn key(
    context: &Context<'_>,
    configuration: &Configuration,
    gate: Name,
    patch: usize,
    versions: &[String],
) -> Result<Key> {
    let subject = context.subject;
    let settings = &subject.settings;
    let special = match gate {
        Name::Section => serde_json::to_value(&settings.section)?,
        Name::Equality => {
            serde_json::to_value((&settings.equality, equality::harness_digest(subject)?))?
        }
        _ => serde_json::Value::Null,
    };
    let trees = [
        subject.base.tree_id,
        subject.patches[patch - 1].commit.tree_id,
    ]
    .map(|id| id.to_string());
    let build = (
        configuration,
        identity(context, configuration),
        &settings.objects,
        versions,
    );
    Ok(Key::of(&(gate, patch, trees, build, special)))
}

impl Cell<'_> {
    fn outcome(&self, since: Instant) -> Outcome {
        let mut outcome = Outcome::new(self.gate)
            .configuration(&self.configuration.name)
            .patch(self.patch);
        outcome.seconds = since.elapsed().as_secs_f64();
        outcome
    }
}

impl Trouble {
    /// `blank` as an error for this reason.
    pub(super) fn outcome(&self, blank: Outcome, what: &str) -> Outcome {
        blank
            .error(format!("{what}: {}", self.reason))
            .lines(self.lines.clone())
            .log(self.log.clone())
    }
}

impl<'a, 'b> Bench<'a, 'b> {
    /// The `O=` directory of a configuration, ready to build objects in; its lock is held from here on.
    pub(super) fn prepare(
        context: &'a Context<'b>,
        configuration: &Configuration,
    ) -> Result<Result<Self, Trouble>> {
        let subject = context.subject;
        let name = &configuration.name;
        let source = context.source(name)?;
        let tools = configuration.tools();
        let versions = tools.iter().map(|tool| context.version(tool));
        let versions: Vec<_> = versions.collect::<Result<_>>()?;
        let paths: Vec<_> = subject.base_files.keys().map(ToString::to_string).collect();
        let key = Key::of(&(
            "bench",
            subject.base.tree_id.to_string(),
            identity(context, configuration),
            paths,
            versions,
        ));
        let dir = context
            .lab
            .build_dir(key.as_str(), &source, &subject.base_files)?;
        let jobs = context.make_jobs;
        let bench = Self { context, dir, jobs };
        if !bench.dir.is_ready() {
            context.step(name, "configuring", 0, bench.steps());
            if let Err(trouble) = bench.configure(configuration)? {
                return Ok(Err(trouble));
            }
            bench.dir.set_ready()?;
        }
        fs::write(bench.canary(), CANARY).context("cannot write the canary for sparse")?;
        Ok(Ok(bench))
    }

    /// The same, for a build so large that it is worth all cores.
    pub(super) fn with_all_cores(mut self) -> Self {
        self.jobs = std::thread::available_parallelism().map_or(1, usize::from);
        self
    }

    fn configure(&self, configuration: &Configuration) -> Result<Result<(), Trouble>> {
        let settings = &self.context.subject.settings;
        let steps = [configuration.defconfig.as_str(), "olddefconfig", "prepare"];
        for (index, target) in steps.into_iter().enumerate() {
            if index == 1 {
                let lines: Vec<_> = settings
                    .wanted(configuration)
                    .map(|wanted| match wanted.value {
                        "n" => format!("# CONFIG_{} is not set\n", wanted.name),
                        value => format!("CONFIG_{}={value}\n", wanted.name),
                    })
                    .collect();
                let path = self.dir.objects().join(".config");
                let old = fs::read_to_string(&path).context("`defconfig` left no `.config`")?;
                fs::write(&path, old + &lines.concat()).context("cannot write `.config`")?;
            }
            let built = self.make(
                configuration,
                &format!("{}-{target}", configuration.name),
                &[target.to_owned()],
            )?;
            let built = match built {
                Ok(built) => built,
                Err(trouble) => return Ok(Err(trouble)),
            };
            if index == 1 {
                let config = fs::read_to_string(self.dir.objects().join(".config"))?;
                let lost = lost_options(settings.wanted(configuration), &config);
                if !lost.is_empty() {
                    let reason = format!(
                        "options did not survive `olddefconfig`: {}",
                        lost.join(", ")
                    );
                    return Ok(Err(Trouble {
                        reason,
                        lines: lost,
                        log: built.log,
                    }));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Builds the base, then every patch that has a cell, and tells what was found.
    fn find_out(&self, group: &Group<'_>, mut cells: Vec<Cell<'_>>) -> Result<()> {
        let subject = self.context.subject;
        let mut done = 1;
        let total = self.steps();
        let mut bases = Vec::new();
        for configuration in &group.configurations {
            self.context
                .step(&configuration.name, "building the base", done, total);
            bases.push(self.build(configuration, 0, &subject.base_files, &cells)?);
        }
        for patch in self.context.numbers() {
            done += 1;
            for (configuration, base) in group.configurations.iter().zip(&bases) {
                let mine = |cell: &mut Cell<'_>| {
                    cell.patch == patch && cell.configuration.name == configuration.name
                };
                let now: Vec<_> = cells.extract_if(.., mine).collect();
                if now.is_empty() {
                    continue;
                }
                self.context
                    .step(&configuration.name, &format!("patch {patch}"), done, total);
                self.one(configuration, base, patch, now)?;
            }
        }
        Ok(())
    }

    /// Finds out the cells of one patch in one configuration.
    fn one(
        &self,
        configuration: &Configuration,
        base: &Result<State, Trouble>,
        patch: usize,
        cells: Vec<Cell<'_>>,
    ) -> Result<()> {
        let since = Instant::now();
        let state = match base {
            Ok(_) => self.build(
                configuration,
                patch,
                &self.context.subject.patches[patch - 1].files,
                &cells,
            )?,
            Err(trouble) => {
                for cell in cells {
                    self.context.found(
                        trouble.outcome(cell.outcome(since), "the base itself does not build"),
                    );
                }
                return Ok(());
            }
        };
        let Ok(base) = base else { return Ok(()) };
        let building = since.elapsed();
        for cell in cells {
            let since = Instant::now();
            let mut outcome = match (&state, cell.gate) {
                (Err(trouble), Name::Build) => {
                    let mut outcome = cell.outcome(since).fail(trouble.reason.clone());
                    outcome.lines.clone_from(&trouble.lines);
                    outcome.log(trouble.log.clone())
                }
                (Err(trouble), _) => {
                    trouble.outcome(cell.outcome(since), "the patch does not build")
                }
                (Ok(state), Name::Build) => judge(cell.outcome(since), &base.built, &state.built),
                (Ok(state), Name::Section) => section::judge(cell.outcome(since), base, state),
                (Ok(_), _) => equality::run(self, configuration, patch, cell.outcome(since))?,
            };
            let own = if cell.gate == Name::Build {
                building
            } else {
                Duration::ZERO
            };
            outcome.seconds = (own + since.elapsed()).as_secs_f64();
            self.context
                .cache
                .put(&cell.key, std::slice::from_ref(&outcome));
            self.context.found(outcome);
        }
        Ok(())
    }

    /// Builds the objects of one state of the source, with what the cells want done with them.
    fn build(
        &self,
        configuration: &Configuration,
        number: usize,
        files: &Files,
        cells: &[Cell<'_>],
    ) -> Result<Result<State, Trouble>> {
        self.dir.put(files)?;
        let wants = |gate| {
            cells
                .iter()
                .any(|cell| cell.gate == gate && cell.configuration.name == configuration.name)
        };
        let settings = &self.context.subject.settings;
        let log = format!("{}-p{number}", configuration.name);
        if configuration.analyser.is_some() {
            // Compiled first and without it, so that what is heard next is the analyser's alone.
            let compiler = Configuration {
                analyser: None,
                ..configuration.clone()
            };
            let log = format!("{log}-compile");
            if let Err(trouble) = self.make(&compiler, &log, &settings.objects)? {
                return Ok(Err(trouble));
            }
        }
        let built = match self.make(configuration, &log, &settings.objects)? {
            Ok(built) => built,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let section = wants(Name::Section)
            .then(|| section::look(self, configuration, number))
            .transpose()?;
        if wants(Name::Equality)
            && let Err(trouble) = equality::keep(self, configuration, number)?
        {
            return Ok(Err(trouble));
        }
        Ok(Ok(State { built, section }))
    }

    /// Runs `make` for `targets`; what it complained about, or why it failed.
    pub(super) fn make(
        &self,
        configuration: &Configuration,
        log: &str,
        targets: &[String],
    ) -> Result<Result<Built, Trouble>> {
        let log = self.context.log(log);
        let source = self.dir.source();
        let analyses =
            configuration.analyser.is_some() && targets.iter().any(|target| target.contains('/'));
        let jobs = if analyses { 1 } else { self.jobs };
        let mut task = Task::new("make")
            .clean_env()
            .args(["-C"])
            .arg(&source)
            .arg(format!("O={}", self.dir.objects().display()))
            .arg(format!("-j{jobs}"))
            .args(configuration.make_variables());
        if analyses {
            // Sparse 0.6.4 does not know the keyword that newer kernels ask for, and kbuild would not run it then.
            let check = format!(
                "CHECK=sparse -D__typeof_unqual__=__typeof__ -include {}",
                self.canary().display()
            );
            task = task.args(["C=2", &check]);
        }
        let output = self
            .dir
            .run(task.args(targets).log(&log).timeout(TIMEOUT))?;
        let text = fs::read(&log).context("cannot read a log")?;
        let source = source.display().to_string();
        if !output.exit.success() {
            let reason = match output.exit {
                End::TimedOut => format!("`make {}` took too long", targets.join(" ")),
                _ => format!("`make {}` failed", targets.join(" ")),
            };
            return Ok(Err(Trouble {
                reason,
                lines: warnings::errors(&text, &source),
                log,
            }));
        }
        let mut warnings = warnings::parse(&text, &source);
        if analyses {
            if let Some(target) = not_analysed(&String::from_utf8_lossy(&text), targets) {
                let reason = format!("sparse did not run on the source of `{target}`");
                return Ok(Err(Trouble {
                    reason,
                    lines: warnings::errors(&text, &source),
                    log,
                }));
            }
            warnings.retain(|warning| !warning.key.contains(CANARY_NAME));
        }
        Ok(Ok(Built { warnings, log }))
    }

    /// Builds those of `targets` that this source has and names them: what is not there cannot be needed either.
    pub(super) fn make_what_can(
        &self,
        configuration: &Configuration,
        log: &str,
        targets: &[String],
    ) -> Result<Vec<String>> {
        if targets.is_empty() || self.make(configuration, log, targets)?.is_ok() {
            return Ok(targets.to_vec());
        }
        let mut made = Vec::new();
        for target in targets {
            if self
                .make(
                    configuration,
                    &format!("{log}-{}", flat(target)),
                    std::slice::from_ref(target),
                )?
                .is_ok()
            {
                made.push(target.clone());
            }
        }
        Ok(made)
    }

    /// Number of steps that a bar shows.
    fn steps(&self) -> u64 {
        self.context.subject.patches.len() as u64 + 2
    }

    fn canary(&self) -> PathBuf {
        self.dir.kept(0).with_file_name(CANARY_NAME)
    }
}

/// A state of the source, built.
pub(super) struct State {
    built: Built,
    pub(super) section: Option<Result<Built, Trouble>>,
}

/// Compares what the compiler said with what it says about the base.
fn judge(blank: Outcome, base: &Built, now: &Built) -> Outcome {
    against_base(blank, base, now, |count| {
        let warnings = counted(count, "warning");
        format!("{warnings} that the base does not have")
    })
}

/// Fails with the warnings that the base does not have, if there are any; `reason` says how many they are.
pub(super) fn against_base(
    blank: Outcome,
    base: &Built,
    now: &Built,
    reason: impl FnOnce(usize) -> String,
) -> Outcome {
    let new = warnings::new_ones(&base.warnings, &now.warnings);
    let outcome = blank.log(now.log.clone());
    if new.is_empty() {
        return outcome;
    }
    let lines = new
        .iter()
        .flat_map(|warning| &warning.lines)
        .map(|line| format!("+{line}"))
        .collect();
    outcome.fail(reason(new.len())).lines(lines)
}

/// `1 warning`, `2 warnings`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// The wanted options that a `.config` does not have.
fn lost_options<'a>(
    wanted: impl Iterator<Item = super::settings::Wanted<'a>>,
    config: &str,
) -> Vec<String> {
    let mut lost = Vec::new();
    for option in wanted {
        let prefix = format!("CONFIG_{}=", option.name);
        let is = config
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or("n");
        if is.trim_matches('"') != option.value.trim_matches('"') {
            lost.push(format!("{}={} (it is {is})", option.name, option.value));
        }
    }
    lost
}

/// The first target whose source sparse did not look at: no canary after its `CHECK` line.
fn not_analysed<'a>(log: &str, targets: &'a [String]) -> Option<&'a String> {
    let mut current = "";
    let mut seen = Vec::new();
    for line in log.lines() {
        let trimmed = line.trim_start();
        if let Some(path) = trimmed.strip_prefix("CHECK ") {
            current = path.trim();
        } else if line.contains(CANARY_NAME) && line.contains("warning:") {
            seen.push(current);
        }
    }
    let source = |target: &str| format!("/{}.c", target.trim_end_matches(".o"));
    targets.iter().find(|target| {
        !seen
            .iter()
            .any(|path| format!("/{path}").ends_with(&source(target)))
    })
}

/// The file name under which an object is kept.
pub(super) fn flat(object: &str) -> String {
    Path::new(object).file_name().map_or_else(
        || object.replace('/', "-"),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::settings::Wanted;

    #[test]
    fn an_option_that_vanished_is_named() {
        let wanted = [("A", "y"), ("B", "y"), ("C", "n"), ("D", "n")]
            .map(|(name, value)| Wanted { name, value });
        let lost = lost_options(
            wanted.into_iter(),
            "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n",
        );
        assert_eq!(lost, ["B=y (it is n)", "C=n (it is y)"]);
    }

    #[test]
    fn a_check_line_without_a_canary_is_no_proof() {
        let targets = ["mm/a.o".to_owned()];
        let ran = "  CHECK   ../mm/a.c\n/x/reroll-canary.h:3:9: warning: dereference of noderef expression\n";
        assert_eq!(not_analysed(ran, &targets), None);
        assert_eq!(
            not_analysed("  CHECK   ../mm/a.c\n  CC      mm/a.o\n", &targets),
            Some(&targets[0])
        );
        let other = "  CHECK   scripts/mod/empty.c\n/x/reroll-canary.h:3:9: warning: x\n";
        assert_eq!(not_analysed(other, &targets), Some(&targets[0]));
    }
}
