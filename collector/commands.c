/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdio.h>

#include "internal/util.h"

const struct command *const commands[] = {
	&cmd_run,
	&cmd_attach,
	&cmd_mark,
	&cmd_report,
	&cmd_list,
	&cmd_doctor,
	&cmd_collect,
	&cmd_calibrate,
	&cmd_manual,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(commands[i]->name, name))
			return commands[i];
	return NULL;
}

const char *command_suggest(const char *word)
{
	const char *names[ARRAY_SIZE(commands)];
	size_t count = 0;

	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			names[count++] = commands[i]->name;
	names[count] = NULL;
	return cli_suggest(word, names);
}

static bool has_help(const struct opt *opts)
{
	for (; opts && opts->name; opts++)
		if (str_eq(opts->name, "help"))
			return true;
	return false;
}

bool command_takes(const struct command *command, const struct opt *o)
{
	return !(command->running && o->starts);
}

void command_help(const struct command *command)
{
	printf("Usage: jphase %s%s%s\n\n%s.\n\nOptions:\n", command->name,
		*command->usage ? " " : "", command->usage, command->summary);
	if (command->opts)
		cli_help(stdout, command->opts, !command->running);
	if (!has_help(command->opts))
		cli_help_line(stdout, "-h, --help", "show this help");
}
