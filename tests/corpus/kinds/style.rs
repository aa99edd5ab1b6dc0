//! The same code written differently: what a person would be annoyed by if it were refused.

use super::{COUNT, Kind, carried, either, refused};
use crate::tree::{COMPOUND, PAGE, RANGE, Tree};

/// Changes a function's first line.
fn head(tree: &mut Tree, name: &str, from: &str, to: &str) -> Option<()> {
    tree.edit_function(name, |text| {
        let end = text.find('\n')?;
        let (head, rest) = text.split_at(end);
        head.contains(from)
            .then(|| format!("{}{rest}", head.replacen(from, to, 1)))
    })
}

/// Puts the brace of a body on the line that the parameters end on.
fn brace_on_the_line(tree: &mut Tree, name: &str) -> Option<()> {
    tree.edit_function(name, |text| Some(text.replacen(")\n{\n", ") {\n", 1)))
}

fn rename(tree: &mut Tree, name: &str, from: &str, to: &str) -> Option<()> {
    tree.rename_in(name, from, to)
}

/// Puts a byte that is no UTF-8 into a comment.
fn latin1(tree: &mut Tree, words: &str) -> Option<()> {
    let home = tree.home();
    let text = tree.text(&home)?;
    let at = text.find(words)?;
    let mut bytes = text.into_bytes();
    bytes.splice(at..at, *b"caf\xe9 ");
    tree.set(&home, bytes);
    Some(())
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = statements();
    kinds.extend(declarations());
    kinds.extend(heads());
    kinds.extend(comments());
    kinds.extend(renamed());
    kinds
}

fn statements() -> Vec<Kind> {
    vec![
        carried("braces-around-continue", |t| {
            t.within(
                RANGE,
                "\t\tif (pfns_per_compound == 1)\n\t\t\tcontinue;\n",
                "\t\tif (pfns_per_compound == 1) {\n\t\t\tcontinue;\n\t\t}\n",
            )
        }),
        carried("braces-around-resched", |t| {
            t.within(
                RANGE,
                "PAGES_PER_SECTION))\n\t\t\tcond_resched();\n",
                "PAGES_PER_SECTION)) {\n\t\t\tcond_resched();\n\t\t}\n",
            )
        }),
        carried("braces-around-return", |t| {
            t.within(
                RANGE,
                "ZONE_DEVICE))\n\t\treturn;\n",
                "ZONE_DEVICE)) {\n\t\treturn;\n\t}\n",
            )
        }),
        carried("braces-around-the-head", |t| {
            t.edit_function(COMPOUND, |text| {
                let at = text.find("if (pfn == head_pfn + ")?;
                let end = at + text[at..].find(")\n")? + 1;
                let call = "\t\t\tprep_compound_head(head, order);\n";
                let rest = text[end + 1..].strip_prefix(call)?;
                Some(format!("{} {{\n{call}\t\t}}\n{rest}", &text[..end]))
            })
        }),
        carried("braces-around-the-count", |t| {
            t.within(
                PAGE,
                "MEMORY_DEVICE_COHERENT)\n\t\tset_page_count(page, 0);\n",
                "MEMORY_DEVICE_COHERENT) {\n\t\tset_page_count(page, 0);\n\t}\n",
            )
        }),
        carried("increment-in-front", |t| {
            t.within(COMPOUND, "pfn++)", "++pfn)")
        }),
        either("increment-by-assignment", |t| {
            t.within(COMPOUND, "pfn++)", "pfn += 1)")
        }),
        carried("parentheses-around-a-condition", |t| {
            t.within(
                RANGE,
                "(pfns_per_compound == 1)",
                "((pfns_per_compound == 1))",
            )
        }),
        either("condition-the-other-way-round", |t| {
            t.within(
                RANGE,
                "(pfns_per_compound == 1)",
                "(1 == pfns_per_compound)",
            )
        }),
        either("loop-as-while", |t| {
            t.edit_function(COMPOUND, |text| {
                let text = text.replacen(
                    "for (pfn = head_pfn + 1; pfn < end_pfn; pfn++) {",
                    "pfn = head_pfn + 1;\n\twhile (pfn < end_pfn) {",
                    1,
                );
                let at = text.rfind("\n\t}\n")? + 1;
                text.contains("while")
                    .then(|| format!("{}\t\tpfn++;\n{}", &text[..at], &text[at..]))
            })
        }),
        carried("report-at-another-level", |t| {
            t.within(RANGE, "pr_debug(", "pr_info(")
        }),
        carried("arguments-wrapped-differently", |t| {
            t.within(
                RANGE,
                "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);",
                "__init_zone_device_page(page, pfn,\n\t\t\t\t\tzone_idx, nid, pgmap);",
            )
        }),
        carried("blank-lines", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\n\t__SetPageReserved(page);\n\n\n",
            )
        }),
        carried("indented-by-blanks", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "        __SetPageReserved(page);\n",
            )
        }),
        carried("blank-at-the-end-of-a-line", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t__SetPageReserved(page); \t\n",
            )
        }),
        carried("blanks-in-a-call", |t| {
            t.within(
                PAGE,
                "__init_single_page(page, pfn, zone_idx, nid);",
                "__init_single_page( page,pfn, zone_idx,nid );",
            )
        }),
        either("two-statements-on-a-line", |t| {
            t.within(
                COMPOUND,
                "\t\tstruct page *page = pfn_to_page(pfn);\n\n\t\t__init",
                "\t\tstruct page *page = pfn_to_page(pfn); __init",
            )
        }),
        either("an-empty-statement", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t__SetPageReserved(page);;\n",
            )
        }),
        either("a-block-around-the-stores", |t| {
            t.edit_function(PAGE, |text| {
                let at = text.find("\t__SetPageReserved(page);\n")?;
                let end = at + "\t__SetPageReserved(page);\n".len();
                Some(format!(
                    "{}\t{{\n\t{}\t}}\n{}",
                    &text[..at],
                    &text[at..end],
                    &text[end..]
                ))
            })
        }),
    ]
}

