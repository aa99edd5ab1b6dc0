//! Figures as the text of a mail: plain ASCII tables of at most 72 columns, and a paragraph that says how they were measured.
//!
//! Hides which figures go into a patch's message and which into the cover letter.

use super::record::Performance;
use super::stats::Estimate;
use super::{Figure, Memory};

/// The widest line.
const WIDTH: usize = 72;
/// The first column.
const LABEL: usize = 10;
/// Orders beside each other in one table.
const COLUMNS: usize = 3;

/// Figures that spread further say too little about code: nobody is told them in a letter.
const NOISE: f64 = 0.25;

/// A table: what belongs on one sheet, in columns by order.
struct Sheet<'a> {
    memory: Memory,
    pages: u64,
    threads: u32,
    figures: Vec<&'a Figure>,
}

/// The text for the message of patch `number` (from 1): the steps up to it, on the largest range that was touched before. `None` is the
/// cover letter: everything. Empty where there is nothing to show.
#[must_use]
pub fn text(performance: &Performance, number: Option<usize>) -> String {
    let mut sheets = sheets(&performance.figures);
    sheets.retain(|sheet| sheet.noise() <= NOISE);
    if number.is_some() {
        sheets.retain(Sheet::is_main);
        sheets.truncate(1);
    }
    let steps = steps(performance, number);
    let mut blocks = Vec::new();
    let mut shown: Vec<&Figure> = Vec::new();
    for sheet in &sheets {
        blocks.push(block(performance, sheet, &steps));
        shown.extend(
            sheet
                .figures
                .iter()
                .filter(|figure| steps.contains(&figure.step.as_str())),
        );
    }
    if shown.is_empty() {
        return String::new();
    }
    blocks.push(wrapped(&how(performance, &shown)));
    blocks.join("\n\n")
}

/// Why there is nothing to show in the message of a patch, if so: there, the largest range that was touched before is shown.
#[must_use]
pub fn unfit(performance: &Performance) -> Option<String> {
    let sheets = sheets(&performance.figures);
    let main = sheets.iter().find(|sheet| sheet.is_main());
    let Some(main) = main else {
        return Some(
            "nothing was measured on memory that was touched before, with one thread".to_owned(),
        );
    };
    (main.noise() > NOISE).then(|| {
        format!(
            "a figure spreads by {:.0} %, {:.0} % are allowed; measure again on a machine that does nothing else",
            main.noise() * 100.0,
            NOISE * 100.0
        )
    })
}

impl Sheet<'_> {
    /// Whether it is of the kind that a patch's message shows.
    fn is_main(&self) -> bool {
        self.memory == Memory::Touched && self.threads == 1
    }

    /// How far the figure that spreads most is from its median.
    fn noise(&self) -> f64 {
        let relative = self.figures.iter().map(|figure| figure.ns.relative());
        relative.fold(0.0, f64::max)
    }
}

/// The steps to show: the base, the patches up to `number`, the limit.
fn steps(performance: &Performance, number: Option<usize>) -> Vec<&str> {
    let all: Vec<_> = performance.run.steps().collect();
    let patches = performance.run.patches.len();
    let last = number.unwrap_or(patches).min(patches);
    all.iter()
        .take(last + 1)
        .chain(all.last())
        .copied()
        .collect()
}

/// What the figures fill: touched memory before memory that was not, larger ranges before smaller ones, one thread before several.
fn sheets(figures: &[Figure]) -> Vec<Sheet<'_>> {
    let mut sheets: Vec<Sheet<'_>> = Vec::new();
    for figure in figures {
        let same = |sheet: &&mut Sheet<'_>| {
            (sheet.memory, sheet.pages, sheet.threads)
                == (figure.memory, figure.pages, figure.threads)
        };
        match sheets.iter_mut().find(same) {
            Some(sheet) => sheet.figures.push(figure),
            None => sheets.push(Sheet {
                memory: figure.memory,
                pages: figure.pages,
                threads: figure.threads,
                figures: vec![figure],
            }),
        }
    }
    sheets.sort_by_key(|sheet| (sheet.memory, std::cmp::Reverse(sheet.pages), sheet.threads));
    sheets
}

