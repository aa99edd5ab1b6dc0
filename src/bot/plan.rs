//! The matrix for a CI engine: which cells there are to run, each on a machine of its own.
//!
//! Hides how the engines want to be told. A cell is a series on a base with a part of its gates: the quick ones, or the builds of one
//! configuration. (The patches of one configuration are built one after another in one directory: apart, each would build all before it.)

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::{GateRecord, Record};
use super::state::encode;
use crate::error::Refusal;
use crate::gate::Name;
use crate::gate::settings::Settings;
use crate::ui::shown_text;

/// A CI engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A value for GitHub Actions' `strategy.matrix`.
    Github,
    /// A child pipeline of GitLab.
    Gitlab,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The series, as its recipe calls it.
    pub series: String,
    /// The base's name.
    pub base: String,
    /// Which gates it runs.
    pub part: Part,
    /// All gates that are run on the base.
    pub gates: Vec<Name>,
}

/// A part of the gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Those that build nothing.
    Quick,
    /// The builds of one configuration.
    Builds(String),
    /// The kernel that boots.
    Guest,
}

/// Which gates are run; a cell of a matrix runs a part of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Checks {
    /// All that are configured.
    #[default]
    All,
    /// Some of them, in one configuration or all.
    Some(Vec<Name>, Option<String>),
    /// What was found elsewhere.
    Known(Known),
}

/// Outcomes that were found elsewhere, and what they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The key of the record that was made there.
    pub key: String,
    /// The last patch's commit there.
    pub tip: Option<String>,
    /// The outcomes.
    pub gates: Vec<GateRecord>,
}

impl Checks {
    /// Whether they say something about this very result.
    pub(super) fn are_of(&self, record: &Record) -> bool {
        match self {
            Self::Known(known) => (&known.key, &known.tip) == (&record.key, &record.tip),
            _ => true,
        }
    }
}

/// What a cell found out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The cell's id.
    pub id: String,
    /// The record, with the outcomes of this cell's gates only.
    pub record: Record,
}

/// The gates that need builds.
const BUILDS: [Name; 3] = [Name::Build, Name::Section, Name::Equality];

/// The cells of a series on a base that takes these gates.
#[must_use]
pub fn cells(gates: &[Name], settings: &Settings, series: &str, base: &str) -> Vec<Cell> {
    let cell = |part| Cell {
        series: series.to_owned(),
        base: base.to_owned(),
        part,
        gates: gates.to_vec(),
    };
    let mut cells = vec![cell(Part::Quick)];
    if gates.iter().any(|gate| BUILDS.contains(gate)) {
        let names = settings.configuration.iter().map(|it| it.name.clone());
        cells.extend(names.map(Part::Builds).map(cell));
    }
    if gates.contains(&Name::Guest) {
        cells.push(cell(Part::Guest));
    }
    cells
}

impl Cell {
    /// Its id: safe in a shell, in YAML and as a path.
    #[must_use]
    pub fn id(&self) -> String {
        let part = match &self.part {
            Part::Quick => "quick".to_owned(),
            Part::Builds(name) => format!("build/{}", encode(name)),
            Part::Guest => "guest".to_owned(),
        };
        prefix(&self.series, &self.base) + &part
    }

    /// The gates that it runs.
    #[must_use]
    pub fn checks(&self) -> Checks {
        let is_mine = |gate: &&Name| match self.part {
            Part::Quick => !BUILDS.contains(gate) && **gate != Name::Guest,
            Part::Builds(_) => BUILDS.contains(gate),
            Part::Guest => **gate == Name::Guest,
        };
        let gates = self.gates.iter().filter(is_mine).copied().collect();
        let configuration = match &self.part {
            Part::Builds(name) => Some(name.clone()),
            Part::Quick | Part::Guest => None,
        };
        Checks::Some(gates, configuration)
    }

    /// The name of the file that it leaves.
    fn file(&self) -> String {
        format!("{}.json", self.id().replace('/', "--"))
    }
}

/// What the ids of all cells of a series on a base start with.
fn prefix(series: &str, base: &str) -> String {
    format!("{}/{}/", encode(series), encode(base))
}

/// Whether an id is one of a cell of a series on a base.
#[must_use]
pub fn is_of(id: &str, series: &str, base: &str) -> bool {
    id.starts_with(&prefix(series, base))
}

/// The cell of an id, among those there are.
pub fn find<'a>(cells: &'a [Cell], id: &str) -> Result<&'a Cell> {
    let found = cells.iter().find(|cell| cell.id() == id);
    found.ok_or_else(|| no_cell(id))
}

/// The refusal of an id that no cell has (exit 2).
#[must_use]
pub fn no_cell(id: &str) -> anyhow::Error {
    Refusal::usage(format!("there is no cell `{}`", shown_text(id.as_bytes())))
        .hint("`reroll bot plan` lists the cells; a base that is gone has none")
        .into()
}

/// How many jobs a matrix of GitHub Actions can have, by its documentation.
const GITHUB_JOBS: usize = 256;

