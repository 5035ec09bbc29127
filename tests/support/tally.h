/* SPDX-License-Identifier: MIT */
/*
 * Regions of known page faults: what each of those called "rN" counted,
 * against the N pages that it touched.
 */
#ifndef SUPPORT_TALLY_H
#define SUPPORT_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include "support/measure.h"

/* Without a PMU's, whose counters others may have. */
#define TALLY_EVENTS  "task-clock,page-faults,context-switches,cpu-migrations"
#define TALLY_OPTIONS "--sources", "perf", "-e", TALLY_EVENTS
#define TALLY_ENV     "JPHASE_SOURCES=perf", "JPHASE_EVENTS=" TALLY_EVENTS

struct tally {
	size_t regions;
	size_t right;
	size_t off_by_one;
	size_t wrong;
	size_t sampled;  /* regions with both boundaries sampled */
	size_t late;     /* in exact mode: regions of which a boundary was not sampled */
	size_t without;  /* regions without counters */
	size_t unwaited; /* markers that did not wait for their counters, though they should */
	size_t cold;     /* of them, those of regions that warm up, without which all is open */
	uint64_t lost;   /* markers that found no room */
	uint64_t lost_samples; /* of those that did */
	char mode[16];
	char notes[4096];
};

/* The test fails if the file is not a recording. */
struct tally tally_of(const char *file);

/*
 * Measures until no marker gave up waiting, and tallies what came; the test is
 * skipped on a machine that is too busy each time.
 */
struct tally tally_calmly(struct measured *m);

/* Skips the test where the kernel samples nothing, and says why. */
void tally_need_exact(const struct tally *t);

#endif
