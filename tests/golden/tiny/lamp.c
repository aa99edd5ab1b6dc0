// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bus.h>
#include <linux/delay.h>
#include <linux/lamp.h>
#include <linux/wires.h>

#define LEVELS 8

/* Levels go up to LEVELS - 1. */

/* Sets a level. */
static void lamp_set(struct lamp *lamp, int level)
{
	lamp->level = level;
}

static void lamp_warm_up(struct lamp *lamp)
{
	/*
	 * The bulb is cold:
	 * warm it first.
	 */
	while (lamp_is_cold(lamp)) {
		lamp_warm(lamp);
		lamp_wait(lamp, 10);
	}
}

/*
 * Brings a lamp up.
 */
static int lamp_start(struct lamp *lamp, int level)
{
	int error;

	error = lamp_power_batched(lamp, true);
	if (error)
		return error;

	lamp_warm_up(lamp);

	lamp->on = true;
	lamp->owner = bus_id(lamp->bus); /* never changes */
	lamp_set(lamp, level);
	return 0;
}

/* Waits as long as the table says. */
static void lamp_settle(struct bus *bus)
{
	msleep(lamp_delays[bus->level]);
	bus_flush(bus);
}

int lamp_scan(struct bus *bus, int count, int batch)
{
	int i;
	int started = 0;

	if (WARN_ON(batch > LEVELS))
		batch = LEVELS;

	/* One after the other. */
	for (i = 0; i < count; i++) {
		struct lamp *lamp = bus->lamps[i];

		if (!lamp)
			continue;
		started++;

		lamp_start(lamp, bus->level);
		if (started == batch) {
			lamp_settle(bus);
			started = 0;
		}
		/* Tell who listens. */
		bus_log(bus, "lamp %d", i);
	}

	return count;
}

EXPORT_SYMBOL(lamp_scan);
