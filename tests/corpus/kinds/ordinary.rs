//! What kernels do all the time: comments, moved functions, parameters passed by, new cases, new fields, Kconfig, files that move.

use super::{DATA, FILE, INTERNAL, Kind, SINGLE, carried, either, in_page, refused};
use crate::tree::{COMPOUND, PAGE, RANGE, Tree};

const KBUILD: &str = "include/asm-generic/Kbuild";
const KCONFIG: &str = "mm/Kconfig";
const INIT: &str = "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);";

/// Changes the entry of the option that the functions are built under.
fn kconfig(tree: &mut Tree, change: impl FnOnce(&str) -> Option<String>) -> Option<()> {
    tree.edit(KCONFIG, |text| {
        let at = text.find("config ZONE_DEVICE\n")?;
        let end = at + text[at..].find("\n\thelp\n")?;
        let new = change(&text[at..end])?;
        Some(format!("{}{new}{}", &text[..at], &text[end..]))
    })
}

/// Takes the functions out of their file, in the order of the file.
fn cut_all(tree: &mut Tree) -> Option<String> {
    let mut code = String::new();
    for name in [PAGE, "compound_nr_pages", COMPOUND, RANGE] {
        code.push_str(&tree.cut(name)?);
        code.push('\n');
    }
    Some(code)
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = comments();
    kinds.extend(includes());
    kinds.extend(neighbours());
    kinds.extend(statements());
    kinds.extend(parameters());
    kinds.extend(elsewhere());
    kinds
}

fn comments() -> Vec<Kind> {
    vec![
        carried("nothing-at-all", |t| t.append("COPYING", "\n")),
        carried("comment-in-the-page-function", |t| {
            t.within(
                PAGE,
                "when allocating the page.",
                "when it allocates the page.",
            )
        }),
        carried("comment-in-the-compound-function", |t| {
            t.behind(
                COMPOUND,
                "\t__SetPageHead(head);\n",
                "\t/* Says the corpus. */\n",
            )
        }),
        carried("comment-in-the-range-function", |t| {
            t.within(RANGE, "The call to memmap_init", "The call of memmap_init")
        }),
        carried("comment-on-the-page-function", |t| {
            t.before(
                PAGE,
                "/**\n * __init_zone_device_page - says the corpus\n * @page: it\n */\n",
            )
        }),
        carried("comment-beside-a-count", |t| {
            t.within(
                COMPOUND,
                "set_page_count(page, 0);",
                "set_page_count(page, 0);\t/* frozen */",
            )
        }),
        carried("comment-at-the-top-of-the-file", |t| {
            t.replace(
                &t.home(),
                " * mm_init.c - Memory",
                " * mm_init.c - says the corpus: Memory",
            )
        }),
        carried("comment-with-a-semicolon", |t| {
            t.within(
                PAGE,
                DATA,
                "\t/* a; b; */\n\tpage->zone_device_data = NULL;\n",
            )
        }),
        carried("comment-with-a-quote", |t| {
            t.within(
                PAGE,
                DATA,
                "\t/* don't \" */\n\tpage->zone_device_data = NULL;\n",
            )
        }),
    ]
}

