//! Real kernels, changed by the test as upstream might change them: carried into the result, or refused with the place.
//!
//! Hides how a changed base is made, and how two results are told apart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use bstr::ByteSlice;

use crate::support::{AUTHOR, Kernel, Program, Ran, Sandbox, Store, copy, kernels, newest};

pub(crate) const PAGE: &str = "__init_zone_device_page";
pub(crate) const COMPOUND: &str = "memmap_init_compound";
pub(crate) const RANGE: &str = "memmap_init_zone_device";

/// A kernel with a change on top.
pub(crate) struct Changed {
    pub(crate) sandbox: Sandbox,
    pub(crate) store: Store,
    pub(crate) rev: String,
    /// The file that has the functions.
    pub(crate) file: &'static str,
}

impl Changed {
    /// `path` as `change` leaves it; it must change something.
    pub(crate) fn new(kernel: &Kernel, path: &str, change: impl Fn(&str) -> String) -> Self {
        let before = kernel.file(path).to_str().expect("UTF-8").to_owned();
        let after = change(&before);
        assert_ne!(before, after, "{}: the test changes {path}", kernel.name);
        Self::with(kernel, &[(path, after.as_bytes())])
    }

    /// These files have this content.
    pub(crate) fn with(kernel: &Kernel, files: &[(&str, &[u8])]) -> Self {
        let sandbox = Sandbox::new();
        let store = Store::beside(&sandbox, "store.git", kernel);
        let tree_id = store.tree_with(kernel.tree_id, files);
        let rev = store
            .commit(tree_id, None, "changed by a test\n")
            .to_string();
        Self {
            sandbox,
            store,
            rev,
            file: kernel.home(),
        }
    }

    pub(crate) fn regen(&self) -> Program {
        let program = self
            .sandbox
            .reroll(["regen", "--author", AUTHOR, "-s", "-o", "out"]);
        let program = program.args(["--ref", "refs/heads/series", "--base", &self.rev, "--tree"]);
        program.arg(&self.store.path)
    }

    /// The file after all patches.
    #[track_caller]
    pub(crate) fn result(&self) -> String {
        self.regen().run().expect_exit(0);
        assert_eq!(self.sandbox.files("out").len(), 5);
        self.store
            .file("refs/heads/series", self.file)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }

    /// The file after all patches, on a base that is unproven.
    #[track_caller]
    pub(crate) fn unproven(&self) -> String {
        let ran = self.regen().arg("--unproven").run().expect_exit(0);
        assert!(ran.stderr.contains("unproven"), "{}", ran.stderr);
        let file = self.store.file("refs/heads/series", self.file);
        file.to_str().expect("UTF-8").to_owned()
    }

    /// Refused with exit 3; nothing is written. `places` are in the message.
    #[track_caller]
    pub(crate) fn refused(&self, places: &[&str]) -> Ran {
        let before = self.sandbox.listing("store.git");
        let ran = self.regen().run().refused(3).says(places);
        assert_eq!(
            self.sandbox.listing("store.git"),
            before,
            "no object, no ref"
        );
        assert!(
            !self.sandbox.path("out").exists(),
            "nothing is half-written"
        );
        // What `regen` refuses, `explain` and a dry run refuse as well.
        for command in [
            &["explain"][..],
            &["regen", "--dry-run", "--author", AUTHOR, "-s"],
        ] {
            let program = self
                .sandbox
                .reroll(command)
                .args(["--base", &self.rev, "--tree"]);
            let again = program.arg(&self.store.path).run().refused(3);
            assert_eq!(again.stderr, ran.stderr);
        }
        ran
    }

    /// `file:line` of the one line of the changed file that has `text`.
    #[track_caller]
    pub(crate) fn place(&self, text: &str) -> String {
        let file = self.store.file(&self.rev, self.file);
        let mut found = file
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains_str(text));
        let (at, _) = found.next().expect("the text is there");
        assert!(found.next().is_none(), "`{text}` is there once");
        format!("{}:{}", self.file, at + 1)
    }

    /// The same for a line of one function.
    pub(crate) fn place_in(&self, name: &str, text: &str) -> String {
        let file = self.store.file(&self.rev, self.file);
        let file = file.to_str().expect("UTF-8");
        let start = file.find(function(file, name)).expect("it is there");
        let at = start + file[start..].find(text).expect("the text is there");
        format!("{}:{}", self.file, file[..at].matches('\n').count() + 1)
    }
}

