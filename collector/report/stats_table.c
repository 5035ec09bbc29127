/* SPDX-License-Identifier: MIT */
/* How phases of one name differ: for people. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/cells.h"
#include "report/columns.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/legend.h"
#include "report/scaled.h"
#include "report/stats.h"
#include "report/title.h"
#include "report/utf8.h"

enum place {
	PLACE_NAME,
	PLACE_COUNT,
	PLACE_MEAN,
	PLACE_DEVIATION,
	PLACE_LEAST,
	PLACE_MEDIAN,
	PLACE_MOST,
	PLACES,
};

/* A line of the table: a group's name alone, or one of its quantities. */
struct entry {
	const struct stats_group *group;
	struct stats_line line; /* of no count: the name */
};

struct stats_table {
	struct stats stats;
	const struct report_options *options;
	FILE *out;
	bool *shown; /* for each column of the model */
	struct nesting nesting;
	struct entry *entries;
	size_t entry_count;
	size_t entry_room;
	bool partial; /* some were left out */
};

/* --- cells --- */

/* Quantities are indented as what is nested in their group. */
static void put_name(const struct stats_table *t, const struct entry *e, char text[GRID_CELL])
{
	struct region_node like = { .depth = e->group->depth };
	char name[GRID_CELL];

	if (e->line.count) {
		like.depth++;
		like.name = stats_line_name(&t->stats, &e->line);
	} else {
		snprintf(name, sizeof(name), "%s%s%s", e->group->name,
			e->group->is_short ? " ?" : "", e->group->is_late ? " !" : "");
		like.name = name;
	}
	cell_nested(&t->nesting, &like, text);
}

static void put_count(const struct entry *e, char text[GRID_CELL])
{
	if (e->line.count == e->group->count)
		snprintf(text, GRID_CELL, "%zu", e->line.count);
	else
		snprintf(text, GRID_CELL, "%zu of %zu", e->line.count, e->group->count);
}

/* Of the mean, in percent. */
static void put_deviation(const struct stats_line *l, char text[GRID_CELL])
{
	if (isnan(l->deviation) || (l->mean == 0 && l->deviation > 0))
		strcpy(text, "-");
	else
		snprintf(text, GRID_CELL, "%.1f %%",
			l->deviation == 0 ? 0 : 100 * l->deviation / l->mean);
}

static void put_number(const struct stats_table *t, const struct stats_line *l, double number,
	char text[GRID_CELL])
{
	enum metric_unit unit = stats_line_unit(&t->stats, l);
	char shown[SCALED_ROOM];

	if (number == floor(number) && unit != UNIT_PERCENT && number < 1e15)
		scaled((uint64_t)number, unit, shown);
	else
		scaled_real(number, unit, shown);
	snprintf(text, GRID_CELL, "%s%s%s", l->worst.flags & VALUE_SCALED ? "~" : "", shown,
		l->worst.flags & VALUE_SHORT ? "?" : "");
}

static void table_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	const struct stats_table *t = data;
	const struct entry *e = &t->entries[row];
	const struct stats_line *l = &e->line;

	text[0] = '\0';
	if (column != PLACE_NAME && l->count == 0)
		return;
	switch ((enum place)column) {
	case PLACE_NAME: put_name(t, e, text); break;
	case PLACE_COUNT: put_count(e, text); break;
	case PLACE_MEAN: put_number(t, l, l->mean, text); break;
	case PLACE_DEVIATION: put_deviation(l, text); break;
	case PLACE_LEAST: put_number(t, l, l->least, text); break;
	case PLACE_MEDIAN: put_number(t, l, l->median, text); break;
	case PLACE_MOST: put_number(t, l, l->most, text); break;
	case PLACES: break;
	}
}

static void table_header(const void *data, size_t column, char text[GRID_CELL])
{
	static const char *const names[PLACES] = { NULL, "count", "mean", "std dev", "min",
		"median", "max" };
	const struct stats_table *t = data;

	if (column == PLACE_NAME)
		strcpy(text, t->entries[0].group->of_regions ? "region" : "phase");
	else
		strcpy(text, names[column]);
}

/* --- which lines --- */

