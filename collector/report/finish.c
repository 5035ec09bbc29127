/* SPDX-License-Identifier: MIT */
/* What is done once all recordings have been read: order and choice. */
#include <errno.h>
#include <stdlib.h>

#include "internal/util.h"
#include "report/compensation.h"
#include "report/group.h"
#include "report/model.h"
#include "report/tree.h"

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

/* from: where the row of each place is now; it is used up. */
static void rows_permute(struct row *rows, size_t count, size_t *from)
{
	for (size_t i = 0; i < count; i++) {
		struct row first = rows[i];
		size_t at = i;

		while (from[at] != i) {
			size_t next = from[at];

			rows[at] = rows[next];
			from[at] = at;
			at = next;
		}
		rows[at] = first;
		from[at] = at;
	}
}

/* Puts the rows that count into their order; order and place have room for all. */
static void rows_arrange(struct model *m, size_t *order, size_t *place)
{
	size_t kept = 0, last;

	for (size_t i = 0; i < m->row_count; i++)
		order[i] = i;
	qsort_r(order, m->row_count, sizeof(*order), compare_rows, m->rows);
	for (size_t i = 0; i < m->row_count; i++)
		place[order[i]] = m->rows[order[i]].count ? kept++ : MODEL_NONE;
	last = kept;
	for (size_t i = 0; i < m->row_count; i++)
		order[place[i] == MODEL_NONE ? last++ : place[i]] = i;
	rows_permute(m->rows, m->row_count, order);
	for (size_t i = kept; i < m->row_count; i++)
		row_clear(&m->rows[i]);
	m->row_count = kept;
	regions_follow(m, place);
}

static int rows_finish(struct model *m)
{
	size_t *order = calloc(m->row_count + 1, sizeof(*order));
	size_t *place = calloc(m->row_count + 1, sizeof(*place));
	int err = order && place ? 0 : -ENOMEM;

	if (err == 0)
		rows_arrange(m, order, place);
	free(order);
	free(place);
	for (size_t i = 1; err == 0 && i < m->row_count; i++)
		m->several_processes |= m->rows[i].run == m->rows[i - 1].run &&
					m->rows[i].process != m->rows[i - 1].process;
	return err;
}

/* Regions belong to no row from then on. */
static int rows_group(struct model *m, enum model_by by)
{
	for (size_t i = 0; i < m->region_count; i++)
		m->regions[i].phase = MODEL_NONE;
	return by == BY_THREAD ? group_threads(m) : group_rows(m, by);
}

static bool is_half(uint64_t part, uint64_t whole)
{
	return part && part >= (whole + 1) / 2;
}

/*
 * More task-clock than time is that of several threads, or of the markers where
 * they can explain it.  What they cost may be unknown, but more than its CPUs can
 * have worked is never its own.
 */
static bool exceeds_by_markers(const struct row *row, uint64_t cpus)
{
	uint64_t excess = saturating_sub(row->clock_ns, row->duration_ns);

	if (cpus && row->clock_ns / cpus > row->duration_ns)
		return true;
	return excess > row->duration_ns / 5 && excess <= 2 * row->markers_clock_ns;
}

static bool row_is_short(const struct model *m, const struct row *row)
{
	return is_half(row->markers_clock_ns, row->clock_ns) ||
	       exceeds_by_markers(row, m->runs[row->run].cpus);
}

static void find_short(struct model *m)
{
	for (size_t i = 0; i < m->row_count; i++)
		m->rows[i].is_short = row_is_short(m, &m->rows[i]);
	for (size_t i = 0; i < m->node_count; i++) {
		struct region_node *n = &m->nodes[i];

		n->is_short = is_half(n->markers_clock_ns, n->clock_ns) ||
			      is_half(n->inside_ns, n->duration_ns);
	}
}

int model_finish(struct model *m, enum model_by by)
{
	int err = rows_finish(m);

	if (err == 0)
		err = compensation_apply(m);
	if (err == 0)
		err = tree_build(m, by == BY_THREAD);
	if (err == 0 && by != BY_PHASE)
		err = rows_group(m, by);
	if (err == 0)
		find_short(m);
	return err;
}
