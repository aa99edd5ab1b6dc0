/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LEVELS
#define LEVELS 8
#endif
extern const int lamp_delays[];
