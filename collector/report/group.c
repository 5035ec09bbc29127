/* SPDX-License-Identifier: MIT */
#include "report/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/merge.h"

static int make_values(const struct model *m, struct row *row)
{
	if (row->values)
		return 0;
	row->values = calloc(m->column_count + 1, sizeof(*row->values));
	if (!row->values)
		return -ENOMEM;
	row->value_count = m->column_count;
	return 0;
}

/* A column that not all recordings know: what it lacks is told of as if it had not been counted. */
static void tell_missing(const struct row *into, struct value *sum, struct value *v)
{
	struct value missing = { .state = VALUE_NULL, .note = "not all recordings have it" };

	if (into->count && v->state == VALUE_MISSING && sum->state != VALUE_MISSING) {
		*v = missing;
	} else if (into->count && v->state != VALUE_MISSING && sum->state == VALUE_MISSING) {
		*sum = missing;
		sum->without = (uint32_t)MIN(into->count, (uint64_t)UINT32_MAX);
	}
}

static void merge_values(const struct model *m, struct row *into, const struct row *row)
{
	for (size_t i = 0; i < m->column_count; i++) {
		struct value v = model_value(m, row, i);

		tell_missing(into, &into->values[i], &v);
		value_merge(&into->values[i], &v, &m->columns[i], row->duration_ns);
	}
}

static int merge_amounts(struct row *into, const struct amount *amount)
{
	int err = 0;

	for (; err == 0 && amount; amount = amount->next) {
		err = model_merge_amount(&into->amounts, amount);
		if (err == -ENOBUFS)
			err = 0;
	}
	return err;
}

static int merge_row(const struct model *m, struct row *into, const struct row *row)
{
	int err = make_values(m, into);

	if (err == 0)
		err = merge_amounts(into, row->amounts);
	if (err < 0)
		return err;
	merge_values(m, into, row);
	if (into->pid != row->pid || into->run != row->run)
		into->pid = 0;
	into->adds_processes |= into->run == row->run && into->process != row->process;
	into->several_runs |= into->run != row->run || row->several_runs;
	if (into->tid != row->tid)
		into->tid = 0;
	into->duration_ns += row->duration_ns;
	into->end_ns = MAX(into->end_ns, row->end_ns);
	into->count += row->count;
	into->includes += row->includes;
	into->unresolved += row->unresolved;
	into->marker_ns += row->marker_ns;
	into->inside += row->inside;
	into->inside_ns += row->inside_ns;
	into->begin_taken = taken_worse(into->begin_taken, row->begin_taken);
	into->end_taken = taken_worse(into->end_taken, row->end_taken);
	into->clock_ns += row->clock_ns;
	into->markers_clock_ns += row->markers_clock_ns;
	into->late_ns += row->late_ns;
	into->open |= row->open;
	into->to_death |= row->to_death;
	into->acknowledged |= row->acknowledged;
	return 0;
}

/* --- which rows become one --- */

