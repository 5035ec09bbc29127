/* SPDX-License-Identifier: MIT */
/*
 * team THREADS REPEAT PAGES MS: in each phase "team" all threads at once touch
 * so many fresh pages and burn so many ms of CPU time, each of them; "rest"
 * follows.  Some rounds called "warmup" come first.  Prints a line for each phase
 * "team": the CPU time that its threads measured, in ns.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <jphase/jphase.h>

#include "work.h"

#define THREADS_MAX 16
#define WARMUPS     5

static pthread_barrier_t barrier;
static size_t pages;
static uint64_t burn_ns;
static int repeat;

static struct member {
	char *memory;
	uint64_t spent_ns;
} members[THREADS_MAX];

static void work(const struct member *m)
{
	pages_touch(m->memory, pages);
	burn(burn_ns);
}

static void *member_main(void *data)
{
	struct member *m = data;
	uint64_t before = thread_clock_ns(), now;

	for (int round = 0; round < WARMUPS + repeat; round++, before = now) {
		pthread_barrier_wait(&barrier);
		work(m);
		now = thread_clock_ns();
		m->spent_ns = now - before;
		pthread_barrier_wait(&barrier);
	}
	/* What a thread does at its end belongs to no phase "team". */
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* What all threads have spent in it. */
static uint64_t work_together(const char *name, int threads)
{
	uint64_t spent;

	for (int i = 0; i < threads; i++)
		members[i].memory = pages_reserve(pages + 1);
	joule_phase(name);
	spent = thread_clock_ns();
	if (threads == 1) {
		work(members);
	} else {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	spent = thread_clock_ns() - spent;
	joule_phase("rest");
	for (int i = 0; i < threads; i++) {
		spent += members[i].spent_ns;
		pages_return(members[i].memory, pages + 1);
	}
	return spent;
}

int main(int argc, char **argv)
{
	int threads = argc == 5 ? atoi(argv[1]) : 0;
	pthread_t thread[THREADS_MAX];

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	repeat = atoi(argv[2]);
	pages = (size_t)atol(argv[3]);
	burn_ns = (uint64_t)atol(argv[4]) * 1000000;
	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int i = 0; threads > 1 && i < threads; i++)
		if (pthread_create(&thread[i], NULL, member_main, &members[i]) != 0)
			return 1;

	for (int round = 0; round < WARMUPS; round++)
		work_together("warmup", threads);
	for (int round = 0; round < repeat; round++)
		printf("%" PRIu64 "\n", work_together("team", threads));
	if (threads > 1)
		pthread_barrier_wait(&barrier);
	for (int i = 0; threads > 1 && i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
