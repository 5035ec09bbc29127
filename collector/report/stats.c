/* SPDX-License-Identifier: MIT */
#include "report/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

/* --- groups --- */

struct grouping {
	struct stats *stats;
	size_t *group_of; /* of each row, then of each region */
	size_t *slots;    /* index + 1, or 0 */
	size_t mask;
};

/* Names are of the pool, so that their addresses are as good as they are. */
static bool same_group(const struct stats_group *a, const struct stats_group *b)
{
	return a->name == b->name && a->parent == b->parent && a->of_regions == b->of_regions;
}

static size_t find_group(struct grouping *g, const struct stats_group *like)
{
	struct stats_group *groups = g->stats->groups;
	uint64_t mixed = ((uintptr_t)like->name >> 4) * 31 + like->parent * 17 + like->of_regions;
	size_t at = (mixed * UINT64_C(0x9e3779b97f4a7c15) >> 20) & g->mask;

	while (g->slots[at] && !same_group(&groups[g->slots[at] - 1], like))
		at = (at + 1) & g->mask;
	if (!g->slots[at]) {
		groups[g->stats->group_count++] = *like;
		g->slots[at] = g->stats->group_count;
	}
	return g->slots[at] - 1;
}

static void group_all(struct grouping *g)
{
	const struct model *m = g->stats->model;
	size_t *of_region = g->group_of + m->row_count;

	for (size_t i = 0; i < m->row_count; i++) {
		const struct row *row = &m->rows[i];
		size_t group = find_group(
			g, &(struct stats_group){ .name = row->name, .parent = MODEL_NONE });

		g->group_of[i] = group;
		g->stats->groups[group].is_short |= row->is_short;
		g->stats->groups[group].is_late |= row_is_late(row);
	}
	for (size_t i = 0; i < m->region_count; i++) {
		const struct region *r = &m->regions[i];
		size_t parent = r->parent == MODEL_NONE ? MODEL_NONE : of_region[r->parent];

		of_region[i] = find_group(g, &(struct stats_group){ .name = r->name,
						     .of_regions = true,
						     .parent = parent,
						     .depth = r->depth });
	}
}

/* Each node's regions are of one group.  of_node has room for all nodes. */
static void look_at_nodes(struct grouping *g, size_t *of_node)
{
	const struct model *m = g->stats->model;

	for (size_t i = 0; i < m->node_count; i++) {
		const struct region_node *n = &m->nodes[i];
		size_t parent = n->parent == MODEL_NONE ? MODEL_NONE : of_node[n->parent];
		size_t group = find_group(g, &(struct stats_group){ .name = n->name,
						     .of_regions = true,
						     .parent = parent,
						     .depth = n->depth });

		of_node[i] = group;
		g->stats->groups[group].is_short |= n->is_short;
		g->stats->groups[group].is_late |= node_is_late(n);
	}
}

/* The group in that depth which holds it, or which it is. */
static size_t ancestor(const struct stats_group *groups, size_t group, uint32_t depth)
{
	while (groups[group].depth > depth)
		group = groups[group].parent;
	return group;
}

/* Phases before regions, whoever holds another before it, else the older one. */
static int compare_groups(const void *a, const void *b, void *data)
{
	const struct stats_group *groups = data;
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	uint32_t depth = MIN(groups[i].depth, groups[j].depth);
	size_t x = ancestor(groups, i, depth), y = ancestor(groups, j, depth);

	if (x == y)
		return groups[i].depth < groups[j].depth ? -1 : groups[i].depth > groups[j].depth;
	while (groups[x].parent != groups[y].parent) {
		x = groups[x].parent;
		y = groups[y].parent;
	}
	return x < y ? -1 : 1;
}

/* order and rank have room for all groups. */
static int groups_arrange(struct grouping *g, size_t *order, size_t *rank)
{
	struct stats *s = g->stats;
	struct stats_group *groups = calloc(s->group_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < s->group_count; i++)
		order[i] = i;
	qsort_r(order, s->group_count, sizeof(*order), compare_groups, s->groups);
	for (size_t i = 0; i < s->group_count; i++) {
		rank[order[i]] = i;
		groups[i] = s->groups[order[i]];
	}
	for (size_t i = 0; i < s->group_count; i++)
		if (groups[i].parent != MODEL_NONE)
			groups[i].parent = rank[groups[i].parent];
	for (size_t i = 0; i < s->model->row_count + s->model->region_count; i++)
		g->group_of[i] = rank[g->group_of[i]];
	free(s->groups);
	s->groups = groups;
	return 0;
}

static int groups_sort(struct grouping *g)
{
	size_t *order = calloc(g->stats->group_count + 1, sizeof(*order));
	size_t *rank = calloc(g->stats->group_count + 1, sizeof(*rank));
	int err = order && rank ? groups_arrange(g, order, rank) : -ENOMEM;

	free(order);
	free(rank);
	return err;
}

static void find_members(struct stats *s, const size_t *group_of)
{
	size_t rows = s->model->row_count, first = 0;

	for (size_t i = 0; i < rows + s->model->region_count; i++)
		s->groups[group_of[i]].count++;
	for (size_t i = 0; i < s->group_count; i++) {
		s->groups[i].first = first;
		first += s->groups[i].count;
		s->groups[i].count = 0;
	}
	for (size_t i = 0; i < rows + s->model->region_count; i++) {
		struct stats_group *g = &s->groups[group_of[i]];

		s->members[g->first + g->count++] = i < rows ? i : i - rows;
	}
}

