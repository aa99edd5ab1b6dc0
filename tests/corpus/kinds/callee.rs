//! Drift in what the copied state comes from: the functions that the page function calls, macros in them, and structures.

use super::{INTERNAL, Kind, SINGLE, carried, declare_note, in_single, refused};
use crate::tree::{COMPOUND, PAGE, Tree};

const TAIL: &str = "prep_compound_tail";
const HEAD: &str = "prep_compound_head";
const LINKS: &str = "set_page_links";
const MM: &str = "include/linux/mm.h";
const TYPES: &str = "include/linux/mm_types.h";
const MEMREMAP: &str = "include/linux/memremap.h";

/// The last statement of the function that sets up a tail, which all bases have.
fn in_tail(tree: &mut Tree, by_index: &str, by_page: &str) -> Option<()> {
    if tree.has(TAIL, "int tail_idx") {
        tree.at_end(TAIL, by_index)
    } else {
        tree.at_end(TAIL, by_page)
    }
}

/// Where the head is prepared once all tails are there: what it writes to them stays.
fn head_comes_last(tree: &Tree) -> Option<()> {
    (!tree.has(COMPOUND, "if (pfn == head_pfn + ")).then_some(())
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = single();
    kinds.extend(below_single());
    kinds.extend(compound());
    kinds.extend(layout());
    kinds
}

fn single() -> Vec<Kind> {
    vec![
        refused("single-stores-pfn", |t| {
            in_single(t, "\tpage->private = pfn;\n")
        }),
        refused("single-stores-low-bits-of-pfn", |t| {
            in_single(t, "\tpage->private = pfn & 7;\n")
        }),
        refused("single-stores-if-pfn-is-aligned", |t| {
            in_single(t, "\tif (IS_ALIGNED(pfn, 512))\n\t\tpage->private = 1;\n")
        }),
        refused("single-keeps-its-own-address", |t| {
            in_single(t, "\tpage->mapping = (void *)&page->lru;\n")
        }),
        refused("single-asks-for-its-pfn", |t| {
            in_single(t, "\tpage->private = page_to_pfn(page) & 1;\n")
        }),
        refused("single-counts-the-pages", |t| {
            in_single(t, "\tpage->private = single_pages++;\n")?;
            t.before(SINGLE, "static unsigned long single_pages;\n")
        }),
        refused("single-tells-somebody", |t| {
            let path = t.file_of(SINGLE)?;
            in_single(t, "\tnote_device_page(page, pfn);\n")?;
            declare_note(t, &path)
        }),
        refused("single-leaves-a-word-as-it-was", |t| {
            in_single(t, "\tpage->private = old;\n")?;
            t.within(
                SINGLE,
                "\tmm_zero_struct_page(page);\n",
                "\tunsigned long old = page->private;\n\n\tmm_zero_struct_page(page);\n",
            )
        }),
        carried("single-stores-a-constant", |t| {
            in_single(t, "\tpage->private = 0x5a;\n")
        })
        .or_unproven(),
        carried("single-stores-the-node", |t| {
            in_single(t, "\tpage->private = nid;\n")
        })
        .or_unproven(),
        carried("single-has-another-comment", |t| {
            in_single(t, "\t/* Says the corpus. */\n")
        }),
        carried("single-has-another-blank-line", |t| in_single(t, "\n\n")),
        carried("single-in-another-order", |t| {
            let (one, two) = (
                "\tpage_cpupid_reset_last(page);\n",
                "\tpage_kasan_tag_reset(page);\n",
            );
            t.within(SINGLE, &format!("{one}{two}"), &format!("{two}{one}"))
        })
        .or_unproven(),
        carried("single-with-a-parameter-renamed", |t| {
            t.rename_in(SINGLE, "nid", "node")
        })
        .or_unproven(),
        carried("single-with-a-helper-between", |t| {
            t.within(
                SINGLE,
                "\tinit_page_count(page);\n",
                "\tinit_first_count(page);\n",
            )?;
            t.before(
                SINGLE,
                "static inline void init_first_count(struct page *page)\n{\n\tinit_page_count(page);\n}\n",
            )
        })
        .or_unproven(),
        refused("single-with-a-helper-that-stores-pfn", |t| {
            t.within(
                SINGLE,
                "\tinit_page_count(page);\n",
                "\tinit_first_count(page, pfn);\n",
            )?;
            t.before(
                SINGLE,
                "static inline void init_first_count(struct page *page, unsigned long pfn)\n{\n\tset_page_count(page, 1 + (pfn & 1));\n}\n",
            )
        }),
    ]
}

