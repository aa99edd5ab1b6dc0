//! The same code in another form: found, claimed and carried wherever C says that it is the same; and told as it is where it is not.
//!
//! Hides nothing; the bases are those of `drift`, and the tiny recipe's.

use bstr::ByteSlice;

use crate::drift::{
    COMPOUND, Changed, PAGE, RANGE, carried, differences, function, unchanged, within,
};
use crate::recipe::{result, with_edits};
use crate::support::{Tiny, kernels, newest};

const LAMP: &str = "drivers/lamp.c";

// ------------------------------------------------------------------------------------------------ layout

#[test]
fn a_brace_at_the_end_of_the_parameters_is_carried() {
    for name in [PAGE, RANGE] {
        carried(|text| within(text, name, ")\n{\n", ") {\n"));
    }
    for kernel in kernels() {
        let change = |text: &str| within(text, COMPOUND, ")\n{\n", ") {\n");
        let changed = Changed::new(kernel, kernel.home(), change);
        assert_eq!(changed.result(), change(&unchanged(kernel)));
    }
    carried(|text| within(text, RANGE, ")\n{\n", ") /* says the test */\n{\n"));
}

#[test]
fn a_brace_in_column_0_that_is_no_code_is_carried() {
    let reserved = "\t__SetPageReserved(page);\n";
    for comment in ["\t/*\n}\n{\n\t */\n", "\t/* says\n} the test */\n"] {
        carried(|text| within(text, PAGE, reserved, &format!("{reserved}\n{comment}")));
    }
    for inside in ["#if 0\n}\n#endif\n", "/*\n}\nint f(void)\n{\n*/\n"] {
        carried(|text| {
            let new = format!("static int says_the_test(void)\n{{\n{inside}\treturn 0;\n}}\n\n");
            let page = function(text, PAGE);
            text.replacen(page, &format!("{new}{page}"), 1)
        });
    }
}

#[test]
fn a_copy_below_an_if_0_is_no_second_definition() {
    carried(|text| {
        let page = function(text, PAGE);
        text.replacen(page, &format!("#if 0\n{page}#endif\n\n{page}"), 1)
    });
}

// ------------------------------------------------------------------------------------ the same, written otherwise

#[test]
fn braces_around_a_single_statement_are_carried() {
    carried(|text| {
        let (from, to) = (
            "== 1)\n\t\t\tcontinue;\n",
            "== 1) {\n\t\t\tcontinue;\n\t\t}\n",
        );
        let text = within(text, RANGE, from, to);
        let (from, to) = (
            "ZONE_DEVICE))\n\t\treturn;\n",
            "ZONE_DEVICE)) {\n\t\treturn;\n\t}\n",
        );
        within(&text, RANGE, from, to)
    });
    let count = ")\n\t\tset_page_count(page, 0);\n";
    let has_if = |text: &str| function(text, PAGE).contains(count);
    let with_braces = |text: &str| {
        within(
            text,
            PAGE,
            count,
            ") {\n\t\tset_page_count(page, 0);\n\t}\n",
        )
    };
    for kernel in kernels() {
        let before = kernel.file(kernel.home()).to_string();
        if has_if(&before) {
            let changed = Changed::new(kernel, kernel.home(), with_braces);
            let expected = differences(&before, &with_braces(&before));
            let found = differences(&unchanged(kernel), &changed.result());
            assert_eq!(found, expected, "{}", kernel.name);
        }
    }
}

#[test]
fn a_step_on_the_other_side_is_carried() {
    for kernel in kernels() {
        // The loop is written anew by the series, in the recipe's words.
        let changed = Changed::new(kernel, kernel.home(), |text| {
            within(text, COMPOUND, "pfn++", "++pfn")
        });
        assert_eq!(changed.result(), unchanged(kernel), "{}", kernel.name);
    }
}

#[test]
fn the_order_of_the_words_of_a_type_is_carried() {
    for name in [COMPOUND, RANGE] {
        carried(|text| {
            within(
                text,
                name,
                "\tunsigned long pfn,",
                "\tlong unsigned int pfn,",
            )
        });
    }
    carried(|text| within(text, RANGE, "\tunsigned int pfns", "\tunsigned pfns"));
}

