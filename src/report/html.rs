//! The page: one file that needs nothing else, for a screen of any width, a keyboard and a screen reader.
//!
//! Hides which values the template gets; every one of them is text that the template engine escapes.

use anyhow::Result;
use serde::Serialize;

use super::chart::{Chart, figure, times};
use super::performance::{Plot, Point, Setting, Steps};
use super::{Entry, Report, shown};
use crate::bot::record::{
    self, Compared, GateRecord, LandingRecord, PatchRecord, Record, StandingRecord, Verdict,
};
use crate::gate::{Name, Status};
use crate::template;

const TEMPLATE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Page {
    tool: &'static str,
    summary: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    plots: Vec<Performance>,
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

/// A plot over bases.
#[derive(Serialize)]
struct Performance {
    id: String,
    series: String,
    about: String,
    other_code: Vec<String>,
    charts: Vec<Chart>,
}

/// What was measured on one base, and the plot that it is in.
#[derive(Serialize)]
struct Measured {
    id: String,
    lines: Vec<String>,
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
    standing: Option<Standing>,
    conflict: Option<Conflict>,
    facts: Vec<Changed>,
    patches: Vec<Patch>,
    gates: Vec<Gate>,
    compared: Option<Comparison>,
    measured: Vec<Measured>,
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
struct Standing {
    class: &'static str,
    title: &'static str,
    told: String,
    details: Vec<String>,
    missing: Vec<String>,
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
        let plots = self.plots();
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
            plots: plots.iter().map(performance).collect(),
            results: self.results.iter().map(|it| article(it, &plots)).collect(),
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
        Verdict::Unproven => ("unproven", "∅"),
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

fn performance(plot: &Plot<'_>) -> Performance {
    let run = plot.run();
    let settings = plot.settings().into_iter();
    Performance {
        id: plot.id.clone(),
        series: shown(&run.series),
        about: shown(&format!(
            "{}; {}; {}",
            run.machine.cpu, run.configuration, run.compiler
        )),
        other_code: plot.of_other_code().into_iter().map(shown).collect(),
        charts: settings
            .filter_map(|setting| Chart::of(plot, setting))
            .collect(),
    }
}

fn article(entry: &Entry, plots: &[Plot<'_>]) -> Article {
    let record = &entry.record;
    let (class, mark) = look_of(entry);
    Article {
        id: entry.anchor(),
        series: shown(&record.series),
        base: shown(&record.base.name),
        class,
        mark,
        state: record.state(),
        branch: entry.branch,
        standing: record.standing.as_ref().and_then(standing),
        conflict: record.conflict.as_ref().map(conflict),
        facts: changed_facts(record),
        patches: record.patches.iter().map(patch).collect(),
        gates: gates(&record.gates),
        compared: record.compared.as_ref().map(compared),
        measured: plots
            .iter()
            .filter_map(|plot| measured(plot, entry))
            .collect(),
        cover: record.cover.lines().map(shown).collect(),
        all_facts: facts(record),
        ids: ids(entry),
    }
}

/// What is said of a base that was not proven before; nothing of one that was.
fn standing(record: &StandingRecord) -> Option<Standing> {
    let told = record.told()?;
    let all = |lines: &[String]| lines.iter().map(|line| shown(line)).collect();
    let (verdict, title) = if record.is_proven() {
        (Verdict::Clean, "Proven here")
    } else {
        (Verdict::Unproven, "Unproven")
    };
    Some(Standing {
        class: look(verdict).0,
        title,
        told: shown(&told),
        details: all(&record.details),
        missing: all(&record.missing),
    })
}

fn conflict(conflict: &record::Conflict) -> Conflict {
    let suspects = conflict.suspects.iter();
    Conflict {
        message: shown(&conflict.message),
        details: all(&conflict.details),
        hint: shown(&conflict.hint),
        suspects: suspects
            .map(|it| shown(&format!("{}: {}", it.shown(), it.what)))
            .collect(),
    }
}

fn changed_facts(record: &Record) -> Vec<Changed> {
    let changed = |it: &record::FactChange| Changed {
        name: shown(&it.name),
        about: shown(&it.about),
        old: shown(&it.old),
        new: shown(&it.new),
    };
    record.changed_facts.iter().map(changed).collect()
}

fn facts(record: &Record) -> Vec<Fact> {
    let fact = |it: &record::FactRecord| Fact {
        name: shown(&it.name),
        about: shown(&it.about),
        value: shown(&it.value),
        place: shown(&it.place),
    };
    record.facts.iter().map(fact).collect()
}

fn ids(entry: &Entry) -> Vec<Id> {
    let record = &entry.record;
    let base = format!("{} (Linux {})", record.base.commit, record.base.release);
    let ids = [
        ("Base", Some(base)),
        ("Last patch", record.tip.clone()),
        ("Recipe", Some(record.recipe.clone())),
        ("Record", Some(entry.id.clone())),
        ("Made by", Some(format!("reroll {}", record.tool))),
    ];
    let shown = |(name, id): (&'static str, Option<String>)| {
        let id = shown(&id?);
        Some(Id { name, id })
    };
    ids.into_iter().filter_map(shown).collect()
}

/// What was measured on the base of a record, if it is in this plot.
fn measured(plot: &Plot<'_>, entry: &Entry) -> Option<Measured> {
    let own = |it: &&Point<'_>| {
        it.performance.run.series == entry.record.series
            && it.performance.run.tree == entry.record.base.tree
    };
    let point = plot.points.iter().find(own)?;
    let line = |setting: Setting| {
        let steps = point.performance.steps(setting)?;
        let Steps { base, last, limit } = &steps;
        Some(format!(
            "{}: {} ns a page with the whole series, {} without it ({} times as fast), limit {}",
            setting.title(),
            figure(last.ns),
            figure(base.ns),
            times(&steps),
            figure(limit.ns)
        ))
    };
    Some(Measured {
        id: plot.id.clone(),
        lines: plot.settings().into_iter().filter_map(line).collect(),
    })
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
