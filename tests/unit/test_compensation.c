/* SPDX-License-Identifier: MIT */
/* What markers cost, and what is left without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "support/golden.h"
#include "support/tape.h"

#define TID  100
#define SELF 201 /* the process that shows what markers cost */

static void phase(struct tape *t, uint64_t process_index, uint64_t time, const char *name,
	uint64_t number, uint32_t took, struct counts c)
{
	marker(t, (struct record_marker){ .time_ns = T0 + time,
			  .process = process_index,
			  .name = name,
			  .took_ns = took,
			  .done_ns = T0 + time + 20 * US,
			  .snapshot = number });
	snapshot(t, number, process_index, T0 + time, c);
}

static void own_region(struct tape *t, uint64_t process_index, uint64_t time, uint8_t kind,
	const char *name, uint64_t number, uint32_t took, struct counts c)
{
	uint32_t tid = 100 + (uint32_t)process_index;

	thread_of(t, process_index, number, tid, T0 + time + 5 * US, c);
	marker(t, (struct record_marker){ .time_ns = T0 + time,
			  .process = process_index,
			  .tid = tid,
			  .kind = kind,
			  .name = name,
			  .took_ns = took,
			  .done_ns = T0 + time + 10 * US,
			  .snapshot = number });
}

/*
 * A marker of phases takes 40 µs and counts 30 µs and 2 faults, one of regions
 * 10 µs, 5 µs and 1 fault; of three empty ones each, one is disturbed.
 */
static void calibration(struct tape *t)
{
	process(t, T0 + 100 * MS, 101, SELF, "calibration");
	phase(t, 101, 100 * MS, "START", 50, 0, (struct counts){ 0, 0, 0, 0 });
	phase(t, 101, 101 * MS, "empty", 51, 0, (struct counts){ 100 * US, 50, 100 * US, 0 });
	phase(t, 101, 102 * MS, "empty", 52, 40 * US, (struct counts){ 130 * US, 52, 130 * US, 0 });
	phase(t, 101, 103 * MS, "empty", 53, 900 * US,
		(struct counts){ 930 * US, 99, 930 * US, 0 });
	phase(t, 101, 104 * MS, "empty", 54, 40 * US,
		(struct counts){ 960 * US, 101, 960 * US, 0 });
	own_region(t, 101, 105 * MS, JPHASE_BEGIN, "empty", 55, 40 * US,
		(struct counts){ 0, 0, 0, 0 });
	own_region(t, 101, 106 * MS, JPHASE_END, "empty", 56, 12 * US,
		(struct counts){ 5 * US, 1, 5 * US, 0 });
	own_region(t, 101, 107 * MS, JPHASE_BEGIN, "empty", 57, 8 * US,
		(struct counts){ 9 * US, 2, 9 * US, 0 });
	own_region(t, 101, 108 * MS, JPHASE_END, "empty", 58, 10 * US,
		(struct counts){ 14 * US, 3, 14 * US, 0 });
	gone(t, 101, T0 + 109 * MS, 0);
}

/* 200 µs and 20 faults in a phase with an outer and an inner region, then 40 µs in another. */
static struct tape whole_tape(void)
{
	struct tape t = tape_begin("sync");

	process(&t, T0, 0, TID, "first");
	phase(&t, 0, 0, "START", 1, 0, (struct counts){ 0, 0, 0, 0 });
	phase(&t, 0, 1 * MS, "work", 2, 0, (struct counts){ 1 * MS, 100, 1 * MS, 0 });
	own_region(&t, 0, 2 * MS, JPHASE_BEGIN, "outer", 3, 50 * US, (struct counts){ 0, 0, 0, 0 });
	own_region(&t, 0, 3 * MS, JPHASE_BEGIN, "inner", 4, 10 * US,
		(struct counts){ 20 * US, 4, 20 * US, 0 });
	own_region(&t, 0, 4 * MS, JPHASE_END, "inner", 5, 10 * US,
		(struct counts){ 50 * US, 10, 50 * US, 0 });
	own_region(&t, 0, 5 * MS, JPHASE_END, "outer", 6, 10 * US,
		(struct counts){ 80 * US, 15, 80 * US, 0 });
	phase(&t, 0, 6 * MS, "short", 7, 10 * US, (struct counts){ 1200 * US, 120, 1200 * US, 0 });
	phase(&t, 0, 7 * MS, "last", 8, 50 * US, (struct counts){ 1240 * US, 121, 1240 * US, 0 });
	gone(&t, 0, T0 + 9 * MS, 9);
	snapshot(&t, 9, 0, T0 + 9 * MS, (struct counts){ 9 * MS, 130, 9 * MS, 0 });
	calibration(&t);
	recorder_summary(t.r, T0 + 110 * MS, 9, 0, 2, 20, true);
	return t;
}

