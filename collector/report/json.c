/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/repairs.h"

static void put_timestamp(struct json_writer *w, const struct run *run, uint64_t time_ns)
{
	json_key(w, "timestamp");
	fprintf(w->out, "%" PRId64, run_timestamp_us(run, time_ns));
}

struct json {
	struct json_writer w;
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
	void (*write)(struct json_writer *w, const struct column *c), const struct column *c)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json_writer w = { .out = out, .flat = 1, .empty = true };

	if (!out)
		return NULL;
	write(&w, c);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void write_before_value(struct json_writer *w, const struct column *c)
{
	json_open(w, '{');
	json_text(w, "name", c->name);
	json_key(w, "value");
}

static void write_after_value(struct json_writer *w, const struct column *c)
{
	w->empty = false;
	json_text(w, "unit", unit_name(c->unit));
	json_text(w, "source", c->source);
	json_key(w, "quality");
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

	json_next(&j->w);
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
	if (v->step_us) {
		value_number(&(struct value){ .number = v->error }, j->model->columns[column].unit,
			number);
		fprintf(out, ", \"error\": %s", number);
	}
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
	json_array(&j->w, "metrics");
	for (size_t i = 0; i < j->model->column_count; i++) {
		struct value v = model_value(j->model, row, j->order[i]);

		put_metric_if(j, j->order[i], &v);
	}
	json_close(&j->w, ']');
}

static void put_region_metrics(
	struct json *j, const char *name, const struct region *r, enum region_part part)
{
	json_array(&j->w, name);
	for (size_t i = 0; i < j->model->column_count; i++) {
		struct value v = region_value(j->model, r, part, j->order[i]);

		put_metric_if(j, j->order[i], &v);
	}
	json_close(&j->w, ']');
}

static void put_boundary(struct json_writer *w, const char *name, struct taken taken)
{
	json_flat_object(w, name);
	json_text(w, "taken", taken_name(taken));
	json_number(w, "delay_ns", taken.delay_ns);
	json_close(w, '}');
}

static void put_amounts(struct json *j, const struct amount *amount)
{
	if (!amount)
		return;
	json_object(&j->w, "values");
	for (; amount; amount = amount->next)
		json_real(&j->w, amount->name, amount->sum);
	json_close(&j->w, '}');
}

/* Counted from 0 here; left out where there is none. */
static void put_line(struct json_writer *w, const char *name, uint64_t line)
{
	if (line)
		json_number(w, name, line - 1);
}

static void put_row(struct json *j, const struct row *row, size_t index, enum model_by by)
{
	struct json_writer *w = &j->w;
	char quality[QUALITY_ROOM];

	json_object(w, NULL);
	json_number(w, "index", index);
	json_text(w, "name", row->name);
	if (by == BY_PHASE) {
		json_text(w, "start_token", row->name);
		json_text(w, "end_token", row->next);
		put_line(w, "start_token_line", row->line);
		put_line(w, "end_token_line", row->next_line);
	}
	put_timestamp(w, &j->model->runs[row->run], row->begin_ns);
	json_number(w, "duration_ms", row->duration_ns / NSEC_PER_MSEC);
	json_number(w, "duration_ns", row->duration_ns);
	json_number_or_null(w, "pid", (uint64_t)row->pid, row->pid > 0);
	json_number_or_null(w, "tid", row->tid, row->tid > 0);
	json_number_or_null(w, "run", row->run, !row->several_runs);
	json_number(w, "count", row->count);
	row_quality(row, quality);
	json_text(w, "quality", quality[0] ? quality : "exact");
	put_boundary(w, "begin", row->begin_taken);
	put_boundary(w, "end", row->end_taken);
	json_number(w, "marker_ns", row->marker_ns);
	json_number(w, "markers", row->inside);
	json_number(w, "markers_ns", row->inside_ns);
	put_amounts(j, row->amounts);
	put_metrics(j, row);
	json_close(w, '}');
}

