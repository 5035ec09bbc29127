/* SPDX-License-Identifier: MIT */
#include "report/json_text.h"

#include <string.h>

#include "report/utf8.h"

static void json_character(FILE *out, const char *s, size_t length, uint32_t code)
{
	static const char plain[] = "\"\\\b\f\n\r\t";
	static const char escaped[] = "\"\\bfnrt";
	const char *at = code < 0x80 ? strchr(plain, (int)code) : NULL;

	if (at)
		fprintf(out, "\\%c", escaped[at - plain]);
	else if (code < 0x20 || code == 0x7f)
		fprintf(out, "\\u%04x", (unsigned)code);
	else if (code == UTF8_REPLACEMENT)
		fputs("\xef\xbf\xbd", out);
	else
		fwrite(s, 1, length, out);
}

/* Of what stands for itself: most of most texts. */
static size_t plain_length(const char *s)
{
	size_t i = 0;

	while ((unsigned char)(s[i] - 0x20) < 0x5f && s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

void json_string(FILE *out, const char *s)
{
	if (!s) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	while (*s) {
		size_t plain = plain_length(s);
		uint32_t code;
		size_t length;

		fwrite(s, 1, plain, out);
		s += plain;
		if (!*s)
			break;
		length = utf8_next(s, &code);
		json_character(out, s, length, code);
		s += length;
	}
	putc('"', out);
}