#[test]
fn a_declaration_that_is_split_or_in_another_order_is_carried() {
    for (name, start) in [(COMPOUND, "head_pfn"), (RANGE, "start_pfn")] {
        let whole = format!("\tunsigned long pfn, end_pfn = {start} + nr_pages;\n");
        for pieces in [
            format!("\tunsigned long pfn;\n\tunsigned long end_pfn = {start} + nr_pages;\n"),
            format!("\tunsigned long end_pfn = {start} + nr_pages;\n\tunsigned long pfn;\n"),
            format!("\tunsigned long end_pfn = {start} + nr_pages, pfn;\n"),
        ] {
            carried(|text| within(text, name, &whole, &pieces));
        }
    }
    carried(|text| {
        let text = within(text, RANGE, "\tunsigned long start = jiffies;\n", "");
        let zone = "zone_idx = zone_idx(zone);\n";
        within(
            &text,
            RANGE,
            zone,
            &zone.replace(";\n", ", start = jiffies;\n"),
        )
    });
}

#[test]
fn a_counter_that_its_for_declares_is_carried() {
    carried(|text| {
        let text = within(
            text,
            RANGE,
            "\tunsigned long pfn, end",
            "\tunsigned long end",
        );
        within(
            &text,
            RANGE,
            "for (pfn = start",
            "for (unsigned long pfn = start",
        )
    });
}

#[test]
fn a_declaration_that_is_not_the_recipes_is_told_as_it_is() {
    let Some(kernel) = newest() else { return };
    let pfn = "\tunsigned long pfn, end_pfn = start_pfn + nr_pages;\n";
    let end = "\tunsigned long end_pfn = start_pfn + nr_pages;\n";
    let refused = |declaration: &str, loops: &str, words: &[&str]| {
        let changed = Changed::new(kernel, kernel.home(), |text| {
            let text = within(text, RANGE, pfn, declaration);
            within(
                &text,
                RANGE,
                "for (pfn = start",
                &format!("for ({loops}pfn = start"),
            )
        });
        changed.refused(words);
    };
    let part = "part `locals` of `memmap_init_zone_device()`: ";
    refused(
        end,
        "",
        &[part, "is declared in pieces, and `pfn` not at all"],
    );
    refused(pfn, "unsigned long ", &[part, "and `pfn` more than once"]);
    refused(
        end,
        "unsigned int ",
        &["the `for` declares `unsigned pfn`, and no part of `memmap_init_zone_device()` does so"],
    );
}

// ------------------------------------------------------------------------------------- captures and probes

#[test]
fn a_capture_is_what_the_recipe_allows() {
    for (at, is_refused) in [
        ("1", false),
        ("2", false),
        ("1 /* one */", false),
        ("7", true),
        ("0", true),
        ("(nr_pages - 1)", true),
    ] {
        let part = "if (pfn == head_pfn + ";
        for kernel in kernels() {
            let text = kernel.file(kernel.home()).to_string();
            let Some(start) = function(&text, COMPOUND)
                .find(part)
                .map(|at| at + part.len())
            else {
                continue;
            };
            let old = function(&text, COMPOUND)[start..]
                .split(')')
                .next()
                .expect("a number");
            if old == at {
                continue;
            }
            let change = |text: &str| {
                within(
                    text,
                    COMPOUND,
                    &format!("{part}{old})"),
                    &format!("{part}{at})"),
                )
            };
            let changed = Changed::new(kernel, kernel.home(), change);
            if is_refused {
                let why = format!(
                    "its `NTH` is `{at}` and not `1` or `2` at {}:",
                    kernel.home()
                );
                changed.refused(&["`head_in_loop` would claim it, but", &why]);
            } else {
                let expected = differences(&text, &change(&text));
                assert_eq!(differences(&unchanged(kernel), &changed.result()), expected);
            }
        }
    }
    let Some(kernel) = newest() else { return };
    let data = "\tpage->zone_device_data = NULL;\n";
    for store in ["page->flags = 0;", "page->virtual = NULL;"] {
        let new = format!("{data}\t{store}\n");
        let changed = Changed::new(kernel, kernel.home(), |text| within(text, PAGE, data, &new));
        changed.refused(&["`stores` would claim it, but its `FIELD` is `"]);
    }
}

#[test]
fn a_report_at_another_level_is_carried() {
    for call in ["pr_info(", "pr_notice("] {
        // One kernel says `pr_info()` itself.
        let said = |text: &str| {
            if function(text, RANGE).contains("pr_debug(") {
                "pr_debug("
            } else {
                "pr_info("
            }
        };
        let other = |text: &str| {
            if said(text) == call {
                "pr_debug("
            } else {
                call
            }
        };
        carried(|text| within(text, RANGE, said(text), other(text)));
    }
}

