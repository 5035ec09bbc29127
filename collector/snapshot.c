/* SPDX-License-Identifier: MIT */
#include "snapshot.h"

#include "internal/util.h"

/* A reader may take this part of the sampling interval before it is read less often. */
#define SAMPLE_SHARE 100

/* That many times one after the other make a reader a slow one. */
#define SLOW_SAMPLES 20

/* Processes whose gauges are sampled at one tick between boundaries. */
#define SAMPLE_PROCESSES 64

size_t snapshot_values(const struct source_list *sources)
{
	return sources->values * SNAPSHOT_SHOTS;
}

bool snapshot_include(struct snapshot *shot, struct process *p)
{
	for (size_t i = 0; i < shot->processes; i++)
		if (shot->process[i] == p)
			return true;
	if (shot->processes == SNAPSHOT_PROCESSES)
		return false;
	shot->process[shot->processes++] = p;
	return true;
}

bool snapshot_include_thread(struct snapshot *shot, const struct process *p, struct thread *t)
{
	for (size_t i = 0; i < shot->threads; i++)
		if (shot->thread[i].thread == t)
			return true;
	if (shot->threads == SNAPSHOT_THREADS)
		return false;
	shot->thread[shot->threads++] = (struct snapshot_thread){ p, t };
	return true;
}

static void forget(const struct source *source, uint64_t *values)
{
	for (size_t i = 0; i < metric_list_values(&source->metrics); i++)
		values[i] = VALUE_ABSENT;
}

static void read_one(struct session *s, struct snapshot *shot, const struct process *p,
	const struct thread *t, size_t index)
{
	const struct source *source = &s->sources.source[index];
	struct reader *reader = t ? t->reader[index] : p ? p->reader[index] : source->shared;
	struct shot *one = &shot->shot[shot->shots];

	if (!reader || shot->shots == SNAPSHOT_SHOTS)
		return;
	*one = (struct shot){
		.process = p,
		.thread = t,
		.source = source,
		.begin_ns = now_ns(),
		.values = s->values + shot->shots * s->sources.values,
	};
	if ((p && p->lost[index]) || reader->ops->read(reader, one->values) < 0)
		forget(source, one->values);
	one->end_ns = now_ns();
	shot->shots++;
}

static void read_part(struct session *s, struct snapshot *shot, bool critical)
{
	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];

		if (!source->present || source->ops->critical != critical)
			continue;
		if (!source->ops->per_process) {
			/* Regions are a thread's own matter. */
			if (shot->processes)
				read_one(s, shot, NULL, NULL, i);
			continue;
		}
		for (size_t k = 0; k < shot->processes; k++)
			read_one(s, shot, shot->process[k], NULL, i);
		for (size_t k = 0; k < shot->threads; k++)
			read_one(s, shot, shot->thread[k].process, shot->thread[k].thread, i);
	}
}

void snapshot_read_critical(struct session *s, struct snapshot *shot)
{
	shot->number = ++s->snapshots;
	read_part(s, shot, true);
}

void snapshot_read_others(struct session *s, struct snapshot *shot)
{
	read_part(s, shot, false);
}

void snapshot_record(struct session *s, const struct snapshot *shot)
{
	for (size_t i = 0; i < shot->shots; i++) {
		const struct shot *one = &shot->shot[i];

		if (one->thread) {
			recorder_thread(s->recorder, shot->number, one->process->index,
				(uint32_t)one->thread->tid, one->source->ops->name, "read",
				one->begin_ns, one->end_ns, one->values, &one->source->metrics);
			continue;
		}
		recorder_snapshot(s->recorder, shot->number,
			one->process ? one->process->index : RECORD_NO_PROCESS,
			one->source->ops->name, one->begin_ns, one->end_ns, one->values,
			&one->source->metrics);
	}
}