fn block(performance: &Performance, sheet: &Sheet<'_>, steps: &[&str]) -> String {
    let mut orders: Vec<u32> = sheet.figures.iter().map(|figure| figure.order).collect();
    orders.sort_unstable();
    orders.dedup();
    let mut lines = vec![title(sheet)];
    for orders in orders.chunks(COLUMNS) {
        lines.push(String::new());
        let head: Vec<_> = orders
            .iter()
            .map(|order| format!("{:>20}", column(*order)))
            .collect();
        let head = head.concat();
        lines.push(format!("  {:LABEL$}{head}", ""));
        for step in steps {
            let cells: String = orders
                .iter()
                .map(|order| {
                    let figure = sheet
                        .figures
                        .iter()
                        .find(|it| it.order == *order && it.step == *step);
                    figure.map_or_else(|| " ".repeat(20), |figure| cell(figure))
                })
                .collect();
            let label = performance.run.step_label(step);
            lines.push(format!("  {label:LABEL$}{cells}").trim_end().to_owned());
        }
    }
    lines.join("\n")
}

fn title(sheet: &Sheet<'_>) -> String {
    let memory = match sheet.memory {
        Memory::Touched => "memory touched before",
        Memory::FirstTouch => "first touch, with its page faults",
    };
    let (threads, ratio) = match sheet.threads {
        1 => (String::new(), "base"),
        several => (format!(", {several} threads"), "one thread"),
    };
    format!(
        "{} struct pages, {memory}{threads}.\nNanoseconds a page, and times as fast as {}:",
        sheet.pages,
        if ratio == "base" { "the base" } else { ratio }
    )
}

/// What a column is about.
fn column(order: u32) -> String {
    match order {
        0 => "single pages".to_owned(),
        _ => format!("compound of {}", 1_u64 << order),
    }
}

fn cell(figure: &Figure) -> String {
    let ratio = figure.times_one_thread.unwrap_or(figure.times_base);
    format!("{:>12.2}{:>7.2}x", figure.ns.median(), ratio.median())
}

/// How it was measured, and on what.
fn how(performance: &Performance, shown: &[&Figure]) -> String {
    let run = &performance.run;
    let machine = &run.machine;
    let rounds = shown.iter().map(|figure| figure.rounds).min().unwrap_or(0);
    let placements = shown.iter().map(|figure| figure.placements);
    let placements = placements.min().unwrap_or(0);
    let worst = |spread: fn(Estimate) -> f64| {
        let spreads = shown.iter().map(|figure| spread(figure.ns));
        (spreads.fold(0.0, f64::max) * 100.0).ceil()
    };
    let between = worst(|ns| ns.placements.relative());
    let in_time = worst(|ns| ns.time.relative());
    let several = shown.iter().any(|figure| figure.threads > 1);
    let disturbed: usize = shown.iter().map(|figure| figure.disturbed).sum();
    let mut text = format!(
        "Medians of {placements} placements of the code, {rounds} rounds or more in all; in each, the object of the base, the one after each patch \
         and the limit run in turn, and ratios are taken within the round. The limit is a non-temporal fill of the same memory. All placements \
         are within {between:.0} % of the median, and the 10th and the 90th percentile of a placement's rounds within {in_time:.0} %. Measured by \
         `reroll bench`: {}() of {} ({}), Linux {}, compiled by {}, called natively in an ordinary program; CPU time of the thread{}. \
         Machine: {}, {} CPUs{}, {} GiB, load {:.1} before, {}.",
        run.entry,
        run.object,
        run.configuration,
        run.release,
        run.compiler,
        if several {
            ", wall time where there are several"
        } else {
            ""
        },
        machine.cpu,
        machine.cpus,
        if machine.virtual_machine {
            " of a virtual machine"
        } else {
            ""
        },
        machine.memory_gib,
        run.load.before,
        run.date,
    );
    if disturbed > 0 {
        text += &format!(" In {disturbed} runs of several threads the host took a core away.");
    }
    text
}

