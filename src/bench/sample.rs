//! What the harness printed, as figures: for each step of the series how long a page takes, and how that compares.
//!
//! Hides rounds that were cut short: only what all contenders ran in the same round is compared.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use bstr::ByteSlice;
use serde::{Deserialize, Serialize};

use super::stats::{Estimate, Measurement};
use super::{Memory, PLACEMENTS, Setting};
use crate::error::Refusal;
use crate::ui::shown_text;

/// The step that every other is compared with.
pub const BASE: &str = "base";
/// The fill: what no code can beat by much.
pub const LIMIT: &str = "limit";

/// What one step of the series takes in one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// PFNs of the device.
    pub pages: u64,
    /// Pages of a compound page, as a power of 2.
    pub order: u32,
    /// What the memory was before.
    pub memory: Memory,
    /// Threads that shared the pages.
    pub threads: u32,
    /// `base`, a patch by its name (what it and those before it make together), or `limit`.
    pub step: String,
    /// Placements of the code that were measured.
    pub placements: usize,
    /// Rounds that count, of all placements.
    pub rounds: usize,
    /// Rounds in which the host took a core from several threads although they tried again.
    pub disturbed: usize,
    /// Nanoseconds a page: CPU time of one thread, wall time of several.
    pub ns: Estimate,
    /// The base's time over this one's, in the same round.
    pub times_base: Estimate,
    /// This one's time over the limit's, in the same round.
    pub of_limit: Estimate,
    /// One thread's time over this one's, in the same round; `None` for one thread, and where one was not measured.
    pub times_one_thread: Option<Estimate>,
}

/// Less than this is no difference: the same code, with something in front that moves it, differs by so much.
const RESOLUTION: f64 = 0.01;

impl Figure {
    /// Whether a patch takes longer than the base wherever the code lies, and by more than rounds of one placement differ. What is true at
    /// some placements only is the placements' doing, and with fewer than [`PLACEMENTS`] nothing is said.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        let ratio = self.times_base.placements;
        ![BASE, LIMIT].contains(&self.step.as_str())
            && self.placements >= PLACEMENTS as usize
            && ratio.high < 1.0
            && ratio.median < 1.0 - RESOLUTION.max(self.times_base.time.relative())
    }
}

/// A run of one contender, as the harness prints it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[serde(rename = "record")]
    _record: String,
    round: u32,
    placement: u32,
    variant: String,
    threads: u32,
    cpu_ns: f64,
    wall_ns: f64,
    #[serde(rename = "retries")]
    _retries: u32,
}

/// Wall time above this many times the CPU time: somebody else had the core. The harness has the same number.
const DISTURBED: f64 = 1.1;

/// A variant's name and a number of threads.
type Contender = (String, u32);

/// What ran in one round, all of it at the same placement.
type Round = BTreeMap<Contender, Sample>;

/// The number of runs that `output` tells of: what a progress bar shows.
#[must_use]
pub(super) fn count(output: &[u8]) -> usize {
    output.lines().filter(|line| is_sample(line)).count()
}

fn is_sample(line: &[u8]) -> bool {
    line.starts_with(b"{\"record\":\"sample\"") && line.ends_with(b"}")
}

/// The figures of one setting. `patches` are the names of the variants `p1`, `p2` ... Nothing is measured until each contender has
/// run once: no figures then. A contender that is missing or is not known is an error: this is not the harness that was asked.
pub(super) fn figures(output: &[u8], setting: &Setting, patches: &[String]) -> Result<Vec<Figure>> {
    let rounds = complete_rounds(read(output)?, setting, patches)?;
    let mut figures = Vec::new();
    if rounds.is_empty() {
        return Ok(figures);
    }
    for &threads in &setting.threads {
        for (variant, step) in variants(patches) {
            let figure = figure(&rounds, setting, threads, &variant, step);
            figures.push(figure.ok_or_else(|| unusable("a run took no time at all"))?);
        }
    }
    Ok(figures)
}

