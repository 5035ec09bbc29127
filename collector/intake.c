/* SPDX-License-Identifier: MIT */
#include "intake.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "internal/ring.h"
#include "internal/util.h"
#include "members.h"
#include "snapshot.h"

/* How long jobs may wait for markers. */
#define DRAIN_NS (100 * NSEC_PER_MSEC)

/* Of what the first process waits for at its end, for the disk. */
#define LAST_WRITE_NS (50 * NSEC_PER_MSEC)

/* As many processes need not be looked at. */
#define CROWD ((size_t)64)

/* Which counters belong to a record. */
enum boundary {
	BOUNDARY_NONE,
	BOUNDARY_PROCESS,
	BOUNDARY_THREAD,
};

/* What is done for each kind of record; one that is missing here is unknown. */
struct trait {
	bool known;
	enum boundary boundary;
};

static const struct trait traits[256] = {
	[JPHASE_PHASE] = { true, BOUNDARY_PROCESS },
	[JPHASE_BEGIN] = { true, BOUNDARY_THREAD },
	[JPHASE_END] = { true, BOUNDARY_THREAD },
	[JPHASE_MARK] = { true, BOUNDARY_NONE },
	[JPHASE_VALUE] = { true, BOUNDARY_NONE },
	[JPHASE_EXIT] = { true, BOUNDARY_PROCESS },
	[JPHASE_NOTICE] = { true, BOUNDARY_NONE },
};

/* One record on its way, beside its copy in session.batch. */
struct item {
	struct process *process; /* NULL: out of memory */
	struct thread *thread;   /* NULL: no counters of its own */
	uint64_t *sampled;       /* the kernel's values at the marker, or NULL */
	uint64_t sampled_ns;
	bool unsampled;  /* the kernel should have, and had no room for it */
	uint64_t shared; /* an earlier snapshot that was read after it, or 0 */
	bool waits;
};

struct batch {
	size_t count;
	bool unwaited; /* somebody may have gone on before it was read */
	struct item item[CONSUMER_BATCH];
	struct snapshot shot;
};

static enum boundary boundary_of(const struct taken *taken)
{
	return traits[taken->record.kind].boundary;
}

static struct process *process_of(struct session *s, const struct jphase_record *rec)
{
	pid_t pid = (pid_t)(rec->pid & RING_PID_MASK);
	struct process *p = process_find(&s->processes, pid);

	/* Not buried here: other records of this batch may be its own. */
	if (p && (p->ended || jobs_pending(&s->jobs)) && process_is_replaced(p, rec->clock_ns))
		p = NULL;
	if (!p)
		p = members_adopt(s, pid, MIN(rec->clock_ns, now_ns()));
	if (p)
		p->seen_ns = now_ns();
	return p;
}

/* Takes the sample that the kernel made when the thread passed the probe. */
static bool find_sample(struct session *s, struct item *item, size_t index)
{
	uint64_t *values = s->sampled + index * s->sources.values;

	for (size_t i = 0; item->thread && i < s->sources.count; i++) {
		struct reader *r = item->thread->reader[i];

		if (r && r->ops->sampled &&
			r->ops->sampled(r, s->batch[index].position, &item->sampled_ns, values) ==
				0) {
			item->sampled = values;
			return true;
		}
	}
	return false;
}

static bool is_sampling(const struct session *s, const struct thread *t)
{
	for (size_t i = 0; s->mode == MODE_EXACT && i < s->sources.count; i++)
		if (t->reader[i] && t->reader[i]->ops->sampled)
			return true;
	return false;
}

/* False: the snapshot cannot cover one more thread. */
static bool resolve_region(struct session *s, struct batch *b, size_t index)
{
	struct item *item = &b->item[index];

	item->thread = members_thread(s, item->process, (pid_t)s->batch[index].record.tid);
	item->waits = s->regions && (s->mode == MODE_SYNC || !item->thread || item->thread->fresh);
	if (!item->thread || find_sample(s, item, index))
		return true;
	item->unsampled = !item->thread->fresh && is_sampling(s, item->thread);
	return snapshot_include_thread(&b->shot, item->process, item->thread);
}

/*
 * Finds the record's process and thread, opening counters where one is new.
 * False: the snapshot cannot cover one more.
 */
static bool resolve(struct session *s, struct batch *b, size_t index)
{
	struct item *item = &b->item[index];

	*item = (struct item){ .process = process_of(s, &s->batch[index].record) };
	if (!item->process)
		return true;
	switch (boundary_of(&s->batch[index])) {
	case BOUNDARY_PROCESS: item->waits = true; return snapshot_include(&b->shot, item->process);
	case BOUNDARY_THREAD: return resolve_region(s, b, index);
	case BOUNDARY_NONE: break;
	}
	return true;
}

