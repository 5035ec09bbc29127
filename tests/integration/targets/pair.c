/* SPDX-License-Identifier: MIT */
/*
 * pair COUNT COUNT: two forked workers touch so many fresh pages each in a
 * phase "work", both at the same time.  They have run the same code before,
 * in "warmup", so that only those pages are new.
 */
#include <stdatomic.h>
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

#define WARMUPS 5

static atomic_uint *arrived;

/*
 * Waits for the other one, without a call that might take another path the next
 * time: what is run for the first time in a forked child is a page fault.
 */
static void meet(void)
{
	unsigned even = (atomic_fetch_add(arrived, 1) | 1) + 1;

	while (atomic_load(arrived) < even)
		continue;
}

static void work(const char *name, size_t pages)
{
	char *memory = pages_reserve(pages);

	joule_phase(name);
	meet();
	pages_touch(memory, pages);
	meet();
	joule_phase("rest");
	pages_return(memory, pages);
}

static int work_as_child(size_t pages)
{
	for (int i = 0; i < WARMUPS; i++)
		work("warmup", 1);
	work("work", pages);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t child[2];
	int bad = 0;

	if (argc != 3)
		return 2;
	arrived = mmap(
		NULL, sizeof(*arrived), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (arrived == MAP_FAILED)
		return 1;
	joule_phase("both");
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (child[i] < 0)
			return 1;
		if (child[i] == 0)
			_exit(work_as_child((size_t)atol(argv[1 + i])));
	}
	for (int i = 0; i < 2; i++)
		bad |= waitpid(child[i], NULL, 0) != child[i];
	joule_phase("after");
	return bad;
}
