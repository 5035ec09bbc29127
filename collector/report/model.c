/* SPDX-License-Identifier: MIT */
#include "report/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "internal/util.h"
#include "report/fold.h"
#include "report/group.h"

/* --- growing --- */

/* Room for one more of count entries. */
static int grow(void **list, size_t *room, size_t count, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (count < *room)
		return 0;
	grown = reallocarray(*list, more, size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*room = more;
	return 0;
}

#define GROW(list, room, count) grow((void **)&(list), &(room), (count), sizeof(*(list)))

int model_add_row(struct model *m, const struct row *row, size_t *ret_index)
{
	int err = GROW(m->rows, m->row_room, m->row_count);

	if (err < 0)
		return err;
	m->rows[m->row_count] = *row;
	*ret_index = m->row_count++;
	return 0;
}

int model_add_region(struct model *m, const struct region *region, size_t *ret_index)
{
	int err = GROW(m->regions, m->region_room, m->region_count);

	if (err < 0)
		return err;
	m->regions[m->region_count] = *region;
	*ret_index = m->region_count++;
	return 0;
}

int model_add_mark(struct model *m, const struct mark *mark)
{
	int err = GROW(m->marks, m->mark_room, m->mark_count);

	if (err == 0)
		m->marks[m->mark_count++] = *mark;
	return err;
}

int model_column(struct model *m, const struct column *column, size_t *ret_index)
{
	const char *name = pool_put(m->pool, column->name);
	int err;

	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < m->column_count; i++) {
		/* Both are of the pool, where equal strings are one. */
		if (m->columns[i].name == name && m->columns[i].source == column->source) {
			*ret_index = i;
			return 0;
		}
	}
	err = GROW(m->columns, m->column_room, m->column_count);
	if (err < 0)
		return err;
	*ret_index = m->column_count;
	m->columns[m->column_count] = *column;
	m->columns[m->column_count++].name = name;
	return 0;
}

/* The one of that name, made if it is new. */
static int find_amount(struct amount **list, const char *name, struct amount **ret)
{
	struct amount **at = list;
	size_t count = 0;

	for (; *at && (*at)->name != name; at = &(*at)->next)
		count++;
	if (!*at && count >= AMOUNTS_MAX)
		return -ENOBUFS;
	if (!*at) {
		*at = malloc(sizeof(**at));
		if (!*at)
			return -ENOMEM;
		**at = (struct amount){ .name = name };
	}
	*ret = *at;
	return 0;
}

int model_add_amount(struct amount **list, const char *name, double sum)
{
	struct amount *amount;
	int err = find_amount(list, name, &amount);

	if (err < 0)
		return err;
	amount->sum += sum;
	amount->parts = 1;
	return 0;
}

int model_merge_amount(struct amount **list, const struct amount *more)
{
	struct amount *amount;
	int err = find_amount(list, more->name, &amount);

	if (err < 0)
		return err;
	amount->sum += more->sum;
	amount->parts += more->parts;
	return 0;
}

int run_knows(struct run *run, size_t column, const char *absent)
{
	struct run_column *c;

	if (column >= run->column_count) {
		struct run_column *grown =
			reallocarray(run->columns, column + 1, sizeof(*run->columns));

		if (!grown)
			return -ENOMEM;
		memset(grown + run->column_count, 0,
			(column + 1 - run->column_count) * sizeof(*grown));
		run->columns = grown;
		run->column_count = column + 1;
	}
	c = &run->columns[column];
	c->known = true;
	c->absent = absent;
	if (c->row_place == 0 && !absent)
		c->row_place = ++run->row_places;
	return 0;
}

void run_place(struct run *run, size_t column)
{
	struct run_column *c = &run->columns[column];

	c->of_threads = true;
	if (c->place == 0 && !c->absent)
		c->place = ++run->places;
}

/* --- reading --- */

static void amounts_free(struct amount *a)
{
	while (a) {
		struct amount *next = a->next;

		free(a);
		a = next;
	}
}

void row_clear(struct row *row)
{
	free(row->stored);
	free(row->values);
	amounts_free(row->amounts);
	row->stored = NULL;
	row->values = NULL;
	row->amounts = NULL;
}

void region_clear(struct region *r)
{
	free(r->stored);
	amounts_free(r->amounts);
	r->stored = NULL;
	r->amounts = NULL;
}

static void run_clear(struct run *run)
{
	free(run->columns);
	free(run->phase_cost.values);
	free(run->region_cost.values);
	row_clear(&run->total);
}

