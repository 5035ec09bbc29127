/* SPDX-License-Identifier: MIT */
/*
 * forker COUNT: a timer interrupts markers of regions until its handler has
 * forked COUNT times inside one.  Each child opens a region "r5" that touches 5
 * fresh pages, in turns within the handler and when it has come back from the
 * marker, and ends.  Their parent waits for them behind the marker, but for
 * every tenth, for which it waits in the handler.  Prints how often it has forked,
 * and how many children did not end well.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

#define PAGES  5
#define DELAYS 23
#define TRIES  1000000

static volatile sig_atomic_t inside, forked, bad, is_child;
static volatile pid_t child;

static void work_as_child(void)
{
	for (int i = 0; i < 2; i++) {
		char *memory = pages_reserve(PAGES);

		/* The first one meets the collector, and code that it shared with its parent. */
		joule_begin(i ? "r5" : "warm");
		pages_touch(memory, PAGES);
		joule_end(i ? "r5" : "warm");
		pages_return(memory, PAGES);
	}
	_exit(0);
}

static void wait_for_child(void)
{
	int status = 1;

	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	bad += status != 0;
	child = 0;
}

static void on_timer(int number)
{
	int saved_errno = errno;

	(void)number;
	if (!inside || child)
		return;
	forked++;
	child = fork();
	if (child == 0) {
		is_child = 1;
		if (forked % 2)
			work_as_child();
	} else if (forked % 10 == 0) {
		wait_for_child();
	}
	errno = saved_errno;
}

static void mark(void (*marker)(const char *name))
{
	inside = 1;
	marker("parent");
	inside = 0;
	if (is_child)
		work_as_child();
	if (child)
		wait_for_child();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	long count = argc == 2 ? atol(argv[1]) : 0;

	joule_begin("warm");
	joule_end("warm");
	sigaction(SIGALRM, &action, NULL);
	for (long i = 0; forked < count && i < TRIES; i++) {
		struct itimerval soon = { { 0, 0 }, { 0, 1 + i % DELAYS } };

		setitimer(ITIMER_REAL, &soon, NULL);
		mark(joule_begin);
		mark(joule_end);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d %d\n", (int)forked, (int)bad);
	return bad != 0 || forked < count;
}
