/* SPDX-License-Identifier: MIT */
/* What outputs are made of: each is one column of one recording and how it is computed. */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"
#include "report/model.h"
#include "report/outputs.h"
#include "report/snapshots.h"

struct output;

/* What an output's function works on. */
struct fill {
	const struct outputs *outputs;
	const struct interval *interval;
	const struct output *output;
	size_t reader;
	size_t metric;
	const struct metric *info;
	const struct reading *begin; /* NULL: not read */
	const struct reading *end;
};

typedef void (*fill_fn)(const struct fill *f, struct value *ret);

struct output {
	fill_fn fill;
	size_t column;
	size_t reader;
	size_t metric;
	size_t processes; /* of a size: the metric that tells of how many it is, from 1; or 0 */
	const char *note; /* these two are of the model's pool; or NULL */
	const char *absent;
};

struct outputs {
	const struct decoded_header *header;
	struct output *list;
	size_t count;
	size_t room;
	size_t columns; /* one more than the largest index */
	size_t *base;   /* of each reader's ranges */
	size_t ranges;
	size_t *thread_base; /* of each reader's values in a delta */
	size_t thread_values;
	uint64_t *zeros;       /* as many as that */
	struct joules *joules; /* NULL: no energy */
	bool sync;
};

/* NULL: that reader was not read there. */
const struct reading *boundary_reading(const struct boundary *b, size_t reader);

/* What a counter counted. */
void fill_difference(const struct fill *f, struct value *v);
/* What stood at the end. */
void fill_end(const struct fill *f, struct value *v);
/* The range of a gauge. */
void fill_least(const struct fill *f, struct value *v);
void fill_most(const struct fill *f, struct value *v);
/* The highest of readings that begin anew each time. */
void fill_peak(const struct fill *f, struct value *v);
/* A counter of µs as a share of the time. */
void fill_share(const struct fill *f, struct value *v);
/* The parts of a metric on the core types of one machine: their sum, and one of them. */
void fill_parts(const struct fill *f, struct value *v);
void fill_part(const struct fill *f, struct value *v);

/* Makes the columns of all readers; o has its header. */
int outputs_make_columns(struct model *m, struct run *run, struct outputs *o);

#endif
