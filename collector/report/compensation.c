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

static void take_away(struct value *v, uint64_t cost)
{
	v->number = saturating_sub(v->number, cost);
	v->flags |= VALUE_CLEARED;
}

/*
 * A phase holds the return of the marker that begins it and the entry of the
 * next one: one marker's cost.  The regions in it add their own.
 */
static uint64_t phase_cost(const struct run *run, const struct row *row, size_t column)
{
	return cost_number(&run->phase_cost, column) +
	       row->around * cost_number(&run->region_cost, column);
}

/* START comes from no marker. */
static bool has_marker(const struct row *row)
{
	return row->marker_ns > 0;
}

static void row_apply(const struct model *m, struct row *row)
{
	const struct run *run = &m->runs[row->run];

	for (size_t c = 0; c < row->value_count; c++) {
		struct value *v = &row->values[c];
		uint64_t cost;

		if (v->state != VALUE_COUNTED || !cost_at(&run->phase_cost, c))
			continue;
		cost = phase_cost(run, row, c);
		if (str_eq(m->columns[c].name, "task-clock"))
			row->is_short = cost >= (v->number + 1) / 2;
		if (m->compensate)
			take_away(v, cost);
	}
}

/* The same for regions: one marker's cost, and all of each marker within. */
static void region_apply(const struct model *m, struct region *r)
{
	const struct run *run = &m->runs[r->run];
	const uint64_t markers[REGION_PARTS] = {
		[REGION_WHOLE] = 1 + r->around,
		[REGION_OWN] = 1 + r->children,
	};

	for (size_t c = 0; c < run->column_count; c++) {
		size_t place = run->columns[c].place;

		if (!place || place > r->value_count || !cost_at(&run->region_cost, c))
			continue;
		for (size_t part = 0; part < REGION_PARTS; part++) {
			struct value *v = &r->values[part * r->value_count + place - 1];

			if (v->state == VALUE_COUNTED)
				take_away(v, markers[part] * cost_number(&run->region_cost, c));
		}
	}
}

void compensation_apply(struct model *m)
{
	for (size_t i = 0; i < m->row_count; i++)
		if (has_marker(&m->rows[i]))
			row_apply(m, &m->rows[i]);
	for (size_t i = 0; m->compensate && i < m->region_count; i++)
		region_apply(m, &m->regions[i]);
}