static struct model *model_by(struct tape t, bool compensate, enum model_by by)
{
	struct model *m;

	tape_end(&t);
	assert_int_equal(model_open(&m), 0);
	assert_int_equal(model_read(m, t.fd, "tape"), 0);
	m->compensate = compensate;
	assert_int_equal(model_finish(m, by), 0);
	sys_close(t.fd);
	return m;
}

static struct model *model_of(struct tape t, bool compensate)
{
	return model_by(t, compensate, BY_PHASE);
}

static uint64_t cost(const struct model *m, const struct marker_cost *c, const char *name)
{
	for (size_t i = 0; i < c->value_count; i++)
		if (str_eq(m->columns[i].name, name) && c->values[i].state == VALUE_COUNTED)
			return c->values[i].number;
	fail_msg("the cost in %s is not known", name);
	return 0;
}

static void costs_are_medians_of_empty_phases_and_regions(void **state)
{
	struct model *m = model_of(whole_tape(), false);
	const struct run *run = &m->runs[0];

	(void)state;
	assert_int_equal(run->phase_cost.samples, 3);
	assert_int_equal(run->phase_cost.ns, 40 * US);
	assert_int_equal(cost(m, &run->phase_cost, "task-clock"), 30 * US);
	assert_int_equal(cost(m, &run->phase_cost, "page-faults"), 2);
	assert_int_equal(run->region_cost.samples, 2);
	assert_int_equal(run->region_cost.ns, 10 * US);
	assert_int_equal(cost(m, &run->region_cost, "task-clock"), 5 * US);
	assert_int_equal(cost(m, &run->region_cost, "page-faults"), 1);
	model_close(m);
}

static void what_shows_the_costs_is_no_part_of_the_run(void **state)
{
	struct model *m = model_of(whole_tape(), false);

	(void)state;
	assert_int_equal(m->row_count, 4);
	assert_int_equal(m->region_count, 2);
	assert_int_equal(m->node_count, 2);
	assert_false(m->several_processes);
	assert_int_equal(m->runs[0].processes, 1);
	assert_int_equal(m->runs[0].total.duration_ns, 9 * MS);
	assert_counted(total(m, "page-faults"), 130);
	model_close(m);
}

static void values_are_as_counted_unless_asked_otherwise(void **state)
{
	struct model *m = model_of(whole_tape(), false);

	(void)state;
	assert_counted(value(m, 1, "task-clock"), 200 * US);
	assert_counted(whole(m, 0, "page-faults"), 15);
	assert_quality(value(m, 1, "task-clock"), "exact");
	model_close(m);
}

static void markers_can_be_taken_away_from_phases(void **state)
{
	struct model *m = model_of(whole_tape(), true);

	(void)state;
	/* One marker of the phase and four of regions. */
	assert_counted(value(m, 1, "task-clock"), 200 * US - 30 * US - 4 * 5 * US);
	assert_counted(value(m, 1, "page-faults"), 20 - 2 - 4);
	assert_quality(value(m, 1, "task-clock"), "without what its markers cost");
	assert_missing(value(m, 2, "page-faults"), "not counted: below its markers' cost");
	/* No marker began it, and TOTAL is the whole. */
	assert_counted(value(m, 0, "page-faults"), 100);
	assert_counted(total(m, "page-faults"), 130);
	model_close(m);
}

static void markers_can_be_taken_away_from_regions(void **state)
{
	struct model *m = model_of(whole_tape(), true);

	(void)state;
	assert_counted(whole(m, 0, "task-clock"), 80 * US - 3 * 5 * US);
	assert_counted(own(m, 0, "task-clock"), 50 * US - 2 * 5 * US);
	assert_counted(whole(m, 1, "task-clock"), 30 * US - 5 * US);
	assert_counted(own(m, 1, "page-faults"), 6 - 1);
	assert_quality(whole(m, 1, "task-clock"), "sync; without what its markers cost");
	model_close(m);
}

static void a_phase_of_little_but_its_marker_is_called_short(void **state)
{
	struct model *m = model_of(whole_tape(), false);

	(void)state;
	assert_false(m->rows[1].is_short);
	assert_true(m->rows[2].is_short);
	assert_row_quality(m, 2, "short: half of its task-clock or more is its markers'");
	golden_check(m, &table_format, BY_PHASE, 80, "short_phase.txt");
	model_close(m);
}

