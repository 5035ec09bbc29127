/* SPDX-License-Identifier: MIT */
/* Puts the events of a plan into groups that the kernel accepts. */
#ifndef READERS_PERF_GROUPS_H
#define READERS_PERF_GROUPS_H

#include "readers/events.h"
#include "readers/perf_plan.h"

/*
 * Finds a place for one code of an event whose metric is the given one.
 * -EINVAL: the user's braces ask for what cannot be; ret_reason is set.
 */
int perf_groups_place(struct perf_plan *plan, const struct event *event,
	const struct event_code *code, size_t metric, char ret_reason[READER_REASON_ROOM]);

#endif
