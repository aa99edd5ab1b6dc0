//! Figures as tables for a person: every median with its spread.
//!
//! Hides the columns.

use super::record::{Performance, Run};
use super::stats::Estimate;
use super::{Figure, LIMIT, Memory, Setting};

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
                "{:width$}  {:33}{:31}{:31}{other}",
                "", "ns a page", "times the base", "of the limit"
            );
            text += &format!(
                "\n{title}, {} rounds at {} placements\n{}\n",
                figure.rounds,
                figure.placements,
                head.trim_end()
            );
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
        "Linux {}, {} of {}, {}\n{}\n{}, {} CPUs{}, {} GiB, huge pages: {}, kernel {}\nload {:.2} before, {:.2} after; {} comparisons equal\n\
         median of the placements (lowest to highest placement; spread in time)\n",
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
    let remark = if figure.is_slower() {
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
        "{step:width$}  {:33}{:31}{:31}{one}",
        shown(figure.ns),
        shown(figure.times_base),
        shown(figure.of_limit),
    );
    format!("{}{remark}{disturbed}\n", cells.trim_end())
}

fn shown(estimate: Estimate) -> String {
    estimate.shown(3)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::planted;
    use super::super::stats::Spread;
    use super::*;

    #[test]
    fn a_step_that_is_behind_the_base_at_every_placement_is_marked() {
        let mut performance = planted();
        for (index, high) in [(2, 0.99), (3, 1.01)] {
            performance.figures[index].times_base.placements = Spread {
                low: 0.9,
                median: 0.95,
                high,
            };
        }
        let text = text(&performance);
        let marked: Vec<_> = text
            .lines()
            .filter(|line| line.ends_with("slower than the base"))
            .collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].starts_with("2 head-template"), "{text}");
        assert!(
            text.contains("1.900 (1.86 to 1.92; 2 %)  disturbed in 1 rounds"),
            "{text}"
        );
    }
}
