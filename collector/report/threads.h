/* SPDX-License-Identifier: MIT */
/* The threads of a recording, and what each of them is in the middle of. */
#ifndef REPORT_THREADS_H
#define REPORT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct open_region;

struct thread {
	struct thread *next;    /* in its bucket */
	struct thread *sibling; /* of the same process */
	uint64_t process;
	uint32_t tid;
	struct open_region *open; /* the innermost, or NULL */
	bool begun;               /* its last marker began that one */
	size_t waiting;           /* row whose marker's return is not known yet, or MODEL_NONE */
	size_t inside_phase;      /* where its last marker was one of many: row, or MODEL_NONE */
	size_t inside_region;     /* the same: region */
	size_t marked_region; /* the region that its last marker began or ended, or MODEL_NONE */
	uint64_t marked_ns;   /* when its last marker was entered */
	uint64_t last_ns;
};

struct threads;

int threads_open(struct threads **ret);
/* The thread, made if it is new and put in front of *list.  NULL without memory. */
struct thread *threads_get(struct threads *t, uint64_t process, uint32_t tid, struct thread **list);
/* Frees also the regions that are still open. */
struct threads *threads_close(struct threads *t);

#endif
