/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "internal/util.h"
#include "support/proc.h"

static const char *const colours[] = { "red", "green", "blue", NULL };

static struct {
	bool quick, verbose;
	const char *output, *shape;
	uint64_t every_ns, room;
	int colour;
} got;

static const struct opt opts[] = {
	OPT_FLAG('q', "quick", &got.quick, "be quick", "TEST_QUICK"),
	OPT_FLAG('v', "verbose", &got.verbose, "say more", NULL),
	OPT_STR('o', "output", &got.output, "FILE", "write here", "TEST_OUTPUT"),
	OPT_TIME('i', "every", &got.every_ns, "TIME", "look every TIME", "TEST_EVERY"),
	OPT_COUNT(0, "room", &got.room, "RECORDS", "room for so many", "TEST_ROOM"),
	OPT_OPTIONAL('s', "shape", &got.shape, "round", "[TEXT]", "give it a shape", "TEST_SHAPE"),
	OPT_CHOICE('c', "colour", &got.colour, colours, "NAME", "paint it", "TEST_COLOUR"),
	OPT_END,
};

static char error[CLI_ERROR_ROOM];

static int parse(const char *const *words)
{
	char *argv[16] = { (char *)(uintptr_t) "command" };
	int argc = 1;

	memset(&got, 0, sizeof(got));
	memset(error, 0, sizeof(error));
	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	return cli_parse(opts, argc, argv, error);
}

#define PARSE(...) parse((const char *const[]){ __VA_ARGS__, NULL })

#define assert_refused(call, sentence)                                                             \
	do {                                                                                       \
		assert_int_equal(call, -EINVAL);                                                   \
		assert_string_equal(error, sentence);                                              \
	} while (0)

static void every_spelling_of_an_option_is_understood(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--output", "a", "--every=5ms", "-c", "blue"), 6);
	assert_string_equal(got.output, "a");
	assert_int_equal(got.every_ns, 5000000);
	assert_int_equal(got.colour, 2);

	assert_int_equal(PARSE("-oa", "-i2s", "--room=64k"), 4);
	assert_string_equal(got.output, "a");
	assert_int_equal(got.every_ns, 2000000000);
	assert_int_equal(got.room, 65536);
}

static void letters_of_flags_may_stand_together(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-qvoout"), 2);
	assert_true(got.quick);
	assert_true(got.verbose);
	assert_string_equal(got.output, "out");

	assert_int_equal(PARSE("-qo", "out"), 3);
	assert_string_equal(got.output, "out");
}

static void a_flag_may_be_told_no(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--quick", "--quick=no", "--verbose=1"), 4);
	assert_false(got.quick);
	assert_true(got.verbose);
}

static void options_end_at_the_first_word_or_two_dashes(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-q", "app", "-v"), 2);
	assert_false(got.verbose);
	assert_int_equal(PARSE("-q", "--", "-v"), 3);
	assert_false(got.verbose);
	assert_int_equal(PARSE("-", "-q"), 1);
	assert_false(got.quick);
	assert_int_equal(parse((const char *const[]){ NULL }), 1);
}

static void an_argument_may_be_empty_or_begin_with_a_dash(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--output="), 2);
	assert_string_equal(got.output, "");
	assert_int_equal(PARSE("--output", "--quick"), 3);
	assert_string_equal(got.output, "--quick");
	assert_false(got.quick);
}

/* The word behind it is its value, unless it is all that is left or an option. */
static void a_value_may_be_left_out_where_there_is_a_default(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--shape", "--", "word"), 3);
	assert_string_equal(got.shape, "round");
	assert_int_equal(PARSE("--shape", "-q", "word"), 3);
	assert_string_equal(got.shape, "round");
	assert_true(got.quick);
	assert_int_equal(PARSE("--shape", "word"), 2);
	assert_string_equal(got.shape, "round");
	assert_int_equal(PARSE("--shape", "square", "word"), 3);
	assert_string_equal(got.shape, "square");
	assert_int_equal(PARSE("--shape=-", "word"), 2);
	assert_string_equal(got.shape, "-");
	assert_int_equal(PARSE("--shape=", "word"), 2);
	assert_string_equal(got.shape, "round");
	assert_int_equal(PARSE("-s", "square", "--", "word"), 4);
	assert_string_equal(got.shape, "square");
	assert_int_equal(PARSE("word"), 1);
	assert_null(got.shape);
}

static void a_refused_option_says_what_was_meant(void **state)
{
	(void)state;
	assert_refused(
		PARSE("--ouptut", "x"), "unknown option \"--ouptut\"; did you mean \"--output\"?");
	assert_refused(PARSE("--out=x"), "unknown option \"--out\"; did you mean \"--output\"?");
	assert_refused(PARSE("--zzz"), "unknown option \"--zzz\"; --help shows all");
	assert_refused(PARSE("-qz"), "unknown option \"-z\"; --help shows all");
	assert_refused(PARSE("--output"), "option \"--output\" needs an argument: FILE");
	assert_refused(PARSE("-qo"), "option \"--output\" needs an argument: FILE");
	assert_refused(PARSE("--every", "soon"),
		"option \"--every\": \"soon\" is not a time such as 10ms, 1.5s, 250us or 0");
	assert_refused(
		PARSE("--room", "-1"), "option \"--room\": \"-1\" is not a number (k is 1024)");
	assert_refused(PARSE("--room", "99999999999999999999"),
		"option \"--room\": \"99999999999999999999\" is too large");
	assert_refused(PARSE("-c", "gren"),
		"option \"--colour\": \"gren\" is not one of red, green, blue; "
		"did you mean \"green\"?");
	assert_refused(PARSE("--quick=maybe"), "option \"--quick\": \"maybe\" is not yes or no");
}

