// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs memmap_init_zone_device() of the changed base and of each patch on it, and
 * compares the memory around the memmap, the pageblock calls and the notes.
 *
 * Each run is a process of its own. So every variant starts from the same state
 * (time, counters in the object), and a crash is the fault of one of them. One
 * JSON object a line for what differs, and one at the end.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <asm/prctl.h>

#include "../../../harness/khost.h"
#include "compare.h"
#include "observe.h"

#define START_PFN	0x100000UL	/* 4 GiB: aligned to every order */
#define GUARD_PAGES	64		/* to stay as they were */
#define POISON		0xa5
#define SECONDS		20		/* none takes as long */
#define SHOWN		6		/* differences of a variant that are told */

/* What is left behind by a run, besides the memory. */
struct result {
	struct khost_blocks blocks;
	struct notes notes;
	int status;
};

struct memory {
	char *now;
	char *reference;
	size_t size;		/* of what is compared, with guards */
	size_t page_size;
	struct result *result;	/* shared with the child */
};

struct device {
	const char *type;
	struct khost_device dev;
	unsigned long nr;
};

static void *map(size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		err(2, "mmap");
	return map;
}

/* Where the stack guard is at %gs:40, and per-CPU symbols that nobody has. */
static void set_gs_area(void)
{
#if GS_AREA
	static char area[1 << 16] __attribute__((aligned(4096)));

	if (syscall(SYS_arch_prctl, ARCH_SET_GS, area))
		err(2, "arch_prctl");
#endif
}

static void run_child(const struct memory *mem, void *fn, unsigned long nr)
{
	alarm(SECONDS);
	set_gs_area();
	khost_run(fn, 0, START_PFN, nr);
	khost_take_blocks(&mem->result->blocks);
	mem->result->notes = take_notes();
	_exit(0);
}

static struct result run(const struct memory *mem, void *fn, unsigned long nr)
{
	pid_t pid;

	memset(mem->now, POISON, mem->size);
	memset(mem->result, 0, sizeof(*mem->result));
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (!pid)
		run_child(mem, fn, nr);
	if (waitpid(pid, &mem->result->status, 0) != pid)
		err(2, "waitpid");
	return *mem->result;
}

static int same(const struct memory *mem, const struct result *a, const struct result *b)
{
	return a->status == b->status &&
	       a->blocks.calls == b->blocks.calls && a->blocks.hash == b->blocks.hash &&
	       a->notes.calls == b->notes.calls && a->notes.sum == b->notes.sum &&
	       !memcmp(mem->now, mem->reference, mem->size);
}

static void tell(const struct memory *mem, const char *name, const struct device *d,
		 const struct result *got, const struct result *expected)
{
	const uint64_t *now = (const uint64_t *)mem->now;
	const uint64_t *reference = (const uint64_t *)mem->reference;
	size_t i = 0, words = mem->page_size / 8;

	printf("{\"variant\":\"%s\",\"type\":\"%s\",\"order\":%u,\"altmap\":%d,\"reserve\":%lu,\"nid\":%d,\"pages\":%lu,\"status\":%d",
	       name, d->type, d->dev.order, d->dev.altmap, d->dev.reserve,
	       d->dev.nid, d->nr, got->status);
	printf(",\"pageblock_calls\":[%lu,%lu],\"pageblocks_equal\":%s,\"notes\":[%lu,%lu],\"notes_equal\":%s",
	       got->blocks.calls, expected->blocks.calls,
	       got->blocks.hash == expected->blocks.hash ? "true" : "false",
	       got->notes.calls, expected->notes.calls,
	       got->notes.sum == expected->notes.sum ? "true" : "false");
	while (i < mem->size / 8 && now[i] == reference[i])
		i++;
	if (i < mem->size / 8)
		printf(",\"page\":%ld,\"word\":%zu,\"got\":\"%016lx\",\"expected\":\"%016lx\"",
		       (long)(i / words) - GUARD_PAGES, i % words, now[i], reference[i]);
	printf("}\n");
}

