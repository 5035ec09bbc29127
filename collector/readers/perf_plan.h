/* SPDX-License-Identifier: MIT */
/*
 * What a session counts: which events, under which names, in which groups.
 * Found out once by opening every event on ourselves, so that all processes of
 * a session describe the same list.
 */
#ifndef READERS_PERF_PLAN_H
#define READERS_PERF_PLAN_H

#include <stdbool.h>

#include "metric.h"
#include "readers/events.h"
#include "readers/perf_unit.h"
#include "readers/reader.h"

struct perf_plan {
	struct metric_list metrics;
	struct perf_group *group; /* metrics.groups of them */
	bool single;              /* an old kernel: no inherited groups, each holds one event */
	struct events events;     /* the groups point into its PMUs */
};

/*
 * The plan for what env says, made at the first call and kept as long as this
 * process lives; a forked child makes its own.  Any thread may call.
 */
int perf_plan_get(const struct reader_env *env, const struct perf_plan **ret,
	char ret_reason[READER_REASON_ROOM]);

/* What kernel.perf_event_paranoid says; -1 where it cannot be read. */
int perf_paranoid(const struct reader_env *env);

#endif
