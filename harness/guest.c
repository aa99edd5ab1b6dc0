// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only program of the guest: turns each NVDIMM into a device whose memmap lies on the NVDIMM itself, says where, and ends the machine.
 *
 * region0 becomes a filesystem-DAX device (single pages), region1 a device-DAX one (compound pages of 2 MiB).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

#define ND		"/sys/bus/nd/devices/"
#define DRIVERS		"/sys/bus/nd/drivers/"
#define PAGE		4096ULL

/* The kernel keeps its label in the first pages of the device; the memmap comes after it, from the first 2 MiB boundary on. */
#define MEMMAP_START	(2ULL << 20)

struct device {
	const char *name;
	const char *seed;
	const char *driver;
	const char *uuid;
	const char *align;
};

static const struct device devices[] = {
	{ "fsdax", "pfn_seed", "nd_pmem", "9c7a3f60-3f3c-4a3b-8f4e-000000000001", "2097152" },
	{ "devdax", "dax_seed", "dax_pmem", "9c7a3f60-3f3c-4a3b-8f4e-000000000002", "2097152" },
};

static void leave(void)
{
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void fail(const char *what, const char *path)
{
	printf("guest: cannot %s %s: %s\n", what, path, strerror(errno));
	leave();
}

/* Writes a word to a file of sysfs; a driver that answers later than this program asks is waited for. */
static int try_store(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY);
	ssize_t done;

	if (fd < 0)
		return -1;
	done = write(fd, word, strlen(word));
	close(fd);
	return done == (ssize_t)strlen(word) ? 0 : -1;
}

static void store(const char *path, const char *word)
{
	if (try_store(path, word))
		fail("write", path);
}

static void load(const char *path, char *word, size_t size)
{
	FILE *file = fopen(path, "r");

	if (!file || !fgets(word, size, file))
		fail("read", path);
	fclose(file);
	word[strcspn(word, "\n")] = '\0';
}

static unsigned long long number(const char *directory, const char *name)
{
	char path[256], word[64];

	snprintf(path, sizeof(path), ND "%s/%s", directory, name);
	load(path, word, sizeof(word));
	return strtoull(word, NULL, 0);
}

static void set(const char *directory, const char *name, const char *word)
{
	char path[256];

	snprintf(path, sizeof(path), ND "%s/%s", directory, name);
	store(path, word);
}

static void set_up(const struct device *device, int region)
{
	unsigned long long start, data, size;
	char namespace[32], path[256], seed[64];

	snprintf(namespace, sizeof(namespace), "namespace%d.0", region);
	/* It may be in use as a plain block device. */
	try_store(DRIVERS "nd_pmem/unbind", namespace);

	snprintf(path, sizeof(path), ND "region%d/%s", region, device->seed);
	load(path, seed, sizeof(seed));
	set(seed, "uuid", device->uuid);
	set(seed, "mode", "pmem");
	set(seed, "align", device->align);
	set(seed, "namespace", namespace);
	snprintf(path, sizeof(path), DRIVERS "%s/bind", device->driver);
	store(path, seed);

	start = number(namespace, "resource");
	data = number(seed, "resource");
	size = number(seed, "size");
	printf("{\"memory\":\"%s\",\"from\":%llu,\"to\":%llu,\"pages\":%llu}\n",
	       device->name, MEMMAP_START, data - start, size / PAGE);
}

int main(void)
{
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mount("sysfs", "/sys", "sysfs", 0, NULL))
		fail("mount", "/sys");
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		set_up(&devices[i], i);
	leave();
}
