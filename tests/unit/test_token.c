/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "token.h"

static char seen[4096];

static void note(void *data, const struct token *token)
{
	size_t used = strlen(seen);

	(void)data;
	snprintf(seen + used, sizeof(seen) - used, "%s%llu:%.*s", used ? " " : "",
		(unsigned long long)token->line, (int)token->length, token->text);
}

static struct token_finder *open_finder(const char *pattern)
{
	struct token_finder *f = NULL;
	char error[TOKEN_ERROR_ROOM] = "";

	seen[0] = '\0';
	if (token_open(pattern, &f, error) < 0)
		fail_msg("%s: %s", pattern, error);
	return f;
}

/* In pieces of that size. */
static void feed(struct token_finder *f, const char *bytes, size_t size, size_t piece)
{
	for (size_t at = 0; at < size; at += piece)
		token_feed(f, bytes + at, MIN(piece, size - at), note, NULL);
}

/* Whatever the pieces are. */
static void assert_tokens(const char *pattern, const char *bytes, size_t size, const char *expected)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 64, 4096, 1u << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct token_finder *f = open_finder(pattern);

		feed(f, bytes, size, pieces[i]);
		token_end(f, note, NULL);
		token_close(f);
		assert_string_equal(seen, expected);
	}
}

#define ASSERT_TOKENS(pattern, bytes, expected)                                                    \
	assert_tokens(pattern, bytes, sizeof(bytes) - 1, expected)

static void a_line_has_the_first_match_and_its_number_from_0(void **state)
{
	(void)state;
	ASSERT_TOKENS(TOKEN_DEFAULT, "__A__\n", "0:__A__");
	ASSERT_TOKENS(TOKEN_DEFAULT, "\n\nstep __LOAD_2__ done\nnothing\n__B__ __C__\n",
		"2:__LOAD_2__ 4:__B__");
	ASSERT_TOKENS(TOKEN_DEFAULT, "__a__\n____\n__A_\n", "");
	ASSERT_TOKENS("[a-z]+ing", "loading\nrun\nsolving it\n", "0:loading 2:solving");
}

static void the_last_line_needs_no_end(void **state)
{
	(void)state;
	ASSERT_TOKENS(TOKEN_DEFAULT, "x\n__LAST__", "1:__LAST__");
	ASSERT_TOKENS(TOKEN_DEFAULT, "", "");
}

static void anchors_are_those_of_the_line(void **state)
{
	(void)state;
	ASSERT_TOKENS("^go$", "go\nlet go\ngo on\ngo", "0:go 3:go");
	ASSERT_TOKENS("(a|b)c$", "ac\nacd\nbc\n", "0:ac 2:bc");
}

static void any_bytes_may_stand_around_a_token(void **state)
{
	(void)state;
	ASSERT_TOKENS(TOKEN_DEFAULT, "\0\0__A__\0\n\xff\xfe __B__ \x80\n\r\n__C__\r\n",
		"0:__A__ 1:__B__ 3:__C__");
	ASSERT_TOKENS("<[^>]*>", "\xc3<\xa4>\n", "0:<\xa4>");
}

static void a_literal_beginning_is_no_more_than_a_shortcut(void **state)
{
	(void)state;
	ASSERT_TOKENS("ab*c", "ac\n", "0:ac");
	ASSERT_TOKENS("ab?c", "ac\n", "0:ac");
	ASSERT_TOKENS("ab{0,1}c", "ac\n", "0:ac");
	ASSERT_TOKENS("abc|x", "x\n", "0:x");
	ASSERT_TOKENS("a\\.b", "a.b\n", "0:a.b");
	ASSERT_TOKENS("(x)y", "xy\n", "0:xy");
	ASSERT_TOKENS("ab+", "abb\n", "0:abb");
}

/* A line of that many bytes, in which the text stands at that place. */
static char *make_line(size_t bytes, size_t at, const char *text)
{
	char *line = malloc(bytes + 1);

	assert_non_null(line);
	memset(line, '.', bytes);
	line[bytes] = '\n';
	memcpy(line + at, text, strlen(text));
	return line;
}

static void tokens_are_found_anywhere_in_lines_of_megabytes(void **state)
{
	const size_t bytes = 1u << 20, window = TOKEN_WINDOW, rest = TOKEN_WINDOW - TOKEN_LONG_MAX;
	const size_t places[] = { 0, 1, rest - 3, rest, window - 4, window, 2 * rest - 3,
		3 * rest + 1, bytes - 7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char *line = make_line(bytes, places[i], "__ABC__");

		for (size_t piece = 1000; piece < 2 * bytes; piece *= 3) {
			struct token_finder *f = open_finder(TOKEN_DEFAULT);

			feed(f, line, bytes + 1, piece);
			feed(f, "__D__\n", 6, 6);
			token_close(f);
			assert_string_equal(seen, "0:__ABC__ 1:__D__");
		}
		free(line);
	}
}