/// What the series makes of a kernel as it is; made once.
pub(crate) fn unchanged(kernel: &Kernel) -> String {
    static MADE: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let known = || MADE.lock().expect("the lock").get(&kernel.name).cloned();
    known().unwrap_or_else(|| {
        let result = Changed::with(kernel, &[]).result();
        let mut made = MADE.lock().expect("the lock");
        made.insert(kernel.name.clone(), result.clone());
        result
    })
}

/// The definition of a function, from its first line to its closing brace.
#[track_caller]
pub(crate) fn function<'a>(text: &'a str, name: &str) -> &'a str {
    let call = format!(" {name}(");
    let is_head = |line: &str| line.contains(&call) && !line.starts_with(['\t', ' ', '*', '/']);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = &text[at..];
        let end = rest.find("\n}\n");
        if is_head(line) && rest.find('{') < rest.find(';') {
            return &rest[..end.expect("an end") + 3];
        }
        at += line.len();
    }
    panic!("no {name}()")
}

/// Changes one function only, in which `from` must be once.
#[track_caller]
pub(crate) fn within(text: &str, name: &str, from: &str, to: &str) -> String {
    let old = function(text, name);
    assert_eq!(old.matches(from).count(), 1, "`{from}` in {old}");
    text.replacen(old, &old.replacen(from, to, 1), 1)
}

/// Lines in `after` and not in `before`, and the other way round; how often each comes counts, where it is does not.
pub(crate) fn differences(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in after.lines() {
        *counts.entry(line.trim()).or_default() += 1;
    }
    for line in before.lines() {
        *counts.entry(line.trim()).or_default() -= 1;
    }
    let pick = |sign: i64| {
        let some = counts
            .iter()
            .filter(move |(line, count)| **count * sign > 0 && !line.is_empty());
        some.flat_map(|(line, count)| {
            vec![(*line).to_owned(); usize::try_from(count.abs()).expect("small")]
        })
        .collect()
    };
    (pick(1), pick(-1))
}

/// On every kernel: the change is in the result, word for word, and it is all that is different.
#[track_caller]
pub(crate) fn carried(change: impl Fn(&str) -> String) {
    for kernel in kernels() {
        let before = kernel.file(kernel.home());
        let before = before.to_str().expect("UTF-8");
        let changed = Changed::new(kernel, kernel.home(), &change);
        let expected = differences(before, &change(before));
        let found = differences(&unchanged(kernel), &changed.result());
        assert_eq!(found, expected, "{}", kernel.name);
    }
}

/// On every kernel: refused, naming the function, the changed line, and the recipe's.
#[track_caller]
pub(crate) fn refused_at(line: &str, words: &[&str], change: impl Fn(&str) -> String) {
    for kernel in kernels() {
        let changed = Changed::new(kernel, kernel.home(), &change);
        let place = changed.place(line);
        let ran = changed.refused(words);
        assert!(
            ran.stderr.contains(&place),
            "{}: {place}\n{}",
            kernel.name,
            ran.stderr
        );
        assert!(
            ran.stderr.contains(".toml:"),
            "{}: the recipe's line\n{}",
            kernel.name,
            ran.stderr
        );
    }
}

// ------------------------------------------------------------------------------------------------ carried

#[test]
fn a_new_statement_that_stores_a_constant_into_the_page_is_carried() {
    carried(|text| {
        let data = "\tpage->zone_device_data = NULL;\n";
        let new =
            "\n\t/* Says the test. */\n\tpage->private = 0;\n\tset_page_private(page, 1UL << 3);\n";
        within(text, PAGE, data, &format!("{data}{new}"))
    });
}

#[test]
fn a_new_case_of_the_reference_count_is_carried() {
    carried(|text| {
        if function(text, PAGE).contains("switch (pgmap->type)") {
            let case = "\tcase MEMORY_DEVICE_PRIVATE:\n";
            within(
                text,
                PAGE,
                case,
                &format!("{case}\tcase MEMORY_DEVICE_TEST: /* new */\n"),
            )
        } else {
            let last = "pgmap->type == MEMORY_DEVICE_COHERENT)\n";
            within(
                text,
                PAGE,
                last,
                "pgmap->type == MEMORY_DEVICE_COHERENT ||\n\t    pgmap->type == MEMORY_DEVICE_PCI_P2PDMA)\n",
            )
        }
    });
}

#[test]
fn a_changed_comment_is_carried() {
    carried(|text| {
        within(
            text,
            PAGE,
            "when allocating the page.\n",
            "when allocating the page, says the test.\n",
        )
    });
    carried(|text| {
        within(
            text,
            PAGE,
            "phase for it to be fully associated with a zone.\n",
            "phase, says the test.\n",
        )
    });
}

