//! What a series rests on and does not edit, on the small recipe: a form that was never proven is said to be unproven; and names,
//! callers and values that are not what they look like are refused.

use std::path::Path;

use reroll::recipe::{self, Recipe};
use reroll::repo::{Base, Repo, Signature};
use reroll::rests::record::ProvenBase;
use reroll::rests::{self, Proven, Standing};
use reroll::series::{Options, Regenerated, regenerate};

use crate::recipe::with_edits;
use crate::support::Tiny;

const FILE: &str = "drivers/lamp.c";
const SERIES: &str = "patches/tiny/series.toml";

/// The small series, which rests on something.
fn resting(table: &str) -> Tiny {
    let tiny = Tiny::new();
    let text = std::fs::read_to_string(tiny.sandbox.path(SERIES)).expect("a recipe");
    tiny.sandbox
        .write(SERIES, format!("{text}\n[rests-on]\n{table}\n"));
    tiny
}

/// The same, with what it rests on now recorded as proven.
fn proven(table: &str) -> Tiny {
    let tiny = resting(table);
    record_all(
        "tiny",
        &tiny.sandbox.path("."),
        &[(&tiny.store.path, &tiny.rev)],
    );
    tiny
}

/// Records what a series in the directory `project` rests on on these bases (a repository and a revision each) as proven, as
/// `check --record` does it where the gates pass.
pub(crate) fn record_all(series: &str, project: &Path, bases: &[(&Path, &str)]) {
    let recipe = recipe::load(series, project).unwrap_or_else(|error| panic!("{error:#}"));
    let mut known = Proven::nothing(&recipe.code_digest());
    for (git_dir, rev) in bases {
        let mut repo = Repo::open(git_dir).expect("a repository");
        repo.keep_in_memory().expect("memory");
        let base = repo.base(rev).expect("a base");
        let standing = standing(&repo, &base, &recipe);
        let proven = ProvenBase {
            release: "3.1.4".to_owned(),
            tree: base.tree_id.to_string(),
            configurations: vec!["gcc".to_owned()],
        };
        known.add(proven, &standing.items);
    }
    let directory = recipe.directory.clone().expect("a series on disk");
    rests::write(&directory, &known).expect("written");
}

/// How a base stands for a series that fits it.
fn standing(repo: &Repo, base: &Base, recipe: &Recipe) -> Standing {
    let author = Signature {
        name: "A U Thor".into(),
        email: "author@example.org".into(),
        time: 0,
        offset: 0,
    };
    let options = Options {
        author,
        sign_off: true,
        version: 1,
    };
    match regenerate(repo, base, recipe, &options) {
        Ok(Regenerated::Series(series)) => {
            series.standing.expect("the recipe says what it rests on")
        }
        Ok(_) => panic!("the base has the series"),
        Err(error) => panic!("{error:#}"),
    }
}

#[test]
fn the_record_that_ships_is_of_the_recipe_that_ships() {
    let recipe = recipe::load("zone-device", Path::new(env!("CARGO_MANIFEST_DIR")));
    let recipe = recipe.unwrap_or_else(|error| panic!("{error:#}"));
    let known = rests::proven(&recipe).expect("it can be read");
    let known = known.unwrap_or_else(|why| panic!("{why}"));
    assert!(known.bases().len() >= 5, "{known:?}");
    for base in known.bases() {
        // In every configuration that the recipe has.
        assert_eq!(base.configurations.len(), 8, "{base:?}");
    }
}

#[test]
fn a_series_that_was_never_proven_says_so_and_how_to_prove_it() {
    let tiny = resting("");
    tiny.refused(
        3,
        &[
            "this base is unproven",
            "was never proven",
            "hint: `reroll check --record --tree /",
            "--unproven",
        ],
    );
    let ran = tiny.regen().arg("--unproven").run().expect_exit(0);
    ran.says(&["warning: unproven: nothing is proven"]);
    let cover = tiny.sandbox.read("out/0000-cover-letter.patch").to_string();
    assert!(
        cover.contains("Unproven on this base: nothing is proven"),
        "{cover}"
    );
}

