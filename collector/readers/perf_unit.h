/* SPDX-License-Identifier: MIT */
/* One group of kernel events, opened on one thread or one CPU. */
#ifndef READERS_PERF_UNIT_H
#define READERS_PERF_UNIT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/pmu.h"

#define PERF_GROUP_MAX 32

struct perf_counter {
	struct perf_event_attr attr; /* what is counted; how it is read is the unit's matter */
	size_t metric;               /* which one it belongs to */
};

struct perf_group {
	struct perf_counter counter[PERF_GROUP_MAX]; /* the first one leads */
	size_t count;
	const struct pmu_cpus *cpus; /* counted there for the machine; NULL: for a task */
	int brace;                   /* the {} of the event list, or EVENT_NO_BRACE */
	uint32_t device;             /* of its hardware events */
	bool software;               /* it has none */
};

enum perf_start {
	PERF_START_NEVER, /* opened to see whether it can be */
	PERF_START_EXEC,
	PERF_START_NOW,
};

struct perf_where {
	pid_t pid;   /* a thread; what it starts is counted too.  -1: everything on the CPU */
	bool alone;  /* what the thread starts is not counted */
	bool cgroup; /* pid is the descriptor of a cgroup's folder: what runs in it on the CPU */
	int cpu;     /* -1: any */
	enum perf_start start;
	/*
	 * One by one instead of as a group: each event is scheduled and read on
	 * its own.  The times are then those of the first.
	 */
	bool single;
};

struct perf_unit {
	int fd[PERF_GROUP_MAX];
	size_t count;
	bool single;
};

/*
 * -ECHILD: a thread started another one between two of the openings, so that
 * the group cannot be read, or was about to end; try again.  -EINVAL, -ENOSPC: the events do not fit
 * into one group.  Else as perf_event_open().
 */
int perf_unit_open(
	const struct perf_group *group, const struct perf_where *where, struct perf_unit *ret);

/*
 * Adds the counts to values and the times enabled and running to times.  One
 * read(2), or one per event of a single unit; more while a thread is about to
 * end.  On an error some may be added.
 */
int perf_unit_add(const struct perf_unit *u, uint64_t *values, uint64_t times[2]);

void perf_unit_close(struct perf_unit *u);

#endif
