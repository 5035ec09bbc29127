/* SPDX-License-Identifier: MIT */
/* Many markers: none is lost without being counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/markers.h"
#include "support/measure.h"
#include "support/watch.h"

/* Of a hundred processes or so, ten each: 900 were seen; a backlog had 11,000 and more. */
#define DESCRIPTORS_MAX 5000

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

static void measure_well(struct measured *m)
{
	measure_calmly(m);
	if (m->child.code != 0)
		fail_msg("%s ended with %d: %s", m->argv[0], m->child.code, m->child.err);
	assert_true(m->model->runs[0].complete);
	assert_int_equal(m->model->runs[0].invalid_records, 0);
	assert_int_equal(m->model->runs[0].unknown_records, 0);
}

static void assert_nothing_lost(const struct measured *m)
{
	const struct run *run = &m->model->runs[0];

	for (size_t i = 0; i < run->loss_count; i++)
		fail_msg("%" PRIu64 " markers lost: %s", run->losses[i].count, run->losses[i].what);
	assert_int_equal(run->lost, 0);
}

/* START, then PREFIX0, PREFIX1, ..., and after them so many others. */
static void assert_in_order(
	const struct measured *m, const char *prefix, size_t count, size_t others)
{
	assert_nothing_lost(m);
	assert_int_equal(m->model->row_count, 1 + count + others);
	assert_string_equal(m->model->rows[0].name, "START");
	for (size_t i = 0; i < count; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%zu", prefix, i);
		assert_string_equal(m->model->rows[1 + i].name, name);
	}
}

static void ten_thousand_phases_come_in_order(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = { .way = ways[w], .argv = { TARGET("loop"), "10000", "0" } };

		measure_well(&m);
		assert_in_order(&m, "", 10000, 0);
		measure_clear(&m);
	}
}

/* Whatever was found together with its neighbour says so instead of 0. */
static void assert_unresolved(const struct measured *m, const struct row *row)
{
	for (size_t i = 0; i < m->model->column_count; i++) {
		struct value v = model_value(m->model, row, i);
		char text[QUALITY_ROOM];

		if (v.state != VALUE_NULL)
			fail_msg(
				"%s of an unresolved phase has a value", m->model->columns[i].name);
		value_quality(&v, text);
		if (!str_eq(text, "unresolved") && !str_starts(text, "not counted: "))
			fail_msg("%s: %s", m->model->columns[i].name, text);
	}
}

static void assert_shared_are_null(const struct measured *m)
{
	const struct run *run = &m->model->runs[0];
	size_t unresolved = 0;

	for (size_t i = 0; i < m->model->row_count; i++) {
		if (!m->model->rows[i].unresolved)
			continue;
		assert_unresolved(m, &m->model->rows[i]);
		unresolved++;
	}
	assert_true(unresolved > 0);
	assert_int_equal(run->unresolved, unresolved);
}

static void a_million_markers_are_recorded_or_counted_as_lost(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.env = { "JPHASE_MODE=async" },
			.argv = { TARGET("storm"), "4", "250000" },
		};
		const struct run *run;

		measure_well(&m);
		run = &m.model->runs[0];
		/* What the disk was too slow for is not told apart by its kind. */
		assert_int_equal(run_lost(run, "backlog"), 0);
		assert_int_equal(run_lost(run, "dropped"), run->lost);
		assert_int_equal(phase_count(&m, "storm"), run->markers);
		assert_int_equal(run->markers + run->lost, 1000000);
		assert_shared_are_null(&m);
		measure_clear(&m);
	}
}

/* 100 phases of 10 pages each, found by few looks: the work is where the looks were. */
static void the_work_of_shared_snapshots_is_in_a_neighbour(void **state)
{
	struct measured m = {
		.env = { "JPHASE_MODE=async", "JPHASE_POLL=50ms" },
		.argv = { TARGET("pages"), "100", "10" },
	};
	uint64_t faults = 0, includes = 0;

	(void)state;
	need_perf();
	measure_well(&m);
	assert_nothing_lost(&m);
	assert_shared_are_null(&m);
	for (size_t i = 0; i < m.model->row_count; i++) {
		const struct row *row = &m.model->rows[i];

		includes += row->includes;
		if (!row->unresolved)
			faults += counted(&m, row, "page-faults");
	}
	assert_int_equal(includes, m.model->runs[0].unresolved);
	assert_true(faults >= 1000);
	assert_int_equal(faults, counted(&m, &m.model->runs[0].total, "page-faults"));
	measure_clear(&m);
}