int stats_make(const struct model *m, struct stats *ret)
{
	size_t things = m->row_count + m->region_count;
	struct grouping g = { .stats = ret, .mask = 63 };
	int err = -ENOMEM;

	while (g.mask < 2 * things)
		g.mask = 2 * g.mask + 1;
	*ret = (struct stats){
		.model = m,
		.groups = calloc(things + 1, sizeof(*ret->groups)),
		.members = calloc(things + 1, sizeof(*ret->members)),
		.numbers = calloc(things + 1, sizeof(*ret->numbers)),
	};
	g.group_of = calloc(things + 1, sizeof(*g.group_of));
	g.slots = calloc(g.mask + 1, sizeof(*g.slots));
	if (ret->groups && ret->members && ret->numbers && g.group_of && g.slots) {
		group_all(&g);
		look_at_nodes(&g, ret->members);
		err = groups_sort(&g);
	}
	if (err == 0)
		find_members(ret, g.group_of);
	free(g.group_of);
	free(g.slots);
	return err;
}

void stats_clear(struct stats *s)
{
	free(s->groups);
	free(s->members);
	free(s->numbers);
}

/* --- numbers --- */

static struct value null_value(const char *why)
{
	return (struct value){ .state = VALUE_NULL, .note = why };
}

static struct value counted_ns(uint64_t ns)
{
	return (struct value){ .state = VALUE_COUNTED, .number = ns, .coverage = 1 };
}

static struct value row_value(
	const struct model *m, const struct row *row, enum stats_kind kind, size_t column)
{
	struct value v;

	if (row->open)
		return null_value("the recording ends in it");
	if (kind != STATS_COLUMN && row->unresolved && row->duration_ns == 0)
		return null_value(VALUE_UNRESOLVED);
	if (kind != STATS_COLUMN)
		return counted_ns(row->duration_ns);
	v = model_value(m, row, column);
	return v.state == VALUE_COUNTED && row->includes
		       ? null_value("it holds the work of unresolved phases")
		       : v;
}

static struct value region_quantity(
	const struct model *m, const struct region *r, enum stats_kind kind, size_t column)
{
	struct value v;

	if (r->open || r->repaired)
		return null_value("it has no end of its own");
	if (kind == STATS_TIME)
		return counted_ns(r->end_ns - r->begin_ns);
	if (kind == STATS_OWN_TIME)
		return counted_ns(r->own_ns);
	v = region_value(m, r, REGION_WHOLE, column);
	return v.state == VALUE_COUNTED && v.includes
		       ? null_value("it holds the work of unresolved regions")
		       : v;
}

static void note_worst(struct value *worst, const struct value *v)
{
	if (worst->state < v->state)
		*worst = *v;
	if (v->state != VALUE_COUNTED)
		return;
	worst->flags |= v->flags;
	worst->coverage = MIN(worst->coverage, v->coverage);
	worst->delay_us = MAX(worst->delay_us, v->delay_us);
	worst->step_us = MAX(worst->step_us, v->step_us);
	worst->error = MAX(worst->error, v->error);
	if (!worst->note)
		worst->note = v->note;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double mean_of(const double *numbers, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += numbers[i];
	return sum / (double)count;
}

/* About the mean, so that large numbers with small differences keep these. */
static double deviation_of(const double *numbers, size_t count, double mean)
{
	double squares = 0;

	for (size_t i = 0; i < count; i++)
		squares += (numbers[i] - mean) * (numbers[i] - mean);
	return count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}

static void summarise(struct stats_line *l, double *numbers)
{
	size_t n = l->count;

	l->mean = l->deviation = l->least = l->median = l->most = NAN;
	if (n == 0)
		return;
	qsort(numbers, n, sizeof(*numbers), compare_numbers);
	l->least = numbers[0];
	l->most = numbers[n - 1];
	l->median = (numbers[(n - 1) / 2] + numbers[n / 2]) / 2;
	l->mean = mean_of(numbers, n);
	l->deviation = deviation_of(numbers, n, l->mean);
}

bool stats_line(const struct stats *s, const struct stats_group *g, enum stats_kind kind,
	size_t column, struct stats_line *ret)
{
	const struct model *m = s->model;
	struct stats_line l = { .kind = kind, .column = column };
	double unit = 1;

	if (kind == STATS_COLUMN && m->columns[column].unit == UNIT_PERCENT)
		unit = 100;
	for (size_t i = 0; i < g->count; i++) {
		size_t member = s->members[g->first + i];
		struct value v = g->of_regions
					 ? region_quantity(m, &m->regions[member], kind, column)
					 : row_value(m, &m->rows[member], kind, column);

		note_worst(&l.worst, &v);
		if (v.state == VALUE_COUNTED)
			s->numbers[l.count++] = (double)v.number / unit;
	}
	summarise(&l, s->numbers);
	*ret = l;
	return l.worst.state != VALUE_MISSING;
}

const char *stats_line_name(const struct stats *s, const struct stats_line *l)
{
	static const char *const names[] = { [STATS_TIME] = "time", [STATS_OWN_TIME] = "own time" };

	return l->kind == STATS_COLUMN ? s->model->columns[l->column].name : names[l->kind];
}

enum metric_unit stats_line_unit(const struct stats *s, const struct stats_line *l)
{
	return l->kind == STATS_COLUMN ? s->model->columns[l->column].unit : UNIT_NS;
}
