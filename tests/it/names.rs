//! Parameters and locals that a base calls otherwise: read as the recipe's where that is no guess, and written as the base's.
//!
//! Hides how a variable is renamed in a test: by words, in code only.

use crate::drift::{COMPOUND, Changed, PAGE, RANGE, function, unchanged, within};
use crate::recipe::result;
use crate::support::{Tiny, kernels, newest};

const LAMP: &str = "drivers/lamp.c";

/// A text with a variable renamed: no member, tag or macro of its name, and nothing in comments.
fn rename(text: &str, from: &str, to: &str) -> String {
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (bytes, mut renamed, mut at) = (text.as_bytes(), String::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            let end = rest.find("*/").expect("an end") + 2;
            renamed.push_str(&rest[..end]);
            at += end;
            continue;
        }
        let before =
            renamed.trim_end_matches("struct ").len() < renamed.len() || renamed.ends_with("->");
        let alone = !is_word(at.checked_sub(1).map(|at| &bytes[at]))
            && !is_word(bytes.get(at + from.len()));
        let called = bytes.get(at + from.len()) == Some(&b'(');
        if rest.starts_with(from) && alone && !called && !before {
            renamed.push_str(to);
            at += from.len();
        } else {
            renamed.push(rest.chars().next().expect("a character"));
            at += 1;
        }
    }
    renamed
}

fn renamed_in(text: &str, name: &str, pairs: &[(&str, &str)]) -> String {
    let old = function(text, name);
    let new = pairs
        .iter()
        .fold(old.to_owned(), |text, (from, to)| rename(&text, from, to));
    assert_ne!(old, new, "{pairs:?}");
    text.replacen(old, &new, 1)
}

#[test]
fn a_variable_with_another_name_is_carried() {
    for (name, pairs) in [
        (PAGE, &[("pfn", "p")][..]),
        (PAGE, &[("zone_idx", "zone")]),
        (PAGE, &[("pgmap", "map"), ("page", "it"), ("nid", "node")]),
        (COMPOUND, &[("head_pfn", "first"), ("nr_pages", "nr")]),
        (COMPOUND, &[("page", "tail")]),
        (COMPOUND, &[("pfn", "at")]),
        (
            COMPOUND,
            &[("end_pfn", "end"), ("order", "shift"), ("pgmap", "map")],
        ),
        (RANGE, &[("pfns_per_compound", "nr_per_compound")]),
        (RANGE, &[("page", "head")]),
        (
            RANGE,
            &[("start_pfn", "first_pfn"), ("end_pfn", "last_pfn")],
        ),
        (
            RANGE,
            &[("pgdat", "node"), ("nid", "number"), ("zone_idx", "kind")],
        ),
        (
            RANGE,
            &[("zone", "z"), ("start", "since"), ("altmap", "map")],
        ),
    ] {
        for kernel in kernels() {
            let changed = Changed::new(kernel, kernel.home(), |text| renamed_in(text, name, pairs));
            // All that the series writes into the function has the base's names; all else is as ever.
            let expected = renamed_in(&unchanged(kernel), name, pairs);
            assert_eq!(
                changed.result(),
                expected,
                "{}: {name} {pairs:?}",
                kernel.name
            );
        }
    }
}

#[test]
fn a_counter_with_another_name_in_its_for_is_carried() {
    let change = |text: &str| {
        let text = within(
            text,
            RANGE,
            "\tunsigned long pfn, end",
            "\tunsigned long end",
        );
        let text = within(
            &text,
            RANGE,
            "for (pfn = start",
            "for (unsigned long pfn = start",
        );
        renamed_in(&text, RANGE, &[("pfn", "at")])
    };
    for kernel in kernels() {
        let changed = Changed::new(kernel, kernel.home(), change);
        assert_eq!(
            changed.result(),
            change(&unchanged(kernel)),
            "{}",
            kernel.name
        );
    }
}

#[test]
fn a_name_that_would_mean_two_things_is_refused() {
    let Some(kernel) = newest() else { return };
    let refused = |change: &dyn Fn(&str) -> String, words: &[&str]| {
        Changed::new(kernel, kernel.home(), change).refused(words);
    };
    refused(
        &|text| renamed_in(text, RANGE, &[("pfns_per_compound", "stream")]),
        &[
            "edit `range-locals`: `stream` is what the base calls the recipe's `pfns_per_compound`, but an edit uses it",
            "use another name",
        ],
    );
    refused(
        &|text| {
            let data = "\tpage->zone_device_data = NULL;\n";
            let text = renamed_in(text, PAGE, &[("zone_idx", "zone")]);
            within(
                &text,
                PAGE,
                data,
                &format!("{data}\tpage->private = zone_idx;\n"),
            )
        },
        &[
            "`__init_zone_device_page()` has other parameters",
            "`zone` of `__init_zone_device_page()` is not read as `zone_idx`: that is something else here (mm/mm_init.c:",
        ],
    );
    refused(
        &|text| {
            let head = "struct page *head,\n\t\t\t\t       unsigned long head_pfn,";
            assert!(function(text, COMPOUND).contains(head));
            let new = "struct page *head_pfn,\n\t\t\t\t       unsigned long head,";
            within(text, COMPOUND, head, new)
        },
        &["`memmap_init_compound()` has other parameters"],
    );
    refused(
        &|text| {
            let data = "\tpage->zone_device_data = NULL;\n";
            let text = renamed_in(text, PAGE, &[("pfn", "p")]);
            within(
                &text,
                PAGE,
                data,
                &format!("{data}#ifdef X\n\tp();\n#endif\n"),
            )
        },
        &[
            "`p` of `__init_zone_device_page()` is not read as `pfn`: lines of the preprocessor may use it",
        ],
    );
    refused(
        &|text| renamed_in(text, COMPOUND, &[("page", "order"), ("order", "page")]),
        &["`memmap_init_compound()`"],
    );
}

