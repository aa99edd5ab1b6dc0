//! Measures a series: the base's own object and the one after each patch, natively and in turn in one program.
//!
//! Hides how runs are started, watched and stopped; a caller hands over a plan and gets figures.

pub mod letter;
mod machine;
pub mod plot;
pub mod record;
mod sample;
pub mod stats;
pub mod table;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bstr::ByteSlice;
use serde::{Deserialize, Serialize};

use crate::error::{Exit, Refusal, refusal};
use crate::gate::Native;

pub use machine::{Load, Machine, load};
pub use sample::{BASE, Figure, LIMIT};

/// What the memory was before a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Used before, as the kernel's own range is when a driver is bound again.
    Touched,
    /// Never used: each run pays for its page faults.
    FirstTouch,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Sizes of the device, in PFNs.
    pub pages: Vec<u64>,
    /// Orders of compound pages.
    pub orders: Vec<u32>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// What the memory is before.
    pub memory: Vec<Memory>,
    /// How often everything runs at each placement of the code.
    pub rounds: u32,
}

/// One program run: everything in it is compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// PFNs of the device.
    pub pages: u64,
    /// Pages of a compound page, as a power of 2.
    pub order: u32,
    /// What the memory is before.
    pub memory: Memory,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// How often everything runs at each placement of the code.
    pub rounds: u32,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct Measured {
    /// By setting, number of threads and step.
    pub figures: Vec<Figure>,
    /// Whether the user stopped it: the figures are of the rounds that were complete by then.
    pub interrupted: bool,
    /// The machine's load around it.
    pub load: Load,
}

/// How far it is.
#[derive(Debug)]
pub struct Step<'a> {
    /// What is measured now.
    pub setting: &'a Setting,
    /// Its number, from 0.
    pub number: usize,
    /// Settings in all.
    pub settings: usize,
    /// Units of work done, of all [`work`].
    pub done: u64,
    /// How long the rest will take, as far as can be told.
    pub left: Option<Duration>,
}

/// The largest order, 1 GiB of 4 KiB pages; also the alignment of a thread's share.
const LARGEST_ORDER: u32 = 18;

/// Places at which the code of every step is measured.
pub const PLACEMENTS: u32 = 8;

/// As many as the harness has room for.
const MOST_THREADS: u32 = 8;

/// A sample calls a small range again until it has done so many pages.
const SAMPLE_PAGES: u64 = 1 << 22;

/// Page faults make a run so much slower, about.
const FIRST_TOUCH_WORK: u64 = 8;

/// How often to look at what has been measured.
const LOOK: Duration = Duration::from_millis(100);

impl Plan {
    /// The program runs; an error is a plan that cannot be meant (exit 2).
    pub fn settings(&self) -> Result<Vec<Setting>> {
        self.validate()?;
        let mut settings = Vec::new();
        for &memory in &self.memory {
            for &pages in &self.pages {
                for &order in self.orders.iter().filter(|order| pages >> **order > 0) {
                    let threads = self.threads.iter().copied().filter(|&threads| {
                        threads == 1
                            || memory == Memory::Touched
                                && pages / u64::from(threads) >= 1 << LARGEST_ORDER
                    });
                    let setting = Setting {
                        pages,
                        order,
                        memory,
                        threads: threads.collect(),
                        rounds: self.rounds,
                    };
                    if !setting.threads.is_empty() && !settings.contains(&setting) {
                        settings.push(setting);
                    }
                }
            }
        }
        if settings.is_empty() {
            return Err(Refusal::usage("there is nothing to measure: no order fits into the pages, or no share of them is large enough for a thread")
                .hint(format!("several threads need {} pages each, and memory that was touched", 1_u64 << LARGEST_ORDER))
                .into());
        }
        Ok(settings)
    }

    fn validate(&self) -> Result<()> {
        let wrong = if self.orders.iter().any(|order| *order > LARGEST_ORDER) {
            format!("orders go up to {LARGEST_ORDER}")
        } else if self
            .threads
            .iter()
            .any(|threads| !(1..=MOST_THREADS).contains(threads))
        {
            format!("1 to {MOST_THREADS} threads can be measured")
        } else if self.pages.contains(&0) || self.rounds == 0 {
            "it takes at least one page and one round".to_owned()
        } else {
            return fits(self.pages.iter().copied().max().unwrap_or(0));
        };
        Err(Refusal::usage(wrong).into())
    }
}

