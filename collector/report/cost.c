/* SPDX-License-Identifier: MIT */
#include "report/cost.h"

#include <errno.h>
#include <stdlib.h>

static bool calibrates(const struct fold *f, uint64_t process)
{
	const struct process *p = process_at(&f->processes, process);

	return p && p->calibrates;
}

/* --- medians --- */

struct numbers {
	uint64_t *list;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of what is in the list, which it empties; there is something in it. */
static uint64_t median(struct numbers *n)
{
	uint64_t middle;

	qsort(n->list, n->count, sizeof(*n->list), compare);
	middle = n->list[n->count / 2];
	n->count = 0;
	return middle;
}

/* --- phases and regions alike --- */

/* How to get at them; index counts from the fold's first. */
struct kind {
	size_t count;
	bool (*is_empty)(const struct fold *f, size_t index);
	uint64_t (*marker_ns)(const struct fold *f, size_t index);
	struct value (*value)(const struct fold *f, size_t index, size_t column);
};

static const struct row *row_at(const struct fold *f, size_t index)
{
	return &f->model->rows[f->first_row + index];
}

static const struct region *region_at(const struct fold *f, size_t index)
{
	return &f->model->regions[f->first_region + index];
}

/* The first one, which starts the process, and the last one, with the regions, are not. */
static bool phase_is_empty(const struct fold *f, size_t index)
{
	const struct row *row = row_at(f, index);

	return calibrates(f, row->process) && row->inside == 0 && !row->open &&
	       !str_eq(row->name, "START") && !str_eq(row->next, "END");
}

static uint64_t phase_marker_ns(const struct fold *f, size_t index)
{
	return row_at(f, index)->marker_ns;
}

static struct value phase_value(const struct fold *f, size_t index, size_t column)
{
	return model_value(f->model, row_at(f, index), column);
}

static bool region_is_empty(const struct fold *f, size_t index)
{
	const struct region *r = region_at(f, index);

	return calibrates(f, r->process) && r->inside == 0 && !r->repaired && !r->open;
}

static uint64_t region_marker_ns(const struct fold *f, size_t index)
{
	return region_at(f, index)->marker_ns / 2;
}

static struct value whole_value(const struct fold *f, size_t index, size_t column)
{
	return region_value(f->model, region_at(f, index), REGION_WHOLE, column);
}

/* Counters alone: what a marker does to a gauge or a share has no sense. */
static void cost_column(const struct fold *f, const struct kind *k, size_t column,
	struct numbers *n, struct marker_cost *ret)
{
	const struct column *c = &f->model->columns[column];

	if (c->sum != COLUMN_ADD || !str_eq(c->source, "perf_event"))
		return;
	for (size_t i = 0; i < k->count; i++) {
		struct value v = { .state = VALUE_MISSING };

		if (k->is_empty(f, i))
			v = k->value(f, i, column);
		if (v.state == VALUE_COUNTED)
			n->list[n->count++] = v.number;
	}
	if (n->count)
		ret->values[column] = (struct value){
			.state = VALUE_COUNTED, .number = median(n), .coverage = 1
		};
}

static int cost_of(const struct fold *f, const struct kind *k, struct marker_cost *ret)
{
	struct numbers n = { .list = calloc(k->count + 1, sizeof(*n.list)) };

	ret->values = calloc(f->model->column_count + 1, sizeof(*ret->values));
	if (!n.list || !ret->values) {
		free(n.list);
		return -ENOMEM;
	}
	ret->value_count = f->model->column_count;
	for (size_t i = 0; i < k->count; i++)
		if (k->is_empty(f, i))
			n.list[n.count++] = k->marker_ns(f, i);
	ret->samples = n.count;
	if (n.count)
		ret->ns = median(&n);
	for (size_t c = 0; ret->samples && c < f->model->column_count; c++)
		cost_column(f, k, c, &n, ret);
	free(n.list);
	return 0;
}

/* --- out of the model --- */

/* place: of each region from the first one on, which parents follow. */
static void regions_remove(struct fold *f, size_t *place)
{
	struct model *m = f->model;
	size_t kept = f->first_region;

	for (size_t i = f->first_region; i < m->region_count; i++) {
		struct region *r = &m->regions[i];

		place[i - f->first_region] = kept;
		if (calibrates(f, r->process)) {
			region_clear(r);
			continue;
		}
		if (r->parent != MODEL_NONE)
			r->parent = place[r->parent - f->first_region];
		m->regions[kept++] = *r;
	}
	m->region_count = kept;
}

static size_t calibrations(const struct fold *f)
{
	size_t count = 0;

	for (size_t i = 0; i < f->processes.room; i++)
		count += calibrates(f, i);
	return count;
}

int cost_take(struct fold *f)
{
	const struct kind phases = { f->model->row_count - f->first_row, phase_is_empty,
		phase_marker_ns, phase_value };
	const struct kind regions = { f->model->region_count - f->first_region, region_is_empty,
		region_marker_ns, whole_value };
	struct run *run = fold_run(f);
	size_t *place;
	int err;

	if (calibrations(f) == 0)
		return 0;
	run->processes -= calibrations(f);
	place = calloc(regions.count + 1, sizeof(*place));
	err = place ? cost_of(f, &phases, &run->phase_cost) : -ENOMEM;
	if (err == 0)
		err = cost_of(f, &regions, &run->region_cost);
	if (err == 0)
		regions_remove(f, place);
	free(place);
	return err;
}
