//! Names that the series defines, and the base uses for something else; and mentions that do no harm.

use super::{INTERNAL, Kind, carried, either, refused};
use crate::tree::{COMPOUND, PAGE, RANGE};

pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = taken();
    kinds.extend(headers());
    kinds.extend(needed());
    kinds.extend(harmless());
    kinds
}

fn taken() -> Vec<Kind> {
    vec![
        refused("function-in-the-same-file", |t| {
            t.after(RANGE, "bool zone_device_stream_memmap(void);\nbool zone_device_stream_memmap(void)\n{\n\treturn false;\n}\n")
        }),
        refused("function-under-an-ifdef", |t| {
            t.after(
                RANGE,
                "#ifdef CONFIG_CORPUS\nstatic bool __maybe_unused zone_device_stream_memmap(void)\n{\n\treturn false;\n}\n#endif\n",
            )
        })
        .define("CONFIG_CORPUS"),
        refused("prototype-in-a-header", |t| {
            t.append_header(
                INTERNAL,
                "void zone_device_page_copy(struct page *to, const struct page *from);\n",
            )
        }),
        refused("inline-function-in-a-header", |t| {
            t.append_header(
                "include/linux/mm.h",
                "static inline void arch_optimize_store_drain(void)\n{\n\tbarrier();\n}\n",
            )
        }),
        refused("macro-in-a-header", |t| {
            t.append_header(
                INTERNAL,
                "#define zone_device_page_copy(to, from) memcpy(to, from, sizeof(*(to)))\n",
            )
        }),
        refused("macro-in-a-header-for-a-helper", |t| {
            t.append_header(
                INTERNAL,
                "#define zone_device_page_init_refcount(page, pgmap) set_page_count(page, 1)\n",
            )
        }),
        refused("macro-without-arguments", |t| {
            t.append_header(INTERNAL, "#define zone_device_tail_page_init memmap_tail_init\n")
        }),
        refused("enum-constant-in-a-header", |t| {
            t.append_header(INTERNAL, "enum { zone_device_stream_memmap = 1 };\n")
        }),
        refused("enum-constant-in-the-file", |t| {
            t.before(PAGE, "enum zone_device_modes { zone_device_store_u64 = 1 };\n")
        }),
        refused("variable-in-the-file", |t| {
            t.before_includes(&t.home(), "int zone_device_template_set_pfn;\n")
        }),
        refused("typedef-in-a-header", |t| {
            t.append_header(INTERNAL, "typedef int zone_device_page_copy;\n")
        }),
        refused("extern-in-a-header", |t| {
            t.append_header(INTERNAL, "extern int zone_device_page_init_template;\n")
        }),
        refused("macro-of-the-series-in-a-header", |t| {
            t.append_header(INTERNAL, "#define ZONE_DEVICE_COMPOUND_SLOW_NR 1\n")
        }),
        refused("macro-of-the-series-in-the-file", |t| {
            t.before(PAGE, "#define ZONE_DEVICE_COMPOUND_SLOW_NR 2\n")
        }),
        refused("macro-named-like-a-local", |t| {
            t.append_header(INTERNAL, "#define use_template true\n")
        }),
        refused("macro-named-like-another-local", |t| {
            t.append_header(INTERNAL, "#define slow_end_pfn (pfn + 1)\n")
        }),
        refused("macro-named-like-a-parameter", |t| {
            t.append_header(INTERNAL, "#define stream 0\n")
        }),
        either("typedef-named-like-a-local", |t| {
            t.append_header(INTERNAL, "typedef unsigned int stream;\n")
        }),
        either("variable-named-like-a-local", |t| {
            t.before(PAGE, "static bool __maybe_unused use_template = true;\n")
        }),
        refused("struct-declared-as-function", |t| {
            t.append_header(INTERNAL, "unsigned long template(void);\n")?;
            t.append_header(INTERNAL, "#define template() 1UL\n#define template struct_template\n")
        }),
        refused("enum-constant-named-like-a-helper-elsewhere", |t| {
            t.append_header(
                "include/linux/memremap.h",
                "enum zone_device_step { zone_device_page_init_refcount, ZONE_DEVICE_DONE };\n",
            )
        }),
    ]
}

