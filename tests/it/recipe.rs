//! A recipe with no code of its own in `reroll`: every action and probe, on a small tree, against golden files; properties of edits.
//!
//! Hides how golden files are compared, and made anew with `SNAPSHOTS=overwrite`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bstr::{BString, ByteSlice};
use proptest::prelude::*;
use reroll::recipe;
use reroll::repo::{Repo, Signature};
use reroll::series::{Options, Regenerated, Series, regenerate};

use crate::support::{AUTHOR, Tiny, assert_same, tree_files};

const FILE: &str = "drivers/lamp.c";

/// More lines than a patch has as context: a carriage return in a patch is refused, since git takes it away.
const PADDING: &[u8] = b"\n#define A 1\n#define B 1\n#define C 1\n#define D 1\n";

/// Compares files with the golden ones of a directory: the same names, the same bytes.
fn golden(name: &str, found: &BTreeMap<String, BString>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    // The tool's own version is in every mail, and changes without any harm.
    let plain = |bytes: &BString| {
        bytes.replace(
            format!("reroll {}", env!("CARGO_PKG_VERSION")),
            "reroll VERSION",
        )
    };
    if std::env::var("SNAPSHOTS").is_ok_and(|what| what == "overwrite") {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        for (name, bytes) in found {
            fs::write(dir.join(name), plain(bytes)).expect("a file");
        }
    }
    let expected: BTreeMap<_, _> = tree_files(&dir, "").into_iter().collect();
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(found.keys().collect()),
        names(expected.keys().collect()),
        "{name}"
    );
    for (file, bytes) in found {
        assert_same(&plain(bytes), &expected[file], &format!("{name}/{file}"));
    }
}

