/* SPDX-License-Identifier: MIT */
/* The subcommands.  One file each: cmd_NAME.c. */
#ifndef COLLECTOR_COMMANDS_H
#define COLLECTOR_COMMANDS_H

#include <stdbool.h>

#include "cli.h"

/* Exit statuses of `jphase run` beyond the program's own, and of the other commands. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,       /* report, list, doctor: could not do it */
	EXIT_USAGE = 2,        /* report, list, doctor: the command line is wrong */
	EXIT_RUN_FAILED = 125, /* run: jphase itself failed, the program was not started */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
};

struct command {
	const char *name;
	const char *usage;   /* "[options] FILE..." */
	const char *summary; /* one line */
	const struct opt *opts;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	bool hidden;                       /* not for people: left out of help */
	bool running; /* its programs run already: no options for their start */
};

extern const struct command cmd_run;
extern const struct command cmd_attach;
extern const struct command cmd_mark;
extern const struct command cmd_report;
extern const struct command cmd_list;
extern const struct command cmd_doctor;
extern const struct command cmd_collect;
extern const struct command cmd_calibrate;
extern const struct command cmd_manual;

/* All of them, ends with NULL. */
extern const struct command *const commands[];

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

/* The name of the command, not a hidden one, that was probably meant, or NULL. */
const char *command_suggest(const char *word);

bool command_takes(const struct command *command, const struct opt *o);

/* Prints usage, summary and options of one command. */
void command_help(const struct command *command);

#endif
