/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "report/merge.h"
#include "support/golden.h"
#include "support/tape.h"

static struct model *two_runs_by_name(void)
{
	struct model *m;
	struct tape a = tape_begin("sync");
	struct tape b = tape_begin("sync");

	two_phases(&a);
	two_phases(&b);
	tape_end(&a);
	tape_end(&b);
	assert_int_equal(model_open(&m), 0);
	assert_int_equal(model_read(m, a.fd, "a"), 0);
	assert_int_equal(model_read(m, b.fd, "b"), 0);
	assert_int_equal(model_finish(m, BY_NAME), 0);
	sys_close(a.fd);
	sys_close(b.fd);
	return m;
}

static void rows_of_one_name_are_summed_over_runs(void **state)
{
	struct model *m = two_runs_by_name();

	(void)state;
	assert_int_equal(m->row_count, 2);
	assert_int_equal(m->rows[1].count, 2);
	assert_counted(value(m, 1, "page-faults"), 600);
	assert_counted(value(m, 1, "proc_cpu_usage"), 10000);
	assert_counted(value(m, 1, "proc_current_min"), 8192);
	assert_counted(value(m, 1, "proc_current_max"), 1 << 20);
	assert_missing(value(m, 1, "CPU_CYCLES"), "not counted: no hardware counters here");
	assert_int_equal(m->rows[1].duration_ns, 2 * (20 * MS - 50 * US));
	model_close(m);
}

static void a_row_of_several_runs_is_of_none(void **state)
{
	struct model *m = two_runs_by_name();
	char *table = golden_render(m, &table_format, BY_NAME, 120);
	char *json = golden_render(m, &json_format, BY_NAME, 120);
	char *csv = golden_render(m, &csv_format, BY_NAME, 120);

	(void)state;
	assert_true(m->rows[1].several_runs);
	assert_non_null(strstr(table, "\nsolve           2 "));
	assert_non_null(strstr(table, "\nTOTAL    0 "));
	assert_non_null(strstr(table, "\nTOTAL    1 "));
	assert_non_null(strstr(json, "\"run\": null,\n      \"count\": 2"));
	assert_null(strstr(csv, ";0;0;true\n"));
	assert_non_null(strstr(csv, ";;;\n"));
	assert_null(strstr(csv, ";./app"));
	free(table);
	free(json);
	free(csv);
	model_close(m);
}

static void a_sum_says_what_is_missing_in_it(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	for (uint64_t i = 0; i < 3; i++)
		marker(&t,
			(struct record_marker){ .time_ns = T0 + MS, .name = "a", .snapshot = 2 });
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ 1, 1, 1, 0 });
	gone(&t, 0, T0 + 2 * MS, 3);
	snapshot(&t, 3, 0, T0 + 2 * MS, (struct counts){ 9, 9, 9, 0 });
	m = tape_model(&t, BY_NAME);
	assert_int_equal(m->row_count, 2);
	assert_int_equal(m->rows[1].count, 3);
	assert_counted(value(m, 1, "page-faults"), 8);
	assert_int_equal(value(m, 1, "page-faults").without, 2);
	model_close(m);
}

static void one_row_a_process(void **state)
{
	struct model *m = two_phase_model(BY_PROCESS);

	(void)state;
	assert_int_equal(m->row_count, 1);
	assert_string_equal(m->rows[0].name, "app");
	assert_int_equal(m->rows[0].pid, 100);
	assert_int_equal(m->rows[0].count, 2);
	assert_counted(value(m, 0, "page-faults"), 400);
	model_close(m);
}

/* The second recording has no cgroup's metrics: a sum of both would be of one. */
static void what_one_recording_lacks_is_told_of_in_the_sum(void **state)
{
	static struct metric clock = {
		.name = "task-clock", .unit = UNIT_NS, .group = METRIC_NO_GROUP
	};
	static struct metric_list list = { &clock, 1, 0 };
	const struct recorder_reader only = { "perf", true, NULL, &list };
	struct tape a = tape_begin("sync"), b = { .fd = recording_fd() };
	struct model *m;

	(void)state;
	two_phases(&a);
	tape_end(&a);
	b.r = recording_begin(b.fd, "sync", &only, 1);
	process(&b, T0, 0, 100, "first");
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t clock_ns = i * MS;

		marker(&b, (struct record_marker){ .time_ns = T0 + i * MS,
				   .name = i ? "solve" : "START",
				   .snapshot = i + 1 });
		recorder_snapshot(
			b.r, i + 1, 0, "perf", T0 + i * MS, T0 + i * MS + US, &clock_ns, &list);
	}
	tape_end(&b);
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(model_open(&m), 0);
		assert_int_equal(model_read(m, turn ? b.fd : a.fd, "first"), 0);
		assert_int_equal(model_read(m, turn ? a.fd : b.fd, "second"), 0);
		assert_int_equal(model_finish(m, BY_NAME), 0);
		assert_string_equal(m->rows[1].name, "solve");
		assert_counted(value(m, 1, "page-faults"), 300);
		assert_int_equal(value(m, 1, "page-faults").without, 2);
		model_close(m);
		lseek(a.fd, 0, SEEK_SET);
		lseek(b.fd, 0, SEEK_SET);
	}
	sys_close(a.fd);
	sys_close(b.fd);
}

/* What was not counted has no weight. */
static void a_mean_is_over_the_time_that_was_counted(void **state)
{
	const struct column column = { .name = "share", .unit = UNIT_PERCENT, .sum = COLUMN_SHARE };
	const struct value null = { .state = VALUE_NULL, .note = "too short" };
	const struct value all = { .state = VALUE_COUNTED, .number = 10000, .coverage = 1 };
	const struct value none = { .state = VALUE_COUNTED, .number = 0, .coverage = 0.5 };
	struct value sum = { .state = VALUE_MISSING };

	(void)state;
	for (int i = 0; i < 100; i++)
		value_merge(&sum, &null, &column, 30 * MS);
	value_merge(&sum, &all, &column, 100 * MS);
	value_merge(&sum, &null, &column, 500 * MS);
	value_merge(&sum, &none, &column, 100 * MS);
	assert_counted(sum, 5000);
	assert_true(sum.coverage == 0.75);
	assert_int_equal(sum.without, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_recording_lacks_is_told_of_in_the_sum),
		cmocka_unit_test(a_mean_is_over_the_time_that_was_counted),
		cmocka_unit_test(rows_of_one_name_are_summed_over_runs),
		cmocka_unit_test(a_row_of_several_runs_is_of_none),
		cmocka_unit_test(a_sum_says_what_is_missing_in_it),
		cmocka_unit_test(one_row_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