static int add_run(struct model *m, const char *file)
{
	struct run *grown = reallocarray(m->runs, m->run_count + 1, sizeof(*grown));
	const char *kept = pool_put(m->pool, file);

	if (!grown || !kept) {
		m->runs = grown ? grown : m->runs;
		return -ENOMEM;
	}
	m->runs = grown;
	m->runs[m->run_count++] = (struct run){
		.file = kept,
		.status = RECORD_STATUS_UNKNOWN,
		.user_us = VALUE_ABSENT,
		.system_us = VALUE_ABSENT,
	};
	return 0;
}

/* Gives the run what the decoder alone knows; without a header there is no run. */
static int finish_run(struct model *m, struct fold *f, const struct decoder *d, int err)
{
	struct run *run = &m->runs[m->run_count - 1];
	struct decoder_counts counts;
	int folded = 0;

	if (!decoder_has_header(d)) {
		run_clear(run);
		m->run_count--;
		if (err == 0)
			err = decoder_has_begun(d) ? -ENODATA : -EBADMSG;
		return err;
	}
	decoder_get_counts(d, &counts);
	run->unknown_records += counts.unknown;
	run->invalid_records += counts.invalid;
	/* What was written after the last summary is not complete either. */
	run->complete &= err == 0 && counts.rest == 0;
	if (err == 0 || err == -EILSEQ)
		folded = fold_finish(f);
	return folded < 0 ? folded : err;
}

static int read_with(struct model *m, int fd, const void *bytes, size_t size, const char *file)
{
	struct decoder *d = NULL;
	struct fold *f = NULL;
	int err;

	err = add_run(m, file);
	if (err < 0)
		return err;
	err = fold_open(m, m->run_count - 1, &f);
	if (err == 0)
		err = decoder_open(&fold_ops, f, &d);
	if (err < 0) {
		run_clear(&m->runs[--m->run_count]);
		goto out;
	}
	err = fd >= 0 ? decoder_feed_fd(d, fd) : decoder_feed(d, bytes, size);
	err = finish_run(m, f, d, err);
out:
	fold_close(f);
	decoder_close(d);
	return err;
}

int model_read(struct model *m, int fd, const char *file)
{
	return read_with(m, fd, NULL, 0, file);
}

int model_read_bytes(struct model *m, const void *bytes, size_t size, const char *file)
{
	return read_with(m, -1, bytes, size, file);
}

int model_open(struct model **ret)
{
	struct model *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = pool_open(&m->pool);
	if (err == 0)
		err = qualities_open(&m->qualities);
	if (err < 0) {
		model_close(m);
		return err;
	}
	*ret = m;
	return 0;
}

struct model *model_close(struct model *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->row_count; i++)
		row_clear(&m->rows[i]);
	for (size_t i = 0; i < m->region_count; i++)
		region_clear(&m->regions[i]);
	for (size_t i = 0; i < m->node_count; i++)
		free(m->nodes[i].values);
	for (size_t i = 0; i < m->run_count; i++)
		run_clear(&m->runs[i]);
	free(m->rows);
	free(m->regions);
	free(m->nodes);
	free(m->marks);
	free(m->runs);
	free(m->columns);
	qualities_close(m->qualities);
	pool_close(m->pool);
	free(m);
	return NULL;
}

/* --- asking --- */

/* A value that is not there: not known at all, or why not. */
static struct value missing(const struct run_column *known, const char *reason)
{
	if (!known)
		return (struct value){ .state = VALUE_MISSING };
	reason = known->absent ? known->absent : reason;
	return (struct value){
		.state = VALUE_NULL,
		.note = reason ? reason : "nothing was read",
	};
}

/* NULL: that run does not have it. */
static const struct run_column *known_column(const struct run *run, size_t column)
{
	return column < run->column_count && run->columns[column].known ? &run->columns[column]
									: NULL;
}

/* NULL: it has no meaning for regions. */
static const struct run_column *thread_column(const struct run *run, size_t column)
{
	const struct run_column *c = known_column(run, column);

	return c && c->of_threads ? c : NULL;
}

static const struct value nothing = { .state = VALUE_MISSING };

/* Where the row keeps that column, or NULL. */
static struct stored *row_place(const struct model *m, const struct row *row, size_t column)
{
	const struct run_column *c = known_column(&m->runs[row->run], column);

	return row->stored && c && c->row_place && c->row_place <= row->value_count
		       ? &row->stored[c->row_place - 1]
		       : NULL;
}

