/* SPDX-License-Identifier: MIT */
#include "report/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/perf_scale.h"
#include "report/joules.h"

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
	struct joules *joules; /* NULL: no energy */
	bool sync;
};

/* A counter that is also shown as a share of the time. */
static const struct {
	const char *source;
	const char *counter;
	const char *share;
} shares[] = {
	{ "cgroup", "proc_usage_usec", "proc_cpu_usage" },
	{ "cgroup", "global_usage_usec", "global_cpu_usage" },
};

/* --- readings --- */

static const struct reading *snap_reading(const struct snap *snap, size_t reader)
{
	return snap && snap->reading[reader].values ? &snap->reading[reader] : NULL;
}

static const struct reading *boundary_reading(const struct boundary *b, size_t reader)
{
	const struct reading *own = snap_reading(b->own, reader);

	return own ? own : snap_reading(b->session, reader);
}

static bool boundary_has_reading(const struct outputs *o, const struct boundary *b)
{
	for (size_t i = 0; i < o->header->reader_count; i++)
		if (boundary_reading(b, i))
			return true;
	return false;
}

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

/* Why a number that was expected is not there. */
static const char *missing_reason(const struct fill *f)
{
	if (f->output->absent)
		return f->output->absent;
	if (f->interval->reason)
		return f->interval->reason;
	return f->begin && f->end ? "it could not be read" : "no reading at the boundary";
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
		set_null(v, "its group never ran in this phase");
		return;
	}
	/* Over several CPUs each was scaled by its own times as it was read. */
	set_counted(f, v, f->info->kind == METRIC_SCALED ? raw : scaled);
	if (t.running < t.enabled) {
		v->coverage = (double)t.running / (double)t.enabled;
		v->flags |= VALUE_SCALED;
	}
}

/* --- how values come about --- */

static void fill_difference(const struct fill *f, struct value *v)
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

static void fill_end(const struct fill *f, struct value *v)
{
	uint64_t number = value_at(f->end, f->metric);

	if (number == VALUE_ABSENT)
		set_null(v, missing_reason(f));
	else
		set_counted(f, v, number);
}

static struct range gauge_range(const struct fill *f)
{
	const struct outputs *o = f->outputs;
	struct range range = { VALUE_ABSENT, 0 };
	struct range more = range;

	if (f->interval->ranges)
		range = f->interval->ranges[o->base[f->reader] + f->metric];
	if (value_at(f->begin, f->metric) != VALUE_ABSENT) {
		more.least = more.most = f->begin->values[f->metric];
		ranges_merge(&range, &more, 1);
	}
	if (value_at(f->end, f->metric) != VALUE_ABSENT) {
		more.least = more.most = f->end->values[f->metric];
		ranges_merge(&range, &more, 1);
	}
	return range;
}

static void set_gauge(const struct fill *f, struct value *v, bool seen, uint64_t number)
{
	if (!seen) {
		set_null(v, missing_reason(f));
		return;
	}
	set_counted(f, v, number);
	v->flags |= VALUE_STEPS;
}

static void fill_least(const struct fill *f, struct value *v)
{
	struct range range = gauge_range(f);

	set_gauge(f, v, range.least != VALUE_ABSENT, range.least);
}

static void fill_most(const struct fill *f, struct value *v)
{
	struct range range = gauge_range(f);

	set_gauge(f, v, range.least != VALUE_ABSENT, range.most);
}

/* Each reading tells of the time since the one before, so the first one is left out. */
static void fill_peak(const struct fill *f, struct value *v)
{
	const struct range *range = f->interval->ranges;

	if (range)
		range += f->outputs->base[f->reader] + f->metric;
	if (range && range->least != VALUE_ABSENT)
		set_counted(f, v, range->most);
	else
		set_null(v, missing_reason(f));
}

