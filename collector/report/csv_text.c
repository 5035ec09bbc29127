/* SPDX-License-Identifier: MIT */
#include "report/csv_text.h"

#include <stdbool.h>
#include <string.h>

#include "report/utf8.h"

static bool needs_quotes(const char *s)
{
	size_t length = strlen(s);

	return length && (strpbrk(s, ";\"\r\n") || s[0] == ' ' || s[length - 1] == ' ');
}

/* Most fields are, and a report has many. */
static bool is_ascii(const char *s)
{
	while ((unsigned char)(*s - 1) < 0x7f)
		s++;
	return !*s;
}

static void csv_character(FILE *out, const char *s, size_t length, uint32_t code)
{
	if (code == UTF8_REPLACEMENT)
		fputs("\xef\xbf\xbd", out);
	else
		fwrite(s, 1, length, out);
	if (code == '"')
		putc('"', out);
}

void csv_field(FILE *out, const char *s)
{
	bool quotes = s && needs_quotes(s);

	if (s && !quotes && is_ascii(s)) {
		fputs(s, out);
		return;
	}
	if (quotes)
		putc('"', out);
	while (s && *s) {
		uint32_t code;
		size_t length = utf8_next(s, &code);

		csv_character(out, s, length, code);
		s += length;
	}
	if (quotes)
		putc('"', out);
}
