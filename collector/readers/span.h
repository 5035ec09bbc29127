/* SPDX-License-Identifier: MIT */
/* Lines and words of a text that need not end in NUL.  Nothing here copies. */
#ifndef READERS_SPAN_H
#define READERS_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *at;
	const char *end;
};

static inline struct span span_of(const char *text, size_t size)
{
	return (struct span){ text, text + size };
}

static inline size_t span_size(struct span s)
{
	return (size_t)(s.end - s.at);
}

static inline bool span_is(struct span s, const char *text)
{
	size_t size = strlen(text);

	return span_size(s) == size && memcmp(s.at, text, size) == 0;
}

static inline bool span_starts(struct span s, const char *prefix)
{
	size_t size = strlen(prefix);

	return span_size(s) >= size && memcmp(s.at, prefix, size) == 0;
}

/* What stands before the first c, which is skipped; all of it where there is none. */
static inline struct span span_take(struct span *rest, char c)
{
	const char *found = rest->at < rest->end ? memchr(rest->at, c, span_size(*rest)) : NULL;
	struct span taken = { rest->at, found ? found : rest->end };

	rest->at = found ? found + 1 : rest->end;
	return taken;
}

/* False: no line is left.  The last one may lack its newline. */
static inline bool span_line(struct span *text, struct span *ret)
{
	if (text->at >= text->end)
		return false;
	*ret = span_take(text, '\n');
	return true;
}

static inline bool span_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* False: no word is left in the line. */
static inline bool span_word(struct span *line, struct span *ret)
{
	while (line->at < line->end && span_is_blank(*line->at))
		line->at++;
	if (line->at >= line->end)
		return false;
	ret->at = line->at;
	while (line->at < line->end && !span_is_blank(*line->at))
		line->at++;
	ret->end = line->at;
	return true;
}

/* The whole span is a decimal number of 64 bits. */
static inline bool span_number(struct span s, uint64_t *ret)
{
	uint64_t value = 0;

	if (s.at >= s.end)
		return false;
	for (; s.at < s.end; s.at++) {
		if (*s.at < '0' || *s.at > '9')
			return false;
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*s.at - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

#endif
