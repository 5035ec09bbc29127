/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/scaled.h"
#include "report/utf8.h"
#include "support/golden.h"
#include "support/tape.h"

static void shown(uint64_t number, enum metric_unit unit, const char *expected)
{
	char text[SCALED_ROOM];

	scaled(number, unit, text);
	assert_string_equal(text, expected);
}

static void numbers_have_at_most_five_digits_and_a_unit(void **state)
{
	(void)state;
	shown(0, UNIT_COUNT, "0");
	shown(99999, UNIT_COUNT, "99999");
	shown(100000, UNIT_COUNT, "100.0 K");
	shown(1234567, UNIT_COUNT, "1.235 M");
	shown(999999999, UNIT_COUNT, "1.000 G");
	shown(512, UNIT_BYTES, "512 B");
	shown(1536, UNIT_BYTES, "1.50 KiB");
	shown(3 << 20, UNIT_BYTES, "3.00 MiB");
	shown(999, UNIT_NS, "999 ns");
	shown(1500, UNIT_NS, "1.500 µs");
	shown(2500, UNIT_US, "2.500 ms");
	shown(90000000, UNIT_US, "90.00 s");
	shown(1500000, UNIT_UJ, "1.500 J");
	shown(19753, UNIT_PERCENT, "197.53 %");
	shown(UINT64_MAX - 1, UNIT_COUNT, "18.45 E");
}

static void real(double number, enum metric_unit unit, const char *expected)
{
	char text[SCALED_ROOM];

	scaled_real(number, unit, text);
	assert_string_equal(text, expected);
}

static void numbers_beyond_all_units_keep_their_magnitude(void **state)
{
	(void)state;
	real(1e300, UNIT_COUNT, "1.000e+300");
	real(-1.5e300, UNIT_BYTES, "-1.500e+300 B");
	real(2e30, UNIT_NS, "2.000e+30 ns");
	real(86400e9 * 30, UNIT_NS, "2592000.0 s");
	real(-5, UNIT_COUNT, "-5");
	/* Not 0.000. */
	real(5e-6, UNIT_COUNT, "5.000e-06");
	real(0.001, UNIT_COUNT, "0.001");
	real(0, UNIT_COUNT, "0");
}

static void two_phases_in_80_columns(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 80, "two_phases_80.txt");
	model_close(m);
}

static void columns_that_do_not_fit_stand_below(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 40, "two_phases_40.txt");
	model_close(m);
}

/* Whole characters of a line, counted as a terminal does. */
static size_t widest_line(char *text)
{
	size_t widest = 0;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		widest = MAX(widest, utf8_string_width(line));
	return widest;
}

static struct model *hostile_model(void)
{
	struct tape t = tape_started();

	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .name = "\033[2J\a\n;\"漢字 Größe", .snapshot = 2 });
	region(&t, T0 + MS, JPHASE_BEGIN, "\xff\xfe\t");
	marker(&t, (struct record_marker){ .time_ns = T0 + 2 * MS,
			   .name = "a name so long that it would push all else out of a table "
				   "of eighty columns, or nearly so",
			   .snapshot = 3 });
	recorder_loss(t.r, T0 + 2 * MS, "dropped", 3);
	gone(&t, 0, T0 + 5 * MS, 4);
	return tape_model(&t, BY_PHASE);
}

static void names_never_break_the_table(void **state)
{
	struct model *m = hostile_model();
	char *text;

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 80, "hostile.txt");
	text = golden_render(m, &table_format, BY_PHASE, 80);
	assert_null(strpbrk(text, "\033\a\t"));
	assert_in_range(widest_line(text), 1, 80);
	free(text);
	model_close(m);
}

/* Of the first process; closes the model. */
static char *table_of(struct tape *t, bool all)
{
	const struct report_options options = { .width = 80, .all = all };
	struct model *m = tape_model(t, BY_PHASE);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(table_format.render(m, &options, out), 0);
	fclose(out);
	model_close(m);
	return text;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

/* As the shim cuts them: 61 bytes, then a hash of all. */
static void names_that_differ_in_their_end_look_different(void **state)
{
	struct tape t = tape_started();
	char *text;

	(void)state;
	for (int i = 1; i <= 2; i++) {
		char name[71];

		snprintf(name, sizeof(name), "%.61s~%08x",
			"the_same_solver::step<matrix, vector, preconditioner>::iteration_of_all",
			0xabc0 + i);
		marker(&t,
			(struct record_marker){ .time_ns = T0 + (uint64_t)i * MS, .name = name });
	}
	text = table_of(&t, false);
	assert_int_equal(count_of(text, "\nthe_same_solver"), 2);
	assert_int_equal(count_of(text, "~0000abc1 "), 1);
	assert_int_equal(count_of(text, "~0000abc2 "), 1);
	free(text);
}

static void regions_keep_their_names_however_deep_they_are(void **state)
{
	struct tape t = tape_started();
	char *text;

	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "level%02" PRIu64 "_of_work", i);
		region(&t, T0 + i * US, JPHASE_BEGIN, name);
	}
	text = table_of(&t, false);
	assert_non_null(strstr(text, "\nlevel00_of_work "));
	assert_non_null(strstr(text, "\n   level03_of_work "));
	for (int i = 10; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), " %d: ", i);
		assert_int_equal(count_of(text, name), i > 10);
		snprintf(name, sizeof(name), "%d_of_work", i);
		assert_int_equal(count_of(text, name), 1);
	}
	assert_in_range(widest_line(text), 1, 80);
	free(text);
}

