//! What of a series a base has is told by content: the recipe, on the base without it, has to give the base back. With a history, in a shallow
//! clone, and in an import; names, subjects and patch-ids say nothing.
//!
//! Hides how a base comes to have the whole series, a part of it, or something that only goes by its names.

use std::path::PathBuf;

use reroll::repo::ObjectId;
use serde_json::Value;

use crate::support::{AUTHOR, Kernel, Program, Ran, Sandbox, Store, Tiny, kernels};

const LAMP: &str = "drivers/lamp.c";
const KBUILD: &str = "drivers/Kbuild";
const TABLE: &str = "patches/tiny/0003-table/patch.toml";

/// A fixture, and the commits of its series on top of its base.
struct Applied {
    tiny: Tiny,
    commits: Vec<String>,
}

/// A base: a revision of a repository.
struct Base {
    what: &'static str,
    path: PathBuf,
    rev: String,
}

impl Applied {
    fn new() -> Self {
        Self::on(Tiny::new())
    }

    /// The series on the base of a fixture.
    fn on(tiny: Tiny) -> Self {
        let ran = tiny.regen().args(["--ref", "refs/heads/series", "--json"]);
        let report = ran.run().expect_exit(0).json();
        let commits = report["commits"].as_array().expect("a list").iter();
        let commits = commits.map(|it| it["commit"].as_str().expect("an id").to_owned());
        Self {
            commits: commits.collect(),
            tiny,
        }
    }

    /// The last patch's commit.
    fn tip(&self) -> &str {
        &self.commits[2]
    }

    fn tree(&self, rev: &str) -> ObjectId {
        self.tiny.store.repo.base(rev).expect("a revision").tree_id
    }

    /// The tree of a revision in which `from`, which must be once in a file, is something else.
    #[track_caller]
    fn changed(&self, rev: &str, path: &str, from: &str, to: &str) -> ObjectId {
        let text = self.tiny.store.file(rev, path).to_string();
        assert_eq!(text.matches(from).count(), 1, "`{from}` is in {path} once");
        let text = text.replacen(from, to, 1);
        self.tiny
            .store
            .tree_with(self.tree(rev), &[(path, text.as_bytes())])
    }

    /// A tree as a base: on top of a commit, in a shallow clone of that, and as an import.
    fn bases(&self, parent: &str, tree_id: ObjectId) -> Vec<Base> {
        let Tiny { sandbox, store, .. } = &self.tiny;
        let parent = store.repo.base(parent).expect("a revision").commit_id;
        let rev = store.commit(tree_id, Some(parent), "mm: something else\n");
        let shallow = sandbox.path(format!("shallow-{rev}"));
        if !shallow.exists() {
            let url = format!("file://{}", store.path.display());
            let clone = sandbox.git(["clone", "-q", "--bare", "--depth=1", &url]);
            clone.arg(&shallow).run().expect_exit(0);
        }
        let import = store.commit(tree_id, None, "imported\n");
        let base = |what, path: &PathBuf, rev: ObjectId| Base {
            what,
            path: path.clone(),
            rev: rev.to_string(),
        };
        vec![
            base("with a history", &store.path, rev),
            base("in a shallow clone", &shallow, rev),
            base("as an import", &store.path, import),
        ]
    }

    fn regen(&self, base: &Base) -> Program {
        let program = self
            .tiny
            .sandbox
            .reroll(["regen", "--author", AUTHOR, "-s", "-n"]);
        program
            .args(["--base", &base.rev, "--tree"])
            .arg(&base.path)
    }

    /// The base has the whole series, and it is said which patches.
    #[track_caller]
    fn is_applied(&self, base: &Base) {
        let ran = self.regen(base).run().expect_exit(0);
        let ran = ran.says(&["already applied: the base has `lamp_warm_up()` in `drivers/lamp.c`"]);
        let notes = ran.stderr.matches("is upstream and left out: ").count();
        assert_eq!(notes, 3, "{}: {}", base.what, ran.stderr);
    }

