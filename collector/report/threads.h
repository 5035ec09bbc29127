/* SPDX-License-Identifier: MIT */
/*
 * What each thread is in the middle of: the regions it has open, and the phase
 * whose marker it emitted last.  Wrong nesting is repaired and counted, never
 * given up on.
 */
#ifndef REPORT_THREADS_H
#define REPORT_THREADS_H

#include "report/model.h"

struct thread {
	struct thread *next;    /* in its bucket */
	struct thread *sibling; /* of the same process */
	uint64_t process;
	uint32_t tid;
	size_t region;  /* the innermost open one, or MODEL_NONE */
	size_t waiting; /* row whose marker's return is not known yet, or MODEL_NONE */
};

struct threads;

int threads_open(struct threads **ret);
/* The thread, made if it is new and put in front of *list.  NULL without memory. */
struct thread *threads_get(struct threads *t, uint64_t process, uint32_t tid, struct thread **list);
struct threads *threads_close(struct threads *t);

/* like: run, process, pid, phase, begin_ns and name of the new region. */
int thread_begin(struct model *m, struct thread *thread, const struct region *like);
/* Empty name: the innermost. */
void thread_end(struct model *m, struct run *run, struct thread *thread, const char *name,
	uint64_t time_ns);
/* Closes what is open; open: the recording ends here, not the thread. */
void thread_finish(
	struct model *m, struct run *run, struct thread *thread, uint64_t time_ns, bool open);

#endif
