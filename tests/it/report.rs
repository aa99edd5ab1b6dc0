//! The reports: what a person and a machine get to see of the records.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bot::{Play, QUICK};

/// A record of `reroll bench` for a base.
pub(crate) fn measured(tree: &str, release: &str, cpu: &str, ns: [f64; 3]) -> Value {
    let spread =
        |median: f64| json!({ "low": median * 0.97, "median": median, "high": median * 1.04 });
    let estimate = |median: f64| json!({ "placements": spread(median), "time": spread(1.0) });
    let patches = ["helper", "batch", "header", "use"];
    let [base, last, limit] = ns;
    let steps = [
        ("base", base),
        ("helper", base),
        ("batch", base),
        ("header", last),
        ("use", last),
        ("limit", limit),
    ];
    let mut figures = Vec::new();
    for (order, more) in [(0, 0.0), (9, 0.4)] {
        for (step, ns) in steps {
            let ns = ns + more;
            figures.push(json!({
                "pages": 26_214_400, "order": order, "memory": "touched", "threads": 1, "step": step,
                "placements": 8, "rounds": 24, "disturbed": 0, "ns": estimate(ns),
                "times-base": estimate((base + more) / ns),
                "of-limit": estimate(ns / (limit + more)), "times-one-thread": null,
            }));
        }
    }
    let run = json!({
        "date": "2026-01-02", "series": "tiny", "patches": patches, "code": "0", "release": release, "tree": tree,
        "object": "mm/pool.o", "entry": "pool_open", "configuration": "x86-64 gcc", "options": "0", "compiler": "gcc 12",
        "kconfig": [], "flags": ["-O2"],
        "machine": { "cpu": cpu, "cpus": 2, "memory-gib": 24, "virtual-machine": true, "kernel": "6.1", "huge-pages": "madvise" },
        "load": { "before": 0.1, "after": 1.0 }, "comparisons": 600,
    });
    json!({ "version": 2, "run": run, "figures": figures })
}

/// A clean base, a drifted one, and one that does not fit.
fn played() -> Play {
    let play = Play::new("");
    play.release(1, "one");
    play.change("pool_put(pool, i);", "pool_put(pool, i + 1);");
    play.release(2, "two");
    play.change(
        "\tpool_seal(pool);",
        "\tpool_sync(pool);\n\tpool_seal(pool);",
    );
    play.release(3, "mm/pool: <script>alert('sync')</script> | [x](y)");
    play.bot();
    play
}

