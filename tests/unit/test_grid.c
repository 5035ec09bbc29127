/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/grid.h"

static char *wrapped(const char *text, unsigned indent, unsigned width)
{
	size_t size;
	char *result;
	FILE *out = open_memstream(&result, &size);

	assert_non_null(out);
	print_wrapped(out, text, indent, width);
	assert_int_equal(fclose(out), 0);
	return result;
}

static void lines_break_between_words(void **state)
{
	char *got = wrapped("one two  three", 2, 10);

	(void)state;
	assert_string_equal(got, "one two\n  three\n");
	free(got);
}

static void wide_characters_count_twice(void **state)
{
	char *got = wrapped("漢字 漢字 ab", 0, 9);

	(void)state;
	assert_string_equal(got, "漢字 漢字\nab\n");
	free(got);
}

/* 1,000 characters of two bytes. */
static void long_word_is_printed_whole(void **state)
{
	char word[2001] = "";
	char *got;

	(void)state;
	for (size_t i = 0; i < 2000; i += 2)
		memcpy(word + i, "ö", 3);
	got = wrapped(word, 0, 80);
	assert_int_equal(strlen(got), 2001);
	assert_memory_equal(got, word, 2000);
	free(got);
}

static void number_header(const void *data, size_t column, char text[GRID_CELL])
{
	(void)data;
	snprintf(text, GRID_CELL, "c%zu", column);
}

static void number_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	(void)data;
	snprintf(text, GRID_CELL, "%zu.%zu", row, column);
}

static void no_column_stands_alone_below(void **state)
{
	const struct grid g = {
		.rows = 1,
		.columns = 5,
		.sticky = 1,
		.width = 20,
		.header = number_header,
		.cell = number_cell,
	};
	char *got;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	(void)state;
	assert_non_null(out);
	grid_print(&g, out);
	fclose(out);
	assert_string_equal(got, " c0   c1   c2\n0.0  0.1  0.2\n\n c0   c3   c4\n0.0  0.3  0.4\n");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_break_between_words),
		cmocka_unit_test(wide_characters_count_twice),
		cmocka_unit_test(long_word_is_printed_whole),
		cmocka_unit_test(no_column_stands_alone_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
