/* SPDX-License-Identifier: MIT */
/*
 * The recording: a stream of msgpack objects.
 *
 * The first object is a map, the header.  Every later object is an array whose
 * first element is the number of its record kind; the header's "layout" names
 * the other elements, so that any msgpack library can read the file without
 * this description.  The last summary counts; after a kill there is none.
 *
 * Header keys:
 *   format "jphase", version 1, jphase (program version), host, kernel, cpu,
 *   cpus, command (array of strings), started_us (since the epoch),
 *   clock_ns (CLOCK_MONOTONIC at that instant), mode "sync", "async" or "exact",
 *   token_pattern (nil, or the expression whose matches in standard output are phases),
 *   poll_ns, interval_ns, pid, ring_records,
 *   readers: array of maps { name, critical, absent (nil, or the reason) },
 *   metrics: array of maps { reader, name, unit, kind, scope, group, part,
 *     note, absent, source, step_ns, idle_per_s }: for each present reader its metric_list in order,
 *   groups: map of reader name -> number of groups,
 *   layout: array of arrays: record number, record name, then column names.
 *
 * Times are CLOCK_MONOTONIC in ns.  process is the index from the process
 * record.  values and times follow the order of "metrics" of that reader; nil
 * is a value that was not counted.
 */
#ifndef COLLECTOR_SCHEMA_H
#define COLLECTOR_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#define SCHEMA_FORMAT  "jphase"
#define SCHEMA_VERSION 1

enum schema_kind {
	SCHEMA_PROCESS = 1,
	SCHEMA_MARKER = 2,
	SCHEMA_SNAPSHOT = 3,
	SCHEMA_SAMPLE = 4,
	SCHEMA_LOSS = 5,
	SCHEMA_NOTE = 6,
	SCHEMA_EXIT = 7,
	SCHEMA_SUMMARY = 8,
	SCHEMA_THREAD = 9,
};

struct schema_layout {
	enum schema_kind kind;
	const char *name;
	const char *columns; /* separated by spaces */
};

extern const struct schema_layout schema_layouts[];
extern const size_t schema_layout_count;

/* Columns of that record, the kind itself not counted; 0: unknown. */
size_t schema_columns(enum schema_kind kind);

/* Does what this descriptor reads from its start begin as a recording does? */
bool schema_begins(int fd);

/* How the recording calls a marker's kind (enum jphase_kind), or NULL: by its number. */
const char *schema_marker_name(unsigned kind);
/* -EINVAL: no such name. */
int schema_marker_kind(const char *name);

#endif
