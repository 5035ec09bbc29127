/* SPDX-License-Identifier: MIT */
#include "report/phases.h"

#include <errno.h>
#include <stdlib.h>

/* --- boundaries --- */

void boundary_drop(struct fold *f, struct boundary *b)
{
	snapshots_drop(f->snapshots, b->own);
	snapshots_drop(f->snapshots, b->session);
	*b = (struct boundary){ 0 };
}

void boundary_copy(struct fold *f, struct boundary *into, const struct boundary *b)
{
	if (b->own)
		b->own->holders++;
	if (b->session)
		b->session->holders++;
	boundary_drop(f, into);
	*into = *b;
}

int boundary_make(struct fold *f, const struct process *p, uint64_t time_ns, uint64_t snapshot,
	bool waited, struct boundary *ret)
{
	struct boundary b = { .time_ns = time_ns, .number = snapshot, .waited = waited };

	if (snapshot) {
		b.own = snapshots_hold(f->snapshots, (struct snap_key){ snapshot, p->index, 0 });
		b.session = snapshots_hold(
			f->snapshots, (struct snap_key){ snapshot, RECORD_NO_PROCESS, 0 });
		if (!b.own || !b.session) {
			boundary_drop(f, &b);
			return -ENOMEM;
		}
	}
	*ret = b;
	return 0;
}

struct range *ranges_new(const struct fold *f)
{
	size_t count = outputs_ranges(f->outputs);
	struct range *ranges = calloc(count + 1, sizeof(*ranges));

	if (ranges)
		ranges_clear(ranges, count);
	return ranges;
}

/* --- phases --- */

static int row_fill(struct fold *f, struct row *row, const struct interval *interval)
{
	size_t count = outputs_values(f->outputs);
	struct value *values = calloc(count + 1, sizeof(*values));
	int err = 0;

	if (!values)
		return -ENOMEM;
	row->begin_taken = outputs_taken(f->outputs, interval->begin);
	row->end_taken = outputs_taken(f->outputs, interval->end);
	row->late_ns = MAX(row->begin_taken.delay_ns, row->end_taken.delay_ns);
	if (outputs_fill(f->outputs, interval, values))
		err = row_store(f->model, row, values, count);
	else
		row->reason = interval->reason ? interval->reason : "no reading at its boundaries";
	free(values);
	return err;
}

int phase_settle(struct fold *f, struct process *p)
{
	struct interval interval = {
		.begin = &p->ended_begin,
		.end = &p->ended_end,
		.ranges = p->ended_ranges,
		.reason = p->reason,
	};
	int err;

	if (p->ended == MODEL_NONE)
		return 0;
	err = row_fill(f, &f->model->rows[p->ended], &interval);
	if (p->in_total) {
		ranges_merge(f->total_ranges, p->ended_ranges, outputs_ranges(f->outputs));
		outputs_widen_boundary(f->outputs, &p->ended_end, f->total_ranges);
	}
	ranges_clear(p->ended_ranges, outputs_ranges(f->outputs));
	boundary_drop(f, &p->ended_begin);
	boundary_drop(f, &p->ended_end);
	p->ended = MODEL_NONE;
	return err;
}

static void swap_ranges(struct process *p)
{
	struct range *ranges = p->ranges;

	p->ranges = p->ended_ranges;
	p->ended_ranges = ranges;
}

/* The process has come from one snapshot to another: the current phase has values. */
static int phase_resolved(struct fold *f, struct process *p, const struct boundary *b)
{
	size_t row = p->current;
	int err = phase_settle(f, p);

	p->ended = row;
	f->model->rows[row].includes = p->skipped;
	p->skipped = 0;
	boundary_copy(f, &p->ended_begin, &p->begin);
	boundary_copy(f, &p->ended_end, b);
	boundary_copy(f, &p->begin, b);
	swap_ranges(p);
	return err;
}

/* Values are known from here on; nobody has the work before. */
static void restart(struct fold *f, struct process *p, const struct boundary *b)
{
	boundary_copy(f, &p->begin, b);
	ranges_clear(p->ranges, outputs_ranges(f->outputs));
	p->skipped = 0;
}

static int phase_close(
	struct fold *f, struct process *p, const struct boundary *b, const char *next)
{
	struct row *row = &f->model->rows[p->current];

