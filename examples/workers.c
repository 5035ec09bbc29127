/* SPDX-License-Identifier: MIT */
/*
 * Each process has phases and counters of its own: two forked workers touch
 * 100 and 700 fresh pages at the same time.
 *
 *	jphase run -o workers.msgpack -- build/examples/workers && jphase report workers.msgpack
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

static void touch(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory;

	memory = mmap(
		NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(1);
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		memory[i * page] = 1;
}

static pid_t start_worker(size_t pages)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	/*
	 * The counters of a forked child begin at its first marker.  It meets
	 * the pages of its own code once more: not in the phase that counts.
	 */
	joule_phase("prepare");
	touch(1);
	joule_phase("touch");
	touch(pages);
	joule_value("pages", (double)pages);
	joule_phase("finish");
	_exit(0);
}

int main(void)
{
	int status, failed = 0;

	joule_phase("workers");
	if (start_worker(100) < 0 || start_worker(700) < 0)
		return 1;
	while (wait(&status) > 0)
		failed += status != 0;

	joule_phase("done");
	printf("%d workers failed\n", failed);
	return failed;
}
