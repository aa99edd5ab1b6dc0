//! Every way to be refused: one clear sentence, a hint, the right exit code, and nothing half-written.
//!
//! Hides how a project is broken in one place.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use crate::support::{AUTHOR, Ran, Sandbox, Store, Tiny, someone};

const SERIES: &str = "patches/tiny/series.toml";
const SPLIT: &str = "patches/tiny/0001-split/patch.toml";
const BATCH: &str = "patches/tiny/0002-batch/patch.toml";
const TABLE: &str = "patches/tiny/0003-table/patch.toml";

/// Breaks a file of the project; the error says where, and has these words.
#[track_caller]
fn broken(file: &str, from: &str, to: &str, words: &[&str]) {
    let tiny = Tiny::new();
    tiny.edit(file, from, to);
    tiny.refused(2, words).says(&[file]);
}

// --------------------------------------------------------------------------------------------- the recipe

#[test]
fn a_key_that_nobody_knows_is_refused_with_its_line() {
    broken(
        SERIES,
        "version = 1\n",
        "version = 1\nversoin = 2\n",
        &["series.toml:6: ", "versoin"],
    );
    broken(SERIES, "[inputs]\n", "[inptus]\n", &["inptus"]);
    broken(
        SERIES,
        "about = \"there are levels\"\n",
        "about = \"there are levels\"\nmsut = true\n",
        &["msut"],
    );
    broken(SERIES, "probe.exists = {", "probe.exist = {", &["exist"]);
    broken(SERIES, "without.VALUE", "withuot.VALUE", &["withuot"]);
    broken(SERIES, "count = \"any\"", "count = \"some\"", &["some"]);
    broken(
        SPLIT,
        "call = \"lamp_warm_up(lamp);\"\n",
        "cal = \"\"\n",
        &["cal"],
    );
    broken(
        SPLIT,
        "action = \"extract\"",
        "action = \"move\"",
        &["move"],
    );
    broken(BATCH, "[inputs]\nlevel", "[input]\nlevel", &["input"]);
    broken(
        BATCH,
        "text = \"started++;\"\n",
        "text = \"started++;\"\ncall = \"x();\"\n",
        &["has no use for `call`"],
    );
}

#[test]
fn a_recipe_that_is_no_toml_or_not_utf8_is_refused_with_its_line() {
    broken(
        SERIES,
        "name = \"tiny\"",
        "name = tiny",
        &["series.toml:3: "],
    );
    broken(
        SERIES,
        "version = 1\n",
        "version = -1\n",
        &["series.toml:5: "],
    );
    broken(SERIES, "version = 1\n", "", &["version"]);
    for file in [
        SERIES,
        BATCH,
        "patches/tiny/0002-batch/message.txt",
        "patches/tiny/cover.txt",
    ] {
        let tiny = Tiny::new();
        tiny.sandbox.write(file, b"\xff\xfe");
        tiny.refused(2, &[file, "not UTF-8"]);
    }
    let tiny = Tiny::new();
    tiny.sandbox.write("templates/tiny/warm.c.tera", b"\xff");
    tiny.refused(2, &["`warm.c`", "not UTF-8"]);
}

#[test]
fn what_a_recipe_names_must_be_there() {
    let tiny = Tiny::new();
    tiny.edit(SERIES, "\"0003-table\"]", "\"0004-none\"]");
    tiny.refused(
        2,
        &[
            "the recipe has no",
            "patches/tiny/0004-none/patch.toml",
            "`series.toml` names",
        ],
    );
    broken(
        SERIES,
        "\"0003-table\"]",
        "\"table\"]",
        &["`table` is no patch directory"],
    );
    broken(
        SPLIT,
        "template = \"warm.c\"",
        "template = \"cold.c\"",
        &["there is no template `cold.c`"],
    );
    broken(
        SPLIT,
        "part = \"start.warm\"",
        "part = \"start.cold\"",
        &["no part `start.cold`"],
    );
    broken(
        SPLIT,
        "has_dimmer = true",
        "has_switch = true",
        &["the fact `has_switch`"],
    );
    broken(
        SPLIT,
        "has_dimmer = true",
        "has_dimmer = \"yes\"",
        &["`has_dimmer`"],
    );
    broken(
        SPLIT,
        "waits = \"facts.waits\"",
        "waits = \"facts.none\"",
        &["`facts.none` stands for nothing"],
    );
    for file in [
        "patches/tiny/cover.txt",
        "patches/tiny/0002-batch/message.txt",
    ] {
        let tiny = Tiny::new();
        fs::remove_file(tiny.sandbox.path(file)).expect("it is there");
        tiny.refused(2, &[file]);
    }
}

