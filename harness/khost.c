// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half of the harness: a fake zone, node and device page map, and the
 * few variables and functions that the zone-device code of mm_init.o uses. It is
 * compiled with the command that kbuild used for mm/mm_init.o, so that every
 * structure has the layout of the kernel under test.
 */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/memremap.h>
#include <linux/memory_hotplug.h>

#include "khost.h"

#ifdef CONFIG_ARM64
s64 memstart_addr;
#else
/* The headers may map these to a run-time constant or to a macro. */
#undef vmemmap_base
unsigned long vmemmap_base;
#undef page_offset_base
unsigned long page_offset_base;
unsigned long phys_base;
#endif

static struct pglist_data khost_node;
static struct khost_device khost_dev;

/*
 * One map a thread: memmap_init_zone_device() starts where the altmap does. The
 * first one is what the pages point to, in verify runs too.
 */
static struct dev_pagemap khost_pgmap[KHOST_MAX_THREADS] __aligned(64);

static struct khost_blocks khost_blocks;

/*
 * The memory sections behind the pages, with the bits of their pageblocks. Where the
 * object under test has set_pageblock_migratetype() itself, it finds them here.
 */
#define KHOST_SECTIONS	1024
#define KHOST_ROOTS	(1UL << 18)	/* as many as a kernel can ask for: the others are empty */
#define KHOST_POISON	0xa5

static union {
	struct mem_section_usage usage;
	unsigned long words[64];
} khost_usage[KHOST_SECTIONS];
static struct mem_section khost_sections[KHOST_SECTIONS];
static struct mem_section *khost_roots[KHOST_ROOTS];
struct mem_section **mem_section = khost_roots;

static const struct khost_type khost_type_list[] = {
	{ "private", MEMORY_DEVICE_PRIVATE },
	{ "coherent", MEMORY_DEVICE_COHERENT },
	{ "fsdax", MEMORY_DEVICE_FS_DAX },
	{ "generic", MEMORY_DEVICE_GENERIC },
	{ "p2pdma", MEMORY_DEVICE_PCI_P2PDMA },
};

void khost_get_layout(struct khost_layout *layout)
{
	layout->page_size = sizeof(struct page);
	layout->folio_size = sizeof(struct folio);
	layout->pages_per_section = PAGES_PER_SECTION;
	layout->pages_per_block = pageblock_nr_pages;
}

const struct khost_type *khost_types(unsigned int *nr)
{
	*nr = ARRAY_SIZE(khost_type_list);
	return khost_type_list;
}

static void khost_set_sections(void)
{
	unsigned long i;

	BUILD_BUG_ON(sizeof(struct mem_section_usage) + SECTION_BLOCKFLAGS_BITS / BITS_PER_BYTE >
		     sizeof(khost_usage[0]));
	for (i = 0; i < KHOST_SECTIONS; i++) {
		khost_sections[i].usage = &khost_usage[i].usage;
		khost_roots[i / SECTIONS_PER_ROOT] = &khost_sections[i & ~SECTION_ROOT_MASK];
	}
	memset(khost_usage, KHOST_POISON, sizeof(khost_usage));
}

/* Make pfn_to_page(start_pfn) the first struct page of @memmap. */
void khost_set_memmap(void *memmap, unsigned long start_pfn)
{
#ifdef CONFIG_ARM64
	/* vmemmap is VMEMMAP_START less the struct pages below memstart_addr */
	long pages = ((long)VMEMMAP_START - (long)memmap) / (long)sizeof(struct page);

	memstart_addr = (pages + (long)start_pfn) << PAGE_SHIFT;
#else
	vmemmap_base = (unsigned long)memmap - start_pfn * sizeof(struct page);
#endif
	khost_set_sections();
}

void khost_set_device(const struct khost_device *dev)
{
	khost_dev = *dev;
	khost_node.node_id = dev->nid;
	khost_node.node_zones[ZONE_DEVICE].zone_pgdat = &khost_node;
}

void khost_run(void *fn, unsigned int thread, unsigned long start_pfn,
	       unsigned long nr_pages)
{
	void (*init)(struct zone *zone, unsigned long start_pfn,
		     unsigned long nr_pages, struct dev_pagemap *pgmap) = fn;
	struct dev_pagemap *pgmap = &khost_pgmap[thread];
	struct vmem_altmap altmap = {
		.base_pfn = start_pfn,
		.end_pfn = start_pfn + nr_pages,
		.reserve = khost_dev.reserve,
	};

	/* base_pfn is const: it can only be copied over as a whole */
	memcpy(&pgmap->altmap, &altmap, sizeof(altmap));
	pgmap->type = khost_dev.type;
	pgmap->flags = khost_dev.altmap ? PGMAP_ALTMAP_VALID : 0;
	pgmap->vmemmap_shift = khost_dev.order;

	init(&khost_node.node_zones[ZONE_DEVICE], start_pfn, nr_pages, pgmap);
}

/*
 * Stands in for init_pageblock_migratetype() and set_pageblock_migratetype().
 * Like them, it reads where the page belongs to, so a page that is not set up
 * yet, or not part of the memmap, shows in the hash.
 */
void khost_pageblock(void *p, int migratetype)
{
	struct page *page = p;

	khost_blocks.calls++;
	khost_blocks.hash = khost_blocks.hash * 31 + page_to_pfn(page);
	khost_blocks.hash = khost_blocks.hash * 31 + page_zonenum(page);
	khost_blocks.hash = khost_blocks.hash * 31 + page_to_nid(page);
	khost_blocks.hash = khost_blocks.hash * 31 + migratetype;
}

/*
 * Stands in for _printk(). What is reported is no part of the memmap, but a report
 * that only one of two gives is a difference.
 */
int khost_say(const char *format)
{
	while (*format)
		khost_blocks.hash = khost_blocks.hash * 31 + *format++;
	return 0;
}

/*
 * Return what was counted since the last call, and what the bits of the pageblocks
 * are; poison these. Not for more than one thread.
 */
void khost_take_blocks(struct khost_blocks *blocks)
{
	const unsigned long *word = khost_usage[0].words;
	const unsigned long *end = word + sizeof(khost_usage) / sizeof(*word);

	while (word < end)
		khost_blocks.hash = khost_blocks.hash * 31 + *word++;
	*blocks = khost_blocks;
	khost_blocks = (struct khost_blocks){ };
	memset(khost_usage, KHOST_POISON, sizeof(khost_usage));
}

/* Take back a call for a pageblock; where none was counted, the bits of the section of @pfn. */
void khost_forget_block(unsigned long pfn)
{
	if (khost_blocks.calls)
		khost_blocks.calls--;
	else
		memset(&khost_usage[pfn_to_section_nr(pfn)], KHOST_POISON, sizeof(khost_usage[0]));
}
