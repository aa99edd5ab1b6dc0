//! Figures as a picture: nanoseconds a page after each patch, a line for each order, the limit dashed, the spread between placements of the
//! code as whiskers.
//!
//! Hides SVG; the picture needs no font, script or style from elsewhere and looks the same on a dark page.

use std::fmt::Write as _;

use super::record::Performance;
use super::stats::Spread;
use super::{Figure, LIMIT, Memory};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 178.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 62.0;
/// How far lines stand beside each other at a step, so that whiskers do not cover one another.
const ASIDE: f64 = 7.0;
/// Told apart by who does not see colours well, too.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const GREY: &str = "#6b7280";
const DARK: &str = "#1f2937";

/// One line of the picture.
struct Line<'a> {
    label: String,
    colour: &'static str,
    aside: f64,
    /// By step, the base first.
    points: Vec<&'a Figure>,
}

/// Where values and steps are.
struct Axes {
    tick: f64,
    top_value: f64,
    steps: usize,
}

/// The picture of the largest range that was touched before, by one thread; `None` where that was not measured.
#[must_use]
pub fn svg(performance: &Performance) -> Option<String> {
    let figures: Vec<_> = performance
        .figures
        .iter()
        .filter(|figure| figure.memory == Memory::Touched && figure.threads == 1)
        .collect();
    let pages = figures.iter().map(|figure| figure.pages).max()?;
    let figures: Vec<_> = figures
        .into_iter()
        .filter(|figure| figure.pages == pages)
        .collect();
    let lines = lines(performance, &figures);
    let highest = figures
        .iter()
        .map(|figure| figure.ns.placements.high)
        .fold(0.0, f64::max);
    let axes = Axes {
        tick: tick(highest),
        top_value: nice_top(highest),
        steps: performance.run.patches.len() + 1,
    };
    let limits: Vec<f64> = figures
        .iter()
        .filter(|figure| figure.step == LIMIT)
        .map(|figure| figure.ns.median())
        .collect();
    let limit = Spread::of(&limits)?.median;

    let mut svg = start(performance, pages);
    grid(&mut svg, performance, &axes);
    draw_limit(&mut svg, &axes, limit);
    for line in &lines {
        draw(&mut svg, &axes, line);
    }
    labels(&mut svg, &axes, &lines, limit);
    svg.push_str("</svg>\n");
    Some(svg)
}

fn lines<'a>(performance: &Performance, figures: &[&'a Figure]) -> Vec<Line<'a>> {
    let mut orders: Vec<u32> = figures.iter().map(|figure| figure.order).collect();
    orders.sort_unstable();
    orders.dedup();
    orders.truncate(COLOURS.len());
    #[expect(clippy::cast_precision_loss, reason = "four at most")]
    let middle = (orders.len() - 1) as f64 / 2.0;
    let line = |(index, order): (usize, &u32)| {
        let find = |step: &str| {
            figures
                .iter()
                .copied()
                .find(|it| it.order == *order && it.step == step)
        };
        let points = performance
            .run
            .steps()
            .filter(|step| *step != LIMIT)
            .filter_map(find);
        #[expect(clippy::cast_precision_loss, reason = "four at most")]
        let aside = (index as f64 - middle) * ASIDE;
        Line {
            label: if *order == 0 {
                "single pages".to_owned()
            } else {
                format!("compound of {}", 1_u64 << order)
            },
            colour: COLOURS[index],
            aside,
            points: points.collect(),
        }
    };
    orders.iter().enumerate().map(line).collect()
}

/// A round number of at least `value`.
#[must_use]
pub fn nice_top(value: f64) -> f64 {
    let tick = tick(value);
    (value * 1.05 / tick).ceil() * tick
}

/// The distance of grid lines: 1, 2 or 5 times a power of 10, for four to eight of them.
#[must_use]
pub fn tick(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-9).log10().floor());
    [0.1, 0.2, 0.5, 1.0, 2.0]
        .into_iter()
        .map(|part| part * power)
        .find(|tick| value / tick <= 8.0)
        .unwrap_or(power)
}

impl Axes {
    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.top_value * (HEIGHT - TOP - BOTTOM)
    }

    #[expect(clippy::cast_precision_loss, reason = "few steps")]
    fn x(&self, step: usize) -> f64 {
        let inner = WIDTH - LEFT - RIGHT;
        LEFT + inner * (step as f64 + 0.5) / self.steps as f64
    }
}

fn start(performance: &Performance, pages: u64) -> String {
    let run = &performance.run;
    let title = format!(
        "{}: nanoseconds per struct page, after each patch",
        run.series
    );
    let under = format!(
        "Linux {}, {} struct pages, memory touched before, one thread; {}",
        run.release, pages, run.machine.cpu
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"#ffffff\"/>\n\
         <text x=\"18\" y=\"28\" font-size=\"16\" font-weight=\"600\" fill=\"{DARK}\">{title}</text>\n\
         <text x=\"18\" y=\"47\" font-size=\"11.5\" fill=\"{GREY}\">{under}</text>\n",
        title = escaped(&title),
        under = escaped(&under),
    )
}

fn grid(svg: &mut String, performance: &Performance, axes: &Axes) {
    let tick = axes.tick;
    let decimals = usize::from(tick < 1.0) + usize::from(tick < 0.1);
    let mut value = 0.0;
    while value <= axes.top_value + tick / 2.0 {
        let y = axes.y(value);
        let colour = if value == 0.0 { "#9ca3af" } else { "#e5e7eb" };
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\"/>",
            WIDTH - RIGHT
        );
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{GREY}\">{value:.decimals$}</text>",
            LEFT - 8.0,
            y + 4.5
        );
        value += tick;
    }
    for (index, step) in performance
        .run
        .steps()
        .filter(|step| *step != LIMIT)
        .enumerate()
    {
        let x = axes.x(index);
        let y = HEIGHT - BOTTOM + 20.0;
        let label = escaped(&performance.run.step_label(step));
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{DARK}\">{label}</text>"
        );
        if index > 0 {
            let name = escaped(step);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{GREY}\">{name}</text>",
                y + 16.0
            );
        }
    }
}