static bool has_note(const struct measured *m, const char *words)
{
	const struct run *run = &m->model->runs[0];

	for (size_t i = 0; i < run->note_count; i++)
		if (strstr(run->notes[i], words))
			return true;
	return false;
}

static void ten_thousand_queued_signals_are_ten_thousand_phases(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.env = { "JPHASE_SIGNALS=RTMIN+3=tick" },
			.argv = { TARGET("signals"), "queue", "10000" },
		};

		measure_well(&m);
		/* The queue has been full, or this would not show much. */
		assert_true(atol(m.child.out) > 0);
		assert_in_order(&m, "tick.", 10000, 1);
		assert_true(has_note(&m, "real-time signals"));
		measure_clear(&m);
	}
}

/* While the storm lasts; it then waits for its input to end. */
static size_t most_descriptors(pid_t collector, const char *storm_is_over)
{
	size_t most = 0, now;

	do {
		now = descriptors_of(collector);
		most = now > most ? now : most;
		usleep(20000);
	} while (now && access(storm_is_over, F_OK) < 0);
	assert_true(now > 0);
	return most;
}

/* A collector that is slower than they come puts nobody's marker to another's account. */
static void ten_thousand_forks_mark_under_their_own_numbers(void **state)
{
	struct measured m = {
		.way = WAY_PRELOAD,
		/* Room for all of them, should the collector not get a turn meanwhile. */
		.env = { "JPHASE_RING=16384" },
		.argv = { TARGET("act"), "phase=a", "children=100", "session=before", "sleep=1000",
			"forks=10000", "session=over", "input" },
		.child = { .input = "", .timeout_ms = 600000 },
		.dir = tmpdir_make(),
	};
	char *over = text_make("%s/over", m.dir), *before = text_make("%s/before", m.dir);
	size_t descriptors, named = 0;
	struct markers *seen;
	pid_t collector;
	long memory;

	(void)state;
	measure_start(&m);
	collector = wait_for_collector(m.file);
	most_descriptors(collector, before);
	usleep(500000);
	descriptors = descriptors_of(collector);
	memory = memory_kb_of(collector);
	assert_in_range(most_descriptors(collector, over), 1, DESCRIPTORS_MAX);
	wait_for_descriptors(collector, descriptors);
	if (!HAVE_ASAN)
		wait_for_memory_below(collector, memory + 4096);
	measure_finish(&m);

	seen = markers_read(m.file);
	for (size_t i = 0; i < seen->count; i++) {
		int pid;

		if (sscanf(seen->marker[i].name, "pid %d", &pid) != 1)
			continue;
		assert_int_equal(seen->marker[i].pid, pid);
		named++;
	}
	assert_int_equal(named + seen->lost, 10000);
	assert_int_equal(seen->lost, 0);
	markers_free(seen);
	free(before);
	free(over);
	measure_clear(&m);
}

static void a_shell_script_marks_by_kill(void **state)
{
	static const char *const names[] = { "START", "warmup", "solve", "warmup" };

	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.options = { "--signal", "RTMIN+3=warmup,USR1=solve" },
			.argv = { "sh", "-c",
				"kill -RTMIN+3 $$; kill -USR1 $$; kill -RTMIN+3 $$; exit 0" },
		};

		if (ways[w] == WAY_PRELOAD)
			m.env[0] = "JPHASE_SIGNALS=RTMIN+3=warmup,USR1=solve";
		measure_well(&m);
		assert_int_equal(m.model->row_count, ARRAY_SIZE(names));
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			assert_string_equal(m.model->rows[i].name, names[i]);
		assert_true(has_note(&m, "standard signal"));
		measure_clear(&m);
	}
}

static void a_handler_that_the_program_replaced_is_told(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.env = { "JPHASE_SIGNALS=USR1=solve" },
			.argv = { TARGET("signals"), "replace" },
		};

		measure_well(&m);
		assert_int_equal(phase_count(&m, "solve"), 1);
		assert_true(has_note(&m, "installed a handler of its own for signal 10=solve"));
		measure_clear(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_phases_come_in_order),
		cmocka_unit_test(a_million_markers_are_recorded_or_counted_as_lost),
		cmocka_unit_test(the_work_of_shared_snapshots_is_in_a_neighbour),
		cmocka_unit_test(ten_thousand_queued_signals_are_ten_thousand_phases),
		cmocka_unit_test(ten_thousand_forks_mark_under_their_own_numbers),
		cmocka_unit_test(a_shell_script_marks_by_kill),
		cmocka_unit_test(a_handler_that_the_program_replaced_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
