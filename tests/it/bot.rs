//! The bot over a played remote: bases come one after another, and what it records is looked at from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A remote, a recipe and a bot in a directory of their own.
pub(crate) struct Play {
    dir: TempDir,
}

const MAKEFILE: &str = "VERSION = 1\nPATCHLEVEL = 0\nSUBLEVEL = 0\nEXTRAVERSION =\n";

/// The file that the series changes.
const POOL: &str = "// SPDX-License-Identifier: GPL-2.0
#include <linux/pool.h>

static void pool_fill(struct pool *pool, int count)
{
	int i;

	for (i = 0; i < count; i++)
		pool_put(pool, i);
	/* Nobody may put anything from here on. */
	pool_seal(pool);
}

int pool_open(struct pool *pool)
{
	pool_init(pool);
	pool_fill(pool, 16);
	return 0;
}
";

const SERIES: &str = r#"
name = "tiny"
title = "mm: fill pools in batches"
version = 1
change-id = "20261130-tiny-5c1f70a3be2d"
author = "A U Thor <author@example.org>"
sign-off = true
to = ["list@example.org"]
patches = ["0001-helper", "0002-batch", "0003-header", "0004-use"]

[[fact]]
name = "has_init"
about = "opening a pool sets it up"
probe.statement = { file = "mm/pool.c", function = "pool_open", pattern = "pool_init(pool);" }

[[function]]
id = "fill"
file = "mm/pool.c"
name = "pool_fill"
parameters = ["pool", "count"]

[[function.part]]
name = "locals"
patterns = ["int i;"]

[[function.part]]
name = "loop"
patterns = ["for (i = 0; i < count; i++) $_BODY;"]

[[function.part]]
name = "seal"
patterns = ["pool_seal(pool);"]
"#;

const RECIPE: &[(&str, &str)] = &[
    ("cover.txt", "Filling a pool takes a while. Do it in batches.\n"),
    ("0001-helper/message.txt", "mm/pool: move sealing to a helper\n\nThe next patch needs it.\n"),
    (
        "0001-helper/patch.toml",
        "[[edit]]\nname = \"seal\"\naction = \"extract\"\nfile = \"mm/pool.c\"\npart = \"fill.seal\"\ntemplate = \"finish.c\"\ncall = \"pool_finish(pool);\"\ndefines = [\"pool_finish\"]\ninputs = { seal = \"match.text\" }\n",
    ),
    ("0002-batch/message.txt", "mm/pool: add a way to put a batch\n\nIt seals the pool as well.\n"),
    (
        "0002-batch/patch.toml",
        "[[edit]]\nname = \"batch\"\naction = \"insert\"\nfile = \"mm/pool.c\"\nplace = \"after\"\nfunction = \"pool_finish\"\ntemplate = \"batch.c\"\ndefines = [\"pool_put_batch\"]\ninputs = { loop = \"fill.loop.code\" }\n",
    ),
    ("0003-header/message.txt", "mm/pool: say how large a batch is\n\nIn a header of its own.\n"),
    (
        "0003-header/patch.toml",
        "[[edit]]\nname = \"header\"\naction = \"create\"\nfile = \"include/linux/pool_batch.h\"\ntemplate = \"header.h\"\n",
    ),
    ("0004-use/message.txt", "mm/pool: fill pools in batches\n\nThis is what the series is for.\n"),
    (
        "0004-use/patch.toml",
        "[[edit]]\nname = \"use\"\naction = \"replace\"\nfile = \"mm/pool.c\"\nfunction = \"pool_open\"\nstatement = \"pool_fill(pool, $COUNT);\"\ntext = \"pool_put_batch(pool, @{ count }@);\"\ninputs = { count = \"match.COUNT\" }\n",
    ),
    ("templates/finish.c.tera", "static void pool_finish(struct pool *pool)\n{\n\t@{ seal | tabs(n=1) }@\n}\n"),
    (
        "templates/batch.c.tera",
        "static void pool_put_batch(struct pool *pool, int count)\n{\n\tint i;\n\n\t@{ loop | tabs(n=1) }@\n\tpool_finish(pool);\n}\n",
    ),
    ("templates/header.h.tera", "/* SPDX-License-Identifier: GPL-2.0 */\n#ifndef _LINUX_POOL_BATCH_H\n#define _LINUX_POOL_BATCH_H\n\n#define POOL_BATCH 16\n\n#endif\n"),
];