static struct value row_value(const struct model *m, const struct row *row, size_t column)
{
	const struct stored *stored = row_place(m, row, column);

	if (row->values)
		return column < row->value_count ? row->values[column] : nothing;
	return stored ? stored_get(m->qualities, stored) : nothing;
}

struct value model_value(const struct model *m, const struct row *row, size_t column)
{
	const struct run *run = &m->runs[row->run];
	struct value v = row_value(m, row, column);

	if (v.state != VALUE_MISSING)
		return v;
	return missing(row->of_thread ? thread_column(run, column) : known_column(run, column),
		row->reason);
}

/* Among count values for each part; MODEL_NONE: it is none of them. */
static size_t part_index(const struct run_column *c, size_t count, enum region_part part)
{
	return c && c->place && c->place <= count ? (size_t)part * count + c->place - 1
						  : MODEL_NONE;
}

struct value region_value(
	const struct model *m, const struct region *r, enum region_part part, size_t column)
{
	const struct run_column *c = thread_column(&m->runs[r->run], column);
	size_t at = part_index(c, r->value_count, part);
	struct value v = at == MODEL_NONE ? nothing : stored_get(m->qualities, &r->stored[at]);

	return v.state != VALUE_MISSING ? v : missing(c, r->reason);
}

struct value node_value(
	const struct model *m, const struct region_node *n, enum region_part part, size_t column)
{
	const struct run_column *c = thread_column(&m->runs[n->run], column);
	size_t at = part_index(c, n->value_count, part);

	return at != MODEL_NONE && n->values[at].state != VALUE_MISSING ? n->values[at]
									: missing(c, NULL);
}

/* --- storing --- */

int row_store(struct model *m, struct row *row, const struct value *values, size_t count)
{
	const struct run *run = &m->runs[row->run];
	int err = 0;

	row->stored = calloc(run->row_places + 1, sizeof(*row->stored));
	if (!row->stored)
		return -ENOMEM;
	row->value_count = run->row_places;
	for (size_t c = 0; err == 0 && c < MIN(count, run->column_count); c++)
		if (run->columns[c].row_place)
			err = row_set_value(m, row, c, &values[c]);
	return err;
}

int region_store(struct model *m, struct region *r, const struct value *values, size_t count)
{
	int err = 0;

	r->stored = calloc(REGION_PARTS * count + 1, sizeof(*r->stored));
	if (!r->stored)
		return -ENOMEM;
	r->value_count = count;
	for (size_t i = 0; err == 0 && i < REGION_PARTS * count; i++)
		err = stored_put(m->qualities, &values[i], &r->stored[i]);
	return err;
}

int row_set_value(struct model *m, struct row *row, size_t column, const struct value *v)
{
	return stored_put(m->qualities, v, row_place(m, row, column));
}

int region_set_value(struct model *m, struct region *r, enum region_part part, size_t column,
	const struct value *v)
{
	const struct run_column *c = thread_column(&m->runs[r->run], column);

	return stored_put(m->qualities, v, &r->stored[part_index(c, r->value_count, part)]);
}

/* --- what a run says of itself --- */

int run_exit_code(const struct run *run)
{
	if (run->status == RECORD_STATUS_UNKNOWN)
		return -1;
	if (WIFSIGNALED(run->status))
		return 128 + WTERMSIG(run->status);
	return WIFEXITED(run->status) ? WEXITSTATUS(run->status) : -1;
}

void run_killer(const struct run *run, char ret[SIGSPEC_NAME_ROOM])
{
	ret[0] = '\0';
	if (run->status != RECORD_STATUS_UNKNOWN && WIFSIGNALED(run->status))
		sigspec_name(WTERMSIG(run->status), ret);
}

int64_t run_timestamp_us(const struct run *run, uint64_t time_ns)
{
	int64_t since = (int64_t)(time_ns - run->clock_ns) / (int64_t)NSEC_PER_USEC;

	return (int64_t)(run->started_us + (uint64_t)since);
}

uint64_t run_lost(const struct run *run, const char *what)
{
	for (size_t i = 0; i < run->loss_count; i++)
		if (str_eq(run->losses[i].what, what))
			return run->losses[i].count;
	return 0;
}

uint64_t run_lost_markers(const struct run *run)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < run->loss_count; i++)
		lost += run->losses[i].count;
	/* Not markers, or of a kind that nobody here knows. */
	lost -= run_lost(run, "backlog") + run_lost(run, "unknown") + run_lost(run, "sample");
	return MAX(lost, run->lost);
}
