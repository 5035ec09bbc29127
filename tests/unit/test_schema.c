/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "internal/util.h"
#include "schema.h"

/* Recordings of other versions are read by these: columns may only be added at the end. */
static const struct {
	enum schema_kind kind;
	const char *name;
	const char *columns;
	size_t count;
} known[] = {
	{ SCHEMA_PROCESS, "process", "time_ns process pid parent name how absent", 7 },
	{ SCHEMA_MARKER, "marker",
		"time_ns process tid kind name value id flags took_ns done_ns snapshot", 11 },
	{ SCHEMA_SNAPSHOT, "snapshot", "snapshot process reader begin_ns end_ns values times", 7 },
	{ SCHEMA_SAMPLE, "sample", "time_ns process reader values", 4 },
	{ SCHEMA_LOSS, "loss", "time_ns what count", 3 },
	{ SCHEMA_NOTE, "note", "time_ns process text", 3 },
	{ SCHEMA_EXIT, "exit", "time_ns process status user_us system_us peak_bytes snapshot", 7 },
	{ SCHEMA_SUMMARY, "summary", "time_ns markers lost processes snapshots complete", 6 },
};

static const struct schema_layout *find(enum schema_kind kind)
{
	for (size_t i = 0; i < schema_layout_count; i++)
		if (schema_layouts[i].kind == kind)
			return &schema_layouts[i];
	return NULL;
}

static void numbers_and_columns_of_version_1_stay(void **state)
{
	(void)state;
	assert_string_equal(SCHEMA_FORMAT, "jphase");
	assert_int_equal(SCHEMA_VERSION, 1);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct schema_layout *l = find((enum schema_kind)(i + 1));

		assert_int_equal(known[i].kind, i + 1);
		assert_non_null(l);
		assert_string_equal(l->name, known[i].name);
		assert_true(str_starts(l->columns, known[i].columns));
		assert_true(schema_columns(known[i].kind) >= known[i].count);
	}
}

static void a_record_has_as_many_columns_as_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < schema_layout_count; i++) {
		size_t words = 0;

		for (const char *c = schema_layouts[i].columns; *c; c += strcspn(c, " ")) {
			c += strspn(c, " ");
			words++;
		}
		assert_int_equal(schema_columns(schema_layouts[i].kind), words);
	}
}

static void kinds_and_names_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < schema_layout_count; i++)
		for (size_t j = 0; j < i; j++) {
			assert_int_not_equal(schema_layouts[i].kind, schema_layouts[j].kind);
			assert_string_not_equal(schema_layouts[i].name, schema_layouts[j].name);
		}
}

static void an_unknown_kind_has_no_columns(void **state)
{
	(void)state;
	assert_int_equal(schema_columns((enum schema_kind)0), 0);
	assert_int_equal(schema_columns((enum schema_kind)255), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_columns_of_version_1_stay),
		cmocka_unit_test(a_record_has_as_many_columns_as_names),
		cmocka_unit_test(kinds_and_names_are_unique),
		cmocka_unit_test(an_unknown_kind_has_no_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
