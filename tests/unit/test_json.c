/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "report/json_writer.h"
#include "support/golden.h"
#include "support/tape.h"

static void quoted(const char *s, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	json_string(out, s);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void strings_are_escaped(void **state)
{
	(void)state;
	quoted("", "\"\"");
	quoted(NULL, "null");
	quoted("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	quoted("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
	quoted("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
	quoted("Größe 漢", "\"Größe 漢\"");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
	(void)state;
	quoted("a\xff\xc3", "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void a_report_has_the_fields_that_scripts_know(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	golden_check(m, &json_format, BY_PHASE, 80, "two_phases.json");
	model_close(m);
}

static void an_empty_recording_is_valid_json(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &json_format, BY_PHASE, 80, "empty.json");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
		cmocka_unit_test(a_report_has_the_fields_that_scripts_know),
		cmocka_unit_test(an_empty_recording_is_valid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