static struct tape tape_of_repairs(void)
{
	static const char *const stray[] = { "a", "b", "a", "c", "d" };
	struct tape t = tape_started();

	for (size_t i = 0; i < ARRAY_SIZE(stray); i++)
		region(&t, T0 + i * US, JPHASE_END, stray[i]);
	region(&t, T0 + 10 * US, JPHASE_BEGIN, "outer");
	region(&t, T0 + 11 * US, JPHASE_BEGIN, "inner");
	region(&t, T0 + 12 * US, JPHASE_END, "outer");
	return t;
}

static void regions_that_do_not_match_are_named(void **state)
{
	struct tape t = tape_of_repairs();
	struct model *m;
	char *text = table_of(&t, false);

	(void)state;
	assert_non_null(
		strstr(text, "\nregions: 5 ends without a begin (a, b, c, …), 1 closed by an "
			     "outer one's end\n  (inner)\n"));
	free(text);
	t = tape_of_repairs();
	m = tape_model(&t, BY_PHASE);
	text = golden_render(m, &json_format, BY_PHASE, 80);
	assert_non_null(strstr(text, "\"regions_without_begin\": 5,"));
	assert_non_null(strstr(text, "\"regions_crossed_names\": [\n      \"inner\"\n    ],"));
	free(text);
	model_close(m);
}

static void lost_markers_say_what_helps(void **state)
{
	static const char *const modes[] = { "sync", "async", "exact" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct tape t = tape_begin(modes[i]);
		char *text;

		recorder_loss(t.r, T0, "dropped", 51037);
		text = table_of(&t, false);
		assert_non_null(strstr(text, "51037 markers lost"));
		assert_non_null(strstr(text, "--ring"));
		assert_int_equal(strstr(text, "--mode sync") != NULL, i > 0);
		free(text);
	}
}

static void losses_are_told_in_every_format(void **state)
{
	struct model *m = hostile_model();
	char *table = golden_render(m, &table_format, BY_PHASE, 80);
	char *json = golden_render(m, &json_format, BY_PHASE, 80);
	char *csv = golden_render(m, &csv_format, BY_PHASE, 80);

	(void)state;
	assert_non_null(strstr(table, "3 markers lost"));
	assert_non_null(strstr(json, "\"markers\": 3"));
	assert_non_null(strstr(csv, ";3;false\n"));
	free(table);
	free(json);
	free(csv);
	model_close(m);
}

static void one_row_a_name(void **state)
{
	struct model *m = two_phase_model(BY_NAME);

	(void)state;
	golden_check(m, &table_format, BY_NAME, 80, "two_phases_by_name.txt");
	model_close(m);
}

static void without_regions_there_are_no_threads_to_show(void **state)
{
	struct model *m = two_phase_model(BY_THREAD);
	char *text = golden_render(m, &table_format, BY_THREAD, 80);

	(void)state;
	assert_non_null(strstr(text, "no thread has regions"));
	free(text);
	model_close(m);
}

static void an_empty_recording_has_its_total_alone(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 80, "empty.txt");
	model_close(m);
}

static struct tape tape_of_marks(uint64_t count)
{
	struct tape t = tape_started();

	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .name = "solve" });
	for (uint64_t i = 0; i < count; i++)
		region(&t, T0 + (2 + i) * MS, JPHASE_MARK, "here");
	return t;
}

static void marks_say_when_they_happened_and_in_which_phase(void **state)
{
	struct tape t = tape_of_marks(1);
	char *text = table_of(&t, false);

	(void)state;
	assert_non_null(
		strstr(text, "\nmarks:\nmark        at  phase\nhere  2.000 ms  solve\n\nelapsed"));
	free(text);
}

