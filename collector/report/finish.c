/* SPDX-License-Identifier: MIT */
/* What is done once all recordings have been read: order, choice, trees. */
#include <errno.h>
#include <stdlib.h>

#include "internal/util.h"
#include "report/group.h"
#include "report/model.h"

/* --- rows --- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* By run, then by process, then as recorded. */
static int compare_rows(const void *a, const void *b, void *data)
{
	const struct row *rows = data;
	size_t i = *(const size_t *)a;
	size_t j = *(const size_t *)b;
	int order = compare(rows[i].run, rows[j].run);

	if (order == 0)
		order = compare(rows[i].process, rows[j].process);
	return order ? order : compare(i, j);
}

static void regions_follow(struct model *m, const size_t *place)
{
	for (size_t i = 0; i < m->region_count; i++)
		if (m->regions[i].phase != MODEL_NONE)
			m->regions[i].phase = place[m->regions[i].phase];
}

/* Puts the rows that count into their order; order and place have room for all. */
static int rows_arrange(struct model *m, size_t *order, size_t *place)
{
	struct row *rows = calloc(m->row_count + 1, sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < m->row_count; i++)
		order[i] = i;
	qsort_r(order, m->row_count, sizeof(*order), compare_rows, m->rows);
	for (size_t i = 0; i < m->row_count; i++) {
		struct row *row = &m->rows[order[i]];

		place[order[i]] = row->count ? count : MODEL_NONE;
		if (row->count)
			rows[count++] = *row;
		else
			row_clear(row);
	}
	free(m->rows);
	m->rows = rows;
	m->row_room = m->row_count + 1;
	m->row_count = count;
	regions_follow(m, place);
	return 0;
}

static int rows_finish(struct model *m)
{
	size_t *order = calloc(m->row_count + 1, sizeof(*order));
	size_t *place = calloc(m->row_count + 1, sizeof(*place));
	int err = order && place ? rows_arrange(m, order, place) : -ENOMEM;

	free(order);
	free(place);
	for (size_t i = 1; err == 0 && i < m->row_count; i++)
		m->several_processes |= m->rows[i].run == m->rows[i - 1].run &&
					m->rows[i].process != m->rows[i - 1].process;
	return err;
}

/* --- the tree of regions --- */

struct tree {
	struct model *model;
	size_t *slots; /* index + 1, or 0 */
	size_t mask;
};

static size_t *find_slot(const struct tree *t, const struct region_node *like)
{
	const struct region_node *nodes = t->model->nodes;
	uint64_t mixed = ((uintptr_t)like->name >> 4) * 31 + like->parent * 17 + like->run;
	size_t at = (mixed * UINT64_C(0x9e3779b97f4a7c15) >> 20) & t->mask;

	for (; t->slots[at]; at = (at + 1) & t->mask) {
		const struct region_node *n = &nodes[t->slots[at] - 1];

		if (n->name == like->name && n->parent == like->parent && n->run == like->run)
			break;
	}
	return &t->slots[at];
}

/* Behind its elder siblings; last: the last child so far of each node, the root's at the end. */
static void tree_link(struct tree *t, size_t index, size_t *last)
{
	struct region_node *nodes = t->model->nodes;
	size_t parent = nodes[index].parent;
	size_t *of = &last[parent == MODEL_NONE ? t->model->region_count : parent];

	if (*of != MODEL_NONE)
		nodes[*of].sibling = index;
	else if (parent != MODEL_NONE)
		nodes[parent].child = index;
	*of = index;
}

static void tree_add(struct tree *t, size_t region, size_t *node_of, size_t *last)
{
	struct model *m = t->model;
	const struct region *r = &m->regions[region];
	struct region_node like = {
		.name = r->name,
		.run = r->run,
		.parent = r->parent == MODEL_NONE ? MODEL_NONE : node_of[r->parent],
		.child = MODEL_NONE,
		.sibling = MODEL_NONE,
		.depth = r->depth,
	};
	size_t *slot = find_slot(t, &like);

	if (!*slot) {
		m->nodes[m->node_count] = like;
		tree_link(t, m->node_count, last);
		*slot = ++m->node_count;
	}
	node_of[region] = *slot - 1;
	m->nodes[*slot - 1].count++;
	m->nodes[*slot - 1].duration_ns += r->end_ns - r->begin_ns;
}

static int tree_build(struct model *m)
{
	struct tree t = { .model = m, .mask = 63 };
	size_t *node_of = calloc(m->region_count + 1, sizeof(*node_of));
	size_t *last = calloc(m->region_count + 1, sizeof(*last));
	int err = -ENOMEM;

	while (t.mask < 2 * m->region_count)
		t.mask = 2 * t.mask + 1;
	t.slots = calloc(t.mask + 1, sizeof(*t.slots));
	m->nodes = calloc(m->region_count + 1, sizeof(*m->nodes));
	if (node_of && last && t.slots && m->nodes) {
		err = 0;
		for (size_t i = 0; i <= m->region_count; i++)
			last[i] = MODEL_NONE;
		for (size_t i = 0; i < m->region_count; i++)
			tree_add(&t, i, node_of, last);
	}
	free(node_of);
	free(last);
	free(t.slots);
	return err;
}

int model_finish(struct model *m, enum model_by by)
{
	int err = rows_finish(m);

	if (err == 0)
		err = tree_build(m);
	if (err < 0 || by == BY_PHASE)
		return err;
	for (size_t i = 0; i < m->region_count; i++)
		m->regions[i].phase = MODEL_NONE;
	return group_rows(m, by);
}
