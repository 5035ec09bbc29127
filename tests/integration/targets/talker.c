/* SPDX-License-Identifier: MIT */
/* talker COUNT µs: prints a token and waits so long, COUNT times.  It never flushes. */
#include <stdio.h>

#include "work.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1, wait_us = argc > 2 ? atol(argv[2]) : 0;
	const struct timespec wait = { wait_us / 1000000, wait_us % 1000000 * 1000 };

	for (long i = 0; i < count; i++) {
		printf("step %ld __T%ld__ of %ld\n", i, i, count);
		nanosleep(&wait, NULL);
	}
	return 0;
}
