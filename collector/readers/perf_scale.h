/* SPDX-License-Identifier: MIT */
/* What a counter would have read had it been scheduled all the time. */
#ifndef READERS_PERF_SCALE_H
#define READERS_PERF_SCALE_H

#include <stdint.h>

#include "metric.h"

/*
 * raw is a difference of counts, the times are the differences of the same
 * interval.  Rounded to the nearest.  Neither time grew: nothing ran, and raw
 * is exact.  Enabled without running: it was never counted, VALUE_ABSENT.  A
 * result beyond 64 bits is the largest value that is a reading.
 */
static inline uint64_t perf_scale(uint64_t raw, uint64_t enabled_ns, uint64_t running_ns)
{
	unsigned __int128 scaled;

	if (running_ns >= enabled_ns)
		return raw;
	if (running_ns == 0)
		return VALUE_ABSENT;
	scaled = ((unsigned __int128)raw * enabled_ns + running_ns / 2) / running_ns;
	return scaled < VALUE_ABSENT ? (uint64_t)scaled : VALUE_ABSENT - 1;
}

#endif
