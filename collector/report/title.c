/* SPDX-License-Identifier: MIT */
#include "report/title.h"

#include "report/utf8.h"

void title_print(const struct run *run, const struct report_options *o, FILE *out)
{
	char command[512], mode[64];
	int code = run_exit_code(run);

	utf8_printable(run->command, command, sizeof(command), o->width);
	utf8_printable(run->mode, mode, sizeof(mode), sizeof(mode));
	fprintf(out, "%s\n", command);
	fprintf(out, "pid %d, ", (int)run->pid);
	if (code >= 0)
		fprintf(out, "exit status %d, ", code);
	fprintf(out, "%s mode\n", mode);
}
