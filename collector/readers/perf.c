/* SPDX-License-Identifier: MIT */
/* The perf reader: one instance counts a process and what it starts. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/perf_plan.h"
#include "readers/perf_thread.h"
#include "readers/perf_unit.h"
#include "readers/perf_watch.h"
#include "readers/reader.h"
#include "readers/reason.h"

#define GROUP_ATTEMPTS 10

/* The openings of one group: on each thread, or on each CPU. */
struct members {
	struct perf_unit *unit;
	size_t count;
};

struct perf {
	struct reader reader;
	const struct reader_env *env;
	const struct perf_plan *plan;
	struct members *members; /* one for each group of the plan */
	pid_t pid;
	struct perf_watch *watch;
	bool one_by_one; /* some thread would not be read as a group */
};

static int perf_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	const struct perf_plan *plan;

	return perf_plan_get(env, &plan, ret_reason);
}

static int members_add(struct members *m, const struct perf_unit *unit)
{
	struct perf_unit *grown = reallocarray(m->unit, m->count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	m->unit = grown;
	m->unit[m->count++] = *unit;
	return 0;
}

static int group_open(struct perf *p, size_t group, struct perf_where where)
{
	struct perf_unit unit;
	int err = -ECHILD;

	where.single = p->plan->single;
	for (int i = 0; i < GROUP_ATTEMPTS && err == -ECHILD; i++)
		err = perf_unit_open(&p->plan->group[group], &where, &unit);
	if (err == -ECHILD) {
		/* It starts threads all the time. */
		where.single = true;
		p->one_by_one = true;
		err = perf_unit_open(&p->plan->group[group], &where, &unit);
	}
	if (err < 0)
		return err;
	err = members_add(&p->members[group], &unit);
	if (err < 0)
		perf_unit_close(&unit);
	return err;
}

static int thread_open(struct perf *p, pid_t tid, enum perf_start start)
{
	struct perf_where where = { .pid = tid, .cpu = -1, .start = start };
	int err = 0;

	for (size_t g = 0; g < p->plan->metrics.groups && err == 0; g++)
		if (!p->plan->group[g].cpus)
			err = group_open(p, g, where);
	return err;
}

static int cpus_open(struct perf *p)
{
	int err = 0;

	for (size_t g = 0; g < p->plan->metrics.groups; g++) {
		const struct pmu_cpus *cpus = p->plan->group[g].cpus;

		for (size_t i = 0; cpus && i < cpus->count && err == 0; i++)
			err = group_open(p, g,
				(struct perf_where){
					.pid = -1, .cpu = cpus->cpu[i], .start = PERF_START_NOW });
	}
	return err;
}

/*
 * The list is complete before the first thread is opened: a thread that is born
 * to an opened one is counted there and must not be opened as well.
 */
static int threads_list(const struct perf *p, pid_t **ret, size_t *ret_count)
{
	struct dirent *entry;
	pid_t *tids = NULL;
	size_t count = 0;
	char path[128];
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/%d/task", p->env->proc_root, (int)p->pid) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t *grown;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		grown = reallocarray(tids, count + 1, sizeof(*grown));
		if (!grown) {
			free(tids);
			closedir(dir);
			return -ENOMEM;
		}
		tids = grown;
		tids[count++] = (pid_t)atoi(entry->d_name);
	}
	closedir(dir);
	*ret = tids;
	*ret_count = count;
	return 0;
}

static int threads_open(struct perf *p)
{
	size_t count = 0, opened = 0;
	pid_t *tids = NULL;
	int err;

	err = threads_list(p, &tids, &count);
	if (err < 0)
		return err == -ENOENT ? -ESRCH : err;
	for (size_t i = 0; i < count && err == 0; i++) {
		err = thread_open(p, tids[i], PERF_START_NOW);
		opened += err == 0;
		/* It has ended since. */
		if (err == -ESRCH)
			err = 0;
	}
	free(tids);
	return err < 0 ? err : opened ? 0 : -ESRCH;
}

static void open_reason(const struct perf *p, int err, char ret_reason[READER_REASON_ROOM])
{
	int pid = (int)p->pid;

	switch (-err) {
	case EACCES:
	case EPERM:
		reason_set(ret_reason,
			"the kernel refuses counters of process %d: it belongs to another user or "
			"runs with other rights; run jphase as root or with CAP_PERFMON and "
			"CAP_SYS_PTRACE",
			pid);
		break;
	case EMFILE:
		reason_set(ret_reason,
			"too many open files for the counters of process %d; raise the limit (ulimit "
			"-n) or count fewer events",
			pid);
		break;
	case ENFILE:
		reason_set(ret_reason,
			"the machine has too many open files (fs.file-max) for the "
			"counters of process %d",
			pid);
		break;
	case ESRCH: reason_set(ret_reason, "process %d has ended", pid); break;
	default:
		reason_set(ret_reason, "cannot open the counters of process %d: %s", pid,
			strerror(-err));
	}
}

