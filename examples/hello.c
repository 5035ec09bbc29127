/* SPDX-License-Identifier: MIT */
/*
 * Three phases of known work: the second touches 300 fresh pages, the third
 * computes.
 *
 *	jphase run -o hello.msgpack -- build/examples/hello && jphase report hello.msgpack
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define PAGES    300
#define ELEMENTS 2000000u

static void load(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory;

	memory = mmap(
		NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		exit(1);
	madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
	munmap(memory, PAGES * page);
}

static double solve(void)
{
	double sum = 0;

	for (unsigned round = 1; round <= 20; round++)
		for (unsigned i = 1; i <= ELEMENTS; i++)
			sum += 1.0 / ((double)i * round);
	return sum;
}

int main(void)
{
	double sum;

	joule_phase("load");
	load();

	joule_phase("solve");
	sum = solve();
	joule_value("elements", 20.0 * ELEMENTS);

	joule_phase("report");
	printf("the sum is %.3f\n", sum);
	return 0;
}