/// No gates: they are slow.
pub(crate) const QUICK: &str = "gates = []\n";

impl Play {
    /// A remote without a base, and a bot that watches its tags `v*`.
    pub(crate) fn new(extra: &str) -> Self {
        let play = Self { dir: tempfile::tempdir().expect("a directory") };
        play.write("patches/tiny/series.toml", SERIES);
        for (path, text) in RECIPE {
            play.write(&format!("patches/tiny/{path}"), text);
        }
        play.write("bot.toml", &format!(
            "repository = \"bot.git\"\nseries = [\"tiny\"]\nretry = {{ tries = 2, seconds = 0.1 }}\n{extra}\n[[watch]]\nname = \"main\"\nremote = \"remote\"\ntags = [\"v*\"]\n"
        ));
        play.write("home/.keep", "");
        play.git(".", &["init", "-q", "-b", "main", "remote"]);
        play.write("remote/.gitattributes", "*.[ch] diff=cpp\n");
        play.write("remote/Makefile", MAKEFILE);
        play.write("remote/mm/pool.c", POOL);
        play
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, program: &str, dir: &str, args: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "tests look at the binary from outside")]
        let mut command = Command::new(program);
        let home = self.path("home");
        command.args(args).current_dir(self.path(dir)).env_clear();
        command.env("PATH", std::env::var_os("PATH").expect("PATH"));
        command.env("HOME", &home).env("XDG_CACHE_HOME", home.join("cache"));
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "Up Stream"),
            ("GIT_AUTHOR_EMAIL", "up@example.org"),
            ("GIT_AUTHOR_DATE", "1700000000 +0000"),
            ("GIT_COMMITTER_NAME", "Up Stream"),
            ("GIT_COMMITTER_EMAIL", "up@example.org"),
            ("GIT_COMMITTER_DATE", "1700000000 +0000"),
            ("TZ", "UTC"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs git; it must succeed.
    pub(crate) fn git(&self, dir: &str, args: &[&str]) -> String {
        let output = self.command("git", dir, args).output().expect("git starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Commits what is in the remote's work tree, and tags it.
    pub(crate) fn base(&self, tag: &str, message: &str) {
        self.commit(message);
        self.git("remote", &["tag", tag]);
    }

    fn commit(&self, message: &str) {
        self.git("remote", &["add", "-A"]);
        self.git("remote", &["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// A base with another release, which comes after the earlier ones.
    pub(crate) fn release(&self, number: usize, message: &str) {
        self.write("remote/Makefile", &MAKEFILE.replace("PATCHLEVEL = 0", &format!("PATCHLEVEL = {number}")));
        self.base(&format!("v1.{number}"), message);
    }

    /// Changes the file that the series changes.
    pub(crate) fn change(&self, old: &str, new: &str) {
        let text = self.read("remote/mm/pool.c");
        assert!(text.contains(old), "{old}");
        self.write("remote/mm/pool.c", &text.replacen(old, new, 1));
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(env!("CARGO_BIN_EXE_reroll"), ".", args).spawn().expect("reroll starts")
    }

    pub(crate) fn reroll(&self, args: &[&str], code: i32) -> (String, String) {
        let output = self.start(args).wait_with_output().expect("it ends");
        ended(&output, args, code)
    }

    /// Runs the bot; what it tells.
    pub(crate) fn bot(&self) -> String {
        self.reroll(&["bot", "run"], 0).0
    }

    /// The records by base.
    pub(crate) fn records(&self) -> BTreeMap<String, Value> {
        let (json, _) = self.reroll(&["bot", "status", "--json"], 0);
        let status: Value = serde_json::from_str(&json).expect("JSON");
        let rows = status["records"].as_array().expect("a list").clone();
        rows.into_iter().map(|row| (row["record"]["base"]["name"].as_str().expect("a name").to_owned(), row)).collect()
    }

    /// The verdicts of the patches on a base.
    fn verdicts(&self, base: &str) -> Vec<String> {
        let row = &self.records()[base];
        let patches = row["record"]["patches"].as_array().expect("a list");
        patches.iter().map(|patch| patch["verdict"].as_str().expect("a verdict").to_owned()).collect()
    }

    /// All refs of a repository.
    fn refs(&self, dir: &str) -> String {
        self.git(dir, &["for-each-ref", "--format=%(objectname) %(refname)"])
    }

    /// Applies the first patches of a result in the remote, as a maintainer would.
    fn merge_patches(&self, base: &str, count: usize, trailers: &str) {
        let branch = format!("refs/heads/reroll/tiny/{base}");
        let list = self.git("bot.git", &["rev-list", "--reverse", &format!("--max-count={}", 4), &branch]);
        self.git("remote", &["fetch", "-q", "../bot.git", &branch]);
        for id in list.lines().take(count) {
            self.git("remote", &["cherry-pick", id]);
            let message = self.git("remote", &["log", "-1", "--format=%B"]);
            self.git("remote", &["commit", "-q", "--amend", "-m", &format!("{message}\n{trailers}")]);
        }
    }
}

#[track_caller]
fn ended(output: &Output, args: &[&str], code: i32) -> (String, String) {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(code), "{args:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
    (stdout, stderr)
}

/// Everything below a directory with its content; what git and the lab keep for themselves as well.
fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut open, mut found) = (vec![dir.to_owned()], BTreeMap::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path.clone());
                found.insert(path, Vec::new());
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.insert(path, bytes);
            }
        }
    }
    found
}

