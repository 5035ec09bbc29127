/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"

#define CGROUP2_MAGIC 0x63677270

#define LIFETIME "highest of the group's lifetime"

struct cgroup_file {
	const char *name;
	kfile_parser *parse;
	struct cgroup_key keys[CGROUP_KEYS_MAX];
	bool devices;
	bool resets; /* a write through our descriptor begins the peak anew, from Linux 6.12 on */
};

#define COUNTER(k, n, u)                                                                           \
	{                                                                                          \
		.key = (k), .name = (n), .kind = METRIC_COUNTER, .unit = (u)                       \
	}
#define GAUGE(k, n, u)                                                                             \
	{                                                                                          \
		.key = (k), .name = (n), .kind = METRIC_GAUGE, .unit = (u)                         \
	}
#define PEAK(k, n, u)                                                                              \
	{                                                                                          \
		.key = (k), .name = (n), .kind = METRIC_PEAK, .unit = (u), .note = LIFETIME        \
	}

static const struct cgroup_file files[CGROUP_FILES] = {
	{ "cpu.stat", kfile_flat,
		{
			COUNTER("usage_usec", "usage_usec", UNIT_US),
			COUNTER("user_usec", "user_usec", UNIT_US),
			COUNTER("system_usec", "system_usec", UNIT_US),
			COUNTER("nr_periods", "nr_periods", UNIT_COUNT),
			COUNTER("nr_throttled", "nr_throttled", UNIT_COUNT),
			COUNTER("throttled_usec", "throttled_usec", UNIT_US),
			COUNTER("nr_bursts", "nr_bursts", UNIT_COUNT),
			COUNTER("burst_usec", "burst_usec", UNIT_US),
		},
		false, false },
	{ "memory.stat", kfile_flat,
		{
			GAUGE("anon", "anon", UNIT_BYTES),
			GAUGE("file", "file", UNIT_BYTES),
			GAUGE("kernel", "kernel", UNIT_BYTES),
			GAUGE("kernel_stack", "kernel_stack", UNIT_BYTES),
			GAUGE("shmem", "shmem", UNIT_BYTES),
			GAUGE("slab", "slab", UNIT_BYTES),
			COUNTER("workingset_refault", "workingset_refault", UNIT_COUNT),
			COUNTER("workingset_refault_anon", "workingset_refault_anon", UNIT_COUNT),
			COUNTER("workingset_refault_file", "workingset_refault_file", UNIT_COUNT),
		},
		false, false },
	{ "memory.current", kfile_single, { GAUGE("current", "current", UNIT_BYTES) }, false,
		false },
	{ "memory.swap.current", kfile_single,
		{ GAUGE("swap_current", "swap_current", UNIT_BYTES) }, false, false },
	{ "memory.peak", kfile_single, { PEAK("peak", "peak", UNIT_BYTES) }, false, true },
	{ "memory.events", kfile_flat,
		{
			COUNTER("oom", "memory_oom", UNIT_COUNT),
			COUNTER("oom_kill", "memory_oom_kill", UNIT_COUNT),
			COUNTER("high", "memory_high", UNIT_COUNT),
		},
		false, false },
	{ "io.stat", kfile_nested,
		{
			COUNTER("rbytes", "read_bytes", UNIT_BYTES),
			COUNTER("wbytes", "write_bytes", UNIT_BYTES),
			COUNTER("rios", "read_ops", UNIT_COUNT),
			COUNTER("wios", "write_ops", UNIT_COUNT),
		},
		true, false },
	{ "cpu.pressure", kfile_pressure,
		{
			COUNTER("some", "cpu_some_usec", UNIT_US),
			COUNTER("full", "cpu_full_usec", UNIT_US),
		},
		false, false },
	{ "memory.pressure", kfile_pressure,
		{
			COUNTER("some", "memory_some_usec", UNIT_US),
			COUNTER("full", "memory_full_usec", UNIT_US),
		},
		false, false },
	{ "io.pressure", kfile_pressure,
		{
			COUNTER("some", "io_some_usec", UNIT_US),
			COUNTER("full", "io_full_usec", UNIT_US),
		},
		false, false },
	{ "pids.current", kfile_single, { GAUGE("pids_current", "pids_current", UNIT_COUNT) },
		false, false },
	{ "pids.peak", kfile_single, { PEAK("pids_peak", "pids_peak", UNIT_COUNT) }, false, false },
};

