// SPDX-License-Identifier: GPL-2.0-only
/*
 * The benchmark: every variant, and a non-temporal fill of the same memory as
 * the limit, on memory that is already touched. In each round all of them run
 * once, in an order that changes from round to round, because a run pays for the
 * dirty cache lines that the one before it left.
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "khost.h"
#include "user.h"

#define MAX_SAMPLES	256
#define MAX_CONTENDERS	32
#define MAX_RETRIES	50
#define LARGEST_ORDER	18

/* Wall time above this many times the CPU time: somebody else had the core. */
#define DISTURBED	1.10

struct memory {
	char *start;
	size_t page_size;
};

struct share {
	const struct memory *mem;
	void *fn;			/* NULL: the fill */
	unsigned int thread;
	unsigned long first;		/* index of the first page */
	unsigned long nr;
	unsigned int repeat;
	double cpu_ns;
	pthread_barrier_t *barrier;
};

static double samples[MAX_CONTENDERS][MAX_SAMPLES];

static double clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, unsigned int nr)
{
	double sorted[MAX_SAMPLES];

	memcpy(sorted, values, nr * sizeof(*values));
	qsort(sorted, nr, sizeof(*sorted), compare_double);
	return nr % 2 ? sorted[nr / 2] : (sorted[nr / 2 - 1] + sorted[nr / 2]) / 2;
}

static double quantile(const double *values, unsigned int nr, double q)
{
	double sorted[MAX_SAMPLES];

	memcpy(sorted, values, nr * sizeof(*values));
	qsort(sorted, nr, sizeof(*sorted), compare_double);
	return sorted[(unsigned int)(q * (nr - 1) + 0.5)];
}

static double paired_ratio(const double *a, const double *b, unsigned int nr)
{
	double ratios[MAX_SAMPLES];
	unsigned int i;

	for (i = 0; i < nr; i++)
		ratios[i] = a[i] / b[i];
	return median(ratios, nr);
}

static void fill_streamed(char *start, size_t size)
{
	long long *p = (long long *)start, *end = (long long *)(start + size);

	for (; p + 8 <= end; p += 8) {
		_mm_stream_si64(p + 0, 0);
		_mm_stream_si64(p + 1, 1);
		_mm_stream_si64(p + 2, 2);
		_mm_stream_si64(p + 3, 3);
		_mm_stream_si64(p + 4, 4);
		_mm_stream_si64(p + 5, 5);
		_mm_stream_si64(p + 6, 6);
		_mm_stream_si64(p + 7, 7);
	}
	_mm_sfence();
}

static void run_share(struct share *s)
{
	double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned int i;

	for (i = 0; i < s->repeat; i++) {
		if (s->fn)
			khost_run(s->fn, s->thread, START_PFN + s->first, s->nr);
		else
			fill_streamed(s->mem->start + s->first * s->mem->page_size,
				      s->nr * s->mem->page_size);
	}
	s->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void *thread_main(void *arg)
{
	struct share *s = arg;

	set_gs_area();
	pthread_barrier_wait(s->barrier);
	run_share(s);
	return NULL;
}

/* The wall time of all threads together; retried while the host disturbs it. */
static double run_threads(const struct memory *mem, void *fn,
			  const struct options *opt, unsigned int *retries)
{
	struct share shares[KHOST_MAX_THREADS];
	pthread_t threads[KHOST_MAX_THREADS];
	unsigned long each = opt->pages / opt->threads & ~((1UL << LARGEST_ORDER) - 1);
	double start, wall, cpu;
	pthread_barrier_t barrier;
	unsigned int i, tries;

	for (tries = 0; ; tries++) {
		pthread_barrier_init(&barrier, NULL, opt->threads + 1);
		for (i = 0; i < opt->threads; i++) {
			shares[i] = (struct share){
				.mem = mem, .fn = fn, .thread = i,
				.first = i * each, .nr = each,
				.repeat = opt->repeat, .barrier = &barrier,
			};
			if (i == opt->threads - 1)
				shares[i].nr = opt->pages - i * each;
			if (pthread_create(&threads[i], NULL, thread_main, &shares[i]))
				errx(2, "pthread_create");
		}
		start = clock_ns(CLOCK_MONOTONIC);
		pthread_barrier_wait(&barrier);
		for (cpu = 0, i = 0; i < opt->threads; i++) {
			pthread_join(threads[i], NULL);
			if (shares[i].cpu_ns > cpu)
				cpu = shares[i].cpu_ns;
		}
		wall = clock_ns(CLOCK_MONOTONIC) - start;
		pthread_barrier_destroy(&barrier);
		if (wall < DISTURBED * cpu || tries == MAX_RETRIES)
			break;
	}
	*retries += tries;
	return wall;
}

static double run_sample(const struct memory *mem, void *fn,
			 const struct options *opt, unsigned int *retries)
{
	struct share share = {
		.mem = mem, .fn = fn, .nr = opt->pages, .repeat = opt->repeat,
	};

	if (opt->threads > 1)
		return run_threads(mem, fn, opt, retries);
	run_share(&share);
	return share.cpu_ns;
}

/* A new order for every round, the same ones in every run of the program. */
static void shuffle(unsigned int *order, unsigned int nr)
{
	static uint64_t state = 1;
	unsigned int i, j, tmp;

	for (i = nr - 1; i > 0; i--) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		j = (state >> 33) % (i + 1);
		tmp = order[i];
		order[i] = order[j];
		order[j] = tmp;
	}
}