fn includes() -> Vec<Kind> {
    vec![
        carried("one-include-more", |t| {
            t.before_includes(&t.home(), "#include <linux/bitops.h>\n")
        }),
        carried("an-include-that-the-series-adds", |t| {
            t.before_includes(&t.home(), "#include <linux/prefetch.h>\n")
        }),
        carried("both-includes-that-the-series-adds", |t| {
            t.before_includes(
                &t.home(),
                "#include <linux/sizes.h>\n#include <linux/prefetch.h>\n",
            )
        }),
        carried("an-include-of-it-in-a-comment", |t| {
            t.before_includes(
                &t.home(),
                "/*\n#include <linux/prefetch.h>\n#include <linux/sizes.h>\n */\n",
            )
        }),
        refused("an-include-of-it-that-is-not-built", |t| {
            // What goes beside it is not built either.
            let include = "#include <asm/setup.h>\n";
            t.replace(
                &t.home(),
                include,
                &format!("#ifdef CONFIG_CORPUS_OFF\n{include}#endif\n"),
            )?;
            t.before_includes(&t.home(), include)
        }),
        refused("all-asm-includes-are-conditional", |t| {
            t.after_includes(
                &t.home(),
                "#ifdef CONFIG_CORPUS_OFF\n#include <asm/page.h>\n#endif\n",
            )
        }),
        either("the-last-include-is-conditional", |t| {
            t.after_includes(
                &t.home(),
                "#ifdef CONFIG_CORPUS_OFF\n#include <linux/zpool.h>\n#endif\n",
            )
        }),
        carried("an-include-far-below", |t| {
            t.before(PAGE, "#include <linux/memcontrol.h>\n")
        }),
        carried("includes-with-a-comment-between", |t| {
            t.replace(
                &t.home(),
                "#include <linux/sched.h>\n",
                "#include <linux/sched.h>\t/* cond_resched() */\n",
            )
        }),
        carried("quotes-include-first", |t| {
            t.replace(&t.home(), "#include \"internal.h\"\n", "")?;
            t.edit(&t.home(), |text| {
                let last = text.rfind("#include <linux/")?;
                let end = last + text[last..].find('\n')? + 1;
                Some(format!(
                    "{}#include \"internal.h\"\n{}",
                    &text[..end],
                    &text[end..]
                ))
            })
        }),
    ]
}

fn neighbours() -> Vec<Kind> {
    vec![
        carried("a-function-before", |t| {
            t.before(
                PAGE,
                "static inline int corpus_one(void)\n{\n\treturn 1;\n}\n",
            )
        }),
        carried("a-function-between", |t| {
            t.before(
                COMPOUND,
                "static inline int corpus_one(void)\n{\n\treturn 1;\n}\n",
            )
        }),
        carried("a-function-behind", |t| {
            t.after(
                RANGE,
                "int corpus_one(void);\nint corpus_one(void)\n{\n\treturn 1;\n}\n",
            )
        }),
        carried("a-function-with-a-similar-name", |t| {
            t.after(
                PAGE,
                "static inline void __init_zone_device_page_locked(struct page *page)\n{\n\t__SetPageReserved(page);\n}\n",
            )
        }),
        carried("the-page-function-further-down", |t| {
            let code = t.cut(PAGE)?;
            t.before(COMPOUND, &code)
        }),
        carried("the-page-function-at-the-top", |t| {
            let code = t.cut(PAGE)?;
            t.after_includes(
                &t.home(),
                &format!("\n#ifdef CONFIG_ZONE_DEVICE\n{code}#endif\n"),
            )
        }),
        carried("macros-with-braces-in-column-0", |t| {
            t.before(
                PAGE,
                "#define corpus_block(x)\t\\\n{\t\t\t\\\n\tint y = x;\t\\\n}\n",
            )
        }),
        carried("a-table-in-front", |t| {
            t.before(
                PAGE,
                "static const int __maybe_unused corpus_table[] =\n{\n\t1, 2, 3,\n};\n",
            )
        }),
        carried("a-pragma-in-front", |t| {
            t.before(
                PAGE,
                "#pragma GCC diagnostic push\n#pragma GCC diagnostic pop\n",
            )
        }),
        carried("a-head-split-by-an-option", |t| {
            t.before(
                PAGE,
                "#ifdef CONFIG_CORPUS_OFF\nstatic inline int corpus_one(int x)\n{\n#else\nstatic inline int corpus_one(void)\n{\n\tint x = 2;\n#endif\n\treturn x;\n}\n",
            )
        }),
        carried("a-text-with-a-brace-in-column-0", |t| {
            t.before(
                PAGE,
                "static const char __maybe_unused corpus_text[] = \"\\\n}\\\n\";\n",
            )
        }),
        carried("a-guard-in-other-words", |t| {
            t.edit(&t.home(), |text| {
                let at = text.find("static void __ref __init_zone_device_page(")?;
                let guard = text[..at].rfind("#ifdef CONFIG_ZONE_DEVICE\n")?;
                Some(format!(
                    "{}#if IS_ENABLED(CONFIG_ZONE_DEVICE)\n{}",
                    &text[..guard],
                    &text[guard + "#ifdef CONFIG_ZONE_DEVICE\n".len()..]
                ))
            })
        })
        .or_unproven(),
        either("two-definitions-of-which-one-is-built", |t| {
            let code = t.function(PAGE)?;
            t.edit_function(PAGE, |text| {
                Some(format!(
                    "#ifndef CONFIG_CORPUS_OFF\n{text}#else\n{code}#endif\n"
                ))
            })
        }),
        either("an-option-in-the-page-function", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "#ifndef CONFIG_CORPUS_OFF\n\t__SetPageReserved(page);\n#endif\n",
            )
        }),
        refused("an-option-in-the-page-function-stores-pfn", |t| {
            in_page(
                t,
                "#ifdef CONFIG_ZONE_DEVICE\n\tpage->private = pfn;\n#endif\n",
            )
        }),
    ]
}

