/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "report/csv_text.h"
#include "support/golden.h"
#include "support/tape.h"

static void field(const char *s, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	csv_field(out, s);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void fields_are_quoted_where_needed_alone(void **state)
{
	(void)state;
	field(NULL, "");
	field("", "");
	field("a, b", "a, b");
	field("a;b", "\"a;b\"");
	field("a\"b", "\"a\"\"b\"");
	field("a\nb", "\"a\nb\"");
	field(" a", "\" a\"");
	field("a\xff", "a\xef\xbf\xbd");
}

static void a_report_has_a_line_for_each_value(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	golden_check(m, &csv_format, BY_PHASE, 80, "two_phases.csv");
	model_close(m);
}

static void an_empty_recording_is_a_header(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &csv_format, BY_PHASE, 80, "empty.csv");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_quoted_where_needed_alone),
		cmocka_unit_test(a_report_has_a_line_for_each_value),
		cmocka_unit_test(an_empty_recording_is_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