#[test]
fn the_page_has_every_cell_once_and_every_link_leads_somewhere() {
    let play = played();
    play.reroll(&["report", "-o", "out/page.html"], 0);
    let page = play.read("out/page.html");
    let ids: Vec<_> = page
        .split(" id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().expect("a quote"))
        .collect();
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for link in page
        .split("href=\"#")
        .skip(1)
        .map(|rest| rest.split('"').next().expect("a quote"))
    {
        assert!(ids.contains(&link), "{link}");
    }
    for base in ["v1.1", "v1.2", "v1.3"] {
        assert!(ids.contains(&format!("tiny/{base}").as_str()), "{ids:?}");
    }
    for outside in ["http://", "https://", "<script", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(
        page.contains("&lt;script&gt;alert("),
        "the subject is there, as text"
    );
    assert!(page.contains("conflict") && page.contains("pool_sync(pool);"));
    // The same records give the same page.
    play.reroll(&["report", "-o", "again.html"], 0);
    assert_eq!(page, play.read("again.html"));
}

#[test]
fn json_junit_and_markdown_say_the_same() {
    let play = played();
    let (json, _) = play.reroll(
        &[
            "report",
            "--json",
            "--junit",
            "out.xml",
            "--markdown",
            "out.md",
        ],
        0,
    );
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let states: Vec<_> = json["records"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row["state"].as_str().expect("text"))
        .collect();
    assert_eq!(states, ["conflict", "drifted", "clean"]);
    let xml = play.read("out.xml");
    assert_eq!(xml.matches("<testsuite ").count(), 3, "{xml}");
    assert_eq!(
        xml.matches("<failure").count(),
        4,
        "the four patches that do not fit: {xml}"
    );
    let markdown = play.read("out.md");
    assert!(
        markdown.contains("| v1.3 | conflict |\n| v1.2 | drifted |\n| v1.1 | clean |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("&lt;script&gt;alert") && markdown.contains("\\[x\\](y)"),
        "{markdown}"
    );
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let play = Play::new(QUICK);
    play.reroll(&["report", "-o", "page.html"], 0);
    assert!(play.read("page.html").contains("There are no records yet"));
}

/// Three bases, of which two were measured: `slow` on v1.2 and `fast` on v1.10.
fn measured_play() -> Play {
    let play = Play::new(QUICK);
    for number in [1, 2, 10] {
        play.release(number, "a base");
    }
    play.bot();
    let cpu = "A Processor <b>&\u{1b}";
    for (name, tag, release, ns) in [
        ("slow", "v1.2", "1.2.0", [4.0, 3.0, 2.0]),
        ("fast", "v1.10", "1.10.0", [2.0, 1.5, 1.0]),
    ] {
        let tree = play.git("remote", &["rev-parse", &format!("{tag}^{{tree}}")]);
        let record = measured(&tree, release, cpu, ns);
        play.write(&format!("{name}.json"), &record.to_string());
    }
    play
}

/// The page with these options.
fn page(play: &Play, options: &[&str]) -> String {
    play.reroll(&[&["report", "-o", "page.html"], options].concat(), 0);
    play.read("page.html")
}

/// The part of a page between two texts.
fn part<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let rest = page
        .split_once(from)
        .unwrap_or_else(|| panic!("no {from}"))
        .1;
    rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0
}

/// The values of an attribute, in order.
fn attributes<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let ends = text.split(start).skip(1);
    ends.map(|rest| rest.split('"').next().expect("a quote"))
        .collect()
}

#[test]
fn what_was_measured_is_drawn_over_the_bases_in_their_order() {
    let play = measured_play();
    let page = page(&play, &["--performance", "fast.json", "slow.json"]);
    let charts = part(&page, "id=\"performance\"", "id=\"results\"");
    assert_eq!(
        charts.matches("<svg class=\"chart\"").count(),
        2,
        "one an order"
    );
    let chart = part(charts, "<svg class=\"chart\"", "</svg>");
    assert_eq!(chart.matches("<polyline").count(), 3);
    assert_eq!(chart.matches("class=\"spread\"").count(), 6);
    let (old, new) = (chart.find(">v1.2<"), chart.find(">v1.10<"));
    assert!(
        old.is_some() && old < new,
        "by version, not by letters: {chart}"
    );
    // The base's line goes from 4 to 2, the limit's from 2 to 1: where the axis has those values.
    let lines = attributes(chart, "<polyline points=\"");
    let ys = |line: usize| -> Vec<f64> {
        let points = lines[line].split(' ');
        points
            .map(|point| {
                point
                    .split_once(',')
                    .expect("x,y")
                    .1
                    .parse()
                    .expect("a number")
            })
            .collect()
    };
    let tick = |value: &str| -> f64 {
        let before = chart
            .split(&format!(">{value}</text>"))
            .next()
            .expect("a part");
        let y = before.rsplit(" y=\"").next().expect("y");
        y.split('"')
            .next()
            .expect("a quote")
            .parse()
            .expect("a number")
    };
    for (line, at) in [(0, ["4", "2"]), (2, ["2", "1"])] {
        for (y, value) in ys(line).into_iter().zip(at) {
            assert!(
                (y - tick(value)).abs() < 0.11,
                "{line}: {y} {value}: {chart}"
            );
        }
    }
    // The same as text.
    let row = part(
        charts,
        "<tr><th scope=\"row\"><a href=\"#tiny/v1.2\">v1.2</a></th>",
        "</tr>",
    );
    assert_eq!(
        row,
        "<td>4.00 (3.88 to 4.16; 4 %)</td><td>3.00 (2.91 to 3.12; 4 %)</td><td>2.00 (1.94 to 2.08; 4 %)</td><td>1.33</td><td>2026-01-02</td>"
    );
    assert!(charts.contains("A Processor &lt;b&gt;&amp;\\u{1b};") && !page.contains("<b>"));
    // Behind each cell.
    let behind = |base: &str| part(&page, &format!("<article id=\"tiny/{base}\""), "</article>");
    assert!(
        behind("v1.2").contains("1 thread: 3.00 (2.91 to 3.12; 4 %) ns a page with the whole series, 4.00 (3.88 to 4.16; 4 %) without it (1.33 times as fast), limit 2.00 (1.94 to 2.08; 4 %)"),
        "{}",
        behind("v1.2")
    );
    assert!(behind("v1.2").contains("href=\"#performance-1\""));
    assert!(behind("v1.1").contains("Nothing was measured on this base."));
}

#[test]
fn figures_that_cannot_be_compared_are_in_plots_of_their_own() {
    let play = measured_play();
    let slow = play.read("slow.json");
    for (name, from, to) in [
        ("other-cpu.json", "A Processor", "Another"),
        ("newer.json", "2026-01-02", "2026-01-03"),
        ("older.json", "2026-01-02", "2025-12-31"),
    ] {
        assert!(slow.contains(from));
        play.write(
            name,
            &slow
                .replace(from, to)
                .replace("\"code\":\"0\"", "\"code\":\"1\""),
        );
    }
    let page = page(
        &play,
        &[
            "--performance",
            "slow.json",
            "fast.json",
            "other-cpu.json",
            "newer.json",
            "older.json",
        ],
    );
    assert_eq!(page.matches("class=\"plot\"").count(), 2);
    let first = part(&page, "id=\"performance-1\"", "</section>");
    let dates: Vec<_> = ["2026-01-03", "2026-01-02", "2025-12-31"]
        .map(|date| first.matches(date).count())
        .to_vec();
    assert_eq!(
        dates,
        [2, 2, 0],
        "two orders: v1.2 as it was last measured, and v1.10"
    );
    assert!(
        first.contains("Measured with earlier templates or edits: v1.10."),
        "{first}"
    );
}

#[test]
fn what_is_recorded_beside_the_series_is_shown_and_lines_are_read() {
    let play = measured_play();
    let slow = play.read("slow.json");
    let value: Value = serde_json::from_str(&slow).expect("JSON");
    let line = |kind: &str, value: &Value| {
        let mut object = json!({ "record": kind });
        let fields = value.as_object().expect("an object").clone();
        object.as_object_mut().expect("an object").extend(fields);
        format!("{object}\n")
    };
    let mut lines = line("run", &value["run"]);
    for figure in value["figures"].as_array().expect("a list") {
        lines.push_str(&line("figure", figure));
    }
    play.write("slow.jsonl", &lines);
    play.write("patches/tiny/performance.json", &play.read("fast.json"));
    let beside = page(&play, &[]);
    assert!(beside.contains(">v1.10</text>") && !beside.contains(">v1.2</text>"));
    let both = page(&play, &["--performance", "slow.jsonl"]);
    assert!(both.contains(">v1.10</text>") && both.contains(">v1.2</text>"));
    let (json, _) = play.reroll(&["report", "--json", "--performance", "slow.jsonl"], 0);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["performance"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["performance"][1], value);
}

#[test]
fn a_file_without_figures_is_refused_and_no_page_is_written() {
    let play = measured_play();
    play.write(
        "half.json",
        &play.read("slow.json").replace("\"limit\"", "\"limits\""),
    );
    for file in ["none.json", "half.json", "bot.toml"] {
        let (_, said) = play.reroll(&["report", "-o", "page.html", "--performance", file], 2);
        assert!(said.contains(file) && said.contains("hint: "), "{said}");
        assert!(!play.path("page.html").exists());
    }
    let page = page(&play, &[]);
    assert!(page.contains("<p>Nothing was measured. <code>reroll bench --record</code>"));
}