/* Lines of one group: its name, two times and all columns. */
static int make_room(struct stats_table *t)
{
	size_t most = t->stats.model->column_count + 3, room = 2 * t->entry_room + most;
	struct entry *grown;

	if (t->entry_room - t->entry_count >= most)
		return 0;
	grown = reallocarray(t->entries, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->entries = grown;
	t->entry_room = room;
	return 0;
}

static void add_line(
	struct stats_table *t, const struct stats_group *g, enum stats_kind kind, size_t column)
{
	struct entry *e = &t->entries[t->entry_count];

	e->group = g;
	if (!stats_line(&t->stats, g, kind, column, &e->line) || e->line.count == 0)
		return;
	t->entry_count++;
	t->partial |= e->line.count < g->count;
}

static int add_group(struct stats_table *t, const struct stats_group *g)
{
	size_t name = t->entry_count;
	int err = make_room(t);

	if (err < 0)
		return err;
	t->entries[t->entry_count++] = (struct entry){ .group = g };
	add_line(t, g, STATS_TIME, 0);
	if (g->of_regions)
		add_line(t, g, STATS_OWN_TIME, 0);
	for (size_t i = 0; i < t->stats.model->column_count; i++)
		if (t->shown[i])
			add_line(t, g, STATS_COLUMN, i);
	t->partial |= t->entry_count == name + 1;
	return 0;
}

static int print_part(struct stats_table *t, bool of_regions)
{
	const struct stats *s = &t->stats;
	struct grid g = {
		.columns = PLACES,
		.sticky = 1,
		.width = t->options->width,
		.colour = t->options->colour,
		.first_is_text = true,
		.data = t,
		.header = table_header,
		.cell = table_cell,
	};
	int err = 0;

	t->entry_count = 0;
	for (size_t i = 0; err == 0 && i < s->group_count; i++)
		if (s->groups[i].of_regions == of_regions)
			err = add_group(t, &s->groups[i]);
	g.rows = t->entry_count;
	if (err < 0 || g.rows == 0)
		return err;
	putc('\n', t->out);
	return grid_print(&g, t->out);
}

/* --- around the tables --- */

static void print_title(const struct stats_table *t)
{
	const struct model *m = t->stats.model;
	char command[512];
	bool same = true;

	if (m->run_count == 1) {
		title_print(&m->runs[0], t->options, t->out);
		return;
	}
	for (size_t i = 1; i < m->run_count; i++)
		same &= str_eq(m->runs[i].command, m->runs[0].command);
	utf8_printable(m->runs[0].command, command, sizeof(command), t->options->width);
	fprintf(t->out, "%zu runs%s%s\n", m->run_count, same ? " of " : ", not all of one command",
		same ? command : "");
}

static void print_losses(const struct stats_table *t)
{
	const struct model *m = t->stats.model;
	uint64_t lost = 0;

	for (size_t i = 0; i < m->run_count; i++)
		lost += run_lost_markers(&m->runs[i]);
	if (lost)
		fprintf(t->out,
			"%" PRIu64 " marker%s lost: phases and regions may be missing or wrong\n",
			lost, lost == 1 ? "" : "s");
}

static void print_words(const struct stats_table *t)
{
	putc('\n', t->out);
	if (t->partial)
		print_wrapped(t->out,
			"N of M: without those that were not counted, not resolved, or not ended by "
			"a marker of their own",
			2, t->options->width);
	legend_print(t->stats.model, t->options, t->shown, false, t->out);
}

static int stats_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct stats_table t = { .options = o, .out = out, .nesting = nesting_of(m, o->width) };
	int err = stats_make(m, &t.stats);

	t.shown = calloc(m->column_count + 1, sizeof(*t.shown));
	if (!t.shown)
		err = -ENOMEM;
	if (err == 0) {
		columns_choose(m, o, t.shown);
		print_title(&t);
		print_losses(&t);
		err = print_part(&t, false);
	}
	if (err == 0)
		err = print_part(&t, true);
	if (err == 0)
		print_words(&t);
	stats_clear(&t.stats);
	free(t.shown);
	free(t.entries);
	return err;
}

const struct report_format stats_format = { stats_render };