#[test]
fn a_parameter_of_another_type_is_refused() {
    let Some(kernel) = newest() else { return };
    let changed = Changed::new(kernel, kernel.home(), |text| {
        within(text, PAGE, "int nid", "long nid")
    });
    changed.refused(&[
        "`nid` of `__init_zone_device_page()` has another type: expected `int `, found `long `",
    ]);
    let changed = Changed::new(kernel, kernel.home(), |text| {
        let text = renamed_in(text, PAGE, &[("nid", "node")]);
        within(&text, PAGE, "int node", "long node")
    });
    changed.refused(&[
        "has other parameters",
        "found (page, pfn, zone_idx, node, pgmap)",
    ]);
    let changed = Changed::new(kernel, kernel.home(), |text| {
        within(
            text,
            RANGE,
            "unsigned long start_pfn",
            "long unsigned int start_pfn",
        )
    });
    changed.result();
}

#[test]
fn what_is_shown_of_a_function_with_other_names_says_so() {
    let Some(kernel) = newest() else { return };
    let changed = Changed::new(kernel, kernel.home(), |text| {
        let data = "\tpage->zone_device_data = NULL;\n";
        let text = renamed_in(text, PAGE, &[("pfn", "p")]);
        within(&text, PAGE, data, &format!("{data}\tpage->index = p;\n"))
    });
    let ran = changed.refused(&[
        "page->index = pfn;",
        "in `__init_zone_device_page()` the base's `p` as `pfn` is shown",
    ]);
    assert!(
        ran.stderr.contains(&changed.place("page->index = p;")),
        "{}",
        ran.stderr
    );
}

/// The tiny recipe with the types of its parameters.
fn typed() -> Tiny {
    let tiny = Tiny::new();
    let series = "patches/tiny/series.toml";
    tiny.edit(
        series,
        "[\"lamp\", \"level\"]",
        "[\"struct lamp *lamp\", \"int level\"]",
    );
    tiny.edit(
        series,
        "[\"bus\", \"count\"]",
        "[\"struct bus *bus\", \"int count\"]",
    );
    tiny
}

#[test]
fn locals_are_told_by_type_and_value() {
    let base = |tiny: &Tiny| tiny.store.file(&tiny.rev, LAMP).to_string();
    let plain = result(&typed()).to_string();
    for (head, pairs) in [
        ("int lamp_scan(", &[("i", "n")][..]),
        (
            "int lamp_scan(",
            &[("lamp", "it"), ("bus", "b"), ("count", "nr")],
        ),
        (
            "static int lamp_start(",
            &[("error", "ret"), ("level", "how")],
        ),
    ] {
        let mut tiny = typed();
        let renamed = |text: &str| {
            let start = text.find(head).expect("a head");
            let end = start + text[start..].find("\n}\n").expect("an end");
            let old = &text[start..end];
            let new = pairs
                .iter()
                .fold(old.to_owned(), |text, (from, to)| rename(&text, from, to));
            text.replacen(old, &new, 1)
        };
        let text = renamed(&base(&tiny));
        tiny.commit(&[(LAMP, text.as_bytes())], "x\n");
        let found = result(&tiny).to_string();
        assert_eq!(found, renamed(&plain), "{pairs:?}");
    }
    // Without a type, the parameter could be anything.
    let mut tiny = Tiny::new();
    let text = base(&tiny).replace(
        "int lamp_scan(struct bus *bus, int count)",
        "int lamp_scan(struct bus *bus, int nr)",
    );
    let text = text
        .replace("i < count;", "i < nr;")
        .replace("return count;", "return nr;");
    tiny.commit(&[(LAMP, text.as_bytes())], "x\n");
    tiny.refused(3, &[
        "`lamp_scan()` has other parameters: expected (bus, count), found (bus, nr)",
        "`nr` of `lamp_scan()` is not read as `count`: the recipe does not say which type parameter 2 has",
    ]);
    // Two that could be either.
    let mut tiny = typed();
    tiny.edit(
        "patches/tiny/series.toml",
        "patterns = [\"int i;\"]",
        "patterns = [\"int i, j;\"]",
    );
    let text = base(&tiny)
        .replace("\tint i;\n", "\tint k, l;\n")
        .replace("i = 0; i < count; i++", "k = 0; k < count; k++");
    tiny.commit(
        &[(
            LAMP,
            text.replace("[i]", "[k]")
                .replace(", i);", ", k);")
                .as_bytes(),
        )],
        "x\n",
    );
    tiny.refused(
        3,
        &[
            "no part of `lamp_scan()` claims this statement",
            "int k, l;",
        ],
    );
}