#[test]
fn a_line_that_is_probed_may_have_other_blanks() {
    let (path, line) = (
        "include/linux/page_ref.h",
        "#define page_ref_tracepoint_active(t) tracepoint_enabled(t)",
    );
    for kernel in kernels() {
        for (from, to) in [
            (") t", ")\tt"),
            ("#define", "# define"),
            ("enabled(t)", "enabled( t ) /* says the test */"),
            (") t", ") \\\n\tt"),
        ] {
            let new = line.replace(from, to);
            let changed = Changed::new(kernel, path, |text| text.replacen(line, &new, 1));
            assert_eq!(changed.result(), unchanged(kernel), "{to}");
        }
        let new = "#define page_ref_tracepoint_active(t) tracepoint_enabled(t, 0)";
        let changed = Changed::new(kernel, path, |text| text.replacen(line, new, 1));
        let text = kernel.file(path).to_string();
        let number = text[..text.find(line).expect("a line")]
            .matches('\n')
            .count()
            + 1;
        changed.refused(&[
            "the fact `traced_refcount` is false",
            &format!("expected: {line}"),
            &format!("the nearest line of it is\n  {path}:{number}: {new}"),
        ]);
    }
}

// ------------------------------------------------------------------------------------------------- line ends

#[test]
fn a_file_with_carriage_returns_is_told_in_a_sentence() {
    for kernel in kernels() {
        for path in [kernel.home(), "include/asm-generic/Kbuild"] {
            let changed = Changed::new(kernel, path, |text| text.replace('\n', "\r\n"));
            let sentence = format!(
                "error: `{path}` has lines that end in CRLF, and those of a series end in LF\n"
            );
            let ran = changed.refused(&[&sentence]);
            let said = ran
                .stderr
                .lines()
                .filter(|line| !line.starts_with("series: "));
            assert_eq!(said.count(), 2, "{}", ran.stderr);
        }
    }
    // A stray one is carried.
    carried(|text| format!("/* says the test */\r\n{text}"));
}

#[test]
fn latin_1_in_a_comment_that_moves_is_carried() {
    for kernel in kernels() {
        let text = kernel.file(kernel.home());
        let words = b"when allocating the page.\n";
        let at = text.find(&words[..]).expect("a comment");
        let put = |file: &[u8], at: usize| [&file[..at], b"caf\xe9 ", &file[at..]].concat();
        let changed = Changed::with(kernel, &[(kernel.home(), &put(&text, at))]);
        changed.regen().run().expect_exit(0);
        let result = changed.store.file("refs/heads/series", kernel.home());
        let before = unchanged(kernel);
        let at = before.as_bytes().find(&words[..]).expect("a comment");
        assert_eq!(result, put(before.as_bytes(), at), "{}", kernel.name);
    }
}

// ---------------------------------------------------------------------------------- edits where braces are missing

/// The body of a function of the tiny tree, changed, and after an edit of one of its statements.
fn edited(body: &str, edit: &str) -> String {
    let edit = format!(
        "[[edit]]\nname = \"a\"\nfile = \"{LAMP}\"\nfunction = \"lamp_set\"\nstatement = \"one();\"\n{edit}\n"
    );
    // Who calls the function is told of what moved out of it.
    let caller = "[[edit]]\nname = \"b\"\nfile = \"drivers/lamp.c\"\naction = \"replace\"\nfunction = \"lamp_start\"\nstatement = \"lamp_set(lamp, level);\"\ntext = \"lamp_set(lamp, 0);\"\n";
    let mut tiny = with_edits(&[&edit, caller]);
    tiny.change(LAMP, "\tlamp->level = level;\n", body);
    let declared = "#define LEVELS 8\n\nextern int a, b;\nvoid two(int, ...);\nvoid three(void);\n";
    tiny.change(LAMP, "#define LEVELS 8\n", declared);
    let text = result(&tiny).to_string();
    let start = text.find("int level)\n{\n").expect("a body") + "int level)\n{\n".len();
    let end = text[start..].find("\n}\n").expect("an end");
    text[start..=start + end].to_owned()
}

