// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel half: the project's own, and what a changed kernel may tell of a
 * page, whose calls are counted.
 */
#include "../../../harness/khost.c"
#include "observe.h"

static struct notes notes;

void note_device_page(struct page *page, unsigned long value);
void note_device_page(struct page *page, unsigned long value)
{
	notes.calls++;
	/* no order: who copies may well tell of the pages in another one */
	notes.sum += page_to_pfn(page) * 31 + value;
}

struct notes take_notes(void)
{
	return notes;
}
