/* SPDX-License-Identifier: MIT */
#include "report/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

#define BUCKETS   4096
/* How far out an end looks for its begin. */
#define DEPTH_MAX 1024

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
	*thread = (struct thread){ *head, *list, process, tid, MODEL_NONE, MODEL_NONE };
	*head = thread;
	*list = thread;
	return thread;
}

struct threads *threads_close(struct threads *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (t->bucket[i]) {
			struct thread *next = t->bucket[i]->next;

			free(t->bucket[i]);
			t->bucket[i] = next;
		}
	}
	free(t);
	return NULL;
}

int thread_begin(struct model *m, struct thread *thread, const struct region *like)
{
	struct region region = *like;
	size_t index;
	int err;

	region.tid = thread->tid;
	region.parent = thread->region;
	region.depth = region.parent == MODEL_NONE ? 0 : m->regions[region.parent].depth + 1;
	err = model_add_region(m, &region, &index);
	if (err == 0)
		thread->region = index;
	return err;
}

static void close_innermost(struct model *m, struct thread *thread, uint64_t time_ns)
{
	struct region *region = &m->regions[thread->region];

	region->end_ns = MAX(time_ns, region->begin_ns);
	thread->region = region->parent;
}

/* The innermost open region of that name, or MODEL_NONE. */
static size_t find_open(const struct model *m, const struct thread *thread, const char *name)
{
	size_t at = thread->region;

	for (int depth = 0; at != MODEL_NONE && depth < DEPTH_MAX; depth++) {
		if (!*name || str_eq(m->regions[at].name, name))
			return at;
		at = m->regions[at].parent;
	}
	return MODEL_NONE;
}

void thread_end(
	struct model *m, struct run *run, struct thread *thread, const char *name, uint64_t time_ns)
{
	size_t found = find_open(m, thread, name);

	if (found == MODEL_NONE) {
		run->regions_stray++;
		return;
	}
	while (thread->region != found) {
		m->regions[thread->region].repaired = true;
		run->regions_crossed++;
		close_innermost(m, thread, time_ns);
	}
	close_innermost(m, thread, time_ns);
}

void thread_finish(
	struct model *m, struct run *run, struct thread *thread, uint64_t time_ns, bool open)
{
	while (thread->region != MODEL_NONE) {
		m->regions[thread->region].open = open;
		m->regions[thread->region].repaired = !open;
		run->regions_unclosed += !open;
		close_innermost(m, thread, time_ns);
	}
}
