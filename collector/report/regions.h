/* SPDX-License-Identifier: MIT */
/*
 * The regions of each thread while a recording is folded.  Wrong nesting is
 * repaired and counted, never given up on.
 */
#ifndef REPORT_REGIONS_H
#define REPORT_REGIONS_H

#include "report/phases.h"

/* An open region of a thread, in the one that was open before. */
struct open_region {
	struct open_region *outer;
	size_t region; /* index in the model */
	struct boundary begin;
	uint64_t inner_ns;
	uint64_t *inner; /* what the regions in it counted; NULL: nothing */
	uint64_t losses; /* of markers, before it began */
	uint32_t hidden; /* regions in it that are unresolved */
	bool blind;      /* a region in it has no values for another reason */
};

/* The marker m, called name, opens or closes a region; an empty name: the innermost. */
int region_begin(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name);
int region_end(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name);
/* What m tells of when its thread's marker before it returned. */
void region_returned(struct fold *f, struct thread *thread, const struct record_marker *m);
/* Closes what is open; open: the recording ends here, not the thread. */
void regions_finish(struct fold *f, struct thread *thread, uint64_t time_ns, bool open);

/* Frees one without closing it; returns the one around it. */
struct open_region *open_region_free(struct open_region *o);

#endif
