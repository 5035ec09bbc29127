/* SPDX-License-Identifier: MIT */
/* Markers from outside of the processes: the collector's side. */
#ifndef COLLECTOR_MARKS_H
#define COLLECTOR_MARKS_H

#include "session.h"

/*
 * Takes this job of the kind JOB_MARK and those that wait behind it.  Markers
 * found together share a snapshot, as those of the ring do.
 */
void marks_take(struct session *s, const struct job *first);

/* Answers that the session is over. */
void marks_refuse(const struct job *job);

#endif