#[test]
fn what_makes_more_or_less_of_a_statement_without_braces_puts_them_there() {
    let after = "action = \"insert\"\nplace = \"after\"\ntext = \"two();\"";
    let before = "action = \"insert\"\nplace = \"before\"\ntext = \"two();\"";
    let both = "action = \"replace\"\ntext = \"two();\\nthree();\"";
    let other = "action = \"replace\"\ntext = \"two(a,\\n    b);\"";
    let nested = "action = \"replace\"\ntext = \"if (b)\\n\\ttwo();\"";
    let moved = "action = \"extract\"\ntext = \"static void x(void)\\n{\\n\\t@{ it }@\\n}\"\ncall = \"\"\ndefines = [\"x\"]\ninputs = { it = \"match.text\" }";
    let bare = "\tif (a)\n\t\tone();\n\tend();\n";
    for (body, edit, expected) in [
        (
            bare,
            after,
            "\tif (a) {\n\t\tone();\n\t\ttwo();\n\t}\n\tend();\n",
        ),
        (
            bare,
            before,
            "\tif (a) {\n\t\ttwo();\n\t\tone();\n\t}\n\tend();\n",
        ),
        (
            bare,
            both,
            "\tif (a) {\n\t\ttwo();\n\t\tthree();\n\t}\n\tend();\n",
        ),
        (bare, other, "\tif (a)\n\t\ttwo(a,\n\t\t    b);\n\tend();\n"),
        (
            bare,
            nested,
            "\tif (a) {\n\t\tif (b)\n\t\t\ttwo();\n\t}\n\tend();\n",
        ),
        (bare, moved, "\tif (a) {\n\t}\n\tend();\n"),
        (
            "\tif (a)\n\t\tone();\n\telse\n\t\tend();\n",
            both,
            "\tif (a) {\n\t\ttwo();\n\t\tthree();\n\t}\n\telse\n\t\tend();\n",
        ),
        (
            "\tif (a)\n\t\tend();\n\telse\n\t\tone();\n\tend();\n",
            moved,
            "\tif (a)\n\t\tend();\n\telse {\n\t}\n\tend();\n",
        ),
        (
            "\twhile (a)\n\t\t/* why */\n\t\tone(); /* oh */\n",
            after,
            "\twhile (a) {\n\t\t/* why */\n\t\tone(); /* oh */\n\t\ttwo();\n\t}\n",
        ),
        (
            "\tone(); /* a\n\t\tb */ // c\n\tend();\n",
            after,
            "\tone(); /* a\n\t\tb */ // c\n\ttwo();\n\tend();\n",
        ),
        (
            "\tdo\n\t\tone();\n\twhile (a);\n",
            before,
            "\tdo {\n\t\ttwo();\n\t\tone();\n\t}\n\twhile (a);\n",
        ),
        (
            "\tfor (;;)\n\t\tif (a &&\n\t\t    b)\n\t\t\tone();\n",
            after,
            "\tfor (;;)\n\t\tif (a &&\n\t\t    b) {\n\t\t\tone();\n\t\t\ttwo();\n\t\t}\n",
        ),
        ("out:\n\tone();\n", after, "out:\n\tone();\n\ttwo();\n"),
        ("out:\n\tone();\n", moved, "out: {\n\t}\n"),
        (
            "\tif (a) {\n\t\tone();\n\t}\n",
            after,
            "\tif (a) {\n\t\tone();\n\t\ttwo();\n\t}\n",
        ),
        ("\tone(); end();\n", moved, "\t end();\n"),
    ] {
        assert_eq!(edited(body, edit), expected, "{body}{edit}");
    }
}

#[test]
fn what_stands_on_the_line_of_an_anchor_is_left_or_the_edit_is_refused() {
    let edit = "[[edit]]\nname = \"a\"\nfile = \"drivers/lamp.c\"\nfunction = \"lamp_set\"\n";
    let refused = |edit_keys: &str, from: &str, to: &str, words: &str| {
        let mut tiny = with_edits(&[&format!("{edit}{edit_keys}\n")]);
        tiny.change(LAMP, from, to);
        tiny.refused(3, &[words, "patch.toml:"]);
    };
    let after = "statement = \"one();\"\naction = \"insert\"\nplace = \"after\"\ntext = \"two();\"";
    let level = "\tlamp->level = level;\n";
    refused(
        after,
        level,
        "\tone(); end();\n",
        "there is something else behind the anchor",
    );
    refused(
        after,
        level,
        "\tend(); one();\n",
        "does not stand at the start of a line",
    );
    refused(
        "action = \"insert\"\nplace = \"end\"\ntext = \"two();\"",
        "int level)\n{\n\tlamp->level = level;\n}\n",
        "int level) { lamp->level = level; }\n",
        "`lamp_set()` does not end on a line of its own",
    );
}