#[test]
fn names_come_once() {
    broken(
        SERIES,
        "name = \"waits\"",
        "name = \"wired\"",
        &["fact `wired` is already at patches/tiny/series.toml:"],
    );
    broken(
        SERIES,
        "id = \"scan\"",
        "id = \"start\"",
        &["function `start` is already at"],
    );
    broken(
        SERIES,
        "name = \"power\"",
        "name = \"check\"",
        &["part `start.check` is already at"],
    );
    broken(
        SPLIT,
        "name = \"comment\"",
        "name = \"warm\"",
        &["edit `warm` of patch `split` is already at"],
    );
    let tiny = Tiny::new();
    tiny.edit(SERIES, "\"0003-table\"]", "\"0003-table\", \"0001-split\"]");
    tiny.refused(2, &["patch `split` is already at"]);
}

#[test]
fn a_capture_that_nothing_uses_is_refused() {
    broken(
        SERIES,
        "lamp_power(lamp, $_SWITCH)",
        "lamp_power(lamp, $SWITCH)",
        &["part `power` captures `$SWITCH`", "series.toml:"],
    );
    broken(
        SERIES,
        "without.VALUE = [\"level\"]",
        "without.VALUE = [\"level\"]\nwhere.WHAT = [\"1\"]",
        &[
            "`where` names `WHAT`, which no pattern captures",
            "series.toml:",
        ],
    );
    broken(
        SERIES,
        "without.VALUE = [\"level\"]",
        "where.VALUE = []",
        &["`where.VALUE` allows nothing", "series.toml:"],
    );
    broken(
        BATCH,
        "statement = \"if (!lamp) continue;\"",
        "statement = \"if (!$LAMP) continue;\"",
        &["edit `count` captures `$LAMP`", "patch.toml:"],
    );
}

#[test]
fn inputs_are_declared_and_used() {
    let template = "templates/tiny/warm.c.tera";
    for text in ["@{ undeclared }@", "@% if undeclared %@x@% endif %@"] {
        let tiny = Tiny::new();
        tiny.edit(template, "@{ loop", &format!("{text}@{{ loop"));
        tiny.refused(
            2,
            &[
                "`warm.c`",
                "`undeclared`",
                "patches/tiny/0001-split/patch.toml:5",
            ],
        );
    }
    broken(
        SPLIT,
        "loop = \"match.text\"",
        "loop = \"match.text\", more = \"facts.waits\"",
        &["`more`", "patch.toml:5"],
    );
    broken(
        SPLIT,
        "waits = \"facts.waits\"",
        "waits = \"facts.waits\"\nmore = true",
        &["does not use its input `more`"],
    );
    let tiny = Tiny::new();
    tiny.edit("patches/tiny/cover.txt", "@{ title }@", "@{ undeclared }@");
    tiny.refused(2, &["cover.txt", "`undeclared`"]);
    let tiny = Tiny::new();
    tiny.edit(template, "@{ loop", "@% if loop %@@{ loop");
    tiny.refused(2, &["`warm.c` does not render", "patch.toml:5"]);
}

#[test]
fn a_pattern_that_is_no_statement_is_refused() {
    broken(
        SERIES,
        "\"if (error) return error;\"",
        "\"if (error) return\"",
        &["`if (error) return` is no C statement", "series.toml:"],
    );
    broken(
        BATCH,
        "\"error = lamp_power(lamp, $HOW);\"",
        "\"error = lamp_power(lamp, $HOW\"",
        &["is no C statement", "patch.toml:"],
    );
}

#[test]
fn a_path_that_leaves_the_tree_is_refused() {
    for path in [
        "../include/table.h",
        "include/../../table.h",
        "/etc/table.h",
        ".git/hooks/post-commit",
        "include/.git/config",
        "include/.GIT/config",
        ".Git/config",
        "./table.h",
        "include//table.h",
        "include/",
        "",
        "include\\\\table.h",
        "include/table.h\\n",
    ] {
        let tiny = Tiny::new();
        tiny.edit(
            TABLE,
            "file = \"include/table.h\"",
            &format!("file = \"{path}\""),
        );
        tiny.refused(2, &["patches/tiny/0003-table/patch.toml:2"]);
    }
    for dir in ["0003-../0003-table", "0003-x/../../table", "0003-/etc"] {
        let tiny = Tiny::new();
        tiny.edit(SERIES, "\"0003-table\"", &format!("\"{dir}\""));
        tiny.refused(2, &["series.toml:7"]);
    }
}

#[test]
fn an_edit_that_does_more_than_it_says_is_refused() {
    broken(
        BATCH,
        "defines = [\"lamp_settle\"]\n",
        "",
        &["edit `settle` defines [lamp_settle], but its `defines` says []"],
    );
    let tiny = Tiny::new();
    tiny.edit(
        "templates/tiny/settle.c.tera",
        "/* Waits",
        "static int more(void)\n{\n\treturn 0;\n}\n\n/* Waits",
    );
    tiny.refused(2, &["edit `settle` defines [lamp_settle, more]"]);
    broken(
        BATCH,
        "text = \"started++;\"",
        "text = \"started++; }\"",
        &["edit `count`"],
    );
    broken(
        BATCH,
        "text = \"started++;\"",
        "text = \"if (started++) {\"",
        &["edit `count`"],
    );
    broken(
        BATCH,
        "text = \"started++;\"",
        "text = \"/* no end\"",
        &["edit `count`"],
    );
    broken(
        TABLE,
        "function = \"lamp_settle\"",
        "function = \"lamp_set\"",
        &["replaces the whole of `lamp_set()`, which is the base's own"],
    );
}

