/* SPDX-License-Identifier: MIT */
/*
 * TESTS="a_*_name" in the environment runs those tests of a program alone,
 * "-a_*_name" all others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void)
{
	const char *pattern = getenv("TESTS");

	if (!pattern || !*pattern)
		return;
	if (*pattern == '-')
		cmocka_set_skip_filter(pattern + 1);
	else
		cmocka_set_test_filter(pattern);
}
