//! Recorded figures over bases: which of them can stand beside each other, and in which order.
//!
//! Hides the grouping. What was measured on another processor, with another compiler or in another configuration is another plot.

use std::cmp::Reverse;

use super::{Entry, Report};
use crate::bench::record::{Performance, Run};
use crate::bench::{BASE, Figure, LIMIT, Memory, table};
use crate::bot::release_key;

/// What can be compared: one series in one configuration, with one compiler on one processor.
pub(super) struct Plot<'a> {
    /// What links to it, unique in a report.
    pub(super) id: String,
    /// One for each base, the oldest first.
    pub(super) points: Vec<Point<'a>>,
}

/// What was measured on one base.
pub(super) struct Point<'a> {
    /// The base's name, or its release where the report has no record of it.
    pub(super) base: &'a str,
    /// The record of that base.
    pub(super) entry: Option<&'a Entry>,
    pub(super) performance: &'a Performance,
}

/// A setting that figures were made in; those of one setting lie on one picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    memory: Memory,
    threads: u32,
    order: u32,
    pages: u64,
}

/// The steps that are shown: the base, what the whole series makes of it, and what no code can beat by much.
pub(super) struct Steps<'a> {
    pub(super) base: &'a Figure,
    pub(super) last: &'a Figure,
    pub(super) limit: &'a Figure,
}

impl Report {
    /// The plots, sorted by series.
    pub(super) fn plots(&self) -> Vec<Plot<'_>> {
        let mut newest: Vec<&Performance> = self.performance.iter().collect();
        newest.sort_by_key(|it| Reverse(&it.run.date));
        let mut plots: Vec<Vec<&Performance>> = Vec::new();
        for performance in newest {
            let known = plots
                .iter_mut()
                .find(|plot| kind(&plot[0].run) == kind(&performance.run));
            match known {
                None => plots.push(vec![performance]),
                // Of the same base there is a newer one.
                Some(plot) if plot.iter().any(|it| it.run.tree == performance.run.tree) => {}
                Some(plot) => plot.push(performance),
            }
        }
        plots.sort_by_key(|plot| kind(&plot[0].run));
        let plots = plots.into_iter().enumerate().map(|(index, plot)| Plot {
            id: format!("performance-{}", index + 1),
            points: self.points(&plot),
        });
        plots.collect()
    }

    fn points<'a>(&'a self, plot: &[&'a Performance]) -> Vec<Point<'a>> {
        let point = |performance: &&'a Performance| {
            let run = &performance.run;
            let entry = self
                .results
                .iter()
                .find(|it| it.record.series == run.series && it.record.base.tree == run.tree);
            Point {
                base: entry.map_or(&run.release, |entry| &entry.record.base.name),
                entry,
                performance,
            }
        };
        let mut points: Vec<_> = plot.iter().map(point).collect();
        points.sort_by_cached_key(|it| {
            let time = it.entry.map(|entry| entry.record.base.time);
            (release_key(&it.performance.run.release), time, it.base)
        });
        points
    }
}

/// What runs have to have in common.
fn kind(run: &Run) -> (&str, &str, &str, &str) {
    (
        &run.series,
        &run.configuration,
        &run.compiler,
        &run.machine.cpu,
    )
}

impl Plot<'_> {
    /// One of the runs: what they have in common is the same in all.
    pub(super) fn run(&self) -> &Run {
        &self.points[0].performance.run
    }

    /// The settings to show, one an order of pages: memory that was touched before and one thread where that was measured, and of
    /// several sizes the one that most bases have, the largest of those.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let all = || {
            self.points
                .iter()
                .flat_map(|point| point.performance.figures.iter())
                .filter(|figure| figure.step == BASE)
                .map(Setting::of)
        };
        let mut settings: Vec<_> = all().filter(|it| it.is_main()).collect();
        if settings.is_empty() {
            settings = all().collect();
        }
        let count = |wanted: &Setting| all().filter(|it| it == wanted).count();
        settings.sort_by_cached_key(|it| (it.kind(), Reverse((count(it), it.pages))));
        settings.dedup_by_key(|it| it.kind());
        settings
    }

    /// The bases whose code is not of the templates and edits that were measured last.
    pub(super) fn of_other_code(&self) -> Vec<&str> {
        let runs = self.points.iter().map(|it| &it.performance.run);
        let code = runs.max_by_key(|run| &run.date).map(|run| &run.code);
        self.points
            .iter()
            .filter(|it| Some(&it.performance.run.code) != code)
            .map(|it| it.base)
            .collect()
    }
}

impl Setting {
    fn of(figure: &Figure) -> Self {
        Self {
            memory: figure.memory,
            threads: figure.threads,
            order: figure.order,
            pages: figure.pages,
        }
    }

    fn is_main(self) -> bool {
        self.memory == Memory::Touched && self.threads == 1
    }

    /// All but the size.
    fn kind(self) -> (Memory, u32, u32) {
        (self.memory, self.threads, self.order)
    }

    /// In words.
    pub(super) fn title(self) -> String {
        table::title(self.memory, self.pages, self.order, &[self.threads])
    }
}

impl Performance {
    /// The figures in a setting; none where it was not measured.
    pub(super) fn steps(&self, setting: Setting) -> Option<Steps<'_>> {
        let find = |step: &str| {
            self.figures
                .iter()
                .find(|it| it.step == step && Setting::of(it) == setting)
        };
        Some(Steps {
            base: find(BASE)?,
            last: find(self.run.patches.last()?)?,
            limit: find(LIMIT)?,
        })
    }
}

impl<'a> Steps<'a> {
    /// In the order in which they are told.
    pub(super) fn all(&self) -> [&'a Figure; 3] {
        [self.base, self.last, self.limit]
    }
}
