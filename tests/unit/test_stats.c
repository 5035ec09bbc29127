/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "report/stats.h"
#include "support/golden.h"
#include "support/tape.h"

#define TOOK (10 * US)

/* The collector reads at once; the marker before it took TOOK. */
static void phase(struct tape *t, uint64_t number, uint64_t time, const char *name, uint64_t faults)
{
	marker(t, (struct record_marker){ .time_ns = time,
			  .name = name,
			  .snapshot = number,
			  .took_ns = number > 1 ? TOOK : 0 });
	snapshot(t, number, 0, time + US, (struct counts){ time - T0, faults, time - T0, 0 });
}

/*
 * "step" four times, with 10, 20, 30 and 41 faults, of 1, 2, 3 and 4 ms less the
 * marker; START before each of "rest" is the program's first phase.
 */
static void put_steps(struct tape *t)
{
	static const uint64_t faults[] = { 10, 20, 30, 41 };
	uint64_t time = T0, total = 0, number = 1;

	process(t, T0, 0, 100, "first");
	phase(t, number++, time, "START", total);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		time += 5 * MS;
		phase(t, number++, time, "step", total);
		time += (i + 1) * MS;
		total += faults[i];
		phase(t, number++, time, "rest", total);
	}
	gone(t, 0, time + MS, 0);
}

static struct model *steps(void)
{
	struct tape t = tape_begin("sync");

	put_steps(&t);
	return tape_model(&t, BY_PHASE);
}

static size_t column(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->column_count; i++)
		if (str_eq(m->columns[i].name, name))
			return i;
	fail_msg("no column %s", name);
	return 0;
}

static const struct stats_group *group(const struct stats *s, const char *name)
{
	for (size_t i = 0; i < s->group_count; i++)
		if (str_eq(s->groups[i].name, name))
			return &s->groups[i];
	fail_msg("no group %s", name);
	return NULL;
}

static struct stats_line faults_of(const struct stats *s, const char *name)
{
	struct stats_line l;

	assert_true(
		stats_line(s, group(s, name), STATS_COLUMN, column(s->model, "page-faults"), &l));
	return l;
}

static void assert_near(double number, double expected)
{
	if (fabs(number - expected) > 1e-9 * fabs(expected))
		fail_msg("%.12g is not %.12g", number, expected);
}

static void what_phases_of_one_name_differ_in(void **state)
{
	struct model *m = steps();
	struct stats s;
	struct stats_line l;

	(void)state;
	assert_int_equal(stats_make(m, &s), 0);
	assert_int_equal(group(&s, "step")->count, 4);
	l = faults_of(&s, "step");
	assert_int_equal(l.count, 4);
	assert_near(l.mean, 25.25);
	/* (15.25² + 5.25² + 4.75² + 15.75²) / 3 */
	assert_near(l.deviation, sqrt(530.75 / 3));
	assert_near(l.least, 10);
	assert_near(l.median, 25);
	assert_near(l.most, 41);
	assert_true(stats_line(&s, group(&s, "step"), STATS_TIME, 0, &l));
	assert_near(l.least, 1 * MS - TOOK);
	assert_near(l.most, 4 * MS - TOOK);
	assert_near(l.mean, 2.5 * MS - TOOK);
	stats_clear(&s);
	model_close(m);
}

static void one_alone_does_not_differ(void **state)
{
	struct model *m = steps();
	struct stats s;
	struct stats_line l;

	(void)state;
	assert_int_equal(stats_make(m, &s), 0);
	l = faults_of(&s, "START");
	assert_int_equal(l.count, 1);
	assert_near(l.mean, 0);
	assert_near(l.median, 0);
	assert_true(isnan(l.deviation));
	stats_clear(&s);
	model_close(m);
}

/* The last "rest" has no reading at its end: the process was gone. */
static void what_was_not_counted_is_left_out_and_told_of(void **state)
{
	struct model *m = steps();
	struct stats s;
	struct stats_line l;

	(void)state;
	assert_int_equal(stats_make(m, &s), 0);
	l = faults_of(&s, "rest");
	assert_int_equal(group(&s, "rest")->count, 4);
	assert_int_equal(l.count, 3);
	assert_near(l.most, 0);
	assert_true(stats_line(&s, group(&s, "rest"), STATS_TIME, 0, &l));
	assert_int_equal(l.count, 4);
	assert_true(stats_line(&s, group(&s, "step"), STATS_COLUMN, column(m, "CPU_CYCLES"), &l));
	assert_int_equal(l.count, 0);
	assert_true(isnan(l.mean));
	assert_missing(l.worst, "not counted: no hardware counters here");
	stats_clear(&s);
	model_close(m);
}

static void a_phase_that_the_recording_ends_in_is_left_out(void **state)
{
	struct tape t = tape_begin("sync");
	struct stats_line l;
	struct stats s;
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	phase(&t, 1, T0, "step", 0);
	phase(&t, 2, T0 + MS, "step", 7);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(stats_make(m, &s), 0);
	assert_int_equal(group(&s, "step")->count, 2);
	assert_true(stats_line(&s, group(&s, "step"), STATS_TIME, 0, &l));
	assert_int_equal(l.count, 1);
	assert_int_equal(faults_of(&s, "step").count, 1);
	stats_clear(&s);
	model_close(m);
}