#[test]
fn a_template_that_renders_to_nothing_takes_nothing_away() {
    let mut tiny = Tiny::new();
    tiny.edit(
        BATCH,
        "text = \"started++;\"",
        "text = \"@% if no %@started++;@% endif %@\"\ninputs = { no = false }",
    );
    tiny.edit("templates/tiny/check-batch.c.tera", "\n\n", "\n");
    tiny.change(
        "drivers/lamp.c",
        "#define LEVELS 8\n",
        "enum { LEVELS = 8 };\n",
    );
    let ran = tiny.regen().args(["--ref", "refs/heads/series"]).run();
    if ran.code == Some(0) {
        let before = tiny.store.file(&tiny.rev, "drivers/lamp.c");
        let after = tiny.store.file("refs/heads/series", "drivers/lamp.c");
        for line in [
            "\tint i;",
            "\t\tif (!lamp)",
            "\t\t\tcontinue;",
            "\t/* One after the other. */",
            "\tfor (i = 0; i < count; i++) {",
        ] {
            let count = |text: &[u8]| {
                text.split(|byte| *byte == b'\n')
                    .filter(|other| *other == line.as_bytes())
                    .count()
            };
            assert_eq!(count(&before), count(&after), "{line}\n{after}");
        }
    } else {
        ran.refused(2).says(&["patch.toml:"]);
    }
    // A file, or a function, of nothing is no file and no function.
    broken(
        TABLE,
        "template = \"table.h\"\ninputs = { levels = \"facts.has_levels\" }",
        "text = \"\"",
        &["edit `header` creates a file with nothing in it"],
    );
    let tiny = Tiny::new();
    tiny.edit(BATCH, "\"scan.start.uses.level\"", "false");
    tiny.edit(
        "templates/tiny/settle.c.tera",
        "/* Waits",
        "@% if batch_delay %@\n/* Waits",
    );
    tiny.edit(
        "templates/tiny/settle.c.tera",
        "\n}\n",
        "\n}\n@% endif %@\n",
    );
    tiny.refused(
        2,
        &["edit `settle` defines [], but its `defines` says [lamp_settle]"],
    );
}

#[test]
fn two_patches_with_the_same_name_on_disk_do_not_hide_a_mistake_in_a_subject() {
    let tiny = Tiny::new();
    tiny.sandbox
        .write("patches/tiny/0003-table/message.txt", "\n\n");
    tiny.refused(2, &["`table`", "subject"]);
}

// ----------------------------------------------------------------------------------------- the command line

#[test]
fn nobody_is_made_an_author() {
    let tiny = Tiny::new();
    tiny.sandbox.write(
        "home/.gitconfig",
        "[user]\n\tname = Some One\n\temail = someone@example.org\n",
    );
    let regen = || {
        tiny.reroll(&["regen", "-o", "out"])
            .without("GIT_CONFIG_GLOBAL")
    };
    let ran = regen().run().refused(2).says(&[
        "nobody is named as the author",
        "--author",
        "REROLL_AUTHOR",
    ]);
    assert!(!tiny.sandbox.path("out").exists(), "{}", ran.stderr);
    regen().env("REROLL_AUTHOR", AUTHOR).run().expect_exit(0);
    for (name, mail) in tiny.sandbox.files("out") {
        assert!(
            !mail.windows(13).any(|text| text == b"Signed-off-by"),
            "{name}: none is invented"
        );
    }
    for author in [
        "A U Thor",
        "<author@example.org>",
        "A U Thor <>",
        "A <b@c> <d@e>",
        "A\nB <a@example.org>",
        "",
        "A U Thor <author@exam ple.org>",
    ] {
        let program = tiny.reroll(&["regen", "-o", "new", "--author", author]);
        program.run().refused(2);
        assert!(!tiny.sandbox.path("new").exists(), "{author}");
    }
}

