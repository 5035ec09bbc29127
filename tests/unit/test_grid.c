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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_break_between_words),
		cmocka_unit_test(wide_characters_count_twice),
		cmocka_unit_test(long_word_is_printed_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
