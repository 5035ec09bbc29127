/* SPDX-License-Identifier: MIT */
/* How values come about. */
#include "internal/util.h"
#include "readers/perf_scale.h"
#include "report/output.h"

static void set_null(struct value *v, const char *why)
{
	*v = (struct value){ .state = VALUE_NULL, .note = why };
}

static void set_counted(const struct fill *f, struct value *v, uint64_t number)
{
	*v = (struct value){
		.state = VALUE_COUNTED, .number = number, .coverage = 1, .note = f->output->note
	};
}

/* What such notes say of a metric is also why it may be missing. */
static const char *const explanations[] = { "counted while", "read now and then" };

static const char *note_as_reason(const char *note)
{
	for (size_t i = 0; note && i < ARRAY_SIZE(explanations); i++)
		if (strstr(note, explanations[i]))
			return note;
	return "it could not be read";
}

/* Why a number that was expected is not there. */
static const char *missing_reason(const struct fill *f)
{
	const char *reader = f->outputs->header->readers[f->reader].name;

	if (f->output->absent)
		return f->output->absent;
	if (f->interval->reason)
		return f->interval->reason;
	if (!f->begin || !f->end)
		return "no reading at the boundary";
	if (f->info->scope == SCOPE_GROUP && str_eq(reader, "cgroup"))
		return "the program's cgroup did not give it";
	return note_as_reason(f->output->note);
}

static uint64_t value_at(const struct reading *reading, size_t i)
{
	return reading ? reading->values[i] : VALUE_ABSENT;
}

/* False, with the reason in v, where there is no difference. */
static bool difference(const struct fill *f, size_t metric, uint64_t *ret, struct value *v)
{
	uint64_t begin = value_at(f->begin, metric);
	uint64_t end = value_at(f->end, metric);

	if (begin == VALUE_ABSENT || end == VALUE_ABSENT) {
		set_null(v, missing_reason(f));
		return false;
	}
	if (end < begin) {
		set_null(v, "the counter went back");
		return false;
	}
	*ret = end - begin;
	return true;
}

struct times {
	uint64_t enabled;
	uint64_t running;
};

static bool group_times(const struct fill *f, int group, struct times *ret)
{
	const struct metric_list *list = &f->outputs->header->readers[f->reader].metrics;
	size_t at = list->count + 2 * (size_t)group;

	if (value_at(f->begin, at) == VALUE_ABSENT || value_at(f->end, at) == VALUE_ABSENT ||
		value_at(f->begin, at + 1) == VALUE_ABSENT ||
		value_at(f->end, at + 1) == VALUE_ABSENT)
		return false;
	ret->enabled = saturating_sub(f->end->values[at], f->begin->values[at]);
	ret->running = saturating_sub(f->end->values[at + 1], f->begin->values[at + 1]);
	return true;
}

/* A difference that was counted during a part of the time alone. */
static void set_scaled(const struct fill *f, struct value *v, uint64_t raw, struct times t)
{
	uint64_t scaled = perf_scale(raw, t.enabled, t.running);

	if (scaled == VALUE_ABSENT) {
		set_null(v, f->interval->of_thread ? "its group never ran in this region"
						   : "its group never ran in this phase");
		return;
	}
	/* Over several CPUs each was scaled by its own times as it was read. */
	set_counted(f, v, f->info->kind == METRIC_SCALED ? raw : scaled);
	if (t.running < t.enabled) {
		v->coverage = (double)t.running / (double)t.enabled;
		v->flags |= VALUE_SCALED;
	}
}

void fill_difference(const struct fill *f, struct value *v)
{
	struct times t = { 0, 0 };
	uint64_t raw;

	if (!difference(f, f->metric, &raw, v))
		return;
	if (f->info->group != METRIC_NO_GROUP && !group_times(f, f->info->group, &t)) {
		set_null(v, missing_reason(f));
		return;
	}
	set_scaled(f, v, raw, t);
}

void fill_end(const struct fill *f, struct value *v)
{
	uint64_t number = value_at(f->end, f->metric);

	if (number == VALUE_ABSENT)
		set_null(v, missing_reason(f));
	else
		set_counted(f, v, number);
}

static struct range gauge_range(const struct fill *f, size_t metric)
{
	const struct outputs *o = f->outputs;
	struct range range = { VALUE_ABSENT, 0 };
	struct range more = range;

	if (f->interval->ranges)
		range = f->interval->ranges[o->base[f->reader] + metric];
	if (value_at(f->begin, metric) != VALUE_ABSENT) {
		more.least = more.most = f->begin->values[metric];
		ranges_merge(&range, &more, 1);
	}
	if (value_at(f->end, metric) != VALUE_ABSENT) {
		more.least = more.most = f->end->values[metric];
		ranges_merge(&range, &more, 1);
	}
	return range;
}

static bool is_summed(const struct fill *f)
{
	size_t metric = f->output->processes;

	return metric && gauge_range(f, metric - 1).most > 1;
}

static void set_gauge(const struct fill *f, struct value *v, bool seen, uint64_t number)
{
	if (!seen) {
		set_null(v, missing_reason(f));
		return;
	}
	set_counted(f, v, number);
	v->flags |= VALUE_STEPS | (is_summed(f) ? VALUE_SUMMED : 0);
}

