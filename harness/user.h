/* SPDX-License-Identifier: GPL-2.0-only */
/* The user half of the harness: what its files share. */
#ifndef USER_H
#define USER_H

#include <stddef.h>

struct variant {
	const char *name;
	void *fn;			/* memmap_init_zone_device() of this variant */
	unsigned int placement;		/* the same code is at several places, from 0 */
};

/* Written by the link script; the first variant is the reference. */
extern const struct variant variants[];
extern const unsigned int nr_variants;

#define MAX_THREAD_COUNTS	4

struct options {
	unsigned long pages;		/* PFNs of the device */
	unsigned long few;		/* in verify: PFNs where two compound pages fit into so many; 0: as many as ever */
	unsigned int rounds;		/* in bench: at each placement */
	unsigned int repeat;		/* calls in one sample */
	unsigned int threads[MAX_THREAD_COUNTS];
	unsigned int nr_threads;
	int order;			/* -1 in verify: all that it knows */
	int fresh;			/* bench on memory that was never touched */
	int altmap;			/* 0: reused tails, where the kernel does that */
	const char *kernel;		/* a label, printed as it is */
};

/* 4 GiB: aligned to every order that is tried. */
#define START_PFN	0x100000UL

void *map_memory(size_t size);
void set_gs_area(void);
int run_verify(const struct options *opt);
int run_bench(const struct options *opt);

#endif /* USER_H */
