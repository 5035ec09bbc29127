/* SPDX-License-Identifier: MIT */
#include "support/tape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "internal/sys.h"

enum {
	PERF,
	CGROUP,
	PROCFS,
};

static struct metric perf_metrics[] = {
	{ .name = "task-clock", .unit = UNIT_NS, .group = 0 },
	{ .name = "page-faults", .group = 0, .note = "faults inside system calls are missing" },
	{ .name = "CPU_CYCLES", .group = METRIC_NO_GROUP, .absent = "no hardware counters here" },
};

static struct metric cgroup_metrics[] = {
	{ .name = "proc_usage_usec",
		.unit = UNIT_US,
		.scope = SCOPE_GROUP,
		.group = METRIC_NO_GROUP,
		.note = "shared with 12 other processes" },
	{ .name = "proc_current",
		.kind = METRIC_GAUGE,
		.unit = UNIT_BYTES,
		.scope = SCOPE_GROUP,
		.group = METRIC_NO_GROUP },
};

static struct metric procfs_metrics[] = {
	{ .name = "proc_rss_peak",
		.kind = METRIC_PEAK,
		.unit = UNIT_BYTES,
		.group = METRIC_NO_GROUP },
};

static struct metric_list perf_list = { perf_metrics, ARRAY_SIZE(perf_metrics), 1 };
struct metric_list cgroup_list = { cgroup_metrics, ARRAY_SIZE(cgroup_metrics), 0 };
struct metric_list procfs_list = { procfs_metrics, ARRAY_SIZE(procfs_metrics), 0 };

static const struct recorder_reader readers[] = {
	[PERF] = { "perf", true, NULL, &perf_list },
	[CGROUP] = { "cgroup", false, NULL, &cgroup_list },
	[PROCFS] = { "procfs", false, NULL, &procfs_list },
	{ "energy", false, "no RAPL here", NULL },
};

struct tape tape_begin(const char *mode)
{
	struct tape t = { .fd = recording_fd() };

	t.r = recording_begin(t.fd, mode, readers, ARRAY_SIZE(readers));
	return t;
}

void process(struct tape *t, uint64_t time, uint64_t index, pid_t pid, const char *how)
{
	recorder_process(t->r, time, index, pid, 1, "app", how, NULL);
}

void marker(struct tape *t, struct record_marker m)
{
	if (!m.kind)
		m.kind = JPHASE_PHASE;
	if (!m.tid)
		m.tid = 100 + (uint32_t)m.process;
	recorder_marker(t->r, &m);
}

void region(struct tape *t, uint64_t time, uint8_t kind, const char *name)
{
	marker(t, (struct record_marker){ .time_ns = time, .kind = kind, .name = name });
}

static void put_thread(struct tape *t, uint64_t process_index, uint64_t number, uint32_t tid,
	const char *how, uint64_t time, struct counts c)
{
	uint64_t values[] = { c.clock, c.faults, VALUE_ABSENT, c.enabled,
		c.running ? c.running : c.enabled };
	bool read = str_eq(how, "read");

	recorder_thread(t->r, number, process_index, tid, "perf", how, time,
		time + (read ? 1 * US : 0), values, &perf_list);
}

void thread_snapshot(struct tape *t, uint64_t number, uint32_t tid, const char *how, uint64_t time,
	struct counts c)
{
	put_thread(t, 0, number, tid, how, time, c);
}

void thread_of(struct tape *t, uint64_t process_index, uint64_t number, uint32_t tid, uint64_t time,
	struct counts c)
{
	put_thread(t, process_index, number, tid, "read", time, c);
}

void sampled(struct tape *t, uint64_t time, uint32_t tid, uint8_t kind, const char *name,
	uint64_t number, struct counts c)
{
	thread_snapshot(t, number, tid, "sampled", time + 1 * US, c);
	marker(t, (struct record_marker){ .time_ns = time,
			  .tid = tid,
			  .kind = kind,
			  .name = name,
			  .snapshot = number });
}

void snapshot(
	struct tape *t, uint64_t number, uint64_t process_index, uint64_t time, struct counts c)
{
	uint64_t values[] = { c.clock, c.faults, VALUE_ABSENT, c.enabled,
		c.running ? c.running : c.enabled };

	recorder_snapshot(
		t->r, number, process_index, "perf", time, time + 1 * US, values, &perf_list);
}

struct tape tape_started(void)
{
	struct tape t = tape_begin("sync");

	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	return t;
}