/// Broken at blanks into lines of at most [`WIDTH`]; a longer word is cut, since no line may be longer. ASCII only.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word: String = word
            .chars()
            .map(|char| if char.is_ascii_graphic() { char } else { '?' })
            .take(WIDTH)
            .collect();
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] = word;
        } else if lines[last].len() + 1 + word.len() <= WIDTH {
            lines[last].push(' ');
            lines[last].push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::planted;
    use super::*;

    #[test]
    fn a_message_shows_the_steps_up_to_its_patch() {
        let text = text(&planted(), Some(2));
        let rows: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("  ") && line.contains('x'))
            .collect();
        let expected = [
            "  base             12.00   1.00x       12.00   1.00x       12.00   1.00x",
            "  patch 1          12.00   1.00x       12.00   1.00x       12.00   1.00x",
            "  patch 2           9.00   1.33x        9.00   1.33x        9.00   1.33x",
            "  limit             3.00   4.00x        3.00   4.00x        3.00   4.00x",
        ];
        assert_eq!(rows, expected, "{text}");
        assert!(
            !text.contains("first touch") && !text.contains("2 threads"),
            "{text}"
        );
        let words: Vec<_> = text.split_whitespace().collect();
        let unwrapped = words.join(" ");
        assert!(unwrapped.contains("load 0.1 before, 2026-01-02."), "{text}");
    }

    #[test]
    fn the_cover_letter_shows_everything_in_72_columns_of_ascii() {
        let mut performance = planted();
        performance.run.compiler = "gcc ü ".to_owned() + &"long".repeat(40);
        let text = text(&performance, None);
        for line in text.lines() {
            assert!(
                line.len() <= 72
                    && line.is_ascii()
                    && line.trim_end() == line
                    && line.trim() != "---",
                "{line}"
            );
        }
        assert_eq!(text.matches("  patch 4 ").count(), 3, "{text}");
        assert!(
            text.contains("1.90x")
                && text.contains("2 threads.\nNanoseconds a page, and times as fast as one thread"),
            "{text}"
        );
        assert!(text.contains("first touch, with its page faults"), "{text}");
        assert!(text.contains("took a core away"), "{text}");
    }

    #[test]
    fn more_orders_than_fit_go_below_each_other() {
        let mut performance = planted();
        let mut more: Vec<_> = performance
            .figures
            .iter()
            .filter(|it| it.order == 9)
            .cloned()
            .collect();
        for figure in &mut more {
            figure.order = 10;
        }
        performance.figures.extend(more);
        let text = text(&performance, Some(4));
        assert_eq!(text.matches("  patch 4 ").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.len() <= 72), "{text}");
    }

    #[test]
    fn a_table_that_spreads_too_far_is_left_out_whole() {
        let mut performance = planted();
        assert_eq!(unfit(&performance), None);
        let first = performance
            .figures
            .iter()
            .position(|it| it.memory == Memory::FirstTouch);
        performance.figures[first.expect("a figure")].ns.time.high = 1.3;
        assert!(!text(&performance, None).contains("first touch"));
        assert_eq!(unfit(&performance), None);
        performance.figures[1].ns.time.high = 1.3;
        assert!(unfit(&performance).expect("noise").contains("30 %"));
        performance.figures[1].ns.time.high = 1.0;
        performance.figures[1].ns.placements.high = 12.0 * 1.4;
        assert!(unfit(&performance).expect("placements").contains("40 %"));
        assert_eq!(text(&performance, Some(4)), "");
    }

    #[test]
    fn nothing_is_shown_of_nothing() {
        let mut performance = planted();
        performance
            .figures
            .retain(|it| it.memory == Memory::FirstTouch);
        assert_eq!(text(&performance, Some(2)), "");
    }
}