#[test]
fn dates_versions_and_change_ids_are_checked() {
    let tiny = Tiny::new();
    for date in ["yesterday", "2026-13-01T00:00:00Z", "", "2026-11-31"] {
        tiny.regen()
            .args(["--date", date])
            .run()
            .refused(2)
            .says(&["is no date"]);
    }
    for version in ["0", "-1", "x"] {
        let ran = tiny
            .regen()
            .arg(format!("--reroll-count={version}"))
            .run()
            .expect_exit(2);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    for (command, words) in [
        (&["regen", "--mbox", "x", "-o", "y"][..], "--mbox"),
        (&["regen", "-n", "--ref", "refs/heads/x"], "--ref"),
        (&["nonsense"], "nonsense"),
        (&[], "Usage"),
    ] {
        tiny.sandbox
            .reroll(command)
            .run()
            .expect_exit(2)
            .says(&[words]);
    }
    let tiny = Tiny::new();
    tiny.edit(SERIES, "20261130-lamp-batches-0123456789ab", "lamps");
    tiny.refused(2, &["`lamps` is no change id"]);
}

#[test]
fn what_mails_are_made_of_is_refused_with_its_line() {
    let version = "version = 1\n";
    for (line, words) in [
        ("author = \"A U Thor\"", "`A U Thor` is no name and address"),
        ("author = \"a@example.org\"", "`a@example.org` has no name"),
        (
            "author = \"A\\u001b[31m <a@example.org\"",
            "is no name and address",
        ),
        ("date = \"yesterday\"", "`yesterday` is no date"),
        ("date = \"2026-11-31\"", "`2026-11-31` is no date"),
        (
            "cc = [\"a@example.org\", \"nobody\"]",
            "`nobody` is no name and address",
        ),
    ] {
        let changed = format!("{version}{line}\n");
        let place = format!("{SERIES}:6: ");
        broken(
            SERIES,
            version,
            &changed,
            &[&place, words, "hint: write it like"],
        );
    }
    let id = "20261130-lamp-batches-0123456789ab";
    for wrong in [
        "lamps",
        "20261130-0123456789ab",
        "2026-lamps-0123456789ab",
        "",
    ] {
        let words = format!("{SERIES}:6: `{wrong}` is no change id");
        broken(SERIES, id, wrong, &[&words, "0123456789ab"]);
    }
    broken(
        SERIES,
        "\"lamps@example.org\"",
        "\"lamps\"",
        &["`lamps` is no name and address"],
    );
}

#[test]
fn a_base_that_is_no_kernel_is_refused() {
    for makefile in [
        None,
        Some("all:\n\techo VERSION = 3\n"),
        Some("VERSION = x\nPATCHLEVEL = 1\n"),
    ] {
        let mut tiny = Tiny::new();
        let files: Vec<(&str, &[u8])> = vec![("README", b"no kernel\n")];
        let tree_id = tiny.store.tree(&files);
        let tree_id = makefile.map_or(tree_id, |text| {
            tiny.store
                .tree_with(tree_id, &[("Makefile", text.as_bytes())])
        });
        tiny.rev = tiny.store.commit(tree_id, None, "x\n").to_string();
        tiny.refused(2, &["is no kernel", "Makefile"]);
        for command in ["facts", "explain"] {
            tiny.reroll(&[command])
                .run()
                .refused(2)
                .says(&["is no kernel"]);
        }
    }
}

#[test]
fn a_tree_or_revision_that_is_not_there_is_refused() {
    let tiny = Tiny::new();
    let tree = tiny
        .store
        .repo
        .base(&tiny.rev)
        .expect("a commit")
        .tree_id
        .to_string();
    let regen = |tree: &str, rev: &str| {
        let program = tiny.sandbox.reroll([
            "regen", "--author", AUTHOR, "-o", "out", "--tree", tree, "--base", rev,
        ]);
        program.run().refused(2)
    };
    tiny.sandbox.write("file", "x");
    fs::create_dir(tiny.sandbox.path("empty")).expect("a directory");
    for path in ["nowhere", "file", "empty", "patches"] {
        regen(path, "HEAD").says(&["cannot open", path, "git repository"]);
    }
    for rev in [
        "v9.9",
        "HEAD~99",
        "HEAD^2",
        "0123456789012345678901234567890123456789",
        "",
        ":",
        "HEAD:nothing",
        "@{upstream}",
        "-x",
    ] {
        let program = tiny.sandbox.reroll([
            "regen", "--author", AUTHOR, "-o", "out", "--tree", "tree.git",
        ]);
        program.arg(format!("--base={rev}")).run().refused(2);
    }
    regen("tree.git", &tree).says(&["is not a commit"]);
    regen("tree.git", &format!("{}:Makefile", tiny.rev)).says(&["is not a commit"]);
    tiny.sandbox
        .git(["init", "-q", "unborn"])
        .run()
        .expect_exit(0);
    let program = tiny
        .sandbox
        .reroll(["regen", "--author", AUTHOR, "-o", "out", "--tree", "unborn"]);
    program.run().refused(2).says(&["HEAD"]);
    let program = tiny.sandbox.reroll([
        "regen", "--author", AUTHOR, "-o", "out", "--base", "nothing",
    ]);
    program
        .run()
        .refused(2)
        .says(&["the cache has no base `nothing`", "reroll base add"]);
    let program = tiny.sandbox.reroll(["-C", "nowhere", "facts"]);
    program.run().refused(2).says(&["cannot go to `nowhere`"]);
    assert!(!tiny.sandbox.path("out").exists());
}

#[test]
fn repositories_that_libgit2_cannot_read_say_what_to_do() {
    let sandbox = Sandbox::new();
    for (name, args) in [
        ("sha256", &["--object-format=sha256"][..]),
        ("reftable", &["--ref-format=reftable"]),
    ] {
        let init = sandbox.git(["init", "-q"]).args(args).arg(name).run();
        if init.code != Some(0) {
            // An older git knows no such format, and makes no such repository.
            continue;
        }
        sandbox.write(
            format!("{name}/Makefile"),
            "VERSION = 3\nPATCHLEVEL = 1\nSUBLEVEL = 4\nEXTRAVERSION =\n",
        );
        sandbox.write(format!("{name}/Kconfig"), "mainmenu \"A kernel\"\n");
        for command in [&["add", "."][..], &["commit", "-q", "-m", "x"]] {
            sandbox
                .git(command)
                .dir(sandbox.path(name))
                .run()
                .expect_exit(0);
        }
        let program = sandbox.reroll(["regen", "--author", AUTHOR, "-o", "out", "--tree", name]);
        program.run().refused(2).says(&["cannot open", name]);
        let inside = sandbox
            .reroll(["regen", "--author", AUTHOR, "-o", "out"])
            .dir(sandbox.path(name));
        inside.run().refused(2);
        if name == "sha256" {
            // What the hint says helps: the kernel is one that the series does not fit.
            let archive = ["archive", "--prefix=linux/", "--output=base.tar", "HEAD"];
            let git = sandbox.git(archive).dir(sandbox.path(name));
            git.run().expect_exit(0);
            let add = sandbox.reroll(["base", "add", "mine", "sha256/base.tar"]);
            add.run().expect_exit(0);
            let regen =
                sandbox.reroll(["regen", "--author", AUTHOR, "-o", "out", "--base", "mine"]);
            regen.run().refused(3);
        }
    }
    assert!(!sandbox.path("out").exists());
}

#[test]
fn a_partial_clone_of_an_old_git_is_readable_after_what_the_hint_says() {
    let tiny = Tiny::new();
    let config = |args: &[&str]| {
        let git = tiny.sandbox.git(["-C", "tree.git", "config"]).args(args);
        git.run().expect_exit(0);
    };
    config(&["core.repositoryFormatVersion", "1"]);
    config(&["extensions.partialClone", "origin"]);
    let said = tiny.regen().run().refused(2).stderr;
    let commands: Vec<_> = said
        .split('`')
        .filter_map(|part| part.strip_prefix("git config "))
        .collect();
    assert_eq!(commands.len(), 2, "{said}");
    for command in commands {
        config(&command.split(' ').collect::<Vec<_>>());
    }
    tiny.regen().run().expect_exit(0);
}

/// Leaves so many bytes of an object of the tree's repository; its id.
fn cut(tiny: &Tiny, what: &str, length: usize) -> String {
    let git = tiny.sandbox.git(["-C", "tree.git", "rev-parse", what]);
    let id = git.run().expect_exit(0).stdout.to_string();
    let id = id.trim();
    let objects = tiny.store.path.join("objects");
    let file = objects.join(&id[..2]).join(&id[2..]);
    let bytes = fs::read(&file).expect("an object");
    fs::remove_file(&file).expect("removed");
    fs::write(&file, &bytes[..length]).expect("cut");
    id.to_owned()
}

#[test]
fn an_object_that_was_cut_short_in_a_borrowed_repository_is_told() {
    let tiny = Tiny::new();
    let clone = [
        "clone",
        "-q",
        "--bare",
        "--shared",
        "tree.git",
        "shared.git",
    ];
    tiny.sandbox.git(clone).run().expect_exit(0);
    let id = cut(&tiny, "HEAD^{tree}", 20);
    let program = tiny
        .sandbox
        .reroll(["regen", "--author", AUTHOR, "--tree", "shared.git"]);
    let ran = program.args(["--base", &tiny.rev]).run().refused(4);
    ran.says(&[&format!("object {id} of `"), "git fsck"]);
}

#[test]
fn head_of_a_linked_work_tree_is_its_own_whoever_made_it() {
    let tiny = Tiny::new();
    let git = |args: &[&str]| {
        tiny.sandbox
            .git(["-C", "tree.git"])
            .args(args)
            .run()
            .expect_exit(0)
    };
    git(&["worktree", "add", "-q", "--detach", "../linked", &tiny.rev]);
    let tree = git(&["rev-parse", &format!("{}^{{tree}}", tiny.rev)])
        .stdout
        .to_string();
    let people = "author  <> 1700000000 +0000\ncommitter C <c@example.org> 1700000000 +0000";
    let text = format!(
        "tree {}\nparent {}\n{people}\n\nnobody\n",
        tree.trim(),
        tiny.rev
    );
    tiny.sandbox.write("commit", text);
    let id = git(&[
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--literally",
        "../commit",
    ])
    .stdout
    .to_string();
    tiny.sandbox
        .git(["-C", "linked", "checkout", "-q", "--detach", id.trim()])
        .run()
        .expect_exit(0);
    let program = tiny.sandbox.reroll([
        "regen", "--author", AUTHOR, "-n", "--json", "--tree", "linked",
    ]);
    let json = program.run().expect_exit(0).json();
    assert_eq!(json["commits"].as_array().expect("a list").len(), 3);
    assert!(json.to_string().contains(id.trim()), "{json:#}");
}

#[test]
fn an_object_that_was_cut_short_is_told_and_not_waited_for() {
    for what in ["HEAD", "HEAD^{tree}", "HEAD:drivers/lamp.c"] {
        for length in [0, 1, 20] {
            let tiny = Tiny::new();
            let id = cut(&tiny, what, length);
            let ran = tiny.regen().run().refused(4);
            ran.says(&[&format!("object {id} of `"), "git fsck"]);
        }
    }
}

#[test]
fn a_series_that_is_not_there_is_refused() {
    let tiny = Tiny::new();
    for name in ["nothing", "patches", "../x", "", "patches/tiny/series.toml"] {
        let program = tiny.regen().args(["--series", name]);
        program
            .run()
            .refused(2)
            .says(&["there is no series", "one of: "]);
    }
    tiny.sandbox.write("patches/other/series.toml", "");
    tiny.refused(2, &["there are 2 series: ", "--series"]);
    tiny.regen().args(["--series", "tiny"]).run().expect_exit(0);
    tiny.regen()
        .args(["--series", "patches/tiny"])
        .run()
        .expect_exit(0);
}

// ------------------------------------------------------------------------------------------------- the output

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let tiny = Tiny::new();
    tiny.sandbox.write("file", "mine");
    for (dir, code) in [
        ("file", 2),
        ("file/below", 2),
        ("/dev/null", 2),
        ("/proc/reroll/v1", 4),
    ] {
        let program = tiny.reroll(&[
            "regen",
            "--author",
            AUTHOR,
            "-o",
            dir,
            "--ref",
            "refs/heads/series",
        ]);
        program
            .run()
            .refused(code)
            .says(&["cannot write", dir.trim_end_matches("/v1")]);
    }
    for file in ["file/x.mbox", "nowhere/x.mbox", "patches"] {
        let program = tiny.reroll(&["regen", "--author", AUTHOR, "--mbox", file]);
        program.run().refused(2).says(&["cannot write", file]);
    }
    assert_eq!(tiny.sandbox.read("file"), "mine");
    assert_eq!(
        tiny.store
            .repo
            .reference("refs/heads/series")
            .expect("a name"),
        None
    );
    assert!(
        tiny.sandbox
            .listing(".")
            .iter()
            .all(|path| !path.contains(".reroll-"))
    );
}

