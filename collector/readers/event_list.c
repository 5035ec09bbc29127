/* SPDX-License-Identifier: MIT */
/* events_each(): the events that have names here. */
#include <errno.h>
#include <perfmon/pfmlib.h>
#include <stdio.h>

#include "readers/event_names.h"
#include "readers/events.h"

struct walk {
	int (*fn)(const char *name, const char *group, const char *description, void *arg);
	void *arg;
	const struct pmu_list *pmus;
	const struct pmu *pmu;
};

static int walk_generic(const struct event_name *name, void *arg)
{
	const struct walk *w = arg;

	return w->fn(name->name, name->group, name->description, w->arg);
}

static int walk_sysfs_event(const char *event, void *arg)
{
	const struct walk *w = arg;
	char name[256], worth[128];

	if (!pmu_event_worth(w->pmus, w->pmu, event, worth, sizeof(worth)))
		worth[0] = '\0';
	snprintf(name, sizeof(name), "%s/%s/", w->pmu->name, event);
	return w->fn(name, w->pmu->name, worth, w->arg);
}

static int walk_sysfs(struct walk *w)
{
	int err = 0;

	for (size_t i = 0; i < w->pmus->count && err == 0; i++) {
		w->pmu = &w->pmus->pmu[i];
		err = pmu_each_event(w->pmus, w->pmu, walk_sysfs_event, w);
	}
	return err;
}

/* An event with unit masks is named with one of them. */
static int walk_masks(
	const struct walk *w, const pfm_pmu_info_t *pmu, const pfm_event_info_t *event)
{
	bool has_masks = false;
	char name[256];
	int err = 0;

	for (int i = 0; i < event->nattrs && err == 0; i++) {
		pfm_event_attr_info_t mask = { .size = sizeof(mask) };

		if (pfm_get_event_attr_info(event->idx, i, PFM_OS_PERF_EVENT, &mask) !=
				PFM_SUCCESS ||
			mask.type != PFM_ATTR_UMASK)
			continue;
		has_masks = true;
		snprintf(name, sizeof(name), "%s::%s:%s", pmu->name, event->name, mask.name);
		err = w->fn(name, pmu->name, mask.desc, w->arg);
	}
	if (has_masks || err)
		return err;
	snprintf(name, sizeof(name), "%s::%s", pmu->name, event->name);
	return w->fn(name, pmu->name, event->desc, w->arg);
}

static int walk_libpfm_pmu(const struct walk *w, pfm_pmu_t id)
{
	pfm_pmu_info_t pmu = { .size = sizeof(pmu) };
	int err = 0;

	if (pfm_get_pmu_info(id, &pmu) != PFM_SUCCESS || !pmu.is_present)
		return 0;
	for (int i = pmu.first_event; i != -1 && err == 0; i = pfm_get_event_next(i)) {
		pfm_event_info_t event = { .size = sizeof(event) };

		if (pfm_get_event_info(i, PFM_OS_PERF_EVENT, &event) == PFM_SUCCESS)
			err = walk_masks(w, &pmu, &event);
	}
	return err;
}

static int walk_libpfm(const struct walk *w)
{
	int err = 0;

	if (pfm_initialize() != PFM_SUCCESS)
		return 0;
	for (int id = PFM_PMU_NONE; id < PFM_PMU_MAX && err == 0; id++)
		/* These two are the kernel's generic events once more. */
		if (id != PFM_PMU_PERF_EVENT && id != PFM_PMU_PERF_EVENT_RAW)
			err = walk_libpfm_pmu(w, (pfm_pmu_t)id);
	return err;
}

int events_each(const struct reader_env *env,
	int (*fn)(const char *name, const char *group, const char *description, void *arg),
	void *arg)
{
	struct pmu_list pmus;
	struct walk w = { .fn = fn, .arg = arg, .pmus = &pmus };
	int err;

	err = pmu_list_load(env->sys_root, &pmus);
	if (err < 0)
		return err;
	err = event_names_each(walk_generic, &w);
	if (err == 0)
		err = walk_sysfs(&w);
	if (err == 0)
		err = walk_libpfm(&w);
	pmu_list_clear(&pmus);
	return err;
}
