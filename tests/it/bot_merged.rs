//! Bases that have a part of the series, looked at by hand: what is proven is left out and said, anything less is refused.
//!
//! Hides how upstream came to have it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::bot::{Play, QUICK};

const TRAILERS: &str =
    "Reviewed-by: Re Viewer <re@example.org>\nSigned-off-by: Up Stream <up@example.org>";

/// A remote with the base `v1.1` and, on top of it, the first patches as a maintainer would commit them.
fn merged(count: usize) -> Play {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.merge_patches("v1.1", count, TRAILERS);
    play
}

/// Regenerates by hand on the remote's HEAD; the mails by name, the JSON object, and what was said.
fn regen(play: &Play) -> (BTreeMap<String, String>, Value, String) {
    drop(fs::remove_dir_all(play.path("out")));
    let args = ["regen", "--tree", "remote", "-o", "out", "--json"];
    let (json, said) = play.reroll(&args, 0);
    let entries = fs::read_dir(play.path("out")).map_or_else(|_| Vec::new(), Iterator::collect);
    let entries = entries.into_iter().map(|entry| entry.expect("an entry"));
    let mails = entries.filter(|entry| entry.path().is_file()).map(|entry| {
        let text = fs::read_to_string(entry.path()).expect("a mail");
        (entry.file_name().to_string_lossy().into_owned(), text)
    });
    (
        mails.collect(),
        serde_json::from_str(&json).expect("JSON"),
        said,
    )
}

/// The same once others can have that commit.
fn regen_published(play: &Play) -> (BTreeMap<String, String>, Value, String) {
    play.git("remote", &["tag", "-f", "published"]);
    regen(play)
}

/// Refused by hand as a base that does not fit; nothing is written anywhere.
#[track_caller]
fn refused(play: &Play, words: &[&str]) -> String {
    let refs = play.git("remote", &["for-each-ref"]);
    let objects = play.git("remote", &["count-objects", "-v"]);
    let mut said = String::new();
    for command in ["regen", "check", "explain"] {
        said = play.reroll(&[command, "--tree", "remote"], 3).1;
        for word in words {
            assert!(said.contains(word), "{command}: {word}: {said}");
        }
        assert!(!said.contains("note: "), "{said}");
    }
    assert!(!play.path("outgoing").exists());
    assert_eq!(play.git("remote", &["for-each-ref"]), refs);
    assert_eq!(play.git("remote", &["count-objects", "-v"]), objects);
    said
}

#[test]
fn by_hand_the_rest_is_numbered_anew_and_it_is_said_which_commits_have_what() {
    for count in 1..4 {
        let play = merged(count);
        let commits = play.git("remote", &["log", "--reverse", "--format=%h", "v1.1..HEAD"]);
        // Upstream goes on in the same file.
        play.change(
            "#include <linux/pool.h>\n",
            "#include <linux/pool.h>\n#include <linux/x.h>\n",
        );
        play.release(2, "two");
        let (mails, json, said) = regen(&play);
        let names = ["helper", "batch", "header"];
        for (name, commit) in names.iter().zip(commits.lines()) {
            let note = said
                .lines()
                .find(|line| line.starts_with(&format!("note: patch `{name}` (\"mm/pool: ")));
            let note = note.unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(note.contains(&format!("left out: {commit}")), "{note}");
            assert!(note.ends_with("has the same patch-id"), "{note}");
        }
        assert_eq!(said.matches("note: ").count(), count, "{said}");
        let upstream = json["upstream"].as_array().expect("a list");
        assert_eq!(upstream.len(), count);
        assert_eq!(
            upstream[0]["commit"]["subject"],
            "mm/pool: move sealing to a helper"
        );

        let left = 4 - count;
        assert_eq!(mails.len(), left + 1);
        for (number, mail) in mails.values().enumerate() {
            let bracket = format!("Subject: [PATCH {number}/{left}] mm");
            assert!(mail.contains(&bracket), "{bracket}: {mail}");
        }
        let cover = mails.values().next().expect("a cover letter");
        let what = match count {
            1 => "has the first patch of the series; only the rest is sent:\n\n  mm/pool: move sealing to a helper\n".to_owned(),
            _ => format!("has the first {count} patches of the series; only the rest is sent:\n\n"),
        };
        assert!(cover.contains(&what), "{cover}");

        // The mails apply to the base, and end in what the whole series makes of it; so say the gates.
        let names: Vec<_> = mails
            .keys()
            .skip(1)
            .map(|name| format!("../out/{name}"))
            .collect();
        play.git("remote", &["checkout", "-q", "--detach", "v1.2"]);
        let args: Vec<_> = ["am", "-q"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        play.git("remote", &args);
        let whole = play.git(
            "bot.git",
            &["show", "refs/heads/reroll/tiny/v1.1:mm/pool.c"],
        );
        let made = play.git("remote", &["show", "HEAD:mm/pool.c"]);
        assert_eq!(made.replace("#include <linux/x.h>\n", ""), whole);
        let check = [
            "check",
            "--tree",
            "remote",
            "--base",
            "v1.2",
            "--gate",
            "apply,mail",
        ];
        let (_, said) = play.reroll(&check, 0);
        assert_eq!(said.matches("note: ").count(), count, "{said}");
        let explain = ["explain", "--tree", "remote", "--base", "v1.2"];
        let (told, _) = play.reroll(&explain, 0);
        assert!(
            !told.contains("patch helper") && told.contains("patch use"),
            "{told}"
        );
        // By hand it is what the bot makes.
        play.bot();
        let record = &play.records()["v1.2"]["record"];
        let shown = |list: &Value, key: &str| {
            let list = list.as_array().expect("a list").clone();
            list.iter()
                .map(|it| it[key].clone())
                .filter(|it| !it.is_null())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&record["patches"], "commit"),
            shown(&json["commits"], "commit")
        );
    }
}

