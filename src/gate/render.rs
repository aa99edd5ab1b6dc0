//! A report as a table for people, as JSON and as `JUnit` XML for machines.
//!
//! Hides the formats; what is hostile is escaped here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{Name, Outcome, Report, Status};
use crate::ui::shown_text;

/// The version of the JSON object.
const FORMAT: u32 = 1;

/// Lines of one outcome that a person is shown; the log has all of them.
const SHOWN: usize = 24;

impl Report {
    /// One object with everything.
    pub fn json(&self) -> Result<Vec<u8>> {
        let mut value = serde_json::to_value(self).context("a report is always JSON")?;
        value["format"] = FORMAT.into();
        let mut bytes = serde_json::to_vec_pretty(&value).context("a report is always JSON")?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// A case for each patch, gate and configuration.
    pub fn junit(&self) -> Result<Vec<u8>> {
        let mut report = quick_junit::Report::new("reroll check");
        for gate in Name::ALL {
            let outcomes = self.outcomes.iter().filter(|outcome| outcome.gate == gate);
            let cases: Vec<_> = outcomes.map(|outcome| self.case(outcome)).collect();
            if !cases.is_empty() {
                let mut suite = TestSuite::new(gate.as_str());
                suite.add_test_cases(cases);
                report.add_test_suite(suite);
            }
        }
        let text = report.to_string().context("a report is always XML")?;
        Ok(text.into_bytes())
    }

    fn case(&self, outcome: &Outcome) -> TestCase {
        let text = outcome
            .lines
            .iter()
            .map(|line| shown_text(line.as_bytes()))
            .collect::<Vec<_>>()
            .join("\n");
        let reason = shown_text(outcome.reason.as_bytes());
        let bad = |kind| {
            let mut status = TestCaseStatus::non_success(kind);
            status
                .set_message(reason.clone())
                .set_description(text.clone());
            status
        };
        let status = match outcome.status {
            Status::Pass => TestCaseStatus::success(),
            Status::Fail => bad(NonSuccessKind::Failure),
            Status::Error => bad(NonSuccessKind::Error),
            Status::Skipped => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(reason.clone());
                status
            }
        };
        let mut case = TestCase::new(self.patch_name(outcome), status);
        case.set_classname(outcome.title());
        case.set_time(Duration::try_from_secs_f64(outcome.seconds).unwrap_or_default());
        case
    }

    fn patch_name(&self, outcome: &Outcome) -> String {
        let name = match outcome.patch {
            None => "series",
            Some(0) => "cover letter",
            Some(number) => self.patches.get(number - 1).map_or("?", String::as_str),
        };
        shown_text(name.as_bytes())
    }

    /// What a person reads: a row a gate and configuration, a column a patch, then what is wrong.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut rows: Vec<(String, Vec<&Outcome>)> = Vec::new();
        for outcome in &self.outcomes {
            let title = outcome.title();
            match rows.iter_mut().find(|(row, _)| *row == title) {
                Some((_, outcomes)) => outcomes.push(outcome),
                None => rows.push((title, vec![outcome])),
            }
        }
        let width = rows
            .iter()
            .map(|(title, _)| title.chars().count())
            .max()
            .unwrap_or(0);
        for (title, outcomes) in rows {
            let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
            let marks: Vec<_> = outcomes.iter().map(|outcome| mark(outcome)).collect();
            let cached = outcomes.iter().all(|outcome| outcome.cached);
            let time = if cached {
                "cached".to_owned()
            } else {
                format!("{seconds:.1} s")
            };
            let _ = writeln!(text, "{title:width$}  {}  {time}", marks.join(" "));
            let lines = outcomes.iter().flat_map(|outcome| &outcome.lines);
            let accepted: BTreeSet<_> = lines.filter(|it| it.starts_with("accepted: ")).collect();
            for line in accepted {
                let _ = writeln!(text, "  {line}");
            }
        }
        for outcome in self
            .outcomes
            .iter()
            .filter(|outcome| outcome.status >= Status::Fail)
        {
            self.explain(outcome, &mut text);
        }
        let count = |status| {
            self.outcomes
                .iter()
                .filter(|outcome| outcome.status == status)
                .count()
        };
        let [pass, fail, error, skipped] =
            [Status::Pass, Status::Fail, Status::Error, Status::Skipped].map(count);
        let _ = writeln!(
            text,
            "\n{pass} passed, {fail} failed, {error} could not run, {skipped} skipped"
        );
        let mut packages: Vec<_> = self
            .outcomes
            .iter()
            .flat_map(|outcome| outcome.packages.clone())
            .collect();
        packages.sort();
        packages.dedup();
        if !packages.is_empty() {
            let _ = writeln!(
                text,
                "to run all of them: apt install {}",
                packages.join(" ")
            );
        }
        text
    }

    fn explain(&self, outcome: &Outcome, text: &mut String) {
        let style = style(outcome.status);
        let (title, name) = (outcome.title(), self.patch_name(outcome));
        let reason = shown_text(outcome.reason.as_bytes());
        let _ = writeln!(
            text,
            "\n{style}{}{style:#} {title}, {name}: {reason}",
            outcome.status.as_str()
        );
        for line in outcome.lines.iter().take(SHOWN) {
            let _ = writeln!(text, "    {}", shown_text(line.as_bytes()));
        }
        if outcome.lines.len() > SHOWN {
            let _ = writeln!(
                text,
                "    ... {} more",
                super::build::counted(outcome.lines.len() - SHOWN, "line")
            );
        }
        if let Some(log) = &outcome.log {
            let _ = writeln!(text, "    log: {}", log.display());
        }
    }
}

impl Outcome {
    /// Gate and configuration: `build x86-64 gcc`.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.configuration {
            Some(configuration) => {
                format!("{} {}", self.gate, shown_text(configuration.as_bytes()))
            }
            None => self.gate.to_string(),
        }
    }

    /// One line for a person, as soon as it is known.
    #[must_use]
    pub fn line(&self) -> String {
        let patch = match self.patch {
            None => String::new(),
            Some(0) => ", cover letter".to_owned(),
            Some(number) => format!(", patch {number}"),
        };
        let cached = if self.cached { " (cached)" } else { "" };
        let reason = if self.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", shown_text(self.reason.as_bytes()))
        };
        format!(
            "{} {}{patch}{reason}{cached}",
            self.status.as_str(),
            self.title()
        )
    }
}

fn mark(outcome: &Outcome) -> String {
    let style = style(outcome.status);
    let number = outcome
        .patch
        .map_or_else(|| "-".to_owned(), |number| number.to_string());
    format!("{number}:{style}{}{style:#}", outcome.status.as_str())
}

fn style(status: Status) -> Style {
    let color = match status {
        Status::Pass => AnsiColor::Green,
        Status::Skipped => AnsiColor::Cyan,
        Status::Fail => AnsiColor::Red,
        Status::Error => AnsiColor::Yellow,
    };
    Style::new().fg_color(Some(color.into()))
}
