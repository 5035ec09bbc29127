/* SPDX-License-Identifier: MIT */
/* The markers of a recording as they were written, before any report. */
#ifndef SUPPORT_MARKERS_H
#define SUPPORT_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

struct marker_seen {
	char name[JPHASE_NAME_ROOM];
	pid_t pid;    /* of its process, as the program sees it */
	bool counted; /* that process has counters */
	uint8_t kind;
	uint8_t flags;
};

struct markers {
	struct marker_seen *marker;
	size_t count, room;
	struct {
		pid_t pid;
		bool counted;
	} * process; /* by its number in the recording */
	size_t processes;
	uint64_t lost;
	bool complete;
};

/* The test fails where the file is no recording or is damaged.  To be given to markers_free(). */
struct markers *markers_read(const char *file);
struct markers *markers_free(struct markers *m);

size_t markers_count(const struct markers *m, const char *name);
/* Those that have one of these flags. */
size_t markers_flagged(const struct markers *m, const char *name, uint8_t flags);

#endif
