//! The recorded result beside a series, `performance.json`, and whether it still says something about the series.
//!
//! Hides what a result depends on: the code that the series makes, the base's whole source, the compiler and its options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::machine::plain;
use super::stats::Estimate;
use super::{BASE, Figure, LARGEST_ORDER, LIMIT, Load, Machine, letter};
use crate::error::Refusal;
use crate::gate::compiler_version;
use crate::gate::settings::{Configuration, Settings};
use crate::outgoing::{Output, Sort};
use crate::recipe::Recipe;
use crate::repo::Base;

/// The file's name.
pub const FILE: &str = "performance.json";

/// Records of another form are not read.
const VERSION: u32 = 2;

/// A page that takes a second: nothing that was measured is beyond that, and what is drawn stays within bounds.
const LONGEST_NS: f64 = 1e9;

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
    /// It says nothing about this, or too little: the whole warning.
    Unfit(String),
    /// It was measured on exactly this, and says something.
    Current(Box<Performance>),
}

impl Performance {
    /// A result to be stored.
    #[must_use]
    pub fn new(run: Run, mut figures: Vec<Figure>) -> Self {
        for figure in &mut figures {
            figure.ns = figure.ns.rounded();
            figure.times_base = figure.times_base.rounded();
            figure.of_limit = figure.of_limit.rounded();
            figure.times_one_thread = figure.times_one_thread.map(Estimate::rounded);
        }
        Self {
            version: VERSION,
            run,
            figures,
        }
    }

