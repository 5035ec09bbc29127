/* SPDX-License-Identifier: MIT */
/* Peaks that each reading begins anew, and counters that were scaled as they were read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/tape.h"

static struct metric peak_metric[] = {
	{ .name = "proc_peak",
		.kind = METRIC_PEAK_SINCE,
		.unit = UNIT_BYTES,
		.scope = SCOPE_GROUP,
		.group = METRIC_NO_GROUP },
};
static struct metric_list peak_list = { peak_metric, 1, 0 };
static const struct recorder_reader peak_reader = { "cgroup", false, NULL, &peak_list };

static struct metric scaled_metric[] = {
	{ .name = "page-faults", .kind = METRIC_SCALED, .scope = SCOPE_GROUP, .group = 0 },
};
static struct metric_list scaled_list = { scaled_metric, 1, 1 };
static const struct recorder_reader scaled_reader = { "perf", true, NULL, &scaled_list };

static struct tape tape_of(const struct recorder_reader *reader)
{
	struct tape t = { .fd = recording_fd() };

	t.r = recording_begin(t.fd, "sync", reader, 1);
	return t;
}

/* Of the session, as the collector writes it: before the marker that it was taken for. */
static void peak(struct tape *t, uint64_t number, uint64_t bytes)
{
	uint64_t time = T0 + number * MS;

	recorder_snapshot(
		t->r, number, RECORD_NO_PROCESS, "cgroup", time, time, &bytes, &peak_list);
}

static void phase(struct tape *t, uint64_t process_index, uint64_t number, const char *name)
{
	marker(t, (struct record_marker){ .time_ns = T0 + number * MS,
			  .process = process_index,
			  .name = name,
			  .snapshot = number });
}

static void a_phase_has_the_peak_of_its_own_time(void **state)
{
	struct tape t = tape_of(&peak_reader);
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	/* What was before the first boundary is nobody's. */
	peak(&t, 1, 9000);
	phase(&t, 0, 1, "START");
	peak(&t, 2, 500);
	phase(&t, 0, 2, "high");
	peak(&t, 3, 7000);
	phase(&t, 0, 3, "low");
	peak(&t, 4, 600);
	gone(&t, 0, T0 + 4 * MS, 4);
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "proc_peak"), 500);
	assert_counted(value(m, 1, "proc_peak"), 7000);
	assert_counted(value(m, 2, "proc_peak"), 600);
	assert_counted(total(m, "proc_peak"), 7000);
	model_close(m);
}

static void a_boundary_of_another_process_splits_nobodys_peak(void **state)
{
	struct tape t = tape_of(&peak_reader);
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	peak(&t, 1, 1);
	phase(&t, 0, 1, "START");
	process(&t, T0 + MS, 1, 101, "exec");
	peak(&t, 2, 40);
	phase(&t, 1, 2, "START");
	peak(&t, 3, 8000);
	phase(&t, 1, 3, "work");
	peak(&t, 4, 300);
	phase(&t, 0, 4, "after");
	peak(&t, 5, 200);
	gone(&t, 1, T0 + 5 * MS, 5);
	peak(&t, 6, 100);
	gone(&t, 0, T0 + 6 * MS, 6);
	m = tape_model(&t, BY_PHASE);
	assert_string_equal(m->rows[0].name, "START");
	assert_counted(value(m, 0, "proc_peak"), 8000);
	for (size_t i = 0; i < m->row_count; i++) {
		if (str_eq(m->rows[i].name, "work"))
			assert_counted(value(m, i, "proc_peak"), 300);
		if (str_eq(m->rows[i].name, "after"))
			assert_counted(value(m, i, "proc_peak"), 200);
	}
	assert_counted(total(m, "proc_peak"), 8000);
	model_close(m);
}

static void a_peak_that_was_never_read_is_not_counted(void **state)
{
	struct tape t = tape_of(&peak_reader);
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	peak(&t, 1, 1);
	phase(&t, 0, 1, "START");
	peak(&t, 2, VALUE_ABSENT);
	gone(&t, 0, T0 + 2 * MS, 2);
	m = tape_model(&t, BY_PHASE);
	assert_missing(
		value(m, 0, "proc_peak"), "not counted: the program's cgroup did not give it");
	model_close(m);
}

static struct model *scaled_model(const uint64_t end[3])
{
	struct tape t = tape_of(&scaled_reader);

	process(&t, T0, 0, 100, "first");
	recorder_snapshot(
		t.r, 1, RECORD_NO_PROCESS, "perf", T0, T0, (uint64_t[]){ 10, 0, 0 }, &scaled_list);
	phase(&t, 0, 1, "START");
	recorder_snapshot(t.r, 2, RECORD_NO_PROCESS, "perf", T0 + MS, T0 + MS, end, &scaled_list);
	gone(&t, 0, T0 + MS, 2);
	return tape_model(&t, BY_PHASE);
}

static void what_was_scaled_is_not_scaled_again(void **state)
{
	struct model *m = scaled_model((const uint64_t[]){ 130, 1000, 500 });

	(void)state;
	assert_counted(value(m, 0, "page-faults"), 120);
	assert_quality(value(m, 0, "page-faults"), "scaled from 50.0 % coverage");
	model_close(m);
}

static void what_never_ran_is_not_counted(void **state)
{
	struct model *m = scaled_model((const uint64_t[]){ 10, 1000, 0 });

	(void)state;
	assert_missing(
		value(m, 0, "page-faults"), "not counted: its group never ran in this phase");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_phase_has_the_peak_of_its_own_time),
		cmocka_unit_test(a_boundary_of_another_process_splits_nobodys_peak),
		cmocka_unit_test(a_peak_that_was_never_read_is_not_counted),
		cmocka_unit_test(what_was_scaled_is_not_scaled_again),
		cmocka_unit_test(what_never_ran_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
