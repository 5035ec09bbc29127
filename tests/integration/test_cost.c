/* SPDX-License-Identifier: MIT */
/* What a marker costs, in system calls: those of the target and those of the collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal/util.h"
#include "support/measure.h"
#include "support/trace.h"

/* The sanitizer's own cannot work in a program that is traced. */
#define NO_LEAK_CHECK "ASAN_OPTIONS=detect_leaks=0"

/* --- the target --- */

#define BRACKETS     4 /* two threads of two processes */
#define MARKERS      100
#define MARKERS_WORD "100"

/* All that a thread called between its two signposts. */
static size_t assert_bracket_holds(const struct trace *t, const char *allowed)
{
	size_t begin = trace_find(t, 0, "write", "-1, \"begin\"");
	size_t end = trace_find(t, begin, "write", "-1, \"end\"");

	if (begin == t->count)
		return 0;
	assert_true(end < t->count);
	for (size_t i = begin + 1; i < end; i++)
		if (!allowed || !str_eq(t->calls[i].name, allowed))
			fail_msg("a marker called %s(%s", t->calls[i].name, t->calls[i].args);
	return 1;
}

static void trace_target(struct measured *m, const char *mode)
{
	char *option = text_make("JPHASE_MODE=%s", mode);
	char *output = text_make("JPHASE_OUTPUT=%s", m->file);
	char *traces = text_make("%s/trace", m->dir);
	const char *const words[] = { TRACE_WORDS, traces, JPHASE, "run", "-q", "--",
		TARGET("brackets"), MARKERS_WORD, NULL };
	const char *const preload[] = { TRACE_WORDS, traces, "env", "LD_PRELOAD=" LIBJPHASE,
		TARGET("brackets"), MARKERS_WORD, NULL };

	memcpy(m->child.argv, m->way == WAY_RUN ? words : preload,
		m->way == WAY_RUN ? sizeof(words) : sizeof(preload));
	m->child.env[0] = option;
	m->child.env[1] = output;
	m->child.env[2] = NO_LEAK_CHECK;
	assert_int_equal(run_program(&m->child), 0);
	if (m->child.code != 0)
		fail_msg("status %d: %s", m->child.code, m->child.err);
	free(option);
	free(output);
	free(traces);
}

/* In every thread; all markers have come. */
static void assert_markers_call(enum way way, const char *mode, const char *allowed)
{
	struct measured m = { .way = way, .dir = tmpdir_make() };
	struct trace *traces;
	size_t brackets = 0;

	m.file = text_make("%s/test.msgpack", m.dir);
	trace_target(&m, mode);
	traces = traces_read(m.dir);
	for (const struct trace *t = traces; t->text; t++)
		brackets += assert_bracket_holds(t, allowed);
	assert_int_equal(brackets, BRACKETS);
	traces_free(traces);

	wait_for_recording(m.file);
	measure_load(&m);
	assert_int_equal(phase_count(&m, "phase"), BRACKETS * MARKERS);
	assert_int_equal(m.model->region_count, BRACKETS * MARKERS);
	assert_int_equal(m.model->mark_count, BRACKETS * MARKERS);
	measure_clear(&m);
}

static void an_async_marker_makes_no_system_call(void **state)
{
	(void)state;
	need_strace();
	assert_markers_call(WAY_RUN, "async", NULL);
	assert_markers_call(WAY_PRELOAD, "async", NULL);
}

static void a_sync_marker_makes_none_but_futex(void **state)
{
	(void)state;
	need_strace();
	assert_markers_call(WAY_RUN, "sync", "futex");
	assert_markers_call(WAY_PRELOAD, "sync", "futex");
}

/* --- the collector --- */

#define PHASES          100
#define PHASES_WORD     "100"
#define HOUSEKEEPING_US 100000
#define FILES_MAX       128
#define ATTEMPTS        5

struct use {
	char file[256]; /* "18<anon_inode:[perf_event]>" */
	bool counter;   /* a perf group; else a kernel file */
	size_t reads;
};

struct uses {
	struct use use[FILES_MAX];
	size_t count;
	size_t polls;
};

static void count_read(struct uses *u, const char *args, bool counter)
{
	size_t length = strcspn(args, ","), i = 0;

	assert_true(length < sizeof(u->use[0].file));
	while (i < u->count &&
		(strlen(u->use[i].file) != length || memcmp(u->use[i].file, args, length) != 0))
		i++;
	assert_true(i < FILES_MAX);
	if (i == u->count) {
		u->use[u->count++].counter = counter;
		memcpy(u->use[i].file, args, length);
	}
	u->use[i].reads++;
}

static bool is_of_counter(const char *args)
{
	const char *end = strchr(args, '>');

	return end && memmem(args, (size_t)(end - args), "perf_event", 10);
}