fn declarations() -> Vec<Kind> {
    vec![
        carried("declaration-split-in-the-range", |t| {
            t.within(
                RANGE,
                "\tunsigned long pfn, end_pfn = start_pfn + nr_pages;\n",
                "\tunsigned long end_pfn = start_pfn + nr_pages;\n\tunsigned long pfn;\n",
            )
        }),
        carried("declaration-split-in-the-compound", |t| {
            t.within(
                COMPOUND,
                "\tunsigned long pfn, end_pfn = head_pfn + nr_pages;\n",
                "\tunsigned long end_pfn = head_pfn + nr_pages;\n\tunsigned long pfn;\n",
            )
        }),
        carried("declaration-in-the-for-of-the-compound", |t| {
            t.within(
                COMPOUND,
                "\tunsigned long pfn, end_pfn =",
                "\tunsigned long end_pfn =",
            )?;
            t.within(
                COMPOUND,
                "for (pfn = head_pfn",
                "for (unsigned long pfn = head_pfn",
            )
        }),
        carried("declaration-in-the-for-of-the-range", |t| {
            t.within(
                RANGE,
                "\tunsigned long pfn, end_pfn =",
                "\tunsigned long end_pfn =",
            )?;
            t.within(
                RANGE,
                "for (pfn = start_pfn",
                "for (unsigned long pfn = start_pfn",
            )
        }),
        carried("declarations-in-another-order", |t| {
            let (one, two) = (
                "\tunsigned long zone_idx = zone_idx(zone);\n",
                "\tunsigned long start = jiffies;\n",
            );
            t.within(RANGE, &format!("{one}{two}"), &format!("{two}{one}"))
        }),
        carried("declaration-of-order-first", |t| {
            let (one, two) = (
                "\tunsigned long pfn, end_pfn = head_pfn + nr_pages;\n",
                "\tunsigned int order = pgmap->vmemmap_shift;\n",
            );
            t.within(COMPOUND, &format!("{one}{two}"), &format!("{two}{one}"))
        }),
        either("declaration-then-assignment", |t| {
            t.within(
                COMPOUND,
                "\t\tstruct page *page = pfn_to_page(pfn);\n",
                "\t\tstruct page *page;\n\n\t\tpage = pfn_to_page(pfn);\n",
            )
        }),
        carried("words-of-a-type-in-another-order", |t| {
            t.within(
                COMPOUND,
                "\tunsigned long pfn, end_pfn =",
                "\tlong unsigned pfn, end_pfn =",
            )
        }),
        either("type-in-fewer-words", |t| {
            t.within(COMPOUND, "\tunsigned int order =", "\tunsigned order =")
        }),
        carried("const-in-a-declaration", |t| {
            t.within(
                COMPOUND,
                "\tunsigned int order =",
                "\tconst unsigned int order =",
            )
        }),
        either("type-by-another-name", |t| {
            t.within(
                RANGE,
                "\tstruct pglist_data *pgdat =",
                "\tpg_data_t *pgdat =",
            )
        }),
        either("a-local-more", |t| {
            t.within(
                RANGE,
                "\tint nid = pgdat->node_id;\n",
                "\tint nid = pgdat->node_id;\n\tbool __maybe_unused corpus = !altmap;\n",
            )
        }),
    ]
}

