//! Where a function is: listed, left out, moved, twice, nowhere; in the small tree of the fixture, and in a real kernel that moved them.
//!
//! Hides how the fixture's recipe comes to leave its file open.

use bstr::ByteSlice;

use crate::support::{AUTHOR, Kernel, Sandbox, Store, Tiny, kernels, say_left_out};

const LAMP: &str = "drivers/lamp.c";
const PATCHES: [&str; 3] = [
    "patches/tiny/0001-split/patch.toml",
    "patches/tiny/0002-batch/patch.toml",
    "patches/tiny/0003-table/patch.toml",
];

/// The fixture, in whose recipe both functions have this `file` (a line, or nothing), and no edit has one that need not. The function
/// that an edit stands beside and that the recipe says nothing else about is in `beside`.
fn open(file: &str, beside: &str) -> Tiny {
    let tiny = Tiny::new();
    let exact = format!("file = \"{LAMP}\"\n");
    let change = |path: &str, change: &dyn Fn(String) -> String| {
        let text = tiny.sandbox.read(path).to_str().expect("UTF-8").to_owned();
        tiny.sandbox.write(path, change(text));
    };
    change("patches/tiny/series.toml", &|text| {
        let text = text.replace(&exact, file);
        text.replace(
            &format!("probe.statement = {{ file = \"{LAMP}\", "),
            "probe.statement = { ",
        )
        .replace(
            &format!("probe.line = {{ file = \"{LAMP}\", "),
            &format!("probe.line = {{ file = [\"nowhere.c\", \"{LAMP}\", \"{beside}\"], "),
        )
        .replace(
            &format!("\"{LAMP}\"], name = \"lamp_set\""),
            &format!("\"{beside}\"], name = \"lamp_set\""),
        )
    });
    for path in PATCHES {
        change(path, &|text| {
            let text = text
                .replace(
                    &format!("{exact}include = \"linux/delay.h\""),
                    "function = \"lamp_scan\"\ninclude = \"linux/delay.h\"",
                )
                .replace(
                    &format!("{exact}include = \"linux/lamp.h\""),
                    "function = \"start\"\ninclude = \"linux/lamp.h\"",
                )
                .replace(
                    &format!("{exact}place = \"before\"\nfunction = \"lamp_set\""),
                    "file = \"BESIDE\"\nplace = \"before\"\nfunction = \"lamp_set\"",
                );
            text.replace(&exact, "").replace("BESIDE", beside)
        });
    }
    tiny
}

impl Tiny {
    /// A commit in which the lamp's file is at another path.
    fn moves(&mut self, to: &str) {
        let base = self.store.repo.base(&self.rev).expect("a base");
        let files = self.store.repo.files(base.tree_id).expect("a tree");
        let files = files.iter().map(|(path, mode, id)| {
            let path = if *path == LAMP {
                to.into()
            } else {
                path.as_bstr()
            };
            (path, *mode, *id)
        });
        let tree_id = self.store.repo.write_new_tree(&files.collect::<Vec<_>>());
        let commit = self.store.commit(tree_id.expect("a tree"), None, "moved\n");
        self.rev = commit.to_string();
    }

    /// What the patches of a run take out, put in and show.
    #[track_caller]
    fn code(&self, notes: &[&str]) -> Vec<String> {
        self.store.publish(&self.rev);
        let regen = self.regen().args(["--force", "-v", "1"]);
        let ran = regen.run().expect_exit(0);
        let said: Vec<_> = ran
            .stderr
            .lines()
            .filter(|line| line.starts_with("note:"))
            .collect();
        assert_eq!(said, notes);
        let mails = self.sandbox.files("out");
        let patches = mails
            .iter()
            .filter(|(name, _)| name.starts_with("000") && !name.starts_with("0000-"));
        let lines = patches
            .flat_map(|(_, mail)| mail.lines().skip_while(|line| !line.starts_with(b"diff ")));
        let is_code = |line: &&[u8]| {
            line.first().is_some_and(|first| b"+- @".contains(first))
                && !line.starts_with(b"+++ ")
                && !line.starts_with(b"--- ")
        };
        let mut code: Vec<_> = lines
            .filter(is_code)
            .map(|line| line.to_str_lossy().into_owned())
            .collect();
        // Files are in the order of their paths.
        code.sort();
        code
    }
}

/// What the recipe makes where nothing is left open.
fn expected() -> Vec<String> {
    let code = Tiny::new().code(&[]);
    assert!(code.len() > 80);
    code
}