#[test]
fn a_new_parameter_stands_behind_the_last_one_whatever_stands_behind_that() {
    let edit = "[[edit]]\nname = \"a\"\nfile = \"drivers/lamp.c\"\naction = \"insert\"\nplace = \"parameter\"\nfunction = \"lamp_set\"\ntext = \"int new\"\n";
    let caller = "[[edit]]\nname = \"b\"\nfile = \"drivers/lamp.c\"\naction = \"replace\"\nfunction = \"lamp_start\"\nstatement = \"lamp_set(lamp, level);\"\ntext = \"lamp_set(lamp, level, 0);\"\n";
    let head = "static void lamp_set(struct lamp *lamp, int level)\n{";
    for (to, expected) in [
        (" /* (caf\u{e9}) */\n{", ", int new) /* (caf\u{e9}) */\n{"),
        (" {", ", int new) {"),
        (" __releases(a)\n{", ", int new) __releases(a)\n{"),
    ] {
        let to = &head.replace("\n{", to);
        let from = head;
        let mut tiny = with_edits(&[edit, caller]);
        tiny.change(LAMP, from, to);
        let text = result(&tiny);
        assert!(text.contains_str(expected), "{to}\n{text}");
    }
}

#[test]
fn a_declaration_in_pieces_is_one_place_where_nothing_stands_in_between() {
    let edit = |place: &str| {
        format!(
            "[[edit]]\nname = \"a\"\nfile = \"drivers/lamp.c\"\nfunction = \"lamp_set\"\nstatement = \"int a, b = 1;\"\n{place}\n"
        )
    };
    let after = edit("action = \"insert\"\nplace = \"after\"\ntext = \"int c;\"");
    let anew = edit("action = \"replace\"\ntext = \"int d;\"");
    let level = "\tlamp->level = level;\n";
    let with = |edit: &str, declarations: &str| {
        let mut tiny = with_edits(&[edit]);
        tiny.change(LAMP, level, &format!("{declarations}{level}"));
        tiny
    };
    let near = "\tint b = 1;\n\tint a;\n";
    let apart = "\tint b = 1;\n\tint x;\n\tint a;\n";
    assert!(
        result(&with(&after, near)).contains_str("{\n\tint b = 1;\n\tint a;\n\tint c;\n\tlamp")
    );
    assert!(result(&with(&anew, near)).contains_str("{\n\tint d;\n\tlamp"));
    assert!(result(&with(&after, apart)).contains_str("\tint x;\n\tint a;\n\tint c;\n\tlamp"));
    let tiny = with(&anew, apart);
    tiny.refused(
        3,
        &[
            "the declaration is there in pieces, with something in between",
            "lamp.c:12",
        ],
    );
}

// ---------------------------------------------------------------------------------------------- what is told

#[test]
fn a_function_that_is_there_in_another_form_is_not_said_to_be_missing() {
    let set = "static void lamp_set(struct lamp *lamp, int level)\n{\n\tlamp->level = level;\n}\n";
    let probe = "there is a function that sets a level\"\nprobe.function = { files = [\"drivers/dimmer.c\", \"drivers/lamp.c\"], name = \"lamp_set\" }";
    let asks = "there is a function that sets a level\"\nprobe.statement = { file = \"drivers/lamp.c\", function = \"lamp_set\", pattern = \"lamp->level = level;\" }";
    for (to, words) in [
        (
            "#define lamp_set(lamp, x) ((lamp)->level = (x))\n",
            "`drivers/lamp.c:9` defines `lamp_set` as a macro, not as a function",
        ),
        (
            "void lamp_set(struct lamp *lamp, int level);\n",
            "`drivers/lamp.c:9` declares `lamp_set()`, but `drivers/lamp.c` does not define it",
        ),
        (
            "static void lamp_set(struct lamp *lamp\n#ifdef X\n\t, int level\n#endif\n\t)\n{\n}\n",
            "`drivers/lamp.c:9` has `lamp_set()`, but not as one definition that can be read",
        ),
        (
            "",
            "` mentions `lamp_set`, but `drivers/lamp.c` does not define it",
        ),
    ] {
        let mut tiny = Tiny::new();
        tiny.change(LAMP, set, to);
        let ran = tiny.refused(3, &[words, "edit `comment` has no anchor"]);
        assert!(
            !ran.stderr.contains("nearest in the base"),
            "{}",
            ran.stderr
        );
        tiny.edit("patches/tiny/series.toml", probe, asks);
        tiny.refused(3, &[words, "the fact `can_set` needs one"]);
    }
    for (from, to, words) in [
        (
            "static int lamp_start(struct lamp *lamp, int level)\n{",
            "static int lamp_start(struct lamp *lamp\n#if X\n\t, int level\n#endif\n)\n{",
            "`drivers/lamp.c:17` has `lamp_start()`, but not as one definition that can be read",
        ),
        (
            "static int lamp_start(struct lamp *lamp, int level)\n{\n\tint error;\n",
            "static int lamp_start(struct lamp *lamp, int level)\n{\n\tint error;\n}\nint f(void)\n{\n",
            "part `power` of `lamp_start()`: expected one",
        ),
    ] {
        let mut tiny = Tiny::new();
        tiny.change(LAMP, from, to);
        tiny.refused(3, &[words]);
    }
}

