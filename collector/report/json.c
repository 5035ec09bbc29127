/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/format.h"
#include "report/json_text.h"

/* --- writing --- */

/* Puts commas and line breaks where they belong. */
struct writer {
	FILE *out;
	unsigned depth;
	unsigned flat; /* depth from which on all is in one line; 0: none */
	bool empty;
};

static void next_item(struct writer *w)
{
	if (!w->empty)
		putc(',', w->out);
	if (w->flat)
		fputs(w->empty ? "" : " ", w->out);
	else if (w->depth)
		fprintf(w->out, "\n%*s", (int)(2 * w->depth), "");
	w->empty = false;
}

static void open_bracket(struct writer *w, char bracket)
{
	putc(bracket, w->out);
	w->depth++;
	w->empty = true;
}

static void close_bracket(struct writer *w, char bracket)
{
	bool was_empty = w->empty;

	w->depth--;
	if (!w->flat && !was_empty)
		fprintf(w->out, "\n%*s", (int)(2 * w->depth), "");
	if (w->flat > w->depth)
		w->flat = 0;
	putc(bracket, w->out);
	w->empty = false;
}

static void key(struct writer *w, const char *name)
{
	next_item(w);
	json_string(w->out, name);
	fputs(": ", w->out);
}

static void open_object(struct writer *w, const char *name)
{
	if (name)
		key(w, name);
	else
		next_item(w);
	open_bracket(w, '{');
}

/* All that is in it stands in one line. */
static void open_flat_object(struct writer *w)
{
	open_object(w, NULL);
	w->flat = w->depth;
}

static void open_array(struct writer *w, const char *name)
{
	key(w, name);
	open_bracket(w, '[');
}

static void put_text(struct writer *w, const char *name, const char *text)
{
	key(w, name);
	json_string(w->out, text);
}

static void put_number(struct writer *w, const char *name, uint64_t number)
{
	key(w, name);
	fprintf(w->out, "%" PRIu64, number);
}

static void put_number_or_null(struct writer *w, const char *name, uint64_t number, bool known)
{
	if (known)
		put_number(w, name, number);
	else
		put_text(w, name, NULL);
}

static void put_bool(struct writer *w, const char *name, bool value)
{
	key(w, name);
	fputs(value ? "true" : "false", w->out);
}

static void put_real(struct writer *w, const char *name, double value)
{
	key(w, name);
	if (isfinite(value))
		fprintf(w->out, "%.15g", value);
	else
		fputs("null", w->out);
}

static void put_timestamp(struct writer *w, const struct run *run, uint64_t time_ns)
{
	key(w, "timestamp");
	fprintf(w->out, "%" PRId64, run_timestamp_us(run, time_ns));
}

/* --- parts --- */

struct json {
	struct writer w;
	const struct model *model;
	size_t *order; /* the columns by name */
	struct {
		char *before;
		char *after;
	} * texts; /* what stands around each column's values */
	bool no_null;
};

/* The values are many, and most of each is as that of its column: made once. */
static char *text_of(
	void (*write)(struct writer *w, const struct column *c), const struct column *c)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct writer w = { .out = out, .flat = 1, .empty = true };

	if (!out)
		return NULL;
	write(&w, c);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void write_before_value(struct writer *w, const struct column *c)
{
	open_bracket(w, '{');
	put_text(w, "name", c->name);
	key(w, "value");
}

static void write_after_value(struct writer *w, const struct column *c)
{
	w->empty = false;
	put_text(w, "unit", unit_name(c->unit));
	put_text(w, "source", c->source);
	key(w, "quality");
}

static int make_texts(struct json *j)
{
	const struct model *m = j->model;

	j->texts = calloc(m->column_count + 1, sizeof(*j->texts));
	for (size_t i = 0; j->texts && i < m->column_count; i++) {
		j->texts[i].before = text_of(write_before_value, &m->columns[i]);
		j->texts[i].after = text_of(write_after_value, &m->columns[i]);
		if (!j->texts[i].before || !j->texts[i].after)
			return -ENOMEM;
	}
	return j->texts ? 0 : -ENOMEM;
}