static void record_notice(
	struct session *s, const struct process *p, const struct jphase_record *rec)
{
	if (rec->id == JPHASE_NOTICE_SIGNAL_TAKEN)
		session_note(s, p,
			"the program installed a handler of its own for signal %s: signals after "
			"that made no phases",
			rec->name);
	else if (rec->id == JPHASE_NOTICE_SIGNAL_FAILED)
		session_note(s, p, "no handler could be installed for signal %s", rec->name);
}

/* A sample is a snapshot of its own. */
static uint64_t record_sample(struct session *s, const struct item *item)
{
	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];

		if (item->thread->reader[i])
			recorder_thread(s->recorder, ++s->snapshots, item->process->index,
				(uint32_t)item->thread->tid, source->ops->name, "sampled",
				item->sampled_ns, item->sampled_ns, item->sampled,
				&source->metrics);
	}
	return s->snapshots;
}

static uint64_t snapshot_number(struct session *s, const struct batch *b, size_t index)
{
	const struct item *item = &b->item[index];

	if (item->sampled)
		return record_sample(s, item);
	if (item->shared)
		return item->shared;
	if (boundary_of(&s->batch[index]) == BOUNDARY_PROCESS || item->thread)
		return b->shot.number;
	return 0;
}

/* A process's START is a phase where it marks, and nothing if it was bare until it did. */
static void count_marker(struct session *s, struct process *p, uint8_t kind)
{
	if (p->calibrates || kind == JPHASE_NOTICE || kind == JPHASE_EXIT)
		return;
	s->markers++;
	s->phases += kind == JPHASE_PHASE;
	s->phases += !p->start_counts && (p->baseline || kind != JPHASE_PHASE);
	p->start_counts = true;
}

static void record_one(struct session *s, const struct batch *b, size_t index, uint64_t done_ns)
{
	const struct jphase_record *rec = &s->batch[index].record;
	struct process *p = b->item[index].process;
	/* What the kernel sampled it did in time. */
	bool unwaited = b->unwaited && !b->item[index].sampled;

	count_marker(s, p, rec->kind);
	if (rec->kind == JPHASE_NOTICE) {
		record_notice(s, p, rec);
		return;
	}
	s->samples_lost += b->item[index].unsampled;
	p->ended = rec->kind == JPHASE_EXIT;
	p->last_ns = MAX(p->last_ns, MIN(rec->clock_ns, done_ns));
	recorder_marker(
		s->recorder, &(struct record_marker){
				     .time_ns = MIN(rec->clock_ns, done_ns),
				     .process = p->index,
				     .tid = rec->tid,
				     .kind = rec->kind,
				     .name = rec->name,
				     .value = rec->value,
				     .id = rec->id,
				     .flags = rec->flags | (unwaited ? JPHASE_FLAG_UNWAITED : 0),
				     .took_ns = rec->took_ns,
				     .done_ns = done_ns,
				     .snapshot = snapshot_number(s, b, index),
			     });
}

static void record_batch(struct session *s, const struct batch *b, uint64_t done_ns)
{
	for (size_t i = 0; i < b->count; i++) {
		if (b->item[i].thread)
			b->item[i].thread->fresh = false;
		if (b->item[i].process && traits[s->batch[i].record.kind].known)
			record_one(s, b, i, done_ns);
		else
			s->unknown++;
	}
}

/* In async nobody waits, but for the process that is about to end. */
static bool nobody_waits(const struct session *s, const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (s->mode == MODE_ASYNC ? s->batch[i].record.kind == JPHASE_EXIT
					  : b->item[i].waits)
			return false;
	return true;
}

/* The thread that waits is off its CPU when the counters are read. */
static void await_sleepers(struct session *s, const struct batch *b)
{
	for (size_t i = b->count; i > 0; i--)
		if (b->item[i - 1].waits) {
			consumer_await_sleep(&s->consumer, &s->batch[i - 1]);
			return;
		}
}

/*
 * A marker that gives up says so to all before it returns, and only we take
 * that back: while nobody has said so, all that waited are waiting still.
 */
static bool is_stalled(const struct session *s)
{
	return atomic_load_explicit(&s->shared.page->stalled, memory_order_acquire);
}

static void read_critical(struct session *s, struct snapshot *shot)
{
	uint64_t begin = now_ns();

	snapshot_read_critical(s, shot);
	for (size_t i = 0; i < shot->processes; i++) {
		shot->process[i]->read_ns = begin;
		shot->process[i]->snapshot = shot->number;
	}
}

/*
 * When the first process has gone all may be over at once: in a container the
 * kernel ends everybody together with process 1.  `jphase run` waits for us.
 */
static bool is_last(const struct session *s, const struct batch *b)
{
	for (size_t i = 0; i < b->count && !s->launched; i++)
		if (s->batch[i].record.kind == JPHASE_EXIT && b->item[i].process &&
			b->item[i].process->first)
			return true;
	return false;
}

