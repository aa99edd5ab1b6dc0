//! Figures as tables for a person: every median with its spread.
//!
//! Hides the columns.

use super::record::{Performance, Run};
use super::stats::Spread;
use super::{BASE, Figure, LIMIT, Memory, Setting};

/// All figures, and what they were measured on.
#[must_use]
pub fn text(performance: &Performance) -> String {
    let run = &performance.run;
    let mut text = head(run);
    let mut last = None;
    let width = run
        .patches
        .iter()
        .map(String::len)
        .max()
        .unwrap_or(0)
        .max(LIMIT.len())
        + 3;
    for figure in &performance.figures {
        let setting = (figure.memory, figure.pages, figure.order, figure.threads);
        if last != Some(setting) {
            last = Some(setting);
            let title = title(figure.memory, figure.pages, figure.order, &[figure.threads]);
            let other = if figure.threads > 1 {
                "times one thread"
            } else {
                ""
            };
            let head = format!(
                "{:width$}  {:25}{:23}{:23}{other}",
                "", "ns a page", "times the base", "of the limit"
            );
            text += &format!("\n{title}, {} rounds\n{}\n", figure.rounds, head.trim_end());
        }
        let number = run.patches.iter().position(|patch| *patch == figure.step);
        let step = number.map_or_else(
            || figure.step.clone(),
            |number| format!("{} {}", number + 1, figure.step),
        );
        text += &line(figure, &step, width);
    }
    text
}

fn head(run: &Run) -> String {
    let machine = &run.machine;
    let load = run.load;
    format!(
        "Linux {}, {} of {}, {}\n{}\n{}, {} CPUs{}, {} GiB, huge pages: {}, kernel {}\nload {:.2} before, {:.2} after; {} comparisons equal; median (10th to 90th percentile)\n",
        run.release,
        run.entry,
        run.object,
        run.configuration,
        run.compiler,
        machine.cpu,
        machine.cpus,
        if machine.virtual_machine {
            " (virtual machine)"
        } else {
            ""
        },
        machine.memory_gib,
        machine.huge_pages,
        machine.kernel,
        load.before,
        load.after,
        run.comparisons,
    )
}

/// What a setting is about.
#[must_use]
pub fn setting_title(setting: &Setting) -> String {
    title(
        setting.memory,
        setting.pages,
        setting.order,
        &setting.threads,
    )
}

/// What figures of these are about.
#[must_use]
pub fn title(memory: Memory, pages: u64, order: u32, threads: &[u32]) -> String {
    let pages = match order {
        0 => format!("{pages} single pages"),
        _ => format!("{pages} pages in compound pages of {}", 1_u64 << order),
    };
    let memory = match memory {
        Memory::Touched => "touched before",
        Memory::FirstTouch => "first touch",
    };
    let threads = match threads {
        [1] => "1 thread".to_owned(),
        several => {
            let several: Vec<_> = several.iter().map(ToString::to_string).collect();
            format!("{} threads", several.join(" and "))
        }
    };
    format!("{pages}, {memory}, {threads}")
}

fn line(figure: &Figure, step: &str, width: usize) -> String {
    let remark = if is_slower(figure) {
        "  slower than the base"
    } else {
        ""
    };
    let disturbed = match figure.disturbed {
        0 => String::new(),
        rounds => format!("  disturbed in {rounds} rounds"),
    };
    let one = figure.times_one_thread.map(shown).unwrap_or_default();
    let cells = format!(
        "{step:width$}  {:25}{:23}{:23}{one}",
        shown(figure.ns),
        shown(figure.times_base),
        shown(figure.of_limit),
    );
    format!("{}{remark}{disturbed}\n", cells.trim_end())
}

/// Whether even a lucky round is behind the base of the same round.
fn is_slower(figure: &Figure) -> bool {
    figure.step != BASE && figure.times_base.high < 1.0
}

fn shown(spread: Spread) -> String {
    let Spread { low, median, high } = spread;
    format!("{median:.3} ({low:.2} to {high:.2})")
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::planted;
    use super::*;

    #[test]
    fn a_step_that_is_behind_the_base_in_every_round_is_marked() {
        let mut performance = planted();
        performance.figures[2].times_base = Spread {
            low: 0.9,
            median: 0.95,
            high: 0.99,
        };
        performance.figures[3].times_base = Spread {
            low: 0.9,
            median: 0.95,
            high: 1.01,
        };
        let text = text(&performance);
        let marked: Vec<_> = text
            .lines()
            .filter(|line| line.ends_with("slower than the base"))
            .collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].starts_with("2 head-template"), "{text}");
        assert!(
            text.contains("1.900 (1.86 to 1.92)  disturbed in 1 rounds"),
            "{text}"
        );
    }
}
