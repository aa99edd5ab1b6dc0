/* SPDX-License-Identifier: GPL-2.0-only */
/* The table that the linker writes. */
#ifndef COMPARE_H
#define COMPARE_H

struct variant {
	const char *name;
	void *fn;
};

extern const struct variant variants[];
extern const unsigned int nr_variants;

#endif /* COMPARE_H */
