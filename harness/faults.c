// SPDX-License-Identifier: GPL-2.0-only
/*
 * Planted faults: each function runs the reference and then does what a wrong
 * fast path would have done. A comparison that does not notice one of them
 * proves nothing.
 */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/memremap.h>

#include "khost.h"

#define INIT(name)							\
	void init_##name(struct zone *zone, unsigned long start_pfn,	\
			 unsigned long nr_pages, struct dev_pagemap *pgmap)

INIT(base);
INIT(fault_tail_refcount);
INIT(fault_dropped_word);
INIT(fault_wrong_node);
INIT(fault_missing_pageblock);
INIT(fault_self_pointer);
INIT(fault_beyond_end);
INIT(fault_other_report);

/* The last page: a tail in a compound device. */
static struct page *last_page(unsigned long start_pfn, unsigned long nr_pages)
{
	return pfn_to_page(start_pfn + nr_pages - 1);
}

INIT(fault_tail_refcount)
{
	init_base(zone, start_pfn, nr_pages, pgmap);
	/* not set_page_count(), which may want its tracepoint */
	atomic_set(&pfn_to_page(start_pfn + 1)->_refcount, 1);
}

/* The poison of the caller stays in one word. */
INIT(fault_dropped_word)
{
	unsigned long *word = (unsigned long *)pfn_to_page(start_pfn + 3) + 1;
	unsigned long old = *word;

	init_base(zone, start_pfn, nr_pages, pgmap);
	*word = old;
}

/* Only a node that is not 0 shows it. */
INIT(fault_wrong_node)
{
	init_base(zone, start_pfn, nr_pages, pgmap);
	set_page_node(pfn_to_page(start_pfn + 2), 0);
}

INIT(fault_missing_pageblock)
{
	init_base(zone, start_pfn, nr_pages, pgmap);
	khost_forget_block(start_pfn);
}

/* A template that held a pointer to itself was copied. */
INIT(fault_self_pointer)
{
	struct page *page = pfn_to_page(start_pfn + 2);

	init_base(zone, start_pfn, nr_pages, pgmap);
	*((unsigned long *)page + 2) = (unsigned long)page;
}

INIT(fault_beyond_end)
{
	init_base(zone, start_pfn, nr_pages, pgmap);
	*(unsigned long *)(last_page(start_pfn, nr_pages) + 1) = 0;
}

INIT(fault_other_report)
{
	init_base(zone, start_pfn, nr_pages, pgmap);
	khost_say("more");
}
