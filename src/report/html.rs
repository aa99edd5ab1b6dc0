//! The page: one file that needs nothing else, for a screen of any width, a keyboard and a screen reader.
//!
//! Hides which values the template gets; every one of them is text that the template engine escapes.

use anyhow::Result;
use serde::Serialize;

use super::{Entry, Report, shown};
use crate::bot::record::{Compared, GateRecord, LandingRecord, PatchRecord, Verdict};
use crate::gate::{Name, Status};
use crate::template;

const TEMPLATE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Page {
    tool: &'static str,
    summary: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    results: Vec<Article>,
}

#[derive(Serialize)]
struct Column {
    name: String,
    title: String,
}

#[derive(Serialize)]
struct Row {
    base: String,
    cells: Vec<Cell>,
}

#[derive(Serialize, Default)]
struct Cell {
    id: String,
    class: &'static str,
    mark: &'static str,
    state: String,
}

#[derive(Serialize)]
struct Article {
    id: String,
    series: String,
    base: String,
    class: &'static str,
    mark: &'static str,
    state: String,
    branch: &'static str,
    conflict: Option<Conflict>,
    facts: Vec<Changed>,
    patches: Vec<Patch>,
    gates: Vec<Gate>,
    compared: Option<Comparison>,
    cover: Vec<String>,
    all_facts: Vec<Fact>,
    ids: Vec<Id>,
}

#[derive(Serialize)]
struct Id {
    name: &'static str,
    id: String,
}

#[derive(Serialize)]
struct Conflict {
    message: String,
    details: Vec<String>,
    hint: String,
    suspects: Vec<String>,
}

#[derive(Serialize)]
struct Changed {
    name: String,
    about: String,
    old: String,
    new: String,
}

#[derive(Serialize)]
struct Fact {
    name: String,
    about: String,
    value: String,
    place: String,
}

#[derive(Serialize)]
struct Patch {
    number: String,
    is_sent: bool,
    name: String,
    subject: String,
    class: &'static str,
    mark: &'static str,
    verdict: &'static str,
    reason: String,
    details: Vec<Line>,
    landings: Vec<String>,
}

#[derive(Serialize)]
struct Gate {
    name: &'static str,
    summary: String,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    title: String,
    reason: String,
    bad: bool,
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Comparison {
    base: String,
    other_recipe: bool,
    pairs: Vec<Pair>,
}

#[derive(Serialize)]
struct Pair {
    patch: String,
    kind: String,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    class: &'static str,
    text: String,
}

impl Report {
    /// The page.
    pub fn html(&self) -> Result<String> {
        let series = self.series();
        let row = |base: &str| Row {
            base: shown(base),
            cells: series
                .iter()
                .map(|(series, _)| self.at(series, base).map_or_else(Cell::default, cell))
                .collect(),
        };
        let page = Page {
            tool: env!("CARGO_PKG_VERSION"),
            summary: self.summary(),
            columns: series
                .iter()
                .map(|(name, title)| Column {
                    name: shown(name),
                    title: shown(title),
                })
                .collect(),
            rows: self.bases().into_iter().map(row).collect(),
            results: self.results.iter().map(article).collect(),
        };
        template::page(TEMPLATE, &page)
    }
}

/// A verdict's class in the style sheet, and a mark, so that colour is not all that tells verdicts apart.
fn look(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Clean => ("clean", "✓"),
        Verdict::Upstream => ("upstream", "↑"),
        Verdict::Drifted => ("drifted", "≈"),
        Verdict::ProbablyUpstream => ("probably-upstream", "?"),
        Verdict::Conflict => ("conflict", "✗"),
    }
}

/// The same for a whole result: a gate that fails weighs as much as a conflict.
fn look_of(entry: &Entry) -> (&'static str, &'static str) {
    if entry.record.gates_failed() {
        return look(Verdict::Conflict);
    }
    look(entry.record.verdict)
}

fn cell(entry: &Entry) -> Cell {
    let (class, mark) = look_of(entry);
    Cell {
        id: entry.anchor(),
        class,
        mark,
        state: entry.record.state(),
    }
}