    /// Only these patches are left to be sent, and they make the trees that the whole series makes.
    #[track_caller]
    fn leaves(&self, base: &Base, patches: &[&str]) -> Value {
        let ran = self.regen(base).arg("--json").run().expect_exit(0);
        let report = ran.json();
        let left = report["commits"].as_array().expect("a list").iter();
        let left: Vec<_> = left
            .map(|it| it["patch"].as_str().expect("a name"))
            .collect();
        assert_eq!(left, patches, "{}: {}", base.what, ran.stderr);
        let upstream = report["upstream"].as_array().expect("a list").len();
        assert_eq!(upstream, 3 - patches.len(), "{}", base.what);
        report
    }

    /// Refused, with each of these words.
    #[track_caller]
    fn is_refused(&self, base: &Base, words: &[&str]) -> Ran {
        let ran = self.regen(base).run().refused(3).says(words);
        assert!(!ran.stderr.contains("already applied"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("left out: "), "{}", ran.stderr);
        ran
    }
}

/// The revision that a hint names with `--base`.
#[track_caller]
fn base_of_hint(ran: &Ran) -> String {
    let (_, rest) = ran.stderr.split_once("(`--base ").expect("a base");
    rest.split_once('`').expect("its end").0.to_owned()
}

#[test]
fn a_series_that_was_applied_is_there_with_and_without_a_history() {
    let applied = Applied::new();
    for base in applied.bases(applied.tip(), applied.tree(applied.tip())) {
        applied.is_applied(&base);
    }
    // Somebody changes what the series does not care for, in a file of the series.
    let levels = "#define LEVELS 8\n";
    let more = applied.changed(
        applied.tip(),
        LAMP,
        levels,
        "#define LEVELS 8\n#define LAMPS 4\n",
    );
    for base in applied.bases(applied.tip(), more) {
        applied.is_applied(&base);
    }
    // On another base the series carries other code and has other words.
    let mut tiny = Tiny::new();
    tiny.change(
        LAMP,
        "lamp_wait(lamp, 10);",
        "lamp_wait(lamp,\n\t\t\t  20);",
    );
    tiny.change(LAMP, levels, "");
    tiny.change(
        LAMP,
        "lamp_start(lamp, bus->level);",
        "lamp_start(lamp,\n\t\t\t   max(bus->max, 1));",
    );
    tiny.commit(
        &[("drivers/dimmer.c", b"static void dim(int a)\n{\n}\n")],
        "a dimmer\n",
    );
    let applied = Applied::on(tiny);
    for base in applied.bases(applied.tip(), applied.tree(applied.tip())) {
        applied.is_applied(&base);
    }
}

#[test]
fn the_first_patches_are_there_with_and_without_a_history() {
    let applied = Applied::new();
    let names = ["split", "batch", "table"];
    for count in 1..3 {
        let commit = &applied.commits[count - 1];
        for base in applied.bases(commit, applied.tree(commit)) {
            let report = applied.leaves(&base, &names[count..]);
            let last = report["commits"]
                .as_array()
                .expect("a list")
                .last()
                .expect("one");
            assert_eq!(last["tree"], applied.tree(applied.tip()).to_string());
        }
    }
    // The last one was taken back.
    for base in applied.bases(applied.tip(), applied.tree(&applied.commits[1])) {
        applied.leaves(&base, &["table"]);
    }
    // All were, and came again.
    let Applied { tiny, .. } = &applied;
    let id = |rev: &str| tiny.store.repo.base(rev).expect("a revision").commit_id;
    let gone = tiny.store.commit(
        applied.tree(&tiny.rev),
        Some(id(applied.tip())),
        "Revert all\n",
    );
    let gone = gone.to_string();
    let base = &applied.bases(&gone, applied.tree(&gone))[0];
    let report = applied
        .regen(base)
        .arg("--json")
        .run()
        .expect_exit(0)
        .json();
    assert_eq!(report["commits"].as_array().map(Vec::len), Some(3));
    for base in applied.bases(&gone, applied.tree(applied.tip())) {
        applied.is_applied(&base);
    }
}

#[test]
fn a_line_of_kbuild_that_is_missing_is_named_and_every_hint_works() {
    let applied = Applied::new();
    let half = applied.changed(applied.tip(), KBUILD, "obj-y += lamp_table.o\n", "");
    for base in applied.bases(applied.tip(), half) {
        let ran = applied.is_refused(
            &base,
            &[
                "a part of the series is in the base already: 14 of 15 edits are there as the recipe makes them\n",
                "\n  not there: patch `table`, edit `object`: drivers/Kbuild:3\n",
                "\n  there: patch `table`, edit `header`: include/table.h:1\n",
                "\n  there: patch `split`, all of its edits\n",
                &format!("let the recipe make what the base has, at {TABLE}:9, and what is merged is left out"),
            ],
        );
        // A base without the series is named where there is one, and the series fits it.
        assert_eq!(
            base.what == "with a history",
            ran.stderr.contains("--base"),
            "{}",
            ran.stderr
        );
        if base.what == "with a history" {
            let rev = base_of_hint(&ran);
            let report = applied
                .regen(&Base { rev, ..base })
                .arg("--json")
                .run()
                .expect_exit(0);
            assert_eq!(report.json()["commits"].as_array().map(Vec::len), Some(3));
        }
    }
    // What is in the base is what the recipe makes: then that is all there is to do.
    let bases = applied.bases(applied.tip(), half);
    applied.tiny.edit(TABLE, "[[edit]]\nname = \"object\"\naction = \"insert\"\nfile = \"drivers/Kbuild\"\nsorted = \"obj-y += lamp_table.o\"\n", "");
    for base in &bases {
        applied.is_applied(base);
    }
}

#[test]
fn a_statement_that_is_missing_or_another_one_is_named() {
    let applied = Applied::new();
    let refused = |from: &str, to: &str, words: &[&str]| {
        let tree = applied.changed(applied.tip(), LAMP, from, to);
        for base in applied.bases(applied.tip(), tree) {
            let ran = applied.is_refused(&base, words);
            assert!(
                ran.stderr
                    .contains("a part of the series is in the base already"),
                "{}",
                ran.stderr
            );
        }
    };
    // One half of a loop's new work is missing, and one is the old one.
    refused(
        "\t\tstarted++;\n",
        "",
        &["\n  not there: patch `batch`, edit `count`: drivers/lamp.c:67\n"],
    );
    refused(
        "lamp_power_batched(lamp, true)",
        "lamp_power(lamp, true)",
        &["\n  not there: patch `batch`, edit `switch`: drivers/lamp.c:36\n"],
    );
    // A function of the series does something else.
    refused(
        "msleep(lamp_delays[bus->level]);",
        "msleep(2 * lamp_delays[bus->level]);",
        &["\n  not there: patch `table`, edit `settle`: drivers/lamp.c"],
    );
    refused(
        "static void lamp_warm_up(struct lamp *lamp)\n{\n",
        "static void lamp_warm_up(struct lamp *lamp)\n{\n\tlamp_check(lamp);\n\n",
        &["patch `split`, edit `warm`: drivers/lamp.c"],
    );
    // All of it is there, and besides something in a function whose every statement has to be known.
    refused(
        "\tlamp->on = true;\n",
        "\tlamp->on = true;\n\tlamp_tell(lamp);\n",
        &[
            "15 of 15 edits are there",
            "\n  without the edits that are there: drivers/lamp.c:",
            "no part of `lamp_start()` claims this statement\n",
            "lamp_tell(lamp);\n",
        ],
    );
}

#[test]
fn names_alone_are_no_series() {
    let applied = Applied::new();
    let old = applied.tiny.store.file(&applied.tiny.rev, LAMP).to_string();
    let empty = "static void lamp_warm_up(void)\n{\n}\n\nstatic void lamp_settle(void)\n{\n}\n";
    let text = format!("{old}\n{empty}");
    let files: [(&str, &[u8]); 3] = [
        (LAMP, text.as_bytes()),
        ("include/table.h", b"/* Tables. */\n"),
        ("drivers/lamp_table.c", b"/* Others. */\n"),
    ];
    let store = &applied.tiny.store;
    let tree = store.tree_with(applied.tree(&applied.tiny.rev), &files);
    for base in applied.bases(&applied.tiny.rev, tree) {
        let ran = applied.is_refused(
            &base,
            &[
                "error: `lamp_warm_up()` in `drivers/lamp.c`, `lamp_settle()` in `drivers/lamp.c`, `include/table.h`, `drivers/lamp_table.c` are in the base already, and not as the recipe makes them\n",
                "\n  with another text: patch `split`, edit `warm`: drivers/lamp.c:59\n",
                "\n    the recipe's: static void lamp_warm_up(struct lamp *lamp)\n    the base's:   static void lamp_warm_up(void)\n",
                "\n  with another text: patch `table`, edit `header`: include/table.h:1\n",
                "if it is something else, give the series' own another name there\n",
            ],
        );
        assert!(!ran.stderr.contains("  there: "), "{}", ran.stderr);
    }
    // One name only, and what to do about it.
    let text = format!("{old}\nstatic void lamp_settle(void)\n{{\n}}\n");
    let tree = store.tree_with(applied.tree(&applied.tiny.rev), &[(LAMP, text.as_bytes())]);
    let bases = applied.bases(&applied.tiny.rev, tree);
    for base in &bases {
        applied.is_refused(base, &["error: `lamp_settle()` in `drivers/lamp.c` is in the base already, and not as the recipe makes it\n"]);
    }
    for path in [
        "patches/tiny/0002-batch/patch.toml",
        TABLE,
        "templates/tiny/settle.c.tera",
    ] {
        let text = applied.tiny.sandbox.read(path).to_string();
        applied
            .tiny
            .sandbox
            .write(path, text.replace("lamp_settle", "lamp_settle_all"));
    }
    for base in &bases {
        let report = applied
            .regen(base)
            .arg("--json")
            .run()
            .expect_exit(0)
            .json();
        assert_eq!(
            report["commits"].as_array().map(Vec::len),
            Some(3),
            "{}",
            base.what
        );
    }
}

#[test]
fn what_has_no_name_is_not_inserted_twice() {
    let applied = Applied::new();
    let comment = "/* Levels go up to LEVELS - 1. */\n\n";
    let set = "/* Sets a level. */\n";
    let tree = applied.changed(&applied.tiny.rev, LAMP, set, &format!("{comment}{set}"));
    for base in applied.bases(&applied.tiny.rev, tree) {
        applied.is_refused(
            &base,
            &[
                "patch `split`, edit `comment` inserts what the base has at drivers/lamp.c:8 already\n",
                "\nof the series the base has:\n",
                "\n  there: patch `split`, edit `comment`: drivers/lamp.c:8\n",
                "take the edit out at patches/tiny/0001-split/patch.toml:15",
            ],
        );
    }
    let tree = applied.changed(
        &applied.tiny.rev,
        KBUILD,
        "obj-y += switch.o\n",
        "obj-y += lamp_table.o\nobj-y += switch.o\n",
    );
    for base in applied.bases(&applied.tiny.rev, tree) {
        applied.is_refused(
            &base,
            &[
                "`drivers/Kbuild:3` has `obj-y += lamp_table.o` already\n",
                "\n  there: patch `table`, edit `object`: drivers/Kbuild:3\n",
            ],
        );
    }
}

#[test]
fn an_altered_patch_is_left_out_once_the_recipe_makes_it_so() {
    let applied = Applied::new();
    let commit = applied.commits[1].clone();
    let tree = applied.changed(&commit, LAMP, "msleep(1);", "msleep(2);");
    let bases = applied.bases(&commit, tree);
    for base in &bases {
        let ran = applied.is_refused(
            base,
            &[
                "a part of the series is in the base already: ",
                "\n  with another text: patch `batch`, edit `settle`: drivers/lamp.c:51\n",
                "\n    the recipe's: \tmsleep(1);\n    the base's:   \tmsleep(2);\n",
                "\n  not there: patch `table`, none of its edits\n",
                "let the recipe make what the base has, at patches/tiny/0002-batch/patch.toml:76, ",
            ],
        );
        assert!(
            ran.stderr
                .contains("\n  there: patch `split`, all of its edits\n"),
            "{}",
            ran.stderr
        );
    }
    applied
        .tiny
        .edit("templates/tiny/settle.c.tera", "else %@1@%", "else %@2@%");
    for base in &bases {
        applied.leaves(base, &["table"]);
    }
}

/// A real kernel with files of a commit and changes to them, as an import.
fn real(
    store: &Store,
    rev: &str,
    change: impl Fn(&str, String) -> Option<String>,
    paths: &[&str],
) -> String {
    let tree = store.repo.base(rev).expect("a revision").tree_id;
    let texts = paths.iter().filter_map(|path| {
        let text = store.file(rev, path).to_string();
        Some((*path, change(path, text)?))
    });
    let texts: Vec<_> = texts.collect();
    let files: Vec<_> = texts
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    store
        .commit(store.tree_with(tree, &files), None, "imported\n")
        .to_string()
}

#[test]
fn on_real_kernels_what_is_missing_is_named_and_names_are_not_enough() {
    for kernel in kernels() {
        let home = kernel.home();
        let sandbox = Sandbox::new();
        let (store, base) = kernel.slice(&sandbox, "kernel.git");
        let regen = |rev: &str| {
            let program = sandbox.reroll(["regen", "--series", "zone-device", "--author", AUTHOR]);
            program
                .args(["--json", "--base", rev, "--tree"])
                .arg(&store.path)
        };
        let whole = regen(&base.to_string()).args(["-o", "out", "--ref", "refs/heads/series"]);
        let whole = whole.run().expect_exit(0).json();
        let commits = whole["commits"].as_array().expect("a list").clone();
        let id = |commit: &Value| commit["commit"].as_str().expect("an id").to_owned();
        parts_of_a_kernel(kernel, &store, &id(&commits[3]), |rev, words| {
            let ran = regen(rev).arg("-n").run().refused(3).says(words);
            assert!(!ran.stderr.contains("left out: "), "{}", ran.stderr);
        });
        // Names, and the old loops.
        let names = "static inline void zone_device_page_copy(void)\n{\n}\n";
        let old = real(
            &store,
            &base.to_string(),
            |_, text| Some(format!("{text}\n{names}")),
            &[home],
        );
        let words = format!(
            "`zone_device_page_copy()` in `{home}` is in the base already, and not as the recipe makes it\n"
        );
        regen(&old).arg("-n").run().refused(3).says(&[&words]);
    }
}

/// The whole series but for something.
fn parts_of_a_kernel(kernel: &Kernel, store: &Store, tip: &str, refused: impl Fn(&str, &[&str])) {
    const KBUILD: &str = "include/asm-generic/Kbuild";
    let home = kernel.home();
    let without = |path: &str, from: &str, to: &str| {
        let change = |_: &str, text: String| {
            assert_eq!(text.matches(from).count(), 1, "{}: `{from}`", kernel.name);
            Some(text.replacen(from, to, 1))
        };
        real(store, tip, change, &[path])
    };
    let line = "mandatory-y += struct_page_init.h\n";
    refused(
        &without(KBUILD, line, ""),
        &[
            "a part of the series is in the base already",
            "\n  not there: patch `arch-stores`, edit `mandatory`: include/asm-generic/Kbuild:",
            "\n  there: patch `factor-helpers`, all of its edits",
        ],
    );
    // One loop of two is the old one.
    refused(
        &without(home, "pfn < slow_end_pfn;", "pfn < end_pfn;"),
        &[&format!(
            "\n  not there: patch `tail-template`, edit `loop`: {home}"
        )],
    );
    refused(
        &without(home, "\tarch_optimize_store_drain();\n", ""),
        &[&format!(
            "\n  not there: patch `arch-stores`, edit `drain`: {home}"
        )],
    );
}