#[test]
fn a_directory_with_edited_mails_is_kept_unless_forced() {
    let tiny = Tiny::new();
    tiny.regen().run().expect_exit(0);
    let cover = "out/0000-cover-letter.patch";
    let original = tiny.sandbox.read(cover);
    tiny.sandbox.write(cover, "my own words\n");
    tiny.sandbox.write("out/notes", "mine\n");
    let again = |args: &[&str]| {
        tiny.regen()
            .args(["--date", "2026-01-01T00:00:00Z"])
            .args(args)
            .run()
    };
    let listing = tiny.sandbox.listing(".");
    again(&["--ref", "refs/heads/series"]).refused(2).says(&[
        "0000-cover-letter.patch",
        "edited",
        "--force",
    ]);
    assert_eq!(tiny.sandbox.listing("."), listing);
    assert_eq!(tiny.sandbox.read(cover), "my own words\n");
    again(&["--force"]).expect_exit(0);
    assert_ne!(tiny.sandbox.read(cover), "my own words\n");
    assert_ne!(tiny.sandbox.read(cover), original, "another date");
    assert_eq!(tiny.sandbox.read("out/notes"), "mine\n");
    // One that was deleted is written again.
    fs::remove_file(tiny.sandbox.path(cover)).expect("it is there");
    again(&[]).expect_exit(0);
    assert!(tiny.sandbox.path(cover).exists());
    // Somebody else's file in the way, where no run has written yet.
    tiny.sandbox
        .write("new/0000-cover-letter.patch", "somebody else's");
    let program = tiny.reroll(&["regen", "--author", AUTHOR, "-o", "new"]);
    program.run().refused(2).says(&["0000-cover-letter.patch"]);
    assert_eq!(tiny.sandbox.listing("new").len(), 1);
}