static void free_texts(struct json *j)
{
	for (size_t i = 0; j->texts && i < j->model->column_count; i++) {
		free(j->texts[i].before);
		free(j->texts[i].after);
	}
	free(j->texts);
}

static void put_metric(struct json *j, size_t column, const struct value *v)
{
	char number[NUMBER_ROOM];
	char quality[QUALITY_ROOM];
	FILE *out = j->w.out;

	next_item(&j->w);
	fputs(j->texts[column].before, out);
	value_number(v, j->model->columns[column].unit, number);
	fputs(v->state == VALUE_COUNTED ? number : "null", out);
	fputs(j->texts[column].after, out);
	value_quality(v, quality);
	json_string(out, quality);
	if (v->state != VALUE_COUNTED) {
		fputs(", \"coverage\": null}", out);
		return;
	}
	fprintf(out, ", \"coverage\": %.4f", v->coverage);
	if (v->step_us)
		fprintf(out, ", \"error\": %" PRIu64, v->error);
	putc('}', out);
}

static void put_metric_if(struct json *j, size_t column, const struct value *v)
{
	if (v->state == VALUE_MISSING || (v->state == VALUE_NULL && j->no_null))
		return;
	put_metric(j, column, v);
}

static void put_metrics(struct json *j, const struct row *row)
{
	open_array(&j->w, "metrics");
	for (size_t i = 0; i < j->model->column_count; i++) {
		struct value v = model_value(j->model, row, j->order[i]);

		put_metric_if(j, j->order[i], &v);
	}
	close_bracket(&j->w, ']');
}

static void put_region_metrics(
	struct json *j, const char *name, const struct region *r, enum region_part part)
{
	open_array(&j->w, name);
	for (size_t i = 0; i < j->model->column_count; i++) {
		struct value v = region_value(j->model, r, part, j->order[i]);

		put_metric_if(j, j->order[i], &v);
	}
	close_bracket(&j->w, ']');
}

static void put_boundary(struct writer *w, const char *name, struct taken taken)
{
	key(w, name);
	open_bracket(w, '{');
	w->flat = w->depth;
	put_text(w, "taken", taken_name(taken));
	put_number(w, "delay_ns", taken.delay_ns);
	close_bracket(w, '}');
}

static void put_amounts(struct json *j, const struct amount *amount)
{
	if (!amount)
		return;
	open_object(&j->w, "values");
	for (; amount; amount = amount->next)
		put_real(&j->w, amount->name, amount->sum);
	close_bracket(&j->w, '}');
}

/* Counted from 0 here; left out where there is none. */
static void put_line(struct writer *w, const char *name, uint64_t line)
{
	if (line)
		put_number(w, name, line - 1);
}

static void put_row(struct json *j, const struct row *row, size_t index, enum model_by by)
{
	struct writer *w = &j->w;
	char quality[QUALITY_ROOM];

	open_object(w, NULL);
	put_number(w, "index", index);
	put_text(w, "name", row->name);
	if (by == BY_PHASE) {
		put_text(w, "start_token", row->name);
		put_text(w, "end_token", row->next);
		put_line(w, "start_token_line", row->line);
		put_line(w, "end_token_line", row->next_line);
	}
	put_timestamp(w, &j->model->runs[row->run], row->begin_ns);
	put_number(w, "duration_ms", row->duration_ns / NSEC_PER_MSEC);
	put_number(w, "duration_ns", row->duration_ns);
	put_number_or_null(w, "pid", (uint64_t)row->pid, row->pid > 0);
	put_number_or_null(w, "tid", row->tid, row->tid > 0);
	put_number_or_null(w, "run", row->run, !row->several_runs);
	put_number(w, "count", row->count);
	row_quality(row, quality);
	put_text(w, "quality", quality[0] ? quality : "exact");
	put_boundary(w, "begin", row->begin_taken);
	put_boundary(w, "end", row->end_taken);
	put_number(w, "marker_ns", row->marker_ns);
	put_number(w, "markers", row->inside);
	put_number(w, "markers_ns", row->inside_ns);
	put_amounts(j, row->amounts);
	put_metrics(j, row);
	close_bracket(w, '}');
}

