//! Text that the series moves to another function: what it uses there, how it leaves, and what it is moved past.

use super::{
    COUNT, DATA, Kind, blocks_in_page, carried, count_if, either, in_page, one_block, refused,
};
use crate::tree::{COMPOUND, PAGE, Tree};

/// A statement at the very end of the page function.
fn at_end_of_page(tree: &mut Tree, code: &str) -> Option<()> {
    tree.at_end(PAGE, code)
}

/// A statement in front of the one that counts, in a `switch`.
fn in_case(tree: &mut Tree, code: &str) -> Option<()> {
    tree.by_switch().then_some(())?;
    tree.within(PAGE, COUNT, &format!("{code}{COUNT}"))
}

/// The set-up of the pageblock in the page function, in front of the stores.
fn block_before_stores(tree: &mut Tree, inside: &str) -> Option<()> {
    let call = one_block(tree);
    super::no_blocks_in_range(tree)?;
    let block = format!("\tif (pageblock_aligned(pfn)) {{\n\t\t{call}\n{inside}\t}}\n{DATA}");
    tree.within(PAGE, DATA, &block)
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = refcount();
    kinds.extend(leaves());
    kinds.extend(pageblock());
    kinds.extend(tail());
    kinds
}

fn refcount() -> Vec<Kind> {
    vec![
        refused("refcount-uses-nid", |t| count_if(t, "nid != 3")),
        refused("refcount-uses-the-zone", |t| {
            count_if(t, "zone_idx == ZONE_DEVICE")
        }),
        refused("refcount-uses-pfn", |t| count_if(t, "pfn & 1")),
        refused("refcount-uses-a-macro-of-pfn", |t| {
            t.before(PAGE, "#define is_odd_frame (pfn & 1)\n")?;
            count_if(t, "is_odd_frame")
        }),
        refused("refcount-uses-a-macro-of-nid", |t| {
            t.before(PAGE, "#define on_this_node (nid == 0)\n")?;
            count_if(t, "on_this_node")
        }),
        refused("refcount-uses-a-macro-of-page", |t| {
            t.before(PAGE, "#define is_odd_page ((unsigned long)page >> 6 & 1)\n")?;
            count_if(t, "is_odd_page")
        }),
        either("refcount-uses-a-global", |t| {
            t.before(PAGE, "static bool zone_device_frozen = true;\n")?;
            count_if(t, "zone_device_frozen")
        }),
        either("refcount-uses-an-enum-constant", |t| {
            t.before(PAGE, "enum { ZONE_DEVICE_FROZEN = 1 };\n")?;
            count_if(t, "ZONE_DEVICE_FROZEN")
        }),
        refused("refcount-counts-in-a-static", |t| {
            in_case(t, "\t\t{ static int nr; page->private = nr; nr += 1; }\n")
        }),
        carried("refcount-with-a-local-of-its-own", |t| {
            in_case(t, "\t\t{ int none = 0; page->private = none; }\n")
        })
        .or_unproven(),
        carried("refcount-with-another-default", |t| {
            t.by_switch().then_some(())?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tbreak;\n",
                "\tcase MEMORY_DEVICE_GENERIC:\n\tdefault:\n\t\tbreak;\n",
            )
        }),
        refused("refcount-says-where-it-is", |t| {
            in_case(t, "\t\tpage->private = __LINE__;\n")
        }),
        refused("refcount-says-what-function-it-is-in", |t| {
            in_case(t, "\t\tpage->private = sizeof(__func__);\n")
        }),
        refused("refcount-before-what-it-reads", |t| {
            // A later store must not come earlier than the rule that reads it.
            t.by_switch().then_some(())?;
            in_page(t, "\tpage->private = 0;\n")?;
            in_case(
                t,
                "\t\tif (page->private & 1)\n\t\t\tpage->private = pfn;\n",
            )
        }),
    ]
}

fn leaves() -> Vec<Kind> {
    vec![
        refused("refcount-returns-past-a-store", |t| {
            t.by_switch().then_some(())?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tbreak;\n",
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\treturn;\n",
            )?;
            at_end_of_page(t, "\tpage->private = 7;\n")
        }),
        either("refcount-returns-at-the-end", |t| {
            t.by_switch().then_some(())?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tbreak;\n",
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\treturn;\n",
            )
        }),
        refused("refcount-returns-in-a-macro", |t| {
            in_case(t, "\t\tleave_if(page->private);\n")?;
            t.before(
                PAGE,
                "#define leave_if(condition) do { if (!(condition)) return; } while (0)\n",
            )?;
            at_end_of_page(t, "\tpage->private = 7;\n")
        }),
        refused("refcount-returns-in-a-macro-without-arguments", |t| {
            t.by_switch().then_some(())?;
            t.before(PAGE, "#define DONE return\n")?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tbreak;\n",
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tDONE;\n",
            )?;
            at_end_of_page(t, "\tpage->private = 7;\n")
        }),
        refused("refcount-goes-to-a-label-behind", |t| {
            t.by_switch().then_some(())?;
            t.within(
                PAGE,
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tbreak;\n",
                "\tcase MEMORY_DEVICE_GENERIC:\n\t\tgoto out;\n",
            )?;
            at_end_of_page(t, "\tpage->private = 7;\nout:\n\treturn;\n")
        }),
        refused("refcount-in-a-loop-it-continues", |t| {
            // The rule is inside of a loop that it leaves.
            in_case(t, "\t\tif (pgmap->nr_range == 77)\n\t\t\tgoto again;\n")?;
            t.within(PAGE, DATA, &format!("again:\n{DATA}"))
        }),
    ]
}

