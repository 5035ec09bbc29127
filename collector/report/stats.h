/* SPDX-License-Identifier: MIT */
/*
 * How phases of one name differ from each other, and regions of the same names
 * in the same nesting: over all processes, threads and runs of a model.
 */
#ifndef REPORT_STATS_H
#define REPORT_STATS_H

#include "report/model.h"

struct stats_group {
	const char *name;
	bool of_regions;
	size_t parent; /* of a region's group, or MODEL_NONE */
	uint32_t depth;
	bool is_short; /* one of them, as a row's or a node's */
	bool is_late;
	size_t count;
	size_t first; /* among the members */
};

enum stats_kind {
	STATS_TIME,
	STATS_OWN_TIME, /* of regions: without the regions within */
	STATS_COLUMN,
};

/* One quantity of one group. */
struct stats_line {
	enum stats_kind kind;
	size_t column; /* of the model; with STATS_COLUMN */
	size_t count;  /* that it is of; the others were not counted, or not on their own */
	/* In the metric's unit; percent as it is.  NaN where there is none. */
	double mean;
	double deviation; /* standard deviation of a sample, from two on */
	double least;
	double median;
	double most;
	struct value worst; /* flags, coverage, delay and note of all; of no count: why */
};

struct stats {
	const struct model *model;
	struct stats_group *groups; /* phases by their first; then regions, parents first */
	size_t group_count;
	size_t *members; /* rows or regions, group by group */
	double *numbers; /* of one line */
};

/* Of a model that was finished by phase.  0 or -ENOMEM; to be cleared in either case. */
int stats_make(const struct model *m, struct stats *ret);
void stats_clear(struct stats *s);

/* False: its recordings do not know that quantity. */
bool stats_line(const struct stats *s, const struct stats_group *g, enum stats_kind kind,
	size_t column, struct stats_line *ret);

const char *stats_line_name(const struct stats *s, const struct stats_line *l);
enum metric_unit stats_line_unit(const struct stats *s, const struct stats_line *l);

#endif
