/* SPDX-License-Identifier: MIT */
/* How each boundary was taken, what markers cost, and how far each value can be trusted. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/cells.h"
#include "report/columns.h"
#include "report/format.h"
#include "report/grid.h"
#include "report/scaled.h"
#include "report/title.h"
#include "report/tree.h"
#include "report/utf8.h"

struct view {
	const struct model *model;
	const struct report_options *options;
	FILE *out;
	bool *shown;                /* for each column */
	char (*text)[QUALITY_ROOM]; /* the quality of each column in one row; "" : left out */
	struct nesting nesting;
	size_t *order; /* nodes, each before its children */
	int err;       /* -ENOMEM: something is missing */
};

/* --- phases --- */

enum phase_column {
	PHASE_NAME,
	PHASE_TIME,
	PHASE_BEGIN,
	PHASE_END,
	PHASE_MARKER,
	PHASE_INSIDE,
	PHASE_INSIDE_TIME,
	PHASE_INSIDE_SHARE,
	PHASE_COLUMNS,
};

static void put_ns(uint64_t ns, char text[GRID_CELL])
{
	char number[SCALED_ROOM];

	scaled(ns, UNIT_NS, number);
	snprintf(text, GRID_CELL, "%s", number);
}

static void put_taken(struct taken taken, char text[GRID_CELL])
{
	char delay[SCALED_ROOM];

	scaled(taken.delay_ns, UNIT_NS, delay);
	if (taken.how == TAKEN_LATE)
		snprintf(text, GRID_CELL, "+%s", delay);
	else
		snprintf(text, GRID_CELL, "%s", taken_name(taken));
}

static void phase_cell(const void *data, size_t index, size_t column, char text[GRID_CELL])
{
	const struct view *v = data;
	const struct row *row = &v->model->rows[index];

	switch ((enum phase_column)column) {
	case PHASE_NAME:
		if (row->of_thread)
			snprintf(text, GRID_CELL, "%s %" PRIu32, row->name, row->tid);
		else
			snprintf(text, GRID_CELL, "%s", row->name);
		break;
	case PHASE_TIME: put_ns(row->duration_ns, text); break;
	case PHASE_BEGIN: put_taken(row->begin_taken, text); break;
	case PHASE_END: put_taken(row->end_taken, text); break;
	case PHASE_MARKER: put_ns(row->marker_ns, text); break;
	case PHASE_INSIDE: cell_number(row->inside, text); break;
	case PHASE_INSIDE_TIME: put_ns(row->inside_ns, text); break;
	case PHASE_INSIDE_SHARE: cell_share(row->inside_ns, row->duration_ns, text); break;
	case PHASE_COLUMNS: break;
	}
}

static void phase_header(const void *data, size_t column, char text[GRID_CELL])
{
	static const char *const names[PHASE_COLUMNS] = { "phase", "time", "begin", "end",
		"its marker", "markers", "time in them", "share of time" };
	const struct view *v = data;

	strcpy(text,
		column == PHASE_NAME && v->options->by == BY_THREAD ? "thread" : names[column]);
}

static struct grid grid_of(const struct view *v)
{
	return (struct grid){
		.sticky = 1,
		.width = v->options->width,
		.colour = v->options->colour,
		.first_is_text = true,
		.data = v,
	};
}

static void print_phases(struct view *v)
{
	struct grid g = grid_of(v);

	g.rows = v->model->row_count;
	g.columns = PHASE_COLUMNS;
	g.header = phase_header;
	g.cell = phase_cell;
	v->err = grid_print(&g, v->out);
}

/* --- regions --- */

enum region_column {
	REGION_NAME,
	REGION_COUNT,
	REGION_EXACT,
	REGION_SYNC,
	REGION_LATE,
	REGION_DELAY,
	REGION_NONE,
	REGION_UNRESOLVED,
	REGION_REPAIRED,
	REGION_INSIDE_TIME,
	REGION_COLUMNS,
};

