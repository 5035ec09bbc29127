/* SPDX-License-Identifier: MIT */
#include "token.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

#define LITERAL_ROOM 32

/* All {} of a pattern together; the compiled form grows with it. */
#define REPEAT_MAX 1000

struct token_finder {
	regex_t regex;
	char literal[LITERAL_ROOM]; /* every match begins with it */
	size_t literal_bytes;
	uint64_t line;
	bool cut;  /* what is kept is not the beginning of its line */
	bool done; /* the line has had its token */
	size_t used;
	char kept[TOKEN_WINDOW + 1]; /* of a line that is not complete, and a NUL */
};

/* --- the pattern --- */

__attribute__((format(printf, 2, 3))) static int refuse(
	char ret_error[TOKEN_ERROR_ROOM], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(ret_error, TOKEN_ERROR_ROOM, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* What other dialects write with a backslash; in [] it stands between the brackets. */
static const struct {
	char letter;
	const char *outside;
	const char *inside;
} escapes[] = {
	{ 'd', "[0-9]", "0-9" },
	{ 'D', "[^0-9]", NULL },
	{ 'w', "[[:alnum:]_]", "[:alnum:]_" },
	{ 'W', "[^[:alnum:]_]", NULL },
	{ 's', "[[:space:]]", "[:space:]" },
	{ 'S', "[^[:space:]]", NULL },
	{ 'h', "[[:blank:]]", "[:blank:]" },
	{ 't', "[[:blank:]], or a tab itself", "[:blank:], or a tab itself" },
	{ 'A', "^", NULL },
	{ 'z', "$", NULL },
	{ 'Z', "$", NULL },
	{ 'b', "what stands beside the token, as (^|[^[:alnum:]_])", NULL },
	{ 'p', "a class such as [[:alpha:]]", "a class such as [:alpha:]" },
};

static int refuse_escape(char letter, bool inside, char ret_error[TOKEN_ERROR_ROOM])
{
	const char *write = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++)
		if (escapes[i].letter == letter)
			write = inside ? escapes[i].inside : escapes[i].outside;
	if (write)
		return refuse(ret_error, "\\%c is not POSIX; write %s", letter, write);
	if (inside)
		return refuse(ret_error,
			"a backslash in [] means itself; put ] first, - last, and %c without it",
			letter);
	if (isdigit((unsigned char)letter))
		return refuse(ret_error, "\\%c refers to a group; write its text again", letter);
	return refuse(ret_error, "\\%c is not POSIX; write the character itself", letter);
}

static int check_escape(const char *at, char ret_error[TOKEN_ERROR_ROOM])
{
	if (!at[1])
		return refuse(ret_error, "it ends in a backslash; write \\\\ for a backslash");
	return isalnum((unsigned char)at[1]) ? refuse_escape(at[1], false, ret_error) : 0;
}

static bool is_multibyte(char c)
{
	return (unsigned char)c >= 0x80;
}

/* at is behind the bracket.  Returns where it is closed, or the end; NULL: refused. */
static const char *check_bracket(const char *at, char ret_error[TOKEN_ERROR_ROOM])
{
	at += *at == '^';
	/* There it is a character like others. */
	at += *at == ']';
	for (; *at && *at != ']'; at++) {
		if (at[0] == '[' && at[1] && strchr(":.=", at[1])) {
			const char close[] = { at[1], ']', '\0' }, *end = strstr(at + 2, close);

			at = end ? end + 1 : at;
		} else if (at[0] == '\\' && at[1] == '\\') {
			at++;
		} else if (at[0] == '\\' && at[1]) {
			refuse_escape(at[1], true, ret_error);
			return NULL;
		} else if (is_multibyte(at[0])) {
			refuse(ret_error,
				"only ASCII can stand in []; write (\u00e4|\u00f6) for [\u00e4\u00f6]");
			return NULL;
		}
	}
	return at;
}

static int check_group(const char *at, char ret_error[TOKEN_ERROR_ROOM])
{
	if (at[1] != '?')
		return 0;
	if (at[2] == ':' || at[2] == 'P' || (at[2] == '<' && at[3] != '=' && at[3] != '!'))
		return refuse(ret_error, "(?%c is not POSIX; write the group as (...)", at[2]);
	if (at[2] == '=' || at[2] == '!' || at[2] == '<')
		return refuse(ret_error,
			"(?%c looks around, which POSIX cannot; match those characters as well",
			at[2]);
	return refuse(
		ret_error, "(?%.1s is not POSIX; write [Aa] for both cases of a letter", at + 2);
}

/* at is at the end of a repetition. */
static int check_repetition(const char *at, char ret_error[TOKEN_ERROR_ROOM])
{
	if (at[1] == '?')
		return refuse(ret_error,
			"%c? repeats as little as it can, which POSIX cannot; exclude what "
			"follows, as in <[^>]*>",
			*at);
	if (at[1] == '+')
		return refuse(ret_error, "%c+ is not POSIX; write %c alone", *at, *at);
	return 0;
}

/* The larger number of {n,m}: what stands before it is compiled that often. */
static unsigned long most_of(const char *at)
{
	char *end;
	unsigned long least = strtoul(at + 1, &end, 10);
	unsigned long most = *end == ',' ? strtoul(end + 1, NULL, 10) : 0;

	return MIN(MAX(MAX(least, most), 1UL), REPEAT_MAX + 1UL);
}

static int check_dialect(const char *pattern, char ret_error[TOKEN_ERROR_ROOM])
{
	unsigned long copies = 1;
	bool counting = false;
	int err = 0;

	for (const char *at = pattern; err == 0 && *at; at++) {
		if (at > pattern && is_multibyte(at[-1]) && strchr("*+?{", *at))
			return refuse(ret_error,
				"%c would repeat a part of the character; put that in (...)", *at);
		if (*at == '\\') {
			err = check_escape(at++, ret_error);
		} else if (*at == '[') {
			at = check_bracket(at + 1, ret_error);
			if (!at)
				return -EINVAL;
			/* regcomp() says what is missing. */
			if (!*at)
				return 0;
		} else if (*at == '(') {
			err = check_group(at, ret_error);
		} else if (*at == '{') {
			counting = isdigit((unsigned char)at[1]);
			copies *= counting ? most_of(at) : 1;
			if (copies > REPEAT_MAX)
				return refuse(
					ret_error, "it repeats too much with {}; write + or *");
		} else if (strchr("*+?", *at) || (*at == '}' && counting)) {
			err = check_repetition(at, ret_error);
		}
	}
	return err;
}

static int compile(const char *pattern, regex_t *ret, char ret_error[TOKEN_ERROR_ROOM])
{
	char reason[100];
	int err;

	err = check_dialect(pattern, ret_error);
	if (err < 0)
		return err;
	err = regcomp(ret, pattern, REG_EXTENDED);
	if (err) {
		regerror(err, ret, reason, sizeof(reason));
		return refuse(ret_error, "it is not a POSIX extended expression: %s", reason);
	}
	if (regexec(ret, "", 0, NULL, 0) == 0) {
		regfree(ret);
		return refuse(ret_error,
			"it matches an empty text as well; write + where * is, leave ? out");
	}
	return 0;
}

/* The characters that the pattern begins with and that mean themselves, if that is all. */
static void find_literal(struct token_finder *f, const char *pattern)
{
	size_t n = strcspn(pattern, "\\[](){}.*+?^$|");

	if (strchr(pattern, '|'))
		n = 0;
	else if (n && pattern[n] && strchr("{*?", pattern[n]))
		n--;
	f->literal_bytes = MIN(n, sizeof(f->literal));
	memcpy(f->literal, pattern, f->literal_bytes);
}

int token_open(const char *pattern, struct token_finder **ret, char ret_error[TOKEN_ERROR_ROOM])
{
	struct token_finder *f = calloc(1, sizeof(*f));
	int err;

	if (!f) {
		refuse(ret_error, "out of memory");
		return -ENOMEM;
	}
	err = compile(pattern, &f->regex, ret_error);
	if (err < 0) {
		free(f);
		return err;
	}
	find_literal(f, pattern);
	*ret = f;
	return 0;
}

int token_check(const char *pattern, char ret_error[TOKEN_ERROR_ROOM])
{
	regex_t regex;
	int err = compile(pattern, &regex, ret_error);

	if (err == 0)
		regfree(&regex);
	return err;
}

struct token_finder *token_close(struct token_finder *f)
{
	if (f)
		regfree(&f->regex);
	free(f);
	return NULL;
}

/* --- the stream --- */

/* All that is kept; what is behind it belongs to the line, too, unless it is whole. */
static bool search(struct token_finder *f, bool whole, regmatch_t *ret)
{
	int flags = REG_STARTEND | (f->cut ? REG_NOTBOL : 0) | (whole ? 0 : REG_NOTEOL);

	/* Most lines have no token: most of these are told fast. */
	if (f->literal_bytes && !memmem(f->kept, f->used, f->literal, f->literal_bytes))
		return false;
	f->kept[f->used] = '\0';
	*ret = (regmatch_t){ .rm_so = 0, .rm_eo = (regoff_t)f->used };
	return regexec(&f->regex, f->kept, 1, ret, flags) == 0 && ret->rm_eo > ret->rm_so;
}

static void tell(struct token_finder *f, const regmatch_t *match, token_fn found, void *data)
{
	const struct token token = {
		.text = f->kept + match->rm_so,
		.length = (size_t)(match->rm_eo - match->rm_so),
		.line = f->line,
	};

	f->done = true;
	found(data, &token);
}

/*
 * The line is longer than the window.  A match that begins in the window's last
 * part may go on behind it: that part is kept.
 */
static void move_window(struct token_finder *f, token_fn found, void *data)
{
	const size_t sure = TOKEN_WINDOW - TOKEN_LONG_MAX;
	regmatch_t match;

	if (search(f, false, &match) && (size_t)match.rm_so < sure) {
		tell(f, &match, found, data);
		f->used = 0;
		return;
	}
	memmove(f->kept, f->kept + sure, TOKEN_LONG_MAX);
	f->used = TOKEN_LONG_MAX;
	f->cut = true;
}

static void keep(struct token_finder *f, const char *bytes, size_t size, token_fn found, void *data)
{
	while (size && !f->done) {
		size_t n = MIN(size, TOKEN_WINDOW - f->used);

		memcpy(f->kept + f->used, bytes, n);
		f->used += n;
		bytes += n;
		size -= n;
		if (f->used == TOKEN_WINDOW)
			move_window(f, found, data);
	}
}

static void end_line(struct token_finder *f, token_fn found, void *data)
{
	regmatch_t match;

	if (!f->done && search(f, true, &match))
		tell(f, &match, found, data);
	f->line++;
	f->used = 0;
	f->cut = f->done = false;
}

void token_feed(struct token_finder *f, const char *bytes, size_t size, token_fn found, void *data)
{
	while (size) {
		const char *end = memchr(bytes, '\n', size);
		size_t n = end ? (size_t)(end - bytes) : size;

		keep(f, bytes, n, found, data);
		if (end)
			end_line(f, found, data);
		n += end != NULL;
		bytes += n;
		size -= n;
	}
}

void token_end(struct token_finder *f, token_fn found, void *data)
{
	if (f->used)
		end_line(f, found, data);
}
