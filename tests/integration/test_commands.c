/* SPDX-License-Identifier: MIT */
/* How the program answers before any command has begun to work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "support/proc.h"

static struct child r;

static int clear(void **state)
{
	(void)state;
	run_clear(&r);
	return 0;
}

static void answer(const char *words, int code)
{
	assert_int_equal(run_shell(&r, "%s %s", JPHASE, words), 0);
	if (r.code != code)
		fail_msg("jphase %s: status %d, %s", words, r.code, r.err);
}

static void assert_refused(const char *words, int code, const char *sentence)
{
	answer(words, code);
	assert_string_equal(r.out, "");
	assert_string_equal(r.err, sentence);
}

static void the_version_is_one_line(void **state)
{
	(void)state;
	answer("--version", 0);
	assert_string_equal(r.out, "jphase " JPHASE_VERSION "\n");
	answer("-V", 0);
	assert_string_equal(r.out, "jphase " JPHASE_VERSION "\n");
}

static void help_lists_what_is_for_people(void **state)
{
	static const char *const shown[] = { "\n  run ", "\n  report ", "\n  list ",
		"\n  doctor " };

	(void)state;
	answer("--help", 0);
	assert_string_equal(r.err, "");
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		assert_non_null(strstr(r.out, shown[i]));
	assert_null(strstr(r.out, "\n  collect"));
	assert_null(strstr(r.out, "\n  manual"));
}

static void no_command_is_an_error_with_help(void **state)
{
	(void)state;
	answer("", 2);
	assert_string_equal(r.out, "");
	assert_true(str_starts(r.err, "Usage: jphase COMMAND"));
}

static void every_command_has_help_in_both_spellings(void **state)
{
	static const char *const names[] = { "run", "report", "list", "doctor" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *words = text_make("%s --help", names[i]);
		char *usage = text_make("Usage: jphase %s", names[i]);
		char *first;

		answer(words, 0);
		assert_string_equal(r.err, "");
		assert_true(str_starts(r.out, usage));
		assert_non_null(strstr(r.out, "--help"));
		first = strdup(r.out);
		assert_non_null(first);
		assert_int_equal(run_shell(&r, "%s help %s", JPHASE, names[i]), 0);
		assert_string_equal(r.out, first);
		free(first);
		free(usage);
		free(words);
	}
}

static void no_line_of_help_is_wider_than_a_terminal(void **state)
{
	(void)state;
	assert_int_equal(run_shell(&r,
				 "for c in run report list doctor; do %s help $c; done | "
				 "awk 'length > 80'",
				 JPHASE),
		0);
	assert_string_equal(r.out, "");
}

static void a_wrong_command_is_answered_with_the_right_one(void **state)
{
	(void)state;
	assert_refused(
		"reprot", 2, "jphase: unknown command \"reprot\"; did you mean \"report\"?\n");
	assert_refused("./app", 2,
		"jphase: unknown command \"./app\"; to measure a program: jphase run -- ./app\n");
	assert_refused("zzz", 2, "jphase: unknown command \"zzz\" (jphase --help lists them)\n");
	assert_refused("--zzz", 2, "jphase: unknown option \"--zzz\" (jphase --help lists them)\n");
	assert_refused(
		"help zzz", 2, "jphase: unknown command \"zzz\" (jphase --help lists them)\n");
}

static void a_wrong_option_of_run_is_125_and_starts_nothing(void **state)
{
	(void)state;
	assert_refused("run --evnts x echo no", 125,
		"jphase: unknown option \"--evnts\"; did you mean \"--events\"?\n");
	assert_refused("run --mode asinc echo no", 125,
		"jphase: option \"--mode\": \"asinc\" is not one of auto, sync, async, exact; "
		"did you mean \"async\"?\n");
	assert_refused("run --config /nonexistent echo no", 125,
		"jphase: cannot read \"/nonexistent\": No such file or directory\n");
}

static void a_full_disk_is_noticed(void **state)
{
	(void)state;
	answer("--help >/dev/full", 1);
	assert_string_equal(
		r.err, "jphase: cannot write to standard output: No space left on device\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_version_is_one_line, clear),
		cmocka_unit_test_teardown(help_lists_what_is_for_people, clear),
		cmocka_unit_test_teardown(no_command_is_an_error_with_help, clear),
		cmocka_unit_test_teardown(every_command_has_help_in_both_spellings, clear),
		cmocka_unit_test_teardown(no_line_of_help_is_wider_than_a_terminal, clear),
		cmocka_unit_test_teardown(a_wrong_command_is_answered_with_the_right_one, clear),
		cmocka_unit_test_teardown(a_wrong_option_of_run_is_125_and_starts_nothing, clear),
		cmocka_unit_test_teardown(a_full_disk_is_noticed, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
