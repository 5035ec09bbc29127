/* SPDX-License-Identifier: MIT */
/* The perf reader on processes that do known work. */
#ifndef SUPPORT_COUNTING_H
#define SUPPORT_COUNTING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"

struct reader_env counting_env(const char *events);

/* Fresh ones, each touched once. */
void touch_pages(int pages);

/*
 * A process that does what it is told, one byte and a number at a time: touch
 * so many fresh pages; do the same in two children; start a thread that does.
 */
struct worker {
	pid_t pid;
	int orders, answers;
};

struct worker worker_start(void);
/* what: 'c' in two children, 't' in a thread, else itself.  Returns when it is done. */
void worker_order(const struct worker *w, char what, int pages);
void worker_end(struct worker *w);
/* What it does: until the orders end. */
void worker_obey(int orders, int answers);

/* These assert. */
struct reader *counting_open(const struct reader_env *env, pid_t pid, bool enable_on_exec);
struct metric_list counting_described(const struct reader *r);
uint64_t counting_value(struct reader *r, const char *name);

/* NULL: there is none of that name. */
const struct metric *counting_metric(const struct metric_list *list, const char *name);

/* Can it be counted of ourselves, in the kernel too? */
bool counting_can(struct perf_event_attr attr);
bool counting_has_pmu(void);

#endif
