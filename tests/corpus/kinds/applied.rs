//! Bases that have the series, a part of it, or something that goes by its names.

use super::{Kind, carried, either, refused};
use crate::tree::{COMPOUND, Files, PAGE, RANGE, Tree};

const KBUILD: &str = "include/asm-generic/Kbuild";
const GENERIC: &str = "include/asm-generic/struct_page_init.h";
const X86: &str = "arch/x86/include/asm/struct_page_init.h";

/// The files as patch `number` leaves them, without a history.
fn import(tree: &mut Tree, number: usize) -> Option<()> {
    let (_, files) = tree.series(number)?;
    tree.files.extend(files);
    Some(())
}

/// The first patches as commits of their own.
fn merge(tree: &mut Tree, count: usize) -> Option<()> {
    tree.commit("imported\n");
    for number in 1..=count {
        let (message, files) = tree.series(number)?;
        tree.files.extend(files);
        tree.commit(&message);
    }
    Some(())
}

/// The last state of a history is that of the base again: what the series makes of it is a commit of its own.
fn then(tree: &mut Tree, change: impl FnOnce(&mut Tree) -> Option<()>) -> Option<()> {
    change(tree)?;
    tree.commit("changed by the corpus\n");
    Some(())
}

/// Undoes everything from patch `from` on.
fn revert(tree: &mut Tree, from: usize) -> Option<()> {
    let before = match from {
        1 => Files::new(),
        _ => tree.series(from - 1)?.1,
    };
    let after = tree.files.clone();
    for path in after.keys() {
        match before.get(path).cloned().or_else(|| tree.of_base(path)) {
            Some(bytes) => tree.set(path, bytes),
            None => tree.remove(path),
        }
    }
    tree.commit("Revert\n");
    Some(())
}

/// Takes text out of a function, from `start` up to and without `end`.
fn cut_within(tree: &mut Tree, name: &str, start: &str, end: &str) -> Option<()> {
    tree.edit_function(name, |text| {
        let at = text.find(start)?;
        let end = at + text[at..].find(end)?;
        Some(format!("{}{}", &text[..at], &text[end..]))
    })
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = whole();
    kinds.extend(by_names());
    kinds.extend(merged());
    kinds
}

fn whole() -> Vec<Kind> {
    vec![
        carried("all-of-it", |t| import(t, 4)).applied(),
        carried("all-of-it-and-a-change-elsewhere", |t| {
            import(t, 4)?;
            t.append(&t.home(), "\n/* Says the corpus. */\n")
        })
        .applied(),
        refused("all-but-the-fast-path-of-heads", |t| {
            import(t, 4)?;
            cut_within(
                t,
                RANGE,
                "\t\tif (use_template && pfns_per_compound == 1)\n",
                "\t\t\t__init_zone_device_page(page, pfn, zone_idx, nid, pgmap);",
            )
        }),
        refused("all-but-the-fast-path-of-tails", |t| {
            import(t, 4)?;
            t.within(COMPOUND, "pfn < slow_end_pfn;", "pfn < end_pfn;")
        }),
        refused("all-but-a-line-of-kbuild", |t| {
            import(t, 4)?;
            t.files.remove(KBUILD).map(drop)
        }),
        refused("all-but-the-x86-instructions", |t| {
            import(t, 4)?;
            t.set(X86, "#include <asm-generic/struct_page_init.h>\n");
            Some(())
        }),
        refused("all-but-the-generic-header", |t| {
            import(t, 4)?;
            t.files.remove(GENERIC).map(drop)
        }),
        refused("all-but-the-drain", |t| {
            import(t, 4)?;
            t.within(RANGE, "\tarch_optimize_store_drain();\n", "")
        }),
        refused("all-but-a-word-of-the-copy", |t| {
            import(t, 4)?;
            t.within(
                "zone_device_page_copy",
                "\t\tzone_device_store_u64(&dst[1], src[1], stream);\n",
                "",
            )
        }),
        refused("all-with-another-instruction", |t| {
            import(t, 4)?;
            t.replace(X86, "movnti %1, %0", "mov %1, %0")
        }),
        refused("all-with-another-threshold", |t| {
            import(t, 4)?;
            t.within("zone_device_stream_memmap", "SZ_16M", "SZ_32M")
        }),
        either("all-with-another-comment", |t| {
            import(t, 4)?;
            t.replace(
                &t.home(),
                "Nobody may use a streamed page",
                "No one may use a streamed page",
            )
        })
        .applied(),
        refused("all-and-the-rule-of-counts-back-in-the-page", |t| {
            import(t, 4)?;
            t.within(
                PAGE,
                "zone_device_page_init_refcount(page, pgmap);",
                "set_page_count(page, 0);",
            )
        }),
    ]
}

