/* SPDX-License-Identifier: MIT */
#include "report/merge.h"

#include <math.h>

#include "internal/util.h"

typedef void (*merge_fn)(struct value *into, uint64_t number, double share);

static void merge_add(struct value *into, uint64_t number, double share)
{
	(void)share;
	if (__builtin_add_overflow(into->number, number, &into->number))
		into->number = VALUE_ABSENT - 1;
}

static void merge_least(struct value *into, uint64_t number, double share)
{
	(void)share;
	into->number = MIN(into->number, number);
}

static void merge_most(struct value *into, uint64_t number, double share)
{
	(void)share;
	into->number = MAX(into->number, number);
}

static void merge_share(struct value *into, uint64_t number, double share)
{
	double mean = (double)into->number * (1 - share) + (double)number * share;

	into->number = (uint64_t)llround(MIN(mean, 9e18));
}

static const merge_fn merges[] = {
	[COLUMN_ADD] = merge_add,
	[COLUMN_LEAST] = merge_least,
	[COLUMN_MOST] = merge_most,
	[COLUMN_SHARE] = merge_share,
};

static void merge_error(
	struct value *into, const struct value *v, const struct column *column, double share)
{
	struct value error = { .number = into->error };

	merges[column->sum](&error, v->error, share);
	into->error = error.number;
	into->step_us = MAX(into->step_us, v->step_us);
}

/* share: of v in the time of both. */
static void merge_counted(
	struct value *into, const struct value *v, const struct column *column, double share)
{
	double coverage = into->coverage * (1 - share) + v->coverage * share;

	merges[column->sum](into, v->number, share);
	into->coverage = coverage;
	into->flags |= v->flags;
	merge_error(into, v, column, share);
	into->delay_us = MAX(into->delay_us, v->delay_us);
	if (!into->note)
		into->note = v->note;
	into->without += v->without;
	into->includes += v->includes;
}

/* Of the second in the time of both. */
static double time_share(uint64_t first_ns, uint64_t second_ns)
{
	uint64_t both = first_ns + second_ns;

	return both ? (double)second_ns / (double)both : 0.5;
}

void value_merge(struct value *into, const struct value *v, const struct column *column,
	uint64_t duration_ns)
{
	uint32_t without = into->without;

	if (v->state == VALUE_MISSING)
		return;
	if (into->state == VALUE_MISSING) {
		*into = *v;
		into->without = v->state == VALUE_NULL;
	} else if (v->state == VALUE_NULL) {
		into->without++;
		return;
	} else if (into->state == VALUE_NULL) {
		*into = *v;
		into->without = without;
	} else {
		merge_counted(into, v, column, time_share(into->over_ns, duration_ns));
		duration_ns += into->over_ns;
	}
	into->over_ns = duration_ns;
}
