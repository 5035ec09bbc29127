/* SPDX-License-Identifier: MIT */
/*
 * Energy counters below /sys/class/powercap.  A zone is a folder called
 * intel-rapl:N (also on AMD processors) or, for a part of it, intel-rapl:N:M;
 * what it is stands in its file `name`.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/energy.h"
#include "readers/kfile.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define PREFIX "intel-rapl"

/* A second way to the very same counters, by memory instead of by a register. */
#define TWIN_PREFIX PREFIX "-mmio:"

/* The control type, a package, a part of it: each may hold the next. */
#define DEPTH 3

#define LABEL_ROOM 64

struct zone {
	char *path;
	const char *folder; /* the path's last part */
	char label[LABEL_ROOM];
};

struct zones {
	struct zone *zone;
	size_t count;
};

struct energy_bank {
	int *fd; /* of each counter; -1: cannot be read */
	size_t count;
};

/* --- zones --- */

static void zones_clear(struct zones *z)
{
	for (size_t i = 0; i < z->count; i++)
		free(z->zone[i].path);
	free(z->zone);
	*z = (struct zones){ 0 };
}

static const struct zone *zones_find(const struct zones *z, const char *folder, size_t length)
{
	for (size_t i = 0; i < z->count; i++)
		if (strlen(z->zone[i].folder) == length &&
			strncmp(z->zone[i].folder, folder, length) == 0)
			return &z->zone[i];
	return NULL;
}

/* The folders of the kernel are linked to each other: each zone may be met more than once. */
static int zones_add(struct zones *z, const char *parent, const char *folder)
{
	struct zone zone = { .folder = NULL };
	struct zone *grown;

	if (!strchr(folder, ':') || zones_find(z, folder, strlen(folder)))
		return 0;
	if (textfile_read(zone.label, sizeof(zone.label), "%s/%s/name", parent, folder) <= 0)
		return 0;
	grown = reallocarray(z->zone, z->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	z->zone = grown;
	if (asprintf(&zone.path, "%s/%s", parent, folder) < 0)
		return -ENOMEM;
	zone.folder = zone.path + strlen(parent) + 1;
	z->zone[z->count++] = zone;
	return 0;
}

static int is_rapl(const struct dirent *entry)
{
	return str_starts(entry->d_name, PREFIX);
}

static int zones_scan(struct zones *z, const char *parent, int depth);

static int zones_scan_below(struct zones *z, const char *parent, const char *folder, int depth)
{
	char *path;
	int err;

	if (depth == 0)
		return 0;
	if (asprintf(&path, "%s/%s", parent, folder) < 0)
		return -ENOMEM;
	err = zones_scan(z, path, depth - 1);
	free(path);
	/* What cannot be looked into holds no zone. */
	return err == -ENOMEM ? err : 0;
}

static int zones_scan(struct zones *z, const char *parent, int depth)
{
	struct dirent **entry;
	int count = scandir(parent, &entry, is_rapl, versionsort);
	int err = 0;

	if (count < 0)
		return -errno;
	for (int i = 0; i < count && err == 0; i++)
		err = zones_add(z, parent, entry[i]->d_name);
	for (int i = 0; i < count && err == 0; i++)
		err = zones_scan_below(z, parent, entry[i]->d_name, depth);
	for (int i = 0; i < count; i++)
		free(entry[i]);
	free(entry);
	return err;
}

/* --- what they count --- */

static const struct {
	const char *label;
	enum energy_kind kind;
} parts[] = {
	{ "core", ENERGY_CORE },
	{ "dram", ENERGY_DRAM },
	{ "uncore", ENERGY_UNCORE },
};

static bool label_is_package(const char *label, struct energy_counter *ret)
{
	ret->die = 0;
	return sscanf(label, "package-%d-die-%d", &ret->package, &ret->die) >= 1;
}

/* The package that intel-rapl:0:2 is a part of is intel-rapl:0. */
static bool zone_is_part(const struct zones *z, const struct zone *zone, struct energy_counter *ret)
{
	size_t length = (size_t)(strrchr(zone->folder, ':') - zone->folder);
	const struct zone *parent = zones_find(z, zone->folder, length);

	if (!parent || !label_is_package(parent->label, ret))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (str_eq(zone->label, parts[i].label)) {
			ret->kind = parts[i].kind;
			return true;
		}
	}
	return false;
}

/* False: a kind that we do not know. */
static bool zone_is_counter(
	const struct zones *z, const struct zone *zone, struct energy_counter *ret)
{
	*ret = (struct energy_counter){ .kind = ENERGY_PACKAGE };
	if (label_is_package(zone->label, ret))
		return true;
	if (zone_is_part(z, zone, ret))
		return true;
	ret->kind = ENERGY_PSYS;
	ret->package = ret->die = 0;
	return str_eq(zone->label, "psys");
}

/* Zones of one place, as those of dies before 5.2, and those of several platforms. */
static void counter_tell_apart(const struct energy_counters *list, struct energy_counter *c)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct energy_counter *other = &list->counter[i];

		if (other->kind != c->kind || other->package != c->package || other->die != c->die)
			continue;
		if (c->kind == ENERGY_PSYS)
			c->package++;
		else
			c->die++;
	}
}

/* --- reading --- */

static int fd_read(int fd, uint64_t *ret)
{
	char text[32];
	ssize_t size = sys_pread(fd, text, sizeof(text), 0);

	if (size < 0)
		return (int)size;
	return kfile_single(text, (size_t)size, NULL, 1, ret) == 1 && *ret != VALUE_ABSENT
		       ? 0
		       : -ENODATA;
}

