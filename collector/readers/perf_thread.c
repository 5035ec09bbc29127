/* SPDX-License-Identifier: MIT */
#include "readers/perf_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/perf_sampler.h"
#include "readers/perf_unit.h"
#include "readers/reason.h"

/* One group of the plan; a group of the machine has no place here. */
struct part {
	struct perf_unit unit;
	struct perf_sampler *sampler; /* instead of the unit, where the kernel samples */
	bool open;
};

struct perf_thread {
	struct reader reader;
	const struct perf_plan *plan;
	struct part *part; /* one for each group of the plan */
};

static const struct reader_ops thread_ops;

static int part_open(struct part *part, const struct perf_group *group,
	const struct reader_target *target, bool single)
{
	const struct perf_where where = {
		.pid = target->pid,
		.alone = true,
		.cpu = -1,
		.start = PERF_START_NOW,
		.single = single,
	};
	int err;

	err = target->probe ? perf_sampler_open(group, target->pid, target->probe, &part->sampler)
			    : perf_unit_open(group, &where, &part->unit);
	part->open = err == 0;
	return err;
}

static void thread_close(struct reader *r)
{
	struct perf_thread *t = (struct perf_thread *)r;

	if (!t)
		return;
	for (size_t g = 0; t->part && g < t->plan->metrics.groups; g++) {
		perf_sampler_close(t->part[g].sampler);
		if (t->part[g].open && !t->part[g].sampler)
			perf_unit_close(&t->part[g].unit);
	}
	free(t->part);
	free(t);
}

static void open_reason(int err, pid_t tid, bool sampled, char ret_reason[READER_REASON_ROOM])
{
	if (err == -EUSERS)
		reason_set(ret_reason,
			"without tracefs only so many threads can be sampled, and thread %d is one "
			"more",
			(int)tid);
	else if (err == -EMFILE || err == -ENFILE)
		reason_set(ret_reason,
			"too many open files for the counters of thread %d; raise the limit (ulimit -n)",
			(int)tid);
	else if (sampled && (err == -EPERM || err == -ENOMEM))
		reason_set(ret_reason,
			"no memory to lock for the samples of thread %d; raise "
			"kernel.perf_event_mlock_kb or the limit (ulimit -l)",
			(int)tid);
	else
		reason_set(ret_reason, "cannot open the counters of thread %d: %s", (int)tid,
			strerror(-err));
}

static int take_place(struct reader_probe *probe)
{
	if (!probe || !probe->held)
		return 0;
	if (probe->threads_left == 0)
		return -EUSERS;
	probe->threads_left--;
	return 0;
}

int perf_thread_open(const struct reader_target *target, const struct perf_plan *plan,
	struct reader **ret, char ret_reason[READER_REASON_ROOM])
{
	struct perf_thread *t = malloc(sizeof(*t));
	int err = 0;

	if (!t)
		return -ENOMEM;
	*t = (struct perf_thread){ .reader.ops = &thread_ops, .plan = plan };
	t->part = calloc(plan->metrics.groups + 1, sizeof(*t->part));
	if (!t->part)
		err = -ENOMEM;
	else
		err = take_place(target->probe);
	for (size_t g = 0; g < plan->metrics.groups && err == 0; g++)
		if (!plan->group[g].cpus)
			err = part_open(&t->part[g], &plan->group[g], target, plan->single);
	if (err < 0) {
		open_reason(err, target->pid, target->probe != 0, ret_reason);
		thread_close(&t->reader);
		return err;
	}
	*ret = &t->reader;
	return 0;
}

/* Puts what one group counted where its metrics have their places. */
static void place(const struct perf_thread *t, size_t group, const uint64_t *counts,
	const uint64_t times[2], uint64_t *values)
{
	const struct perf_group *g = &t->plan->group[group];

	for (size_t i = 0; i < g->count; i++)
		values[g->counter[i].metric] = counts[i];
	for (size_t i = 0; i < 2; i++)
		values[t->plan->metrics.count + 2 * group + i] = times[i];
}

static void forget(const struct perf_thread *t, uint64_t *values)
{
	for (size_t i = 0; i < metric_list_values(&t->plan->metrics); i++)
		values[i] = VALUE_ABSENT;
}

static int thread_read(struct reader *r, uint64_t *ret_values)
{
	struct perf_thread *t = (struct perf_thread *)r;

	forget(t, ret_values);
	for (size_t g = 0; g < t->plan->metrics.groups; g++) {
		uint64_t counts[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 };
		struct part *part = &t->part[g];

		if (!part->open)
			continue;
		if ((part->sampler ? perf_sampler_read(part->sampler, counts, times)
				   : perf_unit_add(&part->unit, counts, times)) == 0)
			place(t, g, counts, times, ret_values);
	}
	return 0;
}

static int thread_sampled(
	struct reader *r, uint64_t position, uint64_t *ret_time_ns, uint64_t *ret_values)
{
	struct perf_thread *t = (struct perf_thread *)r;
	int err = -ENOENT;

	forget(t, ret_values);
	for (size_t g = 0; g < t->plan->metrics.groups; g++) {
		uint64_t counts[PERF_GROUP_MAX], times[2];

		if (!t->part[g].sampler)
			continue;
		err = perf_sampler_find(t->part[g].sampler, position, ret_time_ns, counts, times);
		if (err < 0)
			return err;
		place(t, g, counts, times, ret_values);
	}
	return err;
}

static bool is_hardware(const struct perf_group *g)
{
	return !g->cpus && !g->software;
}

/* "cycles, instructions, ...": what a group counts. */
static void add_names(
	char *text, size_t room, const struct perf_plan *plan, const struct perf_group *g)
{
	for (size_t i = 0; i < g->count; i++) {
		const char *name = plan->metrics.metric[g->counter[i].metric].name;
		size_t used = strlen(text);

		if (used + strlen(name) + sizeof(", ...") > room) {
			snprintf(text + used, room - used, "...");
			return;
		}
		snprintf(text + used, room - used, "%s%s", used ? ", " : "", name);
	}
}

/* Those beside the first group that the processor can count at once. */
static void refuse_events(const struct perf_plan *plan, char ret_reason[READER_REASON_ROOM])
{
	char names[128] = "";
	size_t groups = 0;

	for (size_t g = 0; g < plan->metrics.groups; g++)
		if (is_hardware(&plan->group[g]) && groups++)
			add_names(names, sizeof(names) - 1, plan, &plan->group[g]);
	reason_set(ret_reason,
		"%s: more than the processor counts at once, of which the kernel can sample no "
		"more; choose fewer events or --mode sync",
		names);
}

int perf_thread_can_sample(const struct perf_plan *plan, char ret_reason[READER_REASON_ROOM])
{
	size_t hardware = 0;

	for (size_t g = 0; g < plan->metrics.groups; g++)
		hardware += is_hardware(&plan->group[g]);
	if (plan->single) {
		reason_set(ret_reason, "this kernel reads no groups of events");
		return -EINVAL;
	}
	if (hardware > 1) {
		refuse_events(plan, ret_reason);
		return -EINVAL;
	}
	return 0;
}

static const struct reader_ops thread_ops = {
	.name = "perf",
	.critical = true,
	.read = thread_read,
	.sampled = thread_sampled,
	.close = thread_close,
};
