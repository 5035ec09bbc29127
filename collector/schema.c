/* SPDX-License-Identifier: MIT */
#include "schema.h"

#include <errno.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "jphase/abi.h"

const struct schema_layout schema_layouts[] = {
	/*
	 * how: "first", "exec", "fork", "attach", "calibration"; absent: why it
	 * has no counters, or nil.
	 */
	{ SCHEMA_PROCESS, "process", "time_ns process pid parent name how absent" },
	/*
	 * kind: "phase", "begin", "end", "mark", "value", "exit", or its number.
	 * snapshot: sequence number shared by the snapshot records taken for it,
	 * or nil.  took_ns: the thread's previous marker.  done_ns: when the
	 * marker was acknowledged.
	 */
	{ SCHEMA_MARKER, "marker",
		"time_ns process tid kind name value id flags took_ns done_ns snapshot" },
	/*
	 * The values of one reader.  process is nil for a reader of the session.
	 * times: enabled and running of each group.
	 */
	{ SCHEMA_SNAPSHOT, "snapshot", "snapshot process reader begin_ns end_ns values times" },
	/* Gauges between boundaries: all else is nil. */
	{ SCHEMA_SAMPLE, "sample", "time_ns process reader values" },
	/*
	 * count adds to what was said before of the same loss.  what: "dropped",
	 * "revoked", "claim", "invalid", "unknown", "backlog", "sample" (the
	 * marker is there, and what it has was read later).
	 */
	{ SCHEMA_LOSS, "loss", "time_ns what count" },
	/*
	 * process may be nil.  A text that begins "not counted: " gives the
	 * reason for what is nil in that process's snapshots from then on.
	 */
	{ SCHEMA_NOTE, "note", "time_ns process text" },
	/*
	 * The process is gone.  status as wait() gives it, or nil; the times and
	 * the peak are getrusage's, or nil.  snapshot as in marker.
	 */
	{ SCHEMA_EXIT, "exit", "time_ns process status user_us system_us peak_bytes snapshot" },
	/*
	 * The values of one reader for one thread alone, at the begin or end of
	 * a region.  how: "read" from begin_ns to end_ns, or "sampled" by the
	 * kernel at begin_ns.
	 */
	{ SCHEMA_THREAD, "thread", "snapshot process tid reader how begin_ns end_ns values times" },
	/* complete: false if the session was cut short. */
	{ SCHEMA_SUMMARY, "summary", "time_ns markers lost processes snapshots complete" },
};

const size_t schema_layout_count = ARRAY_SIZE(schema_layouts);

size_t schema_columns(enum schema_kind kind)
{
	for (size_t i = 0; i < schema_layout_count; i++) {
		size_t columns = 1;

		if (schema_layouts[i].kind != kind)
			continue;
		for (const char *c = schema_layouts[i].columns; *c; c++)
			columns += *c == ' ';
		return columns;
	}
	return 0;
}

bool schema_begins(int fd)
{
	static const char start[] = "\xa6"
				    "format\xa6" SCHEMA_FORMAT;
	char head[32];
	ssize_t n = sys_pread(fd, head, sizeof(head), 0);

	return n > 0 && memmem(head, (size_t)n, start, sizeof(start) - 1);
}

static const char *const marker_names[] = {
	[JPHASE_PHASE] = "phase",
	[JPHASE_BEGIN] = "begin",
	[JPHASE_END] = "end",
	[JPHASE_MARK] = "mark",
	[JPHASE_VALUE] = "value",
	[JPHASE_EXIT] = "exit",
};

const char *schema_marker_name(unsigned kind)
{
	return kind < ARRAY_SIZE(marker_names) ? marker_names[kind] : NULL;
}

int schema_marker_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(marker_names); i++)
		if (marker_names[i] && str_eq(marker_names[i], name))
			return (int)i;
	return -EINVAL;
}
