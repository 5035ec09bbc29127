/* SPDX-License-Identifier: MIT */
/*
 * The event at the library's probe site, at which the kernel samples a
 * thread's counters.  One definition per session in tracefs, which goes with
 * the session; what a killed collector left behind is removed by the next one.
 * Where that may not be done, the one that an administrator has made, or
 * events that bring a probe of their own each.
 */
#ifndef COLLECTOR_PROBE_H
#define COLLECTOR_PROBE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"
#include "site.h"

#define PROBE_GROUP_ROOM 64
#define PROBE_PATH_ROOM  64

/* What an administrator defines, and where. */
#define PROBE_GIVEN_NAME "jphase/marker"
#define PROBE_TRACEFS    "/sys/kernel/tracing"

/* Each makes every marker slower and takes tens of milliseconds to go. */
#define PROBE_PMU_THREADS 32

enum probe_origin {
	PROBE_OWN,   /* this session's in tracefs */
	PROBE_GIVEN, /* an administrator's, which stays */
	PROBE_PMU,   /* of the uprobe PMU, one for each thread */
};

struct probe {
	enum probe_origin origin;
	int tracefs;    /* directory, or -1 */
	uint64_t given; /* id of the administrator's */
	uint32_t pmu;

	bool defined;
	struct site site;
	char path[PROBE_PATH_ROOM];   /* of its file */
	char group[PROBE_GROUP_ROOM]; /* of the definition; "": none */
	struct reader_probe event;
	int held[PROBE_PMU_THREADS * READER_PROBE_EVENTS];

	int anchor;       /* an event of ours that keeps the probe registered */
	pthread_t opener; /* of the anchor */
	bool opening;
};

/* Is there a way that we may use?  On an error ret_reason says why not and what helps. */
int probe_prepare(struct probe *ret, char ret_reason[READER_REASON_ROOM]);

/* Defines it at that address of a process, whatever file is mapped there. */
int probe_define(struct probe *p, pid_t pid, uint64_t address);

/* For people. */
const char *probe_name(const struct probe *p);

/* Before the first thread is sampled: keeps the kernel from giving the probe up between. */
void probe_anchor(struct probe *p);

/* After all events that use it are closed.  Takes one that was never defined. */
void probe_remove(struct probe *p);

#endif