#[test]
fn a_place_that_is_not_there_is_told_as_it_is() {
    let edit = |keys: &str| format!("[[edit]]\nname = \"a\"\naction = \"insert\"\n{keys}\n");
    let refused = |keys: &str, path: &str, from: &str, to: &str, words: &[&str]| {
        let mut tiny = with_edits(&[&edit(keys)]);
        tiny.change(path, from, to);
        tiny.refused(3, words);
    };
    let kbuild = "drivers/Kbuild";
    let sorted = "file = \"drivers/Kbuild\"\nsorted = \"obj-y += lamp_table.o\"";
    refused(
        sorted,
        kbuild,
        "obj-y += bus.o\nobj-y += lamp.o\nobj-y += switch.o\n",
        "",
        &["`drivers/Kbuild` has no line that starts with `obj-y +=`"],
    );
    refused(
        sorted,
        kbuild,
        "obj-y += lamp.o\n",
        "obj-y += zebra.o\nobj-y += lamp.o\n",
        &[
            "leave no one place for `obj-y += lamp_table.o`",
            "drivers/Kbuild:2: obj-y += ",
            "(out of order)",
        ],
    );
    let include = "file = \"drivers/lamp.c\"\ninclude = \"linux/delay.h\"";
    let headers = "#include <linux/bus.h>\n#include <linux/lamp.h>\n#include <linux/wires.h>\n";
    refused(
        include,
        LAMP,
        headers,
        &format!("#ifdef X\n{headers}#endif\n/*\n#include <linux/no.h>\n*/\n"),
        &["`drivers/lamp.c` has no `#include` at its head that is outside of an `#if`"],
    );
    refused(
        "file = \"drivers/lamp.c\"\nplace = \"parameter\"\nfunction = \"lamp_set\"\ntext = \"int x\"",
        LAMP,
        "static void lamp_set(struct lamp *lamp, int level)",
        "static void lamp_set(struct lamp *lamp, int level, ...)",
        &[
            "`lamp_set()` takes any number of arguments behind its last parameter",
            "drivers/lamp.c:9: ",
        ],
    );
    refused(
        "file = \"drivers/lamp.c\"\nplace = \"after\"\nfunction = \"lamp_set\"\ntext = \"int lamp_of(void)\\n{\\n\\treturn 0;\\n}\"\ndefines = [\"lamp_of\"]\nwhen = { has_dimmer = false }",
        LAMP,
        "int lamp_scan(struct bus",
        "static void lamp_of(void)\n{\n}\n\nint lamp_scan(struct bus",
        &[
            "edit `a` defines `lamp_of()`, which `drivers/lamp.c` has already",
            "drivers/lamp.c:40: static void lamp_of(void)",
        ],
    );
    // An include with a comment behind it is there.
    let mut tiny = with_edits(&[
        &edit("file = \"drivers/lamp.c\"\ninclude = \"linux/lamp.h\""),
        &edit(include)[..].replace("\"a\"", "\"b\""),
    ]);
    tiny.change(
        LAMP,
        "<linux/lamp.h>\n",
        "<linux/lamp.h> /* struct lamp */\n",
    );
    assert_eq!(result(&tiny).find_iter("linux/lamp.h").count(), 1);
    let mut tiny = Tiny::new();
    tiny.change(
        LAMP,
        "\tlamp->on = true;\n",
        "\tlamp->on = true;\n\tlamp on off;\n",
    );
    tiny.refused(
        3,
        &[
            "claims this statement",
            "the parser makes no sense of it at drivers/lamp.c:35",
        ],
    );
}