static void put_total(struct json *j, const struct run *run)
{
	struct writer *w = &j->w;

	open_object(w, "total");
	put_number(w, "duration_ns", run->total.duration_ns);
	put_number_or_null(
		w, "user_ns", run->user_us * NSEC_PER_USEC, run->user_us != VALUE_ABSENT);
	put_number_or_null(
		w, "system_ns", run->system_us * NSEC_PER_USEC, run->system_us != VALUE_ABSENT);
	put_number(w, "marker_ns", run->marker_ns);
	put_metrics(j, &run->total);
	close_bracket(w, '}');
}

static void put_region(struct json *j, const struct region *r, size_t index)
{
	struct writer *w = &j->w;
	char quality[QUALITY_ROOM];

	open_object(w, NULL);
	put_number(w, "index", index);
	put_text(w, "name", r->name);
	put_number(w, "depth", r->depth);
	put_number_or_null(w, "parent", r->parent, r->parent != MODEL_NONE);
	put_number_or_null(w, "phase", r->phase, r->phase != MODEL_NONE);
	put_timestamp(w, &j->model->runs[r->run], r->begin_ns);
	put_number(w, "duration_ms", (r->end_ns - r->begin_ns) / NSEC_PER_MSEC);
	put_number(w, "duration_ns", r->end_ns - r->begin_ns);
	put_number(w, "exclusive_ns", r->own_ns);
	put_number(w, "pid", (uint64_t)r->pid);
	put_number(w, "tid", r->tid);
	put_number(w, "run", r->run);
	region_quality(r, quality);
	put_text(w, "quality",
		quality[0] ? quality : taken_name(taken_worse(r->begin_taken, r->end_taken)));
	put_boundary(w, "begin", r->begin_taken);
	put_boundary(w, "end", r->end_taken);
	put_number(w, "marker_ns", r->marker_ns);
	put_number(w, "markers", r->inside);
	put_number(w, "markers_ns", r->inside_ns);
	put_amounts(j, r->amounts);
	put_region_metrics(j, "metrics", r, REGION_WHOLE);
	put_region_metrics(j, "exclusive_metrics", r, REGION_OWN);
	close_bracket(w, '}');
}

static void put_mark(struct json *j, const struct mark *mark)
{
	open_flat_object(&j->w);
	put_text(&j->w, "name", mark->name);
	put_timestamp(&j->w, &j->model->runs[mark->run], mark->time_ns);
	put_number(&j->w, "pid", (uint64_t)mark->pid);
	put_number(&j->w, "tid", mark->tid);
	put_number(&j->w, "run", mark->run);
	close_bracket(&j->w, '}');
}

/* --- runs --- */

static void put_losses(struct writer *w, const struct run *run)
{
	open_object(w, "lost");
	put_number(w, "markers", run_lost_markers(run));
	for (size_t i = 0; i < run->loss_count; i++)
		put_number(w, run->losses[i].what, run->losses[i].count);
	close_bracket(w, '}');
}

static void put_absent(struct writer *w, const struct run *run)
{
	open_array(w, "absent_readers");
	for (size_t i = 0; i < run->absent_count; i++) {
		open_flat_object(w);
		put_text(w, "name", run->absent[i].name);
		put_text(w, "reason", run->absent[i].reason);
		close_bracket(w, '}');
	}
	close_bracket(w, ']');
}

static void put_notes(struct writer *w, const struct run *run)
{
	open_array(w, "notes");
	for (size_t i = 0; i < run->note_count; i++) {
		next_item(w);
		json_string(w->out, run->notes[i]);
	}
	close_bracket(w, ']');
}

/* null: not measured. */
static void put_cost(struct json *j, const char *name, const struct marker_cost *cost)
{
	struct writer *w = &j->w;

	if (cost->samples == 0) {
		put_text(w, name, NULL);
		return;
	}
	open_object(w, name);
	put_number(w, "samples", cost->samples);
	put_number(w, "duration_ns", cost->ns);
	open_array(w, "metrics");
	for (size_t i = 0; i < j->model->column_count; i++) {
		size_t column = j->order[i];

		if (column < cost->value_count && cost->values[column].state == VALUE_COUNTED)
			put_metric(j, column, &cost->values[column]);
	}
	close_bracket(w, ']');
	close_bracket(w, '}');
}

