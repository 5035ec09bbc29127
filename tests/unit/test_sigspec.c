/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "sigspec.h"

static struct jphase_signal list[JPHASE_SIGNALS_MAX];
static char error[SIGSPEC_ERROR_ROOM];

static void several_signals_have_their_names(void **state)
{
	(void)state;
	assert_int_equal(sigspec_parse("RTMIN+3=warmup,USR1=solve", list, error), 2);
	assert_int_equal(list[0].number, SIGRTMIN + 3);
	assert_string_equal(list[0].name, "warmup");
	assert_int_equal(list[1].number, SIGUSR1);
	assert_string_equal(list[1].name, "solve");
}

static void names_are_read_in_all_their_spellings(void **state)
{
	(void)state;
	assert_int_equal(sigspec_number("USR2"), SIGUSR2);
	assert_int_equal(sigspec_number("SIGUSR2"), SIGUSR2);
	assert_int_equal(sigspec_number("sigusr2"), SIGUSR2);
	assert_int_equal(sigspec_number("10"), 10);
	assert_int_equal(sigspec_number("RTMAX-1"), SIGRTMAX - 1);
	assert_int_equal(sigspec_number("RTMIN"), SIGRTMIN);
}

static void what_is_no_signal_has_no_number(void **state)
{
	static const char *const bad[] = { "", "USR3", "RTMIN+99", "RTMIN-1", "RTMIN+", "99999999",
		"1x", "RTMINx" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sigspec_number(bad[i]), 0);
}

static void refusals_say_why(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{ "", "write SIGNAL=NAME" },
		{ "USR1", "write SIGNAL=NAME" },
		{ "USR1=", "write SIGNAL=NAME" },
		{ "=x", "write SIGNAL=NAME" },
		{ "USR1=a,", "write SIGNAL=NAME" },
		{ "FOO=a", "no signal is called \"FOO\"" },
		{ "KILL=a", "no program can handle it" },
		{ "32=a", "no program can handle it" },
		{ "USR1=a,10=b", "chosen twice" },
		{ "USR1=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"longer than 59 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(sigspec_parse(cases[i].text, list, error) < 0);
		assert_non_null(strstr(error, cases[i].why));
	}
}

static void signals_have_names(void **state)
{
	char name[SIGSPEC_NAME_ROOM];

	(void)state;
	sigspec_name(SIGSEGV, name);
	assert_string_equal(name, "SIGSEGV");
	sigspec_name(SIGRTMIN + 3, name);
	assert_string_equal(name, "SIGRTMIN+3");
	sigspec_name(32, name);
	assert_string_equal(name, "signal 32");
}

static void standard_signals_merge(void **state)
{
	(void)state;
	assert_true(sigspec_merges(SIGUSR1));
	assert_false(sigspec_merges(SIGRTMIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_signals_have_their_names),
		cmocka_unit_test(names_are_read_in_all_their_spellings),
		cmocka_unit_test(what_is_no_signal_has_no_number),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(signals_have_names),
		cmocka_unit_test(standard_signals_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
