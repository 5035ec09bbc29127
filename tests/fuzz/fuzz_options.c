/* SPDX-License-Identifier: MIT */
/* What users write: options, an options file, times, numbers, signals and sources. */
#include "fuzz.h"

#include <stdbool.h>

#include "cli.h"
#include "config.h"
#include "internal/util.h"
#include "sigspec.h"
#include "source.h"

#define WORDS_MAX 32

static void claim_sentence(const char *error, size_t room)
{
	CLAIM(error[0] && memchr(error, '\0', room));
}

static void parse_file(const uint8_t *data, size_t size)
{
	char error[CLI_ERROR_ROOM] = "";
	struct config before = config;
	char *text = fuzz_text(data, size);
	int err = cli_parse_text(config_opts, "options", text, error);

	if (err == 0)
		err = config_check(error);
	if (err < 0)
		claim_sentence(error, sizeof(error));
	config = before;
	free(text);
}

/* The lines are the words of a command line. */
static void parse_words(const uint8_t *data, size_t size)
{
	char *argv[WORDS_MAX + 1] = { (char *)"run" };
	char error[CLI_ERROR_ROOM] = "";
	struct config before = config;
	char *text = fuzz_text(data, size), *rest = text;
	int argc = 1, at;

	while (argc < WORDS_MAX && (argv[argc] = strsep(&rest, "\n")))
		argc++;
	argv[argc] = NULL;
	cli_asks_help(config_opts, argc, argv);
	at = cli_parse(config_opts, argc, argv, error);
	if (at < 0)
		claim_sentence(error, sizeof(error));
	else
		CLAIM(at >= 1 && at <= argc);
	config = before;
	free(text);
}

/* What was read can be written down and read again. */
static void claim_number_comes_back(
	int (*parse)(const char *text, uint64_t *ret), const char *text, const char *format)
{
	uint64_t number, again;
	char written[32];

	if (parse(text, &number) < 0)
		return;
	CLAIM(number <= INT64_MAX);
	snprintf(written, sizeof(written), format, (unsigned long long)number);
	CLAIM(parse(written, &again) == 0 && again == number);
}

static void parse_signals(const char *text)
{
	struct jphase_signal signals[JPHASE_SIGNALS_MAX];
	char error[SIGSPEC_ERROR_ROOM] = "";
	int count = sigspec_parse(text, signals, error);

	if (count < 0)
		claim_sentence(error, sizeof(error));
	CLAIM(count <= JPHASE_SIGNALS_MAX);
	for (int i = 0; i < count; i++) {
		CLAIM(signals[i].number > 0 && signals[i].number <= 64);
		CLAIM(signals[i].name[0] && memchr(signals[i].name, '\0', JPHASE_SIGNAL_NAME));
	}
	sigspec_number(text);
}

static void choose_sources(const char *text)
{
	char error[SOURCE_ERROR_ROOM] = "";
	struct source_list list;

	if (source_choose(text, &list, error) < 0)
		claim_sentence(error, sizeof(error));
	else
		CLAIM(list.count <= SOURCE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	parse_file(data, size);
	parse_words(data, size);
	claim_number_comes_back(parse_time, text, "%lluns");
	claim_number_comes_back(parse_count, text, "%llu");
	parse_signals(text);
	choose_sources(text);
	free(text);
	return 0;
}
