// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user half of the harness: run memmap_init_zone_device() of several builds
 * of mm_init.o on ordinary memory, to compare their results (verify) or their
 * speed (bench). One JSON object a line on stdout, talk on stderr.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <asm/prctl.h>
#endif

#include "khost.h"
#include "user.h"

#define HUGE_ALIGN	(1UL << 30)

/* Memory aligned like a real memmap, on huge pages where the host has them. */
void *map_memory(size_t size)
{
	uintptr_t start;
	void *map;

	map = mmap(NULL, size + HUGE_ALIGN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		err(2, "mmap");
	start = ((uintptr_t)map + HUGE_ALIGN - 1) & ~(HUGE_ALIGN - 1);
	if (madvise((void *)start, size, MADV_HUGEPAGE))
		warn("madvise");
	return (void *)start;
}

/*
 * Where the stack guard is at %gs:40 the calling thread needs something there.
 * Per-CPU symbols are unresolved, so they fall into the same area.
 */
void set_gs_area(void)
{
#if GS_AREA && defined(__x86_64__)
	static char area[1 << 16] __attribute__((aligned(4096)));

	if (syscall(SYS_arch_prctl, ARCH_SET_GS, area))
		err(2, "arch_prctl");
#endif
}

static void usage(void)
{
	fprintf(stderr, "usage: %s verify|bench [--pages N] [--few N] [--rounds N] [--repeat N]\n"
		"\t[--threads N,N] [--order N] [--altmap 0|1] [--fresh 0|1] [--kernel LABEL]\n",
		program_invocation_short_name);
	exit(2);
}

static void read_threads(struct options *opt, const char *text)
{
	char *end;

	for (opt->nr_threads = 0; opt->nr_threads < MAX_THREAD_COUNTS; text = end + 1) {
		opt->threads[opt->nr_threads++] = strtoul(text, &end, 0);
		if (*end != ',')
			return;
	}
}

static void print_layout(const char *command, const struct options *opt)
{
	struct khost_layout layout;

	khost_get_layout(&layout);
	printf("{\"record\":\"layout\",\"command\":\"%s\",\"kernel\":\"%s\",\"struct_page_bytes\":%lu,\"struct_folio_bytes\":%lu,\"pages_per_section\":%lu,\"pages_per_block\":%lu,\"pages\":%lu}\n",
	       command, opt->kernel, layout.page_size, layout.folio_size,
	       layout.pages_per_section, layout.pages_per_block, opt->pages);
}

int main(int argc, char **argv)
{
	struct options opt = {
		.rounds = 11, .repeat = 1, .threads = { 1 }, .nr_threads = 1, .order = -1, .altmap = 1, .kernel = "",
	};
	int verify, i;

	if (argc < 2 || argc % 2)
		usage();
	verify = !strcmp(argv[1], "verify");
	if (!verify && strcmp(argv[1], "bench"))
		usage();
	opt.pages = verify ? 1UL << 20 : 26214400;

	for (i = 2; i < argc; i += 2) {
		if (!strcmp(argv[i], "--pages"))
			opt.pages = strtoul(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--few"))
			opt.few = strtoul(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--rounds"))
			opt.rounds = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--repeat"))
			opt.repeat = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--threads"))
			read_threads(&opt, argv[i + 1]);
		else if (!strcmp(argv[i], "--order"))
			opt.order = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--altmap"))
			opt.altmap = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--fresh"))
			opt.fresh = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--kernel"))
			opt.kernel = argv[i + 1];
		else
			usage();
	}

	setvbuf(stdout, NULL, _IOLBF, 0);
	set_gs_area();
	print_layout(argv[1], &opt);
	return verify ? run_verify(&opt) : run_bench(&opt);
}