	row->end_ns = b->time_ns;
	row->next = next;
	if (b->number && p->begin.number && b->number != p->begin.number)
		return phase_resolved(f, p, b);

	/* As that of a forked child, which is counted from its first marker on. */
	if (b->number && p->begin.number == 0) {
		row->reason = "its process was not yet counted when it began";
		restart(f, p, b);
		return 0;
	}
	row->reason = VALUE_UNRESOLVED;
	row->unresolved = 1;
	fold_run(f)->unresolved += !p->calibrates;
	if (b->number == 0)
		p->skipped++;
	else if (p->ended != MODEL_NONE)
		f->model->rows[p->ended].includes++;
	return 0;
}

int process_boundary(struct fold *f, struct process *p, struct boundary *b, const char *next)
{
	int err = 0;

	if (p->current != MODEL_NONE)
		err = phase_close(f, p, b, next);
	else if (b->number)
		restart(f, p, b);
	p->current = MODEL_NONE;
	if (p->in_total) {
		f->total_end_ns = MAX(f->total_end_ns, b->time_ns);
		if (b->number)
			boundary_copy(f, &f->total_end, b);
	}
	boundary_drop(f, b);
	return err;
}

/*
 * In sync a phase begins when its marker returns.  The thread's next record
 * tells when that was; until then, and where none comes, the acknowledgement
 * stands in.
 */
static void row_begin_time(const struct fold *f, struct row *row, struct thread *thread,
	const struct record_marker *m, size_t index)
{
	row->begin_ns = row->entry_ns;
	if (!f->sync)
		return;
	thread->waiting = index;
	if (marker_waited(m) && m->done_ns > row->entry_ns) {
		row->begin_ns = m->done_ns;
		row->acknowledged = true;
	}
}

void phase_returned(struct fold *f, struct thread *thread, const struct record_marker *m)
{
	struct row *row;

	if (thread->waiting == MODEL_NONE || m->took_ns == 0)
		return;
	row = &f->model->rows[thread->waiting];
	thread->waiting = MODEL_NONE;
	if (m->took_ns == UINT32_MAX)
		return;
	row->begin_ns = row->entry_ns + m->took_ns;
	row->acknowledged = false;
}

int phase_open(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	bool is_start = !p->started && str_eq(name, "START");
	struct row row = {
		.name = name,
		.program = p->name,
		.run = f->run,
		.process = p->index,
		.pid = p->pid,
		.tid = m->tid,
		.line = marker_line(m),
		.entry_ns = p->last_ns,
		.count = 1,
	};
	int err;

	p->started = true;
	p->marked |= !is_start;
	err = model_add_row(f->model, &row, &p->current);
	if (err < 0)
		return err;
	if (is_start)
		f->model->rows[p->current].begin_ns = row.entry_ns;
	else
		row_begin_time(f, &f->model->rows[p->current], thread, m, p->current);
	return 0;
}

/* --- the whole run --- */

int total_begin(struct fold *f, const struct process *p, const struct boundary *b)
{
	if (!p->in_total || f->total_ranges)
		return 0;
	f->total_ranges = ranges_new(f);
	if (!f->total_ranges)
		return -ENOMEM;
	boundary_copy(f, &f->total_begin, b);
	fold_run(f)->total.pid = p->pid;
	return 0;
}

int total_fill(struct fold *f)
{
	struct run *run = fold_run(f);
	struct row *total = &run->total;
	struct process *first = NULL;
	struct interval interval = {
		.begin = &f->total_begin,
		.end = &f->total_end,
		.ranges = f->total_ranges,
	};

	for (size_t i = 0; i < f->processes.room && !first; i++)
		if (f->processes.at[i] && f->processes.at[i]->in_total)
			first = f->processes.at[i];
	total->name = "TOTAL";
	total->run = f->run;
	total->count = 1;
	if (!f->total_ranges || !first)
		return 0;
	interval.reason = first->reason;
	total->process = first->index;
	total->entry_ns = total->begin_ns = f->total_begin.time_ns;
	total->end_ns = MAX(f->total_end_ns, total->begin_ns);
	total->duration_ns = total->end_ns - total->begin_ns;
	return row_fill(f, total, &interval);
}
