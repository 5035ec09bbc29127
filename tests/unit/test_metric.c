/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "internal/util.h"
#include "metric.h"

static void a_list_owns_copies_of_all_texts(void **state)
{
	char name[] = "cycles", part[] = "cpu_core", note[] = "a note", absent[] = "a reason";
	struct metric_list list = { 0 };

	(void)state;
	assert_int_equal(metric_list_add(&list,
				 &(struct metric){
					 .name = name,
					 .part = part,
					 .note = note,
					 .absent = absent,
					 .kind = METRIC_GAUGE,
					 .unit = UNIT_BYTES,
					 .scope = SCOPE_GROUP,
					 .group = 3,
				 }),
		0);
	name[0] = part[0] = note[0] = absent[0] = 'X';
	assert_int_equal(list.count, 1);
	assert_string_equal(list.metric[0].name, "cycles");
	assert_string_equal(list.metric[0].part, "cpu_core");
	assert_string_equal(list.metric[0].note, "a note");
	assert_string_equal(list.metric[0].absent, "a reason");
	assert_int_equal(list.metric[0].kind, METRIC_GAUGE);
	assert_int_equal(list.metric[0].unit, UNIT_BYTES);
	assert_int_equal(list.metric[0].scope, SCOPE_GROUP);
	assert_int_equal(list.metric[0].group, 3);
	metric_list_clear(&list);
}

static void a_list_keeps_the_order(void **state)
{
	static char *const names[] = { "c", "a", "b", "z", "y", "x", "c" };
	struct metric_list list = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(metric_list_add(&list, &(struct metric){ .name = names[i] }), 0);
	assert_int_equal(list.count, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(list.metric[i].name, names[i]);
		assert_null(list.metric[i].note);
	}
	metric_list_clear(&list);
}

static void a_cleared_list_is_empty_and_usable(void **state)
{
	struct metric_list list = { .groups = 2 };

	(void)state;
	metric_list_clear(&list);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.groups, 0);
	assert_null(list.metric);
	assert_int_equal(metric_list_add(&list, &(struct metric){ .name = (char[]){ "a" } }), 0);
	metric_list_clear(&list);
	metric_list_clear(&list);
}

static void a_group_adds_two_times_to_the_values(void **state)
{
	(void)state;
	assert_int_equal(metric_list_values(&(struct metric_list){ .count = 4, .groups = 0 }), 4);
	assert_int_equal(metric_list_values(&(struct metric_list){ .count = 5, .groups = 3 }), 11);
}

static void names_in_recordings_are_permanent(void **state)
{
	(void)state;
	assert_string_equal(unit_name(UNIT_COUNT), "count");
	assert_string_equal(unit_name(UNIT_BYTES), "B");
	assert_string_equal(unit_name(UNIT_US), "\xc2\xb5s");
	assert_string_equal(unit_name(UNIT_UJ), "\xc2\xb5J");
	assert_string_equal(unit_name(UNIT_PERCENT), "%");
	assert_string_equal(unit_name(UNIT_NS), "ns");
	assert_string_equal(metric_kind_name(METRIC_COUNTER), "counter");
	assert_string_equal(metric_kind_name(METRIC_GAUGE), "gauge");
	assert_string_equal(metric_kind_name(METRIC_PEAK), "peak");
	assert_string_equal(metric_scope_name(SCOPE_PROCESS), "process");
	assert_string_equal(metric_scope_name(SCOPE_GROUP), "group");
	assert_string_equal(metric_scope_name(SCOPE_GLOBAL), "global");
}

static void every_name_is_parsed_back(void **state)
{
	(void)state;
	for (int i = UNIT_COUNT; i <= UNIT_NS; i++) {
		enum metric_unit unit;

		assert_int_equal(unit_parse(unit_name((enum metric_unit)i), &unit), 0);
		assert_int_equal(unit, i);
	}
	for (int i = METRIC_COUNTER; i <= METRIC_SCALED; i++) {
		enum metric_kind kind;

		assert_int_equal(
			metric_kind_parse(metric_kind_name((enum metric_kind)i), &kind), 0);
		assert_int_equal(kind, i);
	}
	for (int i = SCOPE_PROCESS; i <= SCOPE_GLOBAL; i++) {
		enum metric_scope scope;

		assert_int_equal(
			metric_scope_parse(metric_scope_name((enum metric_scope)i), &scope), 0);
		assert_int_equal(scope, i);
	}
}

static void other_names_are_refused_and_change_nothing(void **state)
{
	enum metric_unit unit = UNIT_UJ;
	enum metric_kind kind = METRIC_PEAK;
	enum metric_scope scope = SCOPE_GLOBAL;

	(void)state;
	assert_int_equal(unit_parse("furlong", &unit), -EINVAL);
	assert_int_equal(unit_parse("", &unit), -EINVAL);
	assert_int_equal(metric_kind_parse("Counter", &kind), -EINVAL);
	assert_int_equal(metric_scope_parse("process ", &scope), -EINVAL);
	assert_int_equal(unit, UNIT_UJ);
	assert_int_equal(kind, METRIC_PEAK);
	assert_int_equal(scope, SCOPE_GLOBAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_owns_copies_of_all_texts),
		cmocka_unit_test(a_list_keeps_the_order),
		cmocka_unit_test(a_cleared_list_is_empty_and_usable),
		cmocka_unit_test(a_group_adds_two_times_to_the_values),
		cmocka_unit_test(names_in_recordings_are_permanent),
		cmocka_unit_test(every_name_is_parsed_back),
		cmocka_unit_test(other_names_are_refused_and_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
