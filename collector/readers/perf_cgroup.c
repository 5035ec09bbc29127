/* SPDX-License-Identifier: MIT */
/*
 * perf counts what runs in a cgroup: one group of events per CPU, for the whole
 * session.  Each CPU is scaled by its own times as it is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cgroup_place.h"
#include "readers/kfile.h"
#include "readers/mounts.h"
#include "readers/perf_plan.h"
#include "readers/perf_scale.h"
#include "readers/perf_unit.h"
#include "readers/pmu.h"
#include "readers/reader.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define NOTE_ROOM 64

/* Two clocks agree that differ by less than this part of the time and so much. */
#define CLOCKS_PART 64
#define CLOCKS_NS   2000

/* A group of the plan on one CPU. */
struct cpu_unit {
	struct perf_unit unit;
	uint64_t last[PERF_GROUP_MAX];
	uint64_t times[2]; /* enabled, running */
	bool timed;        /* a clock of ours, behind the events, runs with them */
	uint64_t clock_ns;
	/* From one reading to the next, when it ran last. */
	uint64_t grown[PERF_GROUP_MAX];
	uint64_t ran_ns;
};

struct cpu_units {
	struct cpu_unit *unit;
	size_t count;
	uint64_t sum[PERF_GROUP_MAX];
	uint64_t times[2];
};

struct perf_cgroup {
	struct reader reader;
	const struct perf_plan *plan;
	struct cpu_units *units; /* one for each group of the plan */
	struct pmu_cpus cpus;
	int folder;
	char note[NOTE_ROOM];
};

/* --- CPUs --- */

static int cpus_read(const struct reader_env *env, const char *which, struct pmu_cpus *ret,
	char ret_reason[READER_REASON_ROOM])
{
	char text[4096];
	int err =
		textfile_read(text, sizeof(text), "%s/devices/system/cpu/%s", env->sys_root, which);

	if (err >= 0)
		err = pmu_cpus_parse(text, ret);
	if (err < 0)
		reason_set(ret_reason, "cannot read which CPUs are %s: %s", which, strerror(-err));
	return err;
}

static bool cpus_have(const struct pmu_cpus *cpus, int cpu)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->cpu[i] == cpu)
			return true;
	return false;
}

static int cpus_check(const struct reader_env *env, const struct pmu_cpus *chosen,
	const struct pmu_cpus *online, char ret_reason[READER_REASON_ROOM])
{
	struct pmu_cpus present = { 0 };
	int err = cpus_read(env, "present", &present, ret_reason);

	for (size_t i = 0; err == 0 && i < chosen->count; i++) {
		int cpu = chosen->cpu[i];

		if (cpus_have(online, cpu))
			continue;
		reason_set(ret_reason, "cannot count on CPU %d: %s", cpu,
			cpus_have(&present, cpu) ? "it is offline"
						 : "there is none of that number");
		err = -ENODEV;
	}
	pmu_cpus_clear(&present);
	return err;
}

/* Those that the user chose, which must be there; else all. */
static int cpus_find(
	const struct reader_env *env, struct pmu_cpus *ret, char ret_reason[READER_REASON_ROOM])
{
	struct pmu_cpus online = { 0 }, chosen = { 0 };
	int err = cpus_read(env, "online", &online, ret_reason);

	if (err < 0)
		return err;
	if (!env->cpus) {
		*ret = online;
		return 0;
	}
	err = pmu_cpus_parse(env->cpus, &chosen);
	if (err < 0)
		reason_set(ret_reason,
			"\"%.100s\" is no list of CPUs in rising order, such as 0-3,8", env->cpus);
	else
		err = cpus_check(env, &chosen, &online, ret_reason);
	pmu_cpus_clear(&online);
	if (err < 0)
		pmu_cpus_clear(&chosen);
	else
		*ret = chosen;
	return err;
}

static int perf_cgroup_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	const struct perf_plan *plan;
	struct pmu_cpus cpus;
	int err;

	err = perf_plan_get(env, &plan, ret_reason);
	if (err == 0)
		err = cpus_find(env, &cpus, ret_reason);
	if (err == 0)
		pmu_cpus_clear(&cpus);
	return err;
}

/* --- opening --- */

static bool events_take_turns(const struct perf_plan *plan)
{
	size_t groups = 0;

	for (size_t g = 0; g < plan->metrics.groups; g++)
		groups += !plan->group[g].software && !plan->group[g].cpus;
	return groups > 1;
}

/*
 * Where events take turns, Linux 6.12 books the times in which a group's ran to
 * the wrong ones of them, as it does not look at the group's own clock then.
 */
static bool clock_add(struct perf_group *g)
{
	if (g->software || g->cpus || g->count == PERF_GROUP_MAX)
		return false;
	g->counter[g->count++].attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	return true;
}

