/* SPDX-License-Identifier: MIT */
#include "support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

char *golden_render(
	const struct model *m, const struct report_format *format, enum model_by by, unsigned width)
{
	const struct report_options options = { .by = by, .width = width };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(format->render(m, &options, out), 0);
	fclose(out);
	return text;
}

/* Tests run in the top folder of the tree. */
static FILE *golden_open(const char *name, const char *how)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	file = fopen(path, how);
	if (!file)
		fail_msg("cannot open %s", path);
	return file;
}

void golden_check(const struct model *m, const struct report_format *format, enum model_by by,
	unsigned width, const char *name)
{
	char *text = golden_render(m, format, by, width);
	const char *wish = getenv("JPHASE_GOLDEN");
	char *expected = NULL;
	size_t size = 0;
	FILE *file;

	if (wish && strcmp(wish, "write") == 0) {
		file = golden_open(name, "we");
		fputs(text, file);
		fclose(file);
	}
	file = golden_open(name, "re");
	if (getdelim(&expected, &size, '\0', file) < 0)
		fail_msg("tests/golden/%s is empty", name);
	fclose(file);
	assert_string_equal(text, expected);
	free(expected);
	free(text);
}