fn headers() -> Vec<Kind> {
    vec![
        refused("generic-header-is-there", |t| {
            t.set(
                "include/asm-generic/struct_page_init.h",
                "/* Somebody else's. */\n",
            );
            Some(())
        }),
        refused("x86-header-is-there", |t| {
            t.set(
                "arch/x86/include/asm/struct_page_init.h",
                "/* Somebody else's. */\n",
            );
            Some(())
        }),
        refused("store-is-a-macro-of-an-arch-header", |t| {
            t.append_header(
                "arch/x86/include/asm/page.h",
                "#define arch_optimize_store_u64(to, value) do { } while (0)\n",
            )
        }),
        refused("guard-of-the-header-is-defined", |t| {
            t.append_header(
                "arch/x86/include/asm/page.h",
                "#define _ASM_X86_STRUCT_PAGE_INIT_H\n",
            )
        }),
        either("header-of-that-name-elsewhere", |t| {
            t.set(
                "include/linux/struct_page_init.h",
                "/* Something else. */\n",
            );
            Some(())
        }),
    ]
}

fn needed() -> Vec<Kind> {
    vec![
        refused("size-macro-is-called-otherwise", |t| {
            t.edit("include/linux/sizes.h", |text| {
                let at = text.find("#define SZ_16M\t")?;
                let end = at + text[at..].find('\n')? + 1;
                Some(format!("{}{}", &text[..at], &text[end..]))
            })?;
            // Nothing else that is built here may need it.
            Some(())
        }),
        refused("size-macro-is-something-else", |t| {
            t.edit("include/linux/sizes.h", |text| {
                let at = text.find("#define SZ_16M\t")?;
                let end = at + text[at..].find('\n')? + 1;
                Some(format!(
                    "{}#define SZ_16M\t(pfn)\n{}",
                    &text[..at],
                    &text[end..]
                ))
            })
        }),
        refused("tracepoint-macro-is-gone", |t| {
            t.replace_all(
                "include/linux/page_ref.h",
                "page_ref_tracepoint_active(",
                "page_ref_is_traced(",
            )
        }),
        carried("vmemmap-nr-by-another-name", |t| {
            t.rename_in("pgmap_vmemmap_nr", "pgmap_vmemmap_nr", "pgmap_nr_pages")?;
            t.append_header(
                "include/linux/memremap.h",
                "#define pgmap_vmemmap_nr(pgmap) pgmap_nr_pages(pgmap)\n",
            )
        })
        .or_unproven(),
        refused("always-inline-is-something-else", |t| {
            // What the templates say is `__always_inline`; here a macro of the file takes it for its own.
            t.after_includes(&t.home(), "\n#undef __always_inline\n#define __always_inline __attribute__((corpus_unknown)) inline\n")
        }),
    ]
}

fn harmless() -> Vec<Kind> {
    vec![
        carried("name-in-a-comment", |t| {
            t.before(
                PAGE,
                "/* One day zone_device_page_copy() could be faster. */\n",
            )
        }),
        carried("name-in-a-string", |t| {
            t.before(
                PAGE,
                "static const char __maybe_unused corpus_name[] = \"zone_device_page_copy\";\n",
            )
        }),
        carried("name-as-a-member", |t| {
            t.before(
                PAGE,
                "struct corpus_mode {\n\tbool stream;\n\tbool use_template;\n};\n",
            )
        }),
        carried("name-as-a-parameter-of-a-macro", |t| {
            t.before(
                PAGE,
                "#define corpus_wrap(template, stream) ((template) + (stream))\n",
            )
        }),
        carried("name-as-a-local-elsewhere", |t| {
            t.before(
                PAGE,
                "static inline int corpus_local(int template)\n{\n\tint stream = template;\n\n\treturn stream;\n}\n",
            )
        }),
        carried("name-as-a-tag", |t| {
            t.before(PAGE, "struct template {\n\tint corpus;\n};\n")
        })
        .or_unproven(),
        carried("name-as-another-files-static", |t| {
            t.append(
                "mm/memremap.c",
                "\nstatic inline void zone_device_page_copy(int corpus)\n{\n}\n",
            )
        }),
        carried("name-that-begins-like-it", |t| {
            t.before(
                COMPOUND,
                "static inline void zone_device_page_copy_back(int corpus)\n{\n}\n",
            )
        }),
    ]
}
