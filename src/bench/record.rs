//! The recorded result beside a series, `performance.json`, and whether it still says something about the series.
//!
//! Hides what a result depends on: the code that the series makes, the base's whole source, the compiler and its options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::plain;
use super::{BASE, Figure, LIMIT, Load, Machine};
use crate::error::Refusal;
use crate::gate::compiler_version;
use crate::gate::settings::{Configuration, Settings};
use crate::lab::write_whole;
use crate::recipe::Recipe;
use crate::repo::Base;

/// The file's name.
pub const FILE: &str = "performance.json";

/// Records of another form are not read.
const VERSION: u32 = 1;

/// A result with everything that it depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Performance {
    version: u32,
    /// How it was measured, and on what.
    pub run: Run,
    /// What came out.
    pub figures: Vec<Figure>,
}

/// How something was measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Run {
    /// The day, in UTC.
    pub date: String,
    /// The series' name.
    pub series: String,
    /// Its patches, in order.
    pub patches: Vec<String>,
    /// A digest of the templates, the edits and what they build on.
    pub code: String,
    /// The kernel's release.
    pub release: String,
    /// The tree of the base: all of its source.
    pub tree: String,
    /// The object that was measured.
    pub object: String,
    /// The function that was called.
    pub entry: String,
    /// The configuration's name in the recipe.
    pub configuration: String,
    /// A digest of its options and flags.
    pub options: String,
    /// What the compiler says about its version.
    pub compiler: String,
    /// The options of Kconfig that were asked for.
    pub kconfig: Vec<String>,
    /// The compiler's flags that decide about code.
    pub flags: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// Its load.
    pub load: Load,
    /// Comparisons of what the objects write that were made before; all were equal.
    pub comparisons: u64,
}

/// What a recorded result is worth to a series on a base.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// There is none.
    None,
    /// It says nothing about this: the reason.
    Stale(String),
    /// It was measured on exactly this.
    Current(Box<Performance>),
}

impl Performance {
    /// A result to be stored.
    #[must_use]
    pub fn new(run: Run, figures: Vec<Figure>) -> Self {
        Self {
            version: VERSION,
            run,
            figures,
        }
    }

    /// Reads what was stored, strictly. `label` is what errors call the file.
    pub fn parse(label: &str, text: &str) -> Result<Self> {
        let wrong = |why: String| {
            Refusal::usage(format!("`{label}` is wrong: {why}"))
                .hint("`reroll bench --record` writes it anew; nothing in it is meant to be edited")
        };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let version = value.get("version").and_then(Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            return Err(wrong(format!("it is of another form than version {VERSION}")).into());
        }
        let read: Self = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        read.validate().map_err(wrong)?;
        Ok(read)
    }

    /// Figures that cannot have been measured, or not of this series.
    fn validate(&self) -> Result<(), String> {
        let steps: Vec<&str> = self.run.steps().collect();
        let mut settings = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for figure in &self.figures {
            let setting = (figure.memory, figure.pages, figure.order, figure.threads);
            settings.insert(setting);
            let spreads = [Some(figure.ns), Some(figure.times_base), Some(figure.of_limit), figure.times_one_thread];
            if !spreads.into_iter().flatten().all(super::stats::Spread::is_sound) || figure.rounds == 0 {
                return Err(format!("a figure of `{}` cannot have been measured", figure.step));
            }
            if !steps.contains(&figure.step.as_str()) || !seen.insert((setting, &figure.step)) {
                return Err(format!("`{}` is no patch of the series, or comes twice", figure.step));
            }
        }
        if seen.len() != settings.len() * steps.len() || seen.is_empty() {
            return Err("a patch has no figure".to_owned());
        }
        Ok(())
    }