    /// Reads what was stored, or what `reroll bench --json` printed, strictly. `label` is what errors call the file.
    pub fn parse(label: &str, text: &str) -> Result<Self> {
        let wrong = |why: String| {
            Refusal::usage(format!("`{label}` is wrong: {why}"))
                .hint("`reroll bench --record` writes it anew; nothing in it is meant to be edited")
        };
        let value = match of_lines(text) {
            Some(value) => value,
            None => serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?,
        };
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
            let spreads = [
                Some(figure.ns),
                Some(figure.times_base),
                Some(figure.of_limit),
                figure.times_one_thread,
            ];
            let is_sound = spreads.into_iter().flatten().all(Estimate::is_sound)
                && figure.placements > 0
                && figure.rounds >= figure.placements
                && figure.order <= LARGEST_ORDER
                && figure.ns.placements.high <= LONGEST_NS;
            if !is_sound {
                return Err(format!(
                    "a figure of `{}` cannot have been measured",
                    figure.step
                ));
            }
            if !steps.contains(&figure.step.as_str()) || !seen.insert((setting, &figure.step)) {
                return Err(format!(
                    "`{}` is no patch of the series, or comes twice",
                    figure.step
                ));
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
    pub fn store(&self, recipe: &Recipe, force: bool) -> Result<PathBuf> {
        let file = place(recipe)?;
        output(&file, force).write(&self.json()?)?;
        Ok(file)
    }

    /// Why it says nothing about the series that `recipe` makes on `base`, if so. `compiler` is asked last: for what the
    /// recipe's compiler is here; `None` is one that is not there.
    fn stale(
        &self,
        recipe: &Recipe,
        base: &Base,
        release: &str,
        compiler: impl FnOnce(&Configuration) -> Option<String>,
    ) -> Option<String> {
        let run = &self.run;
        if run.code != recipe.code_digest() {
            return Some("the templates or edits have changed since".to_owned());
        }
        if run.tree != base.tree_id.to_string() {
            let same = if run.release == release {
                ", with other source"
            } else {
                ""
            };
            return Some(format!(
                "it is of another base, Linux {}{same}",
                run.release
            ));
        }
        let settings = Settings::of(recipe).ok();
        let configuration = settings.as_ref().and_then(|settings| {
            settings
                .configuration
                .iter()
                .find(|it| it.name == run.configuration)
        });
        let (Some(settings), Some(configuration)) = (&settings, configuration) else {
            return Some(format!(
                "the recipe has no configuration `{}`",
                run.configuration
            ));
        };
        if run.options != options_digest(settings, configuration) {
            return Some(format!(
                "the options of the configuration `{}` have changed since",
                run.configuration
            ));
        }
        match compiler(configuration) {
            Some(here) if plain(&here) == run.compiler => None,
            Some(here) => Some(format!(
                "it is of another compiler, {}; here is {}",
                run.compiler,
                plain(&here)
            )),
            None => Some(format!("it is of {}, which is not here", run.compiler)),
        }
    }
}

impl Run {
    /// The steps of the series, the base first and the limit last.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        [BASE]
            .into_iter()
            .chain(self.patches.iter().map(String::as_str))
            .chain([LIMIT])
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
    if let Some(reason) = performance.stale(recipe, base, release, compiler_version) {
        let message = format!("`{label}` is stale, so no performance table is written: {reason}");
        return Ok(Standing::Unfit(message));
    }
    if let Some(reason) = letter::unfit(&performance) {
        let message =
            format!("`{label}` is too noisy, so no performance table is written: {reason}");
        return Ok(Standing::Unfit(message));
    }
    Ok(Standing::Current(Box::new(performance)))
}

/// Where the result of a series is stored (exit 2 where there is no such place).
pub fn place(recipe: &Recipe) -> Result<PathBuf> {
    if let Some(directory) = &recipe.directory {
        return Ok(directory.join(FILE));
    }
    Err(Refusal::usage(format!(
        "the series `{}` is inside this binary: nothing can be recorded beside it",
        recipe.series.name
    ))
    .hint("name a directory that holds a `series.toml` with `--series`")
    .into())
}

/// The file of a record.
#[must_use]
pub fn output(path: &Path, force: bool) -> Output<'_> {
    Output {
        path,
        sort: Sort::Performance,
        force,
    }
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
    crate::digest::digest([serde_json::to_vec(&parts).unwrap_or_default()])
}

/// The wanted options of Kconfig: `NAME=value`.
#[must_use]
pub fn kconfig(settings: &Settings, configuration: &Configuration) -> Vec<String> {
    settings
        .wanted(configuration)
        .map(|wanted| format!("{}={}", wanted.name, wanted.value))
        .collect()
}

/// The flags of a command that decide about code: no warnings, includes and paths.
#[must_use]
pub fn flags(command: &[String]) -> Vec<String> {
    let counts = |word: &&String| {
        let kinds = ["-O", "-f", "-m", "-std="];
        kinds.iter().any(|kind| word.starts_with(kind)) && !word.contains('/')
    };
    command
        .iter()
        .filter(counts)
        .map(|word| plain(word))
        .collect()
}

/// What a compiler says about itself, as it is stored.
#[must_use]
pub fn compiler(version: &str) -> String {
    plain(version)
}

/// Today, in UTC.
pub fn today() -> Result<String> {
    let now = jiff::Timestamp::now().to_string();
    now.get(..10)
        .map(str::to_owned)
        .context("the clock gives no date")
}

/// The lines that [`Performance::lines`] makes, as the object that is stored; `None` where the text is something else.
fn of_lines(text: &str) -> Option<Value> {
    let (mut run, mut figures) = (None, Vec::new());
    for line in text.lines() {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
        match fields.shift_remove("record")?.as_str()? {
            "run" if run.is_none() => run = Some(fields),
            "figure" => figures.push(fields),
            _ => return None,
        }
    }
    Some(serde_json::json!({ "version": VERSION, "run": run?, "figures": figures }))
}

fn line(record: &str, value: Value) -> String {
    let mut object = serde_json::Map::new();
    object.insert("record".to_owned(), record.into());
    if let Value::Object(fields) = value {
        object.extend(fields);
    }
    format!("{}\n", Value::Object(object))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bench::Memory;
    use crate::bench::stats::Spread;
    use crate::recipe::load;
    use crate::repo::ObjectId;

    fn around(median: f64) -> Estimate {
        let spread = |median: f64| Spread {
            low: median * 0.98,
            median,
            high: median * 1.01,
        };
        Estimate {
            placements: spread(median),
            time: spread(1.0),
        }
    }

    /// Planted figures of the embedded series: 12, 12, 9, 6, 4 and 3 ns a page.
    pub(in crate::bench) fn planted() -> Performance {
        let recipe = recipe();
        let settings = Settings::of(&recipe).expect("settings");
        let run = Run {
            date: "2026-01-02".to_owned(),
            series: "tiny".to_owned(),
            patches: recipe
                .patches
                .iter()
                .map(|patch| patch.name.clone())
                .collect(),
            code: recipe.code_digest(),
            release: "7.3.4".to_owned(),
            tree: tree().to_string(),
            object: "mm/mm_init.o".to_owned(),
            entry: "entry".to_owned(),
            configuration: "x86-64 gcc".to_owned(),
            options: options_digest(&settings, &settings.configuration[0]),
            compiler: "gcc (Debian 12.2.0-14+deb12u1) 12.2.0".to_owned(),
            kconfig: vec!["SOMETHING=y".to_owned()],
            flags: vec!["-O2".to_owned()],
            machine: Machine {
                cpu: "A Processor (family 25, model 17)".to_owned(),
                cpus: 2,
                memory_gib: 24,
                virtual_machine: true,
                kernel: "6.1".to_owned(),
                huge_pages: "madvise".to_owned(),
            },
            load: Load {
                before: 0.1,
                after: 1.0,
            },
            comparisons: 600,
        };
        let mut figures = Vec::new();
        for (memory, order, threads) in [
            (Memory::Touched, 0, 1),
            (Memory::Touched, 0, 2),
            (Memory::Touched, 9, 1),
            (Memory::Touched, 18, 1),
            (Memory::FirstTouch, 0, 1),
        ] {
            for (step, ns) in run.steps().zip([12.0, 12.0, 9.0, 6.0, 4.0, 3.0]) {
                figures.push(Figure {
                    pages: 26_214_400,
                    order,
                    memory,
                    threads,
                    step: step.to_owned(),
                    placements: 8,
                    rounds: 24,
                    disturbed: usize::from(threads > 1),
                    ns: around(ns),
                    times_base: around(12.0 / ns),
                    of_limit: around(ns / 3.0),
                    times_one_thread: (threads > 1).then(|| around(1.9)),
                });
            }
        }
        Performance::new(run, figures)
    }

    fn recipe() -> Recipe {
        load(
            &crate::recipe::embedded()[0],
            std::path::Path::new("/nowhere"),
        )
        .expect("the embedded series")
    }

    fn tree() -> ObjectId {
        "00112233445566778899aabbccddeeff00112233"
            .parse()
            .expect("an id")
    }

    fn base(tree_id: ObjectId) -> Base {
        Base {
            rev: "x".to_owned(),
            commit_id: tree_id,
            tree_id,
            imported: false,
            time: 0,
        }
    }

    fn stale(recipe: &Recipe, base: &Base, compiler: Option<&str>) -> Option<String> {
        planted().stale(recipe, base, "7.3.4", |_| compiler.map(str::to_owned))
    }

    const GCC: Option<&str> = Some("gcc (Debian 12.2.0-14+deb12u1) 12.2.0");

    #[test]
    fn a_result_of_exactly_this_is_current() {
        assert_eq!(stale(&recipe(), &base(tree()), GCC), None);
    }

    #[test]
    fn a_result_of_anything_else_is_stale_and_says_of_what() {
        let mut other = recipe();
        other
            .templates
            .insert("page-copy.c".to_owned(), "x".to_owned());
        let reason = stale(&other, &base(tree()), GCC).expect("stale");
        assert!(reason.contains("templates or edits"), "{reason}");

        let other = "ff112233445566778899aabbccddeeff00112233"
            .parse()
            .expect("an id");
        let reason = stale(&recipe(), &base(other), GCC).expect("stale");
        assert!(
            reason.contains("another base, Linux 7.3.4, with other source"),
            "{reason}"
        );

        let reason = stale(&recipe(), &base(tree()), Some("gcc 14")).expect("stale");
        assert!(
            reason.contains("another compiler") && reason.contains("gcc 14"),
            "{reason}"
        );
        let reason = stale(&recipe(), &base(tree()), None).expect("stale");
        assert!(reason.contains("not here"), "{reason}");
    }

    #[test]
    fn a_result_of_other_options_is_stale() {
        for (from, to) in [("DEV_DAX=y", "DEV_DAX=n"), ("x86-64 gcc", "x86-64 cc")] {
            let mut other = recipe();
            let check = other
                .series
                .check
                .as_ref()
                .expect("checks")
                .to_string()
                .replace(from, to);
            other.series.check = Some(check.parse().expect("a table"));
            assert!(stale(&other, &base(tree()), GCC).is_some(), "{from}");
        }
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let text = String::from_utf8(planted().json().expect("JSON")).expect("text");
        assert_eq!(Performance::parse("x", &text).expect("read"), planted());
        let lines = planted().lines().expect("lines");
        assert_eq!(Performance::parse("x", &lines).expect("read"), planted());
    }

    #[test]
    fn what_cannot_have_been_measured_is_refused() {
        let text = String::from_utf8(planted().json().expect("JSON")).expect("text");
        let mut lost = planted();
        lost.figures.pop();
        let mut twice = planted();
        twice.figures.push(twice.figures[0].clone());
        let mut none = planted();
        none.figures.clear();
        let json = |it: Performance| String::from_utf8(it.json().expect("JSON")).expect("text");
        for (wrong, why) in [
            (
                text.replacen("\"median\": 12.0", "\"median\": -12.0", 1),
                "cannot have been measured",
            ),
            (
                text.replacen("\"order\": 18", "\"order\": 64", 1),
                "cannot have been measured",
            ),
            (
                text.replacen("\"high\": 12.12", "\"high\": 1e300", 1),
                "cannot have been measured",
            ),
            (
                text.replacen("\"step\": \"base\"", "\"step\": \"bass\"", 1),
                "`bass`",
            ),
            (
                text.replacen("\"version\": 2", "\"version\": 1", 1),
                "another form",
            ),
            (text.replacen("\"date\"", "\"data\"", 1), "unknown field"),
            (json(lost), "has no figure"),
            (json(twice), "comes twice"),
            (json(none), "has no figure"),
            ("{".to_owned(), "EOF"),
        ] {
            let error = Performance::parse("patches/x/performance.json", &wrong).expect_err(why);
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Usage);
        }
    }

    #[test]
    fn flags_say_how_code_is_made_and_name_no_place() {
        let command = [
            "gcc",
            "-I/x",
            "-O2",
            "-fmacro-prefix-map=/x/=",
            "-Wall",
            "-mno-sse",
            "-DX",
            "-std=gnu11",
        ];
        let command: Vec<_> = command.map(str::to_owned).to_vec();
        assert_eq!(flags(&command), ["-O2", "-mno-sse", "-std=gnu11"]);
    }

    #[test]
    fn lines_are_objects_that_say_what_they_are() {
        let lines = planted().lines().expect("lines");
        let kinds: Vec<_> = lines
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("JSON")["record"]
                    .as_str()
                    .expect("a kind")
                    .to_owned()
            })
            .collect();
        assert_eq!(kinds.len(), 31);
        assert_eq!((kinds[0].as_str(), kinds[1].as_str()), ("run", "figure"));
    }

    #[test]
    fn nothing_is_recorded_beside_a_series_of_the_binary() {
        let error = place(&recipe()).expect_err("no place");
        assert_eq!(crate::error::exit_of(&error), crate::error::Exit::Usage);
    }
}