/* The number of comparisons, or -1 where the reference itself is no measure. */
static int check(const struct memory *mem, const struct device *d, unsigned int *told)
{
	struct result expected, got;
	unsigned int i;

	khost_set_device(&d->dev);
	expected = run(mem, variants[0].fn, d->nr);
	memcpy(mem->reference, mem->now, mem->size);
	if (expected.status) {
		tell(mem, "base", d, &expected, &expected);
		return -1;
	}
	for (i = 1; i < nr_variants; i++) {
		got = run(mem, variants[i].fn, d->nr);
		if (same(mem, &got, &expected) || told[i]++ >= SHOWN)
			continue;
		tell(mem, variants[i].name, d, &got, &expected);
		/* A base that is not the same twice says nothing of others. */
		got = run(mem, variants[0].fn, d->nr);
		if (!same(mem, &got, &expected)) {
			tell(mem, "base", d, &got, &expected);
			return -1;
		}
	}
	return nr_variants - 1;
}

/* Every kind of range, and few pages. */
static int check_small(struct memory *mem, unsigned int *told)
{
	static const unsigned int orders[] = { 0, 1, 2, 3, 4, 9 };
	static const int nids[] = { 0, 5 };
	const unsigned long nr = 5 << 9;
	unsigned int nr_types, t, o, altmap, reserved, n;
	const struct khost_type *types = khost_types(&nr_types);
	int checks = 0, some;

	mem->size = (nr + 2 * GUARD_PAGES) * mem->page_size;
	for (t = 0; t < nr_types; t++)
	for (o = 0; o < sizeof(orders) / sizeof(orders[0]); o++)
	for (altmap = 0; altmap < 2; altmap++)
	for (reserved = 0; reserved <= altmap; reserved++)
	for (n = 0; n < 2; n++) {
		struct device d = { types[t].name, {
			.type = types[t].value, .order = orders[o], .altmap = altmap,
			.reserve = reserved << orders[o], .nid = nids[n],
		}, nr };

		some = check(mem, &d, told);
		if (some < 0)
			return -1;
		checks += some;
	}
	return checks;
}

/* Ranges that are worth other stores, over several sections. */
static int check_large(struct memory *mem, unsigned int *told, unsigned long nr)
{
	static const unsigned int orders[] = { 0, 9, 18 };
	static const int wanted[] = { 0, 2 };
	unsigned int nr_types, t, o;
	const struct khost_type *types = khost_types(&nr_types);
	int checks = 0, some;

	mem->size = (nr + 2 * GUARD_PAGES) * mem->page_size;
	for (t = 0; t < 2; t++)
	for (o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
		struct device d = { types[wanted[t]].name, {
			.type = types[wanted[t]].value, .order = orders[o], .altmap = 1,
			.nid = 5,
		}, nr & ~((1UL << orders[o]) - 1) };

		some = check(mem, &d, told);
		if (some < 0)
			return -1;
		checks += some;
	}
	return checks;
}

int main(void)
{
	unsigned long large;
	struct khost_layout layout;
	struct memory mem;
	unsigned int *told;
	int small, big;

	setvbuf(stdout, NULL, _IOLBF, 0);
	khost_get_layout(&layout);
	/* 16 MiB of struct pages, and somewhat more; one page of the largest order */
	large = (16UL << 20) / layout.page_size + (3UL << 9);
	if (large < (1UL << 18) + (3UL << 9))
		large = (1UL << 18) + (3UL << 9);
	mem.page_size = layout.page_size;
	mem.now = map((large + 2 * GUARD_PAGES) * layout.page_size);
	mem.reference = map((large + 2 * GUARD_PAGES) * layout.page_size);
	mem.result = map(sizeof(*mem.result));
	told = calloc(nr_variants, sizeof(*told));
	if (!told)
		err(2, "calloc");
	khost_set_memmap(mem.now + GUARD_PAGES * layout.page_size, START_PFN);

	small = check_small(&mem, told);
	big = small < 0 ? -1 : check_large(&mem, told, large);
	printf("{\"checks\":%d}\n", small < 0 || big < 0 ? -1 : small + big);
	return 0;
}
