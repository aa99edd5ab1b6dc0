//! Other users of a function whose parameters or effect the series changes, and mentions that are none.

use super::{
    INTERNAL, Kind, blocks_in_page, carried, either, no_blocks_in_range, refused, second_caller,
};
use crate::tree::{COMPOUND, PAGE, RANGE, Tree};

const PAGE_PROTOTYPE: &str = "void __init_zone_device_page(struct page *page, unsigned long pfn,\n\
                              \t\t\t      unsigned long zone_idx, int nid,\n\
                              \t\t\t      struct dev_pagemap *pgmap);\n";
const COMPOUND_PROTOTYPE: &str = "void memmap_init_compound(struct page *head, unsigned long head_pfn,\n\
                                  \t\t\t  unsigned long zone_idx, int nid,\n\
                                  \t\t\t  struct dev_pagemap *pgmap, unsigned long nr_pages);\n";
const CALL: &str = "memmap_init_compound(pfn_to_page(pfn), pfn, ZONE_DEVICE, 0, pgmap, nr_pages);";

/// A function behind the range function that calls for the tails of one compound page.
fn calls_compound(call: &str) -> String {
    format!(
        "void memmap_init_one_compound(unsigned long pfn, struct dev_pagemap *pgmap, unsigned long nr_pages);\n\
         void __ref memmap_init_one_compound(unsigned long pfn, struct dev_pagemap *pgmap, unsigned long nr_pages)\n\
         {{\n\t{call}\n}}\n"
    )
}

fn not_static(tree: &mut Tree, name: &str) -> Option<()> {
    tree.edit_function(name, |text| text.strip_prefix("static ").map(str::to_owned))
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = page();
    kinds.extend(compound());
    kinds.extend(mentions());
    kinds
}

fn page() -> Vec<Kind> {
    vec![
        carried("page-has-a-second-caller", |t| {
            t.after(RANGE, &second_caller("memmap_reinit_zone_device"))
        })
        .or_unproven()
        .entry("memmap_reinit_zone_device"),
        refused("second-caller-relies-on-the-pageblocks", |t| {
            blocks_in_page(t, "", "\t\tcond_resched();\n")?;
            t.after(RANGE, &second_caller("memmap_reinit_zone_device"))
        })
        .entry("memmap_reinit_zone_device"),
        refused("caller-in-another-file-relies-on-the-pageblocks", |t| {
            blocks_in_page(t, "", "")?;
            not_static(t, PAGE)?;
            t.append_header(INTERNAL, &format!("struct dev_pagemap;\n{PAGE_PROTOTYPE}"))?;
            // It stands for the other file: the judge runs what is in this one.
            t.after(RANGE, "#include \"corpus-caller.h\"\n")?;
            t.set("mm/corpus-caller.h", second_caller("memmap_reinit_zone_device"));
            Some(())
        })
        .entry("memmap_reinit_zone_device"),
        carried("page-is-declared-before", |t| {
            let code = format!("static {PAGE_PROTOTYPE}").replace("static void", "static void __ref");
            t.before(PAGE, &code)
        }),
        carried("page-is-declared-in-a-header", |t| {
            not_static(t, PAGE)?;
            t.append_header(INTERNAL, &format!("struct dev_pagemap;\n{PAGE_PROTOTYPE}"))
        })
        .or_unproven(),
        carried("page-is-called-in-another-file", |t| {
            not_static(t, PAGE)?;
            t.append_header(INTERNAL, &format!("struct dev_pagemap;\n{PAGE_PROTOTYPE}"))?;
            let code = "\nvoid corpus_page(struct page *page, struct dev_pagemap *pgmap);\n\
                        void __ref corpus_page(struct page *page, struct dev_pagemap *pgmap)\n\
                        {\n\t__init_zone_device_page(page, 0, ZONE_DEVICE, 0, pgmap);\n}\n";
            t.append("mm/memremap.c", code)
        })
        .or_unproven(),
        carried("page-has-its-address-taken", |t| {
            t.after(
                PAGE,
                "void *corpus_page(void);\nvoid *corpus_page(void)\n{\n\treturn __init_zone_device_page;\n}\n",
            )
        })
        .or_unproven(),
        carried("range-is-called-by-a-wrapper", |t| {
            t.after(
                RANGE,
                "void memmap_init_whole_device(struct zone *zone, struct dev_pagemap *pgmap);\n\
                 void __ref memmap_init_whole_device(struct zone *zone, struct dev_pagemap *pgmap)\n\
                 {\n\tmemmap_init_zone_device(zone, 0, 1, pgmap);\n}\n",
            )
        }),
        carried("range-is-exported", |t| {
            t.edit_function(RANGE, |text| {
                Some(format!("{text}EXPORT_SYMBOL_GPL(memmap_init_zone_device);\n"))
            })
        }),
        refused("range-relies-on-a-caller-for-pageblocks", |t| {
            // Nobody sets them up but the page function, and only through its other caller.
            blocks_in_page(t, "", "")?;
            t.within(
                RANGE,
                "__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);",
                "memmap_init_device_page(page, pfn, zone_idx, nid, pgmap);",
            )?;
            t.before(
                COMPOUND,
                "static void __ref memmap_init_device_page(struct page *page, unsigned long pfn,\n\
                 \t\t\t\t\t  unsigned long zone_idx, int nid,\n\
                 \t\t\t\t\t  struct dev_pagemap *pgmap)\n\
                 {\n\t__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);\n}\n",
            )
        }),
    ]
}