static void a_long_word_is_cut_in_its_message(void **state)
{
	char word[4096];

	(void)state;
	memset(word, 'x', sizeof(word));
	memcpy(word, "--", 2);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(PARSE(word), -EINVAL);
	assert_true(strlen(error) < 100);
}

static int asks(const struct opt *table, const char *const *words)
{
	char *argv[16] = { (char *)(uintptr_t) "command" };
	int argc = 1;

	for (; *words; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	return cli_asks_help(table, argc, argv);
}

#define ASKS(table, ...) asks(table, (const char *const[]){ __VA_ARGS__, NULL })

static void help_is_asked_for_only_among_the_options(void **state)
{
	(void)state;
	assert_true(ASKS(opts, "--help"));
	assert_true(ASKS(opts, "-q", "-h"));
	assert_true(ASKS(opts, "-o", "file", "--help"));
	assert_true(ASKS(NULL, "--help"));
	assert_false(ASKS(opts, "-o", "--help"));
	assert_false(ASKS(opts, "app", "--help"));
	assert_false(ASKS(opts, "--", "--help"));
}

static void variables_are_options_too(void **state)
{
	(void)state;
	memset(&got, 0, sizeof(got));
	setenv("TEST_QUICK", "On", 1);
	setenv("TEST_OUTPUT", "there", 1);
	setenv("TEST_EVERY", "", 1);
	setenv("TEST_COLOUR", "green", 1);
	got.every_ns = 7;
	assert_int_equal(cli_parse_env(opts, error), 0);
	assert_true(got.quick);
	assert_string_equal(got.output, "there");
	assert_int_equal(got.every_ns, 7);
	assert_int_equal(got.colour, 1);

	setenv("TEST_COLOUR", "grene", 1);
	assert_refused(cli_parse_env(opts, error),
		"TEST_COLOUR: \"grene\" is not one of red, green, blue; did you mean \"green\"?");
	unsetenv("TEST_QUICK");
	unsetenv("TEST_OUTPUT");
	unsetenv("TEST_EVERY");
	unsetenv("TEST_COLOUR");
}

/* Keeps the text, since options point into it. */
static int parse_text(const char *text)
{
	static char copy[1024];

	memset(&got, 0, sizeof(got));
	memset(error, 0, sizeof(error));
	snprintf(copy, sizeof(copy), "%s", text);
	return cli_parse_text(opts, "file", copy, error);
}

static void a_file_has_one_option_a_line(void **state)
{
	(void)state;
	assert_int_equal(parse_text("# what to do\n"
				    "\n"
				    "  output = \" a b # c \"  # a name\r\n"
				    "every=5ms # a comment\n"
				    "\tquick = yes\n"
				    "colour = 'blue'"),
		0);
	assert_string_equal(got.output, " a b # c ");
	assert_int_equal(got.every_ns, 5000000);
	assert_true(got.quick);
	assert_int_equal(got.colour, 2);
}

static void only_the_first_equals_sign_divides(void **state)
{
	(void)state;
	assert_int_equal(parse_text("output = RTMIN+3=warmup,USR1=solve\n"), 0);
	assert_string_equal(got.output, "RTMIN+3=warmup,USR1=solve");
}

static void a_refused_line_is_named(void **state)
{
	(void)state;
	assert_refused(parse_text("quick = 1\ncolor = red\n"),
		"file:2: unknown option \"color\"; did you mean \"colour\"?");
	assert_refused(
		parse_text("\n\nquick\n"), "file:3: \"quick\" is not of the form option = value");
	assert_refused(parse_text("output = \"x"), "file:1: output: the quotes do not match");
	assert_refused(parse_text("output = \"x\" y"), "file:1: output: the quotes do not match");
	assert_refused(parse_text("every = 5 h"),
		"file:1: every: \"5 h\" is not a time such as 10ms, 1.5s, 250us or 0");
	assert_refused(parse_text("= 5"), "file:1: unknown option \"\"; --help shows all");
}

static void a_file_that_is_none_is_refused(void **state)
{
	char *dir = tmpdir_make();
	char *path = text_make("%s/options", dir);
	char *large = calloc(1, 100000);

	(void)state;
	assert_non_null(large);
	assert_int_equal(cli_parse_file(opts, path, error), -EINVAL);
	assert_non_null(strstr(error, "No such file or directory"));
	assert_int_equal(cli_parse_file(opts, dir, error), -EINVAL);
	assert_non_null(strstr(error, "Is a directory"));

	assert_int_equal(file_write(path, "quick\0=1", 8), 0);
	assert_int_equal(cli_parse_file(opts, path, error), -EINVAL);
	assert_non_null(strstr(error, "NUL byte"));

	memset(large, '\n', 100000);
	assert_int_equal(file_write(path, large, 100000), 0);
	assert_int_equal(cli_parse_file(opts, path, error), -EINVAL);
	assert_non_null(strstr(error, "too large"));

	memset(&got, 0, sizeof(got));
	assert_int_equal(file_write(path, "output = x\n", 11), 0);
	assert_int_equal(cli_parse_file(opts, path, error), 0);
	assert_string_equal(got.output, "x");

	free(large);
	free(path);
	tmpdir_remove(dir);
}

static void times_are_exact(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} right[] = {
		{ "0", 0 },
		{ "3", 3000000 },
		{ "10ms", 10000000 },
		{ "1.5s", 1500000000 },
		{ "0.000000001s", 1 },
		{ "0.0000000010s", 1 },
		{ "250us", 250000 },
		{ "250µs", 250000 },
		{ "100ns", 100 },
		{ "7.0ns", 7 },
		{ "2min", 120000000000 },
		{ "9223372036854775807ns", INT64_MAX },
	};
	static const char *const wrong[] = { "", "ms", "-1ms", "+1", " 1", "1 ms", "1e3", ".5s",
		"1.s", "1.5.5s", "1h", "1.5ns", "1.01ns", "0.0000000001s", "0x10", "1msx", "ns1" };
	static const char *const large[] = { "9223372036854775808ns", "18446744073709551616",
		"10000000000000s", "9223372036.9s" };
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(parse_time(right[i].text, &ns), 0);
		assert_int_equal(ns, right[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(parse_time(wrong[i], &ns), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		assert_int_equal(parse_time(large[i], &ns), -ERANGE);
}

static void counts_know_k_and_m(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(parse_count("4096", &n), 0);
	assert_int_equal(n, 4096);
	assert_int_equal(parse_count("64k", &n), 0);
	assert_int_equal(n, 65536);
	assert_int_equal(parse_count("1M", &n), 0);
	assert_int_equal(n, 1048576);
	assert_int_equal(parse_count("1.5k", &n), -EINVAL);
	assert_int_equal(parse_count("", &n), -EINVAL);
	assert_int_equal(parse_count("k", &n), -EINVAL);
	assert_int_equal(parse_count("-1", &n), -EINVAL);
	assert_int_equal(parse_count("9007199254740992M", &n), -ERANGE);
}

static void a_suggestion_is_one_or_two_slips_away(void **state)
{
	static const char *const names[] = { "cycles", "instructions", "cache-misses",
		"cache-references", "page-faults", NULL };

	(void)state;
	assert_string_equal(cli_suggest("cycels", names), "cycles");
	assert_string_equal(cli_suggest("Cycle", names), "cycles");
	assert_string_equal(cli_suggest("cahce-misses", names), "cache-misses");
	assert_string_equal(cli_suggest("page", names), "page-faults");
	assert_null(cli_suggest("energy", names));
	assert_null(cli_suggest("x", names));
	assert_null(cli_suggest("", names));
}

static void help_fits_in_eighty_columns(void **state)
{
	static bool flag;
	static const struct opt wide[] = {
		OPT_FLAG('a', "a-very-long-name-of-an-option", &flag,
			"words and words and words and words and words and words and words",
			"A_VARIABLE_OF_THE_SAME_MEANING"),
		OPT_FLAG(0, "b", &flag, "short", NULL),
		OPT_END,
	};
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_non_null(out);
	cli_help(out, wide, true);
	fclose(out);
	assert_string_equal(text,
		"  -a, --a-very-long-name-of-an-option\n"
		"                          words and words and words and words and words and\n"
		"                          words and words [A_VARIABLE_OF_THE_SAME_MEANING]\n"
		"      --b                 short\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_of_an_option_is_understood),
		cmocka_unit_test(letters_of_flags_may_stand_together),
		cmocka_unit_test(a_flag_may_be_told_no),
		cmocka_unit_test(options_end_at_the_first_word_or_two_dashes),
		cmocka_unit_test(an_argument_may_be_empty_or_begin_with_a_dash),
		cmocka_unit_test(a_value_may_be_left_out_where_there_is_a_default),
		cmocka_unit_test(a_refused_option_says_what_was_meant),
		cmocka_unit_test(a_long_word_is_cut_in_its_message),
		cmocka_unit_test(help_is_asked_for_only_among_the_options),
		cmocka_unit_test(variables_are_options_too),
		cmocka_unit_test(a_file_has_one_option_a_line),
		cmocka_unit_test(only_the_first_equals_sign_divides),
		cmocka_unit_test(a_refused_line_is_named),
		cmocka_unit_test(a_file_that_is_none_is_refused),
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(counts_know_k_and_m),
		cmocka_unit_test(a_suggestion_is_one_or_two_slips_away),
		cmocka_unit_test(help_fits_in_eighty_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
