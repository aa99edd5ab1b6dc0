// SPDX-License-Identifier: GPL-2.0-only
/*
 * The equality check: the reference and each variant write the same poisoned
 * memory, and every byte of it, and every pageblock call, must be the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "khost.h"
#include "user.h"

#define POISON		0xa5
#define GUARD_PAGES	64	/* struct pages around the memmap, to stay poison */

struct memory {
	char *now;
	char *reference;
	size_t size;
	size_t page_size;
};

static void run_poisoned(const struct memory *mem, void *fn, unsigned long nr,
			 struct khost_blocks *blocks)
{
	memset(mem->now, POISON, mem->size);
	khost_take_blocks(blocks);
	khost_run(fn, 0, START_PFN, nr);
	khost_take_blocks(blocks);
}

static size_t first_difference(const struct memory *mem)
{
	const uint64_t *a = (const uint64_t *)mem->now;
	const uint64_t *b = (const uint64_t *)mem->reference;
	size_t i = 0;

	while (i < mem->size / 8 && a[i] == b[i])
		i++;
	return i;
}

/* Return 1 if @v differs from the reference, which mem->reference holds. */
static int check_variant(const struct memory *mem, const struct variant *v,
			 const char *type, const struct khost_device *dev,
			 unsigned long nr, const struct khost_blocks *expected)
{
	struct khost_blocks blocks;
	int equal, blocks_equal;

	run_poisoned(mem, v->fn, nr, &blocks);
	equal = !memcmp(mem->now, mem->reference, mem->size);
	blocks_equal = blocks.calls == expected->calls &&
		       blocks.hash == expected->hash;

	printf("{\"record\":\"verify\",\"variant\":\"%s\",\"type\":\"%s\",\"order\":%u,\"altmap\":%s,\"reserve\":%lu,\"nid\":%d,\"pages\":%lu,\"bytes_equal\":%s,\"pageblock_calls\":%lu,\"pageblocks_equal\":%s",
	       v->name, type, dev->order, dev->altmap ? "true" : "false",
	       dev->reserve, dev->nid, nr, equal ? "true" : "false",
	       blocks.calls, blocks_equal ? "true" : "false");
	if (!equal) {
		size_t word = first_difference(mem), words = mem->page_size / 8;

		printf(",\"page_index\":%ld,\"word\":%zu,\"got\":\"%016lx\",\"expected\":\"%016lx\"",
		       (long)(word / words) - GUARD_PAGES, word % words,
		       ((uint64_t *)mem->now)[word],
		       ((uint64_t *)mem->reference)[word]);
	}
	printf("}\n");
	return !equal || !blocks_equal;
}

/* Return the number of variants that differ on this device. */
static int check_device(const struct memory *mem, const char *type,
			const struct khost_device *dev, unsigned long nr)
{
	struct khost_blocks expected;
	unsigned int i;
	int failed = 0;

	khost_set_device(dev);
	run_poisoned(mem, variants[0].fn, nr, &expected);
	memcpy(mem->reference, mem->now, mem->size);
	for (i = 1; i < nr_variants; i++)
		failed += check_variant(mem, &variants[i], type, dev, nr, &expected);
	return failed;
}

int run_verify(const struct options *opt)
{
	static const unsigned int orders[] = { 0, 1, 2, 9, 18 };
	static const int nids[] = { 0, 5 };
	unsigned int nr_types, t, o, altmap, reserved, n;
	int failed = 0, checks = 0;
	const struct khost_type *types = khost_types(&nr_types);
	struct khost_layout layout;
	struct memory mem;

	khost_get_layout(&layout);
	mem.page_size = layout.page_size;
	mem.size = (opt->pages + 2 * GUARD_PAGES) * layout.page_size;
	mem.now = map_memory(mem.size);
	mem.reference = map_memory(mem.size);
	khost_set_memmap(mem.now + GUARD_PAGES * layout.page_size, START_PFN);

	for (t = 0; t < nr_types; t++)
	for (o = 0; o < sizeof(orders) / sizeof(orders[0]); o++)
	for (altmap = 0; altmap < 2; altmap++)
	for (reserved = 0; reserved <= altmap; reserved++)
	for (n = 0; n < 2; n++) {
		struct khost_device dev = {
			.type = types[t].value, .order = orders[o],
			.altmap = altmap, .nid = nids[n],
			.reserve = reserved << orders[o],
		};
		unsigned long pages = opt->few >= 2UL << orders[o] ? opt->few : opt->pages;
		unsigned long nr = pages & ~((1UL << orders[o]) - 1);

		if (opt->order >= 0 && orders[o] != (unsigned int)opt->order)
			continue;
		failed += check_device(&mem, types[t].name, &dev, nr);
		checks += nr_variants - 1;
	}

	printf("{\"record\":\"verify_summary\",\"checks\":%d,\"failed\":%d}\n",
	       checks, failed);
	return failed || !checks;
}
