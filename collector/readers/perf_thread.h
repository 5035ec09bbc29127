/* SPDX-License-Identifier: MIT */
/* The perf reader's instances for one thread alone: what regions cost. */
#ifndef READERS_PERF_THREAD_H
#define READERS_PERF_THREAD_H

#include "readers/perf_plan.h"
#include "readers/reader.h"

int perf_thread_open(const struct reader_target *target, const struct perf_plan *plan,
	struct reader **ret, char ret_reason[READER_REASON_ROOM]);

/*
 * Can the kernel sample this plan at a marker?  Its hardware events must fit
 * into one group: two led groups take turns and each misses half of the
 * markers.  -EINVAL with the names in ret_reason.
 */
int perf_thread_can_sample(const struct perf_plan *plan, char ret_reason[READER_REASON_ROOM]);

#endif