fn draw_limit(svg: &mut String, axes: &Axes, limit: f64) {
    let y = axes.y(limit);
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{GREY}\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>",
        WIDTH - RIGHT
    );
}

fn draw(svg: &mut String, axes: &Axes, line: &Line<'_>) {
    let colour = line.colour;
    let at = |index: usize| axes.x(index) + line.aside;
    let path: Vec<_> = line
        .points
        .iter()
        .enumerate()
        .map(|(index, figure)| format!("{:.1},{:.1}", at(index), axes.y(figure.ns.median())))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (index, figure) in line.points.iter().enumerate() {
        let (x, y) = (at(index), axes.y(figure.ns.median()));
        let placements = figure.ns.placements;
        let (low, high) = (axes.y(placements.low), axes.y(placements.high));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"none\"/>",
            x - 3.0,
            x - 3.0
        );
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\" stroke=\"#ffffff\"/>"
        );
    }
}

/// What each line is, beside its end, moved apart where ends are close.
fn labels(svg: &mut String, axes: &Axes, lines: &[Line<'_>], limit: f64) {
    const APART: f64 = 34.0;
    let mut labels: Vec<(f64, &str, &str, String)> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            let values = format!("{:.2} to {:.2} ns", first.ns.median(), last.ns.median());
            Some((
                axes.y(last.ns.median()),
                line.colour,
                line.label.as_str(),
                values,
            ))
        })
        .collect();
    labels.push((
        axes.y(limit),
        GREY,
        "limit: a streamed fill",
        format!("{limit:.2} ns"),
    ));
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    #[expect(clippy::cast_precision_loss, reason = "five at most")]
    let lowest = HEIGHT - BOTTOM - 14.0 - (labels.len() - 1) as f64 * APART;
    let mut next = TOP;
    for (index, (wanted, colour, label, values)) in labels.into_iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "five at most")]
        let y = wanted.min(lowest + index as f64 * APART).max(next);
        next = y + APART;
        let x = WIDTH - RIGHT + 10.0;
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"12.5\" font-weight=\"600\" fill=\"{colour}\">{}\
             <tspan x=\"{x:.1}\" dy=\"14\" font-size=\"11.5\" font-weight=\"400\">{}</tspan></text>",
            y + 1.0,
            escaped(label),
            escaped(&values)
        );
    }
}

/// Safe as text in XML.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|char| match char {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            char if char.is_control() => " ".to_owned(),
            char => char.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::planted;
    use super::*;

    /// The first attribute of this name in an element that holds `mark`.
    fn attribute(svg: &str, mark: &str, name: &str) -> f64 {
        let element = svg
            .lines()
            .find(|line| line.contains(mark))
            .expect("an element");
        let rest = element
            .split_once(&format!(" {name}=\""))
            .expect("an attribute")
            .1;
        rest.split('"')
            .next()
            .expect("a value")
            .parse()
            .expect("a number")
    }

    #[test]
    fn values_stand_where_the_axis_says() {
        let svg = svg(&planted()).expect("a picture");
        let at = |label: &str| {
            let line = svg
                .lines()
                .find(|line| line.ends_with(&format!(">{label}</text>")))
                .expect("a label");
            let y: f64 = line
                .split_once(" y=\"")
                .expect("y")
                .1
                .split('"')
                .next()
                .expect("y")
                .parse()
                .expect("y");
            y - 4.5
        };
        let (zero, twelve) = (at("0"), at("12"));
        let base = attribute(&svg, "<circle", "cy");
        assert!((base - twelve).abs() < 0.2, "{base} {twelve}");
        let limit = attribute(&svg, "stroke-dasharray", "y1");
        assert!(
            (limit - (zero + (twelve - zero) / 4.0)).abs() < 0.2,
            "{limit}"
        );
    }

    #[test]
    fn each_order_has_a_line_with_a_point_and_whiskers_for_each_step() {
        let svg = svg(&planted()).expect("a picture");
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert_eq!(svg.matches("<circle").count(), 15);
        assert_eq!(svg.matches("<path").count(), 15);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn hostile_names_stay_text() {
        let mut performance = planted();
        performance.run.machine.cpu = "<script>&\"\u{1b}".to_owned();
        let svg = svg(&performance).expect("a picture");
        assert!(
            !svg.contains("<script>") && svg.contains("&lt;script&gt;&amp;&quot; "),
            "{svg}"
        );
    }

    #[test]
    fn without_touched_memory_there_is_no_picture() {
        let mut performance = planted();
        performance
            .figures
            .retain(|figure| figure.memory == Memory::FirstTouch);
        assert_eq!(svg(&performance), None);
    }

    #[test]
    fn grid_lines_are_round_numbers_and_few() {
        for (value, tick, top) in [
            (12.12, 2.0, 14.0),
            (0.9, 0.2, 1.0),
            (5.4, 1.0, 6.0),
            (61.0, 10.0, 70.0),
        ] {
            assert!(
                (super::tick(value) - tick).abs() < 1e-9,
                "{value}: {}",
                super::tick(value)
            );
            assert!(
                (nice_top(value) - top).abs() < 1e-9,
                "{value}: {}",
                nice_top(value)
            );
        }
    }
}