#[test]
fn a_ref_that_is_elsewhere_is_refused_before_anything_is_written() {
    let mut tiny = Tiny::new();
    let first = tiny.rev.clone();
    tiny.commit(&[("README", b"x")], "a second commit\n");
    let name = "refs/heads/series";
    let first_id = first.parse().expect("an id");
    tiny.store
        .repo
        .update_reference(name, None, first_id, "test")
        .expect("a ref");
    tiny.refused(
        2,
        &[
            "`refs/heads/series` is at",
            &first,
            "would move to",
            "--force",
        ],
    );
    let reference = || {
        tiny.store
            .repo
            .reference(name)
            .expect("a name")
            .expect("it is there")
    };
    assert_eq!(reference(), first_id);
    tiny.regen()
        .args(["--ref", name, "--force"])
        .run()
        .expect_exit(0);
    assert_ne!(reference(), first_id);
    for name in [
        "series",
        "HEAD",
        "refs/heads/a b",
        "refs/heads/..",
        "refs/heads/x.lock",
        "refs/heads/",
        "",
        "refs/heads/a\u{1b}[31m",
        "refs/heads/series/below",
    ] {
        let before = tiny.sandbox.listing("tree.git");
        let program = tiny.reroll(&["regen", "--author", AUTHOR, "-o", "new", "--ref", name]);
        program.run().refused(2);
        if name != "refs/heads/series/below" {
            assert_eq!(tiny.sandbox.listing("tree.git"), before, "{name}");
            assert!(!tiny.sandbox.path("new").exists(), "{name}");
        }
    }
}

