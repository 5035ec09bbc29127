/* SPDX-License-Identifier: MIT */
/*
 * A reader owns one kind of counter.  The table in registry.c lists them all;
 * an instance belongs to one process (perf, procfs) or to the session (cgroup,
 * energy).  All functions return 0 or -errno; none logs.
 */
#ifndef READERS_READER_H
#define READERS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "metric.h"

#define READER_REASON_ROOM 256

/* What lost() says of a program that the kernel does not let us watch. */
#define READER_LOST_AT_EXEC                                                                        \
	"not counted: the kernel stops counting when a set-user-ID program starts"

struct reader;

/* Where things are and what the user chose.  Lives as long as the session. */
struct reader_env {
	const char *proc_root;     /* "/proc" outside tests */
	const char *sys_root;      /* "/sys" outside tests */
	const char *events;        /* the user's choice for perf, or NULL: the default */
	const char *powercap_root; /* the user's choice for energy, or NULL: below sys_root */
	uint64_t idle_ns;     /* how long energy looks at the idle machine first; 0: not at all */
	uint64_t interval_ns; /* between two samples of the gauges; 0: at boundaries only */
	const char
		*cgroup_root; /* the user's choice of a hierarchy, or NULL: where it is mounted */
	const char *cgroup_path; /* the folder to look at, or NULL: the process's own */
	bool cgroup_own;         /* it was made for the target and holds nobody else */
	bool perf_cgroup;        /* perf counts what runs in the group, not the process */
	const char *cpus;        /* on these CPUs, or NULL: on all */
	bool reset_peak;         /* procfs may reset what the process sees as its peak */
};

/* A thread of events that fit into two groups passes it twice. */
#define READER_PROBE_EVENTS 2

/* The event with which the kernel sees a thread pass a marker. */
struct reader_probe {
	uint32_t type;
	uint64_t config, config1, config2;
	/* Where closing takes long: copies of the descriptors, for the end of the session. */
	int *held;
	size_t held_count;
	size_t held_room;
	unsigned threads_left; /* with held */
};

struct reader_target {
	const struct reader_env *env;
	pid_t pid; /* a process, confirmed to be ours */
	/*
	 * The process is stopped and about to exec: counting starts there.
	 * Else it counts from now on, on all its threads of this moment and on
	 * what they start.
	 */
	bool enable_on_exec;
	/* pid is a thread: it alone is counted, not what it starts. */
	bool alone;
	/* With alone: where the kernel samples the thread, or NULL. */
	struct reader_probe *probe;
};

struct reader_ops {
	const char *name; /* in options and recordings: permanent */
	bool critical;    /* read before a marker is acknowledged */
	bool per_process; /* one instance for each marking process; else one for the session */
	bool per_thread;  /* it can also count one thread alone, for regions */

	/*
	 * Can this reader work here at all?  The events the user named are
	 * checked here too.  On an error ret_reason says why and what to do.
	 */
	int (*probe)(const struct reader_env *env, char ret_reason[READER_REASON_ROOM]);

	/*
	 * Can the kernel sample what env asks for at a marker?  On an error
	 * ret_reason says why not.  NULL: nothing of it is ever sampled.
	 */
	int (*can_sample)(const struct reader_env *env, char ret_reason[READER_REASON_ROOM]);

	/* Opens every descriptor that will be needed.  On an error ret_reason is set. */
	int (*open)(const struct reader_target *target, struct reader **ret,
		char ret_reason[READER_REASON_ROOM]);

	/*
	 * The metrics, in the order of the values, including those that are
	 * absent here.  The names and their order depend on env alone, so every
	 * instance of one session describes the same list but for notes and
	 * reasons.
	 */
	int (*describe)(const struct reader *r, struct metric_list *out);

	/* At a boundary: no allocation, no logging.  Fills metric_list_values() numbers. */
	int (*read)(struct reader *r, uint64_t *ret_values);

	/*
	 * Between boundaries: only the gauges, all else VALUE_ABSENT.  NULL in a
	 * reader without gauges.
	 */
	int (*sample)(struct reader *r, uint64_t *ret_values);

	/*
	 * Reads what must be read now and then lest it be lost, as a counter
	 * that begins anew.  Called every 100 ms or so between boundaries.
	 * Returns what the recording must note once, or NULL; it holds until the
	 * next call.  May be NULL.
	 */
	const char *(*keep_alive)(struct reader *r);

	/*
	 * Of an instance with a probe: what the kernel sampled for the record at
	 * that position.  -ENOENT: there is no such sample (any more).  May be
	 * NULL.
	 */
	int (*sampled)(
		struct reader *r, uint64_t position, uint64_t *ret_time_ns, uint64_t *ret_values);

	/*
	 * Why the values stopped meaning anything since open, or NULL (for
	 * example: the kernel stops counting when a set-user-ID program
	 * starts).  Called now and then while the process lives.  May be NULL.
	 */
	const char *(*lost)(struct reader *r);

	/* Takes NULL. */
	void (*close)(struct reader *r);
};

/* Each instance begins with this. */
struct reader {
	const struct reader_ops *ops;
};

/* Ends with NULL.  The order is that of options, recordings and reports. */
extern const struct reader_ops *const reader_registry[];

extern const struct reader_ops perf_reader;
extern const struct reader_ops perf_cgroup_reader; /* in place of perf_reader, not in the table */
extern const struct reader_ops procfs_reader;
extern const struct reader_ops cgroup_reader;
extern const struct reader_ops energy_reader;

#endif
