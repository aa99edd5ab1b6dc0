/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two halves of the harness know of each other. The kernel half is
 * compiled with kbuild's flags and the kernel's headers, the user half with the
 * host's; only plain C types may appear here.
 */
#ifndef KHOST_H
#define KHOST_H

#define KHOST_MAX_THREADS	8

/* Facts of the kernel build that the user half prints or sizes buffers by. */
struct khost_layout {
	unsigned long page_size;		/* sizeof(struct page) */
	unsigned long folio_size;		/* sizeof(struct folio) */
	unsigned long pages_per_section;
	unsigned long pages_per_block;
};

struct khost_type {
	const char *name;
	int value;
};

/* A device to initialise: what a struct dev_pagemap and a zone say about it. */
struct khost_device {
	int type;
	unsigned int order;
	int altmap;
	unsigned long reserve;			/* PFNs the altmap keeps back */
	int nid;
};

/*
 * The pageblock calls of one run: how many, and a hash of their arguments, of the bits
 * of the pageblocks where they are set without a call, and of what was reported.
 */
struct khost_blocks {
	unsigned long calls;
	unsigned long hash;
};

void khost_get_layout(struct khost_layout *layout);
const struct khost_type *khost_types(unsigned int *nr);
void khost_set_memmap(void *memmap, unsigned long start_pfn);
void khost_set_device(const struct khost_device *dev);
void khost_run(void *fn, unsigned int thread, unsigned long start_pfn,
	       unsigned long nr_pages);
void khost_take_blocks(struct khost_blocks *blocks);
void khost_forget_block(unsigned long pfn);
void khost_pageblock(void *page, int migratetype);
int khost_say(const char *format);

#endif /* KHOST_H */
