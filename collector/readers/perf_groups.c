/* SPDX-License-Identifier: MIT */
#include "readers/perf_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/breakpoint.h"
#include "readers/reason.h"

/* Longer than the kernel takes to give other users of the PMU their turn. */
#define TRIAL_NS (20 * NSEC_PER_MSEC)

/* What is to be placed. */
struct piece {
	struct perf_counter counter;
	const struct pmu_cpus *cpus;
	int brace;
	uint32_t device;
	bool software;
	bool part;
};

static const struct pmu_cpus *code_cpus(const struct event_code *code)
{
	return code->pmu && code->pmu->cpumask.count ? &code->pmu->cpumask : NULL;
}

/* Without braces, software events keep apart: theirs always counts all the time. */
static bool group_suits(const struct perf_group *g, const struct piece *piece)
{
	bool same_device = g->device == piece->device;

	if (g->brace != piece->brace || g->cpus != piece->cpus)
		return false;
	if (g->software != piece->software)
		return g->brace != EVENT_NO_BRACE;
	return g->software || same_device;
}

static void group_append(struct perf_group *g, const struct piece *piece)
{
	g->counter[g->count++] = piece->counter;
	g->software = g->software && piece->software;
	if (!piece->software)
		g->device = piece->device;
}

/* Have these counters ever been on the PMU, once we have run so long with them? */
static bool unit_runs(const struct perf_unit *unit)
{
	uint64_t sum[PERF_GROUP_MAX] = { 0 }, times[2];

	do {
		times[0] = times[1] = 0;
		if (perf_unit_add(unit, sum, times) < 0)
			return false;
	} while (times[1] == 0 && times[0] < TRIAL_NS);
	return times[1] > 0;
}

/*
 * The kernel opens some groups that it can never schedule, so they are run for
 * a try.  Where this thread may be on a CPU of another type, that tells nothing.
 */
static bool group_fits(const struct perf_group *g, bool part)
{
	bool runs = !g->software && !g->cpus && !part;
	struct perf_where where = {
		.pid = g->cpus ? -1 : 0,
		.cpu = g->cpus ? g->cpus->cpu[0] : -1,
		.start = runs ? PERF_START_NOW : PERF_START_NEVER,
	};
	struct perf_unit unit;
	bool fits;

	if (perf_unit_open(g, &where, &unit) < 0)
		return false;
	fits = !runs || unit_runs(&unit);
	perf_unit_close(&unit);
	return fits;
}

/* False: the PMU cannot hold it beside the others. */
static bool group_try(struct perf_group *g, const struct piece *piece)
{
	struct perf_group grown;

	if (g->count == PERF_GROUP_MAX)
		return false;
	grown = *g;
	group_append(&grown, piece);
	if (!group_fits(&grown, piece->part))
		return false;
	*g = grown;
	return true;
}

static int group_new(struct perf_plan *plan, const struct piece *piece)
{
	struct perf_group *grown;

	grown = reallocarray(plan->group, plan->metrics.groups + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plan->group = grown;
	grown += plan->metrics.groups++;
	*grown = (struct perf_group){
		.cpus = piece->cpus,
		.brace = piece->brace,
		.software = true,
	};
	group_append(grown, piece);
	return 0;
}

/* "{a,b}" as far as there is room. */
static void brace_text(const struct perf_plan *plan, int brace, char *ret, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < plan->events.count && used < room; i++) {
		const struct event_word *word = &plan->events.event[i].word;

		if (word->brace == brace)
			used += (size_t)snprintf(
				ret + used, room - used, "%s%s", used ? "," : "{", word->text);
	}
	if (used + 1 < room)
		snprintf(ret + used, room - used, "}");
}

static int refuse_brace(const struct perf_plan *plan, const struct event *event, const char *why,
	char ret_reason[READER_REASON_ROOM])
{
	char braces[100];

	brace_text(plan, event->word.brace, braces, sizeof(braces));
	reason_set(ret_reason, "cannot count %s as one group: \"%.60s\" %s; leave the braces out",
		braces, event->word.text, why);
	return -EINVAL;
}

int perf_groups_place(struct perf_plan *plan, const struct event *event,
	const struct event_code *code, size_t metric, char ret_reason[READER_REASON_ROOM])
{
	const struct piece piece = {
		.counter = { .attr = code->attr, .metric = metric },
		.cpus = code_cpus(code),
		.brace = event->word.brace,
		.device = code->device,
		.software = event->software,
		.part = code->part,
	};
	bool others = false;
	size_t g;

	for (g = 0; g < plan->metrics.groups && !plan->single; g++) {
		struct perf_group *group = &plan->group[g];

		others |= piece.brace != EVENT_NO_BRACE && group->brace == piece.brace;
		if (!group_suits(group, &piece))
			continue;
		if (group_try(group, &piece))
			break;
		if (piece.brace != EVENT_NO_BRACE)
			return refuse_brace(
				plan, event, "does not fit beside the others", ret_reason);
		/* A group of their own would find no room either. */
		if (code->attr.type == PERF_TYPE_BREAKPOINT) {
			reason_set(ret_reason, "cannot count \"%.60s\" beside the others: %s",
				event->word.text, breakpoint_refusal(-ENOSPC));
			return -ENOSPC;
		}
	}
	if (g == plan->metrics.groups || plan->single) {
		/* Core types are counted each in a group of their own. */
		if (others && !code->part)
			return refuse_brace(plan, event, "belongs to another PMU", ret_reason);
		g = plan->metrics.groups;
		if (group_new(plan, &piece) < 0) {
			reason_set(ret_reason, "out of memory");
			return -ENOMEM;
		}
	}
	plan->metrics.metric[metric].group = (int)g;
	return 0;
}