#[test]
fn a_comment_among_statements_that_move_is_carried() {
    let comment = "/* Says the test. */";
    let behind = |statement: &'static str, name: &'static str, between: &'static str| {
        move |text: &str| {
            within(
                text,
                name,
                statement,
                &format!("{statement}{between}{comment}"),
            )
        }
    };
    carried(behind("set_page_count(page, 0);", COMPOUND, " "));
    carried(behind("set_page_count(page, 0);", COMPOUND, "\n\t\t"));
    carried(behind("pfn++) {", COMPOUND, "\n\t\t"));
    carried(behind("__SetPageReserved(page);", PAGE, " "));
    carried(behind("__SetPageHead(head);", COMPOUND, "\n\t"));
    carried(behind("continue;", RANGE, "\n\n\t\t"));
    carried(behind("pfns_per_compound) {", RANGE, "\n\t\t"));
}

#[test]
fn a_comment_that_no_template_would_show_is_refused() {
    let comment = "/* Says the test. */";
    for (name, from) in [
        (COMPOUND, "pfn = head_pfn + 1;"),
        (COMPOUND, "pfn < end_pfn;"),
        (RANGE, "pfn, zone_idx, nid, pgmap,\n"),
    ] {
        for kernel in kernels() {
            let changed = Changed::new(kernel, kernel.home(), |text| {
                within(text, name, from, &format!("{comment} {from}"))
            });
            changed.refused(&[
                &format!("would lose the comment at {}:", kernel.home()),
                name,
                comment,
                "lines are counted in the file as the edits before this one left it",
                "0003-tail-template/patch.toml:",
            ]);
        }
    }
}

#[test]
fn a_pageblock_set_up_in_the_page_function_is_carried_and_done_for_every_page() {
    let block = "\n\t/*\n\t * Says the test: the block is movable.\n\t */\n\tif (pageblock_aligned(pfn)) {\n\t\tset_pageblock_migratetype(page, MIGRATE_MOVABLE);\n\t\tcond_resched();\n\t}\n}\n";
    // 6.1.176 sets the pageblocks up elsewhere.
    let ends_with_blocks = |kernel: &&Kernel| {
        let text = kernel.file(kernel.home());
        text.contains_str("\tpageblock_migratetype_init_range(start_pfn, nr_pages,")
    };
    let kernels: Vec<_> = kernels().iter().filter(ends_with_blocks).collect();
    assert!(!kernels.is_empty(), "most have it");
    for kernel in kernels {
        let changed = Changed::new(kernel, kernel.home(), |text| {
            let call = text.find("\tpageblock_migratetype_init_range(start_pfn, nr_pages,");
            let call = call.unwrap_or_else(|| panic!("{}", kernel.name));
            let line = text[call..].find(";\n\n").expect("an end") + 3;
            let text = format!("{}{}", &text[..call], &text[call + line..]);
            let page = function(&text, PAGE);
            let new = format!("{}{block}", page.strip_suffix("}\n").expect("an end"));
            text.replacen(page, &new, 1)
        });
        let result = changed.result();
        let name = &kernel.name;
        let helper = function(&result, "zone_device_page_init_pageblock");
        assert!(
            helper.contains("\tif (pageblock_aligned(pfn)) {\n\t\tset_pageblock_migratetype(page, MIGRATE_MOVABLE);\n\t\tcond_resched();\n\t}\n"),
            "{name}: {helper}"
        );
        assert_eq!(
            result
                .matches("Says the test: the block is movable.")
                .count(),
            1,
            "{name}"
        );
        assert!(
            !function(&result, PAGE).contains("pageblock"),
            "{name}: it left the page function"
        );
        let calls = |function_name: &str| {
            function(&result, function_name)
                .matches("zone_device_page_init_pageblock(page, pfn);")
                .count()
        };
        assert_eq!(calls(RANGE), 1, "{name}: heads and single pages");
        assert_eq!(calls("zone_device_tail_page_init"), 1, "{name}: tails");
        assert_eq!(calls(COMPOUND), 1, "{name}: copies");
        let mail = changed
            .sandbox
            .files("out")
            .remove("0000-cover-letter.patch");
        assert!(
            mail.expect("a cover letter").contains_str("page by page"),
            "{name}"
        );
    }
}

#[test]
fn what_changes_elsewhere_in_the_file_is_carried() {
    carried(|text| {
        let first = text.find("#include <linux/").expect("an include");
        format!(
            "{}#include <linux/says_the_test.h>\n{}",
            &text[..first],
            &text[first..]
        )
    });
    carried(|text| {
        let page = function(text, PAGE);
        let new = "/* Says the test. */\nstatic int says_the_test(void)\n{\n\treturn 0;\n}\n\n";
        text.replacen(page, &format!("{new}{page}"), 1)
    });
    carried(|text| format!("/* Says the test. */\n{text}"));
    carried(|text| format!("{text}\n#ifdef CONFIG_TEST\nint says_the_test;\n#endif\n"));
}

