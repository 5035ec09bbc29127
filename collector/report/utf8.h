/* SPDX-License-Identifier: MIT */
/* UTF-8 from anywhere, whatever the locale. */
#ifndef REPORT_UTF8_H
#define REPORT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffdu

/*
 * The code point at s, which does not point to the end, and its bytes.  What
 * is not valid is one UTF8_REPLACEMENT for each byte.
 */
size_t utf8_next(const char *s, uint32_t *ret);

/* Columns on a terminal: 0 to 2. */
unsigned utf8_width(uint32_t code);
size_t utf8_string_width(const char *s);

/*
 * Copies what fits into size bytes and max columns, "…" at the end where it was
 * cut.  Newlines and tabs become blanks; other control characters, also those
 * that turn the writing direction, and invalid bytes U+FFFD.  size at least 8.
 */
void utf8_printable(const char *s, char *text, size_t size, size_t max);

/*
 * Where it takes more than max columns, at least 8, "…" stands for its middle:
 * its beginning, behind blanks that stay, and its end tell it from others.  It
 * is printable, with room for 2 more bytes.
 */
void utf8_elide(char *text, size_t max);

#endif
