/* SPDX-License-Identifier: MIT */
/*
 * zones ROOT DEED...: "NAME" begins a phase, "ZONE=VALUE" writes that into a
 * zone's counter, "wait=MS" sleeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jphase/jphase.h>

#include "work.h"

static void zone_set(const char *root, const char *zone, int length, const char *value)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/intel-rapl:%.*s/energy_uj", root, length, zone);
	out = fopen(path, "r+");
	/* In one write, so that no reader sees half of it. */
	if (!out || fprintf(out, "%s\n", value) < 0 || fclose(out) != 0) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		if (!value)
			joule_phase(argv[i]);
		else if (strncmp(argv[i], "wait=", 5) == 0)
			sleep_us((uint64_t)atol(value + 1) * 1000);
		else
			zone_set(argv[1], argv[i], (int)(value - argv[i]), value + 1);
	}
	return 0;
}