size_t intake_batch(struct session *s)
{
	struct batch b;
	size_t taken = consumer_take(&s->consumer, now_ns(), s->batch);
	bool early, last;
	uint64_t done;

	if (!taken)
		return 0;
	/* Not all of it: most is for larger batches. */
	b.count = b.shot.processes = b.shot.threads = b.shot.shots = 0;
	while (b.count < taken && resolve(s, &b, b.count))
		b.count++;
	early = nobody_waits(s, &b);
	last = is_last(s, &b);
	if (early)
		consumer_release(&s->consumer, s->batch, b.count);
	else if (s->mode != MODE_ASYNC)
		await_sleepers(s, &b);
	if (b.shot.processes || b.shot.threads)
		read_critical(s, &b.shot);
	done = now_ns();
	b.unwaited = is_stalled(s);
	if (!early && !last)
		consumer_release(&s->consumer, s->batch, b.count);
	if (b.shot.processes)
		snapshot_read_others(s, &b.shot);
	snapshot_record(s, &b.shot);
	record_batch(s, &b, done);
	if (!early && last) {
		recorder_flush(s->recorder, LAST_WRITE_NS);
		consumer_release(&s->consumer, s->batch, b.count);
	}
	return b.count;
}

static bool is_included(const struct snapshot *shot, const struct process *p)
{
	for (size_t i = 0; i < shot->processes; i++)
		if (shot->process[i] == p)
			return true;
	return false;
}

/*
 * Of marks that were found together the first one's snapshot was read after all
 * of them: a reading for each would tell of what happened while we were reading.
 */
static void include_mark(struct session *s, struct batch *b, size_t index)
{
	struct process *p = b->item[index].process;

	if (!is_included(&b->shot, p) && s->batch[index].record.clock_ns <= p->read_ns)
		b->item[index].shared = p->snapshot;
	else
		snapshot_include(&b->shot, p);
}

void intake_marks(struct session *s, struct process *const *processes, size_t count)
{
	struct batch b;
	uint64_t done;

	b.count = count;
	b.shot.processes = b.shot.threads = b.shot.shots = 0;
	for (size_t i = 0; i < count; i++) {
		b.item[i] = (struct item){ .process = processes[i] };
		if (boundary_of(&s->batch[i]) == BOUNDARY_PROCESS)
			include_mark(s, &b, i);
	}
	if (b.shot.processes)
		read_critical(s, &b.shot);
	done = now_ns();
	/* The program was not even asked to wait. */
	b.unwaited = true;
	if (b.shot.processes)
		snapshot_read_others(s, &b.shot);
	snapshot_record(s, &b.shot);
	record_batch(s, &b, done);
}

/* What was there when it was called. */
static void drain_present(struct session *s)
{
	uint64_t goal = atomic_load_explicit(&s->shared.ring->head, memory_order_relaxed);

	/* The goal is only a hint, which a target may have written. */
	for (uint32_t taken = 0, n; taken < s->shared.records; taken += n) {
		n = (uint32_t)intake_batch(s);
		if (n == 0 || ring_distance(goal, s->consumer.tail) <= 0)
			break;
	}
}

/*
 * Those that have ended are told by the control thread, which on a busy machine
 * is slower than they come, and each holds ten descriptors or more.
 */
static void thin_out(struct session *s)
{
	const struct process_table *t = &s->processes;

	for (size_t i = 0; i < t->count; i++) {
		struct process *p = t->live[i];

		p->leaves = p->confirmed && !p->first && process_has_ended(p);
	}
	/* Whatever they have published is there by now. */
	drain_present(s);
	/* Perhaps one of them left it: who is known to be dead can be told from it. */
	s->crowd = process_count_confirmed(&s->processes) + CROWD;
	if (s->consumer.blocked_since_ns)
		return;
	for (size_t i = t->count; i > 0; i--)
		if (t->live[i - 1]->leaves)
			members_bury(s, t->live[i - 1]);
	s->crowd = MAX(2 * process_count_confirmed(&s->processes), CROWD);
}

static void limit_crowd(struct session *s)
{
	if (process_count_confirmed(&s->processes) > MAX(s->crowd, CROWD))
		thin_out(s);
}

void intake_drain_present(struct session *s)
{
	drain_present(s);
	limit_crowd(s);
}

void intake_drain(struct session *s)
{
	uint64_t until = now_ns() + DRAIN_NS;

	/* A target that emits without end must not keep us from everything else. */
	for (uint32_t taken = 0, n; taken < 4 * s->shared.records && now_ns() < until; taken += n) {
		n = (uint32_t)intake_batch(s);
		if (n == 0)
			break;
		limit_crowd(s);
	}
	if (!consumer_has_work(&s->consumer) && is_stalled(s))
		atomic_store_explicit(&s->shared.page->stalled, 0, memory_order_relaxed);
}
