/* SPDX-License-Identifier: MIT */
/*
 * The tracepoint at the library's probe site, at which the kernel samples a
 * thread's counters.  One per session, in tracefs; it goes with the session,
 * and what a killed collector left behind is removed by the next one.
 */
#ifndef COLLECTOR_PROBE_H
#define COLLECTOR_PROBE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"

#define PROBE_GROUP_ROOM 64

struct probe {
	int tracefs;      /* directory, or -1 */
	int anchor;       /* an event of ours that keeps the probe registered */
	pthread_t opener; /* of the anchor */
	bool opening;
	uint64_t id;                  /* 0: not defined yet */
	char group[PROBE_GROUP_ROOM]; /* of the definition; "": none */
};

/* Is there a tracefs that we may use?  On an error ret_reason says why not and what helps. */
int probe_prepare(struct probe *ret, char ret_reason[READER_REASON_ROOM]);

/* Defines it at that address of a process, whatever file is mapped there. */
int probe_define(struct probe *p, pid_t pid, uint64_t address);

/* Before the first thread is sampled: keeps the kernel from giving the probe up between. */
void probe_anchor(struct probe *p);

/* After all events that use it are closed.  Takes one that was never defined. */
void probe_remove(struct probe *p);

#endif
