/* SPDX-License-Identifier: MIT */
/*
 * The Trace Event Format, which Perfetto and Chromium's tracing page show as a
 * timeline.  Phases lie on a track of their process's own, since a region may
 * go on from one phase to the next; regions lie on their threads'.
 *
 * Source of the format: "Trace Event Format", the Chromium project's document
 * on trace files; ts and dur are microseconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "report/columns.h"
#include "report/format.h"
#include "report/json_writer.h"

/* No pid or tid is as large: PID_MAX_LIMIT of linux/threads.h. */
#define IDS_MAX (UINT64_C(1) << 22)

/* Of no thread: the phases of a process. */
#define TRACK_PHASES 0

/* Of labels and of metrics with their units; more is cut. */
#define NAME_ROOM 320

struct track {
	size_t run;
	pid_t pid;
	uint32_t tid;
	const char *name; /* of the process, or NULL */
};

struct trace {
	struct json_writer w;
	const struct model *model;
	struct track *tracks;
	size_t track_count;
	bool *shown; /* for each column of the model */
	bool no_null;
};

/* --- numbers --- */

/* Runs follow each other as they did in the world; since the first one began. */
static int64_t trace_ns(const struct model *m, size_t run, uint64_t time_ns)
{
	const struct run *first = &m->runs[0], *of = &m->runs[run];
	uint64_t begin = first->total.begin_ns ? first->total.begin_ns : first->clock_ns;
	int64_t apart = (int64_t)(of->started_us - first->started_us) * (int64_t)NSEC_PER_USEC;

	return (int64_t)(time_ns - of->clock_ns) - (int64_t)(begin - first->clock_ns) +
	       (run ? apart : 0);
}

static void put_us(struct json_writer *w, const char *key, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	json_key(w, key);
	fprintf(w->out, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / NSEC_PER_USEC,
		(unsigned)(size % NSEC_PER_USEC));
}

/* Two runs may have had one pid. */
static uint64_t trace_pid(size_t run, pid_t pid)
{
	return (uint64_t)pid + run * 2 * IDS_MAX;
}

static uint64_t trace_tid(size_t run, pid_t pid, uint32_t tid)
{
	return tid == TRACK_PHASES ? trace_pid(run, pid) + IDS_MAX : tid + run * 2 * IDS_MAX;
}

/* --- tracks --- */

static int compare_tracks(const void *a, const void *b)
{
	const struct track *x = a, *y = b;

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return 0;
}

static void add_track(struct trace *t, struct track track)
{
	t->tracks[t->track_count++] = track;
}

/* Each track once for each thing that lies on it, in order. */
static void find_tracks(struct trace *t)
{
	const struct model *m = t->model;

	for (size_t i = 0; i < m->row_count; i++)
		add_track(t, (struct track){ m->rows[i].run, m->rows[i].pid, TRACK_PHASES,
				     m->rows[i].program });
	for (size_t i = 0; i < m->region_count; i++)
		add_track(t, (struct track){ m->regions[i].run, m->regions[i].pid,
				     m->regions[i].tid, m->regions[i].program });
	for (size_t i = 0; i < m->mark_count; i++)
		add_track(t,
			(struct track){ m->marks[i].run, m->marks[i].pid, m->marks[i].tid, NULL });
	qsort(t->tracks, t->track_count, sizeof(*t->tracks), compare_tracks);
}

/* --- events --- */

static void begin_event(
	struct trace *t, const char *kind, const char *name, size_t run, pid_t pid, uint32_t tid)
{
	struct json_writer *w = &t->w;

	json_flat_object(w, NULL);
	json_text(w, "ph", kind);
	json_text(w, "name", name);
	json_number(w, "pid", trace_pid(run, pid));
	json_number(w, "tid", trace_tid(run, pid, tid));
}

static void begin_args(struct json_writer *w)
{
	json_object(w, "args");
}

static void end_event(struct json_writer *w)
{
	json_close(w, '}');
	json_close(w, '}');
}

static void put_label(
	struct trace *t, const char *what, const struct track *track, const char *text)
{
	begin_event(t, "M", what, track->run, track->pid, track->tid);
	begin_args(&t->w);
	json_text(&t->w, "name", text);
	end_event(&t->w);
}

static void put_process(struct trace *t, const struct track *track)
{
	char text[NAME_ROOM];

	snprintf(text, sizeof(text), "run %zu: %s", track->run, track->name);
	put_label(t, "process_name", track, t->model->run_count > 1 ? text : track->name);
}

static void put_thread(struct trace *t, const struct track *track)
{
	char text[NAME_ROOM];

	snprintf(text, sizeof(text), "thread %" PRIu32, track->tid);
	put_label(t, "thread_name", track, track->tid == TRACK_PHASES ? "phases" : text);
}

static void put_tracks(struct trace *t)
{
	static const struct track none = { .run = SIZE_MAX };
	const struct track *last = &none;

	for (const struct track *at = t->tracks; at < t->tracks + t->track_count; at++) {
		bool same = at->run == last->run && at->pid == last->pid;

		if (!same && at->name)
			put_process(t, at);
		if (!same || at->tid != last->tid)
			put_thread(t, at);
		last = at;
	}
}

static void begin_slice(struct trace *t, const char *name, const char *category,
	const struct track *track, uint64_t begin_ns, uint64_t end_ns)
{
	begin_event(t, "X", name, track->run, track->pid, track->tid);
	json_text(&t->w, "cat", category);
	put_us(&t->w, "ts", trace_ns(t->model, track->run, begin_ns));
	put_us(&t->w, "dur", (int64_t)(end_ns - begin_ns));
	begin_args(&t->w);
}

