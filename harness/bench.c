// SPDX-License-Identifier: GPL-2.0-only
/*
 * The benchmark: every variant, and a non-temporal fill of the same memory as
 * the limit, by one thread or by several. In each round all of them run once, in
 * an order that changes from round to round, because a run pays for the dirty
 * cache lines that the one before it left.
 *
 * How fast a loop is depends on where it lies. So every variant is there several
 * times, at other places of a page and of the program. A round is of one of these
 * placements, and they take turns: what is slow for a while hits all of them alike.
 *
 * Each run is printed as it ends; what the figures say is up to the reader.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <emmintrin.h>
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "khost.h"
#include "user.h"

#define MAX_CONTENDERS	64
#define MAX_PLACEMENTS	64
#define MAX_RETRIES	5
#define LARGEST_ORDER	18

/* How far the stack of one placement is from that of the next, in bytes. */
#define STACK_STEP	528

/* Wall time above this many times the CPU time: somebody else had the core. */
#define DISTURBED	1.10

struct memory {
	char *start;
	size_t page_size;
	size_t size;
};

struct contender {
	const char *name;
	void *fn;			/* NULL: the fill */
	unsigned int threads;
	unsigned int placement;
};

struct sample {
	double cpu_ns;			/* of the thread that used most */
	double wall_ns;
	unsigned int retries;		/* runs thrown away since the host had taken a core */
};

struct share {
	const struct memory *mem;
	void *fn;			/* NULL: the fill */
	unsigned int thread;
	unsigned int placement;
	unsigned long first;		/* index of the first page */
	unsigned long nr;
	unsigned int repeat;
	double cpu_ns;
	pthread_barrier_t *barrier;
};

static double clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
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
	/* What the code keeps on the stack lies elsewhere with each placement, too. */
	char *room = alloca((s->placement + 1) * STACK_STEP);
	double start;
	unsigned int i;

	asm volatile("" : : "r"(room) : "memory");
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
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

/* All threads together; again while the host disturbs them. */
static struct sample run_threads(const struct memory *mem,
				 const struct contender *c,
				 const struct options *opt)
{
	struct share shares[KHOST_MAX_THREADS];
	pthread_t threads[KHOST_MAX_THREADS];
	unsigned long each = opt->pages / c->threads & ~((1UL << LARGEST_ORDER) - 1);
	struct sample sample = { };
	pthread_barrier_t barrier;
	unsigned int i;
	double start;

	for (;; sample.retries++) {
		pthread_barrier_init(&barrier, NULL, c->threads + 1);
		for (i = 0; i < c->threads; i++) {
			shares[i] = (struct share){
				.mem = mem, .fn = c->fn, .thread = i,
				.placement = c->placement,
				.first = i * each, .nr = each,
				.repeat = opt->repeat, .barrier = &barrier,
			};
			if (i == c->threads - 1)
				shares[i].nr = opt->pages - i * each;
			if (pthread_create(&threads[i], NULL, thread_main, &shares[i]))
				errx(2, "pthread_create");
		}
		start = clock_ns(CLOCK_MONOTONIC);
		pthread_barrier_wait(&barrier);
		for (sample.cpu_ns = 0, i = 0; i < c->threads; i++) {
			pthread_join(threads[i], NULL);
			if (shares[i].cpu_ns > sample.cpu_ns)
				sample.cpu_ns = shares[i].cpu_ns;
		}
		sample.wall_ns = clock_ns(CLOCK_MONOTONIC) - start;
		pthread_barrier_destroy(&barrier);
		if (sample.wall_ns < DISTURBED * sample.cpu_ns ||
		    sample.retries == MAX_RETRIES)
			return sample;
	}
}

