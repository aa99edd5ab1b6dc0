//! What a record depends on: when the bot looks at a base again, and when what a cell found elsewhere counts.
//!
//! Hides nothing; a harness of these tests is never built, since the recipe skips the gates that would build it.

use std::fs;

use serde_json::Value;

use crate::bot::{Play, run_cells};

const CHECK: &str = r#"
[check]
objects = ["mm/pool.o"]

[check.equality]
object = "mm/pool.o"
entry = "pool_open"
harness = "harness"

[[check.configuration]]
name = "gcc"
arch = "x86_64"
equality = true

[[check.skip]]
gate = "equality"
reason = "there is no kernel to build"
"#;

/// A bot with these gates, whose recipe has a harness of its own, and one base that is done.
fn with_harness(gates: &str) -> Play {
    let play = Play::new(&format!("gates = [{gates}]\n"));
    let series = play.read("patches/tiny/series.toml");
    play.write("patches/tiny/series.toml", &format!("{series}{CHECK}"));
    play.write("patches/tiny/harness/harness.toml", "# Nothing.\n");
    play.write("patches/tiny/harness/kernel.c", "int harness;\n");
    play.release(1, "one");
    assert_eq!(play.bot(), "tiny on v1.1: clean\n");
    play
}

/// The key of the one record, and how many cells are to be run.
fn key(play: &Play) -> (String, usize) {
    let (json, _) = play.reroll(&["bot", "plan", "--format", "github"], 0);
    let matrix: Value = serde_json::from_str(&json).expect("JSON");
    let key = &play.records()["v1.1"]["record"]["key"];
    let cells = matrix["include"].as_array().expect("a list");
    (key.as_str().expect("a key").to_owned(), cells.len())
}

#[test]
fn a_changed_harness_or_setting_makes_the_bot_look_again() {
    let play = with_harness("\"equality\"");
    let (first, cells) = key(&play);
    assert_eq!(cells, 0, "all is done");
    let mut keys = vec![first];
    let changes = [
        ("harness/kernel.c", "int other;\n".to_owned()),
        ("harness/more.S", "/* A new file. */\n".to_owned()),
        ("harness/harness.toml", "# Nothing more.\n".to_owned()),
        (
            "series.toml",
            play.read("patches/tiny/series.toml")
                .replace("[check]\n", "[check]\noptions = [\"POOL=y\"]\n"),
        ),
    ];
    for (file, text) in changes {
        play.write(&format!("patches/tiny/{file}"), &text);
        let (_, cells) = key(&play);
        assert_ne!(cells, 0, "{file}: there is something to do");
        assert_eq!(play.bot(), "", "{file}: the verdict is what it was");
        let (key, cells) = key(&play);
        assert_eq!(cells, 0, "{file}: once is enough");
        assert!(!keys.contains(&key), "{file}: it was looked at again");
        keys.push(key);
    }
    // The files are what counts, and not where they are.
    let refs = play.refs("bot.git");
    fs::rename(play.path("patches/tiny/harness"), play.path("harness")).expect("renamed");
    assert_eq!(play.bot(), "");
    assert_eq!(play.refs("bot.git"), refs);
    // One that is gone is said, and is no verdict.
    fs::remove_dir_all(play.path("harness")).expect("removed");
    let config = play.read("patches/tiny/series.toml");
    play.write(
        "patches/tiny/series.toml",
        &config.replace("harness = \"harness\"", "harness = \"gone\""),
    );
    let (_, said) = play.reroll(&["bot", "run"], 2);
    assert!(said.contains("cannot read the harness `gone`"), "{said}");
    assert_eq!(play.refs("bot.git"), refs);
}

#[test]
fn a_harness_that_no_gate_runs_does_not_matter() {
    let play = with_harness("\"apply\", \"mail\"");
    let (first, _) = key(&play);
    play.write("patches/tiny/harness/kernel.c", "int other;\n");
    assert_eq!(key(&play), (first, 0));
}

#[test]
fn what_a_cell_found_of_another_recipe_base_or_harness_is_not_folded() {
    let play = Play::new("gates = [\"apply\", \"mail\", \"equality\"]\npush = \"shared.git\"\n");
    let series = play.read("patches/tiny/series.toml");
    play.write("patches/tiny/series.toml", &format!("{series}{CHECK}"));
    play.write("patches/tiny/harness/harness.toml", "# Nothing.\n");
    play.git(".", &["init", "-q", "--bare", "shared.git"]);
    play.release(1, "one");
    assert_eq!(run_cells(&play), 2);
    let files = [
        "0002-batch/message.txt",
        "harness/harness.toml",
        "series.toml",
    ];
    for file in files.map(|file| format!("patches/tiny/{file}")) {
        let before = play.read(&file);
        let after = if file.ends_with("txt") {
            before.replace("It seals", "And seals")
        } else {
            format!("# Changed.\n{before}")
        };
        play.write(&file, &after);
        let (_, said) = play.reroll(&["report", "merge", "cells"], 4);
        assert!(
            said.contains("tiny/v1.1: its cells saw another"),
            "{file}: {said}"
        );
        assert_eq!(play.refs("shared.git"), "", "{file}");
        play.write(&file, &before);
    }
    // The base itself was moved.
    let old = play.git("remote", &["rev-parse", "v1.1"]);
    play.change("return 0;", "return 1;");
    play.commit("another one");
    play.git("remote", &["tag", "-f", "v1.1"]);
    let (_, said) = play.reroll(&["report", "merge", "cells"], 4);
    assert!(said.contains("tiny/v1.1: its cells saw another"), "{said}");
    play.git("remote", &["tag", "-f", "v1.1", &old]);
    play.reroll(&["report", "merge", "cells"], 0);
    assert_eq!(play.records()["v1.1"]["state"], "clean");
}

#[test]
fn cells_of_a_base_with_a_part_of_the_series_end_where_one_run_does() {
    let play = Play::new("push = \"shared.git\"\n");
    play.git(".", &["init", "-q", "--bare", "shared.git"]);
    play.git(".", &["init", "-q", "--bare", "calm-shared.git"]);
    let calm = play
        .read("bot.toml")
        .replace("bot.git", "calm.git")
        .replace("shared.git", "calm-shared.git");
    play.write("calm.toml", &calm);
    play.release(1, "one");
    play.reroll(&["bot", "run", "--config", "calm.toml"], 0);
    fs::rename(play.path("calm.git"), play.path("bot.git")).expect("renamed");
    play.merge_patches("v1.1", 1, "");
    play.release(2, "two");
    fs::rename(play.path("bot.git"), play.path("calm.git")).expect("renamed");
    play.reroll(&["bot", "run", "--config", "calm.toml"], 0);
    // Both at once: the cell of the second does not know what the first finds, but the base's files tell it what to leave out.
    assert_eq!(run_cells(&play), 2);
    play.reroll(&["report", "merge", "cells"], 0);
    assert_eq!(play.refs("shared.git"), play.refs("calm-shared.git"));
    let record = &play.records()["v1.2"]["record"];
    let gates = record["gates"].as_array().expect("a list");
    assert!(
        gates.len() > 3 && gates.iter().all(|gate| gate["status"] == "pass"),
        "{gates:?}"
    );
    assert_eq!(
        play.verdicts("v1.2"),
        ["upstream", "clean", "clean", "clean"]
    );
}