#[test]
fn by_hand_a_patch_that_defines_nothing_is_not_taken_for_merged_with_the_others() {
    // All but the last, whose absence nothing but the content tells.
    let play = merged(3);
    let (mails, json, _) = regen(&play);
    assert_eq!(mails.len(), 2);
    assert_eq!(json["commits"][0]["patch"], "use");
    // The last one as well: nothing to do, and it is said which commits.
    let play = merged(4);
    let (mails, json, said) = regen(&play);
    assert!(mails.is_empty());
    assert_eq!(json["applied"].as_array().map(Vec::len), Some(3));
    assert_eq!(said.matches("has the same patch-id\n").count(), 4, "{said}");
    // The same files without a history: the recipe makes them all the same.
    for count in 3..=4 {
        let play = merged(count);
        import(&play);
        let (mails, json, said) = regen(&play);
        assert_eq!(mails.len(), if count == 4 { 0 } else { 2 });
        assert_eq!(json["upstream"].as_array().map(Vec::len), Some(count));
        let how = "left out: the base's files are exactly what the patch makes of them\n";
        assert_eq!(said.matches(how).count(), count, "{said}");
    }
}

/// The remote has its files, and no history.
fn import(play: &Play) {
    play.git("remote", &["checkout", "-q", "--orphan", "import"]);
    play.commit("imported");
}

#[test]
fn by_hand_anything_less_than_the_same_is_refused() {
    const PART: &str = "a part of the series is in the base already";
    // One line of a merged patch is another one.
    let play = merged(2);
    play.change(
        "static void pool_put_batch(struct pool *pool, int count)\n{\n\tint i;\n\n",
        "static void pool_put_batch(struct pool *pool, int count)\n{\n\tunsigned int i;\n\n",
    );
    play.git("remote", &["commit", "-q", "-a", "--amend", "--no-edit"]);
    let said = refused(
        &play,
        &[
            PART,
            "\n  there: patch `helper`, all of its edits\n",
            "\n  with another text: patch `batch`, edit `batch`: mm/pool.c:",
            "\n  not there: patch `use`, none of its edits\n",
        ],
    );
    // What it says to do can be done: on that base all patches fit, and a recipe that makes the line leaves two of them out.
    let (_, rest) = said.split_once("(`--base ").expect("a base");
    let rev = rest.split_once('`').expect("its end").0;
    play.reroll(&["regen", "--tree", "remote", "--base", rev, "-n"], 0);
    let template = "patches/tiny/templates/batch.c.tera";
    let text = play.read(template);
    play.write(template, &text.replace("\tint i;", "\tunsigned int i;"));
    let (mails, json, _) = regen(&play);
    assert_eq!(json["upstream"].as_array().map(Vec::len), Some(2));
    assert_eq!(mails.len(), 3);
    play.write(template, &text);
    // A merged patch was changed later on.
    let play = merged(1);
    play.change(
        "static void pool_finish(struct pool *pool)\n{\n",
        "static void pool_finish(struct pool *pool)\n{\n\tpool_sync(pool);\n",
    );
    play.commit("mm/pool: sync");
    refused(
        &play,
        &[
            "`pool_finish()` in `mm/pool.c` is in the base already, and not as the recipe makes it",
            "pool_sync(pool);",
        ],
    );
}

