/* SPDX-License-Identifier: MIT */
/*
 * successor: its main thread has a region of 100 pages; another thread then
 * execs it anew and so takes over the main thread's id: a region of 300.
 */
#include <pthread.h>

#include <jphase/jphase.h>

#include "work.h"

static void region(const char *name, size_t pages)
{
	char *memory = pages_reserve(pages);

	joule_begin(name);
	pages_touch(memory, pages);
	joule_end(name);
	pages_return(memory, pages);
}

static void *succeed(void *program)
{
	execl(program, program, "again", (char *)NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1) {
		region("after", 300);
		return 0;
	}
	region("before", 100);
	if (pthread_create(&thread, NULL, succeed, argv[0]) == 0)
		pthread_join(thread, NULL);
	return 1;
}
