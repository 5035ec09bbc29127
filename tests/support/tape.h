/* SPDX-License-Identifier: MIT */
/* A recording, step by step, and the model it becomes. */
#ifndef SUPPORT_TAPE_H
#define SUPPORT_TAPE_H

#include "internal/util.h"
#include "jphase/abi.h"
#include "report/model.h"
#include "support/recording.h"

#define T0 RECORDING_CLOCK_NS
#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC

struct tape {
	int fd;
	struct recorder *r;
};

/* perf of one process: running is as enabled where it is not given. */
struct counts {
	uint64_t clock, faults, enabled, running;
};

/*
 * perf: task-clock and page-faults in one group, CPU_CYCLES that is absent;
 * cgroup: proc_usage_usec, proc_current; procfs: proc_rss_peak; energy:
 * absent.
 */
extern struct metric_list cgroup_list;
extern struct metric_list procfs_list;

struct tape tape_begin(const char *mode);
/* In sync mode, with a first process and its START. */
struct tape tape_started(void);
/* Its bytes are complete; to be closed by sys_close(t->fd). */
void tape_end(struct tape *t);
struct model *tape_model(struct tape *t, enum model_by by);

void process(struct tape *t, uint64_t time, uint64_t index, pid_t pid, const char *how);
/* A phase where kind is not given, of a thread of the process. */
void marker(struct tape *t, struct record_marker m);
void region(struct tape *t, uint64_t time, uint8_t kind, const char *name);
/*
 * The same with counters: the kernel sampled them 1 µs after the marker; taken
 * by a thread of the first process.
 */
void sampled(struct tape *t, uint64_t time, uint32_t tid, uint8_t kind, const char *name,
	uint64_t number, struct counts c);
void snapshot(
	struct tape *t, uint64_t number, uint64_t process_index, uint64_t time, struct counts c);
/* Of one thread of the first process alone; how: "read", "sampled". */
void thread_snapshot(struct tape *t, uint64_t number, uint32_t tid, const char *how, uint64_t time,
	struct counts c);
/* The same of any process, read as the marker's thread waited. */
void thread_of(struct tape *t, uint64_t process_index, uint64_t number, uint32_t tid, uint64_t time,
	struct counts c);
void session(struct tape *t, uint64_t number, uint64_t time, uint64_t usage, uint64_t memory);
/* Exit status 42. */
void gone(struct tape *t, uint64_t process_index, uint64_t time, uint64_t number);

/* START until 10 ms, "solve" until 30 ms: 100 and 300 faults; sync, took 50 µs. */
void two_phases(struct tape *t);
struct model *two_phase_model(enum model_by by);

/* Of the row, of the first run's total. */
struct value value(const struct model *m, size_t row, const char *name);
struct value total(const struct model *m, const char *name);
/* Of a region, of a node of their tree. */
struct value whole(const struct model *m, size_t region_index, const char *name);
struct value own(const struct model *m, size_t region_index, const char *name);
struct value node_whole(const struct model *m, size_t node, const char *name);
struct value node_own(const struct model *m, size_t node, const char *name);
void assert_counted(struct value v, uint64_t number);
void assert_missing(struct value v, const char *quality);
void assert_quality(struct value v, const char *quality);
void assert_row_quality(const struct model *m, size_t row, const char *quality);

#endif
