/* SPDX-License-Identifier: MIT */
#include "report/regions.h"

#include <errno.h>
#include <stdlib.h>

#include "report/repairs.h"

/* How far out an end looks for its begin. */
#define DEPTH_MAX 1024

static struct region *region_of(const struct fold *f, const struct open_region *o)
{
	return &f->model->regions[o->region];
}

struct open_region *open_region_free(struct open_region *o)
{
	struct open_region *outer = o->outer;

	free(o->inner);
	free(o);
	return outer;
}

/* --- boundaries --- */

/*
 * In exact mode a thread's first marker waits, as all do in sync; whether it
 * did is told by the thread's next record.
 */
static int thread_boundary(struct fold *f, const struct process *p, const struct thread *thread,
	const struct record_marker *m, struct boundary *ret)
{
	bool waited = marker_waited(m) && str_eq(f->header->mode, "sync");
	struct boundary b = { .time_ns = m->time_ns, .number = m->snapshot, .waited = waited };

	if (m->snapshot) {
		b.own = snapshots_hold(
			f->snapshots, (struct snap_key){ m->snapshot, p->index, thread->tid });
		if (!b.own)
			return -ENOMEM;
	}
	*ret = b;
	return 0;
}

/* When the kernel sampled it; 0: it did not. */
static uint64_t sampled_ns(const struct fold *f, const struct boundary *b)
{
	for (size_t i = 0; b->own && i < f->header->reader_count; i++)
		if (b->own->reading[i].values && b->own->reading[i].sampled)
			return b->own->reading[i].begin_ns;
	return 0;
}

/* When it had been read; 0: it was not. */
static uint64_t read_ns(const struct fold *f, const struct boundary *b)
{
	uint64_t last = 0;

	for (size_t i = 0; b->own && i < f->header->reader_count; i++)
		if (b->own->reading[i].values)
			last = MAX(last, b->own->reading[i].end_ns);
	return last;
}

static bool have_values(const struct fold *f, const struct boundary *a, const struct boundary *b)
{
	for (size_t i = 0; a->own && b->own && i < f->header->reader_count; i++)
		if (a->own->reading[i].values && b->own->reading[i].values)
			return true;
	return false;
}

/* --- closing --- */

/* The innermost open region ends. */
static void close_innermost(struct fold *f, struct thread *thread, uint64_t time_ns)
{
	struct open_region *o = thread->open;
	struct region *region = region_of(f, o);
	uint64_t duration;

	region->end_ns = MAX(time_ns, region->begin_ns);
	duration = region->end_ns - region->begin_ns;
	region->own_ns = saturating_sub(duration, o->inner_ns + region->around_own_ns);
	if (o->outer) {
		o->outer->inner_ns += duration;
		region_of(f, o->outer)->inside += region->inside;
		region_of(f, o->outer)->inside_ns += region->inside_ns;
		region_of(f, o->outer)->around += region->around;
		region_of(f, o->outer)->children++;
	}
	boundary_drop(f, &o->begin);
	thread->open = open_region_free(o);
	thread->begun = false;
}

/* The innermost open region of that name, or NULL. */
static const struct open_region *find_open(
	const struct fold *f, const struct thread *thread, const char *name)
{
	const struct open_region *o = thread->open;

	for (int depth = 0; o && depth < DEPTH_MAX; depth++, o = o->outer)
		if (!*name || str_eq(region_of(f, o)->name, name))
			return o;
	return NULL;
}

/* The innermost open region has no end of its own, nor values. */
static void close_unended(
	struct fold *f, struct thread *thread, uint64_t time_ns, const char *reason)
{
	struct region *region = region_of(f, thread->open);

	region->begin_taken = outputs_taken(f->outputs, &thread->open->begin);
	region->repaired = !region->open;
	region->reason = reason;
	if (thread->open->outer)
		thread->open->outer->blind = true;
	close_innermost(f, thread, time_ns);
}

/*
 * An open region of that name from before a loss has most probably lost its
 * end: it and all in it end where the thread was last seen.
 */
static void close_lost(struct fold *f, struct thread *thread, const char *name)
{
	const struct open_region *found = *name ? find_open(f, thread, name) : NULL;
	bool last = !found || found->losses == f->losses;

	while (!last) {
		last = thread->open == found;
		region_of(f, thread->open)->end_lost = true;
		repair_add(
			&fold_run(f)->repairs[REPAIR_END_LOST], region_of(f, thread->open)->name);
		close_unended(f, thread, thread->last_ns, "its end was lost");
	}
}

/* --- begin --- */

static uint64_t begin_time(const struct fold *f, const struct boundary *b,
	const struct record_marker *m, const struct thread *thread)
{
	uint64_t sampled = sampled_ns(f, b);
	uint64_t time = b->time_ns;

	if (sampled)
		time = sampled;
	else if (b->waited && b->number)
		time = MAX(m->done_ns, time);
	return MAX(time, thread->last_ns);
}

int region_begin(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	struct region region = {
		.name = name,
		.program = p->name,
		.run = f->run,
		.process = p->index,
		.pid = p->pid,
		.tid = thread->tid,
		.parent = MODEL_NONE,
		.phase = p->current,
	};
	struct open_region *o;
	int err;

	close_lost(f, thread, name);
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->losses = f->losses;
	err = thread_boundary(f, p, thread, m, &o->begin);
	if (err < 0)
		goto fail;
	if (thread->open) {
		region.parent = thread->open->region;
		region.depth = region_of(f, thread->open)->depth + 1;
	}
	region.begin_ns = begin_time(f, &o->begin, m, thread);
	err = model_add_region(f->model, &region, &o->region);
	if (err < 0)
		goto fail;
	thread->last_ns = MAX(thread->last_ns, m->time_ns);
	thread->begun = true;
	thread->marked_region = o->region;
	o->outer = thread->open;
	thread->open = o;
	return 0;

fail:
	boundary_drop(f, &o->begin);
	open_region_free(o);
	return err;
}