#[test]
fn a_branch_that_a_work_tree_is_on_is_not_moved_under_it() {
    let tiny = Tiny::new();
    let git = |args: &[&str]| tiny.sandbox.git(args).run().expect_exit(0);
    git(&["clone", "-q", "tree.git", "clone"]);
    git(&["-C", "clone", "switch", "-q", "-c", "series"]);
    git(&["-C", "clone", "commit", "-q", "--allow-empty", "-m", "more"]);
    let tip = || git(&["-C", "clone", "rev-parse", "refs/heads/series"]).stdout;
    let before = tip();
    let regen = |tree: &str| {
        let args = [
            "regen", "--author", AUTHOR, "-o", "out", "--force", "--tree", tree,
        ];
        let args = [
            &args[..],
            &["--base", &tiny.rev, "--ref", "refs/heads/series"],
        ]
        .concat();
        tiny.sandbox.reroll(args).run()
    };
    let refused = |tree: &str, root: &str| {
        let words = [
            "cannot move `refs/heads/series`",
            &format!("/{root}` is on it"),
        ];
        regen(tree).refused(2).says(&words);
        assert_eq!(tip(), before, "{tree}");
        assert!(!tiny.sandbox.path("out").exists(), "{tree}");
        // As git does.
        git(&["-C", "clone", "branch", "-q", "-f", "other", "HEAD"]);
        let args = ["-C", tree, "branch", "-f", "series", "other~"];
        tiny.sandbox.git(args).run().expect_exit(128);
    };
    refused("clone", "clone");
    // The same from a linked work tree, and for the branch that one is on.
    git(&[
        "-C",
        "clone",
        "worktree",
        "add",
        "-q",
        "--detach",
        "../linked",
    ]);
    refused("linked", "clone");
    git(&["-C", "clone", "switch", "-q", "--detach"]);
    git(&["-C", "linked", "switch", "-q", "series"]);
    refused("clone", "linked");
    refused("linked", "linked");
    // One that is in the middle of something comes back to its branch.
    git(&["-C", "linked", "bisect", "start"]);
    git(&["-C", "linked", "checkout", "-q", "--detach"]);
    refused("clone", "linked");
    git(&["-C", "linked", "bisect", "reset", "HEAD"]);
    tiny.sandbox
        .write("clone/.git/rebase-merge/head-name", "refs/heads/series\n");
    tiny.sandbox.write("clone/.git/rebase-merge/onto", &before);
    refused("linked", "clone");
    std::fs::remove_dir_all(tiny.sandbox.path("clone/.git/rebase-merge")).expect("removed");
    regen("clone").expect_exit(0);
    assert_ne!(tip(), before);
}

