/* SPDX-License-Identifier: MIT */
/*
 * From two snapshots to the values of a row: which columns a recording's
 * metrics become, and how each is computed.
 */
#ifndef REPORT_OUTPUTS_H
#define REPORT_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder.h"
#include "report/model.h"
#include "report/snapshots.h"

/* What a gauge was seen to be; least is VALUE_ABSENT while nothing was seen. */
struct range {
	uint64_t least;
	uint64_t most;
};

struct boundary {
	uint64_t time_ns;
	uint64_t number; /* 0: no snapshot */
	struct snap *own;
	struct snap *session;
	bool waited; /* critical readers were read while the marker waited */
};

struct interval {
	const struct boundary *begin;
	const struct boundary *end;
	const struct range *ranges; /* between the boundaries; or NULL */
	const char *reason;         /* why this process is not counted, or NULL */
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

void ranges_clear(struct range *ranges, size_t count);
void ranges_merge(struct range *into, const struct range *from, size_t count);
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

/* The run has this column of the model; absent, of the pool: why it is never counted, or NULL. */
int run_knows(struct run *run, size_t column, const char *absent);

struct outputs *outputs_close(struct outputs *o);

#endif