#[test]
fn of_the_files_that_are_listed_the_one_that_defines_is_taken_without_a_word() {
    let list = "file = [\"drivers/bulb.c\", \"drivers/lamp.c\"]\n";
    assert_eq!(open(list, LAMP).code(&[]), expected());
    let mut tiny = open(list, "drivers/bulb.c");
    tiny.moves("drivers/bulb.c");
    assert_eq!(tiny.code(&[]), expected());
    let mail = tiny.sandbox.read("out/0001-lamp-split-lamp_start.patch");
    assert!(mail.contains_str("\n+++ b/drivers/bulb.c\n"), "{mail}");
}

#[test]
fn a_function_that_moved_is_followed_and_it_is_said_where_to() {
    let listed = "file = [\"drivers/lamp.c\", \"drivers/bulb.c\"]\n";
    for (file, to) in [
        (listed, "drivers/moved.c"),
        (listed, "lib/deep/below/lamp.c"),
        (listed, "moved.c"),
        ("file = []\n", "lib/lamp.c"),
        ("", "lib/lamp.c"),
        ("", LAMP),
    ] {
        let mut tiny = open(file, to);
        tiny.moves(to);
        let note = |name: &str| format!("note: `{name}()` is in `{to}` on this base");
        let notes = [note("lamp_start"), note("lamp_scan")];
        let notes = notes.each_ref().map(String::as_str);
        assert_eq!(tiny.code(&notes), expected(), "{file} {to}");
        // The second answer is the cache's.
        assert_eq!(tiny.code(&notes), expected(), "{file} {to}");
    }
    // A header is followed too; what it defines can be seen then.
    let to = "include/linux/lamp_impl.h";
    let mut tiny = open(listed, to);
    tiny.moves(to);
    let seen =
        format!("edit `header` defines `LEVELS`, but a macro of that name can be seen in `{to}`");
    tiny.refused(3, &[&seen, "0003-table/patch.toml:2"]);
    tiny.change(to, "#define LEVELS 8\n\n", "");
    let ran = tiny.regen().arg("--force").run().expect_exit(0);
    for name in ["lamp_start", "lamp_scan"] {
        let note = format!("note: `{name}()` is in `{to}` on this base");
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    }
}

#[test]
fn an_inline_function_in_a_header_is_a_definition_and_a_prototype_is_none() {
    let mut tiny = open("", LAMP);
    tiny.commit(
        &[
            (
                "include/linux/scan.h",
                b"int lamp_scan(struct bus *bus, int count);\n",
            ),
            (
                "lib/user.c",
                b"int f(struct bus *bus)\n{\n\treturn lamp_scan(bus, 1);\n}\n",
            ),
        ],
        "more\n",
    );
    let note = |name: &str| format!("note: `{name}()` is in `{LAMP}` on this base");
    let notes = [note("lamp_start"), note("lamp_scan")];
    assert_eq!(tiny.code(&notes.each_ref().map(String::as_str)), expected());
    let inline = "#ifndef CONFIG_LAMP\nstatic inline int lamp_scan(struct bus *bus, int count)\n{\n\treturn 0;\n}\n#endif\n";
    tiny.commit(&[("include/linux/scan.h", inline.as_bytes())], "more\n");
    let ran = tiny.refused(
        3,
        &[
            "`drivers/lamp.c` and `include/linux/scan.h` define `lamp_scan()`",
            "include/linux/scan.h:2: static inline int lamp_scan(struct bus *bus, int count)",
            "list the one that is meant",
            "patches/tiny/series.toml:",
        ],
    );
    assert!(!ran.stderr.contains("lib/user.c"), "{}", ran.stderr);
}

#[test]
fn two_definitions_are_refused_with_both_places() {
    let copy = |tiny: &Tiny| tiny.store.file(&tiny.rev, LAMP);
    let says = |first: &str, second: &str| {
        ["start", "scan"].map(|name| format!("`{first}` and `{second}` define `lamp_{name}()`"))
    };
    // Among those that are listed.
    let mut tiny = open("file = [\"drivers/lamp.c\", \"drivers/bulb.c\"]\n", LAMP);
    let text = copy(&tiny);
    tiny.commit(&[("drivers/bulb.c", &text)], "more\n");
    let words = says(LAMP, "drivers/bulb.c");
    tiny.refused(3, &words.each_ref().map(String::as_str));
    // In the directory of one that is listed and does not define it, and in the tree.
    for places in [["drivers/a.c", "drivers/b.c"], ["lib/a.c", "net/b.h"]] {
        let mut tiny = open("file = [\"drivers/lamp.c\"]\n", LAMP);
        tiny.moves("gone.txt");
        tiny.commit(&places.map(|path| (path, text.as_bytes())), "more\n");
        let words = says(places[0], places[1]);
        tiny.refused(3, &words.each_ref().map(String::as_str));
    }
    // What is near comes first: there it is once.
    let mut tiny = open("file = [\"drivers/lamp.c\"]\n", "drivers/a.c");
    tiny.moves("drivers/a.c");
    tiny.commit(&[("lib/b.c", &text)], "more\n");
    let notes = ["start", "scan"]
        .map(|name| format!("note: `lamp_{name}()` is in `drivers/a.c` on this base"));
    assert_eq!(tiny.code(&notes.each_ref().map(String::as_str)), expected());
}

