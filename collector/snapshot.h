/* SPDX-License-Identifier: MIT */
/*
 * Reading the counters at a boundary.  A snapshot is read in two parts: the
 * critical readers before the markers are acknowledged, the others after.
 */
#ifndef COLLECTOR_SNAPSHOT_H
#define COLLECTOR_SNAPSHOT_H

#include "session.h"

/* Processes and threads that one snapshot can cover. */
#define SNAPSHOT_PROCESSES 16
#define SNAPSHOT_THREADS   64
#define SNAPSHOT_SHOTS     (SNAPSHOT_PROCESSES * SOURCE_MAX + SNAPSHOT_THREADS)

/* A thread whose own counters are read, with its process. */
struct snapshot_thread {
	const struct process *process;
	struct thread *thread;
};

struct snapshot {
	uint64_t number;
	struct process *process[SNAPSHOT_PROCESSES];
	size_t processes;
	struct snapshot_thread thread[SNAPSHOT_THREADS];
	size_t threads;
	struct shot {
		const struct process *process; /* NULL: of the session */
		const struct thread *thread;   /* NULL: of the process */
		const struct source *source;
		uint64_t begin_ns;
		uint64_t end_ns;
		uint64_t *values;
	} shot[SNAPSHOT_SHOTS];
	size_t shots;
};

/* False: it covers as many processes as it can already. */
bool snapshot_include(struct snapshot *shot, struct process *p);
bool snapshot_include_thread(struct snapshot *shot, const struct process *p, struct thread *t);

/* No allocation, no logging. */
void snapshot_read_critical(struct session *s, struct snapshot *shot);
void snapshot_read_others(struct session *s, struct snapshot *shot);
void snapshot_record(struct session *s, const struct snapshot *shot);

/* All three for one process; returns the snapshot's number. */
uint64_t snapshot_of(struct session *s, struct process *p);

/* Reads the gauges that are due; returns when the next ones are (UINT64_MAX: never). */
uint64_t snapshot_sample(struct session *s, uint64_t now_ns);

/* Numbers needed for one snapshot's values. */
size_t snapshot_values(const struct source_list *sources);

/* From now on the process's values of that reader are absent, and a note says why. */
void snapshot_give_up(struct session *s, struct process *p, size_t source, const char *reason);

/* Lets the readers read what would be lost otherwise, and notes what they have to say. */
void snapshot_keep_alive(struct session *s);

/* Asks the readers of each process whether their counters were taken away. */
void snapshot_check_lost(struct session *s);

#endif
