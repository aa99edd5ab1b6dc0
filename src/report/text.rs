//! `JUnit` XML for a CI engine, and Markdown for its job page or a mail.
//!
//! Hides what means something in either.

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{Entry, Report, shown};
use crate::bot::record::{GateRecord, PatchRecord, StandingRecord, Verdict};
use crate::gate::Status;

impl Report {
    /// A suite a series and base; a case a patch, and a case what a gate found.
    pub fn junit(&self) -> Result<Vec<u8>> {
        let mut report = quick_junit::Report::new("reroll bot");
        for Entry { record, .. } in &self.results {
            let mut suite =
                TestSuite::new(shown(&format!("{} on {}", record.series, record.base.name)));
            let class = shown(&format!("{}.{}", record.series, record.base.name));
            let details = record.conflict.as_ref().map(|it| it.details.join("\n"));
            suite.add_test_cases(
                record
                    .patches
                    .iter()
                    .map(|patch| case_of_patch(patch, &class, details.as_deref())),
            );
            let standing = record
                .standing
                .as_ref()
                .and_then(|it| case_of_standing(it, &class));
            suite.add_test_cases(standing);
            suite.add_test_cases(record.gates.iter().map(|gate| case_of_gate(gate, &class)));
            report.add_test_suite(suite);
        }
        let text = report.to_string().context("a report is always XML")?;
        Ok(text.into_bytes())
    }

    /// The grid, and what a person has to look at.
    #[must_use]
    pub fn markdown(&self) -> String {
        let series = self.series();
        let mut text = format!("**{}**\n\n", markdown(&self.summary()));
        if series.is_empty() {
            return text;
        }
        let heads = series
            .iter()
            .map(|(name, _)| markdown(name))
            .collect::<Vec<_>>()
            .join(" | ");
        text.push_str(&format!(
            "| Base | {heads} |\n|---{}|\n",
            "|---".repeat(series.len())
        ));
        for base in self.bases() {
            let cells = series.iter().map(|(series, _)| self.at(series, base));
            let cells = cells
                .map(|entry| entry.map_or_else(String::new, |it| markdown(&it.record.state())));
            text.push_str(&format!(
                "| {} | {} |\n",
                markdown(base),
                cells.collect::<Vec<_>>().join(" | ")
            ));
        }
        for entry in &self.results {
            text.push_str(&entry.markdown());
        }
        text
    }
}

impl Entry {
    /// What a person has to look at; empty where there is nothing.
    fn markdown(&self) -> String {
        let record = &self.record;
        let edited = if self.branch.is_empty() {
            Vec::new()
        } else {
            vec![format!("its branch is {}", self.branch)]
        };
        let patches = record
            .patches
            .iter()
            .filter(|patch| patch.verdict > Verdict::Upstream)
            .map(|patch| {
                format!(
                    "{}: {}: {}",
                    patch.name,
                    patch.verdict.as_str(),
                    patch.reason
                )
            });
        let gates = record
            .gates
            .iter()
            .filter(|gate| gate.status >= Status::Fail);
        let gates = gates.map(|gate| format!("{}: {}", gate.title(), gate.reason));
        let standing = record.standing.iter().filter(|_| record.conflict.is_none());
        let standing = standing.flat_map(|it| it.told().into_iter().chain(it.lacks()));
        let suspects = record.conflict.iter().flat_map(|it| &it.suspects);
        let suspects = suspects.map(|it| format!("changed by {}: {}", it.shown(), it.what));
        let hint = record
            .conflict
            .iter()
            .map(|it| format!("next: {}", it.hint));
        let lines: Vec<_> = edited
            .into_iter()
            .chain(patches)
            .chain(standing)
            .chain(gates)
            .chain(suspects)
            .chain(hint)
            .collect();
        if lines.is_empty() {
            return String::new();
        }
        let title = format!(
            "{} on {}: {}",
            record.series,
            record.base.name,
            record.state()
        );
        let lines = lines.iter().map(|line| format!("- {}\n", markdown(line)));
        format!(
            "\n### {}\n\n{}",
            markdown(&title),
            lines.collect::<String>()
        )
    }
}

fn case_of_patch(patch: &PatchRecord, class: &str, details: Option<&str>) -> TestCase {
    let is_bad = patch.verdict >= Verdict::ProbablyUpstream;
    let mut status = if is_bad {
        TestCaseStatus::non_success(NonSuccessKind::Failure)
    } else {
        TestCaseStatus::success()
    };
    if is_bad {
        status.set_message(shown(&format!(
            "{}: {}",
            patch.verdict.as_str(),
            patch.reason
        )));
        let details = details.map_or_else(|| patch.details.join("\n"), str::to_owned);
        let lines: Vec<_> = details.lines().map(shown).collect();
        status.set_description(lines.join("\n"));
    }
    let mut case = TestCase::new(shown(&patch.name), status);
    case.set_classname(class);
    case
}

/// None where everything was proven before.
fn case_of_standing(standing: &StandingRecord, class: &str) -> Option<TestCase> {
    let told = standing.told()?;
    let status = if standing.is_proven() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let lines = standing.details.iter().chain(&standing.missing);
        let lines: Vec<_> = lines.map(|line| shown(line)).collect();
        status
            .set_message(shown(&told))
            .set_description(lines.join("\n"));
        status
    };
    let mut case = TestCase::new("rests-on", status);
    case.set_classname(class);
    Some(case)
}

fn case_of_gate(gate: &GateRecord, class: &str) -> TestCase {
    let bad = |kind| {
        let mut status = TestCaseStatus::non_success(kind);
        let lines: Vec<_> = gate.lines.iter().map(|line| shown(line)).collect();
        status
            .set_message(shown(&gate.reason))
            .set_description(lines.join("\n"));
        status
    };
    let status = match gate.status {
        Status::Pass => TestCaseStatus::success(),
        Status::Fail => bad(NonSuccessKind::Failure),
        Status::Error => bad(NonSuccessKind::Error),
        Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(shown(&gate.reason));
            status
        }
    };
    let mut case = TestCase::new(shown(&gate.title()), status);
    case.set_classname(class);
    case
}

/// A text that means itself: no markup, no HTML, no link, one line.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for char in shown(text).chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // What would call a person or name an issue.
            '@' => escaped.push_str("&#64;"),
            '#' => escaped.push_str("&#35;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(char);
            }
            ':' => escaped.push_str("&#58;"),
            char => escaped.push(char),
        }
    }
    escaped.replace("&#58; ", ": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_means_itself() {
        assert_eq!(
            markdown("<b> a|b `x` [l](https://h) @me #1 \u{1b}[31m\n: x"),
            "&lt;b&gt; a\\|b \\`x\\` \\[l\\](https&#58;//h) &#64;me &#35;1 \\\\u{1b}\\[31m\\\\u{a}: x"
        );
    }
}