/// The cells that one run of the engine can take: all, or those of as many whole bases as fit. (A base is recorded once all its cells are there, so
/// the next plan has the others.) Refused where one base alone is too much (exit 2).
pub fn that_fit(cells: &[Cell], format: Format) -> Result<&[Cell]> {
    let limit = match format {
        Format::Github => GITHUB_JOBS,
        Format::Gitlab => usize::MAX,
    };
    if cells.len() <= limit {
        return Ok(cells);
    }
    let of = |cell: &Cell| (cell.series.clone(), cell.base.clone());
    let whole = |end: &usize| of(&cells[end - 1]) != of(&cells[*end]);
    let end = (1..=limit).rev().find(whole).with_context(|| {
        Refusal::usage(format!(
            "a base has more than {limit} cells, which is all that a matrix can hold"
        ))
        .hint("choose fewer gates in the configuration, or run the bot on one machine")
    })?;
    Ok(&cells[..end])
}

/// The matrix as the engine wants it.
pub fn matrix(cells: &[Cell], format: Format, config: &str) -> Result<Vec<u8>> {
    let (value, pretty) = match format {
        Format::Github => (github(cells), false),
        Format::Gitlab => (gitlab(cells, config), true),
    };
    let bytes = if pretty {
        serde_json::to_vec_pretty(&value)
    } else {
        serde_json::to_vec(&value)
    };
    let mut bytes = bytes.context("a matrix is always JSON")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn github(cells: &[Cell]) -> Value {
    let include = cells
        .iter()
        .map(|cell| json!({ "id": cell.id(), "file": cell.file() }));
    json!({ "include": include.collect::<Vec<_>>() })
}

/// JSON is YAML.
fn gitlab(cells: &[Cell], config: &str) -> Value {
    let mut jobs = serde_json::Map::new();
    jobs.insert("stages".to_owned(), json!(["cells", "merge"]));
    if cells.is_empty() {
        // A pipeline without a job is an error there.
        jobs.insert(
            "nothing new".to_owned(),
            json!({ "stage": "cells", "script": ["echo nothing new"] }),
        );
        return Value::Object(jobs);
    }
    jobs.insert("default".to_owned(), json!({ "retry": { "max": 2, "when": ["runner_system_failure", "stuck_or_timeout_failure"] } }));
    jobs.insert("variables".to_owned(), json!({ "BOT_CONFIG": config }));
    for cell in cells {
        let script = "reroll bot cell --config \"$BOT_CONFIG\" --output \"cells/$FILE\" \"$CELL\"";
        let job = json!({
            "stage": "cells",
            "variables": { "CELL": cell.id(), "FILE": cell.file() },
            "script": ["mkdir -p cells", script],
            "artifacts": { "paths": ["cells/"] },
        });
        jobs.insert(cell.id(), job);
    }
    let merge = json!({
        "stage": "merge",
        "when": "always",
        "resource_group": "reroll",
        "script": [
            "mkdir -p cells public",
            "reroll report merge --config \"$BOT_CONFIG\" cells",
            "reroll report --config \"$BOT_CONFIG\" -o public/index.html --junit reroll.xml --markdown reroll.md",
        ],
        "artifacts": { "when": "always", "paths": ["public/", "reroll.md"], "reports": { "junit": "reroll.xml" } },
    });
    jobs.insert("merge".to_owned(), merge);
    Value::Object(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_has_whole_bases_and_no_more_than_it_can_hold() {
        let cells = |bases: usize, of_each: usize| -> Vec<Cell> {
            let cell = |number: usize| Cell {
                gates: Vec::new(),
                series: "s".to_owned(),
                base: format!("v{}", number / of_each),
                part: Part::Builds((number % of_each).to_string()),
            };
            (0..bases * of_each).map(cell).collect()
        };
        let fit = |cells: &[Cell], format| that_fit(cells, format).map(<[Cell]>::len);
        assert_eq!(fit(&cells(26, 10), Format::Github).expect("some fit"), 250);
        assert_eq!(fit(&cells(26, 10), Format::Gitlab).expect("all fit"), 260);
        assert_eq!(fit(&cells(32, 8), Format::Github).expect("all fit"), 256);
        assert!(fit(&cells(1, 257), Format::Github).is_err());
    }

    #[test]
    fn each_gate_runs_in_exactly_one_kind_of_cell() {
        let gates = [
            Name::Apply,
            Name::Mail,
            Name::Build,
            Name::Equality,
            Name::Guest,
        ];
        let settings: Settings = toml::from_str(
            "[[configuration]]\nname = \"gcc 12\"\narch = \"x86_64\"\n\
             [[configuration]]\nname = \"clang\"\narch = \"x86_64\"\n",
        )
        .expect("settings");
        let cells = cells(&gates, &settings, "s", "v1");
        let found: Vec<_> = cells
            .iter()
            .map(|cell| (cell.id(), cell.checks()))
            .collect();
        let some =
            |gates: &[Name], name: Option<&str>| Checks::Some(gates.to_vec(), name.map(Into::into));
        let builds = [Name::Build, Name::Equality];
        let expected = [
            ("s/v1/quick", some(&[Name::Apply, Name::Mail], None)),
            ("s/v1/build/gcc%2012", some(&builds, Some("gcc 12"))),
            ("s/v1/build/clang", some(&builds, Some("clang"))),
            ("s/v1/guest", some(&[Name::Guest], None)),
        ];
        assert_eq!(found, expected.map(|(id, checks)| (id.to_owned(), checks)));
    }
}