fn read(output: &[u8]) -> Result<Vec<Sample>> {
    output
        .lines()
        .filter(|line| is_sample(line))
        .map(|line| {
            serde_json::from_slice(line)
                .map_err(|error| unusable(&format!("{error} in `{}`", shown_text(line))))
        })
        .collect()
}

/// The harness's name of each variant, and the step that it is.
fn variants(patches: &[String]) -> impl Iterator<Item = (String, &str)> {
    let numbered = patches.iter().enumerate();
    let patches = numbered.map(|(index, name)| (format!("p{}", index + 1), name.as_str()));
    [(BASE.to_owned(), BASE)]
        .into_iter()
        .chain(patches)
        .chain([(LIMIT.to_owned(), LIMIT)])
}

/// The rounds in which every contender ran, in order.
fn complete_rounds(
    samples: Vec<Sample>,
    setting: &Setting,
    patches: &[String],
) -> Result<Vec<Round>> {
    let mut rounds: BTreeMap<u32, Round> = BTreeMap::new();
    let known: Vec<_> = variants(patches).map(|(variant, _)| variant).collect();
    for sample in samples {
        if !known.contains(&sample.variant) || !setting.threads.contains(&sample.threads) {
            return Err(unusable(&format!(
                "it ran `{}`",
                shown_text(sample.variant.as_bytes())
            )));
        }
        let round = rounds.entry(sample.round).or_default();
        let placement = sample.placement;
        if round.values().any(|other| other.placement != placement) {
            return Err(unusable("it ran several placements in a round"));
        }
        let contender = (sample.variant.clone(), sample.threads);
        if round.insert(contender, sample).is_some() {
            return Err(unusable("it ran something twice in a round"));
        }
    }
    let all = known.len() * setting.threads.len();
    // Only the last round can have been cut short.
    let last = rounds.keys().next_back().copied();
    if rounds
        .iter()
        .any(|(number, round)| round.len() < all && Some(*number) != last)
    {
        return Err(unusable("it left something out in a round"));
    }
    Ok(rounds
        .into_values()
        .filter(|round| round.len() == all)
        .collect())
}

fn figure(
    rounds: &[Round],
    setting: &Setting,
    threads: u32,
    variant: &str,
    step: &str,
) -> Option<Figure> {
    let times = |variant: &str, threads: u32| -> Option<Vec<Measurement>> {
        let one = |round: &Round| {
            let sample = round.get(&(variant.to_owned(), threads))?;
            Some(Measurement {
                placement: sample.placement,
                value: time(sample, setting),
            })
        };
        rounds.iter().map(one).collect()
    };
    let mine = times(variant, threads)?;
    let one = if threads > 1 { times(variant, 1) } else { None };
    let placements: BTreeSet<u32> = mine.iter().map(|it| it.placement).collect();
    let disturbed = rounds.iter().filter(|round| {
        let sample = round.get(&(variant.to_owned(), threads));
        sample.is_some_and(|sample| threads > 1 && sample.wall_ns > DISTURBED * sample.cpu_ns)
    });
    Some(Figure {
        pages: setting.pages,
        order: setting.order,
        memory: setting.memory,
        threads,
        step: step.to_owned(),
        placements: placements.len(),
        rounds: rounds.len(),
        disturbed: disturbed.count(),
        ns: Estimate::of(&mine)?,
        times_base: Estimate::of_ratios(&times(BASE, threads)?, &mine)?,
        of_limit: Estimate::of_ratios(&mine, &times(LIMIT, threads)?)?,
        times_one_thread: one.and_then(|one| Estimate::of_ratios(&one, &mine)),
    })
}

/// Nanoseconds a page.
fn time(sample: &Sample, setting: &Setting) -> f64 {
    let all = if sample.threads > 1 {
        sample.wall_ns
    } else {
        sample.cpu_ns
    };
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 pages")]
    let pages = (setting.pages * u64::from(setting.repeat())) as f64;
    all / pages
}