static void a_long_line_begins_and_ends_once(void **state)
{
	char *line = make_line(200000, 100000, "go");
	struct token_finder *f = open_finder("^go|^\\.x");

	(void)state;
	feed(f, line, 200001, 4096);
	token_close(f);
	assert_string_equal(seen, "");
	f = open_finder("go\\.*$");
	memset(line + 199000, '\n', 1);
	feed(f, line, 199001, 4096);
	token_close(f);
	assert_string_equal(seen, "");
	free(line);
}

static void a_long_line_has_one_token(void **state)
{
	char *line = make_line(300000, 10, "__A__");
	struct token_finder *f = open_finder(TOKEN_DEFAULT);

	(void)state;
	memcpy(line + 290000, "__B__", 5);
	feed(f, line, 300001, 4096);
	token_close(f);
	assert_string_equal(seen, "0:__A__");
	free(line);
}

static void other_dialects_are_refused_with_the_spelling_to_use(void **state)
{
	static const struct {
		const char *pattern, *error;
	} cases[] = {
		{ "__\\d+__", "\\d is not POSIX; write [0-9]" },
		{ "__\\w+__", "\\w is not POSIX; write [[:alnum:]_]" },
		{ "a\\sb", "\\s is not POSIX; write [[:space:]]" },
		{ "[\\d_]+", "\\d is not POSIX; write 0-9" },
		{ "[\\w-]+", "\\w is not POSIX; write [:alnum:]_" },
		{ "[a\\]b]",
			"a backslash in [] means itself; put ] first, - last, and ] without it" },
		{ "\\bgo\\b", "\\b is not POSIX; write what stands beside the token, as "
			      "(^|[^[:alnum:]_])" },
		{ "\\Ago", "\\A is not POSIX; write ^" },
		{ "go\\z", "\\z is not POSIX; write $" },
		{ "(a)\\1", "\\1 refers to a group; write its text again" },
		{ "\\q", "\\q is not POSIX; write the character itself" },
		{ "a\\", "it ends in a backslash; write \\\\ for a backslash" },
		{ "<.+?>", "+? repeats as little as it can, which POSIX cannot; exclude what "
			   "follows, as in <[^>]*>" },
		{ "<.*?>", "*? repeats as little as it can, which POSIX cannot; exclude what "
			   "follows, as in <[^>]*>" },
		{ "a{2,3}?", "}? repeats as little as it can, which POSIX cannot; exclude what "
			     "follows, as in <[^>]*>" },
		{ "((a{20}){30}){20}", "it repeats too much with {}; write + or *" },
		{ "a{2,99999999999999999999}", "it repeats too much with {}; write + or *" },
		{ "a++", "++ is not POSIX; write + alone" },
		{ "(?:ab)+", "(?: is not POSIX; write the group as (...)" },
		{ "(?P<n>ab)", "(?P is not POSIX; write the group as (...)" },
		{ "a(?=b)",
			"(?= looks around, which POSIX cannot; match those characters as well" },
		{ "(?<!a)b",
			"(?< looks around, which POSIX cannot; match those characters as well" },
		{ "(?i)go", "(?i is not POSIX; write [Aa] for both cases of a letter" },
		{ "a*", "it matches an empty text as well; write + where * is, leave ? out" },
		{ "(go)?", "it matches an empty text as well; write + where * is, leave ? out" },
		{ "\xc3\xa4+", "+ would repeat a part of the character; put that in (...)" },
	};
	char error[TOKEN_ERROR_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		error[0] = '\0';
		assert_int_equal(token_check(cases[i].pattern, error), -EINVAL);
		assert_string_equal(error, cases[i].error);
	}
	assert_int_equal(token_check("[ab", error), -EINVAL);
	assert_non_null(strstr(error, "it is not a POSIX extended expression: "));
	assert_int_equal(token_check("(ab", error), -EINVAL);
	assert_non_null(strstr(error, "it is not a POSIX extended expression: "));
}

static void what_posix_allows_is_accepted(void **state)
{
	static const char *const patterns[] = { TOKEN_DEFAULT, "[]a]+", "[^]a]b", "[[:alpha:]_-]+",
		"a\\.b", "\\[x\\]", "[\\\\]x", "a{2,3}b", "(ab|cd)+", "^a$", "[[.-.]x]",
		"x\\{2\\}?y", "(\xc3\xa4)+", "a{1000}", "a{3}b{2,}", "a\\+?b" };
	char error[TOKEN_ERROR_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (token_check(patterns[i], error) < 0)
			fail_msg("%s: %s", patterns[i], error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_the_first_match_and_its_number_from_0),
		cmocka_unit_test(the_last_line_needs_no_end),
		cmocka_unit_test(anchors_are_those_of_the_line),
		cmocka_unit_test(any_bytes_may_stand_around_a_token),
		cmocka_unit_test(a_literal_beginning_is_no_more_than_a_shortcut),
		cmocka_unit_test(tokens_are_found_anywhere_in_lines_of_megabytes),
		cmocka_unit_test(a_long_line_begins_and_ends_once),
		cmocka_unit_test(a_long_line_has_one_token),
		cmocka_unit_test(other_dialects_are_refused_with_the_spelling_to_use),
		cmocka_unit_test(what_posix_allows_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
