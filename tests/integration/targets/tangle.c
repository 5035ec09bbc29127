/* SPDX-License-Identifier: MIT */
/*
 * tangle: regions that do not nest as they should.  Each opens a region "whole"
 * of 5 fresh pages behind the mistake, on the same thread: an end without a
 * begin, ends that cross, a begin that longjmp leaves, a thread that ends inside
 * two regions.
 */
#include <pthread.h>
#include <setjmp.h>

#include <jphase/jphase.h>

#include "work.h"

#define PAGES 5

static jmp_buf back;

static void whole(void)
{
	char *memory = pages_reserve(PAGES);

	joule_begin("whole");
	pages_touch(memory, PAGES);
	joule_end("whole");
	pages_return(memory, PAGES);
}

static void jump_out(void)
{
	joule_begin("left");
	longjmp(back, 1);
}

static void *end_inside(void *data)
{
	joule_begin("warm");
	joule_end("warm");
	joule_begin("thread");
	joule_begin("inner");
	whole();
	return data;
}

int main(void)
{
	pthread_t thread;

	joule_begin("warm");
	joule_end("warm");
	whole();

	joule_end("never begun");
	whole();

	joule_begin("outer");
	joule_begin("crossed");
	joule_end("outer");
	joule_end("crossed");
	whole();

	joule_begin("around");
	if (setjmp(back) == 0)
		jump_out();
	joule_end("around");
	whole();

	if (pthread_create(&thread, NULL, end_inside, NULL) != 0)
		return 1;
	return pthread_join(thread, NULL) != 0;
}