static void one_short_phase_makes_no_short_process(void **state)
{
	struct model *m = model_by(whole_tape(), false, BY_PROCESS);

	(void)state;
	assert_int_equal(m->row_count, 1);
	assert_int_equal(m->rows[0].clock_ns, 9 * MS);
	assert_int_equal(m->rows[0].markers_clock_ns, 3 * 30 * US + 4 * 5 * US);
	assert_false(m->rows[0].is_short);
	model_close(m);
}

/* 60 µs of task-clock in 40 µs, of which one marker has 30. */
static void task_clock_that_markers_bring_above_time_is_told(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, TID, "first");
	phase(&t, 0, 0, "START", 1, 0, (struct counts){ 0, 0, 0, 0 });
	phase(&t, 0, 1 * MS, "brief", 2, 0, (struct counts){ 100 * US, 0, 100 * US, 0 });
	phase(&t, 0, 1 * MS + 60 * US, "two threads", 3, 20 * US,
		(struct counts){ 161 * US, 0, 161 * US, 0 });
	gone(&t, 0, T0 + 2 * MS, 4);
	snapshot(&t, 4, 0, T0 + 2 * MS, (struct counts){ 1900 * US, 0, 1900 * US, 0 });
	calibration(&t);
	m = model_of(t, false);
	assert_int_equal(m->rows[1].duration_ns, 40 * US);
	assert_true(m->rows[1].is_short);
	assert_row_quality(
		m, 1, "short: with that of its markers its task-clock is more than its time");
	assert_false(m->rows[2].is_short);
	model_close(m);
}

static void regions_in_start_cost_what_they_cost_elsewhere(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, TID, "first");
	phase(&t, 0, 0, "START", 1, 0, (struct counts){ 0, 0, 0, 0 });
	own_region(&t, 0, 2 * MS, JPHASE_BEGIN, "r", 2, 0, (struct counts){ 0, 0, 0, 0 });
	own_region(&t, 0, 3 * MS, JPHASE_END, "r", 3, 9 * US, (struct counts){ 0, 5, 0, 0 });
	gone(&t, 0, T0 + 9 * MS, 4);
	snapshot(&t, 4, 0, T0 + 9 * MS, (struct counts){ 9 * MS, 7, 9 * MS, 0 });
	calibration(&t);
	m = model_of(t, true);
	assert_counted(value(m, 0, "page-faults"), 7 - 2);
	assert_counted(whole(m, 0, "page-faults"), 5 - 1);
	model_close(m);
}

static void a_region_of_little_but_markers_is_called_short(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, TID, "first");
	phase(&t, 0, 0, "START", 1, 0, (struct counts){ 0, 0, 0, 0 });
	own_region(&t, 0, 2 * MS, JPHASE_BEGIN, "r", 2, 0, (struct counts){ 0, 0, 0, 0 });
	own_region(
		&t, 0, 3 * MS, JPHASE_END, "r", 3, 9 * US, (struct counts){ 8 * US, 0, 8 * US, 0 });
	gone(&t, 0, T0 + 9 * MS, 4);
	calibration(&t);
	m = model_of(t, false);
	assert_true(m->nodes[0].is_short);
	model_close(m);
}

static void quality_tells_the_costs(void **state)
{
	struct model *m = model_of(whole_tape(), true);
	char *text = golden_render(m, &quality_format, BY_PHASE, 200);
	char *json = golden_render(m, &json_format, BY_PHASE, 100);

	(void)state;
	assert_non_null(strstr(text, "a marker of phases takes 40.00 µs here, task-clock 30.00 µs, "
				     "page-faults 2"));
	assert_non_null(strstr(text, "(median of 2 empty ones)"));
	assert_non_null(strstr(json, "\"phase_marker_cost\": {\n      \"samples\": 3,"));
	free(text);
	free(json);
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_medians_of_empty_phases_and_regions),
		cmocka_unit_test(what_shows_the_costs_is_no_part_of_the_run),
		cmocka_unit_test(values_are_as_counted_unless_asked_otherwise),
		cmocka_unit_test(markers_can_be_taken_away_from_phases),
		cmocka_unit_test(markers_can_be_taken_away_from_regions),
		cmocka_unit_test(a_phase_of_little_but_its_marker_is_called_short),
		cmocka_unit_test(one_short_phase_makes_no_short_process),
		cmocka_unit_test(task_clock_that_markers_bring_above_time_is_told),
		cmocka_unit_test(regions_in_start_cost_what_they_cost_elsewhere),
		cmocka_unit_test(a_region_of_little_but_markers_is_called_short),
		cmocka_unit_test(quality_tells_the_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