static int unit_open(struct perf_cgroup *p, size_t group, int cpu)
{
	struct perf_group g = p->plan->group[group];
	struct cpu_units *units = &p->units[group];
	struct perf_where where = {
		.pid = g.cpus ? -1 : p->folder,
		.cgroup = !g.cpus,
		.cpu = cpu,
		.single = p->plan->single,
		.start = PERF_START_NOW,
	};
	struct cpu_unit *grown;
	int err;

	grown = reallocarray(units->unit, units->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	units->unit = grown;
	grown += units->count;
	memset(grown, 0, sizeof(*grown));
	grown->timed = !where.single && events_take_turns(p->plan) && clock_add(&g);
	err = perf_unit_open(&g, &where, &grown->unit);
	units->count += err == 0;
	return err;
}

/* The CPUs of another core type do not know the event. */
static bool is_other_type(int err)
{
	return err == -ENOENT || err == -EINVAL || err == -ENODEV || err == -EOPNOTSUPP;
}

static int group_open(struct perf_cgroup *p, size_t group)
{
	const struct pmu_cpus *cpus = p->plan->group[group].cpus;
	int err = 0, refusal = 0;

	if (!cpus)
		cpus = &p->cpus;
	for (size_t i = 0; i < cpus->count && err == 0; i++) {
		err = unit_open(p, group, cpus->cpu[i]);
		if (is_other_type(err)) {
			refusal = err;
			err = 0;
		}
	}
	return err == 0 && p->units[group].count == 0 ? refusal : err;
}

static bool is_on_v1(const struct reader_env *env)
{
	char text[4096];
	int size = textfile_read(text, sizeof(text), "%s/self/cgroup", env->proc_root);

	return size > 0 && mounts_controller_is_v1(text, (size_t)size, "perf_event");
}

static void missing_reason(const struct reader_env *env, const struct cgroup_place *place,
	char ret_reason[READER_REASON_ROOM])
{
	char names[256] = "";

	if (is_on_v1(env)) {
		reason_set(ret_reason,
			"perf cannot count a cgroup here: its controller belongs to cgroup v1; boot "
			"with systemd.unified_cgroup_hierarchy=1 or cgroup_no_v1=perf_event");
		return;
	}
	(void)textfile_read(names, sizeof(names), "%s/cgroup.controllers", place->root_path);
	names[strcspn(names, " ")] = '\0';
	reason_set(ret_reason,
		"perf cannot count cgroups as long as no controller has ever been enabled in the "
		"root: echo \"+%.20s\" | sudo tee %.90s/cgroup.subtree_control",
		*names ? names : "cpu", place->root_path);
}

static void open_reason(const struct reader_env *env, const struct cgroup_place *place, int err,
	char ret_reason[READER_REASON_ROOM])
{
	if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"counting a cgroup needs root or CAP_PERFMON, or perf_event_paranoid at 0; it is "
			"%d (jphase doctor)",
			perf_paranoid(env));
	else if (err == -ENOENT)
		missing_reason(env, place, ret_reason);
	else if (err == -EBADF)
		reason_set(
			ret_reason, "perf cannot count %.120s: it is no cgroup", place->group_path);
	else
		reason_set(ret_reason, "cannot open the counters of the cgroup %.100s: %s",
			place->group_path, strerror(-err));
}

static void perf_cgroup_close(struct reader *r)
{
	struct perf_cgroup *p = (struct perf_cgroup *)r;

	if (!p)
		return;
	for (size_t g = 0; p->units && g < p->plan->metrics.groups; g++) {
		for (size_t i = 0; i < p->units[g].count; i++)
			perf_unit_close(&p->units[g].unit[i].unit);
		free(p->units[g].unit);
	}
	free(p->units);
	pmu_cpus_clear(&p->cpus);
	sys_close(p->folder);
	free(p);
}

static void note_others(
	struct perf_cgroup *p, const struct reader_target *target, const struct cgroup_place *place)
{
	uint64_t others = 0;

	if (target->env->cgroup_own)
		return;
	(void)cgroup_place_others(place, target->pid, &others);
	if (others)
		snprintf(p->note, sizeof(p->note), "shared with %llu other process%s",
			(unsigned long long)others, others == 1 ? "" : "es");
}

static int counters_open(struct perf_cgroup *p, const struct reader_target *target,
	char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_place place;
	int err = cgroup_place_find(target->env, target->pid, &place, ret_reason);

	if (err < 0)
		return err;
	/* One more, as an empty list of groups is no error. */
	p->units = calloc(p->plan->metrics.groups + 1, sizeof(*p->units));
	p->folder = sys_open_dir(place.group_path);
	err = p->units ? MIN(p->folder, 0) : -ENOMEM;
	for (size_t g = 0; g < p->plan->metrics.groups && err == 0; g++)
		err = group_open(p, g);
	if (err < 0)
		open_reason(target->env, &place, err, ret_reason);
	else
		note_others(p, target, &place);
	cgroup_place_clear(&place);
	return err;
}