fn below_single() -> Vec<Kind> {
    vec![
        refused("links-store-pfn", |t| {
            let flags = t.flags("page")?;
            t.at_end(LINKS, &format!("\t{flags} |= (pfn & 1) << PG_arch_1;\n"))
        }),
        carried("links-store-a-flag", |t| {
            let flags = t.flags("page")?;
            t.at_end(LINKS, &format!("\t{flags} |= 1UL << PG_arch_1;\n"))
        })
        .or_unproven(),
        carried("links-have-a-comment", |t| {
            t.at_end(LINKS, "\t/* Says the corpus. */\n")
        }),
        refused("node-depends-on-the-address", |t| {
            let flags = t.flags("page")?;
            t.at_end(
                "set_page_node",
                &format!("\t{flags} |= ((unsigned long)page >> 6 & 1) << PG_arch_1;\n"),
            )
        }),
        refused("first-count-depends-on-the-address", |t| {
            t.within(
                "init_page_count",
                "set_page_count(page, 1);",
                "set_page_count(page, 1 + ((unsigned long)page >> 6 & 1));",
            )
        }),
        carried("first-count-is-two", |t| {
            t.within(
                "init_page_count",
                "set_page_count(page, 1);",
                "set_page_count(page, 2);",
            )
        })
        .or_unproven(),
        refused("count-tells-somebody", |t| {
            t.at_end("set_page_count", "\tnote_device_page(page, v);\n")?;
            declare_note(t, "include/linux/page_ref.h")
        }),
        refused("macro-around-reserved", |t| {
            t.append_header(
                INTERNAL,
                "#define __SetPageReserved(page) do { __SetPageReserved(page); (page)->private = page_to_pfn(page) & 3; } while (0)\n",
            )
        }),
        refused("macro-around-single", |t| {
            t.before(
                PAGE,
                "#define __init_single_page(page, pfn, zone, nid) \\\n\
                 \tdo { (__init_single_page)(page, pfn, zone, nid); (page)->private = (pfn); } while (0)\n",
            )
        }),
        refused("zeroing-leaves-a-word", |t| {
            t.within("__mm_zero_struct_page", "\t\t_pp[7] = 0;\n", "")
        }),
        carried("zeroing-with-another-comment", |t| {
            t.within(
                "__mm_zero_struct_page",
                "\tunsigned long *_pp = (void *)page;\n",
                "\tunsigned long *_pp = (void *)page;\t/* says the corpus */\n",
            )
        }),
        carried("vmemmap-nr-without-sign", |t| {
            t.within(
                "pgmap_vmemmap_nr",
                "return 1 << pgmap->vmemmap_shift;",
                "return 1UL << pgmap->vmemmap_shift;",
            )
        })
        .or_unproven(),
        carried("altmap-offset-written-differently", |t| {
            t.edit_function("vmem_altmap_offset", |text| {
                let at = text.find("return ")?;
                Some(format!(
                    "{}return 0 + {}",
                    &text[..at],
                    &text[at + "return ".len()..]
                ))
            })
        })
        .or_unproven(),
        carried("tracepoint-macro-in-parentheses", |t| {
            t.replace(
                "include/linux/page_ref.h",
                "#define page_ref_tracepoint_active(t) tracepoint_enabled(t)",
                "#define page_ref_tracepoint_active(t) (tracepoint_enabled(t))",
            )
        })
        .or_unproven(),
    ]
}

fn compound() -> Vec<Kind> {
    vec![
        refused("tail-stores-its-index", |t| {
            in_tail(
                t,
                "\tset_page_private(p, tail_idx);\n",
                "\ttail->private = tail - head;\n",
            )
        }),
        refused("tail-keeps-its-own-address", |t| {
            in_tail(
                t,
                "\tset_page_private(p, (unsigned long)p);\n",
                "\ttail->private = (unsigned long)tail;\n",
            )
        }),
        refused("tail-marks-every-fourth", |t| {
            in_tail(
                t,
                "\tif (!(tail_idx & 3))\n\t\tset_page_private(p, 1);\n",
                "\tif (!((tail - head) & 3))\n\t\ttail->private = 1;\n",
            )
        }),
        refused("tail-tells-somebody", |t| {
            in_tail(
                t,
                "\tnote_device_page(p, 1);\n",
                "\tnote_device_page(tail, 1);\n",
            )?;
            let path = t.file_of(TAIL)?;
            t.before(
                TAIL,
                "void note_device_page(struct page *page, unsigned long value);\n",
            )?;
            t.text(&path).map(drop)
        }),
        carried("tail-stores-a-constant", |t| {
            in_tail(t, "\tset_page_private(p, 4);\n", "\ttail->private = 4;\n")
        })
        .or_unproven(),
        carried("tail-has-another-comment", |t| {
            in_tail(
                t,
                "\t/* Says the corpus. */\n",
                "\t/* Says the corpus. */\n",
            )
        }),
        refused("head-writes-to-the-sixth-page", |t| {
            head_comes_last(t)?;
            t.at_end(HEAD, "\tif (order > 2)\n\t\tpage[5].private = order;\n")
        }),
        refused("head-writes-to-the-last-tail", |t| {
            head_comes_last(t)?;
            t.at_end(
                HEAD,
                "\tif (order > 3)\n\t\tpage[(1UL << order) - 1].private = order;\n",
            )
        }),
        refused("head-writes-to-every-tail", |t| {
            head_comes_last(t)?;
            t.at_end(
                HEAD,
                "\tif (order < 10) {\n\t\tunsigned int nr;\n\n\t\tfor (nr = 1; nr < 1U << order; nr++)\n\t\t\tpage[nr].private = nr;\n\t}\n",
            )
        }),
        carried("head-writes-to-the-second-tail", |t| {
            t.at_end(HEAD, "\tif (order > 1)\n\t\tpage[2].private = order;\n")
        })
        .or_unproven(),
        carried("head-stores-its-order", |t| {
            t.at_end(HEAD, "\tpage->private = order;\n")
        })
        .or_unproven(),
        refused("head-stores-into-the-template-tail", |t| {
            // The tail that all others are copied from is the one behind those that struct folio covers.
            head_comes_last(t)?;
            t.at_end(HEAD, "\tif (order > 2)\n\t\tpage[4].private = 1;\n")
        }),
        carried("compound-nr-pages-written-differently", |t| {
            t.edit_function("compound_nr_pages", |text| {
                let at = text.rfind("\treturn ")?;
                Some(format!(
                    "{}\tif (!pgmap->vmemmap_shift)\n\t\treturn 1;\n{}",
                    &text[..at],
                    &text[at..]
                ))
            })
        })
        .or_unproven(),
        carried("compound-nr-pages-halved", |t| {
            t.within(
                "compound_nr_pages",
                "return VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page));",
                "return VMEMMAP_RESERVE_NR * (PAGE_SIZE / sizeof(struct page)) / 2;",
            )
        })
        .or_unproven(),
    ]
}

