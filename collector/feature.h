/* SPDX-License-Identifier: MIT */
/* What this kernel can do, asked once by trying it. */
#ifndef COLLECTOR_FEATURE_H
#define COLLECTOR_FEATURE_H

#include <stdbool.h>
#include <stddef.h>

enum feature {
	FEATURE_PERF,             /* perf_event_open exists and no filter forbids it */
	FEATURE_HARDWARE,         /* the processor's counters can be opened */
	FEATURE_INHERITED_GROUPS, /* one read gives a group with its children (4.13) */
	FEATURE_PIDFD,            /* the end of a process that is not our child is seen (5.3) */
	FEATURE_MEMFD,            /* sealed shared memory, which markers need */
	FEATURE_COUNT,
};

/* Any thread.  The first call for a feature costs some system calls, later ones nothing. */
bool feature_has(enum feature feature);

#endif
