/* SPDX-License-Identifier: MIT */
/* The kernel's generic events by the names that perf gives them. */
#ifndef READERS_EVENT_NAMES_H
#define READERS_EVENT_NAMES_H

#include <stdint.h>

struct event_name {
	const char *name;
	const char *group; /* "hardware", "software", "cache" */
	const char *description;
	uint32_t type;
	uint64_t config;
};

/*
 * "CPU_CYCLES", "INSTRUCTIONS", "CACHE_MISSES" or "BRANCH_MISSES" if name is one
 * of their spellings, in any case and with '-' or '_'; else NULL.
 */
const char *event_name_metric(const char *name);

/* -ENOENT: not a generic event. */
int event_name_find(const char *name, uint32_t *ret_type, uint64_t *ret_config);

/* Calls fn for each; a non-zero result ends it and is returned. */
int event_names_each(int (*fn)(const struct event_name *name, void *arg), void *arg);

#endif