    /// As it is stored.
    pub fn json(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// One line for the run, and one for each figure.
    pub fn lines(&self) -> Result<String> {
        let mut lines = vec![line("run", serde_json::to_value(&self.run)?)];
        for figure in &self.figures {
            lines.push(line("figure", serde_json::to_value(figure)?));
        }
        Ok(lines.concat())
    }

    /// Stores it beside the series; says where. A series of this binary has no such place (exit 2).
    pub fn store(&self, recipe: &Recipe) -> Result<PathBuf> {
        let file = place(recipe)?;
        write_whole(&file, &self.json()?)?;
        Ok(file)
    }

    /// Why it says nothing about the series that `recipe` makes on `base`, if so. `compiler` is asked last: for what the
    /// recipe's compiler is here; `None` is one that is not there.
    fn stale(&self, recipe: &Recipe, base: &Base, release: &str, compiler: impl FnOnce(&Configuration) -> Option<String>) -> Option<String> {
        let run = &self.run;
        if run.code != recipe.code_digest() {
            return Some("the templates or edits have changed since".to_owned());
        }
        if run.tree != base.tree_id.to_string() {
            let same = if run.release == release { ", with other source" } else { "" };
            return Some(format!("it is of another base, Linux {}{same}", run.release));
        }
        let settings = Settings::of(recipe).ok();
        let configuration = settings.as_ref().and_then(|settings| {
            settings.configuration.iter().find(|it| it.name == run.configuration)
        });
        let (Some(settings), Some(configuration)) = (&settings, configuration) else {
            return Some(format!("the recipe has no configuration `{}`", run.configuration));
        };
        if run.options != options_digest(settings, configuration) {
            return Some(format!("the options of the configuration `{}` have changed since", run.configuration));
        }
        match compiler(configuration) {
            Some(here) if plain(&here) == run.compiler => None,
            Some(here) => Some(format!("it is of another compiler, {}; here is {}", run.compiler, plain(&here))),
            None => Some(format!("it is of {}, which is not here", run.compiler)),
        }
    }
}

impl Run {
    /// The steps of the series, the base first and the limit last.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        [BASE].into_iter().chain(self.patches.iter().map(String::as_str)).chain([LIMIT])
    }

    /// What a person calls a step.
    #[must_use]
    pub fn step_label(&self, step: &str) -> String {
        match self.patches.iter().position(|patch| patch == step) {
            Some(index) => format!("patch {}", index + 1),
            None => step.to_owned(),
        }
    }
}

/// What the result recorded beside the series of `recipe` is worth on `base`.
pub fn standing(recipe: &Recipe, base: &Base, release: &str) -> Result<Standing> {
    let Some((label, text)) = &recipe.performance else {
        return Ok(Standing::None);
    };
    let performance = Performance::parse(label, text)?;
    Ok(match performance.stale(recipe, base, release, compiler_version) {
        Some(reason) => Standing::Stale(format!("`{label}` is stale, so no performance table is written: {reason}")),
        None => Standing::Current(Box::new(performance)),
    })
}

/// Where the result of a series is stored (exit 2 where there is no such place).
pub fn place(recipe: &Recipe) -> Result<PathBuf> {
    let directory = Path::new(&recipe.origin);
    if directory.join("series.toml").is_file() {
        return Ok(directory.join(FILE));
    }
    Err(Refusal::usage(format!("the series `{}` is inside this binary: nothing can be recorded beside it", recipe.series.name))
        .hint("name a directory that holds a `series.toml` with `--series`")
        .into())
}

/// A digest of everything that a configuration says about how objects are made.
#[must_use]
pub fn options_digest(settings: &Settings, configuration: &Configuration) -> String {
    let parts = (
        kconfig(settings, configuration),
        configuration.make_variables(),
        &configuration.defconfig,
        settings.equality.as_ref().map(|it| (&it.object, &it.entry)),
    );
    crate::recipe::digest([serde_json::to_vec(&parts).unwrap_or_default()])
}

/// The wanted options of Kconfig: `NAME=value`.
#[must_use]
pub fn kconfig(settings: &Settings, configuration: &Configuration) -> Vec<String> {
    settings.wanted(configuration).map(|wanted| format!("{}={}", wanted.name, wanted.value)).collect()
}

/// The flags of a command that decide about code: no warnings, includes and paths.
#[must_use]
pub fn flags(command: &[String]) -> Vec<String> {
    let counts = |word: &&String| {
        let kinds = ["-O", "-f", "-m", "-std="];
        kinds.iter().any(|kind| word.starts_with(kind)) && !word.contains('/')
    };
    command.iter().filter(counts).map(|word| plain(word)).collect()
}

/// What a compiler says about itself, as it is stored.
pub fn compiler(version: &str) -> String {
    plain(version)
}

/// Today, in UTC.
pub fn today() -> Result<String> {
    let now = jiff::Timestamp::now().to_string();
    now.get(..10).map(str::to_owned).context("the clock gives no date")
}

fn line(record: &str, value: Value) -> String {
    let mut object = serde_json::Map::new();
    object.insert("record".to_owned(), record.into());
    if let Value::Object(fields) = value {
        object.extend(fields);
    }
    format!("{}\n", Value::Object(object))
}
