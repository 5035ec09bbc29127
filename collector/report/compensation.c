/* SPDX-License-Identifier: MIT */
#include "report/compensation.h"

#include "internal/util.h"

/* NULL: not measured. */
static const struct value *cost_at(const struct marker_cost *cost, size_t column)
{
	return column < cost->value_count && cost->values[column].state == VALUE_COUNTED
		       ? &cost->values[column]
		       : NULL;
}

static uint64_t cost_number(const struct marker_cost *cost, size_t column)
{
	const struct value *v = cost_at(cost, column);

	return v ? v->number : 0;
}

/* Less than nothing is no number: the cost was not that of these markers. */
static void take_away(struct value *v, uint64_t cost)
{
	if (cost > v->number) {
		*v = (struct value){ .state = VALUE_NULL, .note = "below its markers' cost" };
		return;
	}
	v->number -= cost;
	v->flags |= VALUE_CLEARED;
}

static bool is_task_clock(const struct model *m, size_t column)
{
	return str_eq(m->columns[column].name, "task-clock");
}

/*
 * A phase holds the return of the marker that begins it and the entry of the
 * next one: one marker's cost.  START comes from no marker.  The regions in it
 * add their own.
 */
static uint64_t phase_cost(const struct run *run, const struct row *row, size_t column)
{
	uint64_t own = row->marker_ns ? cost_number(&run->phase_cost, column) : 0;

	return own + row->around * cost_number(&run->region_cost, column);
}

static int row_apply(struct model *m, struct row *row)
{
	const struct run *run = &m->runs[row->run];
	int err = 0;

	for (size_t c = 0; err == 0 && c < run->column_count; c++) {
		uint64_t cost = phase_cost(run, row, c);
		struct value v;

		if (!cost && !is_task_clock(m, c))
			continue;
		v = model_value(m, row, c);
		if (v.state != VALUE_COUNTED)
			continue;
		if (is_task_clock(m, c)) {
			row->clock_ns = v.number;
			row->markers_clock_ns = cost;
		}
		if (m->compensate && cost) {
			take_away(&v, cost);
			err = row_set_value(m, row, c, &v);
		}
	}
	return err;
}

static int part_apply(
	struct model *m, struct region *r, enum region_part part, size_t column, uint64_t cost)
{
	struct value v = region_value(m, r, part, column);

	if (v.state != VALUE_COUNTED)
		return 0;
	take_away(&v, cost);
	return region_set_value(m, r, part, column, &v);
}

/* The same for regions: one marker's cost, and all of each marker within. */
static int region_apply(struct model *m, struct region *r)
{
	const struct run *run = &m->runs[r->run];
	const uint64_t markers[REGION_PARTS] = {
		[REGION_WHOLE] = 1 + r->around,
		[REGION_OWN] = 1 + r->children,
	};
	int err = 0;

	for (size_t c = 0; err == 0 && c < run->column_count; c++) {
		uint64_t cost = cost_number(&run->region_cost, c);
		struct value whole;

		if (!cost_at(&run->region_cost, c))
			continue;
		whole = region_value(m, r, REGION_WHOLE, c);
		if (is_task_clock(m, c) && whole.state == VALUE_COUNTED) {
			r->clock_ns = whole.number;
			r->markers_clock_ns = markers[REGION_WHOLE] * cost;
		}
		for (size_t part = 0; err == 0 && m->compensate && part < REGION_PARTS; part++)
			err = part_apply(m, r, part, c, markers[part] * cost);
	}
	return err;
}

int compensation_apply(struct model *m)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < m->row_count; i++)
		err = row_apply(m, &m->rows[i]);
	for (size_t i = 0; err == 0 && i < m->region_count; i++)
		err = region_apply(m, &m->regions[i]);
	return err;
}
