/* SPDX-License-Identifier: MIT */
#include "report/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "jphase/abi.h"
#include "report/cost.h"
#include "report/markers.h"
#include "report/phases.h"
#include "report/regions.h"

/* How the collector begins the note that tells why regions are not counted. */
#define NO_REGION_COUNTERS "regions have times but no counters: "

/* A recording that lost process records may have gaps, but not larger ones. */
#define PROCESS_GAP 65536

static void saw_time(struct fold *f, uint64_t time_ns)
{
	f->last_ns = MAX(f->last_ns, time_ns);
}

/* --- processes --- */

static struct process *process_free(struct fold *f, struct process *p)
{
	if (!p)
		return NULL;
	boundary_drop(f, &p->begin);
	boundary_drop(f, &p->ended_begin);
	boundary_drop(f, &p->ended_end);
	boundary_drop(f, &p->exit);
	free(p->ranges);
	free(p->ended_ranges);
	free(p);
	return NULL;
}

static struct process *process_new(struct fold *f, const struct decoded_process *d)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->index = d->process;
	p->pid = d->pid;
	p->last_ns = d->time_ns;
	p->current = p->ended = MODEL_NONE;
	p->name = pool_put(f->model->pool, d->name);
	p->reason = d->absent ? pool_put(f->model->pool, reason_bare(d->absent)) : NULL;
	p->ranges = ranges_new(f);
	p->ended_ranges = ranges_new(f);
	if (!p->name || (d->absent && !p->reason) || !p->ranges || !p->ended_ranges)
		return process_free(f, p);
	return p;
}

static int on_process(void *data, const struct decoded_process *d)
{
	struct fold *f = data;
	struct process *p;
	int err;

	if (process_at(&f->processes, d->process) ||
		d->process > fold_run(f)->processes + PROCESS_GAP) {
		fold_run(f)->invalid_records++;
		return 0;
	}
	p = process_new(f, d);
	if (!p)
		return -ENOMEM;
	if (str_eq(d->how, "exec"))
		p->before = process_living(&f->processes, d->pid);
	/* The user has named it: it is shown in any case. */
	p->marked = str_eq(d->how, "attach");
	p->calibrates = str_eq(d->how, "calibration");
	p->in_total = fold_run(f)->processes == 0 || (p->before && p->before->in_total);
	err = processes_add(&f->processes, p);
	if (err < 0) {
		process_free(f, p);
		return err;
	}
	fold_run(f)->processes++;
	return 0;
}

static void process_gone(struct fold *f, struct process *p, bool open)
{
	process_dies(&f->processes, p);
	for (struct thread *t = p->threads; t; t = t->sibling)
		regions_finish(f, t, open ? f->last_ns : p->last_ns, open);
}

/* What the process was before its exec ends where it begins. */
static int process_follows(struct fold *f, struct process *p, const struct boundary *b)
{
	struct process *before = p->before;
	struct boundary copy = { 0 };
	int err;

	p->before = NULL;
	if (!before || before->gone)
		return 0;
	boundary_copy(f, &copy, b);
	before->last_ns = MAX(before->last_ns, b->time_ns);
	copy.time_ns = before->last_ns;
	boundary_drop(f, &before->exit);
	err = process_boundary(f, before, &copy, "END");
	process_gone(f, before, false);
	return err;
}

/* --- markers --- */

static int on_phase(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	struct boundary b;
	int err;

	boundary_drop(f, &p->exit);
	p->has_exit = false;
	if (p->current != MODEL_NONE)
		f->model->rows[p->current].next_line = marker_line(m);
	err = boundary_make(f, p, p->last_ns, m->snapshot, marker_waited(m), &b);
	if (err < 0)
		return err;
	if (!p->started) {
		err = total_begin(f, p, &b);
		if (err == 0)
			err = process_follows(f, p, &b);
	}
	if (err == 0)
		err = process_boundary(f, p, &b, name);
	else
		boundary_drop(f, &b);
	return err < 0 ? err : phase_open(f, p, thread, m, name);
}

static int on_exit_marker(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	(void)thread;
	(void)name;
	boundary_drop(f, &p->exit);
	p->has_exit = true;
	return boundary_make(f, p, p->last_ns, m->snapshot, marker_waited(m), &p->exit);
}

static int on_begin(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	p->marked = true;
	return region_begin(f, p, thread, m, name);
}