fn pageblock() -> Vec<Kind> {
    vec![
        carried("pageblock-in-the-page-function", |t| {
            blocks_in_page(t, "", "")
        })
        .or_unproven(),
        carried("pageblock-in-the-page-function-with-resched", |t| {
            blocks_in_page(t, "", "\t\tcond_resched();\n")
        })
        .or_unproven(),
        carried("pageblock-in-the-page-function-with-comment", |t| {
            blocks_in_page(t, "\t\t/* Says the corpus. */\n", "")
        })
        .or_unproven(),
        refused("pageblock-uses-nid", |t| {
            blocks_in_page(t, "", "\t\tif (nid == 5)\n\t\t\tcond_resched();\n")
        }),
        refused("pageblock-uses-pgmap", |t| {
            blocks_in_page(
                t,
                "",
                "\t\tif (pgmap->vmemmap_shift)\n\t\t\tcond_resched();\n",
            )
        }),
        refused("pageblock-uses-the-zone", |t| {
            blocks_in_page(t, "", "\t\tif (zone_idx)\n\t\t\tcond_resched();\n")
        }),
        refused("pageblock-returns-past-a-store", |t| {
            block_before_stores(t, "\t\treturn;\n")
        }),
        refused("pageblock-stores-what-is-stored-later", |t| {
            block_before_stores(t, "\t\tpage->zone_device_data = pgmap;\n")
        }),
        refused("pageblock-stores-into-the-page", |t| {
            blocks_in_page(t, "", "\t\tpage->private = 1;\n")
        }),
        refused("pageblock-reads-what-is-stored-later", |t| {
            blocks_in_page(t, "", "")?;
            let call = one_block(t);
            let new = call.replace(
                "MIGRATE_MOVABLE",
                "page->private ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE",
            );
            t.within(PAGE, call, &new)?;
            at_end_of_page(t, "\tpage->private = 5;\n")
        }),
        refused("pageblock-of-its-count", |t| {
            // What the refcount rule wrote decides; for a tail the count changes again later.
            blocks_in_page(t, "", "")?;
            let call = one_block(t);
            let new = call.replace(
                "MIGRATE_MOVABLE",
                "atomic_read(&page->_refcount) ? MIGRATE_MOVABLE : MIGRATE_UNMOVABLE",
            );
            t.within(PAGE, call, &new)
        }),
        either("pageblock-before-the-stores", |t| {
            block_before_stores(t, "")
        }),
        refused("pageblock-with-an-else", |t| {
            blocks_in_page(t, "", "")?;
            t.at_end(PAGE, "\telse {\n\t\tpage->private = 3;\n\t}\n")
        }),
        either("pageblock-without-braces", |t| {
            let call = one_block(t);
            super::no_blocks_in_range(t)?;
            t.at_end(
                PAGE,
                &format!("\n\tif (pageblock_aligned(pfn))\n\t\t{call}\n"),
            )
        }),
        refused("pageblock-every-other", |t| {
            let call = one_block(t);
            super::no_blocks_in_range(t)?;
            t.at_end(
                PAGE,
                &format!("\n\tif (pageblock_aligned(pfn) && nid) {{\n\t\t{call}\n\t}}\n"),
            )
        }),
    ]
}

fn tail() -> Vec<Kind> {
    vec![
        either("tail-with-a-cast-order", |t| {
            t.within(
                COMPOUND,
                "prep_compound_tail(page, head, order);",
                "prep_compound_tail(page, head, (unsigned int)order);",
            )
        }),
        refused("tail-count-depends-on-pfn", |t| {
            t.within(
                COMPOUND,
                "set_page_count(page, 0);",
                "set_page_count(page, pfn & 1);",
            )
        }),
        refused("tail-count-comes-first", |t| {
            let init = "\t\t__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);\n";
            t.within(COMPOUND, COUNT, "")?;
            t.within(COMPOUND, init, &format!("{COUNT}{init}"))
        }),
        refused("tail-of-another-order", |t| {
            t.within(
                COMPOUND,
                "prep_compound_tail(page, head, order);",
                "prep_compound_tail(page, head, order + (pfn & 1));",
            )
        }),
        refused("tail-leaves-the-loop", |t| {
            t.behind(
                COMPOUND,
                COUNT,
                "\t\tif (pfn == head_pfn + 9)\n\t\t\tbreak;\n",
            )
        }),
        refused("tail-skips-some", |t| {
            t.within(
                COMPOUND,
                "\t\t__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);\n",
                "\t\tif (pfn == head_pfn + 9)\n\t\t\tcontinue;\n\t\t__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);\n",
            )
        }),
    ]
}
