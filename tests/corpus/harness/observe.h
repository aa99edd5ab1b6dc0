/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves share beyond khost.h. */
#ifndef OBSERVE_H
#define OBSERVE_H

/* The calls of note_device_page(), and a sum over their arguments. */
struct notes {
	unsigned long calls;
	unsigned long sum;
};

struct notes take_notes(void);

#endif /* OBSERVE_H */