static struct sample run_sample(const struct memory *mem,
				const struct contender *c,
				const struct options *opt)
{
	struct share share = {
		.mem = mem, .fn = c->fn, .nr = opt->pages, .repeat = opt->repeat,
		.placement = c->placement,
	};
	struct sample sample = { };

	if (opt->fresh && madvise(mem->start, mem->size, MADV_DONTNEED))
		err(2, "madvise");
	if (c->threads > 1)
		return run_threads(mem, c, opt);
	sample.wall_ns = clock_ns(CLOCK_MONOTONIC);
	run_share(&share);
	sample.wall_ns = clock_ns(CLOCK_MONOTONIC) - sample.wall_ns;
	sample.cpu_ns = share.cpu_ns;
	return sample;
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

static unsigned int nr_placements(void)
{
	unsigned int nr = 1, v;

	for (v = 0; v < nr_variants; v++)
		if (variants[v].placement >= nr)
			nr = variants[v].placement + 1;
	return nr;
}

static unsigned int variants_at(unsigned int placement)
{
	unsigned int nr = 0, v;

	for (v = 0; v < nr_variants; v++)
		nr += variants[v].placement == placement;
	return nr;
}

/* Every variant of a placement and the fill, with each number of threads. */
static unsigned int list_contenders(struct contender *list, unsigned int placement,
				    const struct options *opt)
{
	unsigned int nr = 0, t, v;

	for (t = 0; t < opt->nr_threads; t++)
		for (v = 0; v <= nr_variants; v++)
			if (v == nr_variants || variants[v].placement == placement)
				list[nr++] = (struct contender){
					.name = v < nr_variants ? variants[v].name : "limit",
					.fn = v < nr_variants ? variants[v].fn : NULL,
					.threads = opt->threads[t],
					.placement = placement,
				};
	return nr;
}

/* What the drivers use: fsdax by single pages, devdax by compound ones. */
static void set_device(const struct options *opt)
{
	const char *name = opt->order ? "generic" : "fsdax";
	struct khost_device dev = { .order = opt->order, .altmap = opt->altmap };
	unsigned int nr_types, i;
	const struct khost_type *types = khost_types(&nr_types);

	for (i = 0; i < nr_types; i++)
		if (!strcmp(types[i].name, name))
			dev.type = types[i].value;
	khost_set_device(&dev);
}

static void run_round(const struct memory *mem, const struct options *opt,
		      unsigned int round, unsigned int placement)
{
	struct contender list[MAX_CONTENDERS];
	unsigned int turn[MAX_CONTENDERS], nr = list_contenders(list, placement, opt), i;

	for (i = 0; i < nr; i++)
		turn[i] = i;
	shuffle(turn, nr);
	for (i = 0; i < nr; i++) {
		const struct contender *c = &list[turn[i]];
		struct sample s = run_sample(mem, c, opt);

		printf("{\"record\":\"sample\",\"round\":%u,\"placement\":%u,\"variant\":\"%s\",\"threads\":%u,\"cpu_ns\":%.0f,\"wall_ns\":%.0f,\"retries\":%u}\n",
		       round, placement, c->name, c->threads, s.cpu_ns, s.wall_ns, s.retries);
	}
}

/* The placements take turns, in a new order each time. */
static void run_rounds(const struct memory *mem, const struct options *opt)
{
	unsigned int turn[MAX_PLACEMENTS], nr = nr_placements(), round = 0, r, i;

	for (i = 0; i < nr; i++)
		turn[i] = i;
	for (r = 0; r < opt->rounds; r++) {
		shuffle(turn, nr);
		for (i = 0; i < nr; i++)
			run_round(mem, opt, round++, turn[i]);
	}
}

int run_bench(const struct options *opt)
{
	struct khost_layout layout;
	struct memory mem;
	unsigned int i;

	if (opt->rounds < 1 || opt->repeat < 1 || opt->order < 0 ||
	    opt->order > LARGEST_ORDER || !(opt->pages >> opt->order) ||
	    nr_placements() > MAX_PLACEMENTS)
		errx(2, "pages, rounds, repeat, order or placements out of range");
	for (i = 0; i < nr_placements(); i++)
		if ((variants_at(i) + 1) * opt->nr_threads > MAX_CONTENDERS)
			errx(2, "too many variants");
	for (i = 0; i < opt->nr_threads; i++)
		if (opt->threads[i] < 1 || opt->threads[i] > KHOST_MAX_THREADS ||
		    (opt->threads[i] > 1 && (opt->fresh ||
		     opt->pages / opt->threads[i] < 1UL << LARGEST_ORDER)))
			errx(2, "threads out of range");

	khost_get_layout(&layout);
	mem.page_size = layout.page_size;
	mem.size = opt->pages * layout.page_size;
	mem.start = map_memory(mem.size);
	if (!opt->fresh)
		memset(mem.start, 1, mem.size);
	khost_set_memmap(mem.start, START_PFN);
	set_device(opt);
	run_rounds(&mem, opt);
	return 0;
}