/* Names are of the pool, so that their addresses are as good as they are. */
static size_t name_hash(const struct row *row)
{
	return ((uintptr_t)row->name >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static size_t process_hash(const struct row *row)
{
	return (row->run * 31 + row->process) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static size_t thread_hash(const struct row *row)
{
	return ((row->run * 31 + row->process) * 31 + row->tid) * UINT64_C(0x9e3779b97f4a7c15) >>
	       20;
}

static bool same_name(const struct row *a, const struct row *b)
{
	return a->name == b->name;
}

static bool same_process(const struct row *a, const struct row *b)
{
	return a->run == b->run && a->process == b->process;
}

static bool same_thread(const struct row *a, const struct row *b)
{
	return same_process(a, b) && a->tid == b->tid;
}

static const struct {
	size_t (*hash)(const struct row *row);
	bool (*same)(const struct row *a, const struct row *b);
} keys[] = {
	[BY_NAME] = { name_hash, same_name },
	[BY_PROCESS] = { process_hash, same_process },
	[BY_THREAD] = { thread_hash, same_thread },
};

struct grouping {
	enum model_by by;
	struct row *rows; /* in the order of their first */
	size_t count;
	size_t *slots; /* index + 1, or 0 */
	size_t mask;
};

static int grouping_open(enum model_by by, size_t most, struct grouping *ret)
{
	struct grouping g = { .by = by, .mask = 63 };

	while (g.mask < 2 * most)
		g.mask = 2 * g.mask + 1;
	g.rows = calloc(most + 1, sizeof(*g.rows));
	g.slots = calloc(g.mask + 1, sizeof(*g.slots));
	*ret = g;
	return g.rows && g.slots ? 0 : -ENOMEM;
}

static void grouping_close(struct grouping *g)
{
	for (size_t i = 0; i < g->count; i++)
		row_clear(&g->rows[i]);
	free(g->rows);
	free(g->slots);
}

/* Index + 1 of the group with this key, or 0 in *slot: a free one. */
static size_t *find_slot(const struct grouping *g, const struct row *row)
{
	size_t at = keys[g->by].hash(row) & g->mask;

	while (g->slots[at] && !keys[g->by].same(&g->rows[g->slots[at] - 1], row))
		at = (at + 1) & g->mask;
	return &g->slots[at];
}

/* The row that it belongs to, made of begin where there is none. */
static struct row *group_of(
	struct grouping *g, const struct row *row, struct row (*begin)(const struct row *first))
{
	size_t *slot = find_slot(g, row);

	if (!*slot) {
		g->rows[g->count++] = begin(row);
		*slot = g->count;
	}
	return &g->rows[*slot - 1];
}

/* The groups are the model's rows from now on. */
static void groups_replace(struct grouping *g, struct model *m)
{
	for (size_t i = 0; i < m->row_count; i++)
		row_clear(&m->rows[i]);
	free(m->rows);
	m->rows = g->rows;
	m->row_count = g->count;
	m->row_room = g->count + 1;
	g->rows = NULL;
	g->count = 0;
}

/* --- phases --- */

/* A row without values of its own, of the same place as its first. */
static struct row rows_begin(const struct row *first)
{
	return (struct row){
		.name = first->name,
		.program = first->program,
		.run = first->run,
		.process = first->process,
		.pid = first->pid,
		.tid = first->tid,
		.entry_ns = first->entry_ns,
		.begin_ns = first->begin_ns,
		.of_thread = first->of_thread,
	};
}

static struct row process_begin(const struct row *first)
{
	struct row row = rows_begin(first);

	row.name = first->program;
	return row;
}

int group_rows(struct model *m, enum model_by by)
{
	struct grouping g;
	int err = grouping_open(by, m->row_count, &g);

	for (size_t i = 0; err == 0 && i < m->row_count; i++) {
		struct row *into =
			group_of(&g, &m->rows[i], by == BY_PROCESS ? process_begin : rows_begin);

		err = merge_row(m, into, &m->rows[i]);
	}
	if (err == 0)
		groups_replace(&g, m);
	grouping_close(&g);
	return err;
}

/* --- regions --- */

static struct row row_like(const struct region *r)
{
	return (struct row){
		.name = r->program,
		.program = r->program,
		.run = r->run,
		.process = r->process,
		.pid = r->pid,
		.tid = r->tid,
		.entry_ns = r->begin_ns,
		.begin_ns = r->begin_ns,
		.of_thread = true,
	};
}

static void merge_outermost(const struct model *m, struct row *into, const struct region *r)
{
	uint64_t duration = r->end_ns - r->begin_ns;

	for (size_t i = 0; i < m->column_count; i++) {
		struct value v = region_value(m, r, REGION_WHOLE, i);

		value_merge(&into->values[i], &v, &m->columns[i], duration);
	}
	into->duration_ns += duration;
	into->clock_ns += r->clock_ns;
	into->markers_clock_ns += r->markers_clock_ns;
	if (!r->reason)
		into->late_ns += MAX(r->begin_taken.delay_ns, r->end_taken.delay_ns);
	into->end_ns = MAX(into->end_ns, r->end_ns);
	into->inside += r->inside;
	into->inside_ns += r->inside_ns;
	into->open |= r->open;
	into->unresolved += is_unresolved(r->reason);
	into->begin_taken = taken_worse(into->begin_taken, r->begin_taken);
	into->end_taken = taken_worse(into->end_taken, r->end_taken);
}

int group_threads(struct model *m)
{
	struct grouping g;
	int err = grouping_open(BY_THREAD, m->region_count, &g);

	for (size_t i = 0; err == 0 && i < m->region_count; i++) {
		const struct region *r = &m->regions[i];
		struct row like = row_like(r);
		struct row *into = group_of(&g, &like, rows_begin);

		into->count++;
		err = make_values(m, into);
		if (err == 0)
			err = merge_amounts(into, r->amounts);
		if (err == 0 && r->parent == MODEL_NONE)
			merge_outermost(m, into, r);
	}
	if (err == 0)
		groups_replace(&g, m);
	grouping_close(&g);
	return err;
}