static void region_cell(const void *data, size_t index, size_t column, char text[GRID_CELL])
{
	const struct view *v = data;
	const struct region_node *n = &v->model->nodes[v->order[index]];
	switch ((enum region_column)column) {
	case REGION_NAME:
		cell_nested(&v->nesting, n, text);
		if (n->tid)
			snprintf(
				text + strlen(text), GRID_CELL - strlen(text), " %" PRIu32, n->tid);
		break;
	case REGION_COUNT: cell_number(n->count, text); break;
	case REGION_EXACT: cell_number(n->taken[TAKEN_EXACT], text); break;
	case REGION_SYNC: cell_number(n->taken[TAKEN_SYNC], text); break;
	case REGION_LATE: cell_number(n->taken[TAKEN_LATE], text); break;
	case REGION_DELAY:
		if (n->taken[TAKEN_LATE])
			put_ns(n->delay_ns, text);
		else
			strcpy(text, "-");
		break;
	case REGION_NONE: cell_number(n->taken[TAKEN_NOT], text); break;
	case REGION_UNRESOLVED: cell_number(n->unresolved, text); break;
	case REGION_REPAIRED: cell_number(n->repaired, text); break;
	case REGION_INSIDE_TIME: put_ns(n->inside_ns, text); break;
	case REGION_COLUMNS: break;
	}
}

static void region_header(const void *data, size_t column, char text[GRID_CELL])
{
	static const char *const names[REGION_COLUMNS] = { "region", "count", "exact", "sync",
		"async", "latest", "none", "un-resolved", "repaired", "time in markers" };

	(void)data;
	strcpy(text, names[column]);
}

static void print_regions(struct view *v)
{
	const struct model *m = v->model;
	struct grid g = grid_of(v);

	for (size_t n = m->node_count ? 0 : MODEL_NONE; n != MODEL_NONE; n = tree_next(m, n))
		v->order[g.rows++] = n;
	if (g.rows == 0)
		return;
	g.columns = REGION_COLUMNS;
	g.header = region_header;
	g.cell = region_cell;
	putc('\n', v->out);
	if (grid_print(&g, v->out) < 0)
		v->err = -ENOMEM;
}

/* --- values --- */

/* Words that a recording may hold. */
static void print_clean(struct view *v, const char *text, unsigned indent)
{
	size_t room = 3 * strlen(text) + 8;
	char *clean = malloc(room);

	if (!clean) {
		v->err = -ENOMEM;
		return;
	}
	utf8_printable(text, clean, room, room);
	print_wrapped(v->out, clean, indent, v->options->width);
	free(clean);
}

/* The columns of one quality, behind it. */
static void print_quality(struct view *v, size_t first)
{
	const struct model *m = v->model;
	char *text = NULL;
	size_t size;
	FILE *line = open_memstream(&text, &size);

	if (!line) {
		v->err = -ENOMEM;
		return;
	}
	fprintf(line, "%s:", v->text[first]);
	for (size_t i = first; i < m->column_count; i++)
		if (i == first || str_eq(v->text[i], v->text[first])) {
			fprintf(line, "%s %s", i == first ? "" : ",", m->columns[i].name);
			if (i != first)
				v->text[i][0] = '\0';
		}
	fclose(line);
	fputs("  ", v->out);
	print_clean(v, text, 4);
	free(text);
}

static void note_quality(const struct view *v, size_t column, struct value value)
{
	v->text[column][0] = '\0';
	if (value.state != VALUE_MISSING && column_is_told_of(v->model, v->shown, column))
		value_quality(&value, v->text[column]);
}

static void print_qualities(struct view *v, const char *name, const char *said)
{
	char clean[256];

	utf8_printable(name, clean, sizeof(clean) - 2, sizeof(clean));
	utf8_elide(clean, v->options->width - 2);
	fprintf(v->out, "\n%s\n", clean);
	if (said[0]) {
		fputs("  ", v->out);
		print_clean(v, said, 4);
	}
	for (size_t i = 0; i < v->model->column_count; i++)
		if (v->text[i][0])
			print_quality(v, i);
}

static void print_row(struct view *v, const struct row *row)
{
	char said[QUALITY_ROOM];
	char name[128];

	for (size_t i = 0; i < v->model->column_count; i++)
		note_quality(v, i, model_value(v->model, row, i));
	row_quality(row, said);
	if (row->of_thread)
		snprintf(name, sizeof(name), "%s, thread %" PRIu32, row->name, row->tid);
	else
		snprintf(name, sizeof(name), "%s", row->name);
	print_qualities(v, name, said);
}