#[test]
fn a_function_that_is_nowhere_is_refused_with_what_resembles_it() {
    for file in ["file = [\"drivers/lamp.c\", \"nowhere.c\"]\n", ""] {
        let mut tiny = open(file, LAMP);
        tiny.change(
            LAMP,
            "int lamp_scan(struct bus *bus",
            "int lamp_scan_all(struct bus *bus",
        );
        let ran = tiny.refused(
            3,
            &[
                "no file of the base defines `lamp_scan()`",
                "say which function it is now at patches/tiny/series.toml:",
            ],
        );
        let near = "  drivers/lamp.c:40: int lamp_scan_all(struct bus *bus, int count)";
        assert_eq!(
            ran.stderr.contains(near),
            !file.is_empty(),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn where_one_file_is_named_the_refusal_says_where_the_function_is_now() {
    let mut tiny = Tiny::new();
    tiny.moves("lib/lamp.c");
    tiny.refused(
        3,
        &[
            "the base has no `drivers/lamp.c`",
            "  lib/lamp.c:17: static int lamp_start(struct lamp *lamp, int level)",
            "  lib/lamp.c:40: int lamp_scan(struct bus *bus, int count)",
            "say where `lamp_start()` is now at patches/tiny/series.toml:",
            "`file` may be a list",
        ],
    );
    let mut tiny = Tiny::new();
    let text = tiny.store.file(&tiny.rev, LAMP);
    let at = text.find("int lamp_scan(").expect("it is there");
    tiny.commit(
        &[(LAMP, &text[..at]), ("drivers/scan.c", &text[at..])],
        "split\n",
    );
    tiny.refused(
        3,
        &[
            "`drivers/lamp.c` does not define `lamp_scan()`",
            "  drivers/scan.c:1: int lamp_scan(",
        ],
    );
}

#[test]
fn a_definition_that_cannot_be_read_is_not_passed_by_for_another() {
    let head = "int lamp_scan(struct bus *bus, int count)\n{";
    let odd = "int lamp_scan(struct bus *bus\n#ifdef A\n\t, int count\n#endif\n\t)\n{";
    let mut tiny = open("file = [\"drivers/lamp.c\"]\n", LAMP);
    let text = tiny.store.file(&tiny.rev, LAMP);
    tiny.commit(&[("lib/lamp.c", &text)], "more\n");
    tiny.change(LAMP, head, odd);
    let says = "`drivers/lamp.c:40` has `lamp_scan()`, but not as one definition that can be read";
    tiny.refused(
        3,
        &[says, "  drivers/lamp.c:40: int lamp_scan(struct bus *bus"],
    );
    // Neither is one that is found.
    let mut tiny = open("", LAMP);
    tiny.change(LAMP, head, odd);
    tiny.refused(3, &[says]);
}

#[test]
fn each_function_is_followed_by_itself() {
    let list = "file = [\"drivers/lamp.c\", \"drivers/scan.c\"]\n";
    let mut tiny = open(list, LAMP);
    let text = tiny.store.file(&tiny.rev, LAMP);
    let at = text.find("int lamp_scan(").expect("it is there");
    let scan = [
        b"#include <linux/bus.h>\n\n#define LEVELS 8\n\n",
        &text[at..],
    ]
    .concat();
    tiny.commit(&[(LAMP, &text[..at]), ("drivers/scan.c", &scan)], "split\n");
    // What the series defines itself is where it defined it, and lines go where their function is.
    let more = "\n[[edit]]\nname = \"more\"\naction = \"insert\"\nfunction = \"lamp_settle\"\nsorted = \"#include <linux/zebra.h>\"\n";
    let patch = tiny.sandbox.read(PATCHES[2]);
    tiny.sandbox
        .write(PATCHES[2], [&patch[..], more.as_bytes()].concat());
    tiny.regen()
        .args(["--ref", "refs/heads/series"])
        .run()
        .expect_exit(0);
    let [lamp, scan] =
        [LAMP, "drivers/scan.c"].map(|path| tiny.store.file("refs/heads/series", path));
    assert!(
        lamp.contains_str("lamp_power_batched(") && !lamp.contains_str("delay.h"),
        "{lamp}"
    );
    for word in [
        "#include <linux/bus.h>\n#include <linux/delay.h>\n#include <linux/zebra.h>\n",
        "static void lamp_settle(",
        "EXPORT_SYMBOL(lamp_scan);",
    ] {
        assert!(scan.contains_str(word), "{word}: {scan}");
    }
    let shown = tiny.reroll(&["explain"]).run().expect_exit(0).stdout;
    for line in [
        "  start: lamp_start() at drivers/lamp.c:17 [patches/tiny/series.toml:",
        "  scan: lamp_scan() at drivers/scan.c:5 [patches/tiny/series.toml:",
        "  headers: insert at drivers/scan.c:2 ",
        "  there-already: insert at drivers/lamp.c:3 ",
    ] {
        assert!(shown.contains_str(line), "{line}: {shown}");
    }
}

#[test]
fn every_command_that_shows_a_base_shows_where_the_functions_are() {
    let mut tiny = open("file = [\"nowhere.c\"]\n", "lib/lamp.c");
    tiny.moves("lib/lamp.c");
    for command in ["explain", "facts"] {
        let ran = tiny.reroll(&[command]).run().expect_exit(0);
        let line = "  start: lamp_start() at lib/lamp.c:17, which the recipe does not list [";
        assert!(ran.stdout.contains_str(line), "{}", ran.stdout);
        let json = tiny
            .reroll(&[command, "--json"])
            .run()
            .expect_exit(0)
            .json();
        assert_eq!(json["functions"][1]["function"], "lamp_scan");
        assert_eq!(json["functions"][1]["file"], "lib/lamp.c");
        assert_eq!(json["functions"][1]["listed"], false);
    }
    let facts = tiny.reroll(&["facts"]).run().expect_exit(0).stdout;
    for line in [
        "    lib/lamp.c:31: lamp_wait(lamp, 10);",
        "    lib/lamp.c:6: #define LEVELS 8",
    ] {
        assert!(facts.contains_str(line), "{facts}");
    }
    let json = tiny
        .regen()
        .args(["--json", "-n"])
        .run()
        .expect_exit(0)
        .json();
    assert_eq!(json["functions"][0]["line"], 17);
    let ran = tiny
        .reroll(&["check", "--gate", "mail", "--author", AUTHOR, "-s"])
        .run();
    assert!(
        ran.stderr
            .contains("note: `lamp_scan()` is in `lib/lamp.c` on this base"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_answer_is_kept_by_the_tree_and_a_cache_that_is_broken_is_none() {
    let mut tiny = open("", "lib/lamp.c");
    tiny.moves("lib/lamp.c");
    let notes = ["start", "scan"]
        .map(|name| format!("note: `lamp_{name}()` is in `lib/lamp.c` on this base"));
    let notes = notes.each_ref().map(String::as_str);
    assert_eq!(tiny.code(&notes), expected());
    let tree_id = tiny.store.repo.base(&tiny.rev).expect("a base").tree_id;
    let kept = format!("home/cache/reroll/places/{tree_id}.json");
    let text = tiny.sandbox.read(&kept).to_str().expect("UTF-8").to_owned();
    // It is believed: this one is planted.
    tiny.sandbox
        .write(&kept, text.replace("lib/lamp.c", "lib/none.c"));
    tiny.refused(3, &["lib/none.c"]);
    for broken in [
        "",
        "{",
        "null",
        &text.replace("\"format\":1", "\"format\":0"),
    ] {
        tiny.sandbox.write(&kept, broken);
        assert_eq!(tiny.code(&notes), expected());
        assert_eq!(tiny.sandbox.read(&kept), text, "it is mended");
    }
    // Another tree is another question.
    tiny.change("Makefile", "EXTRAVERSION =\n", "EXTRAVERSION = -rc2\n");
    tiny.sandbox
        .write(&kept, text.replace("lib/lamp.c", "lib/none.c"));
    assert_eq!(tiny.code(&notes), expected());
    // No place for a cache is no error.
    let places = tiny.sandbox.path("home/cache/reroll/places");
    std::fs::remove_dir_all(&places).expect("it was there");
    std::fs::write(&places, "a file").expect("written");
    assert_eq!(tiny.code(&notes), expected());
    let ran = tiny
        .regen()
        .args(["-n"])
        .without("HOME")
        .without("XDG_CACHE_HOME")
        .run();
    ran.expect_exit(0);
}

#[test]
fn a_partial_clone_fetches_what_is_near_and_not_the_whole_tree() {
    let mut tiny = open("file = [\"drivers/lamp.c\"]\n", "drivers/moved.c");
    tiny.moves("drivers/moved.c");
    let url = format!("file://{}", tiny.store.path.display());
    let git = |args: &[&str]| tiny.sandbox.git(args).run().expect_exit(0);
    git(&["-C", "tree.git", "config", "uploadpack.allowFilter", "true"]);
    git(&[
        "-C",
        "tree.git",
        "config",
        "uploadpack.allowAnySHA1InWant",
        "true",
    ]);
    let clone = |name: &str| git(&["clone", "-q", "--bare", "--filter=blob:none", &url, name]);
    let regen = |name: &str, rev: &str| {
        let args = [
            "regen", "--author", AUTHOR, "-s", "-o", name, "--base", rev, "--tree",
        ];
        tiny.sandbox
            .reroll(args)
            .arg(tiny.sandbox.path(format!("{name}.git")))
            .run()
    };
    clone("near.git");
    regen("near", &tiny.rev)
        .expect_exit(0)
        .says(&["`lamp_start()` is in `drivers/moved.c`"]);
    let far = {
        let base = tiny.store.repo.base(&tiny.rev).expect("a base");
        let text = tiny.store.file(&tiny.rev, "drivers/moved.c");
        let files: [(&str, &[u8]); 2] = [("lib/lamp.c", &text), ("drivers/moved.c", b"int x;\n")];
        let tree_id = tiny.store.tree_with(base.tree_id, &files);
        tiny.store.commit(tree_id, None, "far\n").to_string()
    };
    clone("far.git");
    regen("far", &far).refused(3).says(&[
        "`drivers/lamp.c` does not define `lamp_start()`",
        "the rest of the tree was not looked at: ",
        "of its files are not in this partial clone",
        "say in which file it is at patches/tiny/series.toml:",
    ]);
}

/// The kernel of Debian's stable suite where that has the functions in another file than the newest kernels have.
fn elsewhere() -> Option<&'static Kernel> {
    let found = kernels()
        .iter()
        .find(|kernel| kernel.home() != "mm/mm_init.c");
    if found.is_none() {
        say_left_out(
            "a kernel with its functions elsewhere",
            "none of those that are here has",
        );
    }
    found
}

#[test]
fn one_recipe_fits_kernels_that_have_the_functions_in_different_files() {
    let Some(kernel) = elsewhere() else { return };
    let sandbox = Sandbox::new();
    let store = Store::beside(&sandbox, "store.git", kernel);
    let base = kernel.commit_id.to_string();
    let args = [
        "regen", "--author", AUTHOR, "-s", "-o", "out", "--json", "--base", &base, "--tree",
    ];
    let ran = sandbox.reroll(args).arg(&store.path).run().expect_exit(0);
    assert!(
        !ran.stderr.contains("note:"),
        "it is listed: {}",
        ran.stderr
    );
    let json = ran.json();
    let functions = json["functions"].as_array().expect("functions");
    assert!(
        functions
            .iter()
            .all(|it| it["file"] == kernel.home() && it["listed"] == true)
    );
    let edits = json["edits"].as_array().expect("edits").iter();
    let files: Vec<_> = edits
        .map(|it| it["file"].as_str().expect("a file"))
        .collect();
    assert!(files.contains(&kernel.home()) && !files.contains(&"mm/mm_init.c"));
    // Moved on to yet another file, they are followed, and the rest of the tree is what it was.
    let text = kernel.file(kernel.home());
    let store = Store::beside(&sandbox, "moved.git", kernel);
    let tree_id = store.tree_with(
        kernel.tree_id,
        &[("drivers/base/moved_here.c", &text), (kernel.home(), b"\n")],
    );
    let rev = store.commit(tree_id, None, "moved\n").to_string();
    let args = [
        "regen", "--author", AUTHOR, "-s", "-o", "moved", "--base", &rev, "--tree",
    ];
    let ran = sandbox.reroll(args).arg(&store.path).run().expect_exit(0);
    assert_eq!(
        ran.stderr
            .matches("` is in `drivers/base/moved_here.c` on this base")
            .count(),
        3,
        "{}",
        ran.stderr
    );
}