/*
 * Nothing but read, pread, futex and the process's CPU clock.  Housekeeping
 * comes ten times a second and can be told by its poll; it reads the group and
 * perhaps a file as well.
 */
static void count_uses(const struct trace *t, size_t begin, size_t end, struct uses *u)
{
	for (size_t i = begin; i < end; i++) {
		const struct traced_call *call = &t->calls[i];

		if (str_eq(call->name, "read") && is_of_counter(call->args))
			count_read(u, call->args, true);
		else if (str_eq(call->name, "pread64"))
			count_read(u, call->args, false);
		else if (strstr(call->name, "poll") && is_of_counter(call->args))
			u->polls++;
		else if (!str_eq(call->name, "futex") && !str_eq(call->name, "clock_gettime"))
			fail_msg("a snapshot called %s(%s", call->name, call->args);
	}
}

/* A collector that is traced, with the library's descriptors as they are. */
static char *write_collector(const char *folder)
{
	char *path = text_make("%s/collector", folder);
	char *script = text_make(
		"#!/bin/sh\nexec strace -ff -y -ttt -o '%s/trace' '%s' \"$@\"\n", folder, JPHASE);

	assert_int_equal(file_write(path, script, strlen(script)), 0);
	assert_int_equal(chmod(path, 0755), 0);
	free(script);
	return path;
}

/* It is the one that the collector began with. */
static const struct trace *marker_thread(const struct trace *traces)
{
	for (const struct trace *t = traces; t->text; t++)
		if (trace_find(t, 0, "execve", "") < t->count)
			return t;
	fail_msg("strace saw no collector");
	return NULL;
}

/* The next snapshot from there on, by a file that is read for nothing else. */
static size_t find_snapshot(const struct trace *t, size_t from)
{
	size_t i = from;

	while (i < t->count &&
		!(str_eq(t->calls[i].name, "pread64") && strstr(t->calls[i].args, "/stat>")))
		i++;
	assert_true(i < t->count);
	return i;
}

static void assert_each_snapshot_reads_once(const struct trace *t)
{
	/* The first marker comes after the welcome. */
	size_t begin = find_snapshot(t, trace_find(t, 0, "sendmsg", ""));
	size_t end = begin, counters = 0;
	struct uses uses = { .count = 0 };

	for (size_t i = 1; i < PHASES; i++)
		end = find_snapshot(t, end + 1);
	count_uses(t, begin, end, &uses);
	for (size_t i = 0; i < uses.count; i++) {
		const struct use *use = &uses.use[i];
		size_t expected = PHASES - 1 + (use->counter ? uses.polls : 0);

		/* A file of housekeeping alone. */
		if (!use->counter && use->reads <= uses.polls)
			continue;
		/* It is read again where the program ran on meanwhile. */
		if (strstr(use->file, "/schedstat>") && use->reads > expected)
			continue;
		if (use->reads != expected)
			fail_msg("%s: %zu reads, not %zu", use->file, use->reads, expected);
		counters += use->counter;
	}
	assert_int_equal(counters, 1);
	assert_true(uses.polls <=
		    (t->calls[end].time_us - t->calls[begin].time_us) / HOUSEKEEPING_US + 1);
}

/* False: too busy a machine. */
static bool trace_collector(void)
{
	struct measured m = {
		.way = WAY_PRELOAD,
		.dir = tmpdir_make(),
		.argv = { TARGET("loop"), PHASES_WORD, "2000" },
	};
	char *collector = write_collector(m.dir);
	char *variable = text_make("JPHASE_COLLECTOR=%s", collector);
	struct trace *traces;
	bool calm;

	m.env[0] = variable;
	m.env[1] = "JPHASE_INTERVAL=0";
	m.env[2] = "JPHASE_EVENTS=task-clock,page-faults,context-switches";
	m.env[3] = "JPHASE_SOURCES=-energy";
	m.env[5] = "JPHASE_NO_CALIBRATE=1";
	m.env[4] = NO_LEAK_CHECK;
	measure(&m);
	assert_int_equal(m.child.code, 0);
	calm = measure_was_calm(&m);
	traces = traces_read(m.dir);
	if (calm)
		assert_each_snapshot_reads_once(marker_thread(traces));
	traces_free(traces);
	free(variable);
	free(collector);
	measure_clear(&m);
	return calm;
}

static void a_snapshot_is_one_read_of_each_group_and_file(void **state)
{
	(void)state;
	need_perf();
	need_strace();
	for (int i = 0; i < ATTEMPTS; i++)
		if (trace_collector())
			return;
	print_message("markers had to wait for more than 50 ms each time: too busy a machine\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_async_marker_makes_no_system_call),
		cmocka_unit_test(a_sync_marker_makes_none_but_futex),
		cmocka_unit_test(a_snapshot_is_one_read_of_each_group_and_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