static int perf_cgroup_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct perf_cgroup *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		reason_set(ret_reason, "out of memory");
		return -ENOMEM;
	}
	p->reader.ops = &perf_cgroup_reader;
	p->folder = -1;
	err = perf_plan_get(target->env, &p->plan, ret_reason);
	if (err == 0)
		err = cpus_find(target->env, &p->cpus, ret_reason);
	if (err == 0)
		err = counters_open(p, target, ret_reason);
	if (err < 0) {
		perf_cgroup_close(&p->reader);
		return err;
	}
	*ret = &p->reader;
	return 0;
}

/* --- what it counts --- */

static int perf_cgroup_describe(const struct reader *r, struct metric_list *out)
{
	const struct perf_cgroup *p = (const struct perf_cgroup *)r;
	int err = 0;

	for (size_t i = 0; i < p->plan->metrics.count && err == 0; i++) {
		struct metric metric = p->plan->metrics.metric[i];

		if (metric.scope == SCOPE_PROCESS) {
			metric.scope = SCOPE_GROUP;
			metric.kind = METRIC_SCALED;
			if (*p->note && !metric.note)
				metric.note = (char *)p->note;
		}
		err = metric_list_add(out, &metric);
	}
	if (err == 0)
		out->groups = p->plan->metrics.groups;
	return err;
}

/*
 * Where the group never ran, the sums go on at the rate of before: a phase in
 * which no CPU counted is "not counted", but those around it and TOTAL are right.
 */
static void sums_estimate(
	struct cpu_units *units, const struct cpu_unit *u, size_t count, uint64_t enabled)
{
	for (size_t i = 0; i < count && u->ran_ns; i++)
		units->sum[i] += (uint64_t)((unsigned __int128)u->grown[i] * enabled / u->ran_ns);
}

/* The kernel's time, unless the clock beside the events tells otherwise. */
static uint64_t time_running(
	struct cpu_unit *u, const uint64_t *now, uint64_t enabled, uint64_t running)
{
	uint64_t clock_ns = u->timed ? now[u->unit.count - 1] : 0, ran = clock_ns - u->clock_ns;
	uint64_t off = ran > running ? ran - running : running - ran;

	u->clock_ns = clock_ns;
	return u->timed && off > enabled / CLOCKS_PART + CLOCKS_NS ? MIN(ran, enabled) : running;
}

static int unit_read(struct cpu_units *units, struct cpu_unit *u, size_t count, bool scaled)
{
	uint64_t now[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 }, enabled, running;
	int err = perf_unit_add(&u->unit, now, times);

	if (err < 0)
		return err;
	enabled = times[0] - u->times[0];
	running = time_running(u, now, enabled, times[1] - u->times[1]);
	units->times[0] += enabled;
	units->times[1] += running;
	memcpy(u->times, times, sizeof(times));
	if (enabled && !running) {
		if (scaled)
			sums_estimate(units, u, count, enabled);
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		u->grown[i] = now[i] - u->last[i];
		u->last[i] = now[i];
		units->sum[i] += scaled ? perf_scale(u->grown[i], enabled, running) : u->grown[i];
	}
	u->ran_ns = running ? running : u->ran_ns;
	return 0;
}

static void group_read(const struct perf_cgroup *p, size_t group, uint64_t *values)
{
	const struct perf_group *g = &p->plan->group[group];
	struct cpu_units *units = &p->units[group];
	int err = 0;

	for (size_t i = 0; i < units->count && err == 0; i++)
		err = unit_read(units, &units->unit[i], g->count, !g->cpus);
	for (size_t i = 0; i < g->count; i++)
		values[g->counter[i].metric] = err < 0 ? VALUE_ABSENT : units->sum[i];
	for (size_t i = 0; i < 2; i++)
		values[p->plan->metrics.count + 2 * group + i] =
			err < 0 ? VALUE_ABSENT : units->times[i];
}

static int perf_cgroup_read(struct reader *r, uint64_t *ret_values)
{
	const struct perf_cgroup *p = (const struct perf_cgroup *)r;

	for (size_t i = 0; i < p->plan->metrics.count; i++)
		ret_values[i] = VALUE_ABSENT;
	for (size_t g = 0; g < p->plan->metrics.groups; g++)
		group_read(p, g, ret_values);
	return 0;
}

const struct reader_ops perf_cgroup_reader = {
	.name = "perf",
	.critical = true,
	.per_process = false,
	.probe = perf_cgroup_probe,
	.open = perf_cgroup_open,
	.describe = perf_cgroup_describe,
	.read = perf_cgroup_read,
	.close = perf_cgroup_close,
};
