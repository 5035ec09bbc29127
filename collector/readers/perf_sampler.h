/* SPDX-License-Identifier: MIT */
/*
 * One group of events on one thread, read by the kernel itself each time the
 * thread passes a probe.  The kernel writes the values into a buffer of ours,
 * with the register that holds the record's position.
 *
 * Never inherited: an inherited probe event makes fork and pthread_create fail
 * in the target.
 */
#ifndef READERS_PERF_SAMPLER_H
#define READERS_PERF_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "readers/perf_unit.h"
#include "readers/reader.h"

struct perf_sampler;

/*
 * As perf_event_open(); -EPERM also where the buffer would exceed what may be
 * locked in memory.
 */
int perf_sampler_open(const struct perf_group *group, pid_t tid, struct reader_probe *probe,
	struct perf_sampler **ret);

/*
 * The counts of the record at that position.  -ENOENT: the kernel has no such
 * sample.
 */
int perf_sampler_find(struct perf_sampler *s, uint64_t position, uint64_t *ret_time_ns,
	uint64_t *ret_values, uint64_t ret_times[2]);

/* The counts of this moment, by read(2). */
int perf_sampler_read(struct perf_sampler *s, uint64_t *ret_values, uint64_t ret_times[2]);

/* Takes NULL, returns NULL. */
struct perf_sampler *perf_sampler_close(struct perf_sampler *s);

#endif
