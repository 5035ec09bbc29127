/* SPDX-License-Identifier: MIT */
/*
 * pair COUNT COUNT: two forked workers touch so many fresh pages each in a
 * phase "work", both at the same time.  They have run the same code before,
 * in "warmup", so that only those pages are new.
 */
#include <pthread.h>
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

static pthread_barrier_t *barrier;

static void barrier_share(void)
{
	pthread_barrierattr_t attr;

	barrier = mmap(
		NULL, sizeof(*barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (barrier == MAP_FAILED)
		exit(1);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, 2);
}

static void work(const char *name, size_t pages)
{
	char *memory = pages_reserve(pages);

	joule_phase(name);
	pthread_barrier_wait(barrier);
	pages_touch(memory, pages);
	pthread_barrier_wait(barrier);
	joule_phase("rest");
	pages_return(memory, pages);
}

int main(int argc, char **argv)
{
	pid_t child[2];
	int bad = 0;

	if (argc != 3)
		return 2;
	barrier_share();
	joule_phase("both");
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (child[i] < 0)
			return 1;
		if (child[i] == 0) {
			work("warmup", 1);
			work("work", (size_t)atol(argv[1 + i]));
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		bad |= waitpid(child[i], NULL, 0) != child[i];
	joule_phase("after");
	return bad;
}
