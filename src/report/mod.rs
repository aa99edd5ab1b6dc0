//! What the bot found, for people and for machines: one HTML page, JSON, `JUnit` XML, Markdown.
//!
//! Hides the formats. Whatever is in a record is hostile: control characters are made visible here, and each format escapes what means
//! something to it.

mod chart;
mod html;
mod performance;
mod text;

use serde::Serialize;

use crate::bench::record::Performance;
use crate::bot::record::{Record, Verdict};
use crate::bot::sort_key;
use crate::bot::state::{Branch, Kept, encode};
use crate::ui::shown_text;

/// All records with what is known of them now.
#[derive(Debug)]
pub struct Report {
    /// By base, the newest first, then by series.
    results: Vec<Entry>,
    /// What was measured, in no order.
    performance: Vec<Performance>,
}

/// One record.
#[derive(Debug)]
struct Entry {
    id: String,
    branch: &'static str,
    record: Record,
}

#[derive(Serialize)]
struct Json<'a> {
    version: u32,
    records: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    performance: &'a [Performance],
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    state: String,
    branch: &'a str,
    record: &'a Record,
}

impl Report {
    /// A report of these records.
    #[must_use]
    pub fn of(records: Vec<(Kept, Branch)>) -> Self {
        let results = records.into_iter().map(|(kept, branch)| Entry {
            id: kept.id.to_string(),
            branch: match branch {
                Branch::Right => "",
                Branch::Behind(_) => "behind",
                Branch::Edited(_) => "edited",
            },
            record: kept.record,
        });
        let mut results: Vec<_> = results.collect();
        results.sort_by_cached_key(|it| it.record.series.clone());
        results.sort_by_cached_key(|it| std::cmp::Reverse(sort_key(&it.record)));
        Self {
            results,
            performance: Vec::new(),
        }
    }

    /// With what was measured. Of two results for the same base, where nothing else tells them apart, the newer one counts.
    #[must_use]
    pub fn with_performance(mut self, performance: Vec<Performance>) -> Self {
        self.performance = performance;
        self
    }

    /// One object with everything, as it was recorded.
    pub fn json(&self) -> anyhow::Result<Vec<u8>> {
        let records = self.results.iter().map(|it| Row {
            id: &it.id,
            state: it.record.state(),
            branch: it.branch,
            record: &it.record,
        });
        let json = Json {
            version: 1,
            records: records.collect(),
            performance: &self.performance,
        };
        let mut bytes = serde_json::to_vec_pretty(&json)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The series, sorted by name, each with its newest title.
    fn series(&self) -> Vec<(&str, &str)> {
        let mut series: Vec<(&str, &str)> = Vec::new();
        for Entry { record, .. } in &self.results {
            if series.iter().all(|(name, _)| *name != record.series) {
                series.push((&record.series, &record.title));
            }
        }
        series.sort_unstable();
        series
    }

    /// The bases, the newest first.
    fn bases(&self) -> Vec<&str> {
        let mut bases: Vec<&str> = Vec::new();
        for Entry { record, .. } in &self.results {
            if !bases.contains(&record.base.name.as_str()) {
                bases.push(&record.base.name);
            }
        }
        bases
    }

    fn at(&self, series: &str, base: &str) -> Option<&Entry> {
        self.results
            .iter()
            .find(|it| it.record.series == series && it.record.base.name == base)
    }

    /// How many results there are of each kind, in words.
    fn summary(&self) -> String {
        let verdicts = [
            Verdict::Conflict,
            Verdict::ProbablyUpstream,
            Verdict::Unproven,
            Verdict::Drifted,
            Verdict::Upstream,
            Verdict::Clean,
        ];
        let count = |verdict| {
            self.results
                .iter()
                .filter(|it| it.record.verdict == verdict)
                .count()
        };
        let mut parts: Vec<_> = verdicts
            .into_iter()
            .map(|verdict| (count(verdict), verdict))
            .filter(|(count, _)| *count > 0)
            .map(|(count, verdict)| format!("{count} {}", verdict.as_str()))
            .collect();
        let failed = self
            .results
            .iter()
            .filter(|it| it.record.gates_failed())
            .count();
        if failed > 0 {
            parts.push(format!("gates fail on {failed}"));
        }
        let all = match self.results.len() {
            1 => "1 result".to_owned(),
            count => format!("{count} results"),
        };
        if parts.is_empty() {
            all
        } else {
            format!("{all}: {}", parts.join(", "))
        }
    }
}

impl Entry {
    /// What links to it: the same for the same series and base in every report.
    fn anchor(&self) -> String {
        format!(
            "{}/{}",
            encode(&self.record.series),
            encode(&self.record.base.name)
        )
        .replace('%', "_")
    }
}

/// A text from a record, safe to look at.
fn shown(text: &str) -> String {
    shown_text(text.as_bytes())
}
