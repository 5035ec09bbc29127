/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct thread *thread_find(const struct thread_table *t, pid_t tid)
{
	for (size_t i = 0; i < t->count; i++) {
		struct thread *found = t->thread[i];

		if (found->tid != tid)
			continue;
		/* The next marker is most likely of the same thread. */
		t->thread[i] = t->thread[0];
		t->thread[0] = found;
		return found;
	}
	return NULL;
}

static bool exists(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) == 0;
}

static struct thread *add(struct thread_table *t, pid_t tid)
{
	struct thread *thread;

	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 8;
		struct thread **grown = reallocarray(t->thread, room, sizeof(*grown));

		if (!grown)
			return NULL;
		t->thread = grown;
		t->room = room;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	t->thread[t->count++] = thread;
	return thread;
}

struct thread *thread_open(struct thread_table *t, const struct source_list *sources, pid_t pid,
	const struct reader_target *target, char ret_reason[READER_REASON_ROOM])
{
	struct thread *thread = add(t, target->pid);

	ret_reason[0] = '\0';
	if (!thread)
		return NULL;
	thread->fresh = true;
	if (!exists(pid, target->pid)) {
		snprintf(ret_reason, READER_REASON_ROOM,
			"thread %d ended before its counters could be opened", (int)target->pid);
		return thread;
	}
	for (size_t i = 0; i < sources->count; i++) {
		const struct source *source = &sources->source[i];

		if (source->present && source->ops->per_thread &&
			source->ops->open(target, &thread->reader[i], ret_reason) < 0)
			thread->reader[i] = NULL;
	}
	return thread;
}

static void close_thread(struct thread *thread)
{
	for (size_t i = 0; i < SOURCE_MAX; i++)
		if (thread->reader[i])
			thread->reader[i]->ops->close(thread->reader[i]);
	free(thread);
}

void thread_sweep(struct thread_table *t, pid_t pid)
{
	for (size_t i = t->count; i > 0; i--) {
		struct thread *thread = t->thread[i - 1];

		if (exists(pid, thread->tid))
			continue;
		t->thread[i - 1] = t->thread[--t->count];
		close_thread(thread);
	}
}

void thread_table_clear(struct thread_table *t)
{
	while (t->count)
		close_thread(t->thread[--t->count]);
	free(t->thread);
	*t = (struct thread_table){ 0 };
}