/* How long a marker took is told by its thread's next one. */
static void time_in_other_markers_than_phases_is_told(void **state)
{
	struct tape t = tape_started();
	char *text;

	(void)state;
	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .name = "solve" });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 2 * MS, .kind = JPHASE_MARK, .name = "here" });
	marker(&t, (struct record_marker){ .time_ns = T0 + 9 * MS,
			   .kind = JPHASE_MARK,
			   .name = "there",
			   .took_ns = 3 * MS });
	text = table_of(&t, false);
	assert_non_null(strstr(text, ", in others 3.000 ms\n"));
	free(text);
}

static void twenty_marks_are_shown_unless_all_are_asked_for(void **state)
{
	struct tape t = tape_of_marks(23);
	char *text = table_of(&t, false);

	(void)state;
	assert_int_equal(count_of(text, "\nhere "), 20);
	assert_non_null(strstr(text, "\n... 3 more (--all)\n"));
	free(text);
	t = tape_of_marks(23);
	text = table_of(&t, true);
	assert_int_equal(count_of(text, "\nhere "), 23);
	free(text);
}

static void readers_that_could_not_work_are_named(void **state)
{
	struct tape t = tape_started();
	char *text = table_of(&t, true);

	(void)state;
	assert_non_null(strstr(text, "\nenergy: not available: no RAPL here\n"));
	free(text);
	/* Few machines have it: not among the usual things. */
	t = tape_started();
	text = table_of(&t, false);
	assert_null(strstr(text, "energy"));
	free(text);
}

static void an_amount_that_is_no_number_is_told(void **state)
{
	struct tape t = tape_started();
	char *text;

	(void)state;
	marker(&t, (struct record_marker){ .time_ns = T0 + MS,
			   .kind = JPHASE_VALUE,
			   .name = "rows",
			   .value = __builtin_nan("") });
	text = table_of(&t, false);
	assert_non_null(strstr(text, "- rows"));
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "joule_value was given an infinite amount, or none (NaN)"));
	free(text);
}

static void amount(struct tape *t, uint64_t time, const char *name, double value)
{
	marker(t, (struct record_marker){
			  .time_ns = time, .kind = JPHASE_VALUE, .name = name, .value = value });
}

/* Three phases of two names; one of the two that are called "solve" has no amount. */
static char *amounts_by(enum model_by by)
{
	struct tape t = tape_started();
	struct model *m;
	char *text;

	amount(&t, T0 + 100 * US, "items", 500);
	amount(&t, T0 + 200 * US, "balance", -5);
	amount(&t, T0 + 300 * US, "huge", 1e300);
	for (uint64_t i = 1; i <= 2; i++)
		marker(&t, (struct record_marker){
				   .time_ns = T0 + i * MS, .name = "solve", .snapshot = 1 + i });
	amount(&t, T0 + 2 * MS + US, "cells", 8);
	gone(&t, 0, T0 + 3 * MS, 4);
	m = tape_model(&t, by);
	text = golden_render(m, &table_format, by, 120);
	model_close(m);
	return text;
}

static void an_amount_divides_what_it_belongs_to(void **state)
{
	char *text = amounts_by(BY_PHASE);

	(void)state;
	assert_non_null(strstr(text, "\nSTART        500 items       2.000 µs"));
	assert_non_null(strstr(text, "\nSTART  1.000e+300 huge"));
	assert_non_null(strstr(text, "8 cells"));
	assert_non_null(strstr(text, "-5 balance              -"));
	assert_non_null(strstr(text, "\n- nothing per unit of work: the amount is zero or negative "
				     "(balance)\n"));
	free(text);
}

static void a_name_with_an_amount_in_some_phases_is_not_divided(void **state)
{
	char *text = amounts_by(BY_NAME);

	(void)state;
	assert_non_null(strstr(text, "500 items       2.000 µs"));
	assert_non_null(strstr(text, "8 cells              -"));
	assert_non_null(strstr(text, "not all phases of that name have the amount (cells)\n"));
	free(text);
}

static void a_process_is_not_divided_by_an_amount_of_one_phase(void **state)
{
	char *text = amounts_by(BY_PROCESS);

	(void)state;
	assert_null(strstr(text, "per unit of work"));
	assert_non_null(strstr(text, "\namounts of work:\n"));
	assert_non_null(strstr(text, "500 items\n"));
	free(text);
}

static struct tape tape_of_child(void)
{
	struct tape t = tape_started();

