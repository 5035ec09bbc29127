/* SPDX-License-Identifier: MIT */
#include "report/outputs.h"

#include <errno.h>
#include <stdlib.h>

#include "internal/util.h"
#include "report/joules.h"
#include "report/output.h"

/* --- readings --- */

static const struct reading *snap_reading(const struct snap *snap, size_t reader)
{
	return snap && snap->reading[reader].values ? &snap->reading[reader] : NULL;
}

const struct reading *boundary_reading(const struct boundary *b, size_t reader)
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

/* --- how boundaries were taken --- */

static struct taken reading_taken(const struct outputs *o, const struct boundary *b,
	const struct reading *reading, size_t reader)
{
	if (reading && reading->sampled)
		return (struct taken){ .how = TAKEN_EXACT };
	if (o->sync && b->waited && o->header->readers[reader].critical)
		return (struct taken){ .how = TAKEN_SYNC };
	if (!reading)
		return (struct taken){ .how = TAKEN_NOT };
	return (struct taken){ TAKEN_LATE, saturating_sub(reading->begin_ns, b->time_ns) };
}

struct taken outputs_taken(const struct outputs *o, const struct boundary *b)
{
	struct taken first = { .how = TAKEN_NOT };

	for (size_t i = 0; i < o->header->reader_count; i++) {
		const struct reading *reading = boundary_reading(b, i);

		if (reading && o->header->readers[i].critical)
			return reading_taken(o, b, reading, i);
		if (reading && first.how == TAKEN_NOT)
			first = reading_taken(o, b, reading, i);
	}
	return first;
}

static void set_delay(const struct fill *f, struct value *v)
{
	struct taken begin = reading_taken(f->outputs, f->interval->begin, f->begin, f->reader);
	struct taken end = reading_taken(f->outputs, f->interval->end, f->end, f->reader);
	uint64_t delay = (MAX(begin.delay_ns, end.delay_ns) + 500) / NSEC_PER_USEC;

	if (v->state != VALUE_COUNTED)
		return;
	if (begin.how == TAKEN_LATE || end.how == TAKEN_LATE) {
		v->flags |= VALUE_LATE;
		v->delay_us = (uint32_t)MIN(delay, (uint64_t)UINT32_MAX);
	} else if (f->interval->of_thread && (begin.how == TAKEN_SYNC || end.how == TAKEN_SYNC)) {
		v->flags |= VALUE_SYNC;
	}
}

/* --- values --- */

static struct fill fill_of(
	const struct outputs *o, const struct interval *interval, const struct output *out)
{
	return (struct fill){
		.outputs = o,
		.interval = interval,
		.output = out,
		.reader = out->reader,
		.metric = out->metric,
		.info = &o->header->readers[out->reader].metrics.metric[out->metric],
		.begin = boundary_reading(interval->begin, out->reader),
		.end = boundary_reading(interval->end, out->reader),
	};
}

bool outputs_fill(const struct outputs *o, const struct interval *interval, struct value *values)
{
	if (!boundary_has_reading(o, interval->begin) && !boundary_has_reading(o, interval->end))
		return false;
	for (size_t i = 0; i < o->count; i++) {
		struct fill f = fill_of(o, interval, &o->list[i]);
		struct value *v = &values[o->list[i].column];

		o->list[i].fill(&f, v);
		set_delay(&f, v);
	}
	joules_fill(o->joules, interval, values);
	return true;
}

size_t outputs_values(const struct outputs *o)
{
	return o->columns;
}

size_t outputs_ranges(const struct outputs *o)
{
	return o->ranges;
}

/* --- threads alone --- */

/* What a thread alone can have: a gauge or a peak is its process's. */
static bool is_of_threads(const struct output *out)
{
	return out->fill == fill_difference || out->fill == fill_parts || out->fill == fill_part;
}

void outputs_count_threads(const struct outputs *o, struct run *run, size_t reader)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->list[i].reader == reader && is_of_threads(&o->list[i]))
			run_place(run, o->list[i].column);
}

size_t outputs_delta_values(const struct outputs *o)
{
	return o->thread_values;
}

