/* SPDX-License-Identifier: MIT */
/* Energy counters by perf events.  The kernel takes care of their wrapping. */
#include "readers/rapl_perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/perf_unit.h"
#include "readers/pmu.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define PMU_NAME "power"
#define UJ_PER_J 1e6L

struct energy_bank {
	struct rapl_plan plan;
	struct perf_group group; /* the events of all places but the first, which leads */
	struct perf_group first; /* has those of the whole platform as well */
	struct perf_unit *unit;  /* of each place */
	size_t units;
};

static const struct {
	const char *name;
	enum energy_kind kind;
} names[RAPL_EVENTS_MAX] = {
	{ "energy-pkg", ENERGY_PACKAGE },
	{ "energy-cores", ENERGY_CORE },
	{ "energy-ram", ENERGY_DRAM },
	{ "energy-gpu", ENERGY_UNCORE },
	{ "energy-psys", ENERGY_PSYS },
};

/* --- the plan --- */

/* "2.3283064365386962890625e-10 Joules".  False: in a unit that we do not know. */
static bool worth_parse(const char *text, long double *ret_uj)
{
	char *end;

	*ret_uj = strtold(text, &end) * UJ_PER_J;
	return end != text && str_eq(end, " Joules") && *ret_uj > 0;
}

static void plan_add_event(
	struct rapl_plan *plan, const struct pmu_list *pmus, const struct pmu *pmu, size_t index)
{
	struct rapl_event event = { .kind = names[index].kind };
	char worth[128], unused[READER_REASON_ROOM];
	uint64_t config[PMU_CONFIGS];

	if (!pmu_event_worth(pmus, pmu, names[index].name, worth, sizeof(worth)) ||
		!worth_parse(worth, &event.uj) ||
		pmu_encode(pmus, pmu, names[index].name, config, unused) < 0)
		return;
	event.config = config[0];
	plan->event[plan->events++] = event;
}

static int topology_number(const struct reader_env *env, int cpu, const char *file)
{
	char text[32];
	int size = textfile_read(text, sizeof(text), "%s/devices/system/cpu/cpu%d/topology/%s",
		env->sys_root, cpu, file);

	/* Kernels before 5.2 know no dies, some machines no packages. */
	return size > 0 ? MAX(atoi(text), 0) : 0;
}

static bool plan_has_package(const struct rapl_plan *plan, int package)
{
	for (size_t i = 0; i < plan->places; i++)
		if (plan->place[i].package == package)
			return true;
	return false;
}

static int plan_add_places(
	struct rapl_plan *plan, const struct reader_env *env, const struct pmu_cpus *cpus)
{
	bool amd = energy_is_amd(env);

	plan->place = calloc(cpus->count + 1, sizeof(*plan->place));
	if (!plan->place)
		return -ENOMEM;
	for (size_t i = 0; i < cpus->count; i++) {
		struct rapl_place place = {
			.cpu = cpus->cpu[i],
			.package = topology_number(env, cpus->cpu[i], "physical_package_id"),
			.die = topology_number(env, cpus->cpu[i], "die_id"),
		};

		/* Kernels 6.9 to 6.12 list a CPU of each die, and all count the package. */
		if (!amd || !plan_has_package(plan, place.package))
			plan->place[plan->places++] = place;
	}
	return 0;
}

static int plan_fill(struct rapl_plan *plan, const struct reader_env *env,
	const struct pmu_list *pmus, char ret_reason[READER_REASON_ROOM])
{
	const struct pmu *pmu = pmu_find(pmus, PMU_NAME);

	if (!pmu) {
		reason_set(ret_reason, "no energy counters in %.120s/bus/event_source/devices",
			env->sys_root);
		return -ENODEV;
	}
	plan->type = pmu->type;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		plan_add_event(plan, pmus, pmu, i);
	if (plan->events == 0 || pmu->cpumask.count == 0) {
		reason_set(ret_reason, "the kernel's PMU `" PMU_NAME "` has %s that jphase knows",
			plan->events ? "no CPU" : "no event");
		return -ENODEV;
	}
	return plan_add_places(plan, env, &pmu->cpumask);
}

int rapl_plan_load(
	const struct reader_env *env, struct rapl_plan *ret, char ret_reason[READER_REASON_ROOM])
{
	struct rapl_plan plan = { 0 };
	struct pmu_list pmus;
	int err;

	reason_set(ret_reason, "out of memory");
	err = pmu_list_load(env->sys_root, &pmus);
	if (err < 0)
		return err;
	err = plan_fill(&plan, env, &pmus, ret_reason);
	pmu_list_clear(&pmus);
	if (err < 0) {
		rapl_plan_clear(&plan);
		return err;
	}
	*ret = plan;
	return 0;
}