#[test]
fn what_was_proven_is_proven_whatever_the_layout() {
    let mut tiny = proven("");
    tiny.regen().run().expect_exit(0);
    tiny.change(
        FILE,
        "\tlamp->level = level;\n",
        "\t/* why */\n\tlamp->level\n\t\t= level;\n",
    );
    tiny.change(
        "include/linux/bus.h",
        "int bus_id(struct bus *bus);\n",
        "int bus_id(struct bus *bus);\nint bus_other(void);\n",
    );
    tiny.regen().run().expect_exit(0);
}

#[test]
fn what_says_something_else_is_unproven_and_shown() {
    let cases = [
        (
            "",
            FILE,
            "\tlamp->level = level;\n",
            "\tlamp->level = level + 1;\n",
            ["`lamp_set`", "lamp->level = level + 1;"],
        ),
        (
            "",
            FILE,
            "\tlamp->level = level;\n",
            "\tlamp->level = level;\n\tlamp->owner = 0;\n",
            ["`lamp_set`", "+ drivers/lamp.c:12: \tlamp->owner = 0;"],
        ),
        (
            "",
            "include/linux/bug.h",
            "(!!(condition))",
            "(condition)",
            ["`WARN_ON`", "otherwise than on 3.1.4"],
        ),
        (
            "",
            "include/linux/bus.h",
            "\tint level;\n",
            "\tlong level;\n",
            ["`struct bus`", "otherwise than"],
        ),
        (
            "layouts = [\"lamp\"]",
            "include/linux/lamp.h",
            "\tbool on;\n",
            "\tbool on;\n\tint more;\n",
            ["`struct lamp`", "int more;"],
        ),
        (
            "",
            "include/linux/lamp.h",
            "int lamp_power_batched(struct lamp *lamp, bool on);",
            "#define lamp_power_batched(lamp, on) 0",
            ["`lamp_power_batched`", "define"],
        ),
        // What an open metavariable stands for.
        (
            "",
            FILE,
            "lamp_power(lamp, true)",
            "lamp_power(lamp, false)",
            ["`edit batch/switch`", "lamp_start: "],
        ),
        // What a fact is.
        (
            "",
            FILE,
            "\t\tlamp_wait(lamp, 10);\n",
            "",
            ["`fact waits`", "otherwise than"],
        ),
        // A macro hides a member of the same name.
        (
            "",
            FILE,
            "#define LEVELS 8\n",
            "#define LEVELS 8\n#define owner other\n",
            ["`owner`", "was never seen"],
        ),
        // What only the series' own text uses means in the file what the file says.
        (
            "",
            FILE,
            "#define LEVELS 8\n",
            "#define LEVELS 8\n#define lamp_power_batched(lamp, on) 0\n",
            ["`lamp_power_batched`", "drivers/lamp.c"],
        ),
    ];
    for (table, path, from, to, words) in cases {
        let mut tiny = proven(table);
        tiny.change(path, from, to);
        tiny.refused(3, &["this base is unproven", words[0], words[1]]);
        tiny.regen().arg("--unproven").run().expect_exit(0);
    }
}

#[test]
fn what_is_taken_for_granted_or_not_reached_does_not_matter() {
    let granted = "[[rests-on.beyond]]\nnames = [\"lamp_set\"]\nreason = \"a test\"";
    let mut tiny = proven(granted);
    tiny.change(
        FILE,
        "\tlamp->level = level;\n",
        "\tlamp->level = level + 1;\n",
    );
    tiny.regen().run().expect_exit(0);
    // A member that the code does not use.
    let mut tiny = proven("");
    tiny.change(
        "include/linux/lamp.h",
        "\tbool on;\n",
        "\tbool on;\n\tint more;\n",
    );
    tiny.regen().run().expect_exit(0);
}

#[test]
fn a_changed_recipe_is_not_the_one_that_was_proven() {
    let tiny = proven("");
    tiny.edit(
        "templates/tiny/settle.c.tera",
        "bus->level",
        "bus->level + 1",
    );
    tiny.refused(
        3,
        &["this base is unproven", "the recipe's code has changed"],
    );
}

#[test]
fn explain_lists_what_a_series_rests_on() {
    let mut tiny = proven("");
    tiny.change(
        FILE,
        "\tlamp->level = level;\n",
        "\tlamp->level = level + 1;\n",
    );
    let ran = tiny.reroll(&["explain", "--rests-on"]).run().expect_exit(0);
    let text = String::from_utf8(ran.stdout.to_vec()).expect("UTF-8");
    assert!(
        text.contains("unproven lamp_set at drivers/lamp.c:"),
        "{text}"
    );
    assert!(
        text.contains("proven   struct bus at include/linux/bus.h:"),
        "{text}"
    );
    Tiny::new()
        .reroll(&["explain", "--rests-on"])
        .run()
        .refused(2)
        .says(&["does not say what it rests on"]);
}