fn heads() -> Vec<Kind> {
    vec![
        carried("brace-on-the-line-of-the-page", |t| {
            brace_on_the_line(t, PAGE)
        }),
        carried("brace-on-the-line-of-the-compound", |t| {
            brace_on_the_line(t, COMPOUND)
        }),
        carried("brace-on-the-line-of-the-range", |t| {
            brace_on_the_line(t, RANGE)
        }),
        carried("qualifiers-in-another-order", |t| {
            head(t, PAGE, "static void __ref", "static __ref void")
        }),
        carried("type-on-a-line-of-its-own", |t| {
            head(t, PAGE, "static void __ref ", "static void __ref\n")
        }),
        carried("type-on-a-line-of-its-own-in-the-compound", |t| {
            head(t, COMPOUND, "static void __ref ", "static void __ref\n")
        }),
        carried("another-section", |t| {
            head(t, PAGE, "static void __ref", "static void __meminit")
        })
        .or_unproven(),
        carried("an-attribute-more", |t| {
            head(
                t,
                PAGE,
                "static void __ref",
                "static __always_inline void __ref",
            )
        })
        .or_unproven(),
        carried("an-attribute-with-arguments", |t| {
            head(
                t,
                COMPOUND,
                "static void __ref",
                "static __attribute__((__noinline__)) void __ref",
            )
        })
        .or_unproven(),
        carried("parameters-wrapped-differently", |t| {
            t.within(
                RANGE,
                "\t\t\t\t   unsigned long start_pfn,\n\t\t\t\t   unsigned long nr_pages,\n",
                "\t\t\t\t   unsigned long start_pfn, unsigned long nr_pages,\n",
            )
        }),
        either("type-of-a-parameter-in-other-words", |t| {
            t.within(
                RANGE,
                "unsigned long start_pfn,",
                "unsigned long int start_pfn,",
            )
        }),
        carried("comment-between-parameters", |t| {
            t.within(
                PAGE,
                "struct dev_pagemap *pgmap)",
                "struct dev_pagemap *pgmap /* says the corpus */)",
            )
        }),
    ]
}