uint64_t snapshot_of(struct session *s, struct process *p)
{
	struct snapshot shot = { .processes = 0 };

	snapshot_include(&shot, p);
	snapshot_read_critical(s, &shot);
	snapshot_read_others(s, &shot);
	snapshot_record(s, &shot);
	return shot.number;
}

static void sample_one(struct session *s, const struct process *p, size_t index, uint64_t now)
{
	const struct source *source = &s->sources.source[index];
	struct reader *reader = p ? p->reader[index] : source->shared;

	if (reader && source->ops->sample(reader, s->values) == 0)
		recorder_sample(s->recorder, now, p ? p->index : RECORD_NO_PROCESS,
			source->ops->name, s->values, &source->metrics);
}

static void sample_processes(struct session *s, size_t index, uint64_t now)
{
	struct sampling *sampling = &s->sampling[index];
	size_t count = s->processes.count, turns = MIN(count, (size_t)SAMPLE_PROCESSES);

	for (size_t i = 0; i < turns; i++)
		sample_one(s, s->processes.live[(sampling->next + i) % count], index, now);
	sampling->next = count ? (sampling->next + turns) % count : 0;
	if (turns == count || sampling->crowd_told)
		return;
	sampling->crowd_told = true;
	session_note(s, NULL,
		"%s: the gauges of more than %d processes are sampled in turn: what rises for a "
		"moment may be missed",
		s->sources.source[index].ops->name, SAMPLE_PROCESSES);
}

static void sample_source(struct session *s, size_t index)
{
	const struct source *source = &s->sources.source[index];
	struct sampling *sampling = &s->sampling[index];
	uint64_t interval = s->config->interval_ns, now = now_ns(), cost;

	if (source->ops->per_process)
		sample_processes(s, index, now);
	else
		sample_one(s, NULL, index, now);

	cost = now_ns() - now;
	sampling->due_ns = now + MAX(interval, cost * SAMPLE_SHARE);
	/* Once may be the machine's doing. */
	sampling->slow = cost * SAMPLE_SHARE > 2 * interval ? sampling->slow + 1 : 0;
	if (sampling->slow != SLOW_SAMPLES || sampling->told)
		return;
	sampling->told = true;
	session_note(s, NULL,
		"%s: reading the gauges takes more than 1 %% of the interval; they are sampled "
		"less often (choose a longer --interval)",
		source->ops->name);
}

uint64_t snapshot_sample(struct session *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!s->config->interval_ns)
		return next;
	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];

		if (!source->present || !source->gauges)
			continue;
		if (s->sampling[i].due_ns <= now)
			sample_source(s, i);
		next = MIN(next, s->sampling[i].due_ns);
	}
	return next;
}

void snapshot_give_up(struct session *s, struct process *p, size_t source, const char *reason)
{
	p->lost[source] = reason;
	session_note(s, p, "%s", reason);
}

static void keep_alive(
	struct session *s, const struct process *p, const struct source *source, struct reader *r)
{
	const char *note = r && source->ops->keep_alive ? source->ops->keep_alive(r) : NULL;

	if (note)
		session_note(s, p, "%s: %s", source->ops->name, note);
}

void snapshot_keep_alive(struct session *s)
{
	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];

		keep_alive(s, NULL, source, source->shared);
		for (size_t k = 0; k < s->processes.count; k++)
			keep_alive(
				s, s->processes.live[k], source, s->processes.live[k]->reader[i]);
	}
}

static void check_process(struct session *s, struct process *p)
{
	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];
		const char *reason;

		if (!p->reader[i] || !source->ops->lost || p->lost[i])
			continue;
		reason = source->ops->lost(p->reader[i]);
		/* The counters of a process that has ended look the same. */
		if (!reason || process_has_ended(p))
			continue;
		snapshot_give_up(s, p, i, reason);
	}
}

void snapshot_check_lost(struct session *s)
{
	for (size_t i = 0; i < s->processes.count; i++)
		check_process(s, s->processes.live[i]);
}