static void put_total(struct json *j, const struct run *run)
{
	struct json_writer *w = &j->w;

	json_object(w, "total");
	json_number(w, "duration_ns", run->total.duration_ns);
	json_number_or_null(
		w, "user_ns", run->user_us * NSEC_PER_USEC, run->user_us != VALUE_ABSENT);
	json_number_or_null(
		w, "system_ns", run->system_us * NSEC_PER_USEC, run->system_us != VALUE_ABSENT);
	json_number(w, "marker_ns", run->marker_ns);
	put_metrics(j, &run->total);
	json_close(w, '}');
}

static void put_region(struct json *j, const struct region *r, size_t index)
{
	struct json_writer *w = &j->w;
	char quality[QUALITY_ROOM];

	json_object(w, NULL);
	json_number(w, "index", index);
	json_text(w, "name", r->name);
	json_number(w, "depth", r->depth);
	json_number_or_null(w, "parent", r->parent, r->parent != MODEL_NONE);
	json_number_or_null(w, "phase", r->phase, r->phase != MODEL_NONE);
	put_timestamp(w, &j->model->runs[r->run], r->begin_ns);
	json_number(w, "duration_ms", (r->end_ns - r->begin_ns) / NSEC_PER_MSEC);
	json_number(w, "duration_ns", r->end_ns - r->begin_ns);
	json_number(w, "exclusive_ns", r->own_ns);
	json_number(w, "pid", (uint64_t)r->pid);
	json_number(w, "tid", r->tid);
	json_number(w, "run", r->run);
	region_quality(r, quality);
	json_text(w, "quality",
		quality[0] ? quality : taken_name(taken_worse(r->begin_taken, r->end_taken)));
	put_boundary(w, "begin", r->begin_taken);
	put_boundary(w, "end", r->end_taken);
	json_number(w, "marker_ns", r->marker_ns);
	json_number(w, "markers", r->inside);
	json_number(w, "markers_ns", r->inside_ns);
	put_amounts(j, r->amounts);
	put_region_metrics(j, "metrics", r, REGION_WHOLE);
	put_region_metrics(j, "exclusive_metrics", r, REGION_OWN);
	json_close(w, '}');
}

static void put_mark(struct json *j, const struct mark *mark)
{
	json_flat_object(&j->w, NULL);
	json_text(&j->w, "name", mark->name);
	put_timestamp(&j->w, &j->model->runs[mark->run], mark->time_ns);
	json_number(&j->w, "pid", (uint64_t)mark->pid);
	json_number(&j->w, "tid", mark->tid);
	json_number(&j->w, "run", mark->run);
	json_close(&j->w, '}');
}

/* --- runs --- */

static void put_losses(struct json_writer *w, const struct run *run)
{
	json_object(w, "lost");
	json_number(w, "markers", run_lost_markers(run));
	for (size_t i = 0; i < run->loss_count; i++)
		json_number(w, run->losses[i].what, run->losses[i].count);
	json_close(w, '}');
}