fn article(entry: &Entry) -> Article {
    let record = &entry.record;
    let (class, mark) = look_of(entry);
    let ids = [
        (
            "Base",
            Some(format!(
                "{} (Linux {})",
                record.base.commit, record.base.release
            )),
        ),
        ("Last patch", record.tip.clone()),
        ("Recipe", Some(record.recipe.clone())),
        ("Record", Some(entry.id.clone())),
        ("Made by", Some(format!("reroll {}", record.tool))),
    ];
    Article {
        id: entry.anchor(),
        series: shown(&record.series),
        base: shown(&record.base.name),
        class,
        mark,
        state: record.state(),
        branch: entry.branch,
        conflict: record.conflict.as_ref().map(|conflict| Conflict {
            message: shown(&conflict.message),
            details: all(&conflict.details),
            hint: shown(&conflict.hint),
            suspects: conflict
                .suspects
                .iter()
                .map(|it| shown(&format!("{}: {}", it.shown(), it.what)))
                .collect(),
        }),
        facts: record
            .changed_facts
            .iter()
            .map(|it| Changed {
                name: shown(&it.name),
                about: shown(&it.about),
                old: shown(&it.old),
                new: shown(&it.new),
            })
            .collect(),
        patches: record.patches.iter().map(patch).collect(),
        gates: gates(&record.gates),
        compared: record.compared.as_ref().map(compared),
        cover: record.cover.lines().map(shown).collect(),
        all_facts: record
            .facts
            .iter()
            .map(|it| Fact {
                name: shown(&it.name),
                about: shown(&it.about),
                value: shown(&it.value),
                place: shown(&it.place),
            })
            .collect(),
        ids: ids
            .into_iter()
            .filter_map(|(name, id)| {
                Some(Id {
                    name,
                    id: shown(&id?),
                })
            })
            .collect(),
    }
}

fn patch(patch: &PatchRecord) -> Patch {
    let (class, mark) = look(patch.verdict);
    Patch {
        number: patch
            .number
            .map_or_else(|| "not sent".to_owned(), |number| number.to_string()),
        is_sent: patch.number.is_some(),
        name: shown(&patch.name),
        subject: shown(&patch.subject),
        class,
        mark,
        verdict: patch.verdict.as_str(),
        reason: shown(&patch.reason),
        details: patch.details.iter().map(|text| line(text)).collect(),
        landings: patch.landings.iter().map(landing).collect(),
    }
}

fn landing(landing: &LandingRecord) -> String {
    let LandingRecord {
        edit,
        action,
        file,
        function,
        line,
        ..
    } = landing;
    let function = function
        .as_ref()
        .map(|name| format!(" in {name}()"))
        .unwrap_or_default();
    shown(&format!("{edit}: {action} at {file}:{line}{function}"))
}

/// One entry a gate; only what is not a plain pass is shown one by one.
fn gates(all_gates: &[GateRecord]) -> Vec<Gate> {
    let of = |name: Name| {
        let found: Vec<_> = all_gates.iter().filter(|it| it.gate == name).collect();
        let count = |status: Status| found.iter().filter(|it| it.status == status).count();
        let words = [Status::Fail, Status::Error, Status::Skipped, Status::Pass]
            .map(|status| (count(status), status))
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, status)| format!("{count} {}", status.as_str()));
        let findings = found
            .iter()
            .filter(|it| it.status != Status::Pass || !it.lines.is_empty());
        let gate = Gate {
            name: name.as_str(),
            summary: words.collect::<Vec<_>>().join(", "),
            findings: findings
                .map(|it| Finding {
                    title: shown(&it.title()),
                    reason: shown(if it.reason.is_empty() {
                        it.status.as_str()
                    } else {
                        &it.reason
                    }),
                    bad: it.status >= Status::Fail,
                    lines: all(&it.lines),
                })
                .collect(),
        };
        (!found.is_empty()).then_some(gate)
    };
    Name::ALL.into_iter().filter_map(of).collect()
}

fn compared(compared: &Compared) -> Comparison {
    Comparison {
        base: shown(&compared.base),
        other_recipe: compared.other_recipe,
        pairs: compared
            .pairs
            .iter()
            .map(|pair| Pair {
                patch: shown(&pair.patch),
                kind: shown(&pair.kind),
                lines: pair.lines.iter().map(|text| line(text)).collect(),
            })
            .collect(),
    }
}

/// A line of a diff; its first character stays, so that colour is not all that tells.
fn line(text: &str) -> Line {
    let class = match text.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "",
    };
    Line {
        class,
        text: shown(text),
    }
}

fn all(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| shown(line)).collect()
}