#[test]
fn an_include_that_is_there_already_is_not_added_again() {
    for kernel in kernels() {
        let changed = Changed::new(kernel, kernel.home(), |text| {
            let first = text.find("#include <linux/").expect("an include");
            let (before, after) = text.split_at(first);
            format!(
                "{before}#include <linux/prefetch.h>\n{}",
                after.replace("#include <linux/prefetch.h>\n", "")
            )
        });
        let result = changed.result();
        assert_eq!(result.matches("#include <linux/prefetch.h>").count(), 1);
    }
}

#[test]
fn a_neighbour_of_the_new_kbuild_line_is_carried() {
    let path = "include/asm-generic/Kbuild";
    for kernel in kernels() {
        let changed = Changed::new(kernel, path, |text| {
            let line = text.find("mandatory-y += switch_to.h").expect("a line");
            let (before, after) = text.split_at(line);
            format!(
                "{before}mandatory-y += struct_page_aaa.h\nmandatory-y += struct_page_zzz.h\n{after}"
            )
        });
        changed.result();
        let kbuild = changed.store.file("refs/heads/series", path);
        let expected = "mandatory-y += struct_page_aaa.h\nmandatory-y += struct_page_init.h\nmandatory-y += struct_page_zzz.h\n";
        assert!(kbuild.contains_str(expected), "{}", kernel.name);
    }
}

#[test]
fn code_for_32_bits_is_there_exactly_where_it_can_be_built() {
    for kernel in kernels() {
        let of = |result: &str| result.contains("IS_ENABLED(CONFIG_64BIT)");
        let kconfig = kernel.file("mm/Kconfig");
        let dependency = "\tdepends on 64BIT\n";
        let zone_device = "config ZONE_DEVICE\n\tbool \"";
        assert_eq!(kconfig.to_str_lossy().matches(zone_device).count(), 1);
        let without = kconfig.replace(dependency, "");
        // No such base was ever proven: what the template then makes is code that nobody has run.
        let changed = Changed::with(kernel, &[("mm/Kconfig", &without)]);
        let ran = changed.regen().run().refused(3);
        ran.says(&["`fact only_64bit`", "never proven"]);
        assert!(of(&changed.unproven()), "{}: without", kernel.name);
        let mail = changed.sandbox.files("out");
        assert!(mail.values().any(|mail| mail.contains_str("32 bits")));
        let line =
            without.find("config ZONE_DEVICE\n").expect("a symbol") + "config ZONE_DEVICE\n".len();
        let with = [&without[..line], dependency.as_bytes(), &without[line..]].concat();
        let changed = Changed::with(kernel, &[("mm/Kconfig", &with)]);
        assert!(!of(&changed.result()), "{}: with", kernel.name);
        let mail = changed.sandbox.files("out");
        assert!(!mail.values().any(|mail| mail.contains_str("32 bits")));
    }
}

// ------------------------------------------------------------------------------------------------ refused

