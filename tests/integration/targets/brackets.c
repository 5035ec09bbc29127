/* SPDX-License-Identifier: MIT */
/*
 * brackets COUNT: so many markers of each kind between two system calls that a
 * trace shows, write(-1, "begin") and write(-1, "end"): in the main thread, in
 * a new one, and in the same two of a forked child.
 */
#include <pthread.h>
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

static long count;

static void show(const char *what, size_t bytes)
{
	if (write(-1, what, bytes) >= 0)
		exit(1);
}

static void *mark(void *data)
{
	show("begin", 5);
	for (long i = 0; i < count; i++) {
		joule_phase("phase");
		joule_begin("region");
		joule_value("items", 1);
		joule_end(NULL);
		joule_mark("mark");
	}
	show("end", 3);
	return data;
}

static int mark_in_both_threads(void)
{
	pthread_t thread;

	mark(NULL);
	if (pthread_create(&thread, NULL, mark, NULL) != 0)
		return 1;
	return pthread_join(thread, NULL) != 0;
}

int main(int argc, char **argv)
{
	int bad, status = 0;
	pid_t child;

	count = argc == 2 ? atol(argv[1]) : 0;
	if (count < 1)
		return 2;
	bad = mark_in_both_threads();
	child = fork();
	if (child == 0)
		_exit(mark_in_both_threads());
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	return bad || status;
}
