/* SPDX-License-Identifier: MIT */
/* Threads that open regions: each has counters of its own. */
#ifndef COLLECTOR_THREAD_H
#define COLLECTOR_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"
#include "source.h"

struct thread {
	pid_t tid;
	bool fresh;                        /* its counters were opened for the marker at hand */
	struct reader *reader[SOURCE_MAX]; /* by source; NULL: none */
};

struct thread_table {
	struct thread **thread;
	size_t count;
	size_t room;
};

/* NULL: not seen yet. */
struct thread *thread_find(const struct thread_table *t, pid_t tid);

/*
 * Opens the counters of a thread of process pid, which is confirmed to be
 * ours; that the thread is one of its is checked here.  One that cannot have
 * counters is entered all the same, and ret_reason says why.  NULL: out of
 * memory.
 */
struct thread *thread_open(struct thread_table *t, const struct source_list *sources, pid_t pid,
	const struct reader_target *target, char ret_reason[READER_REASON_ROOM]);

/* Closes the counters of those that have ended. */
void thread_sweep(struct thread_table *t, pid_t pid);

void thread_table_clear(struct thread_table *t);

#endif