#[test]
fn moved_text_means_what_it_meant() {
    let wait = "\t\tlamp_wait(lamp, 10);\n";
    let cases = [
        ("\t\tlamp_wait(lamp, level);\n", "there is no `level`"),
        (
            "\t\tlamp_wait(lamp, 10);\n\t\tlevel = 1;\n",
            "a change of `level` is lost",
        ),
        (
            "\t\tlamp_wait(lamp, 10);\n\t\treturn 0;\n",
            "the `return` in them leads out of them",
        ),
        (
            "\t\tlamp_wait(lamp, 10);\n\t\tgoto out;\n",
            "the `goto` in them leads out of them",
        ),
    ];
    for (with, words) in cases {
        let mut tiny = Tiny::new();
        tiny.change(FILE, wait, with);
        tiny.refused(3, &["`warm`", words]);
    }
    let mut tiny = Tiny::new();
    tiny.change(
        FILE,
        wait,
        "\t\tlamp_wait(lamp, 10);\n\t\tif (lamp->on)\n\t\t\tbreak;\n",
    );
    tiny.regen().run().expect_exit(0);
}

#[test]
fn names_that_an_edit_adds_are_new() {
    let cases = [
        (
            FILE,
            "#define LEVELS 8\n",
            "#define LEVELS 8\n#define lamp_settle(bus) do { } while (0)\n",
            "the name is in use in the file already",
        ),
        (
            "include/linux/bus.h",
            "int bus_id(",
            "void lamp_settle(struct bus *bus);\nint bus_id(",
            "a function of that name can be seen",
        ),
        (
            "include/linux/bus.h",
            "int bus_id(",
            "#define started 1\nint bus_id(",
            "`started` is a name that edit `local` declares, though it is a macro",
        ),
        (FILE, "\tint i;\n", "\tint i, started = 0;\n", "started"),
    ];
    for (path, from, to, words) in cases {
        let mut tiny = Tiny::new();
        tiny.change(path, from, to);
        tiny.refused(3, &[words]);
    }
}

#[test]
fn macros_that_an_edit_writes_are_new() {
    let edit = "[[edit]]\nname = \"a\"\nfile = \"drivers/lamp.c\"\naction = \"insert\"\nplace = \"before\"\nfunction = \"lamp_set\"\ntext = \"#define SLOW 1\"\n";
    with_edits(&[edit]).regen().run().expect_exit(0);
    let level = "#define LEVELS 8\n";
    for (path, from, to) in [
        (FILE, level, "#define LEVELS 8\n#define SLOW 2\n"),
        (FILE, level, "#define LEVELS 8\n#define SLOW(x) x\n"),
        (
            "include/linux/bus.h",
            "int bus_id(",
            "#define SLOW 2\nint bus_id(",
        ),
    ] {
        let mut tiny = with_edits(&[edit]);
        tiny.change(path, from, to);
        tiny.refused(3, &["edit `a` defines `SLOW`, but a macro of that name"]);
    }
    // The very line at the very place is the patch itself.
    let mut tiny = with_edits(&[edit]);
    tiny.change(FILE, level, "#define LEVELS 8\n\n#define SLOW 1\n");
    let ran = tiny.regen().run().expect_exit(0);
    let said = "already applied: the base has all of the series\n";
    assert!(ran.stderr.ends_with(said), "{}", ran.stderr);
}

#[test]
fn a_part_of_the_file_beside_it_is_accounted_for_and_a_member_is_no_mention() {
    let include = "#include <linux/wires.h>\n";
    let with = |text: &str| {
        let mut tiny = Tiny::new();
        tiny.change(FILE, include, &format!("{include}#include \"tails.h\"\n"));
        tiny.commit(&[("drivers/tails.h", text.as_bytes())], "more\n");
        tiny
    };
    let call = "static inline int all(struct bus *bus)\n{\n\treturn lamp_scan(bus, 3);\n}\n";
    with(call).refused(
        3,
        &[
            "`lamp_scan()` takes another parameter",
            "drivers/tails.h:3 mentions it",
        ],
    );
    with("/* lamp_scan() is elsewhere. */\n")
        .regen()
        .run()
        .expect_exit(0);
    for member in [
        "struct ops {\n\tint lamp_scan;\n};\n",
        "struct ops {\n\tint lamp_scan;\n\tint more;\n};\n\nstatic int of(struct ops *ops)\n{\n\treturn ops->lamp_scan;\n}\n",
    ] {
        let mut tiny = Tiny::new();
        let comment = "/* Sets a level. */\n";
        tiny.change(FILE, comment, &format!("{member}\n{comment}"));
        tiny.regen().run().expect_exit(0);
    }
}