/* --- regions --- */

static void boundary(struct tape *t, uint64_t time, uint8_t kind, const char *name, uint64_t number,
	uint64_t faults)
{
	sampled(t, T0 + time, 100, kind, name, number, (struct counts){ 0, faults, 0, 0 });
}

/* outer has 5 faults of its own, tail one. */
static struct tape run_with(const char *inner, uint64_t faults, const char *tail)
{
	struct tape t = tape_begin("exact");

	process(&t, T0, 0, 100, "first");
	phase(&t, 1, T0, "START", 0);
	boundary(&t, 1 * MS, JPHASE_BEGIN, "outer", 2, 0);
	boundary(&t, 2 * MS, JPHASE_BEGIN, inner, 3, 5);
	boundary(&t, 3 * MS, JPHASE_END, inner, 4, 5 + faults);
	boundary(&t, 4 * MS, JPHASE_END, "outer", 5, 5 + faults);
	if (tail) {
		boundary(&t, 5 * MS, JPHASE_BEGIN, tail, 6, 5 + faults);
		boundary(&t, 6 * MS, JPHASE_END, tail, 7, 6 + faults);
	}
	gone(&t, 0, T0 + 7 * MS, 0);
	tape_end(&t);
	return t;
}

static struct model *model_of(const struct tape *tapes, size_t count)
{
	struct model *m;

	assert_int_equal(model_open(&m), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(model_read(m, tapes[i].fd, "tape"), 0);
		sys_close(tapes[i].fd);
	}
	assert_int_equal(model_finish(m, BY_PHASE), 0);
	return m;
}

static void regions_are_one_over_runs_and_in_the_order_of_their_tree(void **state)
{
	static const char *const expected[] = { "START", "outer", "inner", "other", "tail" };
	const struct tape tapes[] = { run_with("inner", 10, "tail"), run_with("other", 7, NULL),
		run_with("inner", 30, NULL) };
	struct model *m = model_of(tapes, ARRAY_SIZE(tapes));
	struct stats s;

	(void)state;
	assert_int_equal(stats_make(m, &s), 0);
	assert_int_equal(s.group_count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(s.groups[i].name, expected[i]);
	assert_int_equal(s.groups[0].count, 3);
	assert_int_equal(s.groups[1].count, 3);
	assert_int_equal(s.groups[2].count, 2);
	assert_int_equal(s.groups[2].parent, 1);
	assert_int_equal(s.groups[3].parent, 1);
	assert_int_equal(s.groups[4].parent, MODEL_NONE);
	assert_near(faults_of(&s, "inner").mean, 20);
	assert_near(faults_of(&s, "other").mean, 7);
	stats_clear(&s);
	model_close(m);
}

static void own_time_is_without_the_regions_within(void **state)
{
	const struct tape tapes[] = { run_with("inner", 10, NULL) };
	struct model *m = model_of(tapes, 1);
	struct stats s;
	struct stats_line l;

	(void)state;
	assert_int_equal(stats_make(m, &s), 0);
	assert_true(stats_line(&s, group(&s, "outer"), STATS_TIME, 0, &l));
	assert_near(l.mean, 3 * MS);
	assert_true(stats_line(&s, group(&s, "outer"), STATS_OWN_TIME, 0, &l));
	assert_near(l.mean, 2 * MS);
	stats_clear(&s);
	model_close(m);
}

/* --- as people and programs see them --- */

static void check(const struct report_format *format, const char *name)
{
	const struct tape tapes[] = { run_with("inner", 10, "tail"), run_with("other", 7, NULL) };
	struct tape more = tape_begin("sync");
	struct model *m;

	put_steps(&more);
	tape_end(&more);
	m = model_of((struct tape[]){ tapes[0], tapes[1], more }, 3);
	golden_check(m, format, BY_PHASE, 80, name);
	model_close(m);
}

static void the_table_in_80_columns(void **state)
{
	(void)state;
	check(&stats_format, "stats_80.txt");
}

static void csv_has_a_line_for_each_quantity(void **state)
{
	(void)state;
	check(&stats_csv_format, "stats.csv");
}

static void json_has_them_by_phase_and_region(void **state)
{
	(void)state;
	check(&stats_json_format, "stats.json");
}

static void an_empty_recording_has_no_statistics(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);
	char *text = golden_render(m, &stats_csv_format, BY_PHASE, 80);

	(void)state;
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	free(text);
	free(golden_render(m, &stats_format, BY_PHASE, 80));
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_phases_of_one_name_differ_in),
		cmocka_unit_test(one_alone_does_not_differ),
		cmocka_unit_test(what_was_not_counted_is_left_out_and_told_of),
		cmocka_unit_test(a_phase_that_the_recording_ends_in_is_left_out),
		cmocka_unit_test(regions_are_one_over_runs_and_in_the_order_of_their_tree),
		cmocka_unit_test(own_time_is_without_the_regions_within),
		cmocka_unit_test(the_table_in_80_columns),
		cmocka_unit_test(csv_has_a_line_for_each_quantity),
		cmocka_unit_test(json_has_them_by_phase_and_region),
		cmocka_unit_test(an_empty_recording_has_no_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
