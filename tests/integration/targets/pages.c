/* SPDX-License-Identifier: MIT */
/*
 * pages REPEAT COUNT...: phases p0, p1, ... touch that many fresh pages each,
 * the whole list REPEAT times; "rest" follows each.  Nothing else is touched
 * for the first time inside them.
 */
#include <jphase/jphase.h>

#include "work.h"

#define COUNTS_MAX 16

int main(int argc, char **argv)
{
	const char *const names[] = { "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9",
		"p10", "p11", "p12", "p13", "p14", "p15" };
	int repeat = argc > 2 ? atoi(argv[1]) : 0, counts = argc - 2;
	size_t count[COUNTS_MAX];

	if (repeat < 1 || counts > COUNTS_MAX)
		return 2;
	for (int i = 0; i < counts; i++)
		count[i] = (size_t)atol(argv[2 + i]);
	pages_return(pages_reserve(1), 1);
	for (int round = 0; round < repeat; round++) {
		for (int i = 0; i < counts; i++) {
			char *memory = pages_reserve(count[i]);

			joule_phase(names[i]);
			pages_touch(memory, count[i]);
			joule_phase("rest");
			pages_return(memory, count[i]);
		}
	}
	return 0;
}