static void perf_close(struct reader *r)
{
	struct perf *p = (struct perf *)r;

	if (!p)
		return;
	for (size_t g = 0; p->members && g < p->plan->metrics.groups; g++) {
		for (size_t i = 0; i < p->members[g].count; i++)
			perf_unit_close(&p->members[g].unit[i]);
		free(p->members[g].unit);
	}
	free(p->members);
	perf_watch_close(p->watch);
	free(p);
}

static int counters_open(struct perf *p, bool enable_on_exec)
{
	int err;

	err = enable_on_exec ? thread_open(p, p->pid, PERF_START_EXEC) : threads_open(p);
	if (err == 0)
		err = cpus_open(p);
	return err < 0 ? err : perf_watch_open(p->env, p->pid, &p->watch);
}

static int perf_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	const struct perf_plan *plan;
	struct perf *p;
	int err;

	err = perf_plan_get(target->env, &plan, ret_reason);
	if (err < 0)
		return err;
	if (target->alone)
		return perf_thread_open(target, plan, ret, ret_reason);
	p = malloc(sizeof(*p));
	if (!p) {
		reason_set(ret_reason, "out of memory");
		return -ENOMEM;
	}
	*p = (struct perf){
		.reader.ops = &perf_reader,
		.env = target->env,
		.plan = plan,
		.pid = target->pid,
	};
	/* One more, as an empty list of groups is no error. */
	p->members = calloc(plan->metrics.groups + 1, sizeof(*p->members));
	err = p->members ? counters_open(p, target->enable_on_exec) : -ENOMEM;
	if (err < 0) {
		open_reason(p, err, ret_reason);
		perf_close(&p->reader);
		return err;
	}
	*ret = &p->reader;
	return 0;
}

static const char single_note[] =
	"counted one by one, as the process was starting threads when it was opened";

static int perf_describe(const struct reader *r, struct metric_list *out)
{
	const struct perf *p = (const struct perf *)r;
	int err = 0;

	for (size_t i = 0; i < p->plan->metrics.count && err == 0; i++) {
		struct metric metric = p->plan->metrics.metric[i];

		if (p->one_by_one && metric.group != METRIC_NO_GROUP && !metric.note)
			metric.note = (char *)single_note;
		err = metric_list_add(out, &metric);
	}
	if (err == 0)
		out->groups = p->plan->metrics.groups;
	return err;
}

static int group_sum(
	const struct perf *p, size_t group, uint64_t sum[PERF_GROUP_MAX], uint64_t times[2])
{
	const struct members *m = &p->members[group];
	int err = 0;

	for (size_t i = 0; i < m->count && err == 0; i++)
		err = perf_unit_add(&m->unit[i], sum, times);
	return err;
}

static void group_read(const struct perf *p, size_t group, uint64_t *values)
{
	const struct perf_group *g = &p->plan->group[group];
	uint64_t sum[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 };
	int err = group_sum(p, group, sum, times);

	for (size_t i = 0; i < g->count; i++)
		values[g->counter[i].metric] = err < 0 ? VALUE_ABSENT : sum[i];
	for (size_t i = 0; i < 2; i++)
		values[p->plan->metrics.count + 2 * group + i] = err < 0 ? VALUE_ABSENT : times[i];
}

static int perf_read(struct reader *r, uint64_t *ret_values)
{
	const struct perf *p = (const struct perf *)r;

	for (size_t i = 0; i < p->plan->metrics.count; i++)
		ret_values[i] = VALUE_ABSENT;
	for (size_t g = 0; g < p->plan->metrics.groups; g++)
		group_read(p, g, ret_values);
	return 0;
}

static const char *perf_lost(struct reader *r)
{
	const struct perf *p = (const struct perf *)r;
	uint64_t sum[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 };
	size_t g = 0;

	while (g < p->plan->metrics.groups && p->plan->group[g].cpus)
		g++;
	if (g == p->plan->metrics.groups || group_sum(p, g, sum, times) < 0 ||
		!perf_watch_is_lost(p->watch, times[0]))
		return NULL;
	return READER_LOST_AT_EXEC;
}

static int perf_can_sample(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	const struct perf_plan *plan;
	int err = perf_plan_get(env, &plan, ret_reason);

	return err < 0 ? err : perf_thread_can_sample(plan, ret_reason);
}

const struct reader_ops perf_reader = {
	.name = "perf",
	.critical = true,
	.per_process = true,
	.per_thread = true,
	.probe = perf_probe,
	.can_sample = perf_can_sample,
	.open = perf_open,
	.describe = perf_describe,
	.read = perf_read,
	.lost = perf_lost,
	.close = perf_close,
};
