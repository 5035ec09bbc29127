/* SPDX-License-Identifier: MIT */
/* What a reader measures: a list of metrics in a fixed order. */
#ifndef COLLECTOR_METRIC_H
#define COLLECTOR_METRIC_H

#include <stddef.h>
#include <stdint.h>

enum metric_kind {
	METRIC_COUNTER, /* grows; a phase gets the difference */
	METRIC_GAUGE,   /* goes up and down; a phase gets NAME_min and NAME_max */
	METRIC_PEAK,    /* the highest value so far; a phase gets what stood at its end */
	METRIC_PEAK_SINCE, /* the highest since the reading before; a phase gets the highest of its own */
	METRIC_SCALED, /* a counter that was scaled as it was read; its group's times tell how much */
};

enum metric_unit {
	UNIT_COUNT,
	UNIT_BYTES,
	UNIT_US,
	UNIT_UJ,
	UNIT_PERCENT,
	UNIT_NS,
	UNIT_UW,
};

enum metric_scope {
	SCOPE_PROCESS, /* the process and what it started */
	SCOPE_GROUP,   /* the target's cgroup */
	SCOPE_GLOBAL,  /* the machine */
};

/* A value that was not counted.  Never a real reading. */
#define VALUE_ABSENT UINT64_MAX

#define METRIC_NO_GROUP (-1)

struct metric {
	char *name; /* unique within its source but for parts: "page-faults", "proc_usage_usec" */
	enum metric_kind kind;
	enum metric_unit unit;
	enum metric_scope scope;
	int group;    /* index of the perf group whose times belong to it, or METRIC_NO_GROUP */
	char *part;   /* core type of a hybrid machine ("cpu_core"), or NULL; parts are summed */
	char *note;   /* what a reader of the value must know, or NULL */
	char *absent; /* why it is not counted at all, or NULL; its value is then VALUE_ABSENT */
	char *source; /* what reports call it by, or NULL: the reader's name */
	uint64_t step_ns;    /* it moves about once in that time; 0: at once */
	uint64_t idle_per_s; /* how it grew before the target ran; 0: not measured */
};

/*
 * A snapshot of a reader is an array of metric_list_values() numbers: one per
 * metric, then for each group its time enabled and its time running in ns.
 */
struct metric_list {
	struct metric *metric;
	size_t count;
	size_t groups;
};

/* Copies what it is given.  -ENOMEM leaves the list as it was. */
int metric_list_add(struct metric_list *list, const struct metric *metric);
void metric_list_clear(struct metric_list *list);

static inline size_t metric_list_values(const struct metric_list *list)
{
	return list->count + 2 * list->groups;
}

/* "count", "B", "µs", "µJ", "%", "ns", "µW" */
const char *unit_name(enum metric_unit unit);
/* "counter", "gauge", "peak", "peak-since", "scaled" */
const char *metric_kind_name(enum metric_kind kind);
/* "process", "group", "global" */
const char *metric_scope_name(enum metric_scope scope);

/* The reverse of the three above.  -EINVAL: no such name. */
int unit_parse(const char *name, enum metric_unit *ret);
int metric_kind_parse(const char *name, enum metric_kind *ret);
int metric_scope_parse(const char *name, enum metric_scope *ret);

#endif
