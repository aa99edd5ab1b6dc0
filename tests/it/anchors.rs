//! Where lines, parameters and definitions go: by syntax, or nowhere. A table that anyone can add a line to.
//!
//! Hides the little tree and the recipe of one edit that each line needs.

use std::fmt::Write as _;

use bstr::ByteSlice;

use crate::support::{AUTHOR, Ran, Sandbox, Store};

/// A tree of one file and a Makefile, and a series of one patch with these edits.
fn regen(file: &str, text: &str, edits: &[&str]) -> (Sandbox, Ran) {
    let sandbox = Sandbox::new();
    let store = Store::new(&sandbox, "tree.git");
    let makefile = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\n";
    let tree_id = store.tree(&[("Makefile", makefile.as_bytes()), (file, text.as_bytes())]);
    store.commit(tree_id, None, "base\n");
    sandbox.write(
        "s/series.toml",
        "name = \"s\"\ntitle = \"lamp: change it\"\nversion = 1\nchange-id = \"20261130-lamp-0123456789ab\"\npatches = [\"0001-a\"]\n",
    );
    sandbox.write("s/cover.txt", "Text.\n");
    sandbox.write("s/0001-a/message.txt", "lamp: change it\n\nText.\n");
    let mut patch = String::new();
    for (number, edit) in edits.iter().enumerate() {
        write!(
            patch,
            "[[edit]]\nname = \"e{number}\"\naction = \"insert\"\nfile = \"{file}\"\n{edit}\n"
        )
        .expect("a string");
    }
    sandbox.write("s/0001-a/patch.toml", patch);
    let program = sandbox.reroll([
        "regen", "--series", "s", "--tree", "tree.git", "--base", "main",
    ]);
    let ran = program
        .args([
            "--author",
            AUTHOR,
            "-s",
            "--mbox",
            "mbox",
            "--ref",
            "refs/heads/s",
        ])
        .run();
    (sandbox, ran)
}

/// The file as the series leaves it.
#[track_caller]
fn made(file: &str, text: &str, edit: &str) -> String {
    let (sandbox, ran) = regen(file, text, &[edit]);
    ran.expect_exit(0);
    let git = sandbox.git(["-C", "tree.git", "show", &format!("s:{file}")]);
    let found = git.run().expect_exit(0).stdout;
    found.to_str_lossy().into_owned()
}

/// The edit puts `new` in front of the line `before` (the first that is exactly so; empty: at the end of the file).
#[track_caller]
fn lands(file: &str, text: &str, edit: &str, new: &str, before: &str) {
    let at = if before.is_empty() {
        text.len()
    } else {
        text.find(&format!("\n{before}\n"))
            .expect("the line is there")
            + 1
    };
    let expected = format!("{}{new}{}", &text[..at], &text[at..]);
    assert_eq!(made(file, text, edit), expected, "{edit}");
}

/// The edit is refused with these words.
#[track_caller]
fn refused(file: &str, text: &str, edits: &[&str], words: &[&str]) {
    let (sandbox, ran) = regen(file, text, edits);
    ran.expect_exit(3).says(words);
    assert!(!sandbox.path("mbox").exists());
}

const TABLE: &str = "#include <linux/init.h>\n#include <linux/types.h>\n#include \"lamp.h\"\n\nstatic const int kinds[] = {\n#define KIND(id) [id] = id,\n#include <linux/kinds.h>\n#undef KIND\n};\n";
const TRACE: &str = "#include <linux/init.h>\n\n#include <trace/events/sched.h>\n\n#define CREATE_TRACE_POINTS\n#include <trace/events/lamp.h>\n\nint lamp;\n";
const COMMENT: &str = "/* Begins\n#include <linux/early.h>\n */\n#include <linux/init.h> /* goes\n * on */\n#include \"lamp.h\"\n\n/*\n#include <linux/lamp.h>\n */\nint lamp;\n";
const HEADER: &str = "/* SPDX */\n#ifndef LAMP_H\n#define LAMP_H\n\n#include <linux/init.h>\n#ifdef CONFIG_LAMP\n#include <linux/lamp.h>\n#endif\n\nint lamp;\n#endif\n";

#[test]
fn an_include_goes_to_the_others_at_the_head_of_the_file() {
    let include = |header: &str| format!("include = \"linux/{header}.h\"");
    let line = |header: &str| format!("#include <linux/{header}.h>\n");
    let lamp = "drivers/lamp.c";
    for (text, header, before) in [
        (TABLE, "sizes", "#include <linux/types.h>"),
        (TABLE, "zero", "#include \"lamp.h\""),
        (COMMENT, "sizes", "#include \"lamp.h\""),
        (HEADER, "sizes", "#ifdef CONFIG_LAMP"),
    ] {
        let file = if text == HEADER {
            "include/lamp.h"
        } else {
            lamp
        };
        lands(file, text, &include(header), &line(header), before);
    }
    // Nothing is put behind a macro that headers may look at.
    lands(
        lamp,
        TRACE,
        "include = \"trace/events/power.h\"",
        "#include <trace/events/power.h>\n",
        "#include <trace/events/sched.h>",
    );
    lands(
        lamp,
        &TRACE.replace("sched.h>\n\n", "sched.h>\n"),
        "include = \"trace/events/timer.h\"",
        "#include <trace/events/timer.h>\n",
        "#define CREATE_TRACE_POINTS",
    );
}

