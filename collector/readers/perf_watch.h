/* SPDX-License-Identifier: MIT */
/*
 * Finds out that the kernel has taken a process's counters away: it does so
 * when the process becomes a set-user-ID program, or one that its user may not
 * read.  The counters stand still then, with full coverage, as if nothing ran.
 */
#ifndef READERS_PERF_WATCH_H
#define READERS_PERF_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"

struct perf_watch;

/* -ESRCH: no such process.  Needs one descriptor and does without if it must. */
int perf_watch_open(const struct reader_env *env, pid_t pid, struct perf_watch **ret);

/*
 * enabled_ns: how long the process's counters have been enabled by now.  Only
 * the process itself is watched, not what it starts.
 */
bool perf_watch_is_lost(struct perf_watch *w, uint64_t enabled_ns);

/* Takes NULL, returns NULL. */
struct perf_watch *perf_watch_close(struct perf_watch *w);

#endif
