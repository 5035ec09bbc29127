/* SPDX-License-Identifier: MIT */
/*
 * Tokens in the lines of a stream of bytes: what the pattern matches first in a
 * line is that line's token.  The bytes may be anything.  Characters outside
 * ASCII are sequences of bytes, which match themselves.
 */
#ifndef COLLECTOR_TOKEN_H
#define COLLECTOR_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#define TOKEN_DEFAULT    "__[A-Z0-9_]+__"
#define TOKEN_ERROR_ROOM 160

/* In lines longer than this a match may have TOKEN_LONG_MAX bytes at most. */
#define TOKEN_WINDOW   (64u << 10)
#define TOKEN_LONG_MAX (4u << 10)

struct token {
	const char *text; /* without a NUL behind it */
	size_t length;
	uint64_t line; /* from 0 */
};

typedef void (*token_fn)(void *data, const struct token *token);

struct token_finder;

/*
 * The pattern is a POSIX extended expression.  -EINVAL: it is not one, or of
 * another dialect, or it matches an empty text; ret_error says what to write.
 */
int token_open(const char *pattern, struct token_finder **ret, char ret_error[TOKEN_ERROR_ROOM]);

/* Takes the next bytes and calls found for each line that is complete and has a token. */
void token_feed(struct token_finder *f, const char *bytes, size_t size, token_fn found, void *data);

/* The stream has ended, perhaps within a line. */
void token_end(struct token_finder *f, token_fn found, void *data);

/* Takes NULL, returns NULL. */
struct token_finder *token_close(struct token_finder *f);

/* Is it such a pattern?  As token_open(). */
int token_check(const char *pattern, char ret_error[TOKEN_ERROR_ROOM]);

#endif