#[test]
fn by_hand_no_history_is_needed() {
    let (left, said) = (4, "is upstream and left out: ");
    // An import, and a shallow clone.
    let play = merged(1);
    import(&play);
    let (mails, _, told) = regen(&play);
    assert!(mails.len() == left && told.contains(said), "{told}");
    let play = merged(1);
    play.git(
        ".",
        &[
            "clone",
            "-q",
            "--depth=1",
            &format!("file://{}", play.path("remote").display()),
            "shallow",
        ],
    );
    fs::rename(play.path("remote"), play.path("deep")).expect("renamed");
    fs::rename(play.path("shallow"), play.path("remote")).expect("renamed");
    let (mails, _, told) = regen(&play);
    assert!(mails.len() == left && told.contains(said), "{told}");
    // A clone without the old trees: they are not fetched one by one to find out.
    let play = partial("tree:0");
    let (mails, _, told) = regen(&play);
    assert!(mails.len() == left && told.contains(said), "{told}");
}

/// The remote is a partial clone of one that has the first patch and goes on.
fn partial(filter: &str) -> Play {
    let play = merged(1);
    play.change("return 0;", "return 1;");
    play.commit("mm/pool: go on");
    play.git("remote", &["config", "uploadpack.allowFilter", "true"]);
    fs::rename(play.path("remote"), play.path("deep")).expect("renamed");
    let url = format!("file://{}", play.path("deep").display());
    let filter = format!("--filter={filter}");
    play.git(".", &["clone", "-q", &filter, &url, "remote"]);
    play
}

#[test]
fn by_hand_a_clone_without_old_files_is_proven_all_the_same() {
    let play = partial("blob:none");
    let (mails, _, said) = regen(&play);
    assert_eq!(mails.len(), 4);
    assert!(said.contains("is upstream and left out: "), "{said}");
}

#[test]
fn by_hand_a_subject_and_a_revert_say_nothing() {
    // The subject of a patch on something else.
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.change("return 0;", "return pool_state(pool);");
    play.commit("mm/pool: move sealing to a helper");
    let (mails, json, said) = regen_published(&play);
    assert_eq!(
        (mails.len(), json["upstream"].as_array().map(Vec::len)),
        (5, Some(0))
    );
    assert!(!said.contains("note: "), "{said}");
    // A patch that got in under another subject is told by its content.
    let play = merged(1);
    play.git(
        "remote",
        &["commit", "-q", "--amend", "-m", "mm/pool: a better name"],
    );
    let (mails, _, said) = regen_published(&play);
    assert_eq!(mails.len(), 4);
    assert!(
        said.contains("(\"mm/pool: a better name\") has the same patch-id"),
        "{said}"
    );
    // In a commit with something else there is no patch-id; the content is the same nevertheless.
    let play = merged(1);
    play.write("remote/mm/other.c", "int other;\n");
    play.git("remote", &["add", "-A"]);
    play.git(
        "remote",
        &["commit", "-q", "--amend", "-m", "mm: several things"],
    );
    let (mails, _, said) = regen_published(&play);
    assert_eq!(mails.len(), 4);
    assert!(
        said.contains("left out: the base's files are exactly what the patch makes of them\n"),
        "{said}"
    );
    // Merged and reverted is not merged.
    let play = merged(1);
    play.git("remote", &["revert", "--no-edit", "HEAD"]);
    let (mails, _, said) = regen_published(&play);
    assert_eq!(mails.len(), 5);
    assert!(!said.contains("note: "), "{said}");
    // ... and merged again.
    play.git("remote", &["revert", "--no-edit", "HEAD"]);
    let (mails, _, said) = regen_published(&play);
    assert_eq!(mails.len(), 4);
    assert!(said.contains("note: patch `helper`"), "{said}");
}

#[test]
fn by_hand_a_rest_that_does_not_fit_says_so_and_what_is_upstream() {
    let play = merged(1);
    play.change("pool_fill(pool, 16);", "pool_fill_all(pool);");
    play.commit("mm/pool: rework");
    let (_, said) = play.reroll(&["regen", "--tree", "remote"], 3);
    assert!(
        said.contains("patch `use`, edit `use` has no anchor"),
        "{said}"
    );
    assert!(
        said.contains("patch `helper` (\"mm/pool: move sealing to a helper\") is upstream"),
        "{said}"
    );
    assert!(!play.path("outgoing").exists());
}
