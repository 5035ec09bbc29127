/* SPDX-License-Identifier: MIT */
/* One line for each value of each row. */
#include <inttypes.h>
#include <math.h>

#include "internal/util.h"
#include "report/csv_text.h"
#include "report/format.h"

/* What one line says; the row says the rest. */
struct line {
	const struct model *model;
	const struct row *row;
	size_t index; /* of the row */
	const char *name;
	const char *number;
	const char *unit;
	const char *source;
	const char *quality;
	const char *coverage;
};

typedef void (*field_fn)(FILE *out, const struct line *l);

static const struct run *line_run(const struct line *l)
{
	return &l->model->runs[l->row->run];
}

/* NULL: it is of several. */
static const struct run *only_run(const struct line *l)
{
	return l->row->several_runs ? NULL : line_run(l);
}

static void put_number(FILE *out, uint64_t number)
{
	fprintf(out, "%" PRIu64, number);
}

/* Zero stands for several. */
static void put_number_if(FILE *out, uint64_t number)
{
	if (number)
		put_number(out, number);
}

static void put_index(FILE *out, const struct line *l)
{
	put_number(out, l->index);
}

static void put_phase(FILE *out, const struct line *l)
{
	char text[256];

	if (l->row->next)
		snprintf(text, sizeof(text), "%s -> %s", l->row->name, l->row->next);
	else
		snprintf(text, sizeof(text), "%s", l->row->name);
	csv_field(out, text);
}

static void put_ms(FILE *out, const struct line *l)
{
	put_number(out, l->row->duration_ns / NSEC_PER_MSEC);
}

static void put_name(FILE *out, const struct line *l)
{
	csv_field(out, l->name);
}

static void put_value(FILE *out, const struct line *l)
{
	csv_field(out, l->number);
}

static void put_unit(FILE *out, const struct line *l)
{
	csv_field(out, l->unit);
}

static void put_source(FILE *out, const struct line *l)
{
	csv_field(out, l->source);
}

static void put_start(FILE *out, const struct line *l)
{
	csv_field(out, l->row->name);
}

static void put_end(FILE *out, const struct line *l)
{
	csv_field(out, l->row->next);
}

static void put_start_line(FILE *out, const struct line *l)
{
	if (l->row->line)
		put_number(out, l->row->line - 1);
}

static void put_end_line(FILE *out, const struct line *l)
{
	if (l->row->next_line)
		put_number(out, l->row->next_line - 1);
}

static void put_pattern(FILE *out, const struct line *l)
{
	csv_field(out, only_run(l) ? line_run(l)->token_pattern : NULL);
}

static void put_timestamp(FILE *out, const struct line *l)
{
	fprintf(out, "%" PRId64, run_timestamp_us(line_run(l), l->row->begin_ns));
}

static void put_command(FILE *out, const struct line *l)
{
	csv_field(out, only_run(l) ? line_run(l)->command : NULL);
}

static void put_exit_code(FILE *out, const struct line *l)
{
	int code = only_run(l) ? run_exit_code(line_run(l)) : -1;

	if (code >= 0)
		put_number(out, (uint64_t)code);
}

static void put_quality(FILE *out, const struct line *l)
{
	csv_field(out, l->quality);
}

static void put_coverage(FILE *out, const struct line *l)
{
	csv_field(out, l->coverage);
}

static void put_ns(FILE *out, const struct line *l)
{
	put_number(out, l->row->duration_ns);
}

static void put_phase_quality(FILE *out, const struct line *l)
{
	char text[QUALITY_ROOM];

	row_quality(l->row, text);
	csv_field(out, text);
}

static void put_count(FILE *out, const struct line *l)
{
	put_number(out, l->row->count);
}

static void put_pid(FILE *out, const struct line *l)
{
	put_number_if(out, (uint64_t)l->row->pid);
}

static void put_tid(FILE *out, const struct line *l)
{
	put_number_if(out, l->row->tid);
}

static void put_run(FILE *out, const struct line *l)
{
	if (only_run(l))
		put_number(out, l->row->run);
}

static void put_lost(FILE *out, const struct line *l)
{
	if (only_run(l))
		put_number(out, run_lost_markers(line_run(l)));
}

static void put_complete(FILE *out, const struct line *l)
{
	if (only_run(l))
		fputs(line_run(l)->complete ? "true" : "false", out);
}

/* The first fifteen are Joule Profiler's. */
static const struct {
	const char *name;
	field_fn put;
} fields[] = {
	{ "phase_id", put_index },
	{ "phase_name", put_phase },
	{ "phase_duration_ms", put_ms },
	{ "metric_name", put_name },
	{ "metric_value", put_value },
	{ "metric_unit", put_unit },
	{ "metric_source", put_source },
	{ "start_token", put_start },
	{ "end_token", put_end },
	{ "start_token_line", put_start_line },
	{ "end_token_line", put_end_line },
	{ "timestamp", put_timestamp },
	{ "command", put_command },
	{ "exit_code", put_exit_code },
	{ "token_pattern", put_pattern },
	{ "metric_quality", put_quality },
	{ "metric_coverage", put_coverage },
	{ "phase_duration_ns", put_ns },
	{ "phase_quality", put_phase_quality },
	{ "phase_count", put_count },
	{ "pid", put_pid },
	{ "tid", put_tid },
	{ "run", put_run },
	{ "lost_markers", put_lost },
	{ "complete", put_complete },
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

static bool put_column(FILE *out, struct line l, size_t column, bool no_null)
{
	const struct column *c = &l.model->columns[column];
	struct value v = model_value(l.model, l.row, column);
	char number[NUMBER_ROOM] = "";
	char quality[QUALITY_ROOM];
	char coverage[NUMBER_ROOM] = "";

	if (v.state == VALUE_MISSING || (no_null && v.state == VALUE_NULL))
		return false;
	if (v.state == VALUE_COUNTED) {
		value_number(&v, c->unit, number);
		snprintf(coverage, sizeof(coverage), "%.4f", v.coverage);
	}
	value_quality(&v, quality);
	l.name = c->name;
	l.number = number;
	l.unit = unit_name(c->unit);
	l.source = c->source;
	l.quality = quality;
	l.coverage = coverage;
	put_line(out, &l);
	return true;
}

static void put_amount(FILE *out, struct line l, const struct amount *amount)
{
	char number[NUMBER_ROOM] = "";

	if (isfinite(amount->sum))
		snprintf(number, sizeof(number), "%.15g", amount->sum);
	l.name = amount->name;
	l.number = number;
	l.unit = "count";
	l.source = "joule_value";
	l.quality = isfinite(amount->sum) ? "exact" : "not counted: " AMOUNT_NOT_FINITE;
	put_line(out, &l);
}

static int csv_render(const struct model *m, const struct report_options *o, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fprintf(out, "%s%s", i ? ";" : "", fields[i].name);
	putc('\n', out);

	for (size_t i = 0; i < m->row_count; i++) {
		struct line l = { .model = m, .row = &m->rows[i], .index = i };
		bool any = false;

		for (size_t c = 0; c < m->column_count; c++)
			any |= put_column(out, l, c, o->no_null);
		for (const struct amount *a = l.row->amounts; a; a = a->next)
			put_amount(out, l, a);
		/* Its time alone is worth a line. */
		if (!any)
			put_line(out, &l);
	}
	return 0;
}

const struct report_format csv_format = { csv_render };