/* µs of a counter as hundredths of a percent of the time between its two readings. */
static void fill_share(const struct fill *f, struct value *v)
{
	uint64_t used;
	uint64_t passed;

	if (!difference(f, f->metric, &used, v))
		return;
	passed = saturating_sub(f->end->begin_ns, f->begin->begin_ns);
	if (passed == 0)
		set_null(v, "no time passed between its readings");
	else
		set_counted(f, v, (uint64_t)((unsigned __int128)used * 10000000u / passed));
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

static void fill_parts(const struct fill *f, struct value *v)
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
static void fill_part(const struct fill *f, struct value *v)
{
	struct times t;
	uint64_t all;
	uint64_t raw;

	if (!difference(f, f->metric, &raw, v))
		return;
	if (parts_sum(f, &all, &t, v))
		set_scaled(f, v, raw, t);
}

/* --- delays --- */

static bool boundary_is_exact(const struct outputs *o, const struct boundary *b, size_t reader)
{
	return o->sync && b->waited && o->header->readers[reader].critical;
}

static uint64_t boundary_delay_us(const struct outputs *o, const struct boundary *b,
	const struct reading *reading, size_t reader)
{
	if (!reading || boundary_is_exact(o, b, reader))
		return 0;
	return (saturating_sub(reading->begin_ns, b->time_ns) + 500) / NSEC_PER_USEC;
}

static void set_delay(const struct fill *f, struct value *v)
{
	const struct boundary *begin = f->interval->begin;
	const struct boundary *end = f->interval->end;
	uint64_t delay = MAX(boundary_delay_us(f->outputs, begin, f->begin, f->reader),
		boundary_delay_us(f->outputs, end, f->end, f->reader));

	if (v->state != VALUE_COUNTED || (boundary_is_exact(f->outputs, begin, f->reader) &&
						 boundary_is_exact(f->outputs, end, f->reader)))
		return;
	v->flags |= VALUE_LATE;
	v->delay_us = (uint32_t)MIN(delay, (uint64_t)UINT32_MAX);
}

bool outputs_fill(const struct outputs *o, const struct interval *interval, struct value *values)
{
	if (!boundary_has_reading(o, interval->begin) && !boundary_has_reading(o, interval->end))
		return false;
	for (size_t i = 0; i < o->count; i++) {
		const struct output *out = &o->list[i];
		struct fill f = {
			.outputs = o,
			.interval = interval,
			.output = out,
			.reader = out->reader,
			.metric = out->metric,
			.info = &o->header->readers[out->reader].metrics.metric[out->metric],
			.begin = boundary_reading(interval->begin, out->reader),
			.end = boundary_reading(interval->end, out->reader),
		};

		out->fill(&f, &values[out->column]);
		set_delay(&f, &values[out->column]);
	}
	joules_fill(o->joules, interval, values);
	return true;
}

/* --- ranges --- */

void ranges_clear(struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct range){ VALUE_ABSENT, 0 };
}

void ranges_merge(struct range *into, const struct range *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		into[i].least = MIN(into[i].least, from[i].least);
		into[i].most = MAX(into[i].most, from[i].most);
	}
}

static void widen(const struct outputs *o, enum metric_kind kind, size_t reader,
	const uint64_t *values, struct range *ranges)
{
	const struct metric_list *list = &o->header->readers[reader].metrics;
	struct range *range = ranges + o->base[reader];

	for (size_t i = 0; i < list->count; i++) {
		struct range seen = { values[i], values[i] };

		if (list->metric[i].kind == kind && values[i] != VALUE_ABSENT)
			ranges_merge(&range[i], &seen, 1);
	}
}

void outputs_widen(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges)
{
	widen(o, METRIC_GAUGE, reader, values, ranges);
}

bool outputs_has_peaks(const struct outputs *o, size_t reader)
{
	const struct metric_list *list = &o->header->readers[reader].metrics;

	for (size_t i = 0; i < list->count; i++)
		if (list->metric[i].kind == METRIC_PEAK_SINCE)
			return true;
	return false;
}

void outputs_widen_peaks(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges)
{
	widen(o, METRIC_PEAK_SINCE, reader, values, ranges);
}

void outputs_widen_boundary(const struct outputs *o, const struct boundary *b, struct range *ranges)
{
	for (size_t i = 0; i < o->header->reader_count; i++) {
		const struct reading *reading = boundary_reading(b, i);

		if (reading)
			outputs_widen(o, i, reading->values, ranges);
	}
}

size_t outputs_values(const struct outputs *o)
{
	return o->columns;
}

size_t outputs_ranges(const struct outputs *o)
{
	return o->ranges;
}

/* --- which columns there are --- */

struct builder {
	struct model *model;
	struct run *run;
	struct outputs *outputs;
	size_t reader;
	size_t metric;
	const char *source;
	const struct metric *info;
};

int run_knows(struct run *run, size_t column, const char *absent)
{
	if (column >= run->column_count) {
		struct run_column *grown =
			reallocarray(run->columns, column + 1, sizeof(*run->columns));

		if (!grown)
			return -ENOMEM;
		memset(grown + run->column_count, 0,
			(column + 1 - run->column_count) * sizeof(*grown));
		run->columns = grown;
		run->column_count = column + 1;
	}
	run->columns[column] = (struct run_column){ .known = true, .absent = absent };
	return 0;
}