static int on_end(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	p->marked = true;
	return region_end(f, p, thread, m, name);
}

static int on_mark(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	struct mark mark = {
		.name = name,
		.run = f->run,
		.pid = p->pid,
		.tid = m->tid,
		.time_ns = p->last_ns,
	};

	(void)thread;
	p->marked = true;
	if (p->current != MODEL_NONE)
		mark.phase = f->model->rows[p->current].name;
	return model_add_mark(f->model, &mark);
}

static int add_loss(struct fold *f, const char *what, uint64_t count)
{
	struct run *run = fold_run(f);
	size_t i = 0;

	what = pool_put(f->model->pool, what);
	if (!what)
		return -ENOMEM;
	while (i < run->loss_count && run->losses[i].what != what)
		i++;
	/* Too many kinds for a real recording: the last one stands for the rest. */
	i = MIN(i, (size_t)RUN_LOSSES_MAX - 1);
	if (i == run->loss_count)
		run->losses[run->loss_count++].what = what;
	run->losses[i].count += count;
	return 0;
}

static int on_value(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	int err = 0;

	p->marked = true;
	if (p->current != MODEL_NONE)
		err = model_add_amount(&f->model->rows[p->current].amounts, name, m->value);
	if (err == 0 && thread->open)
		err = model_add_amount(
			&f->model->regions[thread->open->region].amounts, name, m->value);
	return err == -ENOBUFS ? add_loss(f, "value", 1) : err;
}

static int (*const marker_functions[])(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name) = {
	[JPHASE_PHASE] = on_phase,
	[JPHASE_BEGIN] = on_begin,
	[JPHASE_END] = on_end,
	[JPHASE_MARK] = on_mark,
	[JPHASE_VALUE] = on_value,
	[JPHASE_EXIT] = on_exit_marker,
};

static int on_marker(void *data, const struct record_marker *m)
{
	struct fold *f = data;
	struct process *p = process_at(&f->processes, m->process);
	struct thread *thread;
	const char *name;
	int err = 0;

	if (!p) {
		fold_run(f)->invalid_records++;
		return 0;
	}
	saw_time(f, m->time_ns);
	p->last_ns = MAX(p->last_ns, m->time_ns);
	process_revives(&f->processes, p);
	thread = threads_get(f->threads, p->index, m->tid, &p->threads);
	name = pool_put(f->model->pool, m->name);
	if (!thread || !name)
		return -ENOMEM;
	phase_returned(f, thread, m);
	region_returned(f, thread, m);
	marker_took(f, thread, m);
	if (m->kind < ARRAY_SIZE(marker_functions) && marker_functions[m->kind])
		err = marker_functions[m->kind](f, p, thread, m, name);
	if (err == 0)
		marker_counts(f, p, thread, m);
	return err;
}

/* --- the other records --- */

/* A snapshot stands before its marker, so it belongs to the phase that ends. */
static void widen_peaks(struct fold *f, const struct decoded_snapshot *s)
{
	struct process *one = process_at(&f->processes, s->process);

	if (one && !one->gone)
		outputs_widen_peaks(f->outputs, s->reader, s->values, one->ranges);
	if (s->process != RECORD_NO_PROCESS)
		return;
	for (struct process *p = f->processes.living; p; p = p->next_living)
		outputs_widen_peaks(f->outputs, s->reader, s->values, p->ranges);
}

static int on_snapshot(void *data, const struct decoded_snapshot *s)
{
	struct fold *f = data;
	struct reading reading = { .begin_ns = s->begin_ns, .end_ns = s->end_ns };
	size_t count = metric_list_values(&f->header->readers[s->reader].metrics);

	saw_time(f, s->end_ns);
	if (outputs_has_peaks(f->outputs, s->reader))
		widen_peaks(f, s);
	return snapshots_store(f->snapshots, (struct snap_key){ s->snapshot, s->process, 0 },
		s->reader, &reading, s->values, count);
}

static int on_thread(void *data, const struct decoded_thread *t)
{
	struct fold *f = data;
	struct reading reading = {
		.begin_ns = t->begin_ns,
		.end_ns = t->end_ns,
		.sampled = str_eq(t->how, "sampled"),
	};
	size_t count = metric_list_values(&f->header->readers[t->reader].metrics);

	saw_time(f, t->end_ns);
	outputs_count_threads(f->outputs, fold_run(f), t->reader);
	return snapshots_store(f->snapshots, (struct snap_key){ t->snapshot, t->process, t->tid },
		t->reader, &reading, t->values, count);
}

