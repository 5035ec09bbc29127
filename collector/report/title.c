/* SPDX-License-Identifier: MIT */
#include "report/title.h"

#include "report/utf8.h"

void title_print(const struct run *run, const struct report_options *o, FILE *out)
{
	char command[512], mode[64], killer[SIGSPEC_NAME_ROOM];
	int code = run_exit_code(run);

	run_killer(run, killer);
	utf8_printable(run->command, command, sizeof(command), o->width);
	utf8_printable(run->mode, mode, sizeof(mode), sizeof(mode));
	fprintf(out, "%s\n", command);
	fprintf(out, "pid %d, ", (int)run->pid);
	if (killer[0])
		fprintf(out, "killed by %s, ", killer);
	if (code >= 0)
		fprintf(out, "exit status %d, ", code);
	fprintf(out, "%s mode\n", mode);
}
