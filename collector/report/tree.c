/* SPDX-License-Identifier: MIT */
#include "report/tree.h"

#include <errno.h>
#include <stdlib.h>

#include "internal/util.h"
#include "report/merge.h"

struct tree {
	struct model *model;
	bool apart;
	size_t *slots; /* index + 1, or 0 */
	size_t mask;
	size_t *node_of; /* of each region */
	size_t *last;    /* child so far of each node, the root's at the end */
};

static bool same_node(const struct region_node *a, const struct region_node *b)
{
	return a->name == b->name && a->parent == b->parent && a->run == b->run &&
	       a->process == b->process && a->tid == b->tid;
}

static size_t *find_slot(const struct tree *t, const struct region_node *like)
{
	uint64_t mixed = ((uintptr_t)like->name >> 4) * 31 + like->parent * 17 + like->run;
	size_t at;

	mixed = (mixed * 31 + like->process) * 31 + like->tid;
	at = (mixed * UINT64_C(0x9e3779b97f4a7c15) >> 20) & t->mask;
	while (t->slots[at] && !same_node(&t->model->nodes[t->slots[at] - 1], like))
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

/* Behind its elder siblings. */
static void tree_link(struct tree *t, size_t index)
{
	struct region_node *nodes = t->model->nodes;
	size_t parent = nodes[index].parent;
	size_t *of = &t->last[parent == MODEL_NONE ? t->model->region_count : parent];

	if (*of != MODEL_NONE)
		nodes[*of].sibling = index;
	else if (parent != MODEL_NONE)
		nodes[parent].child = index;
	*of = index;
}

static struct region_node node_like(const struct tree *t, const struct region *r)
{
	struct region_node node = {
		.name = r->name,
		.run = r->run,
		.parent = r->parent == MODEL_NONE ? MODEL_NONE : t->node_of[r->parent],
		.child = MODEL_NONE,
		.sibling = MODEL_NONE,
		.depth = r->depth,
	};

	if (t->apart) {
		node.process = r->process;
		node.pid = r->pid;
		node.tid = r->tid;
	}
	return node;
}

static int node_values(struct tree *t, struct region_node *node)
{
	size_t places = t->model->runs[node->run].places;

	node->values = calloc(REGION_PARTS * places + 1, sizeof(*node->values));
	if (!node->values)
		return -ENOMEM;
	node->value_count = places;
	return 0;
}

static void merge_region(const struct model *m, struct region_node *node, const struct region *r)
{
	const struct run *run = &m->runs[r->run];

	for (size_t c = 0; c < run->column_count; c++) {
		size_t place = run->columns[c].place;

		for (size_t part = 0; place && part < REGION_PARTS; part++) {
			struct value v = region_value(m, r, (enum region_part)part, c);

			value_merge(&node->values[part * node->value_count + place - 1], &v,
				&m->columns[c], r->end_ns - r->begin_ns);
		}
	}
}

static void count_boundary(struct region_node *node, struct taken taken)
{
	node->taken[taken.how]++;
	node->delay_ns = MAX(node->delay_ns, taken.delay_ns);
}

static void add_region(const struct model *m, struct region_node *node, const struct region *r)
{
	merge_region(m, node, r);
	node->count++;
	node->duration_ns += r->end_ns - r->begin_ns;
	node->own_ns += r->own_ns;
	node->inside += r->inside;
	node->inside_ns += r->inside_ns;
	node->clock_ns += r->clock_ns;
	node->markers_clock_ns += r->markers_clock_ns;
	if (!r->reason)
		node->late_ns += MAX(r->begin_taken.delay_ns, r->end_taken.delay_ns);
	node->repaired += r->repaired;
	node->unresolved += is_unresolved(r->reason);
	count_boundary(node, r->begin_taken);
	count_boundary(node, r->end_taken);
}

static int tree_add(struct tree *t, size_t region)
{
	struct model *m = t->model;
	struct region_node like = node_like(t, &m->regions[region]);
	size_t *slot = find_slot(t, &like);
	int err = 0;

	if (!*slot) {
		m->nodes[m->node_count] = like;
		err = node_values(t, &m->nodes[m->node_count]);
		tree_link(t, m->node_count);
		*slot = ++m->node_count;
	}
	t->node_of[region] = *slot - 1;
	if (err == 0)
		add_region(m, &m->nodes[*slot - 1], &m->regions[region]);
	return err;
}

int tree_build(struct model *m, bool apart)
{
	struct tree t = { .model = m, .apart = apart, .mask = 63 };
	int err = -ENOMEM;

	while (t.mask < 2 * m->region_count)
		t.mask = 2 * t.mask + 1;
	t.node_of = calloc(m->region_count + 1, sizeof(*t.node_of));
	t.last = calloc(m->region_count + 1, sizeof(*t.last));
	t.slots = calloc(t.mask + 1, sizeof(*t.slots));
	m->nodes = calloc(m->region_count + 1, sizeof(*m->nodes));
	if (t.node_of && t.last && t.slots && m->nodes) {
		err = 0;
		for (size_t i = 0; i <= m->region_count; i++)
			t.last[i] = MODEL_NONE;
		for (size_t i = 0; err == 0 && i < m->region_count; i++)
			err = tree_add(&t, i);
	}
	free(t.node_of);
	free(t.last);
	free(t.slots);
	return err;
}

/* Parents are older than their children, so that walking up and on never comes back. */
size_t tree_next(const struct model *m, size_t node)
{
	if (m->nodes[node].child != MODEL_NONE)
		return m->nodes[node].child;
	while (node != MODEL_NONE && m->nodes[node].sibling == MODEL_NONE)
		node = m->nodes[node].parent;
	return node == MODEL_NONE ? MODEL_NONE : m->nodes[node].sibling;
}