/// Refuses more pages than there is memory for their struct pages.
fn fits(pages: u64) -> Result<()> {
    const LARGEST_STRUCT_PAGE: u64 = 96;
    let needed = pages.saturating_mul(LARGEST_STRUCT_PAGE);
    match machine::available() {
        Some(available) if needed > available => Err(Refusal::usage(format!(
            "{pages} struct pages may take {} MiB, and {} MiB are free",
            needed >> 20,
            available >> 20
        ))
        .hint("measure fewer with `--pages`")
        .into()),
        _ => Ok(()),
    }
}

impl Setting {
    /// Calls in one sample.
    #[must_use]
    pub fn repeat(&self) -> u32 {
        let repeat = match self.memory {
            Memory::Touched => SAMPLE_PAGES / self.pages.max(1),
            Memory::FirstTouch => 1,
        };
        u32::try_from(repeat).unwrap_or(u32::MAX).max(1)
    }

    /// Arguments of the harness.
    fn arguments(&self) -> Vec<String> {
        let threads: Vec<_> = self.threads.iter().map(ToString::to_string).collect();
        let fresh = u32::from(self.memory == Memory::FirstTouch);
        [
            ("--pages", self.pages.to_string()),
            ("--rounds", self.rounds.to_string()),
            ("--repeat", self.repeat().to_string()),
            ("--order", self.order.to_string()),
            ("--threads", threads.join(",")),
            ("--fresh", fresh.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    /// Runs in all, of a series of so many patches.
    fn samples(&self, patches: usize) -> u64 {
        u64::from(PLACEMENTS)
            * u64::from(self.rounds)
            * self.threads.len() as u64
            * (patches as u64 + 2)
    }

    /// How much work one run is, in units that only compare with each other.
    fn sample_work(&self) -> u64 {
        let faults = match self.memory {
            Memory::Touched => 1,
            Memory::FirstTouch => FIRST_TOUCH_WORK,
        };
        (self.pages * u64::from(self.repeat()) * faults / 1024).max(1)
    }
}

/// Units of work in all: what [`Step::done`] counts up to.
#[must_use]
pub fn work(settings: &[Setting], patches: usize) -> u64 {
    settings
        .iter()
        .map(|setting| setting.samples(patches) * setting.sample_work())
        .sum()
}

/// Measures each setting. When the user stops it, what is there by then is what came out.
pub fn measure(
    native: &Native,
    settings: &[Setting],
    patches: &[String],
    watch: &mut dyn FnMut(&Step<'_>),
) -> Result<Measured> {
    let before = load();
    let mut measured = Measured {
        figures: Vec::new(),
        interrupted: false,
        load: Load {
            before,
            after: before,
        },
    };
    let mut watcher = Watcher {
        since: Instant::now(),
        work: work(settings, patches.len()),
        behind: 0,
        watch,
    };
    for (number, setting) in settings.iter().enumerate() {
        let log = native.run_directory.join(format!("measure-{number}.log"));
        let ended = run(native, setting, &log, |output| {
            watcher.look(settings, number, sample::count(output));
        });
        let output = fs::read(&log).unwrap_or_default();
        match ended {
            Err(error) if refusal(&error).is_some_and(|it| it.exit == Exit::Interrupted) => {
                measured.interrupted = true;
            }
            Err(error) => return Err(error),
            Ok(end) if end.success() => {}
            Ok(end) => return Err(broke(&format!("{end:?}"), &output).into()),
        }
        measured
            .figures
            .extend(sample::figures(&output, setting, patches)?);
        if measured.interrupted {
            break;
        }
        watcher.behind += setting.samples(patches.len()) * setting.sample_work();
    }
    measured.load.after = load();
    Ok(measured)
}

/// Runs the program on one setting; `look` sees what it has printed so far, now and then.
fn run(
    native: &Native,
    setting: &Setting,
    log: &std::path::Path,
    mut look: impl FnMut(&[u8]),
) -> Result<crate::exec::End> {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| native.measure(&setting.arguments(), log));
        look(b"");
        while !run.is_finished() {
            std::thread::sleep(LOOK);
            look(&fs::read(log).unwrap_or_default());
        }
        match run.join() {
            Ok(ended) => ended.context("cannot run the harness"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn broke(end: &str, output: &[u8]) -> Refusal {
    let lines = output.lines().filter(|line| !line.starts_with(b"{"));
    Refusal::tool(format!("the harness broke off: {end}"))
        .details(lines.map(|line| line.to_str_lossy().into_owned()).collect())
        .hint("it needs memory for all struct pages; try fewer with `--pages`")
}

/// Counts what is done and guesses what is left.
struct Watcher<'a> {
    since: Instant,
    work: u64,
    behind: u64,
    watch: &'a mut dyn FnMut(&Step<'_>),
}

impl Watcher<'_> {
    fn look(&mut self, settings: &[Setting], number: usize, samples: usize) {
        let setting = &settings[number];
        let done = self.behind + samples as u64 * setting.sample_work();
        (self.watch)(&Step {
            setting,
            number,
            settings: settings.len(),
            done,
            left: left(self.since.elapsed(), done, self.work),
        });
    }
}

/// What the rest takes if it goes on like this; `None` while too little is done to tell.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn left(elapsed: Duration, done: u64, work: u64) -> Option<Duration> {
    if done == 0 || done * 100 < work && elapsed < Duration::from_secs(5) {
        return None;
    }
    Some(elapsed.mul_f64(work.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            pages: vec![1 << 20, 1 << 14],
            orders: vec![0, 18],
            threads: vec![1, 2],
            memory: vec![Memory::Touched, Memory::FirstTouch],
            rounds: 9,
        }
    }

    #[test]
    fn a_plan_leaves_out_what_does_not_fit() {
        let settings = plan().settings().expect("settings");
        let short: Vec<_> = settings
            .iter()
            .map(|it| {
                (
                    it.memory,
                    it.pages,
                    it.order,
                    it.threads.as_slice(),
                    it.repeat(),
                )
            })
            .collect();
        let (touched, first) = (Memory::Touched, Memory::FirstTouch);
        let expected: [(_, _, _, &[u32], _); 6] = [
            (touched, 1 << 20, 0, &[1, 2], 4),
            (touched, 1 << 20, 18, &[1, 2], 4),
            (touched, 1 << 14, 0, &[1], 256),
            (first, 1 << 20, 0, &[1], 1),
            (first, 1 << 20, 18, &[1], 1),
            (first, 1 << 14, 0, &[1], 1),
        ];
        assert_eq!(short, expected);
    }

    #[test]
    fn a_plan_that_cannot_be_meant_is_refused() {
        let wrong = [
            Plan {
                orders: vec![19],
                ..plan()
            },
            Plan {
                threads: vec![0],
                ..plan()
            },
            Plan {
                threads: vec![9],
                ..plan()
            },
            Plan {
                rounds: 0,
                ..plan()
            },
            Plan {
                pages: vec![0],
                ..plan()
            },
            Plan {
                pages: vec![u64::MAX],
                ..plan()
            },
            Plan {
                pages: vec![100],
                orders: vec![9],
                ..plan()
            },
            Plan {
                pages: vec![1000],
                threads: vec![2],
                ..plan()
            },
        ];
        for plan in wrong {
            let error = plan.settings().expect_err("refused");
            assert_eq!(crate::error::exit_of(&error), Exit::Usage, "{plan:?}");
        }
    }

    #[test]
    fn the_harness_is_told_all_of_a_setting() {
        let setting = &plan().settings().expect("settings")[0];
        assert_eq!(
            setting.arguments().join(" "),
            "--pages 1048576 --rounds 9 --repeat 4 --order 0 --threads 1,2 --fresh 0"
        );
        assert_eq!(setting.samples(4), 8 * 9 * 2 * 6);
    }

    #[test]
    fn the_time_left_is_told_once_it_can_be() {
        let second = Duration::from_secs(1);
        assert_eq!(left(second, 0, 100), None);
        assert_eq!(left(second, 1, 1000), None);
        assert_eq!(left(10 * second, 25, 100), Some(30 * second));
        assert_eq!(left(second, 100, 100), Some(Duration::ZERO));
    }
}
