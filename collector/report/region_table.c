/* SPDX-License-Identifier: MIT */
#include "report/region_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/cells.h"
#include "report/grid.h"
#include "report/scaled.h"
#include "report/tree.h"
#include "report/utf8.h"

struct region_table;

struct place {
	const char *header; /* NULL: the column's name */
	void (*cell)(const struct region_table *t, const struct region_node *n, size_t column,
		char text[GRID_CELL]);
	size_t column; /* of the model */
};

struct region_table {
	const struct model *model;
	size_t *order; /* nodes, each before its children */
	struct nesting nesting;
	uint64_t *whole_ns; /* of each node: the time that its own is a part of */
	struct place place[GRID_COLUMNS];
	size_t places;
	size_t sticky;
};

/* --- cells --- */

static void put_name(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	size_t used;

	(void)column;
	cell_nested(&t->nesting, n, text);
	used = strlen(text);
	snprintf(text + used, GRID_CELL - used, "%s%s", n->is_short ? " ?" : "",
		node_is_late(n) ? " !" : "");
}

static void put_run(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	cell_number(n->run, text);
}

static void put_pid(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	cell_number((uint64_t)n->pid, text);
}

static void put_tid(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	cell_number(n->tid, text);
}

static void put_count(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	cell_number(n->count, text);
}

static void put_time(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	scaled(n->duration_ns, UNIT_NS, text);
}

static void put_share(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)column;
	cell_share(n->duration_ns, t->whole_ns[n - t->model->nodes], text);
}

static void put_own(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	(void)t;
	(void)column;
	scaled(n->own_ns, UNIT_NS, text);
}

static void put_whole(const struct region_table *t, const struct region_node *n, size_t column,
	char text[GRID_CELL])
{
	struct value v = node_value(t->model, n, REGION_WHOLE, column);

	cell_value(&v, t->model->columns[column].unit, text);
}

static void table_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	const struct region_table *t = data;
	const struct place *p = &t->place[column];

	p->cell(t, &t->model->nodes[t->order[row]], p->column, text);
}

static void table_header(const void *data, size_t column, char text[GRID_CELL])
{
	const struct region_table *t = data;
	const struct place *p = &t->place[column];

	utf8_printable(p->header ? p->header : t->model->columns[p->column].name, text, GRID_CELL,
		GRID_CELL);
}

/* --- columns --- */

static void add_place(struct region_table *t, struct place place)
{
	if (t->places < GRID_COLUMNS)
		t->place[t->places++] = place;
}

static bool column_is_counted(const struct model *m, size_t column)
{
	for (size_t i = 0; i < m->node_count; i++)
		if (node_value(m, &m->nodes[i], REGION_WHOLE, column).state == VALUE_COUNTED)
			return true;
	return false;
}

static void choose_places(struct region_table *t, const struct report_options *o, const bool *shown)
{
	const struct model *m = t->model;

	add_place(t, (struct place){ "region", put_name, 0 });
	if (m->run_count > 1)
		add_place(t, (struct place){ "run", put_run, 0 });
	if (o->by == BY_THREAD && m->several_processes)
		add_place(t, (struct place){ "pid", put_pid, 0 });
	if (o->by == BY_THREAD)
		add_place(t, (struct place){ "tid", put_tid, 0 });
	t->sticky = t->places;
	add_place(t, (struct place){ "count", put_count, 0 });
	add_place(t, (struct place){ "time", put_time, 0 });
	add_place(t, (struct place){ "share", put_share, 0 });
	add_place(t, (struct place){ "own time", put_own, 0 });
	for (size_t c = 0; c < m->column_count; c++)
		if (shown[c] && column_is_counted(m, c))
			add_place(t, (struct place){ NULL, put_whole, c });
}

/* --- shares --- */

/* By run; with BY_THREAD by thread. */
static int compare_wholes(const void *a, const void *b, void *data)
{
	const struct region_node *nodes = data;
	const struct region_node *x = &nodes[*(const size_t *)a];
	const struct region_node *y = &nodes[*(const size_t *)b];

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* The outermost ones are parts of their sum.  list has room for all nodes. */
static void find_outermost_wholes(struct region_table *t, size_t *list)
{
	struct region_node *nodes = t->model->nodes;
	size_t count = 0;

	for (size_t i = 0; i != MODEL_NONE; i = nodes[i].sibling)
		list[count++] = i;
	qsort_r(list, count, sizeof(*list), compare_wholes, nodes);
	for (size_t first = 0, end; first < count; first = end) {
		uint64_t sum = 0;

		for (end = first;
			end < count && compare_wholes(&list[first], &list[end], nodes) == 0; end++)
			sum += nodes[list[end]].duration_ns;
		for (size_t i = first; i < end; i++)
			t->whole_ns[list[i]] = sum;
	}
}

static void find_wholes(struct region_table *t)
{
	const struct model *m = t->model;

	find_outermost_wholes(t, t->order);
	for (size_t i = 0; i < m->node_count; i++)
		if (m->nodes[i].parent != MODEL_NONE)
			t->whole_ns[i] = m->nodes[m->nodes[i].parent].duration_ns;
}

static size_t find_order(struct region_table *t)
{
	const struct model *m = t->model;
	size_t count = 0;

	for (size_t n = 0; n != MODEL_NONE && count < m->node_count; n = tree_next(m, n))
		t->order[count++] = n;
	return count;
}

int region_table_print(
	const struct model *m, const struct report_options *o, const bool *shown, FILE *out)
{
	struct region_table *t;
	struct grid g = {
		.width = o->width,
		.colour = o->colour,
		.first_is_text = true,
		.header = table_header,
		.cell = table_cell,
	};
	int err = -ENOMEM;

	if (m->node_count == 0)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err;
	g.data = t;
	t->model = m;
	t->nesting = nesting_of(m, o->width);
	t->order = calloc(m->node_count, sizeof(*t->order));
	t->whole_ns = calloc(m->node_count, sizeof(*t->whole_ns));
	if (t->order && t->whole_ns) {
		find_wholes(t);
		choose_places(t, o, shown);
		g.rows = find_order(t);
		g.columns = t->places;
		g.sticky = t->sticky;
		putc('\n', out);
		err = grid_print(&g, out);
	}
	free(t->order);
	free(t->whole_ns);
	free(t);
	return err;
}
