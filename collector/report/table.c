/* SPDX-License-Identifier: MIT */
/* The report for people. */
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
#include "report/mark_table.h"
#include "report/region_table.h"
#include "report/repairs.h"
#include "report/scaled.h"
#include "report/title.h"
#include "report/utf8.h"

enum place_kind {
	PLACE_NAME,
	PLACE_RUN,
	PLACE_PID,
	PLACE_TID,
	PLACE_COUNT,
	PLACE_TIME,
	PLACE_COLUMN,
	PLACE_AMOUNT,
};

/* One column of the grid. */
struct place {
	enum place_kind kind;
	size_t column; /* of the model */
};

struct table {
	const struct model *model;
	const struct report_options *options;
	FILE *out;
	bool *shown;             /* for each column of the model */
	const struct row **rows; /* then the totals of the runs */
	size_t row_count;        /* without the totals */
	struct place place[GRID_COLUMNS];
	size_t places;
	size_t sticky;
	const struct row **amount_rows; /* of each amount, in order */
	const struct amount **amounts;
	size_t amount_count;
};

/* --- which columns --- */

static void add_place(struct table *t, enum place_kind kind, size_t column)
{
	if (t->places < GRID_COLUMNS)
		t->place[t->places++] = (struct place){ kind, column };
}

static void add_columns(struct table *t)
{
	for (size_t i = 0; i < t->model->column_count; i++)
		if (t->shown[i])
			add_place(t, PLACE_COLUMN, i);
}

static void add_sticky(struct table *t)
{
	enum model_by by = t->options->by;

	t->places = 0;
	add_place(t, PLACE_NAME, 0);
	if (t->model->run_count > 1)
		add_place(t, PLACE_RUN, 0);
	if ((t->model->several_processes && by != BY_NAME) || by == BY_PROCESS)
		add_place(t, PLACE_PID, 0);
	if (by == BY_THREAD)
		add_place(t, PLACE_TID, 0);
	t->sticky = t->places;
}

static void place_phases(struct table *t)
{
	add_sticky(t);
	if (t->options->by != BY_PHASE)
		add_place(t, PLACE_COUNT, 0);
	add_place(t, PLACE_TIME, 0);
	add_columns(t);
}

/* --- cells --- */

/* Marks that were found at one moment do not tell how long it was between them. */
static void put_time(const struct row *row, char text[GRID_CELL])
{
	if (row->unresolved == row->count && row->duration_ns == 0)
		strcpy(text, "-");
	else
		scaled(row->duration_ns, UNIT_NS, text);
}

static void row_cell(
	const struct table *t, const struct row *row, struct place p, char text[GRID_CELL])
{
	struct value v;

	text[0] = '\0';
	switch (p.kind) {
	case PLACE_NAME:
		snprintf(text, GRID_CELL, "%s%s%s%s", row->name, row->includes ? " +" : "",
			row->is_short ? " ?" : "", row_is_late(row) ? " !" : "");
		break;
	case PLACE_RUN:
		if (!row->several_runs)
			cell_number(row->run, text);
		break;
	case PLACE_PID:
		if (row->pid)
			cell_number((uint64_t)row->pid, text);
		break;
	case PLACE_TID:
		if (row->tid)
			cell_number(row->tid, text);
		break;
	case PLACE_COUNT: cell_number(row->count, text); break;
	case PLACE_TIME: put_time(row, text); break;
	case PLACE_COLUMN:
		v = model_value(t->model, row, p.column);
		cell_value(&v, t->model->columns[p.column].unit, text);
		break;
	case PLACE_AMOUNT: break;
	}
}

static void collect_rows(struct table *t)
{
	const struct model *m = t->model;

	for (size_t i = 0; i < m->row_count; i++)
		t->rows[t->row_count++] = &m->rows[i];
	for (size_t i = 0; i < m->run_count; i++)
		t->rows[t->row_count + i] = &m->runs[i].total;
}

static void phase_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	const struct table *t = data;

	row_cell(t, t->rows[row], t->place[column], text);
	if (row >= t->row_count && t->place[column].kind == PLACE_COUNT)
		text[0] = '\0';
}

static const char *const first_headers[] = {
	[BY_PHASE] = "phase",
	[BY_NAME] = "phase",
	[BY_PROCESS] = "process",
	[BY_THREAD] = "process",
};

static void phase_header(const void *data, size_t column, char text[GRID_CELL])
{
	static const char *const names[] = {
		[PLACE_RUN] = "run",
		[PLACE_PID] = "pid",
		[PLACE_TID] = "tid",
		[PLACE_COUNT] = "count",
		[PLACE_TIME] = "time",
		[PLACE_AMOUNT] = "amount",
	};
	const struct table *t = data;
	struct place p = t->place[column];
	const char *name = names[p.kind];

	if (p.kind == PLACE_NAME)
		name = first_headers[t->options->by];
	if (p.kind == PLACE_COUNT && t->options->by == BY_THREAD)
		name = "regions";
	if (p.kind == PLACE_COLUMN)
		name = t->model->columns[p.column].name;
	utf8_printable(name, text, GRID_CELL, GRID_CELL);
}

