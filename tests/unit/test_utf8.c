/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "internal/util.h"
#include "report/utf8.h"

static void widths_are_those_of_a_terminal(void **state)
{
	(void)state;
	assert_int_equal(utf8_string_width(""), 0);
	assert_int_equal(utf8_string_width("abc"), 3);
	assert_int_equal(utf8_string_width("Größe"), 5);
	assert_int_equal(utf8_string_width("e\xcc\x81"), 1);
	assert_int_equal(utf8_string_width("漢字"), 4);
	assert_int_equal(utf8_string_width("\xf0\x9f\x98\x80"), 2);
	assert_int_equal(utf8_string_width("\xff\xfe"), 2);
}

static void what_is_not_utf8_is_replaced_byte_by_byte(void **state)
{
	static const char *const bad[] = {
		"\x80",
		"\xc0\xaf",
		"\xe0\x80\x80",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		"\xc3",
		"\xe2\x82",
		"\xff",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint32_t code;

		assert_int_equal(utf8_next(bad[i], &code), 1);
		assert_int_equal(code, UTF8_REPLACEMENT);
	}
}

static void printable(const char *from, size_t max, const char *to)
{
	char text[32];

	utf8_printable(from, text, sizeof(text), max);
	assert_string_equal(text, to);
}

static void terminals_get_no_control_characters(void **state)
{
	(void)state;
	printable("a\033[31mb", 20, "a\xef\xbf\xbd[31mb");
	printable("a\rb", 20,
		"a\xef\xbf\xbd"
		"b");
	printable("x\xe2\x80\xaey", 20, "x\xef\xbf\xbdy");
	printable("\xc2\x9b", 20, "\xef\xbf\xbd");
	printable("a\xff", 20, "a\xef\xbf\xbd");
}

static void newlines_and_tabs_are_blanks(void **state)
{
	(void)state;
	printable("a\nb\t\tc", 20, "a b  c");
}

static void long_texts_are_cut_where_they_fit(void **state)
{
	(void)state;
	printable("abcdef", 6, "abcdef");
	printable("abcdefg", 6, "abcde…");
	printable("漢字漢字", 8, "漢字漢字");
	printable("漢字漢字", 7, "漢字漢…");
	printable("漢字漢字", 6, "漢字…");
	printable("", 6, "");
	/* Also where the room ends first. */
	printable("0123456789012345678901234567890123456789", 99, "0123456789012345678901234567…");
}

static void elided(const char *from, size_t max, const char *to)
{
	char text[64];

	strcpy(text, from);
	utf8_elide(text, max);
	assert_string_equal(text, to);
	assert_true(utf8_string_width(text) <= max);
}

static void names_keep_their_beginning_and_their_end(void **state)
{
	(void)state;
	elided("abcdefgh", 8, "abcdefgh");
	elided("abcdefghi", 8, "abc…fghi");
	elided("solver_iteration_step_1", 10, "solv…tep_1");
	elided("solver_iteration_step_2", 10, "solv…tep_2");
	/* Characters of two columns, and marks that stay with theirs. */
	elided("漢字漢字漢字", 8, "漢…漢字");
	elided("漢字漢字漢字", 9, "漢字…漢字");
	elided("abcdefgh\xcc\x81ijk", 8, "abc…h\xcc\x81ijk");
	elided("abcdefgh\xcc\x81ijk", 7, "abc…ijk");
	/* Blanks before it stay, up to a half. */
	elided("    abcdefghij", 12, "    abc…ghij");
	elided("                abcdefghij", 12, "        …hij");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_are_those_of_a_terminal),
		cmocka_unit_test(what_is_not_utf8_is_replaced_byte_by_byte),
		cmocka_unit_test(terminals_get_no_control_characters),
		cmocka_unit_test(newlines_and_tabs_are_blanks),
		cmocka_unit_test(long_texts_are_cut_where_they_fit),
		cmocka_unit_test(names_keep_their_beginning_and_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
