//! What the recipe's captures accept: positions, arguments, fields and values.

use super::{Kind, carried, either, in_page, refused};
use crate::tree::{COMPOUND, PAGE, RANGE, Tree};

/// Where the head is prepared in the loop over the tails, at another tail.
fn head_at(tree: &mut Tree, position: &str) -> Option<()> {
    tree.edit_function(COMPOUND, |text| {
        let at = text.find("if (pfn == head_pfn + ")? + "if (pfn == ".len();
        let end = at + text[at..].find(")\n")?;
        Some(format!("{}{position}{}", &text[..at], &text[end..]))
    })
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = positions();
    kinds.extend(arguments());
    kinds.extend(stores());
    kinds
}

fn positions() -> Vec<Kind> {
    vec![
        refused("head-at-the-seventh-tail", |t| head_at(t, "head_pfn + 7")),
        refused("head-at-the-last-tail", |t| {
            head_at(t, "head_pfn + nr_pages - 1")
        }),
        refused("head-at-a-tail-by-order", |t| {
            head_at(t, "head_pfn + order")
        }),
        refused("head-at-the-hundredth-tail", |t| {
            head_at(t, "head_pfn + 0x64")
        }),
        refused("head-at-a-tail-by-macro", |t| {
            t.before(COMPOUND, "#define HEAD_AT 9\n")?;
            head_at(t, "head_pfn + HEAD_AT")
        }),
        refused("head-at-a-tail-in-parentheses", |t| {
            head_at(t, "head_pfn + (3 + 5)")
        }),
        either("head-at-the-first-tail", |t| head_at(t, "head_pfn + 1")),
        either("head-at-the-second-tail", |t| head_at(t, "head_pfn + 2")),
        either("head-at-no-tail", |t| head_at(t, "head_pfn + 0")),
        carried("head-after-the-loop", |t| {
            t.edit_function(COMPOUND, |text| {
                let at = text.find("\t\tif (pfn == head_pfn + ")?;
                let call = "prep_compound_head(head, order);\n";
                let end = at + text[at..].find(call)? + call.len();
                Some(format!(
                    "{}{}\tprep_compound_head(head, order);\n}}\n",
                    &text[..at],
                    text[end..].strip_suffix("}\n")?
                ))
            })
        }),
        carried("head-in-the-loop", |t| {
            t.within(COMPOUND, "\tprep_compound_head(head, order);\n}", "}")?;
            t.behind(
                COMPOUND,
                "\t\tset_page_count(page, 0);\n",
                "\n\t\tif (pfn == head_pfn + 1)\n\t\t\tprep_compound_head(head, order);\n",
            )
        })
        .or_unproven(),
        refused("head-before-the-loop", |t| {
            t.within(COMPOUND, "\tprep_compound_head(head, order);\n}", "}")?;
            t.behind(
                COMPOUND,
                "\t__SetPageHead(head);\n",
                "\tprep_compound_head(head, order);\n",
            )
        }),
    ]
}