void fill_least(const struct fill *f, struct value *v)
{
	struct range range = gauge_range(f, f->metric);

	set_gauge(f, v, range.least != VALUE_ABSENT, range.least);
}

void fill_most(const struct fill *f, struct value *v)
{
	struct range range = gauge_range(f, f->metric);

	set_gauge(f, v, range.least != VALUE_ABSENT, range.most);
}

/* Each reading tells of the time since the one before, so the first one is left out. */
void fill_peak(const struct fill *f, struct value *v)
{
	const struct range *range = f->interval->ranges;

	if (range)
		range += f->outputs->base[f->reader] + f->metric;
	if (range && range->least != VALUE_ABSENT)
		set_counted(f, v, range->most);
	else
		set_null(v, missing_reason(f));
}

/* The root group's usage is brought up to date by the timer's interrupt alone. */
#define ROOT_STEP_NS (4 * NSEC_PER_MSEC)

/* A share is shown from that many steps on. */
#define STEPS_LEAST 10

/* The machine's root; that of a container has a note and counts as any other group. */
static bool is_root(const struct metric *m)
{
	return m->scope == SCOPE_GLOBAL && !m->note;
}

/* Where the program's group is the root, its values are copies of the root's. */
static bool is_copy_of_root(const struct fill *f)
{
	const struct metric_list *list = &f->outputs->header->readers[f->reader].metrics;
	const char *name = strchr(f->info->name, '_');

	for (size_t i = 0; name && i < list->count; i++) {
		const struct metric *m = &list->metric[i];
		const char *other = strchr(m->name, '_');

		if (is_root(m) && other && str_eq(other, name))
			return f->begin->values[i] == f->begin->values[f->metric] &&
			       f->end->values[i] == f->end->values[f->metric];
	}
	return false;
}

static uint64_t usage_step(const struct fill *f)
{
	return is_root(f->info) || is_copy_of_root(f) ? ROOT_STEP_NS : 0;
}

static uint64_t percent_of(uint64_t used_us, uint64_t passed_ns)
{
	return (uint64_t)((unsigned __int128)used_us * 10000000u / passed_ns);
}

/* The time that may have passed at most between the two moments that were read. */
static uint64_t passed_at_most(const struct fill *f)
{
	uint64_t last = MAX(f->end->begin_ns, f->end->end_ns);

	return saturating_sub(last, f->begin->begin_ns);
}

/* µs of a counter as hundredths of a percent of the time between its two readings. */
void fill_share(const struct fill *f, struct value *v)
{
	uint64_t full = f->outputs->header->cpus * 10000;
	uint64_t used, passed, step;

	if (!difference(f, f->metric, &used, v))
		return;
	passed = saturating_sub(f->end->begin_ns, f->begin->begin_ns);
	step = usage_step(f);
	if (passed == 0) {
		set_null(v, "no time passed between its readings");
	} else if (passed < STEPS_LEAST * step) {
		set_null(v, "shorter than ten of the 4 ms steps of the machine's CPU time");
	} else if (full && percent_of(used, passed_at_most(f) + step) > full) {
		set_null(v, "more than all CPUs can have worked between its readings");
	} else {
		set_counted(f, v, percent_of(used, passed));
		v->number = full ? MIN(v->number, full) : v->number;
		v->error = v->number * step / passed;
		v->step_us = (uint32_t)(step / NSEC_PER_USEC);
		v->flags |= step ? VALUE_COARSE : 0;
	}
}

/* The parts of a metric on the core types of one machine: counts and times of all. */
static bool parts_sum(const struct fill *f, uint64_t *ret_raw, struct times *ret, struct value *v)
{
	const struct metric_list *list = &f->outputs->header->readers[f->reader].metrics;
	bool any = false;

	*ret_raw = 0;
	*ret = (struct times){ 0, 0 };
	for (size_t i = 0; i < list->count; i++) {
		const struct metric *m = &list->metric[i];
		struct times t = { 0, 0 };
		uint64_t raw;

		if (!m->part || m->absent || !str_eq(m->name, f->info->name))
			continue;
		if (!difference(f, i, &raw, v))
			return false;
		if (m->group != METRIC_NO_GROUP && !group_times(f, m->group, &t)) {
			set_null(v, missing_reason(f));
			return false;
		}
		*ret_raw += raw;
		ret->enabled = MAX(ret->enabled, t.enabled);
		ret->running += t.running;
		any = true;
	}
	if (!any)
		set_null(v, missing_reason(f));
	return any;
}

void fill_parts(const struct fill *f, struct value *v)
{
	struct times t;
	uint64_t raw;

	if (parts_sum(f, &raw, &t, v))
		set_scaled(f, v, raw, t);
}

/*
 * A part alone did not run while the work was on the other cores: that is no
 * loss.  Only what all parts together missed is made up for.
 */
void fill_part(const struct fill *f, struct value *v)
{
	struct times t;
	uint64_t all;
	uint64_t raw;

	if (!difference(f, f->metric, &raw, v))
		return;
	if (parts_sum(f, &all, &t, v))
		set_scaled(f, v, raw, t);
}
