/* SPDX-License-Identifier: MIT */
/* loop COUNT PAUSE_US: phases "0", "1", ..., and a pause in each. */
#include <stdio.h>

#include <jphase/jphase.h>

#include "work.h"

int main(int argc, char **argv)
{
	long count = argc == 3 ? atol(argv[1]) : 0, pause_us = argc == 3 ? atol(argv[2]) : 0;
	char name[32];

	if (count < 1)
		return 2;
	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%ld", i);
		joule_phase(name);
		if (pause_us)
			sleep_us((uint64_t)pause_us);
	}
	return 0;
}