/* Of a copy of the files, a write would change the copy. */
static bool is_cgroupfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_MAGIC;
}

static bool reset(int fd)
{
	return pwrite(fd, "r", 1, 0) == 1;
}

static void file_open(struct cgroup_source *s, int dir, bool anew)
{
	s->resets = false;
	if (anew && s->file->resets && is_cgroupfs(dir)) {
		s->fd = sys_openat(dir, s->file->name, O_RDWR);
		s->resets = s->fd >= 0 && reset(s->fd);
		if (s->resets)
			return;
		sys_close(s->fd);
	}
	s->fd = sys_openat(dir, s->file->name, O_RDONLY);
}

/* A number at the 64-bit maximum is no count, and reads as absent. */
static void parse(
	struct cgroup_source *s, const char *text, size_t size, uint64_t values[CGROUP_KEYS_MAX])
{
	for (size_t i = 0; i < s->count; i++)
		values[i] = VALUE_ABSENT;
	if (s->io)
		cgroup_io_add(s->io, text, size, s->key, s->count, values);
	else
		s->file->parse(text, size, s->key, s->count, values);
}

/* An optional file that is not there or tells nothing leaves no source. */
static int file_add(struct cgroup_folder *f, int dir, const struct cgroup_file *file, char *buffer)
{
	struct cgroup_source *s = &f->source[f->count];
	uint64_t value;
	ssize_t size;

	*s = (struct cgroup_source){ .file = file };
	file_open(s, dir, true);
	size = s->fd < 0 ? s->fd : kfile_pread(s->fd, buffer, CGROUP_BUFFER);
	for (size_t i = 0; size >= 0 && i < CGROUP_KEYS_MAX && file->keys[i].key; i++) {
		struct kfile_key key = { .name = file->keys[i].key };

		if (file->parse(buffer, (size_t)size, &key, 1, &value) != 1)
			continue;
		s->key[s->count] = key;
		s->last[s->count] = VALUE_ABSENT;
		s->metric[s->count++] = &file->keys[i];
	}
	if (s->count == 0) {
		s->fd = sys_close(s->fd);
		return 0;
	}
	f->values += s->count;
	f->count++;
	if (!file->devices)
		return 0;
	s->io = cgroup_io_open();
	return s->io ? 0 : -ENOMEM;
}

int cgroup_folder_open(struct cgroup_folder *f, const char *path, char *buffer)
{
	int dir = sys_open_dir(path), err = 0;

	*f = (struct cgroup_folder){ .dir = dir };
	if (dir < 0)
		return dir;
	for (size_t i = 0; i < CGROUP_FILES && err == 0; i++)
		err = file_add(f, dir, &files[i], buffer);
	if (err < 0)
		cgroup_folder_close(f);
	return err;
}

enum metric_kind cgroup_source_kind(const struct cgroup_source *s, size_t key)
{
	enum metric_kind kind = s->metric[key]->kind;

	return kind == METRIC_PEAK && s->resets ? METRIC_PEAK_SINCE : kind;
}

const char *cgroup_source_note(const struct cgroup_source *s, size_t key)
{
	return cgroup_source_kind(s, key) == METRIC_PEAK_SINCE ? NULL : s->metric[key]->note;
}

static void remember(struct cgroup_source *s, uint64_t values[CGROUP_KEYS_MAX])
{
	for (size_t i = 0; i < s->count; i++) {
		if (values[i] == VALUE_ABSENT)
			continue;
		if (s->rebase & 1u << i && s->last[i] != VALUE_ABSENT)
			s->past[i] = s->last[i] - values[i];
		s->rebase &= ~(1u << i);
		if (s->metric[i]->kind == METRIC_COUNTER)
			values[i] += s->past[i];
		s->last[i] = values[i];
	}
}

static bool has_gauges(const struct cgroup_source *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->metric[i]->kind == METRIC_GAUGE)
			return true;
	return false;
}

/* What has ended stands still, but a peak that was begun anew has nothing more to tell. */
static void repeat_last(const struct cgroup_source *s, uint64_t values[CGROUP_KEYS_MAX])
{
	for (size_t i = 0; i < s->count; i++)
		values[i] =
			cgroup_source_kind(s, i) == METRIC_PEAK_SINCE ? VALUE_ABSENT : s->last[i];
}

static void all_absent(uint64_t values[CGROUP_KEYS_MAX])
{
	for (size_t i = 0; i < CGROUP_KEYS_MAX; i++)
		values[i] = VALUE_ABSENT;
}

