// SPDX-License-Identifier: GPL-2.0-only
/* Where the benchmark has no fill to compare with. */
#include <err.h>

#include "user.h"

int run_bench(const struct options *opt)
{
	(void)opt;
	errx(2, "there is no benchmark for this architecture");
}
