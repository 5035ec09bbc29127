/* SPDX-License-Identifier: MIT */
#include "report/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "internal/util.h"

#define REPLACEMENT_TEXT "\xef\xbf\xbd"
#define ELLIPSIS         "\xe2\x80\xa6"

struct span {
	uint32_t first;
	uint32_t last;
};

/* Marks that sit on the character before them, and what has no width. */
static const struct span zero_wide[] = {
	{ 0x0300, 0x036f },
	{ 0x0483, 0x0489 },
	{ 0x0591, 0x05bd },
	{ 0x0610, 0x061a },
	{ 0x064b, 0x065f },
	{ 0x0900, 0x0902 },
	{ 0x093c, 0x093c },
	{ 0x0941, 0x0948 },
	{ 0x094d, 0x094d },
	{ 0x0e31, 0x0e31 },
	{ 0x0e34, 0x0e3a },
	{ 0x0e47, 0x0e4e },
	{ 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff },
	{ 0x200b, 0x200f },
	{ 0x202a, 0x202e },
	{ 0x2060, 0x2064 },
	{ 0x2066, 0x2069 },
	{ 0x20d0, 0x20f0 },
	{ 0x3099, 0x309a },
	{ 0xfe00, 0xfe0f },
	{ 0xfe20, 0xfe2f },
	{ 0xfeff, 0xfeff },
	{ 0xe0100, 0xe01ef },
};

/* East Asian scripts and pictures. */
static const struct span two_wide[] = {
	{ 0x1100, 0x115f },
	{ 0x231a, 0x231b },
	{ 0x23e9, 0x23ec },
	{ 0x2614, 0x2615 },
	{ 0x2648, 0x2653 },
	{ 0x26a1, 0x26a1 },
	{ 0x26bd, 0x26be },
	{ 0x26d4, 0x26d4 },
	{ 0x2705, 0x2705 },
	{ 0x2728, 0x2728 },
	{ 0x274c, 0x274c },
	{ 0x2753, 0x2757 },
	{ 0x2795, 0x2797 },
	{ 0x2b1b, 0x2b1c },
	{ 0x2b50, 0x2b55 },
	{ 0x2e80, 0x303e },
	{ 0x3041, 0x33ff },
	{ 0x3400, 0x4dbf },
	{ 0x4e00, 0x9fff },
	{ 0xa000, 0xa4cf },
	{ 0xa960, 0xa97f },
	{ 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f },
	{ 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 },
	{ 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff },
	{ 0x1f900, 0x1f9ff },
	{ 0x1fa70, 0x1faff },
	{ 0x20000, 0x3fffd },
};

/* Where a terminal must not be told what to do. */
static const struct span controls[] = {
	{ 0x0000, 0x001f },
	{ 0x007f, 0x009f },
	{ 0x061c, 0x061c },
	{ 0x200b, 0x200b },
	{ 0x200e, 0x200f },
	{ 0x2028, 0x202e },
	{ 0x2060, 0x206f },
	{ 0xfeff, 0xfeff },
};

static bool within(uint32_t code, const struct span *spans, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (code >= spans[i].first && code <= spans[i].last)
			return true;
	return false;
}

/* Bytes that a sequence with this first byte has; 0: it cannot be first. */
static size_t sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static bool is_encoded_well(uint32_t code, size_t length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	return code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

size_t utf8_next(const char *s, uint32_t *ret)
{
	static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *p = (const unsigned char *)s;
	size_t length = sequence_length(*p);
	uint32_t code;

	*ret = UTF8_REPLACEMENT;
	if (length == 0)
		return 1;
	code = *p & mask[length];
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (!is_encoded_well(code, length))
		return 1;
	*ret = code;
	return length;
}

unsigned utf8_width(uint32_t code)
{
	if (code < 0x300)
		return 1;
	if (within(code, zero_wide, ARRAY_SIZE(zero_wide)))
		return 0;
	return within(code, two_wide, ARRAY_SIZE(two_wide)) ? 2 : 1;
}

size_t utf8_string_width(const char *s)
{
	size_t width = 0;
	uint32_t code;

	for (; *s; width += utf8_width(code))
		s += utf8_next(s, &code);
	return width;
}

/* What stands for length bytes at s on a terminal. */
static const char *printable(const char *s, uint32_t code, size_t *length)
{
	if (code == '\n' || code == '\t')
		return " ";
	if (code != UTF8_REPLACEMENT && !within(code, controls, ARRAY_SIZE(controls)))
		return s;
	*length = strlen(REPLACEMENT_TEXT);
	return REPLACEMENT_TEXT;
}

void utf8_printable(const char *s, char *text, size_t size, size_t max)
{
	char *end = text;
	char *cut = text; /* where the ellipsis still fits */
	size_t width = 0;
	size_t spare = size - sizeof(ELLIPSIS);

	while (*s) {
		uint32_t code;
		size_t length = utf8_next(s, &code);
		size_t bytes = length;
		const char *from = printable(s, code, &bytes);

		width += from == s ? utf8_width(code) : 1;
		if (width > max || (size_t)(end - text) + bytes > spare) {
			strcpy(cut, ELLIPSIS);
			return;
		}
		end = mempcpy(end, from, bytes);
		if (width < max)
			cut = end;
		s += length;
	}
	*end = '\0';
}

/* Behind as much of s as fits into columns. */
static char *skip_columns(char *s, size_t columns)
{
	uint32_t code;

	while (*s) {
		size_t length = utf8_next(s, &code);
		size_t width = utf8_width(code);

		if (width > columns)
			break;
		columns -= width;
		s += length;
	}
	return s;
}

/* Where the last columns of s begin, not with a mark of the character before. */
static char *last_columns(char *s, size_t columns)
{
	size_t width = utf8_string_width(s);
	uint32_t code;

	while (*s) {
		size_t length = utf8_next(s, &code);

		if (width <= columns && utf8_width(code))
			break;
		width -= utf8_width(code);
		s += length;
	}
	return s;
}

void utf8_elide(char *text, size_t max)
{
	size_t blanks = strspn(text, " "), room, end;
	char *cut;
	char *tail;

	if (utf8_string_width(text) <= max)
		return;
	room = max - 1 - MIN(blanks, max / 2);
	end = (room + 1) / 2;
	cut = skip_columns(text + MIN(blanks, max / 2), room - end);
	tail = last_columns(cut, end);
	memmove(cut + strlen(ELLIPSIS), tail, strlen(tail) + 1);
	memcpy(cut, ELLIPSIS, strlen(ELLIPSIS));
}