#[test]
fn an_include_without_a_place_is_refused() {
    let lamp = "drivers/lamp.c";
    let none = "has no `#include` at its head";
    for (text, header, words) in [
        (
            TABLE,
            "linux/kinds.h",
            "includes `<linux/kinds.h>` already, but not in every configuration, or not at its head",
        ),
        (HEADER, "linux/lamp.h", "includes `<linux/lamp.h>` already"),
        ("int lamp;\n#include <linux/init.h>\n", "linux/a.h", none),
        (
            "#define CREATE_TRACE_POINTS\n#include <trace/events/lamp.h>\n",
            "linux/a.h",
            none,
        ),
        (
            "#ifdef A\n#include <linux/init.h>\n#endif\nint lamp;\n",
            "linux/a.h",
            none,
        ),
        (
            "/*\n#include <linux/init.h>\n*/\nint lamp;\n",
            "linux/a.h",
            none,
        ),
    ] {
        let file = if text == HEADER {
            "include/lamp.h"
        } else {
            lamp
        };
        refused(file, text, &[&format!("include = \"{header}\"")], &[words]);
    }
}

#[test]
fn a_sorted_line_is_there_in_every_configuration() {
    let kbuild = "drivers/Kbuild";
    for (text, line, before) in [
        (
            "o-y += a.h\nifdef X\no-y += m.h\nendif\no-y += z.h\n",
            "o-y += n.h",
            "ifdef X",
        ),
        (
            "o-y += a.o \\\n\tb.o\no-y += z.o\n",
            "o-y += c.o",
            "o-y += z.o",
        ),
        ("o-y += a.o \\\n\tb.o\nx = 1\n", "o-y += c.o", "x = 1"),
        (
            "all:\n\tif true; then a; fi\no-y += a.o\no-y += z.o\n",
            "o-y += c.o",
            "o-y += z.o",
        ),
    ] {
        lands(
            kbuild,
            text,
            &format!("sorted = \"{line}\""),
            &format!("{line}\n"),
            before,
        );
    }
    let conditional = "has no line outside of a conditional that starts with `o-y +=`";
    for (text, words) in [
        ("x = 1\nifdef X\no-y += m.o\nendif\n", conditional),
        (
            "ifeq ($(A),b)\no-y += a.o\nelse\no-y += z.o\nendif\n",
            conditional,
        ),
        ("define a\no-y += m.o\nendef\n", conditional),
        (
            "ifdef X\no-y += n.o\nendif\n",
            "`drivers/Kbuild:2` has `o-y += n.o` already",
        ),
        ("a = \\\no-y += m.o\n", "has no line that starts with"),
    ] {
        refused(kbuild, text, &["sorted = \"o-y += n.o\""], &[words]);
    }
}

#[test]
fn a_sorted_line_of_c_is_code_in_every_configuration() {
    let text = "/* SPDX */\n#ifndef A_H\n#define A_H\n/*\nX(b)\n*/\nX (a)\n#ifdef B\nX (c)\n#endif\nX (d) /* goes\n on */\nX (e)\n#endif\n";
    let header = "include/a.h";
    lands(header, text, "sorted = \"X (b)\"", "X (b)\n", "#ifdef B");
    let text = "#ifndef A_H\n#define A_H\nX (d) /* goes\n on */\nint z;\n#endif\n";
    lands(header, text, "sorted = \"X (e)\"", "X (e)\n", "int z;");
    refused(
        header,
        "#ifdef A\nX (a)\n#endif\n",
        &["sorted = \"X (b)\""],
        &["outside of a conditional"],
    );
}

/// A function with this head, and what follows it.
fn function(head: &str, behind: &str) -> String {
    format!("#include <linux/init.h>\n\n{head}\n{{\n\ton(lamp);\n}}\n{behind}")
}

