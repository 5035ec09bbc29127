/* SPDX-License-Identifier: MIT */
/* One line for each value of each region. */
#include <inttypes.h>

#include "internal/util.h"
#include "report/csv_text.h"
#include "report/format.h"

/* A value as it is written. */
struct cell {
	char number[NUMBER_ROOM];
	char quality[QUALITY_ROOM];
	char coverage[NUMBER_ROOM];
};

/* column: NULL where the region has no values at all. */
struct line {
	const struct model *model;
	const struct region *region;
	const struct column *column;
	struct cell whole;
	struct cell own;
};

static const struct run *line_run(const struct line *l)
{
	return &l->model->runs[l->region->run];
}

static void put_number(FILE *out, uint64_t number)
{
	fprintf(out, "%" PRIu64, number);
}

static void put_index(FILE *out, size_t index)
{
	if (index != MODEL_NONE)
		put_number(out, index);
}

static void put_id(FILE *out, const struct line *l)
{
	put_index(out, (size_t)(l->region - l->model->regions));
}

static void put_name(FILE *out, const struct line *l)
{
	csv_field(out, l->region->name);
}

static void put_depth(FILE *out, const struct line *l)
{
	put_number(out, l->region->depth);
}

static void put_parent(FILE *out, const struct line *l)
{
	put_index(out, l->region->parent);
}

static void put_phase(FILE *out, const struct line *l)
{
	put_index(out, l->region->phase);
}

static void put_duration(FILE *out, const struct line *l)
{
	put_number(out, l->region->end_ns - l->region->begin_ns);
}

static void put_own_duration(FILE *out, const struct line *l)
{
	put_number(out, l->region->own_ns);
}

static void put_metric(FILE *out, const struct line *l)
{
	csv_field(out, l->column ? l->column->name : NULL);
}

static void put_whole(FILE *out, const struct line *l)
{
	csv_field(out, l->whole.number);
}

static void put_own(FILE *out, const struct line *l)
{
	csv_field(out, l->own.number);
}

static void put_unit(FILE *out, const struct line *l)
{
	csv_field(out, l->column ? unit_name(l->column->unit) : NULL);
}

static void put_source(FILE *out, const struct line *l)
{
	csv_field(out, l->column ? l->column->source : NULL);
}

static void put_whole_quality(FILE *out, const struct line *l)
{
	csv_field(out, l->whole.quality);
}

static void put_whole_coverage(FILE *out, const struct line *l)
{
	csv_field(out, l->whole.coverage);
}

static void put_own_quality(FILE *out, const struct line *l)
{
	csv_field(out, l->own.quality);
}

static void put_own_coverage(FILE *out, const struct line *l)
{
	csv_field(out, l->own.coverage);
}

static void put_begin(FILE *out, const struct line *l)
{
	csv_field(out, taken_name(l->region->begin_taken));
}

static void put_begin_delay(FILE *out, const struct line *l)
{
	put_number(out, l->region->begin_taken.delay_ns);
}

static void put_end(FILE *out, const struct line *l)
{
	csv_field(out, taken_name(l->region->end_taken));
}

static void put_end_delay(FILE *out, const struct line *l)
{
	put_number(out, l->region->end_taken.delay_ns);
}

static void put_quality(FILE *out, const struct line *l)
{
	char text[QUALITY_ROOM];

	region_quality(l->region, text);
	csv_field(out, text);
}

static void put_timestamp(FILE *out, const struct line *l)
{
	fprintf(out, "%" PRId64, run_timestamp_us(line_run(l), l->region->begin_ns));
}

static void put_pid(FILE *out, const struct line *l)
{
	put_number(out, (uint64_t)l->region->pid);
}

static void put_tid(FILE *out, const struct line *l)
{
	put_number(out, l->region->tid);
}

static void put_run(FILE *out, const struct line *l)
{
	put_number(out, l->region->run);
}

static void put_command(FILE *out, const struct line *l)
{
	csv_field(out, line_run(l)->command);
}

static const struct {
	const char *name;
	void (*put)(FILE *out, const struct line *l);
} fields[] = {
	{ "region_id", put_id },
	{ "region_name", put_name },
	{ "depth", put_depth },
	{ "parent_id", put_parent },
	{ "phase_id", put_phase },
	{ "region_duration_ns", put_duration },
	{ "exclusive_duration_ns", put_own_duration },
	{ "metric_name", put_metric },
	{ "metric_value", put_whole },
	{ "exclusive_value", put_own },
	{ "metric_unit", put_unit },
	{ "metric_source", put_source },
	{ "metric_quality", put_whole_quality },
	{ "metric_coverage", put_whole_coverage },
	{ "exclusive_quality", put_own_quality },
	{ "exclusive_coverage", put_own_coverage },
	{ "begin_taken", put_begin },
	{ "begin_delay_ns", put_begin_delay },
	{ "end_taken", put_end },
	{ "end_delay_ns", put_end_delay },
	{ "region_quality", put_quality },
	{ "timestamp", put_timestamp },
	{ "pid", put_pid },
	{ "tid", put_tid },
	{ "run", put_run },
	{ "command", put_command },
};

static void put_line(FILE *out, const struct line *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (i)
			putc(';', out);
		fields[i].put(out, l);
	}
	putc('\n', out);
}

static void set_cell(struct cell *cell, const struct value *v, enum metric_unit unit)
{
	*cell = (struct cell){ .number = "" };
	value_quality(v, cell->quality);
	if (v->state != VALUE_COUNTED)
		return;
	value_number(v, unit, cell->number);
	snprintf(cell->coverage, sizeof(cell->coverage), "%.4f", v->coverage);
}

static void put_region(FILE *out, const struct model *m, const struct region *r, bool no_null)
{
	struct line l = { .model = m, .region = r };
	bool any = false;

	for (size_t i = 0; i < m->column_count; i++) {
		struct value whole = region_value(m, r, REGION_WHOLE, i);
		struct value own = region_value(m, r, REGION_OWN, i);

		if (whole.state == VALUE_MISSING || (no_null && whole.state == VALUE_NULL))
			continue;
		l.column = &m->columns[i];
		set_cell(&l.whole, &whole, l.column->unit);
		set_cell(&l.own, &own, l.column->unit);
		put_line(out, &l);
		any = true;
	}
	/* Its time alone is worth a line. */
	if (!any)
		put_line(out, &l);
}

static int csv_regions_render(const struct model *m, const struct report_options *o, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fprintf(out, "%s%s", i ? ";" : "", fields[i].name);
	putc('\n', out);
	for (size_t i = 0; i < m->region_count; i++)
		put_region(out, m, &m->regions[i], o->no_null);
	return 0;
}

const struct report_format csv_regions_format = { csv_regions_render };
