/* SPDX-License-Identifier: MIT */
/*
 * signals queue COUNT: a child sends RTMIN+3 so often, with the values 0, 1,
 * ..., again wherever the queue is full.  Prints how often that was.
 * signals replace: takes USR1 over with a handler of its own.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

/* Room for so few that the sender meets a full queue. */
#define QUEUE 64

static int send_all(pid_t to, int count)
{
	long full = 0;

	for (int i = 0; i < count; i++) {
		while (sigqueue(to, SIGRTMIN + 3, (union sigval){ .sival_int = i }) < 0) {
			if (errno != EAGAIN)
				return 1;
			full++;
			sleep_us(100);
		}
	}
	return printf("%ld\n", full) < 0 || fflush(stdout) != 0;
}

static int queue(int count)
{
	struct rlimit limit = { QUEUE, QUEUE };
	pid_t self = getpid(), child;
	int status;

	setrlimit(RLIMIT_SIGPENDING, &limit);
	child = fork();
	if (child == 0)
		_exit(send_all(self, count));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	joule_phase("end");
	return status;
}

static volatile sig_atomic_t seen;

static void own_handler(int number)
{
	(void)number;
	seen++;
}

static int replace(void)
{
	struct sigaction own = { .sa_handler = own_handler };

	raise(SIGUSR1);
	sigaction(SIGUSR1, &own, NULL);
	raise(SIGUSR1);
	raise(SIGUSR1);
	return seen == 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "queue") == 0)
		return queue(atoi(argv[2]));
	if (argc == 2 && strcmp(argv[1], "replace") == 0)
		return replace();
	return 2;
}