fn statements() -> Vec<Kind> {
    vec![
        carried("a-new-case", |t| {
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_PRIVATE:\n",
                "\tcase MEMORY_DEVICE_PRIVATE:\n\tcase MEMORY_DEVICE_CORPUS:\n",
            )?;
            t.replace(
                "include/linux/memremap.h",
                "\tMEMORY_DEVICE_PCI_P2PDMA,\n",
                "\tMEMORY_DEVICE_PCI_P2PDMA,\n\tMEMORY_DEVICE_CORPUS,\n",
            )
        })
        .or_unproven(),
        carried("one-type-more-in-the-condition", |t| {
            t.within(
                PAGE,
                "pgmap->type == MEMORY_DEVICE_COHERENT)",
                "pgmap->type == MEMORY_DEVICE_COHERENT ||\n\t    pgmap->type == MEMORY_DEVICE_FS_DAX)",
            )
        }),
        carried("one-type-less", |t| {
            t.within(PAGE, "\tcase MEMORY_DEVICE_COHERENT:\n", "")?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n",
                "\tcase MEMORY_DEVICE_COHERENT:\n\tcase MEMORY_DEVICE_GENERIC:\n",
            )
        }),
        carried("a-condition-for-the-switch", |t| {
            t.by_switch().then_some(())?;
            t.edit_function(PAGE, |text| {
                let at = text.find("\tswitch (pgmap->type) {\n")?;
                Some(format!("{}\tif (pgmap->type != MEMORY_DEVICE_GENERIC)\n\t\tset_page_count(page, 0);\n}}\n", &text[..at]))
            })
        }),
        carried("a-switch-for-the-condition", |t| {
            t.edit_function(PAGE, |text| {
                let at = text.find("\tif (pgmap->type == MEMORY_DEVICE_PRIVATE ||")?;
                Some(format!(
                    "{}\tswitch (pgmap->type) {{\n\tcase MEMORY_DEVICE_PRIVATE:\n\tcase MEMORY_DEVICE_COHERENT:\n\t\tset_page_count(page, 0);\n\t\tbreak;\n\tdefault:\n\t\tbreak;\n\t}}\n}}\n",
                    &text[..at]
                ))
            })
        }),
        carried("a-constant-store", |t| {
            in_page(t, "\n\t/* Says the corpus. */\n\tpage->private = 0;\n")
        }),
        carried("the-data-before-the-pagemap", |t| {
            t.edit_function(PAGE, |text| {
                let text = text.replacen(DATA, "", 1);
                let at = text
                    .find("page->pgmap = pgmap;")
                    .or_else(|| text.find("page_folio(page)->pgmap"))?;
                let line = text[..at].rfind('\n')? + 1;
                Some(format!("{}{DATA}{}", &text[..line], &text[line..]))
            })
        }),
        carried("reserved-at-the-end", |t| {
            t.within(PAGE, "\t__SetPageReserved(page);\n", "")?;
            t.at_end(PAGE, "\t__SetPageReserved(page);\n")
        })
        .or_unproven(),
        either("resched-at-the-end-of-the-loop", |t| {
            t.edit_function(RANGE, |text| {
                let at = text.find("\t\tif (IS_ALIGNED(pfn, PAGES_PER_SECTION))\n")?;
                let end = at + text[at..].find("cond_resched();\n")? + "cond_resched();\n".len();
                let resched = text[at..end].to_owned();
                let rest = format!("{}{}", &text[..at], &text[end..]);
                let call = "compound_nr_pages(pfn, altmap, pgmap));\n";
                rest.contains(call)
                    .then(|| rest.replacen(call, &format!("{call}{resched}"), 1))
            })
        }),
        either("resched-twice-as-often", |t| {
            t.within(
                RANGE,
                "IS_ALIGNED(pfn, PAGES_PER_SECTION)",
                "IS_ALIGNED(pfn, PAGES_PER_SECTION / 2)",
            )
        }),
        either("resched-without-a-condition", |t| {
            t.within(
                RANGE,
                "\t\tif (IS_ALIGNED(pfn, PAGES_PER_SECTION))\n\t\t\tcond_resched();\n",
                "\t\tcond_resched();\n",
            )
        }),
        either("a-check-more", |t| {
            t.within(
                RANGE,
                "\t\treturn;\n\n",
                "\t\treturn;\n\n\tif (!nr_pages)\n\t\treturn;\n\n",
            )
        }),
        either("the-node-by-another-way", |t| {
            t.within(
                RANGE,
                "\tint nid = pgdat->node_id;\n",
                "\tint nid = zone_to_nid(zone);\n",
            )?;
            t.within(
                RANGE,
                "\tstruct pglist_data *pgdat = zone->zone_pgdat;\n",
                "",
            )
        }),
        either("the-page-by-another-way", |t| {
            t.within(
                COMPOUND,
                "struct page *page = pfn_to_page(pfn);",
                "struct page *page = head + (pfn - head_pfn);",
            )
        }),
        refused("every-other-page", |t| {
            t.within(
                RANGE,
                "pfn += pfns_per_compound",
                "pfn += 2 * pfns_per_compound",
            )
        }),
        refused("backwards", |t| {
            t.within(
                COMPOUND,
                "for (pfn = head_pfn + 1; pfn < end_pfn; pfn++) {",
                "for (pfn = end_pfn - 1; pfn > head_pfn; pfn--) {",
            )
        }),
        refused("a-page-again-after-the-loop", |t| {
            t.edit_function(RANGE, |text| {
                let at = text.find("\tpageblock_migratetype_init_range(")?;
                Some(format!(
                    "{}\tif (start_pfn < end_pfn)\n\t\tpfn_to_page(start_pfn)->private = 0x11;\n\n{}",
                    &text[..at],
                    &text[at..]
                ))
            })
        }),
        refused("the-last-tail-after-the-loop", |t| {
            t.at_end(COMPOUND, "\tpfn_to_page(end_pfn - 1)->private = 0x11;\n")
        }),
        refused("a-tail-is-used-in-the-loop", |t| {
            t.behind(
                COMPOUND,
                "\t\tset_page_count(page, 0);\n",
                "\t\tpage[-1].private = 1;\n",
            )
        }),
    ]
}