static int on_sample(void *data, const struct decoded_sample *s)
{
	struct fold *f = data;
	struct process *p = process_at(&f->processes, s->process);

	saw_time(f, s->time_ns);
	if (p)
		outputs_widen(f->outputs, s->reader, s->values, p->ranges);
	if (s->process != RECORD_NO_PROCESS)
		return 0;
	for (p = f->processes.living; p; p = p->next_living)
		outputs_widen(f->outputs, s->reader, s->values, p->ranges);
	return 0;
}

static int on_loss(void *data, uint64_t time_ns, const char *what, uint64_t count)
{
	struct fold *f = data;

	saw_time(f, time_ns);
	/* Those of unknown kinds begin and end nothing, and these are not markers. */
	f->losses += !str_eq(what, "unknown") && !str_eq(what, "sample");
	return add_loss(f, what, count);
}

static int on_note(void *data, uint64_t time_ns, uint64_t process, const char *text)
{
	struct fold *f = data;
	struct run *run = fold_run(f);
	struct process *p = process_at(&f->processes, process);
	const char *kept = pool_put(f->model->pool, text);

	if (!kept)
		return -ENOMEM;
	saw_time(f, time_ns);
	if (p && reason_bare(kept) != kept)
		p->reason = reason_bare(kept);
	if (p && str_starts(kept, NO_REGION_COUNTERS))
		p->threads_reason = reason_bare(kept + strlen(NO_REGION_COUNTERS));
	for (size_t i = 0; i < run->note_count; i++)
		if (run->notes[i] == kept)
			return 0;
	if (run->note_count < RUN_NOTES_MAX)
		run->notes[run->note_count++] = kept;
	return 0;
}

/* Ends the last phase at the exit marker if there was one, else at time_ns. */
static int process_ends(struct fold *f, struct process *p, uint64_t snapshot)
{
	struct boundary b = p->exit;
	uint64_t time_ns = p->has_exit ? b.time_ns : p->last_ns;
	int err;

	p->exit = (struct boundary){ 0 };
	if (p->has_exit && b.number)
		return process_boundary(f, p, &b, "END");
	/* Nothing changes any more in a process that is gone: its values are exact. */
	err = boundary_make(f, p, time_ns, snapshot, true, &b);
	return err < 0 ? err : process_boundary(f, p, &b, "END");
}

static int on_exit_record(void *data, const struct record_exit *e)
{
	struct fold *f = data;
	struct process *p = process_at(&f->processes, e->process);
	int err;

	if (!p || p->gone) {
		fold_run(f)->invalid_records += !p;
		return 0;
	}
	saw_time(f, e->time_ns);
	p->last_ns = MAX(p->last_ns, e->time_ns);
	if (p->in_total) {
		fold_run(f)->status = e->status;
		fold_run(f)->user_us = e->user_us;
		fold_run(f)->system_us = e->system_us;
	}
	/* Who lives on, or ended long ago for all we know, has none. */
	if (p->current != MODEL_NONE && !p->has_exit)
		f->model->rows[p->current].to_death = e->status != RECORD_STATUS_UNKNOWN;
	err = process_ends(f, p, e->snapshot);
	process_gone(f, p, false);
	return err;
}

static int on_summary(void *data, const struct decoded_summary *s)
{
	struct fold *f = data;
	struct run *run = fold_run(f);

	run->complete = s->complete;
	run->markers = s->markers;
	run->lost = s->lost;
	return 0;
}

static int run_texts(struct run *run, struct pool *pool, const struct decoded_header *h)
{
	run->version = pool_put(pool, h->version);
	run->host = pool_put(pool, h->host);
	run->kernel = pool_put(pool, h->kernel);
	run->cpu = pool_put(pool, h->cpu);
	run->command = pool_put(pool, h->command);
	run->mode = pool_put(pool, h->mode);
	run->token_pattern = h->token_pattern ? pool_put(pool, h->token_pattern) : NULL;
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct decoded_reader *r = &h->readers[i];
		struct absent_reader *absent = &run->absent[run->absent_count];

		if (!r->absent)
			continue;
		absent->name = pool_put(pool, r->name);
		absent->reason = pool_put(pool, r->absent);
		if (!absent->name || !absent->reason)
			return -ENOMEM;
		run->absent_count++;
	}
	return run->version && run->host && run->kernel && run->cpu && run->command && run->mode
		       ? 0
		       : -ENOMEM;
}