static int pool_put_or_null(struct pool *pool, const char *text, const char **ret)
{
	*ret = text ? pool_put(pool, text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int add_output(const struct builder *b, const char *name, enum metric_unit unit,
	enum column_sum sum, fill_fn fill)
{
	struct column column = { name, b->source, unit, sum };
	struct outputs *o = b->outputs;
	struct output out = { .fill = fill, .reader = b->reader, .metric = b->metric };
	int err;

	err = model_column(b->model, &column, &out.column);
	if (err == 0)
		err = pool_put_or_null(b->model->pool, b->info->note, &out.note);
	if (err == 0)
		err = pool_put_or_null(b->model->pool, b->info->absent, &out.absent);
	if (out.absent)
		out.absent = reason_bare(out.absent);
	if (err == 0)
		err = run_knows(b->run, out.column, out.absent);
	if (err < 0)
		return err;
	if (o->count == o->room) {
		size_t room = o->room ? 2 * o->room : 64;
		struct output *grown = reallocarray(o->list, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		o->list = grown;
		o->room = room;
	}
	o->list[o->count++] = out;
	o->columns = MAX(o->columns, out.column + 1);
	return 0;
}

/* name and its ending as one string of the pool. */
static const char *joined(struct model *m, const char *format, const char *name, const char *end)
{
	const char *kept;
	char *text;

	if (asprintf(&text, format, name, end) < 0)
		return NULL;
	kept = pool_put(m->pool, text);
	free(text);
	return kept;
}

static int add_gauge(const struct builder *b)
{
	const char *least = joined(b->model, "%s_%s", b->info->name, "min");
	const char *most = joined(b->model, "%s_%s", b->info->name, "max");
	int err;

	if (!least || !most)
		return -ENOMEM;
	err = add_output(b, least, b->info->unit, COLUMN_LEAST, fill_least);
	return err < 0 ? err : add_output(b, most, b->info->unit, COLUMN_MOST, fill_most);
}

static bool is_first_part(const struct builder *b)
{
	const struct metric_list *list = &b->outputs->header->readers[b->reader].metrics;

	for (size_t i = 0; i < b->metric; i++)
		if (list->metric[i].part && str_eq(list->metric[i].name, b->info->name))
			return false;
	return true;
}

static int add_part(const struct builder *b, const char *name)
{
	const char *part = joined(b->model, "%s (%s)", name, b->info->part);
	int err = 0;

	if (!part)
		return -ENOMEM;
	if (is_first_part(b))
		err = add_output(b, name, b->info->unit, COLUMN_ADD, fill_parts);
	return err < 0 ? err : add_output(b, part, b->info->unit, COLUMN_ADD, fill_part);
}

static int add_counter(const struct builder *b, const char *name)
{
	int err = add_output(b, name, b->info->unit, COLUMN_ADD, fill_difference);

	for (size_t i = 0; err == 0 && i < ARRAY_SIZE(shares); i++)
		if (str_eq(shares[i].source, b->source) && str_eq(shares[i].counter, name))
			err = add_output(
				b, shares[i].share, UNIT_PERCENT, COLUMN_SHARE, fill_share);
	return err;
}

/* What the values come from, as reports call it. */
static const char *source_name(const struct builder *b)
{
	const char *reader = b->outputs->header->readers[b->reader].name;

	if (b->info->source)
		return b->info->source;
	return str_eq(reader, "perf") ? "perf_event" : reader;
}

static int add_metric(struct builder *b)
{
	const char *name = pool_put(b->model->pool, b->info->name);

	b->source = pool_put(b->model->pool, source_name(b));
	if (!name || !b->source)
		return -ENOMEM;
	if (b->info->kind == METRIC_GAUGE)
		return add_gauge(b);
	if (b->info->kind == METRIC_PEAK)
		return add_output(b, name, b->info->unit, COLUMN_MOST, fill_end);
	if (b->info->kind == METRIC_PEAK_SINCE)
		return add_output(b, name, b->info->unit, COLUMN_MOST, fill_peak);
	return b->info->part ? add_part(b, name) : add_counter(b, name);
}

static int add_reader(struct builder *b)
{
	const struct decoded_reader *reader = &b->outputs->header->readers[b->reader];
	int err = 0;

	b->outputs->base[b->reader] = b->outputs->ranges;
	b->outputs->ranges += reader->metrics.count;
	for (b->metric = 0; err == 0 && b->metric < reader->metrics.count; b->metric++) {
		b->info = &reader->metrics.metric[b->metric];
		err = add_metric(b);
	}
	return err;
}

int outputs_open(
	struct model *m, struct run *run, const struct decoded_header *header, struct outputs **ret)
{
	struct builder b = { .model = m, .run = run };
	int err = 0;

	b.outputs = calloc(1, sizeof(*b.outputs));
	if (!b.outputs)
		return -ENOMEM;
	b.outputs->header = header;
	b.outputs->sync = !str_eq(header->mode, "async");
	b.outputs->base = calloc(header->reader_count + 1, sizeof(*b.outputs->base));
	if (!b.outputs->base)
		err = -ENOMEM;
	for (b.reader = 0; err == 0 && b.reader < header->reader_count; b.reader++)
		err = add_reader(&b);
	if (err == 0)
		err = joules_open(m, run, header, &b.outputs->joules);
	b.outputs->columns = MAX(b.outputs->columns, joules_columns(b.outputs->joules));
	if (err < 0) {
		outputs_close(b.outputs);
		return err;
	}
	*ret = b.outputs;
	return 0;
}

struct outputs *outputs_close(struct outputs *o)
{
	if (!o)
		return NULL;
	joules_close(o->joules);
	free(o->list);
	free(o->base);
	free(o);
	return NULL;
}