void session(struct tape *t, uint64_t number, uint64_t time, uint64_t usage, uint64_t memory)
{
	uint64_t values[] = { usage, memory };

	recorder_snapshot(t->r, number, RECORD_NO_PROCESS, "cgroup", time, time + 1 * US, values,
		&cgroup_list);
}

void gone(struct tape *t, uint64_t process_index, uint64_t time, uint64_t number)
{
	struct record_exit e = { .time_ns = time,
		.process = process_index,
		.status = 42 << 8,
		.user_us = 5000,
		.system_us = 700,
		.peak_bytes = VALUE_ABSENT,
		.snapshot = number };

	recorder_exit(t->r, &e);
}

void tape_end(struct tape *t)
{
	recording_end(t->fd, t->r);
	t->r = NULL;
}

struct model *tape_model(struct tape *t, enum model_by by)
{
	struct model *m;

	tape_end(t);
	assert_int_equal(model_open(&m), 0);
	assert_int_equal(model_read(m, t->fd, "tape"), 0);
	assert_int_equal(model_finish(m, by), 0);
	sys_close(t->fd);
	return m;
}

static size_t column(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->column_count; i++)
		if (str_eq(m->columns[i].name, name))
			return i;
	fail_msg("no column %s", name);
	return 0;
}

struct value value(const struct model *m, size_t row, const char *name)
{
	return model_value(m, &m->rows[row], column(m, name));
}

struct value total(const struct model *m, const char *name)
{
	return model_value(m, &m->runs[0].total, column(m, name));
}

struct value whole(const struct model *m, size_t region_index, const char *name)
{
	return region_value(m, &m->regions[region_index], REGION_WHOLE, column(m, name));
}

struct value own(const struct model *m, size_t region_index, const char *name)
{
	return region_value(m, &m->regions[region_index], REGION_OWN, column(m, name));
}

struct value node_whole(const struct model *m, size_t node, const char *name)
{
	return node_value(m, &m->nodes[node], REGION_WHOLE, column(m, name));
}

struct value node_own(const struct model *m, size_t node, const char *name)
{
	return node_value(m, &m->nodes[node], REGION_OWN, column(m, name));
}

void assert_counted(struct value v, uint64_t number)
{
	assert_int_equal(v.state, VALUE_COUNTED);
	assert_int_equal(v.number, number);
}

void assert_missing(struct value v, const char *quality)
{
	char text[QUALITY_ROOM];

	assert_int_equal(v.state, VALUE_NULL);
	value_quality(&v, text);
	assert_string_equal(text, quality);
}

void assert_quality(struct value v, const char *quality)
{
	char text[QUALITY_ROOM];

	assert_int_equal(v.state, VALUE_COUNTED);
	value_quality(&v, text);
	assert_string_equal(text, quality);
}

void assert_row_quality(const struct model *m, size_t row, const char *quality)
{
	char text[QUALITY_ROOM];

	row_quality(&m->rows[row], text);
	assert_string_equal(text, quality);
}

void two_phases(struct tape *t)
{
	process(t, T0, 0, 100, "first");
	marker(t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(t, 1, 0, T0, (struct counts){ 1000, 7, 1000, 0 });
	session(t, 1, T0, 50000, 4096);
	marker(t, (struct record_marker){ .time_ns = T0 + 10 * MS,
			  .name = "solve",
			  .done_ns = T0 + 10 * MS + 40 * US,
			  .snapshot = 2 });
	snapshot(t, 2, 0, T0 + 10 * MS, (struct counts){ 9001000, 107, 9001000, 0 });
	session(t, 2, T0 + 10 * MS + 60 * US, 55000, 8192);
	recorder_sample(t->r, T0 + 15 * MS, RECORD_NO_PROCESS, "cgroup",
		(uint64_t[]){ VALUE_ABSENT, 1 << 20 }, &cgroup_list);
	marker(t, (struct record_marker){ .time_ns = T0 + 30 * MS,
			  .kind = JPHASE_EXIT,
			  .name = "",
			  .took_ns = 50 * US,
			  .snapshot = 3 });
	snapshot(t, 3, 0, T0 + 30 * MS, (struct counts){ 28001000, 407, 28001000, 0 });
	session(t, 3, T0 + 30 * MS + 60 * US, 75000, 16384);
	gone(t, 0, T0 + 31 * MS, 0);
	recorder_summary(t->r, T0 + 32 * MS, 3, 0, 1, 3, true);
}

struct model *two_phase_model(enum model_by by)
{
	struct tape t = tape_begin("sync");

	two_phases(&t);
	return tape_model(&t, by);
}
