/* SPDX-License-Identifier: MIT */
/*
 * crew THREADS: that many threads wait, and work when it is told to.  It does
 * one line of standard input after the other, answers each, and ends with them:
 *
 *   touch N   each waiting thread touches N fresh pages
 *   born N    a new thread touches N
 *   child N   a forked child touches N
 *   count N   N threads, one after the other, touch 10 each; answers how many
 *             page faults the process has had meanwhile
 *   storm     some threads start others without end
 *   calm      until here
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "work.h"

#define MAKERS 3

static sem_t begin, done;
static atomic_long pages;
static atomic_bool stormy;
static pthread_t makers[MAKERS];

static void touch(long count)
{
	char *memory = pages_reserve((size_t)count);

	pages_touch(memory, (size_t)count);
	pages_return(memory, (size_t)count);
}

static void *work(void *data)
{
	for (;;) {
		while (sem_wait(&begin) < 0)
			continue;
		touch(pages);
		sem_post(&done);
	}
	return data;
}

static void *touch_once(void *count)
{
	touch((long)(intptr_t)count);
	return NULL;
}

static void start_one(long count)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, touch_once, (void *)(intptr_t)count) != 0)
		exit(1);
	pthread_join(thread, NULL);
}

static void *make_others(void *data)
{
	while (stormy)
		start_one(1);
	return data;
}

static void storm(void)
{
	stormy = true;
	for (size_t i = 0; i < MAKERS; i++)
		if (pthread_create(&makers[i], NULL, make_others, NULL) != 0)
			exit(1);
}

static void calm(void)
{
	stormy = false;
	for (size_t i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
}

static void child(long count)
{
	pid_t pid = fork();

	if (pid == 0) {
		touch(count);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static long count(long threads)
{
	long before = faults();

	for (long i = 0; i < threads; i++)
		start_one(10);
	return faults() - before;
}

static long touch_all(long each, long threads)
{
	pages = each;
	for (long i = 0; i < threads; i++)
		sem_post(&begin);
	for (long i = 0; i < threads; i++)
		while (sem_wait(&done) < 0)
			continue;
	return 0;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 0, n;
	char line[64], word[16];
	pthread_t thread;

	sem_init(&begin, 0, 0);
	sem_init(&done, 0, 0);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, work, NULL) != 0)
			return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long answer = 0;

		n = 0;
		if (sscanf(line, "%15s %ld", word, &n) < 1)
			return 1;
		if (strcmp(word, "touch") == 0)
			answer = touch_all(n, threads);
		else if (strcmp(word, "born") == 0)
			start_one(n);
		else if (strcmp(word, "child") == 0)
			child(n);
		else if (strcmp(word, "count") == 0)
			answer = count(n);
		else if (strcmp(word, "storm") == 0)
			storm();
		else if (strcmp(word, "calm") == 0)
			calm();
		printf("%s %ld\n", word, answer);
		fflush(stdout);
	}
	return 0;
}