static void print_node(struct view *v, const struct region_node *n)
{
	char name[128];

	for (size_t i = 0; i < v->model->column_count; i++)
		note_quality(v, i, node_value(v->model, n, REGION_WHOLE, i));
	if (n->tid)
		snprintf(name, sizeof(name), "region %s, thread %" PRIu32, n->name, n->tid);
	else
		snprintf(name, sizeof(name), "region %s", n->name);
	print_qualities(v, name, "");
}

static void print_values(struct view *v)
{
	const struct model *m = v->model;

	for (size_t i = 0; i < m->row_count; i++)
		print_row(v, &m->rows[i]);
	for (size_t i = 0; i < m->run_count; i++)
		print_row(v, &m->runs[i].total);
	for (size_t n = m->node_count ? 0 : MODEL_NONE; n != MODEL_NONE; n = tree_next(m, n))
		print_node(v, &m->nodes[n]);
}

/* --- words --- */

static const struct {
	const char *mode;
	const char *text;
} modes[] = {
	{ "sync", "sync mode: counters are read while the marker's thread waits" },
	{ "async", "async mode: nobody waits; counters are read when the collector looks" },
	{ "exact", "exact mode: the kernel samples regions at their markers; phases are read while "
		   "their markers wait, as in sync mode" },
};

static void print_mode(const struct view *v, const struct run *run)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (str_eq(run->mode, modes[i].mode))
			print_wrapped(v->out, modes[i].text, 0, v->options->width);
}

/* What a marker of that kind costs. */
static void print_cost(struct view *v, const char *what, const struct marker_cost *cost)
{
	const struct model *m = v->model;
	char number[SCALED_ROOM];
	char *text = NULL;
	size_t size;
	FILE *line = cost->samples ? open_memstream(&text, &size) : NULL;

	if (!line)
		return;
	scaled(cost->ns, UNIT_NS, number);
	fprintf(line, "%s takes %s here", what, number);
	for (size_t i = 0; i < cost->value_count; i++) {
		if (cost->values[i].state != VALUE_COUNTED)
			continue;
		scaled(cost->values[i].number, m->columns[i].unit, number);
		fprintf(line, ", %s %s", m->columns[i].name, number);
	}
	fprintf(line, " (median of %" PRIu64 " empty ones)", cost->samples);
	fclose(line);
	print_clean(v, text, 2);
	free(text);
}

static const char *const words[] = {
	"exact: sampled by the kernel at the marker itself, for its thread",
	"sync: read while the marker's thread waited; other threads ran on",
	"+TIME, async: read so long after the marker; what happened between is in the value",
	"none: not read, or shared with a neighbour",
	"its marker: how long the marker that began the phase took, which is not in its time",
	"markers: all others in it; the time of threads that wait together adds up",
	"repaired: closed by the end of an outer region or of the process",
};

static void print_words(const struct view *v)
{
	putc('\n', v->out);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		print_wrapped(v->out, words[i], 2, v->options->width);
}

static int quality_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct view v = {
		.model = m, .options = o, .out = out, .nesting = nesting_of(m, o->width)
	};

	v.shown = calloc(m->column_count + 1, sizeof(*v.shown));
	v.text = calloc(m->column_count + 1, sizeof(*v.text));
	v.order = calloc(m->node_count + 1, sizeof(*v.order));
	if (v.shown && v.text && v.order) {
		columns_choose(m, o, v.shown);
		for (size_t i = 0; i < m->run_count; i++) {
			title_print(&m->runs[i], o, out);
			print_mode(&v, &m->runs[i]);
			print_cost(&v, "a marker of phases", &m->runs[i].phase_cost);
			print_cost(&v, "a marker of regions", &m->runs[i].region_cost);
		}
		putc('\n', out);
		print_phases(&v);
		print_regions(&v);
		print_values(&v);
		print_words(&v);
	} else {
		v.err = -ENOMEM;
	}
	free(v.shown);
	free(v.text);
	free(v.order);
	return v.err;
}

const struct report_format quality_format = { quality_render };