static struct grid grid_of(const struct table *t)
{
	return (struct grid){
		.columns = t->places,
		.sticky = t->sticky,
		.width = t->options->width,
		.colour = t->options->colour,
		.first_is_text = true,
		.data = t,
		.header = phase_header,
	};
}

static int print_phases(struct table *t)
{
	struct grid g;

	place_phases(t);
	g = grid_of(t);
	g.rows = t->row_count + t->model->run_count;
	g.totals = t->model->run_count;
	g.cell = phase_cell;
	return grid_print(&g, t->out);
}

/* --- amounts of work --- */

static void amount_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	const struct table *t = data;
	const struct row *of = t->amount_rows[row];
	const struct amount *a = t->amounts[row];
	struct place p = t->place[column];
	char number[SCALED_ROOM] = "-";
	struct value v;

	if (p.kind == PLACE_AMOUNT) {
		if (isfinite(a->sum))
			scaled_real(a->sum, UNIT_COUNT, number);
		snprintf(text, GRID_CELL, "%s %s", number, a->name);
		return;
	}
	if (p.kind != PLACE_TIME && p.kind != PLACE_COLUMN) {
		row_cell(t, of, p, text);
		return;
	}
	strcpy(text, "-");
	if (amount_undivided(a, of))
		return;
	if (p.kind == PLACE_TIME) {
		scaled_real((double)of->duration_ns / a->sum, UNIT_NS, text);
		return;
	}
	v = model_value(t->model, of, p.column);
	/* The amount is of all of them, the value of some. */
	if (v.state != VALUE_COUNTED || v.without)
		return;
	scaled_real((double)v.number / a->sum, t->model->columns[p.column].unit, number);
	snprintf(text, GRID_CELL, "%s%s", v.flags & VALUE_SCALED ? "~" : "", number);
}

/* How many there are; notes them where there is room. */
static size_t collect_amounts(struct table *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->model->row_count; i++) {
		const struct row *row = &t->model->rows[i];

		for (const struct amount *a = row->amounts; a; a = a->next, count++) {
			if (!t->amounts)
				continue;
			t->amounts[count] = a;
			t->amount_rows[count] = row;
		}
	}
	return count;
}

/* A process or a thread does more than the phases or regions that have an amount. */
static bool is_divided(const struct table *t)
{
	return t->options->by == BY_PHASE || t->options->by == BY_NAME;
}

/* Counters alone can be shared out over units of work. */
static void place_amounts(struct table *t)
{
	add_sticky(t);
	add_place(t, PLACE_AMOUNT, 0);
	if (!is_divided(t))
		return;
	add_place(t, PLACE_TIME, 0);
	for (size_t i = 0; i < t->model->column_count; i++)
		if (t->shown[i] && t->model->columns[i].sum == COLUMN_ADD)
			add_place(t, PLACE_COLUMN, i);
}

static int print_amounts(struct table *t)
{
	struct grid g;

	t->amount_count = collect_amounts(t);
	if (t->amount_count == 0)
		return 0;
	t->amounts = calloc(t->amount_count, sizeof(const struct amount *));
	t->amount_rows = calloc(t->amount_count, sizeof(const struct row *));
	if (!t->amounts || !t->amount_rows)
		return -ENOMEM;
	collect_amounts(t);
	place_amounts(t);
	g = grid_of(t);
	g.rows = t->amount_count;
	g.cell = amount_cell;
	fputs(is_divided(t) ? "\nper unit of work:\n" : "\namounts of work:\n", t->out);
	return grid_print(&g, t->out);
}

/* --- around the tables --- */

static void put_loud(const struct table *t, const char *text)
{
	fputs(t->options->colour ? COLOUR_LOUD : "", t->out);
	print_wrapped(t->out, text, 0, t->options->width);
	fputs(t->options->colour ? COLOUR_OFF : "", t->out);
}

/* What would have kept the markers that found no room. */
static const char *loss_remedy(const struct run *run)
{
	if (run_lost(run, "dropped") == 0)
		return "";
	return str_eq(run->mode, "sync") ? " (a larger --ring has room for more)"
					 : " (a larger --ring has room for more; in --mode sync "
					   "markers wait for it)";
}

static void print_losses(const struct table *t, const struct run *run)
{
	uint64_t lost = run_lost_markers(run);
	uint64_t backlog = run_lost(run, "backlog");
	uint64_t samples = run_lost(run, "sample");
	char text[256];

	if (lost) {
		snprintf(text, sizeof(text),
			"%" PRIu64 " marker%s lost: phases and regions may be missing or wrong%s",
			lost, lost == 1 ? "" : "s", loss_remedy(run));
		put_loud(t, text);
	}
	if (backlog) {
		snprintf(text, sizeof(text),
			"%" PRIu64 " record%s lost: the disk was full or too slow", backlog,
			backlog == 1 ? "" : "s");
		put_loud(t, text);
	}
	if (samples) {
		snprintf(text, sizeof(text),
			"%" PRIu64 " sample%s of regions lost, as they came faster than they were "
			"taken: those boundaries were read later",
			samples, samples == 1 ? "" : "s");
		put_loud(t, text);
	}
	if (!run->complete)
		put_loud(t, "this recording is incomplete: the report shows what is there");
}