	process(&t, T0 + MS, 1, 101, "fork");
	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .process = 1, .name = "START" });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .process = 1, .name = "work", .snapshot = 2 });
	snapshot(&t, 2, 1, T0 + MS, (struct counts){ 0, 0, 0, 0 });
	gone(&t, 1, T0 + 3 * MS, 3);
	snapshot(&t, 3, 1, T0 + 3 * MS, (struct counts){ MS, 5, MS, 0 });
	return t;
}

static void the_bare_start_of_a_forked_child_is_left_out(void **state)
{
	struct tape t = tape_of_child();
	char *text = table_of(&t, false);

	(void)state;
	assert_int_equal(count_of(text, "\nSTART "), 1);
	assert_int_equal(count_of(text, "\nwork "), 1);
	assert_null(strstr(text, "not yet counted"));
	free(text);
}

static void the_bare_start_of_a_forked_child_is_in_no_format(void **state)
{
	const struct report_format *const formats[] = { &json_format, &csv_format };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tape t = tape_of_child();
		struct model *m = tape_model(&t, BY_PHASE);
		char *text = golden_render(m, formats[i], BY_PHASE, 80);

		assert_non_null(strstr(text, "START"));
		assert_null(strstr(text, "not yet counted"));
		free(text);
		model_close(m);
	}
}

static void names_do_not_count_the_bare_start_of_a_forked_child(void **state)
{
	struct tape t = tape_of_child();
	struct model *m = tape_model(&t, BY_NAME);

	(void)state;
	assert_string_equal(m->rows[0].name, "START");
	assert_int_equal(m->rows[0].count, 1);
	model_close(m);
}

static void the_bare_start_of_a_forked_child_misses_nothing(void **state)
{
	struct tape t = tape_of_child();
	struct model *m = tape_model(&t, BY_PROCESS);

	(void)state;
	assert_int_equal(m->rows[1].count, 1);
	assert_counted(value(m, 1, "page-faults"), 5);
	assert_int_equal(value(m, 1, "page-faults").without, 0);
	model_close(m);
}

/* 200 µs late in 1 ms, and 50 in 4. */
static void late_phases_are_marked_in_their_rows(void **state)
{
	struct tape t = tape_begin("async");
	char *text;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .name = "a", .snapshot = 2 });
	snapshot(&t, 2, 0, T0 + MS + 200 * US, (struct counts){ 1, 1, 1, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 5 * MS, .name = "b", .snapshot = 3 });
	snapshot(&t, 3, 0, T0 + 5 * MS + 50 * US, (struct counts){ 2, 2, 2, 0 });
	text = table_of(&t, false);
	assert_non_null(strstr(text, "\nSTART ! "));
	assert_non_null(strstr(text, "\na  "));
	assert_non_null(strstr(text, "\n! late: read more than a tenth"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_at_most_five_digits_and_a_unit),
		cmocka_unit_test(numbers_beyond_all_units_keep_their_magnitude),
		cmocka_unit_test(two_phases_in_80_columns),
		cmocka_unit_test(columns_that_do_not_fit_stand_below),
		cmocka_unit_test(names_never_break_the_table),
		cmocka_unit_test(names_that_differ_in_their_end_look_different),
		cmocka_unit_test(regions_keep_their_names_however_deep_they_are),
		cmocka_unit_test(regions_that_do_not_match_are_named),
		cmocka_unit_test(lost_markers_say_what_helps),
		cmocka_unit_test(losses_are_told_in_every_format),
		cmocka_unit_test(one_row_a_name),
		cmocka_unit_test(without_regions_there_are_no_threads_to_show),
		cmocka_unit_test(an_empty_recording_has_its_total_alone),
		cmocka_unit_test(marks_say_when_they_happened_and_in_which_phase),
		cmocka_unit_test(time_in_other_markers_than_phases_is_told),
		cmocka_unit_test(twenty_marks_are_shown_unless_all_are_asked_for),
		cmocka_unit_test(readers_that_could_not_work_are_named),
		cmocka_unit_test(an_amount_that_is_no_number_is_told),
		cmocka_unit_test(an_amount_divides_what_it_belongs_to),
		cmocka_unit_test(a_name_with_an_amount_in_some_phases_is_not_divided),
		cmocka_unit_test(a_process_is_not_divided_by_an_amount_of_one_phase),
		cmocka_unit_test(the_bare_start_of_a_forked_child_is_left_out),
		cmocka_unit_test(the_bare_start_of_a_forked_child_is_in_no_format),
		cmocka_unit_test(names_do_not_count_the_bare_start_of_a_forked_child),
		cmocka_unit_test(the_bare_start_of_a_forked_child_misses_nothing),
		cmocka_unit_test(late_phases_are_marked_in_their_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
