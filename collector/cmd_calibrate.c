/* SPDX-License-Identifier: MIT */
/* Empty phases and regions, to show what their markers cost. */
#include "commands.h"

#include <jphase/jphase.h>

#define ROUNDS 16

static int calibrate_markers(int argc, char **argv)
{
	(void)argv;
	if (!joule_active())
		return EXIT_FAILED;
	for (int i = 0; i < ROUNDS; i++)
		joule_phase("empty");
	for (int i = 0; argc > 1 && i < ROUNDS; i++) {
		joule_begin("empty");
		joule_end("empty");
	}
	return EXIT_OK;
}

static const struct opt no_opts[] = { OPT_END };

const struct command cmd_calibrate = {
	.name = "calibrate",
	.usage = "",
	.summary = "Make empty phases, which show what a marker costs",
	.opts = no_opts,
	.run = calibrate_markers,
	.hidden = true,
};
