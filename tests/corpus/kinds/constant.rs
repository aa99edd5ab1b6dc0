//! Values that only look as if they were the same for every page.

use super::{INTERNAL, Kind, carried, either, in_page, refused};
use crate::tree::{PAGE, Tree};

/// Stores `value` into each page, with `code` in front of the page function.
fn stores(tree: &mut Tree, value: &str, code: &str) -> Option<()> {
    in_page(tree, &format!("\tpage->private = {value};\n"))?;
    if code.is_empty() {
        return Some(());
    }
    tree.before(PAGE, code)
}

/// Has the count that is passed by change something for each compound page.
fn compound_changes(tree: &mut Tree, statement: &str) -> Option<()> {
    tree.edit_function("compound_nr_pages", |text| {
        let at = text.find("\n{\n")? + 3;
        Some(format!("{}\t{statement}\n{}", &text[..at], &text[at..]))
    })
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = hidden();
    kinds.extend(changing());
    kinds.extend(constant());
    kinds
}

fn hidden() -> Vec<Kind> {
    vec![
        refused("macro-hides-pfn", |t| {
            stores(t, "zone_device_tag", "#define zone_device_tag (pfn & 7)\n")
        }),
        refused("macro-in-a-header-hides-pfn", |t| {
            t.append_header(INTERNAL, "#define ZONE_DEVICE_TAG (pfn & 7)\n")?;
            stores(t, "ZONE_DEVICE_TAG", "")
        }),
        refused("macro-of-a-macro-hides-pfn", |t| {
            stores(
                t,
                "ZONE_DEVICE_TAG",
                "#define ZONE_DEVICE_FRAME pfn\n#define ZONE_DEVICE_TAG (ZONE_DEVICE_FRAME & 7)\n",
            )
        }),
        refused("macro-hides-page", |t| {
            stores(
                t,
                "own_address",
                "#define own_address ((unsigned long)page)\n",
            )
        }),
        refused("macro-with-arguments-hides-pfn", |t| {
            stores(t, "tag_of(3)", "#define tag_of(mask) (pfn & (mask))\n")
        }),
        refused("macro-hides-a-call", |t| {
            stores(
                t,
                "NEXT_TAG",
                "static noinline unsigned long next_tag(void)\n{\n\tstatic unsigned long tag;\n\n\treturn tag++;\n}\n\n#define NEXT_TAG next_tag()\n",
            )
        }),
        refused("macro-hides-the-time", |t| {
            stores(t, "ZONE_DEVICE_NOW", "#define ZONE_DEVICE_NOW jiffies\n")
        }),
        refused("macro-hides-a-line", |t| {
            stores(t, "HERE", "#define HERE __LINE__\n")
        }),
        refused("a-line-number", |t| stores(t, "__LINE__", "")),
        refused("macro-is-the-name-of-the-page", |t| {
            // What reads like a field of the map is one of the page.
            stores(
                t,
                "map_of_page->private",
                "#define map_of_page (page + 1)\n",
            )
        }),
        refused("macro-named-like-a-field", |t| {
            stores(
                t,
                "pgmap->corpus_flags",
                "#define corpus_flags flags + (pfn & 7)\n",
            )
        }),
        refused("macro-named-like-a-constant", |t| {
            stores(t, "MAX_ZONE_TAG", "#define MAX_ZONE_TAG pfn\n")
        }),
        refused("a-call", |t| {
            stores(
                t,
                "next_tag()",
                "static noinline unsigned long next_tag(void)\n{\n\tstatic unsigned long tag;\n\n\treturn tag++;\n}\n",
            )
        }),
        refused("a-statement-expression", |t| {
            stores(t, "({ unsigned long x = pfn; x & 7; })", "")
        }),
    ]
}

fn changing() -> Vec<Kind> {
    vec![
        refused("the-time", |t| stores(t, "jiffies", "")),
        refused("the-time-in-an-expression", |t| {
            stores(t, "(jiffies << 1) + 1", "")
        }),
        refused("a-global-that-changes", |t| {
            stores(t, "zone_device_round", "")?;
            compound_changes(t, "zone_device_round++;\n")?;
            t.before_includes(&t.home(), "static unsigned long zone_device_round;\n")
        }),
        refused("a-volatile-global", |t| {
            stores(t, "zone_device_round", "")?;
            compound_changes(t, "zone_device_round++;\n")?;
            t.before_includes(
                &t.home(),
                "static volatile unsigned long zone_device_round;\n",
            )
        }),
        refused("an-element-that-changes", |t| {
            stores(t, "zone_device_rounds[1]", "")?;
            compound_changes(t, "zone_device_rounds[1] += 3;\n")?;
            t.before_includes(&t.home(), "static unsigned long zone_device_rounds[2];\n")
        }),
        refused("a-field-of-a-global-that-changes", |t| {
            stores(t, "zone_device_state.round", "")?;
            compound_changes(t, "zone_device_state.round++;\n")?;
            t.before_includes(
                &t.home(),
                "static struct { unsigned long round; } zone_device_state;\n",
            )
        }),
        refused("what-a-pointer-leads-to-changes", |t| {
            stores(t, "*zone_device_round", "")?;
            compound_changes(t, "(*zone_device_round)++;\n")?;
            t.before_includes(&t.home(),
                "static unsigned long zone_device_rounds;\nstatic unsigned long *zone_device_round = &zone_device_rounds;\n",
            )
        }),
        refused("a-field-of-the-pagemap-that-changes", |t| {
            stores(t, "pgmap->nr_range", "")?;
            compound_changes(t, "pgmap->nr_range++;\n")
        }),
        refused("read-once-of-what-changes", |t| {
            stores(t, "READ_ONCE(zone_device_round)", "")?;
            compound_changes(t, "zone_device_round++;\n")?;
            t.before_includes(&t.home(), "static unsigned long zone_device_round;\n")
        }),
        refused("a-global-that-single-changes", |t| {
            stores(t, "zone_device_singles", "")?;
            t.at_end("set_page_links", "\tzone_device_singles++;\n")?;
            t.before(
                "set_page_links",
                "static unsigned long __maybe_unused zone_device_singles;\n",
            )?;
            // Only where the function that is called is in the same object.
            (t.file_of("__init_single_page")? == t.home()).then_some(())
        }),
    ]
}

fn constant() -> Vec<Kind> {
    vec![
        carried("an-enum-constant", |t| {
            stores(
                t,
                "ZONE_DEVICE_MAGIC",
                "enum { ZONE_DEVICE_MAGIC = 0x5a };\n",
            )
        })
        .or_unproven(),
        carried("a-macro-of-a-number", |t| {
            stores(t, "ZONE_DEVICE_MAGIC", "#define ZONE_DEVICE_MAGIC 0x5a\n")
        })
        .or_unproven(),
        either("a-macro-of-the-kernel", |t| stores(t, "PAGE_SIZE", "")),
        carried("a-sum-of-numbers", |t| stores(t, "(1UL << 5) + 3", "")),
        carried("a-character", |t| stores(t, "'x'", "")),
        either("an-element-of-a-constant-table", |t| {
            stores(
                t,
                "zone_device_tags[nid & 1]",
                "static const unsigned long zone_device_tags[2] = { 3, 4 };\n",
            )
        }),
        either("a-global-that-stays", |t| {
            stores(
                t,
                "zone_device_tag",
                "static const unsigned long zone_device_tag = 5;\n",
            )
        }),
        either("whether-an-option-is-on", |t| {
            stores(t, "IS_ENABLED(CONFIG_NUMA)", "")
        }),
        either("a-size", |t| stores(t, "sizeof(struct folio)", "")),
    ]
}
