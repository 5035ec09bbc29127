/* SPDX-License-Identifier: MIT */
/*
 * From two boundaries to values: which columns a recording's metrics become,
 * and how each is computed.
 */
#ifndef REPORT_OUTPUTS_H
#define REPORT_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder.h"
#include "report/model.h"
#include "report/ranges.h"
#include "report/snapshots.h"

struct boundary {
	uint64_t time_ns;
	uint64_t number;  /* 0: no snapshot */
	struct snap *own; /* of the process or the thread */
	struct snap *session;
	bool waited; /* critical readers were read while the marker waited */
};

struct interval {
	const struct boundary *begin;
	const struct boundary *end;
	const struct range *ranges; /* between the boundaries; or NULL */
	const char *reason;         /* why this process is not counted, or NULL */
	bool of_thread;             /* a region: what one thread counted */
};

struct outputs;

/* Makes the columns in the model.  header must live as long as the outputs. */
int outputs_open(struct model *m, struct run *run, const struct decoded_header *header,
	struct outputs **ret);

/* Room for this many values and ranges. */
size_t outputs_values(const struct outputs *o);
size_t outputs_ranges(const struct outputs *o);

/* False, with nothing filled in, where neither boundary holds any reading. */
bool outputs_fill(const struct outputs *o, const struct interval *interval, struct value *values);

/* How the counters that matter most were taken at that boundary. */
struct taken outputs_taken(const struct outputs *o, const struct boundary *b);

/* That reader counts threads alone: regions have places for its columns from now on. */
void outputs_count_threads(const struct outputs *o, struct run *run, size_t reader);

/*
 * What a thread counted between two boundaries, as it was read: the differences
 * of all values of all readers.  Differences can be added and subtracted.
 */
size_t outputs_delta_values(const struct outputs *o);
void outputs_delta(const struct outputs *o, const struct boundary *begin,
	const struct boundary *end, uint64_t *delta);
/* False: the part is more than the whole. */
bool delta_subtract(uint64_t *delta, const uint64_t *part, size_t count);
void delta_add(uint64_t *delta, const uint64_t *more, size_t count);

/*
 * Values by the places of the run's columns.  delta: what is to be shown in
 * place of the difference of the boundaries, or NULL.
 */
void outputs_fill_thread(const struct outputs *o, const struct run *run,
	const struct interval *interval, uint64_t *delta, struct value *values);

/* Widens the ranges of one reader's gauges. */
void outputs_widen(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges);
/* Has the reader peaks that each reading begins anew?  Widens theirs. */
bool outputs_has_peaks(const struct outputs *o, size_t reader);
void outputs_widen_peaks(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges);
/* Widens the gauges' with all readings of a boundary. */
void outputs_widen_boundary(
	const struct outputs *o, const struct boundary *b, struct range *ranges);

struct outputs *outputs_close(struct outputs *o);

#endif