/* A file also goes when its controller is switched off; the group then lives on. */
static void source_end(struct cgroup_folder *f, struct cgroup_source *s)
{
	s->fd = sys_close(s->fd);
	if (f->dir < 0 || faccessat(f->dir, "cgroup.procs", F_OK, 0) < 0)
		f->removed = true;
	else
		s->blind = f->lost_file = true;
}

static void source_read(struct cgroup_folder *f, struct cgroup_source *s, char *buffer,
	uint64_t values[CGROUP_KEYS_MAX])
{
	ssize_t size = s->fd < 0 ? 0 : kfile_pread(s->fd, buffer, CGROUP_BUFFER);

	if (size == -ENODEV || size == -ENOENT)
		source_end(f, s);
	if (s->blind || (s->fd >= 0 && size < 0)) {
		all_absent(values);
		return;
	}
	if (s->fd < 0) {
		repeat_last(s, values);
		return;
	}
	parse(s, buffer, (size_t)size, values);
	remember(s, values);
}

void cgroup_folder_read(
	struct cgroup_folder *f, bool gauges_only, char *buffer, uint64_t *ret_values)
{
	uint64_t values[CGROUP_KEYS_MAX];

	for (size_t i = 0; i < f->count; i++) {
		struct cgroup_source *s = &f->source[i];
		bool skipped = gauges_only && !has_gauges(s);

		if (!skipped)
			source_read(f, s, buffer, values);
		if (!gauges_only && s->resets && s->fd >= 0)
			(void)reset(s->fd);
		for (size_t k = 0; k < s->count; k++) {
			bool left_out =
				skipped || (gauges_only && s->metric[k]->kind != METRIC_GAUGE);

			*ret_values++ = left_out ? VALUE_ABSENT : values[k];
		}
	}
}

/* The new group's counters stand where they stand: only what they grow by is added. */
static int source_move(struct cgroup_folder *f, struct cgroup_source *s, int dir, char *buffer)
{
	bool resets = s->resets;
	uint64_t values[CGROUP_KEYS_MAX];

	if (s->io) {
		cgroup_io_close(s->io);
		s->io = cgroup_io_open();
		if (!s->io)
			return -ENOMEM;
	}
	sys_close(s->fd);
	file_open(s, dir, resets);
	/* What the metric means is fixed: without a reset there is no peak of a phase. */
	if (s->resets != resets) {
		s->fd = sys_close(s->fd);
		s->resets = resets;
	}
	s->blind = s->fd < 0;
	s->rebase = UINT32_MAX;
	source_read(f, s, buffer, values);
	return 0;
}

int cgroup_folder_split(struct cgroup_folder *f, struct cgroup_folder *ret)
{
	bool lacking = false;

	*ret = *f;
	f->dir = -1;
	for (size_t i = 0; i < f->count; i++) {
		f->source[i].fd = -1;
		if (!f->source[i].io)
			continue;
		f->source[i].io = cgroup_io_open();
		lacking |= !f->source[i].io;
	}
	return lacking ? -ENOMEM : 0;
}

int cgroup_folder_move(struct cgroup_folder *f, const char *path, char *buffer)
{
	int dir = sys_open_dir(path), err = 0;

	cgroup_folder_lose(f);
	if (dir < 0)
		return dir;
	f->dir = dir;
	for (size_t i = 0; i < f->count && err == 0; i++)
		err = source_move(f, &f->source[i], dir, buffer);
	if (err < 0)
		cgroup_folder_lose(f);
	return err;
}

void cgroup_folder_lose(struct cgroup_folder *f)
{
	f->dir = sys_close(f->dir);
	f->removed = f->lost_file = false;
	for (size_t i = 0; i < f->count; i++) {
		f->source[i].fd = sys_close(f->source[i].fd);
		f->source[i].blind = true;
	}
}

const char *cgroup_folder_lacks(const struct cgroup_folder *f, size_t *ret_count)
{
	const char *first = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < f->count; i++) {
		if (!f->source[i].blind)
			continue;
		if (!first)
			first = f->source[i].file->name;
		++*ret_count;
	}
	return first;
}

void cgroup_folder_close(struct cgroup_folder *f)
{
	for (size_t i = 0; i < f->count; i++) {
		sys_close(f->source[i].fd);
		f->source[i].io = cgroup_io_close(f->source[i].io);
	}
	f->dir = sys_close(f->dir);
	f->count = f->values = 0;
}
