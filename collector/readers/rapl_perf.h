/* SPDX-License-Identifier: MIT */
/* What the kernel's PMU called `power` counts, from sysfs; nothing is opened. */
#ifndef READERS_RAPL_PERF_H
#define READERS_RAPL_PERF_H

#include <stddef.h>
#include <stdint.h>

#include "readers/energy.h"

#define RAPL_EVENTS_MAX 5

struct rapl_event {
	enum energy_kind kind;
	uint64_t config;
	long double uj; /* what one count is worth */
};

/* A CPU to count on, for all of its package or die. */
struct rapl_place {
	int cpu;
	int package;
	int die;
};

struct rapl_plan {
	uint32_t type;
	struct rapl_event event[RAPL_EVENTS_MAX];
	size_t events;
	struct rapl_place *place;
	size_t places;
};

/* -ENODEV: there is no such PMU.  On errors ret_reason is set. */
int rapl_plan_load(
	const struct reader_env *env, struct rapl_plan *ret, char ret_reason[READER_REASON_ROOM]);
void rapl_plan_clear(struct rapl_plan *plan);

#endif