static void powercap_read(struct energy_bank *b, uint64_t *ret_uj)
{
	for (size_t i = 0; i < b->count; i++) {
		int err = b->fd[i] < 0 ? -EBADF : fd_read(b->fd[i], &ret_uj[i]);

		if (err < 0)
			ret_uj[i] = VALUE_ABSENT;
		/* The zone is gone for good, as when its driver is unloaded. */
		if (err == -ENODEV || err == -ENOENT)
			b->fd[i] = sys_close(b->fd[i]);
	}
}

static char *why_absent(const char *path, int err)
{
	char *text;
	int size;

	if (err == -EACCES || err == -EPERM)
		size = asprintf(&text,
			"only root may read %s/energy_uj (so since 2020): sudo chmod a+r "
			"%s/energy_uj, or jphase doctor for a lasting way",
			path, path);
	else
		size = asprintf(&text, "cannot read %s/energy_uj: %s", path, strerror(-err));
	return size < 0 ? NULL : text;
}

/* Opens the counter; one that cannot be read stays, with the reason. */
static int zone_open(const struct zone *zone, struct energy_counter *c, int *ret_fd)
{
	char path[PATH_MAX], text[32];
	uint64_t uj;
	int err;

	snprintf(path, sizeof(path), "%s/energy_uj", zone->path);
	*ret_fd = sys_open(path, O_RDONLY, 0);
	err = *ret_fd < 0 ? *ret_fd : fd_read(*ret_fd, &uj);
	if (err < 0) {
		*ret_fd = *ret_fd < 0 ? -1 : sys_close(*ret_fd);
		c->absent = why_absent(zone->path, err);
		if (!c->absent)
			return -ENOMEM;
	}
	if (textfile_read(text, sizeof(text), "%s/max_energy_range_uj", zone->path) > 0)
		c->range_uj = strtoull(text, NULL, 10);
	c->where = strdup(zone->path);
	return c->where ? 0 : -ENOMEM;
}

static int bank_add(struct energy_bank *b, struct energy_counters *list, const struct zone *zone,
	struct energy_counter *c)
{
	int *grown = reallocarray(b->fd, b->count + 1, sizeof(*grown));
	int err;

	if (!grown)
		return -ENOMEM;
	b->fd = grown;
	err = zone_open(zone, c, &b->fd[b->count]);
	if (err == 0)
		err = energy_counters_add(list, c);
	if (err == 0) {
		b->count++;
		return 0;
	}
	sys_close(b->fd[b->count]);
	free(c->where);
	free(c->absent);
	return err;
}

static int zones_open(const struct zones *z, bool twins, bool amd, struct energy_bank *b,
	struct energy_counters *list)
{
	int err = 0;

	for (size_t i = 0; i < z->count && err == 0; i++) {
		const struct zone *zone = &z->zone[i];
		struct energy_counter c;

		if (str_starts(zone->folder, TWIN_PREFIX) != twins || !zone_is_counter(z, zone, &c))
			continue;
		if (twins && energy_counters_find(list, c.kind, c.package))
			continue;
		counter_tell_apart(list, &c);
		if (amd && c.kind == ENERGY_CORE)
			c.note = "the kernel shows one core alone on AMD processors";
		err = bank_add(b, list, zone, &c);
	}
	return err;
}

static struct energy_bank *powercap_close(struct energy_bank *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->count; i++)
		sys_close(b->fd[i]);
	free(b->fd);
	free(b);
	return NULL;
}

/* At least one counter can be read. */
static int check_any(const struct energy_bank *b, const struct energy_counters *list,
	const char *root, char ret_reason[READER_REASON_ROOM])
{
	for (size_t i = 0; i < b->count; i++)
		if (b->fd[i] >= 0)
			return 0;
	if (b->count == 0) {
		reason_set(ret_reason,
			"no energy counters in %.120s (virtual machines have none, nor have all "
			"processors)",
			root);
		return -ENODEV;
	}
	reason_set(ret_reason, "%s", list->counter[0].absent);
	return -EACCES;
}

static int zones_load(const struct zones *z, const struct reader_env *env, const char *root,
	struct energy_counters *ret_counters, struct energy_bank **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct energy_bank *b = calloc(1, sizeof(*b));
	bool amd = energy_is_amd(env);
	int err = b ? 0 : -ENOMEM;

	if (err == 0)
		err = zones_open(z, /*twins=*/false, amd, b, ret_counters);
	if (err == 0)
		err = zones_open(z, /*twins=*/true, amd, b, ret_counters);
	if (err == 0)
		err = check_any(b, ret_counters, root, ret_reason);
	if (err < 0) {
		powercap_close(b);
		energy_counters_clear(ret_counters);
		return err;
	}
	*ret = b;
	return 0;
}

static int powercap_open(const struct reader_env *env, struct energy_counters *ret_counters,
	struct energy_bank **ret, char ret_reason[READER_REASON_ROOM])
{
	struct zones z = { 0 };
	char root[PATH_MAX];
	int err;

	reason_set(ret_reason, "out of memory");
	if (env->powercap_root)
		snprintf(root, sizeof(root), "%s", env->powercap_root);
	else
		snprintf(root, sizeof(root), "%s/class/powercap", env->sys_root);
	*ret_counters = (struct energy_counters){ 0 };
	err = zones_scan(&z, root, DEPTH);
	if (err == 0 || err == -ENOENT)
		err = zones_load(&z, env, root, ret_counters, ret, ret_reason);
	else if (err != -ENOMEM)
		reason_set(ret_reason, "cannot look into %.120s: %s", root, strerror(-err));
	zones_clear(&z);
	return err;
}

const struct energy_way powercap_way = {
	.name = "RAPL (powercap)",
	.absolute = true,
	.open = powercap_open,
	.read = powercap_read,
	.close = powercap_close,
};