#[test]
fn notes_stand_below_the_line_and_in_no_commit() {
    let tiny = Tiny::new();
    let dir = "patches/tiny/0002-batch";
    // The notes use an input that the message has too, and one that only they have.
    let patch = tiny.sandbox.read(format!("{dir}/patch.toml"));
    let patch = patch.replace("[inputs]\n", "[inputs]\nrelease = \"base.release\"\n");
    tiny.sandbox.write(format!("{dir}/patch.toml"), patch);
    let notes = "Level @{ level }@, on @{ release }@.\n";
    tiny.sandbox.write(format!("{dir}/notes.txt"), notes);
    tiny.sandbox
        .write("patches/tiny/notes.txt", "Changes since v1: none.\n");
    tiny.regen()
        .args(["--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let mails = tiny.sandbox.files("out");
    let below = |number: &str| {
        let (_, mail) = mails
            .iter()
            .find(|(name, _)| name.starts_with(number))
            .expect("a mail");
        let (_, below) = mail.split_once_str("\n---\n").expect("a line");
        below.as_bstr().to_owned()
    };
    let (found, release) = (below("0002-"), "on 3.1.4.\n");
    assert!(
        found.starts_with(b"Level ") && found.contains_str(release),
        "{found}"
    );
    assert!(below("0000-").starts_with(b"Changes since v1: none.\n"));
    assert!(!below("0001-").contains_str("Level "));
    let base = tiny
        .store
        .repo
        .base("refs/heads/series~1")
        .expect("a commit");
    let message = tiny.store.repo.commit(base.commit_id).expect("it").message;
    assert!(!message.contains_str("Level "), "{message}");
    // An input that neither uses is refused as ever.
    tiny.sandbox.write(format!("{dir}/notes.txt"), "Nothing.\n");
    tiny.refused(2, &["does not use its input `release`"]);
}

#[test]
fn a_recipe_of_every_action_gives_the_golden_mails_and_files() {
    let tiny = Tiny::new();
    tiny.regen()
        .args(["--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let mut found = tiny.sandbox.files("out");
    for path in [
        "drivers/Kbuild",
        FILE,
        "drivers/lamp_table.c",
        "include/table.h",
    ] {
        let name = path.rsplit('/').next().expect("a name").to_owned();
        found.insert(name, tiny.store.file("refs/heads/series", path));
    }
    golden("tiny", &found);
}

#[test]
fn facts_and_explain_show_every_fact_and_edit_with_its_place() {
    let tiny = Tiny::new();
    let shown = |args: &[&str]| tiny.reroll(args).run().expect_exit(0).stdout;
    let found = BTreeMap::from([
        ("facts.txt".to_owned(), shown(&["facts"])),
        (
            "facts.json".to_owned(),
            shown(&["facts", "--json"]).replace(&tiny.rev, "REV").into(),
        ),
        ("explain.txt".to_owned(), shown(&["explain"])),
        (
            "explain.json".to_owned(),
            shown(&["explain", "--json"])
                .replace(&tiny.rev, "REV")
                .into(),
        ),
    ]);
    golden("tiny-shown", &found);
    assert_eq!(tiny.sandbox.listing("."), {
        shown(&["explain"]);
        tiny.sandbox.listing(".")
    });
}

#[test]
fn another_base_gives_other_words_from_the_same_recipe() {
    let mut tiny = Tiny::new();
    tiny.change(
        FILE,
        "\t\t/* Tell who listens. */\n\t\tbus_log(bus, \"lamp %d\", i);\n",
        "",
    );
    tiny.change(FILE, "\t\tlamp_wait(lamp, 10);\n", "");
    tiny.change(
        FILE,
        "lamp_start(lamp, bus->level);",
        "lamp_start(lamp, level);",
    );
    tiny.change("Makefile", "EXTRAVERSION =\n", "EXTRAVERSION = -rc2\n");
    tiny.commit(
        &[("drivers/dimmer.c", b"int dim(void)\n{\n\treturn 0;\n}\n")],
        "add a dimmer\n",
    );
    tiny.store.publish(&tiny.rev);
    tiny.regen()
        .args(["--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let mails = tiny.sandbox.files("out");
    let cover = &mails["0000-cover-letter.patch"];
    assert!(
        cover.contains_str("Nothing is logged.") && cover.contains_str("on 3.1.4-rc2:"),
        "{cover}"
    );
    assert!(
        cover.contains_str(format!("base-commit: {}\n", tiny.rev)),
        "a commit that was tagged is official"
    );
    let first = &mails["0001-lamp-split-lamp_start.patch"];
    assert!(
        first.contains_str("\nWarm a lamp up in a function of its own.\n"),
        "{first}"
    );
    let dimmer = tiny.store.file("refs/heads/series", "drivers/dimmer.c");
    assert!(
        dimmer.starts_with(b"/* Not on this base. */\n\nint dim(void)"),
        "{dimmer}"
    );
    let lamp = tiny.store.file("refs/heads/series", FILE);
    assert!(
        lamp.contains_str("\tmsleep(lamp_delays[bus->level]);"),
        "{lamp}"
    );
}

#[test]
fn parts_claim_what_they_say_and_nothing_else() {
    let carried = [
        // Any number of stores, also none; of values that depend on nothing that varies.
        ("\tlamp->on = true;\n", ""),
        (
            "\tlamp->on = true;\n",
            "\tlamp->on = true;\n\tlamp->hot = lamp->on && !lamp->cold;\n",
        ),
        ("bus_id(lamp->bus)", "bus_id(lamp->bus->parent)"),
        ("lamp_wait(lamp, 10);", "lamp_wait(lamp, LEVELS * 10);"),
        (
            "lamp_power(lamp, true)",
            "lamp_power(lamp, lamp->on ? false : true)",
        ),
        (
            "lamp_start(lamp, bus->level);",
            "lamp_start(lamp, bus->level, 1, 2);",
        ),
        (
            "\t\tbus_log(bus, \"lamp %d\", i);\n",
            "\t\tbus_log(bus,\n\t\t\t\"lamp\");\n",
        ),
        (
            "\tif (error)\n\t\treturn error;\n",
            "\tif (error) /* oh */\n\t\treturn error;\n",
        ),
    ];
    for (from, to) in carried {
        let mut tiny = Tiny::new();
        tiny.change(FILE, from, to);
        tiny.regen().run().expect_exit(0);
    }
    let refused = [
        (
            "\tlamp->on = true;\n",
            "\tlamp->on = level;\n",
            "its `VALUE` depends on `level`",
        ),
        (
            "\tlamp->on = true;\n",
            "\tlamp->on = next();\n",
            "it calls `next()`",
        ),
        (
            "\tlamp->on = true;\n",
            "\tlamp->count = total++;\n",
            "its `VALUE` changes something",
        ),
        (
            "\tlamp->on = true;\n",
            "\tlamp->on |= true;\n",
            "no part of `lamp_start()` claims",
        ),
        (
            "\t\tlamp_wait(lamp, 10);\n",
            "\t\tlamp_log(lamp);\n",
            "it calls `lamp_log()`",
        ),
        (
            "\t\tbus_log(bus, \"lamp %d\", i);\n",
            "\t\tbus_log(bus, 1);\n\t\tbus_log(bus, 2);\n",
            "at most one, found more",
        ),
        (
            "\tlamp_set(lamp, level);\n",
            "",
            "part `set` of `lamp_start()`: expected one, found none",
        ),
        (
            "\tint error;\n",
            "\tint error = 0;\n",
            "no part of `lamp_start()` claims",
        ),
        (
            "\t\treturn error;\n",
            "\t\treturn -error;\n",
            "no part of `lamp_start()` claims",
        ),
        (
            "\t\tif (!lamp)\n\t\t\tcontinue;\n",
            "\t\tif (!lamp)\n\t\t\tbreak;\n",
            "no part of part `loop` of `lamp_scan()` claims",
        ),
        (
            "int lamp_scan(struct bus *bus, int count)",
            "int lamp_scan(struct bus *bus, long count, int x)",
            "has other parameters",
        ),
        (
            "int lamp_scan(struct bus *bus, int count)\n",
            "int lamp_scan(struct bus *bus,\n#ifdef X\n\t      int x,\n#endif\n\t      int count)\n",
            "lamp_scan",
        ),
    ];
    for (from, to, words) in refused {
        let mut tiny = Tiny::new();
        tiny.change(FILE, from, to);
        tiny.refused(3, &[words, "drivers/lamp.c:", "patches/tiny/series.toml:"]);
    }
}

#[test]
fn an_anchor_must_be_there_once() {
    let cases = [
        (
            "\terror = lamp_power(lamp, true);\n",
            "\tif (lamp)\n\t\terror = lamp_power(lamp, true);\n",
            "part `power`",
        ),
        ("#include <linux/wires.h>\n", "", ""),
        (
            "obj-y += lamp.o\n",
            "obj-y += zebra.o\nobj-y += lamp.o\n",
            "leave no one place for `obj-y += lamp_table.o`",
        ),
        (
            "obj-y += lamp.o\n",
            "obj-y += lamp.o\nobj-y += lamp_table.o\n",
            "has `obj-y += lamp_table.o` already",
        ),
    ];
    for (from, to, words) in cases {
        let mut tiny = Tiny::new();
        let path = if from.starts_with("obj") {
            "drivers/Kbuild"
        } else {
            FILE
        };
        tiny.change(path, from, to);
        if words.is_empty() {
            tiny.regen().run().expect_exit(0);
        } else {
            tiny.refused(3, &[words, ".toml:"]);
        }
    }
    for (path, words) in [
        ("include/table.h", "in the base already"),
        ("drivers/lamp_table.c", "in the base already"),
    ] {
        let mut tiny = Tiny::new();
        tiny.commit(&[(path, b"/* here */\n")], "x\n");
        tiny.refused(3, &[words, path]);
    }
}

#[test]
fn bytes_that_are_no_text_are_carried() {
    let elsewhere = b"/* Caf\xe9, \xff\xfe */\r\n#define CRLF 1\r\n";
    let mut tiny = Tiny::new();
    let plain = tiny.store.file(&tiny.rev, FILE);
    let changed = [
        &b"/* Caf\xe9 */\r\n"[..],
        elsewhere,
        PADDING,
        &plain,
        PADDING,
        b"/* no newline at the end \x80 */",
    ];
    let changed = changed.concat();
    tiny.commit(&[(FILE, &changed)], "x\n");
    tiny.regen()
        .args(["--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let result = tiny.store.file("refs/heads/series", FILE);
    assert!(result.contains_str(elsewhere), "{result}");
    assert!(
        result.ends_with(b"/* no newline at the end \x80 */"),
        "{result}"
    );
    // The same in what a template carries.
    for (place, comment) in [
        (" * The bulb is cold:", &b" caf\xe9"[..]),
        (" * The bulb is cold:", b" \xf4\x8f\xbc\x80 \xff"),
        ("while (lamp_is_cold(lamp)) {", b" /* caf\xe9 */"),
        ("lamp_start(lamp, bus->level);", b" // \xe9\xff\xc3"),
    ] {
        let mut tiny = Tiny::new();
        let with = [place.as_bytes(), comment].concat();
        tiny.commit(&[(FILE, &plain.replace(place, &with))], "x\n");
        let found = self::result(&tiny);
        assert!(found.contains_str(&with), "{place}: {found}");
        assert!(!found.contains_str("\u{fffd}"), "{place}: {found}");
    }
    // A letter cannot say what it is.
    let mut tiny = Tiny::new();
    tiny.edit(
        "patches/tiny/series.toml",
        "\"series.title\"",
        "\"scan.log.text\"",
    );
    let with = b"/* caf\xe9 */\n\t\tbus_log(";
    tiny.commit(&[(FILE, &plain.replace("bus_log(", with))], "x\n");
    tiny.refused(
        3,
        &["`cover.txt` quotes text of the base that is not UTF-8"],
    );
}

#[test]
fn nothing_of_a_series_is_in_the_source() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = [
        ["zone", "_device"],
        ["zone", "-device"],
        ["mem", "map"],
        ["pg", "map"],
    ]
    .map(|parts| parts.concat());
    let mut seen = 0;
    for (path, bytes) in tree_files(&project.join("src"), "") {
        let text = bytes.to_str_lossy().to_lowercase();
        seen += 1;
        for word in &words {
            let line = text.lines().position(|line| line.contains(word.as_str()));
            assert_eq!(line.map(|at| at + 1), None, "src/{path} speaks of `{word}`");
        }
    }
    assert!(seen > 20, "the source is there");
}

// ---------------------------------------------------------------------------------------------- properties

/// Edits that touch different places, as `patch.toml` has them.
const DISJOINT: [&str; 8] = [
    "[[edit]]\nname = \"a\"\naction = \"insert\"\nfile = \"drivers/lamp.c\"\nplace = \"before\"\nfunction = \"lamp_set\"\ntext = \"/* a */\"\n",
    "[[edit]]\nname = \"b\"\naction = \"insert\"\nfile = \"drivers/lamp.c\"\nplace = \"after\"\npart = \"scan.locals\"\ntext = \"int b;\"\n",
    "[[edit]]\nname = \"c\"\naction = \"insert\"\nfile = \"drivers/lamp.c\"\ninclude = \"linux/delay.h\"\n",
    "[[edit]]\nname = \"d\"\naction = \"insert\"\nfile = \"drivers/Kbuild\"\nsorted = \"obj-y += lamp_table.o\"\n",
    "[[edit]]\nname = \"e\"\naction = \"replace\"\nfile = \"drivers/lamp.c\"\nfunction = \"lamp_start\"\nstatement = \"lamp_set(lamp, level);\"\ntext = \"lamp_set(lamp, level + 1);\"\n",
    "[[edit]]\nname = \"f\"\naction = \"create\"\nfile = \"include/f.h\"\ntext = \"/* f */\"\n",
    "[[edit]]\nname = \"g\"\naction = \"extract\"\nfile = \"drivers/lamp.c\"\npart = \"start.warm\"\ntemplate = \"warm.c\"\ncall = \"lamp_warm_up(lamp);\"\ndefines = [\"lamp_warm_up\"]\ninputs = { loop = \"match.text\" }\n",
    "[[edit]]\nname = \"h\"\naction = \"insert\"\nfile = \"drivers/lamp.c\"\nplace = \"before\"\nfunction = \"lamp_scan\"\nstatement = \"return count;\"\ntext = \"lamp_set(0, count);\"\n",
];

/// The fixture with one patch of these edits.
pub(crate) fn with_edits(edits: &[&str]) -> Tiny {
    let tiny = Tiny::new();
    let series = fs::read_to_string(tiny.sandbox.path("patches/tiny/series.toml")).expect("a file");
    let series = series
        .replace(
            "[\"0001-split\", \"0002-batch\", \"0003-table\"]",
            "[\"0001-split\"]",
        )
        .replace("$$$LEVEL", "$$$_LEVEL");
    tiny.sandbox.write("patches/tiny/series.toml", series);
    tiny.sandbox
        .write("patches/tiny/0001-split/patch.toml", edits.concat());
    tiny.sandbox.write(
        "patches/tiny/0001-split/message.txt",
        "lamp: change some things\n\nText.\n",
    );
    tiny
}

/// The series on the fixture's tree, in memory.
fn in_memory(tiny: &Tiny) -> Series {
    let recipe =
        recipe::load("tiny", &tiny.sandbox.path(".")).unwrap_or_else(|error| panic!("{error:#}"));
    let mut repo = Repo::open(&tiny.store.path).expect("a repository");
    repo.keep_in_memory().expect("memory");
    let base = repo.base(&tiny.rev).expect("a base");
    let author = Signature {
        name: "A U Thor".into(),
        email: "author@example.org".into(),
        time: 1_700_000_000,
        offset: 0,
    };
    let options = Options {
        author,
        sign_off: true,
        version: 1,
    };
    match regenerate(&repo, &base, &recipe, &options).unwrap_or_else(|error| panic!("{error:#}")) {
        Regenerated::Series(series) => *series,
        Regenerated::Applied(what) => panic!("applied: {what:?}"),
    }
}

fn ids(series: &Series) -> Vec<String> {
    series
        .patches
        .iter()
        .map(|patch| patch.commit.id.to_string())
        .collect()
}

/// The file after the last patch.
pub(crate) fn result(tiny: &Tiny) -> BString {
    tiny.regen()
        .args(["--ref", "refs/heads/series", "--force"])
        .run()
        .expect_exit(0);
    tiny.store.file("refs/heads/series", FILE)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disjoint_edits_can_be_made_in_any_order(
        order in Just(DISJOINT.to_vec()).prop_shuffle(),
        count in 1..=DISJOINT.len(),
    ) {
        let shuffled = &order[..count];
        let mut sorted = shuffled.to_vec();
        sorted.sort_unstable();
        let tree = |edits: &[&str]| in_memory(&with_edits(edits)).patches[0].commit.tree_id;
        prop_assert_eq!(tree(shuffled), tree(&sorted));
    }

    #[test]
    fn the_same_inputs_give_the_same_ids(order in Just(DISJOINT.to_vec()).prop_shuffle(), count in 1..=DISJOINT.len()) {
        let edits = &order[..count];
        prop_assert_eq!(ids(&in_memory(&with_edits(edits))), ids(&in_memory(&with_edits(edits))));
    }

    #[test]
    fn what_stands_around_is_left_as_it_is(
        above in proptest::collection::vec(any::<u8>(), 0..80),
        below in proptest::collection::vec(any::<u8>(), 0..80),
        newline in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        // Any bytes in a comment, but for those that would end it.
        let comment = |bytes: &[u8]| {
            let inner: Vec<u8> = bytes.iter().copied().filter(|byte| !matches!(byte, b'/' | b'*' | b'\\' | 0)).collect();
            [b"/*", &inner[..], b"*/", newline.as_bytes()].concat()
        };
        let mut tiny = Tiny::new();
        let before = tiny.store.file(&tiny.rev, FILE);
        let expected = [&comment(&above), PADDING, &result(&tiny), PADDING, &comment(&below)].concat();
        tiny.commit(&[(FILE, &[&comment(&above), PADDING, &before, PADDING, &comment(&below)].concat())], "x\n");
        prop_assert_eq!(result(&tiny), BString::from(expected));
    }
}

#[test]
fn two_runs_from_different_directories_give_the_same_ids() {
    let (one, two) = (Tiny::new(), Tiny::new());
    assert_eq!(ids(&in_memory(&one)), ids(&in_memory(&two)));
    let json = |tiny: &Tiny| {
        tiny.regen()
            .args(["--json", "--dry-run"])
            .run()
            .expect_exit(0)
            .json()["commits"]
            .clone()
    };
    assert_eq!(json(&one), json(&two));
    let program = one.sandbox.reroll([
        "regen", "--author", AUTHOR, "-s", "--json", "-n", "--series",
    ]);
    let program = program
        .arg(two.sandbox.path("patches/tiny"))
        .args(["--base", &one.rev, "--tree"])
        .arg(&two.store.path);
    assert_eq!(
        program
            .dir(one.sandbox.path("home"))
            .run()
            .expect_exit(0)
            .json()["commits"],
        json(&one)
    );
}

#[test]
fn mails_that_were_replaced_are_told_of_unless_the_version_was_said() {
    let mut tiny = Tiny::new();
    let first = tiny.regen().run().expect_exit(0);
    assert!(!first.stderr.contains("were there"), "{}", first.stderr);
    let again = tiny.regen().run().expect_exit(0);
    assert!(!again.stderr.contains("were there"), "{}", again.stderr);
    tiny.change("Makefile", "EXTRAVERSION =\n", "EXTRAVERSION = -rc2\n");
    let told = "note: other mails of v1 were there and are gone; if they were sent, or somebody else has them, `-v 2` is the next version\n";
    tiny.regen().run().expect_exit(0).says(&[told]);
    tiny.change("Makefile", "EXTRAVERSION = -rc2\n", "EXTRAVERSION = -rc3\n");
    let said = tiny.regen().args(["-v", "1"]).run().expect_exit(0);
    assert!(!said.stderr.contains("were there"), "{}", said.stderr);
}