fn comments() -> Vec<Kind> {
    vec![
        carried("brace-in-column-0-of-a-comment", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t/* As in\n{\n\tx;\n}\n\t */\n\t__SetPageReserved(page);\n",
            )
        }),
        carried("brace-in-column-0-of-a-comment-above", |t| {
            t.before(PAGE, "/*\n * Not like this:\n{\n}\n */\n")
        }),
        carried("closing-brace-in-column-0-of-a-comment", |t| {
            t.within(
                COMPOUND,
                "\t__SetPageHead(head);\n",
                "\t/* The end of it all is\n}\n\t */\n\t__SetPageHead(head);\n",
            )
        }),
        carried("latin-1-in-a-comment-that-moves", |t| {
            t.by_switch().then_some(())?;
            t.within(PAGE, COUNT, &format!("\t\t/* corpus-latin */\n{COUNT}"))?;
            latin1(t, "corpus-latin")
        }),
        carried("latin-1-in-a-comment-that-stays", |t| {
            latin1(t, "Mark page reserved")
        }),
        carried("latin-1-elsewhere-in-the-file", |t| {
            latin1(t, "Memory initialisation verification")
        }),
        carried("utf-8-in-a-comment-that-moves", |t| {
            t.by_switch().then_some(())?;
            t.within(
                PAGE,
                COUNT,
                &format!("\t\t/* caf\u{e9} \u{2192} */\n{COUNT}"),
            )
        }),
        carried("line-comments", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t// Says the corpus.\n\t__SetPageReserved(page); // here, too\n",
            )
        }),
        carried("code-in-a-comment", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t/* __SetPageReserved(page); */\n\t__SetPageReserved(page);\n",
            )
        }),
        refused("carriage-returns", |t| {
            t.replace_all(&t.home(), "\n", "\r\n")
        }),
        carried("tab-in-the-define-that-is-probed", |t| {
            t.replace(
                "include/linux/page_ref.h",
                "#define page_ref_tracepoint_active(t) tracepoint_enabled(t)",
                "#define page_ref_tracepoint_active(t)\ttracepoint_enabled(t)",
            )
        }),
        carried("blank-behind-the-sharp", |t| {
            t.replace(
                "include/linux/page_ref.h",
                "#define page_ref_tracepoint_active(t) tracepoint_enabled(t)",
                "# define page_ref_tracepoint_active(t) tracepoint_enabled(t)",
            )
        }),
        carried("no-newline-at-the-end", |t| {
            t.edit(&t.home(), |text| Some(text.trim_end().to_owned()))
        }),
        either("a-byte-order-mark", |t| {
            t.edit(&t.home(), |text| Some(format!("\u{feff}{text}")))
        }),
        either("a-line-that-goes-on", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\t__SetPage\\\nReserved(page);\n",
            )
        }),
    ]
}

fn renamed() -> Vec<Kind> {
    vec![
        carried("page-with-pfn-renamed", |t| {
            rename(t, PAGE, "pfn", "page_pfn")
        }),
        carried("page-with-zone-renamed", |t| {
            rename(t, PAGE, "zone_idx", "zone")
        }),
        carried("page-with-pgmap-renamed", |t| {
            // The field of that name keeps it.
            t.edit_function(PAGE, |text| {
                let new = crate::tree::rename(text, "pgmap", "map");
                Some(new.replace("->map", "->pgmap"))
            })
        }),
        carried("compound-with-head-pfn-renamed", |t| {
            rename(t, COMPOUND, "head_pfn", "first_pfn")
        }),
        carried("compound-with-nr-pages-renamed", |t| {
            rename(t, COMPOUND, "nr_pages", "nr")
        }),
        carried("compound-with-its-page-renamed", |t| {
            t.edit_function(COMPOUND, |text| {
                let new = crate::tree::rename(text, "page", "tail");
                Some(new.replace("struct tail", "struct page"))
            })
        }),
        carried("range-with-a-local-renamed", |t| {
            rename(t, RANGE, "pfns_per_compound", "nr_per_compound")
        }),
        carried("range-with-its-page-renamed", |t| {
            t.edit_function(RANGE, |text| {
                let new = crate::tree::rename(text, "page", "head");
                Some(new.replace("struct head", "struct page"))
            })
        }),
        carried("range-with-a-parameter-renamed", |t| {
            rename(t, RANGE, "start_pfn", "first_pfn")
        }),
        refused("renamed-to-what-the-series-adds", |t| {
            rename(t, RANGE, "pfns_per_compound", "stream")
        }),
        refused("renamed-so-that-two-change-places", |t| {
            // The same words stand for other things.
            t.edit_function(COMPOUND, |text| {
                let at = text.find(')')?;
                let (head, body) = text.split_at(at);
                let swapped = crate::tree::rename(head, "head_pfn", "swap");
                let swapped = crate::tree::rename(&swapped, "nr_pages", "head_pfn");
                Some(format!(
                    "{}{body}",
                    crate::tree::rename(&swapped, "swap", "nr_pages")
                ))
            })
        }),
    ]
}