#[test]
fn hostile_names_are_shown_escaped() {
    let tiny = Tiny::new();
    let hostile = "x\u{1b}]0;owned\u{7}\u{1b}[2J\r\nerror: all is well\u{202e}";
    let run = |args: &[&str]| {
        let ran: Ran = tiny.sandbox.reroll(args).env("REROLL_AUTHOR", AUTHOR).run();
        let ran = ran.refused(2);
        assert!(ran.stderr.contains("\\u{1b}"), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{202e}'), "{}", ran.stderr);
    };
    run(&["regen", "--tree", "tree.git", "--base", hostile]);
    run(&["regen", "--tree", hostile]);
    run(&["regen", "--tree", "tree.git", "--series", hostile]);
    run(&["regen", "--base", hostile]);
    run(&["regen", "--tree", "tree.git", "--author", hostile]);
    run(&["regen", "--tree", "tree.git", "--date", hostile]);
    run(&["regen", "--tree", "tree.git", "--ref", hostile]);
    run(&[
        "regen",
        "--tree",
        "tree.git",
        "-o",
        &format!("patches/tiny/series.toml/{hostile}"),
    ]);
    run(&[
        "regen",
        "--tree",
        "tree.git",
        "--mbox",
        &format!("nowhere/{hostile}"),
    ]);
    run(&["-C", hostile, "facts"]);
    run(&["base", "add", "name", hostile]);
    run(&["base", "add", hostile, "patches"]);
}

#[test]
fn what_a_tree_says_is_shown_escaped() {
    let mut tiny = Tiny::new();
    tiny.change(
        "drivers/lamp.c",
        "\tlamp->on = true;\n",
        "\tevil(\"\u{1b}[2J\u{202e}\");\n",
    );
    let ran = tiny.refused(3, &["no part of `lamp_start()` claims this statement"]);
    assert!(ran.stderr.contains("\\u{1b}[2J\\u{202e}"), "{}", ran.stderr);
    tiny.change(
        "Makefile",
        "EXTRAVERSION =\n",
        "EXTRAVERSION = -\u{1b}[2J\n",
    );
    for command in ["facts", "explain"] {
        let ran = tiny.reroll(&[command]).run();
        assert!(
            !ran.stderr.contains('\u{1b}') && !ran.stdout.contains(&0x1b),
            "{command}: {ran:?}"
        );
    }
}

// --------------------------------------------------------------------------------------------- the exit codes

#[test]
fn exit_0_is_done() {
    let tiny = Tiny::new();
    tiny.regen().run().expect_exit(0);
    tiny.sandbox.reroll(["--help"]).run().expect_exit(0);
    tiny.sandbox.reroll(["--version"]).run().expect_exit(0);
}

#[test]
fn exit_2_is_a_wrong_command_line_or_recipe() {
    Sandbox::new()
        .reroll(["regen", "--no-such-option"])
        .run()
        .expect_exit(2);
}

#[test]
fn exit_3_is_a_base_that_does_not_fit() {
    let mut tiny = Tiny::new();
    tiny.change("Kconfig", "depends on WIRES", "depends on AIR");
    tiny.refused(
        3,
        &[
            "the fact `wired` is false on this base: lamps need wires",
            "patches/tiny/series.toml:",
        ],
    );
}

#[test]
fn exit_4_is_a_tool_that_is_missing_or_a_repository_that_is_broken() {
    let tiny = Tiny::new();
    // A partial clone whose remote is gone.
    tiny.sandbox
        .git(["config", "uploadpack.allowFilter", "true"])
        .env("GIT_DIR", &tiny.store.path)
        .run()
        .expect_exit(0);
    let url = format!("file://{}", tiny.store.path.display());
    tiny.sandbox
        .git([
            "clone",
            "-q",
            "--bare",
            "--filter=blob:none",
            &url,
            "partial",
        ])
        .run()
        .expect_exit(0);
    fs::rename(&tiny.store.path, tiny.sandbox.path("gone")).expect("it moves");
    let regen = |tree: &str| {
        tiny.sandbox
            .reroll(["regen", "--author", AUTHOR, "-o", "out", "--tree", tree])
            .run()
    };
    regen("partial")
        .refused(4)
        .says(&["is missing from the partial clone", "remote"]);
    // No git to ask.
    let program = tiny.sandbox.reroll([
        "regen", "--author", AUTHOR, "-o", "out", "--tree", "partial",
    ]);
    program
        .env("PATH", "/nowhere")
        .run()
        .refused(4)
        .says(&["git"]);
    // An object that is not there, in a clone that has promised nobody anything.
    let sandbox = &tiny.sandbox;
    let store = Store::new(sandbox, "broken.git");
    let tree_id = store.tree(&[("Makefile", b"VERSION = 3\nPATCHLEVEL = 1\n")]);
    let blob_id = store
        .repo
        .write_blob(b"VERSION = 3\nPATCHLEVEL = 1\n")
        .expect("a blob")
        .to_string();
    store
        .repo
        .write_commit(tree_id, None, &someone(), "x\n".into())
        .expect("a commit");
    store.commit(tree_id, None, "x\n");
    fs::remove_file(
        store
            .path
            .join("objects")
            .join(&blob_id[..2])
            .join(&blob_id[2..]),
    )
    .expect("it is there");
    regen("broken.git")
        .refused(4)
        .says(&["cannot read object", "git fsck"]);
    assert!(!tiny.sandbox.path("out").exists());
}

#[test]
fn exit_130_is_an_interruption() {
    let sandbox = Sandbox::new();
    // A source that never ends.
    let fifo = sandbox.path("endless.tar");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a pipe");
    let child = sandbox
        .reroll(["base", "add", "endless"])
        .arg(&fifo)
        .start();
    let pid = rustix::process::Pid::from_child(&child);
    let writer = std::thread::spawn(move || {
        let mut pipe = fs::File::create(&fifo).expect("a pipe");
        while pipe.write_all(&[0; 4096]).is_ok() {}
    });
    std::thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    let ran = Ran::of("reroll base add".to_owned(), output)
        .expect_exit(130)
        .says(&["interrupted"]);
    assert!(since.elapsed() < Duration::from_secs(10), "{}", ran.stderr);
    let list = sandbox
        .reroll(["base", "list", "--json"])
        .run()
        .expect_exit(0)
        .json();
    assert_eq!(list["bases"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_path_that_is_not_utf8_is_a_path() {
    let tiny = Tiny::new();
    let name = std::ffi::OsStr::from_bytes(b"out\xff");
    let program = tiny
        .sandbox
        .reroll(["regen", "--author", AUTHOR, "--tree", "tree.git", "-o"]);
    program.arg(name).run().expect_exit(0);
    assert!(
        tiny.sandbox
            .path(name)
            .join("0000-cover-letter.patch")
            .exists()
    );
}
