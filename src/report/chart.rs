//! One setting over bases as the page draws it: coordinates, labels, and the same figures as a table.
//!
//! Hides the geometry. A picture is as wide as its bases need and is never scaled, so that its text stays readable on a telephone.

use serde::Serialize;

use super::performance::{Plot, Point, Setting, Steps};
use super::shown;
use crate::bench::plot::{nice_top, tick};
use crate::bench::stats::Estimate;

const LEFT: f64 = 38.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
/// Of the part with the lines.
const INNER: f64 = 190.0;
const BOTTOM: f64 = 26.0;
/// The same where names are so long that they stand aslant.
const DEEP_BOTTOM: f64 = 92.0;
/// As wide as a telephone shows without scrolling.
const LEAST_WIDTH: f64 = 290.0;
/// Between bases.
const STEP: f64 = 62.0;
/// A name with more characters stands aslant.
const UPRIGHT: usize = 8;
/// A name with more characters is cut.
const LONGEST: usize = 16;
/// How far lines stand beside each other, so that whiskers do not cover one another.
const ASIDE: f64 = 6.0;

/// The lines by class, which the style sheet and the key know as well.
const LINES: [&str; 3] = ["of-base", "of-last", "of-limit"];

/// A picture and its table.
#[derive(Serialize)]
pub(super) struct Chart {
    title: String,
    width: String,
    height: String,
    right: String,
    bottom: String,
    is_aslant: bool,
    ticks: Vec<Tick>,
    names: Vec<Name>,
    lines: Vec<Line>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Tick {
    y: String,
    label: String,
}

#[derive(Serialize)]
struct Name {
    x: String,
    label: String,
}

#[derive(Serialize)]
struct Line {
    class: &'static str,
    points: String,
    marks: Vec<Mark>,
}

/// A median with whiskers.
#[derive(Serialize)]
struct Mark {
    x: String,
    y: String,
    low: String,
    high: String,
    title: String,
}

#[derive(Serialize)]
struct Row {
    base: String,
    link: String,
    date: String,
    cells: Vec<String>,
}

/// Where values and bases are.
struct Axes {
    tick: f64,
    top: f64,
    step: f64,
}

impl Chart {
    /// The bases of a plot that were measured in a setting; `None` where there are none.
    pub(super) fn of(plot: &Plot<'_>, setting: Setting) -> Option<Self> {
        let points: Vec<_> = plot
            .points
            .iter()
            .filter_map(|point| Some((point, point.performance.steps(setting)?)))
            .collect();
        let highest = points
            .iter()
            .flat_map(|(_, steps)| steps.all())
            .map(|figure| figure.ns.placements.high)
            .reduce(f64::max)?;
        #[expect(clippy::cast_precision_loss, reason = "few bases")]
        let count = points.len() as f64;
        let width = (LEFT + count * STEP + RIGHT).max(LEAST_WIDTH);
        let axes = Axes {
            tick: tick(highest),
            top: nice_top(highest),
            step: (width - LEFT - RIGHT) / count,
        };
        let is_aslant = points
            .iter()
            .any(|(point, _)| point.base.chars().count() > UPRIGHT);
        let bottom = if is_aslant { DEEP_BOTTOM } else { BOTTOM };
        Some(Self {
            title: setting.title(),
            width: at(width),
            height: at(TOP + INNER + bottom),
            right: at(width - RIGHT),
            bottom: at(TOP + INNER),
            is_aslant,
            ticks: axes.ticks(),
            names: axes.names(&points),
            lines: (0..LINES.len())
                .map(|line| axes.line(&points, line))
                .collect(),
            rows: points.iter().map(row).collect(),
        })
    }
}

impl Axes {
    fn y(&self, value: f64) -> f64 {
        TOP + INNER * (1.0 - value / self.top)
    }

    #[expect(clippy::cast_precision_loss, reason = "few bases")]
    fn x(&self, base: usize) -> f64 {
        LEFT + self.step * (base as f64 + 0.5)
    }

    fn ticks(&self) -> Vec<Tick> {
        let decimals = usize::from(self.tick < 1.0) + usize::from(self.tick < 0.1);
        let values = (0..=20_u8).map(|number| f64::from(number) * self.tick);
        values
            .take_while(|value| *value <= self.top + self.tick / 2.0)
            .map(|value| Tick {
                y: at(self.y(value)),
                label: format!("{value:.decimals$}"),
            })
            .collect()
    }

    fn names(&self, points: &[(&Point<'_>, Steps<'_>)]) -> Vec<Name> {
        points
            .iter()
            .enumerate()
            .map(|(index, (point, _))| Name {
                x: at(self.x(index)),
                label: cut(point.base),
            })
            .collect()
    }

    fn line(&self, points: &[(&Point<'_>, Steps<'_>)], line: usize) -> Line {
        let marks: Vec<_> = points
            .iter()
            .enumerate()
            .map(|(index, (point, steps))| {
                let ns = steps.all()[line].ns;
                #[expect(clippy::cast_precision_loss, reason = "three at most")]
                let x = self.x(index) + (line as f64 - 1.0) * ASIDE;
                Mark {
                    x: at(x),
                    y: at(self.y(ns.median())),
                    low: at(self.y(ns.placements.low)),
                    high: at(self.y(ns.placements.high)),
                    title: shown(&format!(
                        "{}, {}: {} ns a page",
                        point.base,
                        ["base", "last patch", "limit"][line],
                        figure(ns)
                    )),
                }
            })
            .collect();
        let points: Vec<_> = marks
            .iter()
            .map(|mark| format!("{},{}", mark.x, mark.y))
            .collect();
        Line {
            class: LINES[line],
            points: points.join(" "),
            marks,
        }
    }
}

fn row((point, steps): &(&Point<'_>, Steps<'_>)) -> Row {
    let cells = steps.all().map(|it| figure(it.ns)).into_iter();
    Row {
        base: shown(point.base),
        link: point.entry.map(super::Entry::anchor).unwrap_or_default(),
        date: shown(&point.performance.run.date),
        cells: cells.chain([times(steps)]).collect(),
    }
}

/// How much faster than the base the whole series makes it.
pub(super) fn times(steps: &Steps<'_>) -> String {
    format!("{:.2}", steps.last.times_base.median())
}

/// A median with its spread between placements of the code, and in time.
pub(super) fn figure(estimate: Estimate) -> String {
    estimate.shown(2)
}

fn at(value: f64) -> String {
    format!("{value:.1}")
}

/// A name that fits below the axis.
fn cut(name: &str) -> String {
    let name = shown(name);
    if name.chars().count() <= LONGEST {
        return name;
    }
    name.chars().take(LONGEST - 1).chain(['…']).collect()
}
