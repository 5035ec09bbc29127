/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "source.h"

static struct source_list list;
static char error[SOURCE_ERROR_ROOM];

static const struct source *find(const char *name)
{
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.source[i].ops->name, name) == 0)
			return &list.source[i];
	return NULL;
}

static size_t count_all(void)
{
	size_t n = 0;

	while (reader_registry[n])
		n++;
	return n;
}

static void all_is_the_default_and_names_nothing(void **state)
{
	(void)state;
	assert_int_equal(source_choose(NULL, &list, error), 0);
	assert_int_equal(list.count, count_all());
	for (size_t i = 0; i < list.count; i++)
		assert_false(list.source[i].named);
}

static void chosen_sources_must_be_there(void **state)
{
	(void)state;
	assert_int_equal(source_choose("procfs,perf", &list, error), 0);
	assert_int_equal(list.count, 2);
	assert_true(find("perf")->named);
	assert_true(find("procfs")->named);
	/* The order is the registry's, not the user's. */
	assert_string_equal(list.source[0].ops->name, "perf");
}

static void minus_leaves_one_out(void **state)
{
	(void)state;
	assert_int_equal(source_choose("-cgroup", &list, error), 0);
	assert_int_equal(list.count, count_all() - 1);
	assert_null(find("cgroup"));
	assert_int_equal(source_choose("all,-cgroup,-perf", &list, error), 0);
	assert_int_equal(list.count, count_all() - 2);
}

static void unknown_source_gets_a_suggestion(void **state)
{
	(void)state;
	assert_true(source_choose("prf", &list, error) < 0);
	assert_non_null(strstr(error, "\"prf\""));
	assert_non_null(strstr(error, "did you mean \"perf\"?"));
	assert_true(source_choose("", &list, error) < 0);
	assert_true(source_choose("perf,,cgroup", &list, error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_the_default_and_names_nothing),
		cmocka_unit_test(chosen_sources_must_be_there),
		cmocka_unit_test(minus_leaves_one_out),
		cmocka_unit_test(unknown_source_gets_a_suggestion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