fn by_names() -> Vec<Kind> {
    vec![
        refused("names-of-all-helpers-with-other-bodies", |t| {
            import(t, 4)?;
            let files = t.files.clone();
            let home = t.home();
            let old = t.of_base(&home)?;
            t.set(&home, old);
            for name in [
                "zone_device_page_init_refcount",
                "zone_device_tail_page_init",
                "zone_device_template_set_pfn",
                "zone_device_page_copy",
                "zone_device_page_init_template",
                "zone_device_stream_memmap",
                "zone_device_store_u64",
            ] {
                t.after(RANGE, &format!("static inline void {name}(void)\n{{\n}}\n"))?;
            }
            (files.len() > 2).then_some(())
        }),
        refused("name-of-one-helper-with-another-body", |t| {
            t.after(
                RANGE,
                "static inline void zone_device_page_copy(void)\n{\n}\n",
            )
        }),
        refused("names-and-headers-and-the-old-loops", |t| {
            import(t, 4)?;
            let old_range = {
                let old = String::from_utf8(t.of_base(&t.home())?).ok()?;
                let range = crate::tree::find_function(&old, RANGE)?;
                old[range].to_owned()
            };
            t.edit_function(RANGE, |_| {
                Some(old_range.replace(
                    "compound_nr_pages(pfn, altmap, pgmap));",
                    "compound_nr_pages(pfn, altmap, pgmap), false, false);",
                ))
            })
        }),
        refused("only-the-line-of-kbuild", |t| {
            let (_, files) = t.series(4)?;
            t.set(KBUILD, files.get(KBUILD)?.clone());
            Some(())
        }),
        refused("only-the-headers", |t| {
            let (_, files) = t.series(4)?;
            for path in [KBUILD, GENERIC, X86] {
                t.set(path, files.get(path)?.clone());
            }
            Some(())
        }),
        either("the-first-patch-without-history", |t| import(t, 1)),
        either("two-patches-without-history", |t| import(t, 2)),
        either("three-patches-without-history", |t| import(t, 3)),
        refused("the-second-patch-without-the-first", |t| {
            // The helper for the counts is back where it was, the template stays.
            import(t, 2)?;
            let old = String::from_utf8(t.of_base(&t.home())?).ok()?;
            let page = old[crate::tree::find_function(&old, PAGE)?].to_owned();
            t.edit_function(PAGE, |_| Some(page))?;
            t.cut("zone_device_page_init_refcount").map(drop)
        }),
    ]
}

fn merged() -> Vec<Kind> {
    vec![
        carried("the-first-patch-with-history", |t| merge(t, 1)),
        carried("two-patches-with-history", |t| merge(t, 2)),
        carried("three-patches-with-history", |t| merge(t, 3)),
        carried("the-first-patch-and-a-change-elsewhere", |t| {
            merge(t, 1)?;
            then(t, |t| t.append(&t.home(), "\n/* Says the corpus. */\n"))
        }),
        carried("the-first-patch-and-its-revert", |t| {
            merge(t, 1)?;
            revert(t, 1)
        }),
        carried("all-patches-and-their-revert", |t| {
            merge(t, 4)?;
            revert(t, 1)
        }),
        either("all-patches-and-the-last-ones-revert", |t| {
            merge(t, 4)?;
            revert(t, 4)
        }),
        carried("all-patches-with-history", |t| merge(t, 4)).applied(),
        refused("all-patches-and-then-no-drain", |t| {
            merge(t, 4)?;
            then(t, |t| {
                t.within(RANGE, "\tarch_optimize_store_drain();\n", "")
            })
        }),
        refused("the-first-patch-altered", |t| {
            t.commit("imported\n");
            let (message, files) = t.series(1)?;
            t.files.extend(files);
            t.rename(
                &t.home(),
                "zone_device_page_init_refcount",
                "zone_device_init_count",
            )?;
            t.commit(&message);
            Some(())
        }),
        either("the-first-patch-with-another-comment", |t| {
            t.commit("imported\n");
            let (message, files) = t.series(1)?;
            t.files.extend(files);
            t.before(
                "zone_device_page_init_refcount",
                "/* Says the maintainer. */\n",
            )?;
            t.commit(&message);
            Some(())
        }),
        either("the-first-patch-in-two-commits", |t| {
            t.commit("imported\n");
            let (message, files) = t.series(2)?;
            t.files.extend(files);
            t.commit(&message);
            Some(())
        }),
        refused("the-first-patch-and-the-rule-of-counts-changed", |t| {
            merge(t, 1)?;
            then(t, |t| {
                t.edit_function("zone_device_page_init_refcount", |text| {
                    let at = text.find("\n{\n")? + 3;
                    Some(format!(
                        "{}\tpage->private = page_to_pfn(page);\n{}",
                        &text[..at],
                        &text[at..]
                    ))
                })
            })
        }),
        refused("two-patches-and-the-copy-drops-a-word", |t| {
            merge(t, 2)?;
            then(t, |t| {
                t.within("zone_device_page_copy", "\t\tdst[1] = src[1];\n", "")
            })
        }),
    ]
}