void region_returned(struct fold *f, struct thread *thread, const struct record_marker *m)
{
	struct open_region *o = thread->open;
	uint64_t returned;

	if (!thread->begun)
		return;
	thread->begun = false;
	if (!f->sync || m->took_ns == 0 || m->took_ns == UINT32_MAX || sampled_ns(f, &o->begin))
		return;
	returned = o->begin.time_ns + m->took_ns;
	o->begin.waited |= read_ns(f, &o->begin) && read_ns(f, &o->begin) <= returned;
	region_of(f, o)->begin_ns = returned;
	thread->last_ns = MAX(thread->last_ns, returned);
}

/* --- values --- */

static void values_null(struct value *values, size_t count, const char *why)
{
	for (size_t i = 0; i < count; i++)
		values[i] = (struct value){ .state = VALUE_NULL, .note = why };
}

/* delta: what was counted, from which what the regions in it counted is taken away. */
static void fill_own(struct fold *f, const struct open_region *o, const struct interval *interval,
	uint64_t *delta, struct value *own)
{
	size_t count = fold_run(f)->places;

	if (o->blind) {
		values_null(own, count, "a region in it has no values");
		return;
	}
	if (o->inner && !delta_subtract(delta, o->inner, outputs_delta_values(f->outputs))) {
		values_null(own, count, "its boundaries and those in it were read too far apart");
		return;
	}
	outputs_fill_thread(f->outputs, fold_run(f), interval, delta, own);
	for (size_t i = 0; i < count; i++)
		own[i].includes = o->hidden;
}

static int outer_adds(struct fold *f, struct open_region *outer, const uint64_t *delta)
{
	size_t count = outputs_delta_values(f->outputs);

	if (!outer)
		return 0;
	if (!outer->inner)
		outer->inner = calloc(count + 1, sizeof(*outer->inner));
	if (!outer->inner)
		return -ENOMEM;
	delta_add(outer->inner, delta, count);
	return 0;
}

static int region_fill(struct fold *f, struct open_region *o, const struct interval *interval)
{
	size_t places = fold_run(f)->places;
	struct value *values = calloc(REGION_PARTS * places + 1, sizeof(*values));
	uint64_t *delta = calloc(outputs_delta_values(f->outputs) + 1, sizeof(*delta));
	int err = -ENOMEM;

	if (delta && values) {
		outputs_fill_thread(f->outputs, fold_run(f), interval, NULL, values);
		outputs_delta(f->outputs, interval->begin, interval->end, delta);
		err = outer_adds(f, o->outer, delta);
		fill_own(f, o, interval, delta, values + REGION_OWN * places);
	}
	if (err == 0)
		err = region_store(f->model, region_of(f, o), values, places);
	free(values);
	free(delta);
	return err;
}

static const char *no_values_reason(const struct process *p)
{
	if (p->threads_reason)
		return p->threads_reason;
	return p->reason ? p->reason : "no reading at its boundaries";
}

/* Both boundaries are known. */
static int region_settle(
	struct fold *f, const struct process *p, struct open_region *o, const struct boundary *end)
{
	struct interval interval = {
		.begin = &o->begin,
		.end = end,
		.reason = p->reason,
		.of_thread = true,
	};
	struct region *region = region_of(f, o);

	region->begin_taken = outputs_taken(f->outputs, &o->begin);
	region->end_taken = outputs_taken(f->outputs, end);
	if (end->number && end->number == o->begin.number) {
		region->reason = VALUE_UNRESOLVED;
		fold_run(f)->regions_unresolved += !p->calibrates;
		if (o->outer)
			o->outer->hidden++;
		return 0;
	}
	if (have_values(f, &o->begin, end))
		return region_fill(f, o, &interval);
	region->reason = no_values_reason(p);
	if (o->outer)
		o->outer->blind = true;
	return 0;
}

/* --- end --- */

int region_end(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name)
{
	const struct open_region *found = find_open(f, thread, name);
	struct boundary b;
	uint64_t time;
	bool last = false;
	int err;

	if (!found) {
		repair_add(&fold_run(f)->repairs[REPAIR_STRAY], name);
		return 0;
	}
	err = thread_boundary(f, p, thread, m, &b);
	if (err < 0)
		return err;
	thread->marked_region = found->region;
	time = MAX(sampled_ns(f, &b), MAX(b.time_ns, thread->last_ns));
	while (!last && err == 0) {
		last = thread->open == found;
		if (!last) {
			region_of(f, thread->open)->repaired = true;
			region_of(f, thread->open)->closed_by = region_of(f, found)->name;
			repair_add(&fold_run(f)->repairs[REPAIR_CROSSED],
				region_of(f, thread->open)->name);
		}
		err = region_settle(f, p, thread->open, &b);
		close_innermost(f, thread, time);
	}
	thread->last_ns = time;
	boundary_drop(f, &b);
	return err;
}

void regions_finish(struct fold *f, struct thread *thread, uint64_t time_ns, bool open)
{
	while (thread->open) {
		struct region *region = region_of(f, thread->open);

		region->open = open;
		if (!open)
			repair_add(&fold_run(f)->repairs[REPAIR_UNCLOSED], region->name);
		close_unended(f, thread, time_ns,
			open ? "the recording ends in it" : "it was never closed");
	}
}