static void put_jphase(struct json *j, const struct run *run)
{
	struct writer *w = &j->w;

	open_object(w, "jphase");
	put_text(w, "version", run->version);
	put_text(w, "snapshot_mode", run->mode);
	put_text(w, "file", run->file);
	put_text(w, "host", run->host);
	put_text(w, "kernel", run->kernel);
	put_text(w, "cpu", run->cpu);
	put_number(w, "cpus", run->cpus);
	put_bool(w, "complete", run->complete);
	put_losses(w, run);
	put_number(w, "processes", run->processes);
	put_number(w, "unresolved_phases", run->unresolved);
	put_number(w, "regions_without_begin", run->regions_stray);
	put_number(w, "regions_crossed", run->regions_crossed);
	put_number(w, "regions_unclosed", run->regions_unclosed);
	put_number(w, "regions_end_lost", run->regions_end_lost);
	put_number(w, "unresolved_regions", run->regions_unresolved);
	put_number(w, "unknown_records", run->unknown_records);
	put_number(w, "invalid_records", run->invalid_records);
	put_cost(j, "phase_marker_cost", &run->phase_cost);
	put_cost(j, "region_marker_cost", &run->region_cost);
	put_absent(w, run);
	put_notes(w, run);
	close_bracket(w, '}');
}

static void put_run(struct json *j, const struct run *run)
{
	struct writer *w = &j->w;
	int code = run_exit_code(run);

	put_text(w, "command", run->command);
	put_text(w, "mode", "phases");
	put_text(w, "token_pattern", run->token_pattern);
	put_number_or_null(w, "exit_code", (uint64_t)code, code >= 0);
	put_timestamp(w, run, run->total.begin_ns ? run->total.begin_ns : run->clock_ns);
	put_number(w, "duration_ms", run->total.duration_ns / NSEC_PER_MSEC);
	put_jphase(j, run);
	put_total(j, run);
}

/* --- the whole --- */

static int compare_columns(const void *a, const void *b, void *data)
{
	const struct column *columns = data;
	const struct column *x = &columns[*(const size_t *)a];
	const struct column *y = &columns[*(const size_t *)b];
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->source, y->source);
}

static void put_all(struct json *j, enum model_by by)
{
	const struct model *m = j->model;
	struct writer *w = &j->w;

	put_run(j, &m->runs[0]);
	open_array(w, "phases");
	for (size_t i = 0; i < m->row_count; i++)
		put_row(j, &m->rows[i], i, by);
	close_bracket(w, ']');
	open_array(w, "regions");
	for (size_t i = 0; i < m->region_count; i++)
		put_region(j, &m->regions[i], i);
	close_bracket(w, ']');
	open_array(w, "marks");
	for (size_t i = 0; i < m->mark_count; i++)
		put_mark(j, &m->marks[i]);
	close_bracket(w, ']');
	if (m->run_count == 1)
		return;
	open_array(w, "runs");
	for (size_t i = 0; i < m->run_count; i++) {
		open_object(w, NULL);
		put_number(w, "run", i);
		put_run(j, &m->runs[i]);
		close_bracket(w, '}');
	}
	close_bracket(w, ']');
}

static void json_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct json j = { .w = { .out = out, .empty = true }, .model = m, .no_null = o->no_null };

	j.order = calloc(m->column_count + 1, sizeof(*j.order));
	if (j.order && make_texts(&j) == 0) {
		for (size_t i = 0; i < m->column_count; i++)
			j.order[i] = i;
		qsort_r(j.order, m->column_count, sizeof(*j.order), compare_columns, m->columns);
		open_object(&j.w, NULL);
		put_all(&j, o->by);
		close_bracket(&j.w, '}');
		putc('\n', out);
	}
	free_texts(&j);
	free(j.order);
}

const struct report_format json_format = { "json", json_render };
