/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/tape.h"

static struct metric metrics[] = {
	{ .name = "cycles", .group = 0, .part = "cpu_core", .absent = "all of these are taken" },
	{ .name = "cycles", .group = 0, .part = "cpu_atom" },
	{ .name = "full", .group = METRIC_NO_GROUP, .absent = "nobody keeps it" },
};

static struct metric_list list = { metrics, ARRAY_SIZE(metrics), 1 };

static void boundary(struct tape *t, uint64_t number, uint64_t cycles, uint64_t ns)
{
	const uint64_t values[] = { VALUE_ABSENT, cycles, 0, ns, ns };
	uint64_t time = T0 + number * MS;

	recorder_thread(t->r, number, 0, 100, "perf", "read", time, time, values, &list);
	recorder_snapshot(t->r, number, 0, "perf", time, time, values, &list);
}

/* A phase, and in it a region. */
static struct model *model_of_parts(void)
{
	static const struct recorder_reader hybrid = { "perf", true, NULL, &list };
	struct tape t = { .fd = recording_fd() };
	struct record_marker m = { .tid = 100 };

	t.r = recording_begin(t.fd, "sync", &hybrid, 1);
	process(&t, T0, 0, 100, "first");
	for (m.snapshot = 1; m.snapshot <= 3; m.snapshot++) {
		static const uint8_t kind[] = { 0, JPHASE_PHASE, JPHASE_BEGIN, JPHASE_END };

		m.time_ns = T0 + m.snapshot * MS;
		m.kind = kind[m.snapshot];
		m.name = m.kind == JPHASE_PHASE ? "START" : "r";
		boundary(&t, m.snapshot, 10 * m.snapshot * m.snapshot, 1000 * m.snapshot);
		marker(&t, m);
	}
	boundary(&t, 4, 160, 4000);
	gone(&t, 0, T0 + 4 * MS, 4);
	return tape_model(&t, BY_PHASE);
}

/* The machine has two types of cores, and one of them could not be counted. */
static void a_sum_is_counted_if_one_of_its_parts_is(void **state)
{
	struct model *m = model_of_parts();

	(void)state;
	assert_counted(value(m, 0, "cycles"), 150);
	assert_counted(value(m, 0, "cycles (cpu_atom)"), 150);
	assert_missing(value(m, 0, "cycles (cpu_core)"), "not counted: all of these are taken");
	assert_counted(whole(m, 0, "cycles"), 50);
	assert_counted(node_whole(m, 0, "cycles"), 50);
	assert_missing(whole(m, 0, "cycles (cpu_core)"), "not counted: all of these are taken");
	model_close(m);
}

/* As the kernel's 0 for what it does not keep. */
static void what_a_recording_never_counts_is_no_zero(void **state)
{
	struct model *m = model_of_parts();

	(void)state;
	assert_missing(value(m, 0, "full"), "not counted: nobody keeps it");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sum_is_counted_if_one_of_its_parts_is),
		cmocka_unit_test(what_a_recording_never_counts_is_no_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