fn arguments() -> Vec<Kind> {
    vec![
        carried("compound-nr-pages-without-pfn", |t| {
            t.edit_function("compound_nr_pages", |text| {
                let at = text.find("unsigned long pfn,\n")?;
                let next = at + text[at..].find("struct vmem_altmap")?;
                Some(
                    format!("{}{}", &text[..at], &text[next..])
                        .replace("early_section(__pfn_to_section(pfn)) ||\n", "!pgmap ||\n"),
                )
            })?;
            t.within(
                RANGE,
                "compound_nr_pages(pfn, altmap, pgmap)",
                "compound_nr_pages(altmap, pgmap)",
            )
        })
        .or_unproven(),
        carried("compound-nr-pages-with-one-more", |t| {
            t.edit_function("compound_nr_pages", |text| {
                text.contains("struct dev_pagemap *pgmap)\n").then(|| {
                    text.replacen(
                        "struct dev_pagemap *pgmap)\n",
                        "struct dev_pagemap *pgmap, int nid)\n",
                        1,
                    )
                })
            })?;
            t.within(
                RANGE,
                "compound_nr_pages(pfn, altmap, pgmap)",
                "compound_nr_pages(pfn, altmap, pgmap, nid)",
            )
        })
        .or_unproven(),
        either("compound-nr-pages-changes-what-it-gets", |t| {
            t.within(
                RANGE,
                "compound_nr_pages(pfn, altmap, pgmap)",
                "compound_nr_pages(pfn, altmap, pgmap) + (zone_idx += 0)",
            )
        }),
        carried("pageblocks-of-another-type", |t| {
            t.within(RANGE, "MIGRATE_MOVABLE", "MIGRATE_UNMOVABLE")
        })
        .or_unproven(),
        carried("pageblocks-with-one-more-argument", |t| {
            let path = t.file_of("pageblock_migratetype_init_range")?;
            t.edit_function("pageblock_migratetype_init_range", |text| {
                text.contains("int migratetype)")
                    .then(|| text.replacen("int migratetype)", "int migratetype, int nid)", 1))
            })?;
            t.within(RANGE, "MIGRATE_MOVABLE)", "MIGRATE_MOVABLE, nid)")?;
            t.text(&path).map(drop)
        })
        .or_unproven(),
        either("pageblocks-with-a-side-effect", |t| {
            t.within(RANGE, "MIGRATE_MOVABLE", "(nr_pages += 0, MIGRATE_MOVABLE)")
        }),
        carried("report-in-other-words", |t| {
            t.within(
                RANGE,
                "initialised %lu pages in %ums",
                "initialized %lu pages, took %u ms",
            )
        }),
        carried("report-of-one-thing-more", |t| {
            t.within(
                RANGE,
                "in %ums\\n\", __func__,",
                "in %ums on node %d\\n\", __func__,",
            )?;
            t.within(
                RANGE,
                "jiffies_to_msecs(jiffies - start));",
                "jiffies_to_msecs(jiffies - start), nid);",
            )
        }),
        either("report-changes-a-local", |t| {
            t.within(
                RANGE,
                "jiffies_to_msecs(jiffies - start));",
                "jiffies_to_msecs(jiffies - start++));",
            )
        }),
    ]
}

fn stores() -> Vec<Kind> {
    vec![
        carried("stores-a-constant", |t| {
            in_page(t, "\tpage->private = 0x77;\n")
        }),
        carried("stores-the-node", |t| {
            in_page(t, "\tpage->private = nid;\n")
        }),
        carried("stores-the-zone", |t| {
            in_page(t, "\tpage->private = zone_idx << 3;\n")
        }),
        carried("stores-the-pagemap", |t| {
            in_page(t, "\tset_page_private(page, (unsigned long)pgmap);\n")
        }),
        carried("stores-an-address-in-the-pagemap", |t| {
            in_page(t, "\tpage->private = (unsigned long)&pgmap->altmap;\n")
        }),
        carried("stores-a-field-of-the-pagemap", |t| {
            in_page(t, "\tpage->private = pgmap->vmemmap_shift;\n")
        }),
        carried("stores-the-mapcount", |t| {
            in_page(t, "\tatomic_set(&page->_mapcount, 5);\n")
        }),
        carried("stores-the-count-again", |t| {
            t.at_end(PAGE, "\tset_page_count(page, 3);\n")
        }),
        either("stores-a-size-of-page", |t| {
            in_page(t, "\tpage->private = sizeof(*page);\n")
        }),
        either("stores-twice-in-one-statement", |t| {
            in_page(t, "\tpage->private = page->mapping = NULL, 0;\n")
        }),
        refused("stores-an-offset-of-the-page", |t| {
            in_page(
                t,
                "\tpage->private = (unsigned long)&page->private & 0xfff;\n",
            )
        }),
        refused("stores-into-the-next-page", |t| {
            in_page(t, "\tpage[1].private = 1;\n")
        }),
        refused("stores-into-the-first-page", |t| {
            in_page(t, "\tpfn_to_page(pfn & ~7UL)->private = 1;\n")
        }),
        refused("stores-by-field-of-the-page-itself", |t| {
            in_page(t, "\tpage->private = page->_mapcount.counter;\n")
        }),
        refused("stores-back-into-the-pagemap", |t| {
            in_page(
                t,
                "\tpgmap->nr_range++;\n\tpage->private = pgmap->nr_range;\n",
            )
        }),
        carried("stores-before-single", |t| {
            // It is overwritten at once, in the base and in the template.
            t.within(
                PAGE,
                "\t__init_single_page(page, pfn, zone_idx, nid);\n",
                "\tpage->private = 9;\n\t__init_single_page(page, pfn, zone_idx, nid);\n",
            )
        })
        .or_unproven(),
        refused("stores-if-the-page-is-odd", |t| {
            in_page(t, "\tpage->private = pfn % 2 ? 1 : 0;\n")
        }),
        either("stores-through-a-conditional", |t| {
            in_page(
                t,
                "\tpage->private = pgmap->type == MEMORY_DEVICE_GENERIC ? 1 : 2;\n",
            )
        }),
    ]
}