fn layout() -> Vec<Kind> {
    vec![
        refused("pgmap-does-not-overlay-the-list", |t| {
            t.edit(TYPES, |text| {
                let at = text.find("\t\tstruct {\t/* ZONE_DEVICE pages */\n")?;
                let field = at + text[at..].find("\t\t\tvoid *zone_device_data;\n")?;
                Some(format!(
                    "{}\t\t\tvoid *zone_device_owner;\n{}",
                    &text[..field],
                    &text[field..]
                ))
            })
        }),
        carried("struct-page-grows", |t| {
            t.edit(TYPES, |text| {
                let at = text.find("} _struct_page_alignment;")?;
                Some(format!(
                    "{}\tunsigned long corpus[2];\n{}",
                    &text[..at],
                    &text[at..]
                ))
            })
        })
        .or_unproven(),
        refused("struct-page-grows-by-what-depends-on-pfn", |t| {
            t.edit(TYPES, |text| {
                let at = text.find("} _struct_page_alignment;")?;
                Some(format!(
                    "{}\tunsigned long corpus[2];\n{}",
                    &text[..at],
                    &text[at..]
                ))
            })?;
            in_single(t, "\tpage->corpus[1] = pfn;\n")
        }),
        carried("struct-page-with-another-comment", |t| {
            t.edit(TYPES, |text| {
                let at = text.find("\n\tunion {\t\t/* This union is 4 bytes in size. */")?;
                Some(format!(
                    "{}\n\t/* Says the corpus. */{}",
                    &text[..at],
                    &text[at..]
                ))
            })
        }),
        carried("pagemap-gains-a-field", |t| {
            t.replace(
                MEMREMAP,
                "\tunsigned long vmemmap_shift;\n\tconst struct dev_pagemap_ops *ops;\n",
                "\tunsigned long vmemmap_shift;\n\tunsigned long corpus;\n\tconst struct dev_pagemap_ops *ops;\n",
            )
        })
        .or_unproven(),
        carried("memory-types-renumbered", |t| {
            t.replace(MEMREMAP, "MEMORY_DEVICE_PRIVATE = 1,", "MEMORY_DEVICE_PRIVATE = 3,")
        })
        .or_unproven(),
        carried("altmap-gains-a-field", |t| {
            t.replace(
                MEMREMAP,
                "\tunsigned long alloc;\n",
                "\tunsigned long alloc;\n\tunsigned long corpus;\n",
            )
        })
        .or_unproven(),
        carried("folio-gains-a-page", |t| {
            t.edit(TYPES, |text| {
                let at = text.find("\t\tstruct page __page_3;\n\t};\n")?;
                let at = at + "\t\tstruct page __page_3;\n\t};\n".len();
                Some(format!(
                    "{}\tstruct page __page_4;\n{}",
                    &text[..at],
                    &text[at..]
                ))
            })
        })
        .or_unproven(),
        carried("a-comment-in-another-header", |t| {
            t.append_header(MM, "/* Says the corpus. */\n")
        }),
        carried("an-unrelated-function-in-a-header", |t| {
            t.append_header(
                MM,
                "static inline int corpus_says(void)\n{\n\treturn 1;\n}\n",
            )
        }),
    ]
}