void rapl_plan_clear(struct rapl_plan *plan)
{
	free(plan->place);
	*plan = (struct rapl_plan){ 0 };
}

/* --- counting --- */

/* The platform is counted by one place alone. */
static void groups_fill(struct energy_bank *b)
{
	for (size_t i = 0; i < b->plan.events; i++) {
		struct perf_counter counter = {
			.attr = { .type = b->plan.type, .config = b->plan.event[i].config },
			.metric = i,
		};

		b->first.counter[b->first.count++] = counter;
		if (b->plan.event[i].kind != ENERGY_PSYS)
			b->group.counter[b->group.count++] = counter;
	}
}

static const struct perf_group *bank_group(const struct energy_bank *b, size_t place)
{
	return place == 0 ? &b->first : &b->group;
}

static int counters_add(const struct energy_bank *b, size_t place, struct energy_counters *list)
{
	const struct perf_group *group = bank_group(b, place);
	const struct rapl_place *at = &b->plan.place[place];

	for (size_t i = 0; i < group->count; i++) {
		struct energy_counter c = {
			.kind = b->plan.event[group->counter[i].metric].kind,
			.package = at->package,
			.die = at->die,
		};
		int err;

		if (c.kind == ENERGY_PSYS)
			c.package = c.die = 0;
		if (asprintf(&c.where, "the PMU `" PMU_NAME "` on CPU %d", at->cpu) < 0)
			return -ENOMEM;
		err = energy_counters_add(list, &c);
		if (err < 0) {
			free(c.where);
			return err;
		}
	}
	return 0;
}

static int unit_open(const struct perf_group *group, int cpu, struct perf_unit *ret)
{
	struct perf_where where = { .pid = -1, .cpu = cpu, .start = PERF_START_NOW };
	int err = perf_unit_open(group, &where, ret);

	if (err != -EINVAL)
		return err;
	where.single = true;
	return perf_unit_open(group, &where, ret);
}

static int places_open(struct energy_bank *b, struct energy_counters *list)
{
	int err = 0;

	groups_fill(b);
	b->unit = calloc(b->plan.places + 1, sizeof(*b->unit));
	if (!b->unit)
		return -ENOMEM;
	for (size_t i = 0; i < b->plan.places && err == 0; i++) {
		const struct perf_group *group = bank_group(b, i);

		/* A platform without packages has nothing for the other places. */
		err = group->count ? unit_open(group, b->plan.place[i].cpu, &b->unit[i]) : 0;
		if (err < 0)
			break;
		b->units++;
		err = counters_add(b, i, list);
	}
	return err;
}

static struct energy_bank *rapl_perf_close(struct energy_bank *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->units; i++)
		perf_unit_close(&b->unit[i]);
	free(b->unit);
	rapl_plan_clear(&b->plan);
	free(b);
	return NULL;
}

static void set_open_reason(int err, char ret_reason[READER_REASON_ROOM])
{
	if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"the kernel refuses its energy counters: they count the whole machine; run "
			"jphase as root or with CAP_PERFMON, or "
			"`echo 0 | sudo tee /proc/sys/kernel/perf_event_paranoid`");
	else
		reason_set(
			ret_reason, "cannot open the kernel's energy counters: %s", strerror(-err));
}

static int rapl_perf_open(const struct reader_env *env, struct energy_counters *ret_counters,
	struct energy_bank **ret, char ret_reason[READER_REASON_ROOM])
{
	struct energy_bank *b = calloc(1, sizeof(*b));
	int err;

	*ret_counters = (struct energy_counters){ 0 };
	if (!b) {
		reason_set(ret_reason, "out of memory");
		return -ENOMEM;
	}
	err = rapl_plan_load(env, &b->plan, ret_reason);
	if (err == 0) {
		err = places_open(b, ret_counters);
		if (err < 0)
			set_open_reason(err, ret_reason);
	}
	if (err < 0) {
		rapl_perf_close(b);
		energy_counters_clear(ret_counters);
		return err;
	}
	*ret = b;
	return 0;
}

static void rapl_perf_read(struct energy_bank *b, uint64_t *ret_uj)
{
	for (size_t place = 0; place < b->units; place++) {
		const struct perf_group *group = bank_group(b, place);
		uint64_t values[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 };
		int err = group->count ? perf_unit_add(&b->unit[place], values, times) : 0;

		for (size_t i = 0; i < group->count; i++) {
			long double uj = b->plan.event[group->counter[i].metric].uj;

			*ret_uj++ =
				err < 0 ? VALUE_ABSENT : (uint64_t)((long double)values[i] * uj);
		}
	}
}

const struct energy_way rapl_perf_way = {
	.name = "RAPL (perf_event)",
	.absolute = false,
	.open = rapl_perf_open,
	.read = rapl_perf_read,
	.close = rapl_perf_close,
};