static uint64_t difference_of(uint64_t begin, uint64_t end)
{
	return begin == VALUE_ABSENT || end == VALUE_ABSENT || end < begin ? VALUE_ABSENT
									   : end - begin;
}

void outputs_delta(const struct outputs *o, const struct boundary *begin,
	const struct boundary *end, uint64_t *delta)
{
	for (size_t r = 0; r < o->header->reader_count; r++) {
		const struct reading *from = boundary_reading(begin, r);
		const struct reading *to = boundary_reading(end, r);
		size_t count = metric_list_values(&o->header->readers[r].metrics);

		for (size_t i = 0; i < count; i++)
			delta[o->thread_base[r] + i] =
				from && to ? difference_of(from->values[i], to->values[i])
					   : VALUE_ABSENT;
	}
}

bool delta_subtract(uint64_t *delta, const uint64_t *part, size_t count)
{
	bool fits = true;

	for (size_t i = 0; i < count; i++) {
		if (delta[i] == VALUE_ABSENT)
			continue;
		fits &= part[i] == VALUE_ABSENT || part[i] <= delta[i];
		delta[i] = difference_of(part[i], delta[i]);
	}
	return fits;
}

void delta_add(uint64_t *delta, const uint64_t *more, size_t count)
{
	for (size_t i = 0; i < count; i++)
		delta[i] = delta[i] == VALUE_ABSENT || more[i] == VALUE_ABSENT ? VALUE_ABSENT
									       : delta[i] + more[i];
}

static const struct run_column *placed(const struct run *run, size_t column)
{
	const struct run_column *c = column < run->column_count ? &run->columns[column] : NULL;

	return c && c->place ? c : NULL;
}

/* The same readings, but with other values. */
static struct reading reading_with(const struct reading *like, uint64_t *values)
{
	struct reading r = *like;

	r.values = values;
	return r;
}

void outputs_fill_thread(const struct outputs *o, const struct run *run,
	const struct interval *interval, uint64_t *delta, struct value *values)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct run_column *c = placed(run, o->list[i].column);
		struct fill f = fill_of(o, interval, &o->list[i]);
		struct reading begin, end;

		if (!c || !is_of_threads(&o->list[i]))
			continue;
		if (delta && f.begin && f.end) {
			begin = reading_with(f.begin, o->zeros);
			end = reading_with(f.end, delta + o->thread_base[f.reader]);
			f.begin = &begin;
			f.end = &end;
		}
		f.output->fill(&f, &values[c->place - 1]);
		set_delay(&f, &values[c->place - 1]);
	}
}

/* --- opening and closing --- */

static int make_thread_base(struct outputs *o)
{
	o->thread_base = calloc(o->header->reader_count + 1, sizeof(*o->thread_base));
	if (!o->thread_base)
		return -ENOMEM;
	for (size_t r = 0; r < o->header->reader_count; r++) {
		o->thread_base[r] = o->thread_values;
		o->thread_values += metric_list_values(&o->header->readers[r].metrics);
	}
	o->zeros = calloc(o->thread_values + 1, sizeof(*o->zeros));
	return o->zeros ? 0 : -ENOMEM;
}

int outputs_open(
	struct model *m, struct run *run, const struct decoded_header *header, struct outputs **ret)
{
	struct outputs *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	o->header = header;
	o->sync = !str_eq(header->mode, "async");
	o->base = calloc(header->reader_count + 1, sizeof(*o->base));
	err = o->base ? make_thread_base(o) : -ENOMEM;
	if (err == 0)
		err = outputs_make_columns(m, run, o);
	if (err == 0)
		err = joules_open(m, run, header, &o->joules);
	o->columns = MAX(o->columns, joules_columns(o->joules));
	if (err < 0) {
		outputs_close(o);
		return err;
	}
	*ret = o;
	return 0;
}

struct outputs *outputs_close(struct outputs *o)
{
	if (!o)
		return NULL;
	joules_close(o->joules);
	free(o->list);
	free(o->base);
	free(o->thread_base);
	free(o->zeros);
	free(o);
	return NULL;
}