const TRAILERS: &str = "Reviewed-by: Re Viewer <re@example.org>\nSigned-off-by: Up Stream <up@example.org>";

#[test]
fn bases_come_one_after_another_and_each_is_judged() {
    let play = Play::new("");
    play.release(1, "one");
    let told = play.bot();
    assert_eq!(told, "tiny on v1.1: clean\n");

    // The place moves and nothing else: nobody is told.
    play.change("#include <linux/pool.h>\n", "#include <linux/pool.h>\n#include <linux/x.h>\n");
    play.release(2, "mm: include more");
    assert_eq!(play.bot(), "");

    // Code that flows through changes.
    play.change("pool_put(pool, i);", "pool_put(pool, i + 1);");
    play.release(3, "mm/pool: count from one");
    let told = play.bot();
    assert!(told.starts_with("tiny on v1.3: drifted (was clean)\n  batch: drifted: unlike on v1.2: it changes other lines\n"), "{told}");
    assert!(told.contains("+ +\t\tpool_put(pool, i + 1);"), "{told}");

    // A statement that no part claims.
    play.change("\tpool_seal(pool);", "\tpool_sync(pool);\n\tpool_seal(pool);");
    play.release(4, "mm/pool: sync before the end");
    let told = play.bot();
    assert!(told.starts_with("tiny on v1.4: conflict (was drifted)\n"), "{told}");
    assert!(told.contains("pool_sync(pool);") && told.contains("series.toml:"), "{told}");
    assert!(told.contains("(\"mm/pool: sync before the end\"): mm/pool.c: pool_fill()"), "{told}");
    assert!(!told.contains(&play.path("").display().to_string()), "no path of a machine: {told}");

    play.change("\tpool_sync(pool);\n", "");
    play.change("\tpool_init(pool);\n", "");
    play.release(5, "mm/pool: no sync, no init");
    let told = play.bot();
    // Compared with v1.3, the last one that has a result; nothing of what the patches change is different.
    assert!(told.is_empty() || told.contains("v1.5: clean"), "{told}");
    let records = play.records();
    let changed = &records["v1.5"]["record"]["changed-facts"][0];
    assert_eq!((&changed["name"], &changed["old"], &changed["new"]), (&"has_init".into(), &"true".into(), &"false".into()));

    let states: Vec<_> = records.values().map(|row| row["state"].as_str().expect("text")).collect();
    assert_eq!(states, ["clean", "clean", "drifted", "conflict", "clean"]);
    let gates = records["v1.1"]["record"]["gates"].as_array().expect("a list");
    assert!(gates.len() > 4 && gates.iter().all(|gate| gate["status"] == "pass"), "{gates:?}");

    // A second run writes nothing, and is quick.
    let before = everything(play.dir.path());
    let since = Instant::now();
    assert_eq!(play.bot(), "");
    let took = since.elapsed();
    assert!(everything(play.dir.path()) == before, "a run with nothing new wrote something");
    assert!(took < Duration::from_secs(3), "{took:?}");
    let branches = play.git("bot.git", &["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(branches, "refs/heads/reroll/tiny/v1.1\nrefs/heads/reroll/tiny/v1.2\nrefs/heads/reroll/tiny/v1.3\nrefs/heads/reroll/tiny/v1.5");
}

#[test]
fn a_series_that_was_merged_with_trailers_is_upstream() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.merge_patches("v1.1", 4, TRAILERS);
    play.release(2, "two");
    let told = play.bot();
    assert!(told.starts_with("tiny on v1.2: upstream (was clean)\n"), "{told}");
    assert_eq!(told.matches("has the same patch-id").count(), 4, "{told}");
    assert_eq!(play.verdicts("v1.2"), ["upstream"; 4]);
}

#[test]
fn a_first_patch_that_was_merged_is_left_out_and_the_letter_says_so() {
    let play = Play::new("");
    play.release(1, "one");
    play.bot();
    play.merge_patches("v1.1", 1, TRAILERS);
    // Upstream goes on in the same file, also in the next base.
    play.change("#include <linux/pool.h>\n", "#include <linux/pool.h>\n#include <linux/x.h>\n");
    play.release(2, "two");
    let told = play.bot();
    assert!(told.starts_with("tiny on v1.2: upstream (1 of 4 upstream) (was clean)\n  helper: upstream: "), "{told}");
    assert_eq!(play.verdicts("v1.2"), ["upstream", "clean", "clean", "clean"]);
    play.change("pool_init(pool);", "pool_init(pool);\n\tpool_check(pool);");
    play.release(3, "three");
    assert_eq!(play.bot(), "");
    let records = play.records();
    for base in ["v1.2", "v1.3"] {
        let record = &records[base]["record"];
        let numbers: Vec<_> = record["patches"].as_array().expect("a list").iter().map(|patch| patch["number"].as_u64()).collect();
        assert_eq!(numbers, [None, Some(1), Some(2), Some(3)]);
        let cover = record["cover"].as_str().expect("text");
        assert!(cover.contains("has the first patch of the series") && cover.contains("mm/pool: move sealing to a helper"), "{cover}");
        assert!(record["gates"].as_array().expect("a list").iter().all(|gate| gate["status"] == "pass"), "{}", record["gates"]);
    }
    // What is left is what the whole series would have made.
    let text = play.git("bot.git", &["show", "refs/heads/reroll/tiny/v1.2:mm/pool.c"]);
    let whole = play.git("bot.git", &["show", "refs/heads/reroll/tiny/v1.1:mm/pool.c"]);
    assert_eq!(text.replace("#include <linux/x.h>\n", ""), whole);
}

#[test]
fn a_patch_that_was_merged_with_another_line_is_probably_upstream_and_never_dropped() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.merge_patches("v1.1", 2, "");
    play.change("static void pool_put_batch(struct pool *pool, int count)\n{\n\tint i;\n\n", "static void pool_put_batch(struct pool *pool, int count)\n{\n\tunsigned int i;\n\n");
    play.git("remote", &["commit", "-q", "-a", "--amend", "--no-edit"]);
    play.release(2, "two");
    let told = play.bot();
    assert!(told.starts_with("tiny on v1.2: conflict (was clean)\n"), "{told}");
    assert!(told.contains("a part of the series is in the base already"), "{told}");
    assert_eq!(play.verdicts("v1.2"), ["upstream", "probably-upstream", "conflict", "conflict"]);
    let refs = play.refs("bot.git");
    assert!(!refs.contains("refs/heads/reroll/tiny/v1.2"), "{refs}");
}