fn compound() -> Vec<Kind> {
    vec![
        refused("compound-has-a-second-caller", |t| {
            t.after(RANGE, &calls_compound(CALL))
        }),
        refused("compound-is-called-through-a-macro", |t| {
            t.after(
                RANGE,
                &calls_compound(
                    "init_tails(pfn_to_page(pfn), pfn, ZONE_DEVICE, 0, pgmap, nr_pages);",
                ),
            )?;
            t.before(
                RANGE,
                "#define init_tails(...) memmap_init_compound(__VA_ARGS__)\n",
            )
        }),
        either("compound-is-declared-before", |t| {
            let code = format!("static {COMPOUND_PROTOTYPE}");
            t.before(PAGE, &code.replace("static void", "static void __ref"))
        }),
        refused("compound-is-declared-in-a-header", |t| {
            not_static(t, COMPOUND)?;
            t.append_header(
                INTERNAL,
                &format!("struct dev_pagemap;\n{COMPOUND_PROTOTYPE}"),
            )
        }),
        refused("compound-is-called-in-another-file", |t| {
            not_static(t, COMPOUND)?;
            t.append_header(
                INTERNAL,
                &format!("struct dev_pagemap;\n{COMPOUND_PROTOTYPE}"),
            )?;
            t.append("mm/memremap.c", &format!("\n{}", calls_compound(CALL)))
        }),
        refused("compound-has-its-address-taken", |t| {
            t.after(
                COMPOUND,
                "typedef void (*corpus_tails)(struct page *, unsigned long, unsigned long, int,\n\
                 \t\t\t     struct dev_pagemap *, unsigned long);\n\
                 corpus_tails corpus_get_tails(void);\n\
                 corpus_tails corpus_get_tails(void)\n{\n\treturn memmap_init_compound;\n}\n",
            )
        }),
        refused("compound-is-called-in-another-configuration", |t| {
            let code = calls_compound(CALL);
            t.after(RANGE, &format!("#ifdef CONFIG_CORPUS\n{code}#endif\n"))
        })
        .define("CONFIG_CORPUS"),
        refused("compound-is-called-in-a-header-of-the-file", |t| {
            t.after(COMPOUND, "#include \"corpus-tails.h\"\n")?;
            t.set("mm/corpus-tails.h", calls_compound(CALL));
            Some(())
        }),
        refused("compound-is-called-twice-in-the-range", |t| {
            t.behind(
                RANGE,
                "compound_nr_pages(pfn, altmap, pgmap));\n",
                "\t\tmemmap_init_compound(page, pfn, zone_idx, nid, pgmap, 1);\n",
            )
        }),
    ]
}

fn mentions() -> Vec<Kind> {
    vec![
        carried("compound-in-a-comment", |t| {
            t.before(
                "compound_nr_pages",
                "/* See memmap_init_compound(), which takes nr_pages. */\n",
            )
        }),
        carried("compound-in-a-string", |t| {
            t.after(
                RANGE,
                "const char *corpus_name(void);\nconst char *corpus_name(void)\n{\n\treturn \"memmap_init_compound\";\n}\n",
            )
        }),
        carried("compound-in-another-files-comment", |t| {
            t.append(
                "mm/memremap.c",
                "\n/* memmap_init_compound() comes first. */\n",
            )
        }),
        carried("compound-as-another-files-static", |t| {
            t.append(
                "mm/memremap.c",
                "\nstatic int memmap_init_compound(void)\n{\n\treturn 0;\n}\n\n\
                 int corpus_other(void);\nint corpus_other(void)\n{\n\treturn memmap_init_compound();\n}\n",
            )
        }),
        carried("compound-as-a-member", |t| {
            t.before(
                PAGE,
                "struct corpus_ops {\n\tint memmap_init_compound;\n};\n",
            )
        }),
        either("pageblocks-set-up-by-nobody", no_blocks_in_range),
        carried("a-name-that-begins-like-it", |t| {
            t.before(
                PAGE,
                "static inline int memmap_init_compound_order(int order)\n{\n\treturn order;\n}\n",
            )
        }),
        carried("documentation-mentions-it", |t| {
            t.append(
                "Documentation/mm/memory-model.rst",
                "\nmemmap_init_compound() and __init_zone_device_page() do it.\n",
            )
        }),
        carried("range-in-another-prototype", |t| {
            t.append(
                &t.home(),
                "\n/* The prototype of memmap_init_zone_device() is in a header. */\n",
            )
        }),
    ]
}
