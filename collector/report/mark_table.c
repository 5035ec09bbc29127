/* SPDX-License-Identifier: MIT */
#include "report/mark_table.h"

#include "internal/util.h"
#include "report/cells.h"
#include "report/grid.h"
#include "report/scaled.h"

/* More are left to --all and the other formats. */
#define MARKS_SHOWN 20

typedef void (*mark_cell_fn)(const struct model *m, const struct mark *mark, char text[GRID_CELL]);

struct place {
	const char *header;
	mark_cell_fn cell;
};

struct mark_table {
	const struct model *model;
	struct place place[5];
	size_t places;
};

static void put_name(const struct model *m, const struct mark *mark, char text[GRID_CELL])
{
	(void)m;
	snprintf(text, GRID_CELL, "%s", mark->name);
}

static void put_run(const struct model *m, const struct mark *mark, char text[GRID_CELL])
{
	(void)m;
	cell_number(mark->run, text);
}

static void put_pid(const struct model *m, const struct mark *mark, char text[GRID_CELL])
{
	(void)m;
	cell_number((uint64_t)mark->pid, text);
}

/* Since the run's first phase began. */
static void put_time(const struct model *m, const struct mark *mark, char text[GRID_CELL])
{
	const struct run *run = &m->runs[mark->run];
	uint64_t start = run->total.begin_ns ? run->total.begin_ns : run->clock_ns;
	char number[SCALED_ROOM];

	scaled(saturating_sub(mark->time_ns, start), UNIT_NS, number);
	snprintf(text, GRID_CELL, "%s", number);
}

static void put_phase(const struct model *m, const struct mark *mark, char text[GRID_CELL])
{
	(void)m;
	snprintf(text, GRID_CELL, "%s", mark->phase ? mark->phase : "");
}

static void table_header(const void *data, size_t column, char text[GRID_CELL])
{
	const struct mark_table *t = data;

	snprintf(text, GRID_CELL, "%s", t->place[column].header);
}

static void table_cell(const void *data, size_t row, size_t column, char text[GRID_CELL])
{
	const struct mark_table *t = data;

	t->place[column].cell(t->model, &t->model->marks[row], text);
}

static void add_place(struct mark_table *t, const char *header, mark_cell_fn cell)
{
	t->place[t->places++] = (struct place){ header, cell };
}

int mark_table_print(const struct model *m, const struct report_options *o, FILE *out)
{
	struct mark_table t = { .model = m };
	struct grid g = {
		.rows = o->all ? m->mark_count : MIN(m->mark_count, (size_t)MARKS_SHOWN),
		.sticky = 1,
		.width = o->width,
		.colour = o->colour,
		.first_is_text = true,
		.data = &t,
		.header = table_header,
		.cell = table_cell,
	};

	int err;

	if (m->mark_count == 0)
		return 0;
	add_place(&t, "mark", put_name);
	if (m->run_count > 1)
		add_place(&t, "run", put_run);
	if (m->several_processes)
		add_place(&t, "pid", put_pid);
	add_place(&t, "at", put_time);
	add_place(&t, "phase", put_phase);
	g.columns = t.places;
	fputs("\nmarks:\n", out);
	err = grid_print(&g, out);
	if (g.rows < m->mark_count)
		fprintf(out, "... %zu more (--all)\n", m->mark_count - g.rows);
	return err;
}