fn parameters() -> Vec<Kind> {
    vec![
        either("a-parameter-more-for-the-page", |t| {
            t.within(
                PAGE,
                "struct dev_pagemap *pgmap)",
                "struct dev_pagemap *pgmap,\n\t\t\t\t\t  unsigned int order)",
            )?;
            t.within(
                RANGE,
                INIT,
                "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap, 0);",
            )?;
            t.within(
                COMPOUND,
                INIT,
                "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap, order);",
            )
        }),
        either("a-parameter-more-for-the-compound", |t| {
            t.within(
                COMPOUND,
                "unsigned long nr_pages)",
                "unsigned long nr_pages, bool corpus)",
            )?;
            t.within(
                RANGE,
                "compound_nr_pages(pfn, altmap, pgmap));",
                "compound_nr_pages(pfn, altmap, pgmap), false);",
            )
        }),
        either("a-parameter-less-for-the-compound", |t| {
            t.within(COMPOUND, "unsigned long zone_idx, int nid,", "int nid,")?;
            t.within(
                COMPOUND,
                INIT,
                "__init_zone_device_page(page, pfn, ZONE_DEVICE, nid, pgmap);",
            )?;
            t.within(
                RANGE,
                "memmap_init_compound(page, pfn, zone_idx, nid, pgmap,",
                "memmap_init_compound(page, pfn, nid, pgmap,",
            )
        }),
        either("two-parameters-change-places", |t| {
            t.within(
                PAGE,
                "unsigned long zone_idx, int nid,",
                "int nid, unsigned long zone_idx,",
            )?;
            let swapped = "__init_zone_device_page(page, pfn, nid, zone_idx, pgmap);";
            t.within(RANGE, INIT, swapped)?;
            t.within(COMPOUND, INIT, swapped)
        }),
        either("the-page-function-has-another-name", |t| {
            t.rename(&t.home(), PAGE, "zone_device_init_page")
        }),
        either("the-page-function-is-split", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\tmark_device_page(page);\n",
            )?;
            t.before(PAGE, "static inline void mark_device_page(struct page *page)\n{\n\t__SetPageReserved(page);\n}\n")
        }),
        refused("the-page-function-is-split-and-stores-pfn", |t| {
            t.within(
                PAGE,
                "\t__SetPageReserved(page);\n",
                "\tmark_device_page(page, pfn);\n",
            )?;
            t.before(
                PAGE,
                "static inline void mark_device_page(struct page *page, unsigned long pfn)\n{\n\t__SetPageReserved(page);\n\tpage->private = pfn;\n}\n",
            )
        }),
        refused("reserved-stores-something-of-its-own", |t| {
            t.before(
                PAGE,
                "static inline void reserve_device_page(struct page *page)\n{\n\t__SetPageReserved(page);\n\tpage->private = (unsigned long)&page->private;\n}\n\
                 #define __SetPageReserved(page) reserve_device_page(page)\n",
            )
        }),
        either("the-field-has-another-name", |t| {
            t.edit("include/linux/mm_types.h", |text| {
                Some(text.replace(
                    "void *zone_device_data;",
                    "union { void *zone_device_data; void *device_data; };",
                ))
            })?;
            t.within(
                PAGE,
                "page->zone_device_data = NULL;",
                "page->device_data = NULL;",
            )
        }),
    ]
}