#[test]
fn the_same_subject_alone_says_nothing() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.change("return 0;", "return pool_state(pool);");
    play.commit("mm/pool: fill pools in batches");
    play.release(2, "two");
    assert_eq!(play.bot(), "");
    assert_eq!(play.verdicts("v1.2"), ["clean"; 4]);
}

#[test]
fn what_was_merged_and_reverted_is_not_upstream() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    play.merge_patches("v1.1", 1, "");
    play.git("remote", &["revert", "--no-edit", "HEAD"]);
    play.release(2, "two");
    assert_eq!(play.bot(), "");
    assert_eq!(play.verdicts("v1.2"), ["clean"; 4]);
}

#[test]
fn a_moved_branch_is_followed_and_an_edited_result_is_left_alone() {
    let play = Play::new(QUICK);
    let config = play.read("bot.toml") + "branches = [\"main\"]\n";
    play.write("bot.toml", &config);
    play.release(1, "one");
    play.bot();
    let first = play.git("bot.git", &["rev-parse", "refs/heads/reroll/tiny/main"]);
    play.change("return 0;", "return 1;");
    play.commit("mm: return one");
    assert_eq!(play.bot(), "");
    let second = play.git("bot.git", &["rev-parse", "refs/heads/reroll/tiny/main"]);
    assert_ne!(first, second);
    // A person works on the branch.
    play.git(".", &["clone", "-q", "-b", "reroll/tiny/main", "bot.git", "person"]);
    play.git("person", &["commit", "-q", "--allow-empty", "-m", "by hand"]);
    play.git("person", &["push", "-q", "origin", "HEAD"]);
    let edited = play.git("bot.git", &["rev-parse", "refs/heads/reroll/tiny/main"]);
    play.change("return 1;", "return 2;");
    play.commit("mm: return two");
    for _ in 0..2 {
        let (_, said) = play.reroll(&["bot", "run"], 0);
        assert!(said.contains("tiny/main was moved by somebody else"), "{said}");
        assert_eq!(play.git("bot.git", &["rev-parse", "refs/heads/reroll/tiny/main"]), edited);
    }
    assert_eq!(play.records()["main"]["branch"], "edited");
    let (_, said) = play.reroll(&["bot", "run", "--recreate", "tiny/main"], 0);
    assert!(!said.contains("moved by"), "{said}");
    assert_eq!(play.records()["main"]["branch"], "");
    assert!(play.refs("bot.git").contains(&format!("{edited} refs/reroll/replaced/tiny/main/{edited}")));
}

#[test]
fn errors_of_the_surroundings_are_no_verdicts() {
    let play = Play::new(QUICK);
    play.release(1, "one");
    play.bot();
    let refs = play.refs("bot.git");
    fs::rename(play.path("remote"), play.path("gone")).expect("renamed");
    let since = Instant::now();
    let (told, said) = play.reroll(&["bot", "run"], 4);
    assert!(told.is_empty() && said.contains("error: cannot ask") && said.contains("trying again"), "{said}");
    assert!(since.elapsed() < Duration::from_secs(20));
    assert_eq!(play.refs("bot.git"), refs);
    // A gate that cannot run is none either.
    fs::rename(play.path("gone"), play.path("remote")).expect("renamed");
    let config = play.read("bot.toml").replace("gates = []", "gates = [\"checkpatch\"]");
    play.write("bot.toml", &config);
    let (_, said) = play.reroll(&["bot", "run"], 4);
    assert!(said.contains("the gate `checkpatch` could not run"), "{said}");
    assert_eq!(play.refs("bot.git"), refs);
}
