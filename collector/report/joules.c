/* SPDX-License-Identifier: MIT */
#include "report/joules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

#define READER  "energy"
#define PACKAGE "PACKAGE-"
#define SOURCE  "estimate"

/* One energy counter of the recording. */
struct domain {
	const struct metric *info;
	size_t reader;
	size_t energy; /* columns */
	size_t power;
	bool package;
};

struct joules {
	struct domain *domain;
	size_t count;
	size_t packages;
	uint64_t idle_uw; /* of all packages; 0: not measured */
	size_t share;     /* columns of the estimate */
	size_t target;
	size_t task; /* columns that it comes from, or MODEL_NONE */
	size_t user;
	size_t system;
	size_t busy;
	size_t columns;
};

/* --- values --- */

static void set_null(struct value *v, const char *why)
{
	*v = (struct value){ .state = VALUE_NULL, .note = why };
}

static const struct reading *reading_of(const struct boundary *b, size_t reader)
{
	return b->session && b->session->reading[reader].values ? &b->session->reading[reader]
								: NULL;
}

/* The time between the two readings. */
static uint64_t time_passed(const struct interval *interval, size_t reader)
{
	const struct reading *begin = reading_of(interval->begin, reader);
	const struct reading *end = reading_of(interval->end, reader);

	return begin && end ? saturating_sub(end->begin_ns, begin->begin_ns) : 0;
}

static uint64_t scale(uint64_t number, uint64_t by, uint64_t of)
{
	return (uint64_t)((unsigned __int128)number * by / of);
}

/* Each of the two readings may be as old as the counter's step. */
static void set_error(const struct domain *d, uint64_t passed, struct value *v)
{
	uint64_t step = d->info->step_ns;

	if (v->state != VALUE_COUNTED || !step)
		return;
	v->step_us = (uint32_t)(step / NSEC_PER_USEC);
	v->flags |= passed < step ? VALUE_SHORT : VALUE_COARSE;
	v->error = passed < step ? v->number : scale(v->number, step, passed);
}

static void fill_power(
	const struct domain *d, uint64_t passed, const struct value *energy, struct value *v)
{
	if (energy->state != VALUE_COUNTED) {
		*v = *energy;
		return;
	}
	if (passed == 0 || passed < d->info->step_ns) {
		set_null(v, "shorter than a step of the counter");
		return;
	}
	*v = *energy;
	v->number = scale(energy->number, NSEC_PER_SEC, passed);
	v->error = scale(energy->error, NSEC_PER_SEC, passed);
}

/* --- the target's part --- */

static bool is_counted(const struct value *values, size_t column)
{
	return column != MODEL_NONE && values[column].state == VALUE_COUNTED;
}

/* The CPU time of the process and of what it started. */
static bool task_time(const struct joules *j, const struct value *values, uint64_t *ret_ns)
{
	if (is_counted(values, j->task)) {
		*ret_ns = values[j->task].number;
		return true;
	}
	if (!is_counted(values, j->user) || !is_counted(values, j->system))
		return false;
	*ret_ns = (values[j->user].number + values[j->system].number) * NSEC_PER_USEC;
	return true;
}

/* In hundredths of a percent. */
static void fill_share(const struct joules *j, const struct value *values, struct value *v)
{
	uint64_t task, busy;

	if (!is_counted(values, j->busy)) {
		set_null(v, "the busy time of the machine is not known, which the reader cgroup "
			    "gives");
		return;
	}
	if (!task_time(j, values, &task)) {
		set_null(v, "the CPU time of the target is not known");
		return;
	}
	busy = values[j->busy].number * NSEC_PER_USEC;
	if (busy == 0) {
		set_null(v, "shorter than a step of the machine's busy time");
		return;
	}
	*v = (struct value){
		.state = VALUE_COUNTED,
		.number = scale(MIN(task, busy), 10000, busy),
		.coverage = 1,
		.flags = VALUE_ESTIMATED,
		.note = "CPU time of the target in that of the whole machine",
	};
}

/* False, with the reason in v: one of the packages is not counted. */
static bool packages_sum(
	const struct joules *j, const struct value *values, uint64_t *ret_uj, struct value *v)
{
	*ret_uj = 0;
	for (size_t i = 0; i < j->count; i++) {
		const struct value *energy = &values[j->domain[i].energy];

		if (!j->domain[i].package)
			continue;
		if (energy->state != VALUE_COUNTED) {
			*v = *energy;
			return false;
		}
		*ret_uj += energy->number;
	}
	return true;
}

static void fill_target(const struct joules *j, const struct interval *interval,
	const struct value *values, struct value *v)
{
	const struct value *share = &values[j->share];
	uint64_t passed = time_passed(interval, j->domain[0].reader);
	uint64_t uj;

	if (!packages_sum(j, values, &uj, v))
		return;
	if (share->state != VALUE_COUNTED) {
		*v = *share;
		return;
	}
	uj = saturating_sub(uj, scale(j->idle_uw, passed, NSEC_PER_SEC));
	*v = (struct value){
		.state = VALUE_COUNTED,
		.number = scale(uj, share->number, 10000),
		.coverage = 1,
		.flags = VALUE_ESTIMATED,
		.note = j->idle_uw
				? "energy of the packages above that of the idle machine, by "
				  "target_cpu_share"
				: "energy of the packages, idle power included, by target_cpu_share",
	};
}