fn elsewhere() -> Vec<Kind> {
    vec![
        carried("kconfig-needs-64-bits", |t| {
            kconfig(t, |text| {
                (!text.contains("depends on 64BIT"))
                    .then(|| text.replacen("\tdepends on ", "\tdepends on 64BIT\n\tdepends on ", 1))
            })
        }),
        carried("kconfig-needs-something-more", |t| {
            kconfig(t, |text| {
                Some(text.replacen("\tdepends on ", "\tdepends on MMU\n\tdepends on ", 1))
            })
        }),
        carried("kconfig-in-other-words", |t| {
            kconfig(t, |text| {
                Some(text.replacen("\tbool \"Device memory", "\tbool \"Memory of devices", 1))
            })
        }),
        carried("kconfig-in-an-if", |t| {
            t.edit(KCONFIG, |text| {
                let at = text.find("config ZONE_DEVICE\n")?;
                let end = at + 1 + text[at + 1..].find("\nconfig ")? + 1;
                Some(format!(
                    "{}if MMU\n\n{}endif\n\n{}",
                    &text[..at],
                    &text[at..end],
                    &text[end..]
                ))
            })
        })
        .or_unproven(),
        carried("kbuild-has-neighbours", |t| {
            t.replace(
                KBUILD,
                "mandatory-y += switch_to.h\n",
                "mandatory-y += struct_page_aaa.h\nmandatory-y += struct_page_zzz.h\nmandatory-y += switch_to.h\n",
            )
        }),
        carried("kbuild-has-a-comment", |t| {
            t.replace(
                KBUILD,
                "mandatory-y += switch_to.h\n",
                "# says the corpus\nmandatory-y += switch_to.h\n",
            )
        })
        .or_unproven(),
        either("kbuild-is-not-sorted", |t| {
            t.append(KBUILD, "mandatory-y += aaa_corpus.h\n")
        }),
        either("kbuild-has-its-lines-indented", |t| {
            t.replace_all(KBUILD, "mandatory-y += ", "mandatory-y\t+= ")
        }),
        either("functions-in-a-file-of-their-own", |t| {
            let old = t.text(&t.home())?;
            let range = crate::tree::find_function(&old, "pageblock_migratetype_init_range");
            let blocks = range.map(|range| old[range].to_owned()).unwrap_or_default();
            let code = cut_all(t)?;
            let includes: String = old
                .lines()
                .filter(|line| line.starts_with("#include "))
                .map(|line| format!("{line}\n"))
                .collect();
            let macros = old
                .find("#define pageblock_migratetype_init_range(")
                .map_or("", |at| {
                    let end = old[at..]
                        .find("while (0)\n")
                        .map_or(at, |end| at + end + "while (0)\n".len());
                    &old[at..end]
                });
            t.set(
                "mm/memmap_device.c",
                format!(
                    "// SPDX-License-Identifier: GPL-2.0-only\n{includes}\n{macros}{blocks}\n{code}"
                ),
            );
            Some(())
        })
        .or_unproven(),
        carried("functions-in-page-alloc", |t| {
            // As in 6.1.176.
            (t.home() == FILE).then_some(())?;
            let text = t.text(FILE)?;
            let at = text.find("#define pageblock_migratetype_init_range(")?;
            let end = at + text[at..].find("while (0)\n")? + "while (0)\n".len();
            let macros = text[at..end].to_owned();
            t.set(FILE, format!("{}{}", &text[..at], &text[end..]));
            let code = cut_all(t)?;
            t.append(
                "mm/page_alloc.c",
                &format!("\n#ifdef CONFIG_ZONE_DEVICE\n{macros}\n{code}#endif\n"),
            )
        })
        .or_unproven(),
        carried("single-in-another-file", |t| {
            (t.file_of(SINGLE)? == FILE).then_some(())?;
            let code = t.cut(SINGLE)?;
            t.append("mm/page_alloc.c", &format!("\n{code}"))
        })
        .or_unproven(),
        either("internal-header-moves-a-function", |t| {
            let code = t.cut("prep_compound_head")?;
            code.starts_with("static inline").then_some(())?;
            t.append_header(INTERNAL, &format!("{code}\n"))
        }),
        carried("another-makefile-line", |t| {
            t.append("mm/Makefile", "\n# says the corpus\n")
        }),
        carried("another-documentation-file", |t| {
            t.set(
                "Documentation/mm/corpus.rst",
                "Corpus\n======\n\nSays the corpus.\n",
            );
            Some(())
        }),
    ]
}