#[test]
fn a_renamed_function_is_refused_with_the_nearest_candidates() {
    for name in [PAGE, COMPOUND, RANGE] {
        let new = format!("{name}_v2");
        let head = format!(" {new}(struct");
        for kernel in kernels() {
            let changed = Changed::new(kernel, kernel.home(), |text| {
                text.replace(&format!("{name}("), &format!("{new}("))
            });
            let missing = format!("no file of the base defines `{name}()`");
            let ran = changed.refused(&[
                &missing,
                "nearest in the base:",
                "patches/zone-device/series.toml:",
            ]);
            let place = format!("{}: ", changed.place(&head));
            let candidate = ran.stderr.lines().find(|line| line.contains(&place));
            assert!(
                candidate.is_some_and(|line| line.contains(&new)),
                "{place}\n{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_second_statement_where_one_is_expected_is_refused() {
    let twice = |name: &'static str, statement: &'static str| {
        move |text: &str| {
            within(
                text,
                name,
                statement,
                &format!("{statement} /* again */ {statement}"),
            )
        }
    };
    let part = |part: &str, name: &str| format!("part `{part}` of `{name}()`");
    let nested = |name: &str, outer: &str, function: &str| {
        format!("part `{name}` of part `{outer}` of `{function}()`")
    };
    let more = "expected one, found more";
    let init = "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);";
    refused_at(
        "/* again */",
        &[&part("reserved", PAGE), more],
        twice(PAGE, "__SetPageReserved(page);"),
    );
    refused_at(
        "/* again */",
        &[&part("single", PAGE), more],
        twice(PAGE, "__init_single_page(page, pfn, zone_idx, nid);"),
    );
    refused_at(
        "/* again */",
        &[&nested("tail_page", "loop", COMPOUND), more],
        twice(COMPOUND, init),
    );
    refused_at(
        "/* again */",
        &[&nested("tail_count", "loop", COMPOUND), more],
        twice(COMPOUND, "set_page_count(page, 0);"),
    );
    refused_at(
        "/* again */",
        &[&nested("init", "loop", RANGE), more],
        twice(RANGE, init),
    );
    refused_at(
        "/* again */",
        &[&part("head_flag", COMPOUND), more],
        twice(COMPOUND, "__SetPageHead(head);"),
    );
}

#[test]
fn a_statement_that_is_gone_is_refused_with_what_looks_like_it() {
    for kernel in kernels() {
        let changed = Changed::new(kernel, kernel.home(), |text| {
            within(
                text,
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t__SetPagePrivate(page);\n",
            )
        });
        let ran = changed.refused(&[
            "part `reserved` of `__init_zone_device_page()`",
            "expected one, found none",
            "`__SetPageReserved(page);`",
        ]);
        let place = changed.place("\t__SetPagePrivate(page);");
        assert!(ran.stderr.contains(&place), "{place}\n{}", ran.stderr);
        let changed = Changed::new(kernel, kernel.home(), |text| {
            within(text, COMPOUND, "\t\tset_page_count(page, 0);\n", "")
        });
        changed.refused(&[
            "part `tail_count` of part `loop` of `memmap_init_compound()`",
            "found none",
        ]);
    }
}

#[test]
fn a_changed_parameter_list_is_refused() {
    refused_at(
        "__init_zone_device_page(struct page *page, unsigned long pfn,",
        &[
            "`__init_zone_device_page()` has other parameters",
            "found (page, pfn, zone_idx, nid, pgmap, flags)",
        ],
        |text| {
            within(
                text,
                PAGE,
                "struct dev_pagemap *pgmap)",
                "struct dev_pagemap *pgmap, int flags)",
            )
        },
    );
    refused_at(
        "memmap_init_compound(struct page *head,",
        &[
            "`memmap_init_compound()` has other parameters",
            "found (head, head_pfn, zone_idx, nid, pgmap)",
        ],
        |text| {
            within(
                text,
                COMPOUND,
                "struct dev_pagemap *pgmap,\n\t\t\t\t       unsigned long nr_pages)",
                "struct dev_pagemap *pgmap)",
            )
        },
    );
    refused_at(
        "memmap_init_zone_device(struct zone *zone,",
        &[
            "`memmap_init_zone_device()` has other parameters",
            "found (zone, nr_pages, start_pfn, pgmap)",
        ],
        |text| {
            let (start, count) = ("unsigned long start_pfn,", "unsigned long nr_pages,");
            let swapped = within(text, RANGE, start, "unsigned long @,");
            within(&swapped, RANGE, count, start).replace("unsigned long @,", count)
        },
    );
}

#[test]
fn a_statement_that_no_part_claims_is_refused_wherever_it_is() {
    let new = "upstream_has_a_new_rule(zone_idx);";
    let after = |name: &'static str, line: &'static str| {
        move |text: &str| within(text, name, line, &format!("{line}\t{new}\n"))
    };
    let claims = |inside: &str| format!("no part of {inside} claims this statement");
    let function = |name: &str| claims(&format!("`{name}()`"));
    let looped = |name: &str| claims(&format!("part `loop` of `{name}()`"));
    refused_at(
        new,
        &[&function(PAGE)],
        after(PAGE, "\t__SetPageReserved(page);\n"),
    );
    refused_at(
        new,
        &[&function(COMPOUND)],
        after(COMPOUND, "\t__SetPageHead(head);\n"),
    );
    refused_at(
        new,
        &[&function(RANGE)],
        after(RANGE, "\t\tnr_pages = end_pfn - start_pfn;\n\t}\n"),
    );
    refused_at(
        new,
        &[&looped(COMPOUND)],
        after(COMPOUND, "\t\tset_page_count(page, 0);\n"),
    );
    refused_at(new, &[&looped(RANGE)], after(RANGE, "\t\t\tcontinue;\n"));
    // Inside a statement that is known, the statement is not known any more.
    for kernel in kernels() {
        let changed = Changed::new(
            kernel,
            kernel.home(),
            after(RANGE, "\t\tnr_pages = end_pfn - start_pfn;\n"),
        );
        changed.refused(&["part `altmap` of `memmap_init_zone_device()`"]);
    }
}

#[test]
fn every_mismatch_is_told_at_once() {
    let Some(kernel) = newest() else { return };
    let changed = Changed::new(kernel, kernel.home(), |text| {
        let text = within(
            text,
            PAGE,
            "\t__SetPageReserved(page);\n",
            "\t__SetPageReserved(page);\n\tone();\n",
        );
        let text = within(
            &text,
            COMPOUND,
            "\t__SetPageHead(head);\n",
            "\t__SetPageHead(head);\n\ttwo();\n",
        );
        text.replace("memmap_init_zone_device(", "memmap_init_device(")
    });
    changed.refused(&[
        "\tone();",
        "\ttwo();",
        "no file of the base defines `memmap_init_zone_device()`",
        "`factor-helpers`",
        "`arch-stores`",
    ]);
}

#[test]
fn a_statement_that_two_parts_claim_is_refused() {
    for kernel in kernels() {
        let changed = Changed::with(kernel, &[]);
        let series = recipe_with(&changed.sandbox, "series.toml", |text| {
            let part = "[[function.part]]\nname = \"reserved\"\n";
            let again = "[[function.part]]\nname = \"again\"\npatterns = [\"__SetPageReserved($_ANY);\"]\n\n";
            text.replacen(part, &format!("{again}{part}"), 1)
        });
        let ran = changed.regen().arg("--series").arg(series).run().refused(3);
        let ran = ran.says(&[
            "more than one part of `__init_zone_device_page()` claims this statement",
            "`again` (",
            "`reserved` (",
            "series.toml:",
        ]);
        let place = changed.place_in(PAGE, "\t__SetPageReserved(page);");
        assert!(ran.stderr.contains(&place), "{place}\n{}", ran.stderr);
    }
}

/// A copy of the shipped recipe with one file changed.
pub(crate) fn recipe_with(
    sandbox: &Sandbox,
    file: &str,
    change: impl Fn(&str) -> String,
) -> std::path::PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let series = sandbox.path("zone-device");
    for (from, to) in [
        ("patches/zone-device", ""),
        ("templates/zone-device", "templates"),
    ] {
        copy(&project.join(from), &series.join(to));
    }
    let path = series.join(file);
    let text = std::fs::read_to_string(&path).expect("a file");
    let changed = change(&text);
    assert_ne!(text, changed, "the test changes {file}");
    std::fs::write(path, changed).expect("it is written");
    series
}

#[test]
fn what_would_differ_from_page_to_page_is_not_put_on_a_template() {
    let data = "\tpage->zone_device_data = NULL;\n";
    for statement in [
        "count_vm_event(PGALLOC_DEVICE);",
        "page->private = next_number(pgmap);",
        "page->private = pgmap->counter++;",
        "page->private = (pgmap->total += 1);",
        "page->index = pfn;",
        "page->index = 2 * (pfn & 7);",
        "page->mapping = (void *)&page->lru;",
        "set_page_private(page, (unsigned long)page);",
        "*(&page->private + nid) = 0;",
        "if (pfn & 1) page->private = 0;",
        "page++;",
        "goto out;",
        "INIT_LIST_HEAD(&page->lru);",
        "spin_lock(&pgmap->lock);",
        "asm volatile(\"\");",
        "set_page_count(page, page_count(page) + 1);",
    ] {
        let Some(kernel) = newest() else { return };
        let line = format!("{data}\t{statement}\n");
        let changed = Changed::new(kernel, kernel.home(), |text| {
            within(text, PAGE, data, &line)
        });
        let ran =
            changed.refused(&["no part of `__init_zone_device_page()` claims this statement"]);
        let place = changed.place_in(PAGE, statement);
        assert!(ran.stderr.contains(&place), "{place}\n{}", ran.stderr);
    }
}

#[test]
fn a_reference_count_that_depends_on_the_page_is_refused() {
    refused_at("(pfn & 1)", &["`refcount`", "pfn"], |text| {
        if function(text, PAGE).contains("switch (pgmap->type)") {
            within(
                text,
                PAGE,
                "\t\tset_page_count(page, 0);\n",
                "\t\tif (pfn & 1)\n\t\t\tset_page_count(page, 0);\n",
            )
        } else {
            within(
                text,
                PAGE,
                "\tif (pgmap->type == MEMORY_DEVICE_PRIVATE ||",
                "\tif ((pfn & 1) || pgmap->type == MEMORY_DEVICE_PRIVATE ||",
            )
        }
    });
    refused_at(
        "trace_refcount(page)",
        &["`refcount`", "`trace_refcount()`"],
        |text| {
            if function(text, PAGE).contains("switch (pgmap->type)") {
                within(
                    text,
                    PAGE,
                    "\t\tset_page_count(page, 0);\n",
                    "\t\tset_page_count(page, 0);\n\t\ttrace_refcount(page);\n",
                )
            } else {
                within(
                    text,
                    PAGE,
                    "pgmap->type == MEMORY_DEVICE_COHERENT)",
                    "trace_refcount(page))",
                )
            }
        },
    );
}

#[test]
fn a_case_that_keeps_a_pointer_to_the_page_in_the_page_is_refused() {
    let has_switch = |kernel: &&Kernel| {
        let text = kernel.file(kernel.home());
        function(text.to_str().expect("UTF-8"), PAGE).contains("switch (pgmap->type)")
    };
    let with = |kernel: &Kernel, statement: &str| {
        let count = "\t\tset_page_count(page, 0);\n";
        let case = format!("{count}\t\t{statement}\n");
        Changed::new(kernel, kernel.home(), |text| {
            within(text, PAGE, count, &case)
        })
    };
    for kernel in kernels().iter().filter(has_switch) {
        for statement in [
            "page->mapping = (void *)&page->lru;",
            "page->private = (unsigned long)page;",
            "set_page_count(page, (long)page);",
            "last_page = page;",
            "{ struct page *it = page; it->mapping = (void *)page; }",
        ] {
            let changed = with(kernel, statement);
            let ran =
                changed.refused(&["`refcount`", "its `CASES` keeps `page` in what it writes"]);
            let place = changed.place_in(PAGE, statement);
            assert!(ran.stderr.contains(&place), "{place}\n{}", ran.stderr);
        }
        for statement in ["page->private = 0;", "page->private = pgmap->type;"] {
            assert!(with(kernel, statement).result().contains(statement));
        }
    }
}

#[test]
fn a_changed_loop_is_refused() {
    refused_at(
        "pfn <= end_pfn - 1",
        &["`memmap_init_compound()`", "part `loop`"],
        |text| within(text, COMPOUND, "pfn < end_pfn;", "pfn <= end_pfn - 1;"),
    );
    refused_at(
        "pfn = start_pfn + 1;",
        &["`memmap_init_zone_device()`", "part `loop`"],
        |text| {
            within(
                text,
                RANGE,
                "for (pfn = start_pfn;",
                "for (pfn = start_pfn + 1;",
            )
        },
    );
    refused_at(
        "pfn += 2 *",
        &["`memmap_init_zone_device()`", "part `loop`"],
        |text| {
            within(
                text,
                RANGE,
                "pfn += pfns_per_compound",
                "pfn += 2 * pfns_per_compound",
            )
        },
    );
}

#[test]
fn conditional_code_in_a_function_that_is_built_upon_is_refused() {
    for kernel in kernels() {
        for (name, from, to) in [
            (
                PAGE,
                "\t__SetPageReserved(page);\n",
                "#ifdef CONFIG_TEST\n\t__SetPageReserved(page);\n#endif\n",
            ),
            (
                PAGE,
                "\t__SetPageReserved(page);\n",
                "#ifdef CONFIG_TEST\n\tpage->private = 0;\n#endif\n\t__SetPageReserved(page);\n",
            ),
            (
                COMPOUND,
                "\t\tset_page_count(page, 0);\n",
                "#ifdef CONFIG_TEST\n\t\tset_page_count(page, 0);\n#endif\n",
            ),
            (
                RANGE,
                "\t\t\tcontinue;\n",
                "\t\t\tcontinue;\n#ifdef CONFIG_TEST\n\t\tcontinue;\n#endif\n",
            ),
        ] {
            let changed = Changed::new(kernel, kernel.home(), |text| within(text, name, from, to));
            let ran = changed.refused(&[&format!("`{name}()`")]);
            let place = changed.place("#ifdef CONFIG_TEST");
            assert!(ran.stderr.contains(&place), "{place}\n{}", ran.stderr);
        }
    }
}

#[test]
fn a_function_that_is_there_twice_is_refused() {
    for name in [PAGE, COMPOUND, RANGE] {
        for kernel in kernels() {
            let changed = Changed::new(kernel, kernel.home(), |text| {
                let old = function(text, name);
                let new = format!("#ifdef CONFIG_TEST\n{old}#else\n{old}#endif\n");
                text.replacen(old, &new, 1)
            });
            let ran = changed.refused(&[&format!("defines `{name}()` 2 times"), "series.toml:"]);
            assert!(
                ran.stderr.matches(&format!("  {}:", kernel.home())).count() >= 2,
                "both places\n{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_fact_that_the_series_builds_on_is_demanded() {
    for kernel in kernels() {
        let path = "include/linux/page_ref.h";
        let changed = Changed::new(kernel, path, |text| {
            text.replace("page_ref_tracepoint_active", "page_ref_traced")
        });
        changed.refused(&["the fact `traced_refcount` is false", path, "series.toml:"]);
        let kbuild = "include/asm-generic/Kbuild";
        let changed = Changed::new(kernel, kbuild, |text| {
            format!("{text}mandatory-y += aaa.h\n")
        });
        changed.refused(&[
            "patch `arch-stores`, edit `mandatory`",
            kbuild,
            "0004-arch-stores/patch.toml:",
        ]);
    }
}

#[test]
fn an_anchor_in_the_middle_of_a_line_is_refused() {
    let Some(kernel) = newest() else { return };
    let changed = Changed::new(kernel, kernel.home(), |text| {
        let init = "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);\n";
        let text = within(
            text,
            RANGE,
            "struct page *page = pfn_to_page(pfn);\n\n\t\t",
            "struct page *page = pfn_to_page(pfn); ",
        );
        assert!(function(&text, RANGE).contains(init));
        text
    });
    changed.refused(&["edit `use`", "start of a line", "patch.toml:"]);
}

#[test]
fn of_a_part_of_the_series_in_the_base_the_rest_is_left_and_of_all_of_it_nothing() {
    for kernel in kernels() {
        let header = "include/asm-generic/struct_page_init.h";
        let changed = Changed::with(kernel, &[(header, b"/* somebody else's */\n")]);
        changed.refused(&[
            "is in the base already, and not as the recipe makes it",
            header,
            "with another text: patch `arch-stores`, edit `generic-header`: ",
        ]);

        let changed = Changed::with(kernel, &[]);
        changed.result();
        let tip = changed
            .store
            .repo
            .reference("refs/heads/series")
            .expect("a ref")
            .expect("it is there");
        let before = changed.sandbox.listing("store.git");
        let regen = |rev: &str| {
            let program = changed.sandbox.reroll([
                "regen", "--author", AUTHOR, "-s", "-o", "again", "--base", rev,
            ]);
            program
                .args(["--ref", "refs/heads/again", "--tree"])
                .arg(&changed.store.path)
        };
        let ran = regen(&tip.to_string())
            .run()
            .expect_exit(0)
            .says(&["already applied", header]);
        assert!(ran.stdout.is_empty());
        let json = regen(&tip.to_string())
            .arg("--json")
            .run()
            .expect_exit(0)
            .json();
        assert!(!json["applied"].as_array().expect("a list").is_empty());
        assert_eq!(changed.sandbox.listing("store.git"), before);
        assert!(!changed.sandbox.path("again").exists());
        // Proven by the history: the rest ends in the very same tree.
        let whole = changed
            .store
            .repo
            .base(&tip.to_string())
            .expect("it is there")
            .tree_id;
        for count in 1..4 {
            let base = format!("{tip}~{count}");
            let program = changed
                .sandbox
                .reroll(["regen", "--author", AUTHOR, "-s", "-n"]);
            let program = program.args(["--json", "--base", &base, "--tree"]);
            let ran = program.arg(&changed.store.path).run().expect_exit(0);
            assert_eq!(
                ran.stderr.matches("has the same patch-id\n").count(),
                4 - count
            );
            let json = ran.json();
            let commits = json["commits"].as_array().expect("a list");
            assert_eq!(commits.len(), count);
            assert_eq!(commits[count - 1]["tree"], whole.to_string());
        }
        // The same files without their history: the recipe proves it by itself.
        for count in 0..4 {
            let rev = format!("{tip}~{count}");
            let tree_id = changed.store.repo.base(&rev).expect("it is there").tree_id;
            let import = changed.store.commit(tree_id, None, "imported\n");
            let args = ["regen", "--author", AUTHOR, "-s", "-n", "--json", "--base"];
            let program = changed.sandbox.reroll(args).arg(import.to_string());
            let program = program.arg("--tree").arg(&changed.store.path);
            let json = program.run().expect_exit(0).json();
            let upstream = json["upstream"].as_array().expect("a list");
            assert_eq!(upstream.len(), 4 - count, "{}", kernel.name);
            if count > 0 {
                let commits = json["commits"].as_array().expect("a list");
                assert_eq!(commits.len(), count);
                assert_eq!(commits[count - 1]["tree"], whole.to_string());
            }
        }
        assert!(!changed.sandbox.path("again").exists());
    }
}
