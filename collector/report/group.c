/* SPDX-License-Identifier: MIT */
#include "report/group.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

typedef void (*merge_fn)(struct value *into, uint64_t number, double share);

static void merge_add(struct value *into, uint64_t number, double share)
{
	(void)share;
	if (__builtin_add_overflow(into->number, number, &into->number))
		into->number = VALUE_ABSENT - 1;
}

static void merge_least(struct value *into, uint64_t number, double share)
{
	(void)share;
	into->number = MIN(into->number, number);
}

static void merge_most(struct value *into, uint64_t number, double share)
{
	(void)share;
	into->number = MAX(into->number, number);
}

static void merge_share(struct value *into, uint64_t number, double share)
{
	double mean = (double)into->number * (1 - share) + (double)number * share;

	into->number = (uint64_t)llround(MIN(mean, 9e18));
}

static const merge_fn merges[] = {
	[COLUMN_ADD] = merge_add,
	[COLUMN_LEAST] = merge_least,
	[COLUMN_MOST] = merge_most,
	[COLUMN_SHARE] = merge_share,
};

static void merge_error(
	struct value *into, const struct value *v, const struct column *column, double share)
{
	struct value error = { .number = into->error };

	merges[column->sum](&error, v->error, share);
	into->error = error.number;
	into->step_us = MAX(into->step_us, v->step_us);
}

/* share: of v in the time of both. */
static void merge_counted(
	struct value *into, const struct value *v, const struct column *column, double share)
{
	double coverage = into->coverage * (1 - share) + v->coverage * share;

	merges[column->sum](into, v->number, share);
	into->coverage = coverage;
	into->flags |= v->flags;
	merge_error(into, v, column, share);
	into->delay_us = MAX(into->delay_us, v->delay_us);
	if (!into->note)
		into->note = v->note;
	into->without += v->without;
}

static void merge_value(struct value *into, const struct value *v, const struct column *column,
	double share, uint32_t rows)
{
	struct value first = *v;

	if (v->state == VALUE_MISSING)
		return;
	if (into->state == VALUE_MISSING) {
		*into = first;
		into->without = v->state == VALUE_NULL;
	} else if (v->state == VALUE_NULL) {
		into->without++;
	} else if (into->state == VALUE_NULL) {
		*into = first;
		into->without = rows;
	} else {
		merge_counted(into, v, column, share);
	}
}

static int merge_values(const struct model *m, struct row *into, const struct row *row)
{
	uint64_t time = into->duration_ns + row->duration_ns;
	double share = time ? (double)row->duration_ns / (double)time : 0.5;

	if (!into->values) {
		into->values = calloc(m->column_count + 1, sizeof(*into->values));
		if (!into->values)
			return -ENOMEM;
		into->value_count = m->column_count;
	}
	for (size_t i = 0; i < m->column_count; i++) {
		struct value v = model_value(m, row, i);

		merge_value(&into->values[i], &v, &m->columns[i], share, (uint32_t)into->count);
	}
	return 0;
}

static int merge_row(const struct model *m, struct row *into, const struct row *row)
{
	int err = merge_values(m, into, row);

	for (const struct amount *a = row->amounts; err == 0 && a; a = a->next) {
		err = model_add_amount(&into->amounts, a->name, a->sum);
		if (err == -ENOBUFS)
			err = 0;
	}
	if (into->pid != row->pid || into->run != row->run)
		into->pid = 0;
	if (into->tid != row->tid)
		into->tid = 0;
	into->duration_ns += row->duration_ns;
	into->end_ns = MAX(into->end_ns, row->end_ns);
	into->count += row->count;
	into->includes += row->includes;
	into->unresolved += row->unresolved;
	into->open |= row->open;
	into->acknowledged |= row->acknowledged;
	return err;
}

/* A row without values of its own, of the same place as its first. */
static struct row group_begin(const struct row *first, enum model_by by)
{
	struct row row = *first;

	if (by == BY_PROCESS)
		row.name = first->program;
	row.next = NULL;
	row.values = NULL;
	row.value_count = 0;
	row.amounts = NULL;
	row.reason = NULL;
	row.count = 0;
	row.duration_ns = 0;
	row.includes = row.unresolved = 0;
	row.open = row.acknowledged = false;
	return row;
}

/* Names are of the pool, so that their addresses are as good as they are. */
static size_t name_hash(const struct row *row)
{
	return ((uintptr_t)row->name >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static size_t process_hash(const struct row *row)
{
	return (row->run * 31 + row->process) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

static bool same_name(const struct row *a, const struct row *b)
{
	return a->name == b->name;
}

static bool same_process(const struct row *a, const struct row *b)
{
	return a->run == b->run && a->process == b->process;
}

static const struct {
	size_t (*hash)(const struct row *row);
	bool (*same)(const struct row *a, const struct row *b);
} keys[] = {
	[BY_NAME] = { name_hash, same_name },
	[BY_PROCESS] = { process_hash, same_process },
};

/* Index + 1 of the group with this key, or 0 in *slot: a free one. */
static size_t *find_slot(size_t *slots, size_t mask, const struct row *groups,
	const struct row *row, enum model_by by)
{
	size_t at = keys[by].hash(row) & mask;

	while (slots[at] && !keys[by].same(&groups[slots[at] - 1], row))
		at = (at + 1) & mask;
	return &slots[at];
}

static int group_all(struct model *m, enum model_by by, struct row *groups, size_t *slots,
	size_t mask, size_t *ret_count)
{
	size_t count = 0;
	int err = 0;

	for (size_t i = 0; err == 0 && i < m->row_count; i++) {
		size_t *slot = find_slot(slots, mask, groups, &m->rows[i], by);

		if (!*slot) {
			groups[count++] = group_begin(&m->rows[i], by);
			*slot = count;
		}
		err = merge_row(m, &groups[*slot - 1], &m->rows[i]);
	}
	*ret_count = count;
	return err;
}

int group_rows(struct model *m, enum model_by by)
{
	size_t size = 64;
	struct row *groups;
	size_t *slots;
	size_t count = 0;
	int err = -ENOMEM;

	while (size < 2 * m->row_count)
		size *= 2;
	groups = calloc(m->row_count + 1, sizeof(*groups));
	slots = calloc(size, sizeof(*slots));
	if (groups && slots)
		err = group_all(m, by, groups, slots, size - 1, &count);
	free(slots);
	if (err < 0) {
		for (size_t i = 0; i < count; i++)
			row_clear(&groups[i]);
		free(groups);
		return err;
	}
	for (size_t i = 0; i < m->row_count; i++)
		row_clear(&m->rows[i]);
	free(m->rows);
	m->rows = groups;
	m->row_room = m->row_count + 1;
	m->row_count = count;
	return 0;
}
