/* SPDX-License-Identifier: MIT */
/* JSON text, indented by two, with commas and line breaks where they belong. */
#ifndef REPORT_JSON_WRITER_H
#define REPORT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Begins as { .out = FILE, .empty = true }. */
struct json_writer {
	FILE *out;
	unsigned depth;
	unsigned flat; /* depth from which on all is in one line; 0: none */
	bool empty;    /* nothing stands in the open bracket yet */
};

/* In quotes, escaped; NULL: null.  Bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *s);

/* What has to stand before the next item of an array. */
void json_next(struct json_writer *w);
void json_key(struct json_writer *w, const char *name);

void json_open(struct json_writer *w, char bracket);
void json_close(struct json_writer *w, char bracket);

/* name NULL: an item of an array.  Flat: all that is in it stands in one line. */
void json_object(struct json_writer *w, const char *name);
void json_flat_object(struct json_writer *w, const char *name);
void json_array(struct json_writer *w, const char *name);

void json_text(struct json_writer *w, const char *name, const char *text);
void json_number(struct json_writer *w, const char *name, uint64_t number);
void json_number_or_null(struct json_writer *w, const char *name, uint64_t number, bool known);
void json_bool(struct json_writer *w, const char *name, bool value);
/* What no JSON number can say is null. */
void json_real(struct json_writer *w, const char *name, double value);

#endif
