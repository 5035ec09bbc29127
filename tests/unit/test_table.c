/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
	shown(UINT64_MAX - 1, UNIT_COUNT, "18446.7 P");
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

static void an_empty_recording_has_its_total_alone(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 80, "empty.txt");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_at_most_five_digits_and_a_unit),
		cmocka_unit_test(two_phases_in_80_columns),
		cmocka_unit_test(columns_that_do_not_fit_stand_below),
		cmocka_unit_test(names_never_break_the_table),
		cmocka_unit_test(losses_are_told_in_every_format),
		cmocka_unit_test(one_row_a_name),
		cmocka_unit_test(an_empty_recording_has_its_total_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