#[test]
fn a_parameter_stands_behind_the_last_one_whatever_is_behind_it() {
    for (head, changed) in [
        (
            "static void f(struct lamp *lamp)\n\t__releases(&lamp->lock)",
            "static void f(struct lamp *lamp, int more)\n\t__releases(&lamp->lock)",
        ),
        (
            "static void f(struct lamp *lamp) __must_hold(&lamp->lock) __acquires(x)",
            "static void f(struct lamp *lamp, int more) __must_hold(&lamp->lock) __acquires(x)",
        ),
        (
            "static __always_inline __must_check int f(struct lamp *lamp) __cold",
            "static __always_inline __must_check int f(struct lamp *lamp, int more) __cold",
        ),
        (
            "static __printf(1, 0) void f(struct lamp *lamp)",
            "static __printf(1, 0) void f(struct lamp *lamp, int more)",
        ),
        (
            "static void f(struct lamp *lamp) /* called (rarely) */",
            "static void f(struct lamp *lamp, int more) /* called (rarely) */",
        ),
        (
            "static int f(struct lamp *lamp, int (*fn)(struct lamp *, void *))",
            "static int f(struct lamp *lamp, int (*fn)(struct lamp *, void *), int more)",
        ),
        (
            "static int f(struct lamp *lamp, int v[static (4)])",
            "static int f(struct lamp *lamp, int v[static (4)], int more)",
        ),
    ] {
        let edit = "function = \"f\"\nplace = \"parameter\"\ntext = \"int more\"";
        let found = made("drivers/lamp.c", &function(head, ""), edit);
        assert_eq!(found, function(changed, ""));
    }
    let edit = "function = \"f\"\nplace = \"parameter\"\ntext = \"int more\"";
    for head in [
        "static __printf(2, 3) void f(struct lamp *lamp, const char *fmt, ...)",
        "static void f(void)",
    ] {
        refused(
            "drivers/lamp.c",
            &function(head, ""),
            &[edit],
            &["edit `e0` has no anchor: `f()`"],
        );
    }
}

const NEW: &str = "text = \"static void fresh(void)\\n{\\n}\"\ndefines = [\"fresh\"]";

#[test]
fn a_definition_behind_a_function_stands_behind_what_belongs_to_that() {
    let edit = format!("function = \"f\"\nplace = \"after\"\n{NEW}");
    let head = "int f(struct lamp *lamp)";
    for (behind, kept) in [
        ("", 0),
        ("EXPORT_SYMBOL_GPL(f);\n", 1),
        (
            "EXPORT_SYMBOL(f);\nALLOW_ERROR_INJECTION(f, ERRNO);\n\nint g;\n",
            2,
        ),
        ("\nmodule_init(f);\nMODULE_LICENSE(\"GPL\");\n", 2),
        ("MODULE_ALIAS(\"f\");\n", 0),
        ("int g(f);\n", 0),
        ("DEFINE(f)\n{\n}\n", 0),
    ] {
        let text = function(head, behind);
        let found = made("drivers/lamp.c", &text, &edit);
        let lines: Vec<_> = behind.split_inclusive('\n').collect();
        let expected = format!(
            "{}{}\nstatic void fresh(void)\n{{\n}}\n{}",
            function(head, ""),
            lines[..kept].concat(),
            lines[kept..].concat()
        );
        assert_eq!(found, expected, "{behind}");
    }
}

#[test]
fn nothing_is_put_where_it_never_runs() {
    let end = "function = \"f\"\nplace = \"end\"\ntext = \"lamp = NULL;\"";
    for jump in [
        "return;",
        "goto again;",
        "out: return;",
        "return; /* done */",
    ] {
        let text = format!(
            "#include <linux/init.h>\n\nvoid f(struct lamp *lamp)\n{{\nagain:\n\ton(lamp);\n\t{jump}\n}}\n"
        );
        refused(
            "drivers/lamp.c",
            &text,
            &[end],
            &["what stands at the end of `f()` would never run"],
        );
    }
    let text = "#include <linux/init.h>\n\nvoid f(struct lamp *lamp)\n{\n\tif (lamp)\n\t\treturn;\n\ton(lamp);\n}\n";
    lands("drivers/lamp.c", text, end, "\tlamp = NULL;\n", "}");
}

#[test]
fn a_definition_below_an_if_is_for_those_below_it() {
    let after = format!("function = \"f\"\nplace = \"after\"\n{NEW}");
    let use_in =
        |name: &str| format!("function = \"{name}\"\nplace = \"end\"\ntext = \"fresh();\"");
    let text = |condition: &str| {
        format!(
            "#include <linux/init.h>\n\n#ifdef CONFIG_LAMP\nvoid f(int a)\n{{\n\ta++;\n}}\n#endif\n\n{condition}void g(int a)\n{{\n\ta--;\n}}\n#endif\n"
        )
    };
    let same = text("#ifdef CONFIG_LAMP\n");
    let (_, ran) = regen("drivers/lamp.c", &same, &[&after, &use_in("g")]);
    ran.expect_exit(0);
    for other in [
        "#ifdef CONFIG_BULB\n",
        "#ifndef CONFIG_LAMP\n",
        "#ifdef CONFIG_LAMP\n#else\n",
        "#if 1\n",
    ] {
        refused(
            "drivers/lamp.c",
            &text(other),
            &[&after, &use_in("g")],
            &[
                "patch `a`: `fresh()` is used where it may not be there: edit `e0` defines it below `#ifdef CONFIG_LAMP` on this base",
            ],
        );
    }
}
