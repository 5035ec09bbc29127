/* SPDX-License-Identifier: MIT */
/*
 * regions THREADS COUNT [HOW]: each thread opens COUNT regions "rN" that touch N
 * fresh pages, N from 1 to 50, and changes its CPU every fifth region.  Every 25
 * it waits for the collector.
 *
 *   fork   a forked child does it
 *   clone  so does one that the C library knows nothing of, in one thread
 *   stop   the process stops itself before and behind its regions, and waits
 *          for nothing between: one thread
 *   slow   each thread leaves the collector a tenth of a second to meet it
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define THREADS_MAX 64
#define PAGES_MAX   50
#define WARM_UP     3

static size_t page;
static int count;
static bool stops, slow;
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t warm;
static char names[PAGES_MAX + 1][8];

static void migrate(int turn)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)(turn % cpus), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void region(const char *name, int pages)
{
	size_t bytes = (size_t)pages * page;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) < 0)
		exit(1);
	joule_begin(name);
	for (int i = 0; i < pages; i++)
		((volatile char *)memory)[(size_t)i * page] = 1;
	joule_end(name);
	munmap(memory, bytes);
}

static void stop(void)
{
	if (stops)
		raise(SIGSTOP);
}

static void *work(void *data)
{
	int self = (int)(size_t)data;

	/* A thread's first markers meet the collector and their own code: one after the other. */
	pthread_mutex_lock(&meeting);
	for (int i = 0; i < WARM_UP; i++)
		region("warm", 1);
	if (slow)
		usleep(100000);
	pthread_mutex_unlock(&meeting);
	/* All of them are there at the same time. */
	pthread_barrier_wait(&warm);
	stop();
	for (int i = 0; i < count; i++) {
		int pages = 1 + (i * 7 + self) % PAGES_MAX;

		if (i % 5 == 0)
			migrate(i / 5 + self);
		region(names[pages], pages);
	}
	stop();
	return NULL;
}

static void run_threads(int threads)
{
	pthread_t thread[THREADS_MAX];

	pthread_barrier_init(&warm, NULL, (unsigned)threads);
	if (threads == 1) {
		work(NULL);
		return;
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(size_t)i) != 0)
			_exit(1);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

static pid_t make_child(const char *how)
{
	if (strcmp(how, "clone") == 0)
		return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	return fork();
}

static int run_child(const char *how, int threads)
{
	int status = 1;
	pid_t pid = make_child(how);

	if (pid == 0) {
		run_threads(threads);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status != 0;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 0;
	const char *how = argc > 3 ? argv[3] : "";

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	count = atoi(argv[2]);
	page = (size_t)sysconf(_SC_PAGESIZE);
	for (int i = 1; i <= PAGES_MAX; i++)
		snprintf(names[i], sizeof(names[i]), "r%d", i);
	if (strcmp(how, "fork") == 0 || strcmp(how, "clone") == 0)
		return run_child(how, threads);
	stops = strcmp(how, "stop") == 0;
	slow = strcmp(how, "slow") == 0;
	run_threads(threads);
	return 0;
}