static int on_header(void *data, const struct decoded_header *h)
{
	struct fold *f = data;
	struct run *run = fold_run(f);
	int err;

	f->header = h;
	f->sync = !str_eq(h->mode, "async");
	f->last_ns = h->clock_ns;
	run->cpus = h->cpus;
	run->interval_ns = h->interval_ns;
	run->started_us = h->started_us;
	run->clock_ns = h->clock_ns;
	run->pid = h->pid;
	err = run_texts(run, f->model->pool, h);
	if (err == 0)
		err = outputs_open(f->model, run, h, &f->outputs);
	if (err == 0)
		err = snapshots_open(h->reader_count, &f->snapshots);
	return err;
}

const struct decoder_ops fold_ops = {
	.header = on_header,
	.process = on_process,
	.marker = on_marker,
	.snapshot = on_snapshot,
	.thread = on_thread,
	.sample = on_sample,
	.loss = on_loss,
	.note = on_note,
	.exit = on_exit_record,
	.summary = on_summary,
};

/* --- the end --- */

/* Its exit was never seen: it lives on, or the recording was cut short. */
static int process_cut(struct fold *f, struct process *p)
{
	int err = 0;

	if (p->has_exit) {
		err = process_ends(f, p, 0);
	} else if (p->current != MODEL_NONE) {
		struct row *row = &f->model->rows[p->current];

		row->open = true;
		row->end_ns = MAX(f->last_ns, row->entry_ns);
		row->reason = "the recording ends in this phase";
		if (p->in_total) {
			f->total_end_ns = MAX(f->total_end_ns, row->end_ns);
			fold_run(f)->total.open = true;
		}
	}
	if (!p->gone)
		process_gone(f, p, true);
	return err;
}

/* The beginning of a forked process is nothing: it is counted from its first marker on. */
static bool is_bare_start(const struct row *row, const struct process *p)
{
	return row->duration_ns == 0 && !row->stored && !row->amounts &&
	       str_eq(row->name, "START") && !row->open && !p->in_total;
}

/* Rows that are left out, as those of processes that never marked, get a count of 0. */
static void rows_finish(struct fold *f)
{
	for (size_t i = f->first_row; i < f->model->row_count; i++) {
		struct row *row = &f->model->rows[i];
		const struct process *p = process_at(&f->processes, row->process);

		row->begin_ns = MAX(MIN(row->begin_ns, row->end_ns), row->entry_ns);
		row->duration_ns = row->end_ns - row->begin_ns;
		row->marker_ns = row->begin_ns - row->entry_ns;
		if (p->in_total)
			fold_run(f)->marker_ns += row->marker_ns;
		if (p->calibrates || (!p->marked && !p->in_total) || is_bare_start(row, p))
			row->count = 0;
	}
}

int fold_finish(struct fold *f)
{
	int err = 0;

	if (!f->header)
		return 0;
	for (size_t i = 0; err == 0 && i < f->processes.room; i++) {
		struct process *p = f->processes.at[i];

		if (!p)
			continue;
		err = process_cut(f, p);
		if (err == 0)
			err = phase_settle(f, p);
	}
	if (err == 0)
		err = total_fill(f);
	if (err == 0) {
		rows_finish(f);
		err = cost_take(f);
	}
	return err;
}

int fold_open(struct model *m, size_t run, struct fold **ret)
{
	struct fold *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->model = m;
	f->run = run;
	f->first_row = m->row_count;
	f->first_region = m->region_count;
	err = threads_open(&f->threads);
	if (err < 0) {
		fold_close(f);
		return err;
	}
	*ret = f;
	return 0;
}

struct fold *fold_close(struct fold *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->processes.room; i++)
		process_free(f, f->processes.at[i]);
	free(f->processes.at);
	if (f->snapshots) {
		boundary_drop(f, &f->total_begin);
		boundary_drop(f, &f->total_end);
	}
	free(f->total_ranges);
	snapshots_close(f->snapshots);
	outputs_close(f->outputs);
	threads_close(f->threads);
	free(f);
	return NULL;
}
