/* SPDX-License-Identifier: MIT */
/* Known work in, known number out, through the whole path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

/* What perf counts by default on every machine. */
static const char *const counters[] = { "task-clock", "page-faults", "context-switches",
	"cpu-migrations" };

static void measure_well(struct measured *m)
{
	measure_calmly(m);
	if (m->child.code != 0)
		fail_msg("%s ended with %d: %s", m->argv[0], m->child.code, m->child.err);
}

/* Counted, and nothing is to be said against it. */
static uint64_t exactly(const struct measured *m, const struct row *row, const char *metric)
{
	uint64_t number = counted(m, row, metric);
	struct value v = value_of(m, row, metric);
	char text[QUALITY_ROOM];

	value_quality(&v, text);
	if (!str_eq(text, "exact"))
		fail_msg("%s of %s: %s", metric, row->name, text);
	return number;
}

static void assert_exactly(
	const struct measured *m, const struct row *row, const char *metric, uint64_t right)
{
	uint64_t number = exactly(m, row, metric);

	if (number != right)
		fail_msg("%s of %s: %" PRIu64 ", not %" PRIu64, metric, row->name, number, right);
}

static void assert_at_most(
	const struct measured *m, const struct row *row, const char *metric, uint64_t limit)
{
	uint64_t number = exactly(m, row, metric);

	if (number > limit)
		fail_msg("%s of %s: %" PRIu64 ", more than %" PRIu64, metric, row->name, number,
			limit);
}

static void assert_600_exact(struct measured *m)
{
	static const uint64_t pages[] = { 100, 300, 50 };
	static const char *const names[] = { "p0", "p1", "p2" };

	measure_well(m);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(phase_count(m, names[i]), 200);
		for (size_t n = 0; n < 200; n++)
			assert_exactly(m, phase_at(m, names[i], n), "page-faults", pages[i]);
	}
}

static void touched_pages_are_page_faults_in_600_of_600_phases(void **state)
{
	(void)state;
	need_perf();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.argv = { TARGET("pages"), "200", "100", "300", "50" },
		};

		assert_600_exact(&m);
		m.env[0] = "JPHASE_SOURCES=perf";
		assert_600_exact(&m);
		measure_clear(&m);
	}
}

static void pages_that_four_threads_touch_at_once_add_up(void **state)
{
	(void)state;
	need_perf();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.argv = { TARGET("team"), "4", "50", "75", "0" },
		};

		measure_well(&m);
		assert_int_equal(phase_count(&m, "team"), 50);
		for (size_t n = 0; n < 50; n++)
			assert_exactly(&m, phase_at(&m, "team", n), "page-faults", 300);
		measure_clear(&m);
	}
}

static void assert_sum_is_total(const struct measured *m, const char *metric)
{
	const struct row *total = &m->model->runs[0].total;
	uint64_t sum = 0;

	for (size_t i = 0; i < m->model->row_count; i++)
		if (m->model->rows[i].process == total->process)
			sum += counted(m, &m->model->rows[i], metric);
	if (sum != counted(m, total, metric))
		fail_msg("%s: the phases have %" PRIu64 ", TOTAL has %" PRIu64, metric, sum,
			counted(m, total, metric));
}

/* The kernel refuses to read a group while a thread of it is about to end. */
static void threads_that_end_at_a_boundary_leave_it_readable(void **state)
{
	struct measured m = { .way = WAY_RUN, .argv = { TARGET("comers"), "300" } };

	(void)state;
	need_perf();
	measure_well(&m);
	assert_int_equal(phase_count(&m, "come"), 300);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		assert_sum_is_total(&m, counters[i]);
	measure_clear(&m);
}

static void assert_phases_add_up(struct measured *m)
{
	const struct run *run;
	uint64_t time_ns;

	measure_well(m);
	run = &m->model->runs[0];
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		assert_sum_is_total(m, counters[i]);

	time_ns = run->marker_ns;
	assert_true(run->marker_ns > 0);
	for (size_t i = 0; i < m->model->row_count; i++)
		if (m->model->rows[i].process == run->total.process)
			time_ns += m->model->rows[i].duration_ns;
	assert_int_equal(time_ns, run->total.duration_ns);
}

static void phases_and_markers_add_up_to_total(void **state)
{
	static const struct measured programs[] = {
		{ .argv = { TARGET("pages"), "20", "100", "300", "50" } },
		{ .argv = { TARGET("team"), "4", "10", "50", "1" } },
		{ .argv = { TARGET("sleeper") } },
	};

	(void)state;
	need_perf();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
			struct measured m = programs[i];

			m.way = ways[w];
			assert_phases_add_up(&m);
			measure_clear(&m);
		}
}

/*
 * The kernel stops the two clocks one after the other and chooses the next
 * thread in between: on a busy machine some µs at each context switch.
 */
#define SWITCH_NS      20000.0
#define CLOCK_ATTEMPTS 5

/* How far task-clock is from what the phase's threads had, in ns; 0 if switches explain it. */
static double clock_error(const struct measured *m, const struct row *row, double own)
{
	double off = (double)exactly(m, row, "task-clock") - own;
	double explained = SWITCH_NS * (double)exactly(m, row, "context-switches");

	if (off > explained)
		return off - explained;
	return off < -explained ? off + explained : 0;
}