/* A value that is not exact has a second argument, which says what it is worth. */
static void put_value(struct trace *t, size_t column, const struct value *v)
{
	const struct column *c = &t->model->columns[column];
	char number[NUMBER_ROOM], quality[QUALITY_ROOM], key[NAME_ROOM];
	bool counted = v->state == VALUE_COUNTED;

	if (v->state == VALUE_MISSING || (!counted && t->no_null))
		return;
	if (c->unit == UNIT_COUNT)
		snprintf(key, sizeof(key), "%s", c->name);
	else
		snprintf(key, sizeof(key), "%s (%s)", c->name, unit_name(c->unit));
	value_number(v, c->unit, number);
	json_key(&t->w, key);
	fputs(counted ? number : "null", t->w.out);
	value_quality(v, quality);
	if (str_eq(quality, "exact"))
		return;
	snprintf(key, sizeof(key), "%s is", c->name);
	json_text(&t->w, key, quality);
}

static void put_amounts(struct trace *t, const struct amount *amount)
{
	for (; amount; amount = amount->next)
		json_real(&t->w, amount->name, amount->sum);
}

static void put_phase(struct trace *t, const struct row *row)
{
	struct track track = { row->run, row->pid, TRACK_PHASES, NULL };
	char quality[QUALITY_ROOM];

	begin_slice(t, row->name, "phase", &track, row->begin_ns, row->end_ns);
	row_quality(row, quality);
	if (quality[0])
		json_text(&t->w, "quality", quality);
	put_amounts(t, row->amounts);
	for (size_t i = 0; i < t->model->column_count; i++) {
		struct value v = model_value(t->model, row, i);

		if (t->shown[i])
			put_value(t, i, &v);
	}
	end_event(&t->w);
}

static void put_region(struct trace *t, const struct region *r)
{
	struct track track = { r->run, r->pid, r->tid, NULL };
	char quality[QUALITY_ROOM];

	begin_slice(t, r->name, "region", &track, r->begin_ns, r->end_ns);
	region_quality(r, quality);
	if (quality[0])
		json_text(&t->w, "quality", quality);
	put_amounts(t, r->amounts);
	for (size_t i = 0; i < t->model->column_count; i++) {
		struct value v = region_value(t->model, r, REGION_WHOLE, i);

		if (t->shown[i])
			put_value(t, i, &v);
	}
	end_event(&t->w);
}

static void put_mark(struct trace *t, const struct mark *mark)
{
	begin_event(t, "i", mark->name, mark->run, mark->pid, mark->tid);
	json_text(&t->w, "cat", "mark");
	json_text(&t->w, "s", "t");
	put_us(&t->w, "ts", trace_ns(t->model, mark->run, mark->time_ns));
	json_close(&t->w, '}');
}

/* --- the whole --- */

static void put_not_counted(struct trace *t, const struct run *run)
{
	json_object(&t->w, "not_counted");
	for (size_t i = 0; i < MIN(run->column_count, t->model->column_count); i++)
		if (run->columns[i].absent && column_is_told_of(t->model, t->shown, i))
			json_text(&t->w, t->model->columns[i].name,
				reason_bare(run->columns[i].absent));
	json_close(&t->w, '}');
}

static void put_run(struct trace *t, const struct run *run)
{
	struct json_writer *w = &t->w;

	json_flat_object(w, NULL);
	json_text(w, "command", run->command);
	json_text(w, "file", run->file);
	json_text(w, "host", run->host);
	json_text(w, "kernel", run->kernel);
	json_text(w, "cpu", run->cpu);
	json_text(w, "jphase", run->version);
	json_text(w, "snapshot_mode", run->mode);
	json_number(w, "lost_markers", run_lost_markers(run));
	json_bool(w, "complete", run->complete);
	put_not_counted(t, run);
	json_close(w, '}');
}

static void put_all(struct trace *t)
{
	const struct model *m = t->model;
	struct json_writer *w = &t->w;

	json_object(w, NULL);
	json_array(w, "traceEvents");
	put_tracks(t);
	for (size_t i = 0; i < m->row_count; i++)
		put_phase(t, &m->rows[i]);
	for (size_t i = 0; i < m->region_count; i++)
		put_region(t, &m->regions[i]);
	for (size_t i = 0; i < m->mark_count; i++)
		put_mark(t, &m->marks[i]);
	json_close(w, ']');
	json_text(w, "displayTimeUnit", "ns");
	json_object(w, "otherData");
	json_array(w, "runs");
	for (size_t i = 0; i < m->run_count; i++)
		put_run(t, &m->runs[i]);
	json_close(w, ']');
	json_close(w, '}');
	json_close(w, '}');
	putc('\n', w->out);
}

static int trace_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct trace t = {
		.w = { .out = out, .empty = true },
		.model = m,
		.tracks = calloc(
			m->row_count + m->region_count + m->mark_count + 1, sizeof(*t.tracks)),
		.shown = calloc(m->column_count + 1, sizeof(*t.shown)),
		.no_null = o->no_null,
	};
	int err = t.tracks && t.shown ? 0 : -ENOMEM;

	if (err == 0) {
		columns_choose(m, o, t.shown);
		find_tracks(&t);
		put_all(&t);
	}
	free(t.tracks);
	free(t.shown);
	return err;
}

const struct report_format trace_format = { trace_render };
