/* SPDX-License-Identifier: MIT */
/* `jphase mark`: a marker from outside of the program. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "internal/util.h"
#include "log.h"
#include "outside.h"

static struct {
	uint64_t pid;
	const char *session;
	bool phase;
	bool mark;
} chosen;

static const struct opt mark_opts[] = {
	OPT_COUNT(0, "pid", &chosen.pid, "PID",
		"of this process, or of one that a measured process has started (default: the "
		"first one of the session)",
		NULL),
	OPT_STR(0, "session", &chosen.session, "SESSION",
		"in this session, by its name or the beginning of it (default: the one that the "
		"command is called in, else the only one there is)",
		NULL),
	OPT_FLAG(0, "phase", &chosen.phase, "begin a phase (default)", NULL),
	OPT_FLAG(0, "mark", &chosen.mark, "mark that something happened, within a phase", NULL),
	OPT_END,
};

static int usage(const char *sentence)
{
	say("%s; write: jphase mark [--pid PID] [--mark] NAME", sentence);
	return EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	struct outside_mark mark = { .clock_ns = now_ns() };
	char error[CLI_ERROR_ROOM], reason[OUTSIDE_ERROR_ROOM];
	int first, err;

	first = cli_parse(mark_opts, argc, argv, error);
	if (first < 0)
		return usage(error);
	if (chosen.phase && chosen.mark)
		return usage("it is either a phase or a mark");
	if (chosen.pid > INT_MAX)
		return usage("there is no such process");
	if (argc - first != 1)
		return usage(first == argc ? "a name is missing" : "there is more than one name");
	mark.kind = chosen.mark ? JPHASE_MARK : JPHASE_PHASE;
	mark.name = argv[first];
	err = outside_mark(
		&(struct outside_choice){
			.session = chosen.session,
			.pid = (pid_t)chosen.pid,
			.own = getenv("JPHASE_SESSION"),
		},
		&mark, reason);
	if (err < 0)
		say("%s", reason);
	return err < 0 ? EXIT_FAILED : EXIT_OK;
}

const struct command cmd_mark = {
	.name = "mark",
	.usage = "[options] NAME",
	.summary = "Begin a phase of a measured program from outside",
	.opts = mark_opts,
	.run = run,
};