/* Adds a time behind what is in text. */
static void add_time(char *text, size_t size, const char *name, uint64_t ns)
{
	size_t used = strlen(text);
	char number[SCALED_ROOM];

	scaled(ns, UNIT_NS, number);
	snprintf(text + used, size - used, "%s %s", name, number);
}

/* In the time of its phases; of all threads, which may have waited at once. */
static uint64_t time_in_other_markers(const struct model *m, size_t run)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m->row_count; i++)
		if (m->rows[i].run == run)
			ns += m->rows[i].inside_ns;
	return ns;
}

static void print_times(const struct table *t, const struct run *run, size_t index)
{
	uint64_t others = time_in_other_markers(t->model, index);
	char text[256] = "";

	if (t->model->run_count > 1)
		snprintf(text, sizeof(text), "run %zu: ", index);
	add_time(text, sizeof(text), "elapsed", run->total.duration_ns);
	if (run->user_us != VALUE_ABSENT)
		add_time(text, sizeof(text), ", user", run->user_us * NSEC_PER_USEC);
	if (run->system_us != VALUE_ABSENT)
		add_time(text, sizeof(text), ", system", run->system_us * NSEC_PER_USEC);
	if (run->marker_ns)
		add_time(text, sizeof(text), ", in markers of phases", run->marker_ns);
	if (others)
		add_time(text, sizeof(text), ", in others", others);
	print_wrapped(t->out, text, 0, t->options->width);
}

static void print_repairs(const struct table *t, const struct run *run)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("regions: ", out);
	repairs_print(run, out);
	fclose(out);
	if (text && text[strlen("regions: ")])
		print_wrapped(t->out, text, 2, t->options->width);
	free(text);
}

static void print_notes(const struct table *t, const struct run *run)
{
	char clean[1024];
	char text[1100];

	for (size_t i = 0; i < run->note_count; i++) {
		utf8_printable(run->notes[i], clean, sizeof(clean), sizeof(clean));
		snprintf(text, sizeof(text), "note: %s", clean);
		print_wrapped(t->out, text, 2, t->options->width);
	}
}

/* Few machines have energy counters, and who asks for them gets an error without. */
static bool is_expected(const struct table *t, const struct absent_reader *absent)
{
	return !t->options->all && str_eq(absent->name, "energy");
}

/* Readers that could not work. */
static void print_absent(const struct table *t, const struct run *run)
{
	char text[1100];
	char clean[sizeof(text)];

	for (size_t i = 0; i < run->absent_count; i++) {
		if (is_expected(t, &run->absent[i]))
			continue;
		snprintf(text, sizeof(text), "%.64s: not available: %s", run->absent[i].name,
			reason_bare(run->absent[i].reason));
		utf8_printable(text, clean, sizeof(clean), sizeof(clean));
		print_wrapped(t->out, clean, 2, t->options->width);
	}
}

static void print_before(const struct table *t)
{
	for (size_t i = 0; i < t->model->run_count; i++) {
		const struct run *run = &t->model->runs[i];

		if (t->model->run_count > 1)
			fprintf(t->out, "run %zu: ", i);
		title_print(run, t->options, t->out);
		print_losses(t, run);
	}
	putc('\n', t->out);
}

static void print_after(const struct table *t)
{
	putc('\n', t->out);
	for (size_t i = 0; i < t->model->run_count; i++) {
		const struct run *run = &t->model->runs[i];

		print_times(t, run, i);
		print_repairs(t, run);
		print_absent(t, run);
		print_notes(t, run);
	}
	legend_print(t->model, t->options, t->shown, true, t->out);
}

static int print_tables(struct table *t)
{
	int err = print_phases(t);

	if (err == 0)
		err = print_amounts(t);
	if (err == 0)
		err = region_table_print(t->model, t->options, t->shown, t->out);
	if (err == 0)
		err = mark_table_print(t->model, t->options, t->out);
	return err;
}

static int table_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct table *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (!t)
		return err;
	*t = (struct table){ .model = m, .options = o, .out = out };
	t->shown = calloc(m->column_count + 1, sizeof(*t->shown));
	t->rows = calloc(m->row_count + m->run_count, sizeof(const struct row *));
	if (t->shown && t->rows) {
		columns_choose(m, o, t->shown);
		collect_rows(t);
		print_before(t);
		err = print_tables(t);
		print_after(t);
	}
	free(t->shown);
	free(t->rows);
	free(t->amounts);
	free(t->amount_rows);
	free(t);
	return err;
}

const struct report_format table_format = { table_render };