static void put_absent(struct json_writer *w, const struct run *run)
{
	json_array(w, "absent_readers");
	for (size_t i = 0; i < run->absent_count; i++) {
		json_flat_object(w, NULL);
		json_text(w, "name", run->absent[i].name);
		json_text(w, "reason", run->absent[i].reason);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static void put_notes(struct json_writer *w, const struct run *run)
{
	json_array(w, "notes");
	for (size_t i = 0; i < run->note_count; i++) {
		json_next(w);
		json_string(w->out, run->notes[i]);
	}
	json_close(w, ']');
}

/* null: not measured. */
static void put_cost(struct json *j, const char *name, const struct marker_cost *cost)
{
	struct json_writer *w = &j->w;

	if (cost->samples == 0) {
		json_text(w, name, NULL);
		return;
	}
	json_object(w, name);
	json_number(w, "samples", cost->samples);
	json_number(w, "duration_ns", cost->ns);
	json_array(w, "metrics");
	for (size_t i = 0; i < j->model->column_count; i++) {
		size_t column = j->order[i];

		if (column < cost->value_count && cost->values[column].state == VALUE_COUNTED)
			put_metric(j, column, &cost->values[column]);
	}
	json_close(w, ']');
	json_close(w, '}');
}

/* Numbers, and the first names that they are of. */
static void put_repairs(struct json_writer *w, const struct run *run)
{
	char key[64];

	for (size_t i = 0; i < REPAIR_KINDS; i++) {
		const struct repair *r = &run->repairs[i];

		snprintf(key, sizeof(key), "regions_%s", repair_key(i));
		json_number(w, key, r->count);
		snprintf(key, sizeof(key), "regions_%s_names", repair_key(i));
		json_array(w, key);
		for (size_t n = 0; n < REPAIR_NAMES && r->name[n]; n++) {
			json_next(w);
			json_string(w->out, r->name[n]);
		}
		json_close(w, ']');
	}
}

static void put_jphase(struct json *j, const struct run *run)
{
	struct json_writer *w = &j->w;

	json_object(w, "jphase");
	json_text(w, "version", run->version);
	json_text(w, "snapshot_mode", run->mode);
	json_text(w, "file", run->file);
	json_text(w, "host", run->host);
	json_text(w, "kernel", run->kernel);
	json_text(w, "cpu", run->cpu);
	json_number(w, "cpus", run->cpus);
	json_bool(w, "complete", run->complete);
	put_losses(w, run);
	json_number(w, "processes", run->processes);
	json_number(w, "unresolved_phases", run->unresolved);
	put_repairs(w, run);
	json_number(w, "unresolved_regions", run->regions_unresolved);
	json_number(w, "unknown_records", run->unknown_records);
	json_number(w, "invalid_records", run->invalid_records);
	put_cost(j, "phase_marker_cost", &run->phase_cost);
	put_cost(j, "region_marker_cost", &run->region_cost);
	put_absent(w, run);
	put_notes(w, run);
	json_close(w, '}');
}

static void put_run(struct json *j, const struct run *run)
{
	struct json_writer *w = &j->w;
	char killer[SIGSPEC_NAME_ROOM];
	int code = run_exit_code(run);

	run_killer(run, killer);
	json_text(w, "command", run->command);
	json_text(w, "mode", "phases");
	json_text(w, "token_pattern", run->token_pattern);
	json_number_or_null(w, "exit_code", (uint64_t)code, code >= 0);
	json_text(w, "signal", killer[0] ? killer : NULL);
	put_timestamp(w, run, run->total.begin_ns ? run->total.begin_ns : run->clock_ns);
	json_number(w, "duration_ms", run->total.duration_ns / NSEC_PER_MSEC);
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
	struct json_writer *w = &j->w;

	put_run(j, &m->runs[0]);
	json_array(w, "phases");
	for (size_t i = 0; i < m->row_count; i++)
		put_row(j, &m->rows[i], i, by);
	json_close(w, ']');
	json_array(w, "regions");
	for (size_t i = 0; i < m->region_count; i++)
		put_region(j, &m->regions[i], i);
	json_close(w, ']');
	json_array(w, "marks");
	for (size_t i = 0; i < m->mark_count; i++)
		put_mark(j, &m->marks[i]);
	json_close(w, ']');
	if (m->run_count == 1)
		return;
	json_array(w, "runs");
	for (size_t i = 0; i < m->run_count; i++) {
		json_object(w, NULL);
		json_number(w, "run", i);
		put_run(j, &m->runs[i]);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static int json_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct json j = { .w = { .out = out, .empty = true }, .model = m, .no_null = o->no_null };
	int err = make_texts(&j);

	j.order = calloc(m->column_count + 1, sizeof(*j.order));
	if (!j.order)
		err = -ENOMEM;
	if (err == 0) {
		for (size_t i = 0; i < m->column_count; i++)
			j.order[i] = i;
		qsort_r(j.order, m->column_count, sizeof(*j.order), compare_columns, m->columns);
		json_object(&j.w, NULL);
		put_all(&j, o->by);
		json_close(&j.w, '}');
		putc('\n', out);
	}
	free_texts(&j);
	free(j.order);
	return err;
}

const struct report_format json_format = { json_render };
