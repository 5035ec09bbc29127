/* SPDX-License-Identifier: MIT */
#include "report/threads.h"

#include <errno.h>
#include <stdlib.h>

#include "report/regions.h"

#define BUCKETS 4096

struct threads {
	struct thread *bucket[BUCKETS];
};

int threads_open(struct threads **ret)
{
	struct threads *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret = t;
	return 0;
}

struct thread *threads_get(struct threads *t, uint64_t process, uint32_t tid, struct thread **list)
{
	uint64_t mixed = (process * 31 + tid) * UINT64_C(0x9e3779b97f4a7c15);
	struct thread **head = &t->bucket[mixed >> 52];
	struct thread *thread = *head;

	while (thread && (thread->process != process || thread->tid != tid))
		thread = thread->next;
	if (thread)
		return thread;
	thread = malloc(sizeof(*thread));
	if (!thread)
		return NULL;
	*thread = (struct thread){
		.next = *head,
		.sibling = *list,
		.process = process,
		.tid = tid,
		.waiting = MODEL_NONE,
		.inside_phase = MODEL_NONE,
		.inside_region = MODEL_NONE,
		.marked_region = MODEL_NONE,
	};
	*head = thread;
	*list = thread;
	return thread;
}

static void thread_free(struct thread *thread)
{
	while (thread->open)
		thread->open = open_region_free(thread->open);
	free(thread);
}

struct threads *threads_close(struct threads *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (t->bucket[i]) {
			struct thread *next = t->bucket[i]->next;

			thread_free(t->bucket[i]);
			t->bucket[i] = next;
		}
	}
	free(t);
	return NULL;
}