/* A line for each phase tells what the CPU clocks of its threads said.  True: all is well. */
static bool clocks_agree(const struct measured *m, size_t phases, char ret_problem[128])
{
	char *line = m->child.out;
	double mean = 0;

	assert_int_equal(phase_count(m, "team"), phases);
	for (size_t n = 0; n < phases; n++) {
		double own = strtod(line, &line);
		double error = clock_error(m, phase_at(m, "team", n), own);

		assert_true(own >= 50e6);
		mean += error / own / (double)phases;
		if (error <= 1e6 + own / 100 && -error <= 1e6 + own / 100)
			continue;
		snprintf(ret_problem, 128, "phase %zu: task-clock is %.0f ns from %.0f", n, error,
			own);
		return false;
	}
	snprintf(ret_problem, 128, "task-clock is off by %.3f %% in the mean", 100 * mean);
	return mean <= 0.005 && mean >= -0.005;
}

/* While the host runs another machine, the kernel stops only one of the clocks: again then. */
static void assert_clocks_agree(struct measured *m, size_t phases)
{
	char problem[128];

	for (int i = 0; i < CLOCK_ATTEMPTS; i++) {
		measure_well(m);
		if (clocks_agree(m, phases, problem))
			return;
		unlink(m->file);
	}
	fail_msg("%s", problem);
}

static void task_clock_is_what_the_threads_own_clocks_say(void **state)
{
	static const struct measured programs[] = {
		{ .argv = { TARGET("team"), "1", "8", "0", "50" } },
		{ .argv = { TARGET("team"), "4", "8", "0", "50" } },
	};

	(void)state;
	need_perf();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
			struct measured m = programs[i];

			m.way = ways[w];
			assert_clocks_agree(&m, 8);
			measure_clear(&m);
		}
}

/* n: 0 is the process itself, 1 its forked child. */
static void assert_asleep(const struct measured *m, size_t n)
{
	const struct row *asleep = phase_at(m, "asleep", n), *naps = phase_at(m, "naps", n);

	assert_true(asleep->duration_ns >= 50000000);
	assert_at_most(m, asleep, "task-clock", 10000000);
	assert_at_most(m, asleep, "page-faults", 3);
	assert_at_most(m, asleep, "context-switches", 10);
	assert_at_most(m, asleep, "cpu-migrations", 10);
	if (exactly(m, naps, "context-switches") < 10)
		fail_msg("ten naps were %" PRIu64 " context switches",
			counted(m, naps, "context-switches"));
}

static void sleep_costs_next_to_nothing_and_is_counted(void **state)
{
	(void)state;
	need_perf();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = { .way = ways[w], .argv = { TARGET("sleeper") } };

		measure_well(&m);
		assert_int_equal(phase_count(&m, "asleep"), 2);
		assert_asleep(&m, 0);
		assert_asleep(&m, 1);
		measure_clear(&m);
	}
}

static void workers_at_the_same_time_have_their_own_counts(void **state)
{
	(void)state;
	need_perf();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = { .way = ways[w], .argv = { TARGET("pair"), "100", "700" } };
		const struct row *a, *b;

		measure_well(&m);
		assert_int_equal(phase_count(&m, "work"), 2);
		a = phase_at(&m, "work", 0);
		b = phase_at(&m, "work", 1);
		assert_true(a->begin_ns < b->end_ns && b->begin_ns < a->end_ns);
		assert_int_equal(
			exactly(&m, a, "page-faults") + exactly(&m, b, "page-faults"), 800);
		assert_exactly(
			&m, a, "page-faults", exactly(&m, a, "page-faults") < 400 ? 100 : 700);
		/* The phase of the process that forked them includes both. */
		assert_true(exactly(&m, phase_at(&m, "both", 0), "page-faults") >= 800);
		measure_clear(&m);
	}
}

/* The library finds a collector that leaves its process id and can so be stopped. */
static char *write_collector(const char *folder)
{
	char *path = text_make("%s/collector", folder);
	char *script =
		text_make("#!/bin/sh\necho $$ >'%s/pid'\nexec '%s' \"$@\"\n", folder, JPHASE);

	assert_int_equal(file_write(path, script, strlen(script)), 0);
	assert_int_equal(chmod(path, 0755), 0);
	free(script);
	return path;
}

static void a_marker_that_gave_up_waiting_has_no_exact_values(void **state)
{
	struct measured m = {
		.way = WAY_PRELOAD,
		.dir = tmpdir_make(),
		.argv = { TARGET("act"), "phase=before", "system=kill -STOP $(cat pid)",
			"phase=stopped", "touch=100", "system=kill -CONT $(cat pid)", "sleep=100",
			"phase=after" },
	};
	char *collector = write_collector(m.dir);
	char *variable = text_make("JPHASE_COLLECTOR=%s", collector);
	struct value v;

	(void)state;
	need_perf();
	m.env[0] = variable;
	measure(&m);
	assert_int_equal(m.child.code, 0);
	v = value_of(&m, phase_at(&m, "stopped", 0), "page-faults");
	/* Null where both its ends were found by one look. */
	assert_true(v.state == VALUE_NULL || ((v.flags & VALUE_LATE) && v.delay_us >= 50000));
	free(variable);
	free(collector);
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(touched_pages_are_page_faults_in_600_of_600_phases),
		cmocka_unit_test(pages_that_four_threads_touch_at_once_add_up),
		cmocka_unit_test(phases_and_markers_add_up_to_total),
		cmocka_unit_test(threads_that_end_at_a_boundary_leave_it_readable),
		cmocka_unit_test(task_clock_is_what_the_threads_own_clocks_say),
		cmocka_unit_test(sleep_costs_next_to_nothing_and_is_counted),
		cmocka_unit_test(workers_at_the_same_time_have_their_own_counts),
		cmocka_unit_test(a_marker_that_gave_up_waiting_has_no_exact_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