static void print_contender(unsigned int c, const struct khost_device *dev,
			    const struct options *opt, unsigned int retries)
{
	double divisor = (double)opt->pages * opt->repeat;
	const double *s = samples[c];

	printf("{\"record\":\"bench\",\"kernel\":\"%s\",\"variant\":\"%s\",\"order\":%u,\"altmap\":%s,\"pages\":%lu,\"repeat\":%u,\"threads\":%u,\"rounds\":%u,\"clock\":\"%s\",\"ns_per_page\":%.4f,\"ns_per_page_p10\":%.4f,\"ns_per_page_p90\":%.4f,\"speedup_over_base\":%.4f,\"ratio_to_limit\":%.4f,\"retries\":%u}\n",
	       opt->kernel, c < nr_variants ? variants[c].name : "limit",
	       dev->order, dev->altmap ? "true" : "false", opt->pages, opt->repeat, opt->threads, opt->rounds,
	       opt->threads > 1 ? "wall" : "thread_cpu",
	       median(s, opt->rounds) / divisor,
	       quantile(s, opt->rounds, 0.1) / divisor,
	       quantile(s, opt->rounds, 0.9) / divisor,
	       paired_ratio(samples[0], s, opt->rounds),
	       paired_ratio(s, samples[nr_variants], opt->rounds), retries);
}

static void bench_order(const struct memory *mem, unsigned int order,
			const struct options *opt)
{
	unsigned int turn[MAX_CONTENDERS], nr = nr_variants + 1, retries = 0, r, i;
	unsigned int types;
	const struct khost_type *type = khost_types(&types);
	struct khost_device dev = { .order = order, .altmap = opt->altmap };

	/* What the drivers use: fsdax by single pages, devdax by compound ones. */
	for (i = 0; i < types; i++)
		if (!strcmp(type[i].name, order ? "generic" : "fsdax"))
			dev.type = type[i].value;
	khost_set_device(&dev);

	for (i = 0; i < nr; i++)
		turn[i] = i;
	for (r = 0; r < opt->rounds; r++) {
		shuffle(turn, nr);
		for (i = 0; i < nr; i++) {
			unsigned int c = turn[i];

			samples[c][r] = run_sample(mem, c < nr_variants ?
						   variants[c].fn : NULL,
						   opt, &retries);
		}
	}
	for (i = 0; i < nr; i++)
		print_contender(i, &dev, opt, retries);
}

int run_bench(const struct options *opt)
{
	static const unsigned int orders[] = { 0, 9, 18 };
	struct khost_layout layout;
	struct memory mem;
	size_t size;
	unsigned int i;

	if (opt->rounds < 1 || opt->rounds > MAX_SAMPLES ||
	    nr_variants + 1 > MAX_CONTENDERS || opt->repeat < 1 ||
	    opt->threads < 1 || opt->threads > KHOST_MAX_THREADS)
		errx(2, "rounds, repeat, threads or variants out of range");

	khost_get_layout(&layout);
	size = opt->pages * layout.page_size;
	mem.start = map_memory(size);
	mem.page_size = layout.page_size;
	memset(mem.start, 1, size);
	khost_set_memmap(mem.start, START_PFN);

	if (opt->order >= 0) {
		bench_order(&mem, opt->order, opt);
		return 0;
	}
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (opt->pages >> orders[i])
			bench_order(&mem, orders[i], opt);
	return 0;
}
