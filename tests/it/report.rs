//! The reports: what a person and a machine get to see of the records.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bot::{Play, QUICK};

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

/// With `REROLL_TEST_PAGE` naming a file, the page is left there for a browser.
#[test]
fn a_page_can_be_looked_at() {
    let Some(file) = std::env::var_os("REROLL_TEST_PAGE") else {
        return;
    };
    let play = played();
    let copy = play.read("bot.toml");
    play.write(
        "patches/other/series.toml",
        &play
            .read("patches/tiny/series.toml")
            .replace("name = \"tiny\"", "name = \"other\""),
    );
    for dir in ["patches/other"] {
        for (path, text) in crate::bot::recipe() {
            play.write(&format!("{dir}/{path}"), text);
        }
    }
    play.write(
        "bot.toml",
        &copy.replace("[\"tiny\"]", "[\"tiny\", \"other\"]"),
    );
    play.change("\tpool_sync(pool);\n", "");
    play.commit("mm/pool: no sync");
    play.merge_patches("v1.2", 1, "Acked-by: Some One <some@example.org>");
    play.release(4, "four");
    play.bot();
    play.reroll(&["report", "-o", "page.html"], 0);
    std::fs::copy(play.path("page.html"), file).expect("a copy");
}
