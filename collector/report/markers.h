/* SPDX-License-Identifier: MIT */
/* How many markers stand in phases and regions, and how long they took. */
#ifndef REPORT_MARKERS_H
#define REPORT_MARKERS_H

#include "report/regions.h"

/* How long the thread's marker before it took is told by m. */
void marker_took(struct fold *f, struct thread *thread, const struct record_marker *m);
/* After m has done what it does to phases and regions. */
void marker_counts(struct fold *f, const struct process *p, struct thread *thread,
	const struct record_marker *m);

#endif