#[test]
fn an_attribute_with_arguments_in_front_of_a_name_is_none() {
    let mut tiny = Tiny::new();
    let head = "int lamp_scan(struct bus *bus, int count)";
    let odd = format!("__attribute__((aligned(8), cold)) {head}");
    tiny.change(FILE, head, &odd);
    tiny.regen().run().expect_exit(0);
}

#[test]
fn who_else_calls_a_function_is_accounted_for() {
    let cases = [
        (
            "#define LEVELS 8\n",
            "#define LEVELS 8\n\nint lamp_scan(struct bus *bus, int count);\n",
            "drivers/lamp.c:8 mentions it",
        ),
        (
            "/* Sets a level. */\n",
            "static int scan_all(struct bus *bus)\n{\n\treturn lamp_scan(bus, 3);\n}\n\n/* Sets a level. */\n",
            "drivers/lamp.c:10 mentions it",
        ),
    ];
    for (from, to, words) in cases {
        let mut tiny = Tiny::new();
        tiny.change(FILE, from, to);
        tiny.refused(3, &["`lamp_scan()` takes another parameter", words]);
    }
    let mut tiny = Tiny::new();
    tiny.change(
        "include/linux/bus.h",
        "int bus_id(",
        "int lamp_scan(struct bus *bus, int count);\nint bus_id(",
    );
    tiny.refused(
        3,
        &[
            "`lamp_scan()` takes another parameter",
            "`include/linux/bus.h` declares it",
        ],
    );
    let mut tiny = Tiny::new();
    tiny.change(
        FILE,
        "/* Sets a level. */\n",
        "/* Sets a level, as lamp_scan() asks. */\n",
    );
    tiny.regen().run().expect_exit(0);
}

#[test]
fn a_name_that_nothing_declares_is_refused() {
    let mut tiny = Tiny::new();
    tiny.change(
        "include/linux/lamp.h",
        "int lamp_power_batched(struct lamp *lamp, bool on);\n",
        "",
    );
    tiny.refused(
        3,
        &["uses `lamp_power_batched`, but nothing that can be seen there declares it"],
    );
}

#[test]
fn what_the_compiler_and_kbuild_give_needs_no_declaration() {
    let tiny = Tiny::new();
    let from = "static void lamp_settle(struct bus *bus)\n{\n";
    let to = format!("{from}\tif (CONFIG_HZ > 100)\n\t\t__builtin_trap();\n");
    tiny.edit("templates/tiny/settle.c.tera", from, &to);
    tiny.regen().run().expect_exit(0);
}

#[test]
fn a_value_that_only_looks_constant_is_refused() {
    for (value, header, words) in [
        (
            "ticks",
            "extern unsigned long ticks;\n",
            "reads the variable `ticks`",
        ),
        (
            "NOW",
            "extern unsigned long ticks;\n#define NOW ticks\n",
            "uses the macro `NOW`",
        ),
        ("LEVEL", "#define LEVEL level\n", "hides `level`"),
    ] {
        let mut tiny = Tiny::new();
        tiny.change(
            "include/linux/bus.h",
            "int bus_id(",
            &format!("{header}int bus_id("),
        );
        tiny.change(
            FILE,
            "\tlamp->on = true;\n",
            &format!("\tlamp->on = {value};\n"),
        );
        tiny.refused(3, &["no part of `lamp_start()` claims", words]);
    }
    let mut tiny = Tiny::new();
    tiny.change(
        "include/linux/bus.h",
        "int bus_id(",
        "enum { BRIGHT };\n#define FULL BRIGHT\nint bus_id(",
    );
    tiny.change(FILE, "\tlamp->on = true;\n", "\tlamp->on = FULL;\n");
    tiny.regen().run().expect_exit(0);
}
