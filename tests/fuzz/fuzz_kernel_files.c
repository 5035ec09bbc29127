/* SPDX-License-Identifier: MIT */
/* Every parser of the kernel's files, on the same text. */
#include "fuzz.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/kfile.h"
#include "readers/mounts.h"
#include "readers/pmu.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static kfile_parser *const parsers[] = { kfile_flat, kfile_labelled, kfile_nested, kfile_pressure,
	kfile_single, kfile_columns, kfile_stat };

/* Names of all files together; columns as in /proc/PID/stat. */
static const struct kfile_key keys[] = {
	{ "usage_usec", 10 },
	{ "VmRSS", 12 },
	{ "Threads", 14 },
	{ "rbytes", 15 },
	{ "wbytes", 1 },
	{ "some", 2 },
	{ "full", 24 },
	{ "rchar", 52 },
};

static void parse_values(const char *text, size_t size)
{
	uint64_t values[ARRAY_SIZE(keys) + 1];

	for (size_t i = 0; i < ARRAY_SIZE(parsers); i++) {
		size_t count = size % (ARRAY_SIZE(keys) + 1);

		for (size_t j = 0; j < ARRAY_SIZE(values); j++)
			values[j] = UNTOUCHED;
		CLAIM(parsers[i](text, size, keys, count, values) <= count);
		CLAIM(values[count] == UNTOUCHED);
	}
}

/* A path below the mount never leaves it. */
static void claim_below(const struct cgroup_mount *mount, const char *group)
{
	size_t length = strlen(mount->path);
	char *path;

	if (mounts_group_path(mount, group, &path) < 0)
		return;
	CLAIM(strncmp(path, mount->path, length) == 0);
	CLAIM(!strstr(path + length, "/../"));
	free(path);
}

static void parse_places(const char *text, size_t size)
{
	struct cgroup_mount usual = { .path = (char *)"/sys/fs/cgroup", .root = (char *)"/" };
	struct cgroup_mount inner = { .path = (char *)"/mnt", .root = (char *)"/a" };
	struct cgroup_mount found = { 0 };
	char *group = NULL;

	mounts_find_cgroup2(text, size, &found);
	if (mounts_group(text, size, &group) < 0)
		group = strdup("/a/b");
	CLAIM(group);
	claim_below(&usual, group);
	claim_below(&inner, group);
	if (found.path)
		claim_below(&found, group);
	free(group);
	cgroup_mount_clear(&found);
}

static void parse_options(const char *text, size_t size)
{
	char value[8];

	if (mounts_option(text, size, "/proc", "hidepid", value, sizeof(value)))
		CLAIM(strlen(value) < sizeof(value));
	mounts_controller_is_v1(text, size, "memory");
}

static void parse_cpus(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct pmu_cpus cpus;

	if (pmu_cpus_parse(text, &cpus) == 0) {
		CLAIM(cpus.count > 0);
		pmu_cpus_clear(&cpus);
	}
	free(text);
}

/* What does not fit the room ends with a whole line. */
static void read_cut(const uint8_t *data, size_t size)
{
	size_t room = 1 + size / 2;
	char *buf = malloc(room);
	int fd = sys_memfd("fuzz");
	ssize_t got;

	CLAIM(buf && fd >= 0 && write(fd, data, size) == (ssize_t)size);
	got = kfile_pread(fd, buf, room);
	CLAIM(got >= 0 && (size_t)got <= room);
	CLAIM(got == 0 || (size_t)got == size || buf[got - 1] == '\n');
	CLAIM(memcmp(buf, data, (size_t)got) == 0);
	parse_values(buf, (size_t)got);
	sys_close(fd);
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	if (size == 0)
		return 0;
	parse_values(text, size);
	parse_places(text, size);
	parse_options(text, size);
	parse_cpus(data, size);
	read_cut(data, size);
	return 0;
}