fn unusable(why: &str) -> anyhow::Error {
    Refusal::tool(format!(
        "the harness measured something else than it was asked to: {why}"
    ))
    .hint("this is a fault of the harness; `harness.toml` says how it is run")
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(threads: &[u32]) -> Setting {
        Setting {
            pages: 1 << 22,
            order: 9,
            memory: Memory::Touched,
            threads: threads.to_vec(),
            rounds: 3,
        }
    }

    fn line(round: u32, variant: &str, threads: u32, cpu: f64, wall: f64) -> String {
        let pages = f64::from(1 << 22);
        format!(
            "{{\"record\":\"sample\",\"round\":{round},\"placement\":0,\"variant\":\"{variant}\",\"threads\":{threads},\"cpu_ns\":{:.0},\"wall_ns\":{:.0},\"retries\":0}}\n",
            cpu * pages,
            wall * pages
        )
    }

    /// Planted: the base takes 12 ns a page, the patch 4, the limit 3; every round is slower than the one before.
    fn planted(rounds: u32) -> String {
        let mut text = "{\"record\":\"layout\"}\nwarning: talk\n".to_owned();
        for round in 0..rounds {
            let slow = f64::from(round + 1);
            text += &line(round, "p1", 1, 4.0 * slow, 99.0);
            text += &line(round, "base", 1, 12.0 * slow, 99.0);
            text += &line(round, "limit", 1, 3.0 * slow, 99.0);
        }
        text
    }

    fn patches() -> Vec<String> {
        vec!["fast".to_owned()]
    }

    fn step<'a>(figures: &'a [Figure], step: &str, threads: u32) -> &'a Figure {
        figures
            .iter()
            .find(|it| it.step == step && it.threads == threads)
            .expect("a figure")
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn planted_runs_give_the_planted_figures() {
        let figures = figures(planted(3).as_bytes(), &setting(&[1]), &patches()).expect("figures");
        assert_eq!(
            figures
                .iter()
                .map(|it| it.step.as_str())
                .collect::<Vec<_>>(),
            ["base", "fast", "limit"]
        );
        let fast = step(&figures, "fast", 1);
        assert_eq!(
            (fast.rounds, fast.disturbed, fast.times_one_thread),
            (3, 0, None)
        );
        assert!(close(fast.ns.median(), 8.0), "{fast:?}");
        assert!(close(fast.times_base.median(), 3.0), "{fast:?}");
        assert!(close(fast.times_base.relative(), 0.0), "{fast:?}");
        assert!(close(fast.of_limit.median(), 4.0 / 3.0));
        assert!(close(step(&figures, "limit", 1).times_base.median(), 4.0));
        assert!(close(step(&figures, "base", 1).times_base.median(), 1.0));
    }

    #[test]
    fn a_round_that_was_cut_short_does_not_count() {
        let text = planted(2) + &line(2, "p1", 1, 500.0, 500.0) + "{\"record\":\"sample\",\"rou";
        let figures = figures(text.as_bytes(), &setting(&[1]), &patches()).expect("figures");
        assert_eq!(step(&figures, "fast", 1).rounds, 2);
        assert!(close(step(&figures, "fast", 1).ns.median(), 6.0));
        assert_eq!(count(text.as_bytes()), 7);
    }

    #[test]
    fn nothing_is_said_before_each_contender_has_run() {
        let text = line(0, "p1", 1, 4.0, 4.0);
        assert_eq!(
            super::figures(text.as_bytes(), &setting(&[1]), &patches()).expect("none"),
            []
        );
    }

    #[test]
    fn several_threads_count_by_the_wall_and_beside_one_thread_of_the_same_round() {
        let mut text = planted(2);
        for round in 0..2 {
            let slow = f64::from(round + 1);
            for (variant, one) in [("p1", 4.0), ("base", 12.0), ("limit", 3.0)] {
                text += &line(round, variant, 2, one / 2.0 * slow, one / 1.9 * slow);
            }
        }
        let text = text.replacen(
            "\"threads\":2,\"cpu_ns\":8388608",
            "\"threads\":2,\"cpu_ns\":1",
            1,
        );
        let figures = figures(text.as_bytes(), &setting(&[1, 2]), &patches()).expect("figures");
        let fast = step(&figures, "fast", 2);
        assert!(
            close(fast.times_one_thread.expect("one thread").median(), 1.9),
            "{fast:?}"
        );
        assert_eq!(
            (fast.disturbed, step(&figures, "base", 2).disturbed),
            (1, 0)
        );
    }

    /// The patch's figure of rounds that take turns among `placements`, three each, by what the base and the patch take at a placement.
    fn at(placements: u32, times: impl Fn(u32) -> (f64, f64)) -> Figure {
        let noise = |round: u32| 1.0 + f64::from(round % 5) / 2000.0;
        rounds(placements, |round| {
            let (base, patch) = times(round % placements);
            (base, patch * noise(round))
        })
    }

    /// The patch where it takes this many times as long as the base in a round.
    fn restless(times: impl Fn(u32) -> f64) -> Figure {
        rounds(8, |round| (3.0, 3.0 * times(round)))
    }

    fn rounds(placements: u32, times: impl Fn(u32) -> (f64, f64)) -> Figure {
        let mut text = String::new();
        for round in 0..3 * placements {
            let placement = round % placements;
            let (base, patch) = times(round);
            for (variant, time) in [("base", base), ("p1", patch), ("limit", 3.0)] {
                let line = line(round, variant, 1, time, time);
                let placed = format!("\"placement\":{placement},");
                text += &line.replace("\"placement\":0,", &placed);
            }
        }
        let figures = figures(text.as_bytes(), &setting(&[1]), &patches()).expect("figures");
        step(&figures, "fast", 1).clone()
    }

    #[test]
    fn slower_is_only_what_is_so_wherever_the_code_lies() {
        // A loop that takes three times as long in one place, and a copy of it that is moved on by one placement.
        let place = |placement: u32| if placement % 8 == 5 { 9.0 } else { 3.0 };
        let padded = at(8, |placement| (place(placement), place(placement + 1)));
        assert!(!padded.is_slower(), "{padded:?}");
        assert!(
            padded.times_base.placements.high > 2.9 && padded.placements == 8,
            "{padded:?}"
        );
        let slower = at(8, |placement| (place(placement), place(placement) * 1.1));
        assert!(slower.is_slower(), "{slower:?}");
        let noise = at(8, |placement| (place(placement), place(placement) * 1.004));
        assert!(!noise.is_slower(), "{noise:?}");
        // Rounds that differ by a tenth say nothing about a fiftieth.
        let restless = restless(|round| if round / 8 == 1 { 1.12 } else { 1.02 });
        assert!(!restless.is_slower(), "{restless:?}");
        let few = at(7, |placement| (place(placement), place(placement) * 1.1));
        assert!(!few.is_slower(), "{few:?}");
        let once = at(8, |placement| (3.0, if placement == 2 { 2.9 } else { 3.3 }));
        assert!(!once.is_slower(), "{once:?}");
    }

    #[test]
    fn another_harness_is_noticed() {
        let all = |text: String| {
            figures(text.as_bytes(), &setting(&[1]), &patches())
                .expect_err("unusable")
                .to_string()
        };
        assert!(all(planted(2) + &line(1, "p7", 1, 1.0, 1.0)).contains("`p7`"));
        assert!(all(planted(2) + &line(1, "p1", 1, 1.0, 1.0)).contains("twice"));
        assert!(
            all(planted(1) + &line(5, "p1", 1, 1.0, 1.0) + &line(6, "p1", 1, 1.0, 1.0))
                .contains("left something out")
        );
        assert!(all(planted(2).replace("\"round\":1", "\"round\":-1")).contains("`{"));
        assert!(
            all(planted(1).replacen("\"placement\":0", "\"placement\":1", 1))
                .contains("several placements")
        );
        assert!(
            all(line(0, "base", 1, 1.0, 1.0)
                + &line(0, "p1", 1, 0.0, 1.0)
                + &line(0, "limit", 1, 1.0, 1.0))
            .contains("no time")
        );
    }
}
