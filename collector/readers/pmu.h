/* SPDX-License-Identifier: MIT */
/* The PMUs that sysfs lists, and events in their own terms: `pmu/event,term=value/`. */
#ifndef READERS_PMU_H
#define READERS_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "readers/reader.h"

struct pmu_cpus {
	int *cpu;
	size_t count;
};

struct pmu {
	char *name;
	uint32_t type;
	bool core;               /* counts what a CPU does for a task */
	bool subset;             /* but only on CPUs of one type: sysfs lists which */
	struct pmu_cpus cpumask; /* it counts for the machine and is read on these; else empty */
};

struct pmu_list {
	char *root;
	struct pmu *pmu; /* by type: on hybrid machines the fast cores come first */
	size_t count;
};

/* A machine without such a directory has no PMU: 0 and an empty list. */
int pmu_list_load(const char *sys_root, struct pmu_list *ret);
void pmu_list_clear(struct pmu_list *list);

/* NULL: none of that name or type. */
const struct pmu *pmu_find(const struct pmu_list *list, const char *name);
const struct pmu *pmu_find_type(const struct pmu_list *list, uint32_t type);

/* True if the machine has CPUs of several types, each with a PMU of its own. */
bool pmu_is_hybrid(const struct pmu_list *list);

#define PMU_CONFIGS 3

/*
 * config, config1 and config2 of the text between the slashes.  -ENOENT: it
 * names an unknown event or term; -EINVAL: a value is wrong.  ret_reason is
 * then set, without the event's name.
 */
int pmu_encode(const struct pmu_list *list, const struct pmu *pmu, const char *terms,
	uint64_t ret_config[PMU_CONFIGS], char ret_reason[READER_REASON_ROOM]);

/* What one count of an event stands for, as "2.3e-10 Joules".  False: nothing but itself. */
bool pmu_event_worth(const struct pmu_list *list, const struct pmu *pmu, const char *event,
	char *ret, size_t room);

/* Calls fn for each event that sysfs names; a non-zero result ends it and is returned. */
int pmu_each_event(const struct pmu_list *list, const struct pmu *pmu,
	int (*fn)(const char *event, void *arg), void *arg);

/* "0-3,8": -EINVAL if it is not a list of CPUs. */
int pmu_cpus_parse(const char *text, struct pmu_cpus *ret);
void pmu_cpus_clear(struct pmu_cpus *cpus);

#endif
