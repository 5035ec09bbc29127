/* SPDX-License-Identifier: MIT */
/* Work of known cost, for the programs under test. */
#ifndef TARGETS_WORK_H
#define TARGETS_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Memory that nobody has touched: one page fault for each page. */
static inline char *pages_reserve(size_t pages)
{
	size_t bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) < 0)
		exit(1);
	return memory;
}

static inline void pages_touch(char *memory, size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
}

static inline void pages_return(char *memory, size_t pages)
{
	munmap(memory, pages * (size_t)sysconf(_SC_PAGESIZE));
}

/* What the calling thread has used of a CPU. */
static inline uint64_t thread_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void burn(uint64_t ns)
{
	uint64_t until = thread_clock_ns() + ns;

	while (thread_clock_ns() < until)
		for (volatile int i = 0; i < 1000; i++)
			continue;
}

static inline void sleep_us(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000 * 1000) };

	nanosleep(&t, NULL);
}

#endif
