/* SPDX-License-Identifier: MIT */
#include "report/json_writer.h"

#include <inttypes.h>
#include <math.h>
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

void json_next(struct json_writer *w)
{
	if (!w->empty)
		putc(',', w->out);
	if (w->flat)
		fputs(w->empty ? "" : " ", w->out);
	else if (w->depth)
		fprintf(w->out, "\n%*s", (int)(2 * w->depth), "");
	w->empty = false;
}

void json_open(struct json_writer *w, char bracket)
{
	putc(bracket, w->out);
	w->depth++;
	w->empty = true;
}

void json_close(struct json_writer *w, char bracket)
{
	bool was_empty = w->empty;

	w->depth--;
	if (!w->flat && !was_empty)
		fprintf(w->out, "\n%*s", (int)(2 * w->depth), "");
	if (w->flat > w->depth)
		w->flat = 0;
	putc(bracket, w->out);
	w->empty = false;
}

void json_key(struct json_writer *w, const char *name)
{
	json_next(w);
	json_string(w->out, name);
	fputs(": ", w->out);
}

void json_object(struct json_writer *w, const char *name)
{
	if (name)
		json_key(w, name);
	else
		json_next(w);
	json_open(w, '{');
}

void json_flat_object(struct json_writer *w, const char *name)
{
	json_object(w, name);
	w->flat = w->depth;
}

void json_array(struct json_writer *w, const char *name)
{
	json_key(w, name);
	json_open(w, '[');
}

void json_text(struct json_writer *w, const char *name, const char *text)
{
	json_key(w, name);
	json_string(w->out, text);
}

void json_number(struct json_writer *w, const char *name, uint64_t number)
{
	json_key(w, name);
	fprintf(w->out, "%" PRIu64, number);
}

void json_number_or_null(struct json_writer *w, const char *name, uint64_t number, bool known)
{
	if (known)
		json_number(w, name, number);
	else
		json_text(w, name, NULL);
}

void json_bool(struct json_writer *w, const char *name, bool value)
{
	json_key(w, name);
	fputs(value ? "true" : "false", w->out);
}

void json_real(struct json_writer *w, const char *name, double value)
{
	json_key(w, name);
	if (isfinite(value))
		fprintf(w->out, "%.15g", value);
	else
		fputs("null", w->out);
}