void joules_fill(const struct joules *j, const struct interval *interval, struct value *values)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->count; i++) {
		const struct domain *d = &j->domain[i];
		uint64_t passed = time_passed(interval, d->reader);

		set_error(d, passed, &values[d->energy]);
		fill_power(d, passed, &values[d->energy], &values[d->power]);
	}
	if (!j->packages)
		return;
	fill_share(j, values, &values[j->share]);
	fill_target(j, interval, values, &values[j->target]);
}

/* --- columns --- */

static size_t column_of(
	const struct model *m, const struct run *run, const char *source, const char *name)
{
	for (size_t i = 0; i < run->column_count; i++)
		if (run->columns[i].known && str_eq(m->columns[i].name, name) &&
			str_eq(m->columns[i].source, source))
			return i;
	return MODEL_NONE;
}

static int add_column(struct joules *j, struct model *m, struct run *run, const struct column *like,
	const char *absent, size_t *ret)
{
	struct column column = *like;
	int err;

	column.source = pool_put(m->pool, like->source);
	if (!column.source)
		return -ENOMEM;
	err = model_column(m, &column, ret);
	if (err == 0)
		err = run_knows(run, *ret, absent);
	if (err == 0)
		j->columns = MAX(j->columns, *ret + 1);
	return err;
}

static int add_idle_note(struct model *m, struct run *run, const struct metric *info)
{
	char text[128];

	if (!info->idle_per_s || run->note_count == RUN_NOTES_MAX)
		return 0;
	snprintf(text, sizeof(text), "%.60s: %.3f W while the program had not begun", info->name,
		(double)info->idle_per_s / 1e6);
	run->notes[run->note_count] = pool_put(m->pool, text);
	return run->notes[run->note_count++] ? 0 : -ENOMEM;
}

static int add_domain(struct joules *j, struct model *m, struct run *run, size_t reader,
	const struct metric *info)
{
	struct domain *d = &j->domain[j->count];
	char name[128];
	struct column power = { name, info->source ? info->source : READER, UNIT_UW, COLUMN_SHARE };
	size_t energy = column_of(m, run, power.source, info->name);
	int err;

	if (info->unit != UNIT_UJ || energy == MODEL_NONE)
		return 0;
	snprintf(name, sizeof(name), "%.100s_power", info->name);
	*d = (struct domain){
		.info = info,
		.reader = reader,
		.energy = energy,
		.package = str_starts(info->name, PACKAGE),
	};
	err = add_column(j, m, run, &power, run->columns[energy].absent, &d->power);
	if (err < 0)
		return err;
	j->count++;
	j->packages += d->package;
	return add_idle_note(m, run, info);
}

/* All of them, or the sum is not known. */
static uint64_t idle_sum(const struct joules *j)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < j->count; i++) {
		if (!j->domain[i].package)
			continue;
		if (!j->domain[i].info->idle_per_s)
			return 0;
		sum += j->domain[i].info->idle_per_s;
	}
	return sum;
}

static int add_estimate(struct joules *j, struct model *m, struct run *run)
{
	static const struct column share = { "target_cpu_share", SOURCE, UNIT_PERCENT,
		COLUMN_SHARE };
	static const struct column target = { "target_energy", SOURCE, UNIT_UJ, COLUMN_ADD };
	int err;

	if (!j->packages)
		return 0;
	j->idle_uw = idle_sum(j);
	j->task = column_of(m, run, "perf_event", "task-clock");
	j->user = column_of(m, run, "procfs", "proc_user_time");
	j->system = column_of(m, run, "procfs", "proc_system_time");
	j->busy = column_of(m, run, "cgroup", "global_usage_usec");
	err = add_column(j, m, run, &share, NULL, &j->share);
	return err < 0 ? err : add_column(j, m, run, &target, NULL, &j->target);
}

static int add_reader(struct joules *j, struct model *m, struct run *run, size_t reader,
	const struct metric_list *list)
{
	struct domain *grown = reallocarray(j->domain, j->count + list->count + 1, sizeof(*grown));
	int err = grown ? 0 : -ENOMEM;

	j->domain = grown ? grown : j->domain;
	for (size_t i = 0; i < list->count && err == 0; i++)
		err = add_domain(j, m, run, reader, &list->metric[i]);
	return err;
}

int joules_open(
	struct model *m, struct run *run, const struct decoded_header *header, struct joules **ret)
{
	struct joules *j = calloc(1, sizeof(*j));
	int err = j ? 0 : -ENOMEM;

	for (size_t i = 0; err == 0 && i < header->reader_count; i++)
		if (str_eq(header->readers[i].name, READER))
			err = add_reader(j, m, run, i, &header->readers[i].metrics);
	if (err == 0)
		err = add_estimate(j, m, run);
	if (err < 0 || j->count == 0)
		j = joules_close(j);
	if (err == 0)
		*ret = j;
	return err;
}

size_t joules_columns(const struct joules *j)
{
	return j ? j->columns : 0;
}

struct joules *joules_close(struct joules *j)
{
	if (!j)
		return NULL;
	free(j->domain);
	free(j);
	return NULL;
}
