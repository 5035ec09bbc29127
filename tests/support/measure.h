/* SPDX-License-Identifier: MIT */
/* Measures a program as a user would, and reads the recording back. */
#ifndef SUPPORT_MEASURE_H
#define SUPPORT_MEASURE_H

#include <stdint.h>

#include "report/model.h"
#include "support/proc.h"

enum way {
	WAY_RUN,     /* jphase run -o FILE OPTIONS -- PROGRAM */
	WAY_PRELOAD, /* LD_PRELOAD=libjphase.so PROGRAM, options as variables */
};

struct measured {
	enum way way;
	const char
		*through[24]; /* for WAY_RUN: what starts it, as "setpriv", ...; ends with NULL */
	const char *options[16]; /* for WAY_RUN: "--mode", "async"; ends with NULL */
	const char *env[16];     /* for both: "JPHASE_MODE=async"; ends with NULL */
	const char *argv[24];    /* the program; ends with NULL */
	const char *cwd;         /* NULL: the folder below */

	struct child child; /* how it went */
	char *dir;          /* a folder of its own */
	char *file;         /* the recording */
	struct model *model;
};

/*
 * Runs the program, waits for the recording to be complete, loads it.  The
 * test fails if anything goes wrong but the program's own exit status.
 */
void measure(struct measured *m);

/*
 * False: a marker has given up waiting for its counters, since the machine was
 * too busy, and what came then is late or lost.
 */
bool measure_was_calm(const struct measured *m);

/* Measures until it was calm; the test is skipped if it never is. */
void measure_calmly(struct measured *m);

/* The first and the second half of it, for a test that does something in between. */
void measure_start(struct measured *m);
void measure_finish(struct measured *m);

/* The collector that writes this recording, or 0. */
pid_t collector_of(const char *file);
/* Waits for it; the test fails after 5 s. */
pid_t wait_for_collector(const char *file);

/* Loads the recording again. */
void measure_load(struct measured *m);

void measure_clear(struct measured *m);

/* Waits until no collector holds the file any more; the test fails after 10 s. */
void wait_for_recording(const char *file);

/* The n-th (from 0) phase of that name, of any process; the test fails without. */
const struct row *phase_at(const struct measured *m, const char *name, size_t n);
size_t phase_count(const struct measured *m, const char *name);

/* The value of a metric, which must be counted. */
uint64_t counted(const struct measured *m, const struct row *row, const char *metric);

/* The value, whatever its state. */
struct value value_of(const struct measured *m, const struct row *row, const char *metric);

/* Skips the test where the kernel refuses to count in the kernel itself. */
void need_perf(void);

#endif
