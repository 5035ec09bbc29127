/* SPDX-License-Identifier: MIT */
/* The program: finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "log.h"

static void print_help(FILE *out)
{
	fprintf(out, "Usage: jphase COMMAND [ARGUMENT]...\n"
		     "       jphase run [OPTION]... [--] PROGRAM [ARGUMENT]...\n\n"
		     "jphase measures what each phase of a program costs.\n\n"
		     "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			cli_help_line(out, commands[i]->name, commands[i]->summary);
	fprintf(out, "\nOptions:\n");
	cli_help_line(out, "-h, --help", "show this help; jphase COMMAND --help shows more");
	cli_help_line(out, "-V, --version", "show the version");
}

static int unknown_command(const char *word)
{
	const char *like = command_suggest(word);

	if (like)
		say("unknown command \"%s\"; did you mean \"%s\"?", word, like);
	else if (word[0] == '-')
		say("unknown option \"%s\" (jphase --help lists them)", word);
	else if (strchr(word, '/'))
		say("unknown command \"%s\"; to measure a program: jphase run -- %s", word, word);
	else
		say("unknown command \"%s\" (jphase --help lists them)", word);
	return EXIT_USAGE;
}

static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help(stdout);
		return EXIT_OK;
	}
	command = command_find(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	command_help(command);
	return EXIT_OK;
}

static int version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("jphase %s\n", JPHASE_VERSION);
	return EXIT_OK;
}

static const struct {
	const char *word;
	int (*run)(int argc, char **argv);
} words[] = {
	{ "help", help },
	{ "--help", help },
	{ "-h", help },
	{ "--version", version },
	{ "-V", version },
};

static int dispatch(int argc, char **argv)
{
	const struct command *command = command_find(argv[0]);

	if (command && !cli_asks_help(command->opts, argc, argv))
		return command->run(argc, argv);
	if (command) {
		command_help(command);
		return EXIT_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(argv[0], words[i].word))
			return words[i].run(argc, argv);
	return unknown_command(argv[0]);
}

/* Help that ends in a full disk is a failure too. */
static int close_output(int status)
{
	int err = SYS_RESULT(fflush(stdout));

	if (err == 0 && !ferror(stdout))
		return status;
	say("cannot write to standard output%s%s", err ? ": " : "", err ? strerror(-err) : "");
	return status ? status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	return close_output(dispatch(argc - 1, argv + 1));
}
