//! The build gate, and those of the others that look at what was built: kbuild after every patch, in every configuration.
//!
//! Hides which configurations share a directory and which outcomes are known already.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::cache::Key;
use super::kbuild::{Bench, Built, Trouble, identity};
use super::run::Context;
use super::settings::Configuration;
use super::toolchain::missing;
use super::{Name, Outcome, equality, section, warnings};
use crate::lab::Files;

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
            let key = || key(context, configuration, gate, patch, &versions);
            if let Some(key) = context.unknown(blank, missing.as_ref(), key)? {
                cells.push(Cell {
                    configuration,
                    gate,
                    patch,
                    key,
                });
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

impl Bench<'_, '_> {
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
        if number == 0 {
            // A run that ended just behind the base has heard its warnings, and nobody would hear them again.
            self.dir.touch(files)?;
        }
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
