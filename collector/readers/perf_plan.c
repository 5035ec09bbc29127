/* SPDX-License-Identifier: MIT */
#include "readers/perf_plan.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/breakpoint.h"
#include "readers/perf_groups.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define DEFAULT_EVENTS                                                                             \
	"cycles,instructions,cache-misses,branch-misses,"                                          \
	"task-clock,page-faults,context-switches,cpu-migrations"

#define NO_PMU "no hardware counters here"

/* What is known while a plan is made. */
struct planner {
	const struct reader_env *env;
	struct perf_plan *plan;
	bool user_only; /* the kernel lets us count user space only */
	bool has_pmu;
	char *reason;
};

int perf_paranoid(const struct reader_env *env)
{
	char text[16];

	if (textfile_read(
		    text, sizeof(text), "%s/sys/kernel/perf_event_paranoid", env->proc_root) <= 0)
		return -1;
	return atoi(text);
}

static int try_attr(const struct perf_event_attr *attr, const struct pmu_cpus *cpus, bool single)
{
	struct perf_group group = { .count = 1 };
	struct perf_where where = {
		.pid = cpus ? -1 : 0,
		.cpu = cpus ? cpus->cpu[0] : -1,
		.single = single,
	};
	struct perf_unit unit;
	int err;

	group.counter[0].attr = *attr;
	err = perf_unit_open(&group, &where, &unit);
	if (err == 0)
		perf_unit_close(&unit);
	return err;
}

static int try_generic(const struct planner *p, uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.exclude_kernel = p->user_only,
	};

	return try_attr(&attr, NULL, p->plan->single);
}

static bool is_permission(int err)
{
	return err == -EACCES || err == -EPERM;
}

/* No room to find anything out. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

static void refused_reason(struct planner *p, int err)
{
	int paranoid = perf_paranoid(p->env);

	if (err == -ENOSYS)
		reason_set(p->reason, "this kernel has no perf events");
	else if (is_permission(err) && paranoid > 2)
		reason_set(p->reason,
			"the kernel refuses counters: perf_event_paranoid is %d; set it to 2 or "
			"lower, or give jphase CAP_PERFMON (jphase doctor)",
			paranoid);
	else if (is_permission(err))
		reason_set(p->reason,
			"perf_event_open is forbidden here, as by a container's seccomp profile "
			"(jphase doctor)");
	else
		reason_set(p->reason, "perf_event_open fails: %s", strerror(-err));
}

/* What does this kernel let us do?  Asked with an event that every kernel has. */
static int permissions_find(struct planner *p)
{
	int err;

	err = try_generic(p, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	if (is_permission(err)) {
		p->user_only = true;
		err = try_generic(p, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	}
	if (err == -EINVAL && !p->plan->single) {
		/* Before 4.13 an inherited event could not be read as a group. */
		p->plan->single = true;
		return permissions_find(p);
	}
	if (err < 0) {
		refused_reason(p, err);
		return err;
	}
	p->has_pmu = try_generic(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES) == 0 ||
		     try_generic(p, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS) == 0;
	return 0;
}

static void kernel_only_reason(const struct planner *p, const char *what, char *ret)
{
	reason_set(ret,
		"%s, and perf_event_paranoid is %d: set it to 1 or give jphase CAP_PERFMON "
		"(jphase doctor)",
		what, perf_paranoid(p->env));
}

static bool counts_machine(const struct event_code *code)
{
	return code->pmu && code->pmu->cpumask.count;
}

static void open_reason(const struct planner *p, const struct event_code *code, int err, char *ret)
{
	const char *refusal =
		code->attr.type == PERF_TYPE_BREAKPOINT ? breakpoint_refusal(err) : NULL;

	if (refusal)
		reason_set(ret, "%s", refusal);
	else if (is_permission(err) && counts_machine(code))
		reason_set(ret,
			"it counts for the whole machine, and perf_event_paranoid is %d: set it "
			"to 0 or give jphase CAP_PERFMON (jphase doctor)",
			perf_paranoid(p->env));
	else if (is_permission(err))
		reason_set(ret, "the kernel refuses it to this user (jphase doctor)");
	else if (err == -EINVAL && p->user_only)
		kernel_only_reason(p, "it cannot be counted in user space alone", ret);
	else
		reason_set(ret, "the kernel does not open it: %s", strerror(-err));
}

/*
 * Hardware that is not there is no mistake of the user's: the same command
 * line must run on a machine that has it and on one that does not.
 */
static bool is_lacking_hardware(const struct event *e, int err)
{
	return !e->software &&
	       (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -ENXIO);
}

static int event_refuse(struct planner *p, const struct event *e, const char *why, int err)
{
	if (is_shortage(err))
		reason_set(p->reason, "cannot open counters: %s", strerror(-err));
	else
		reason_set(p->reason, "cannot count \"%.60s\": %s", e->word.text, why);
	return err;
}

static int code_set_absent(struct event_code *code, const char *why)
{
	if (asprintf(&code->absent, "not counted: %s", why) >= 0)
		return 0;
	code->absent = NULL;
	return -ENOMEM;
}

/* Opens it once; what cannot be had is absent, or an error if the user named it. */
static int code_try(struct planner *p, const struct event *e, struct event_code *code)
{
	char why[READER_REASON_ROOM];
	int err;

	if (p->user_only && !counts_machine(code))
		code->attr.exclude_kernel = 1;
	err = try_attr(
		&code->attr, counts_machine(code) ? &code->pmu->cpumask : NULL, p->plan->single);
	if (err == 0)
		return 0;
	if (is_lacking_hardware(e, err))
		return code_set_absent(code, p->has_pmu ? "the PMU lacks this event" : NO_PMU);
	open_reason(p, code, err, why);
	if (p->env->events || is_shortage(err))
		return event_refuse(p, e, why, err);
	return code_set_absent(code, why);
}

/* What those who may count user space only cannot have at all.  NULL: they can. */
static const char *out_of_reach(const struct planner *p, const struct event *e)
{
	if (!p->user_only || e->word.user)
		return NULL;
	if (e->word.kernel)
		return "it counts in the kernel";
	return e->reach == REACH_NONE ? "it happens in the kernel" : NULL;
}

static int codes_try(struct planner *p, struct event *e)
{
	const char *beyond = out_of_reach(p, e);
	char why[READER_REASON_ROOM];
	int err = 0;

	if (beyond) {
		kernel_only_reason(p, beyond, why);
		if (p->env->events)
			return event_refuse(p, e, why, -EACCES);
	}
	for (size_t i = 0; i < e->count && err == 0; i++)
		err = beyond ? code_set_absent(&e->code[i], why) : code_try(p, e, &e->code[i]);
	return err;
}

/* Something of it is counted, but in user space only, though the user has not said so. */
static bool is_limited(const struct planner *p, const struct event *e)
{
	if (!p->user_only || e->word.user || e->reach != REACH_USER)
		return false;
	for (size_t i = 0; i < e->count; i++)
		if (!e->code[i].absent && !counts_machine(&e->code[i]))
			return true;
	return false;
}

static int metric_add(struct planner *p, const struct event *e, const struct event_code *code,
	char *name, char *note)
{
	struct metric metric = {
		.name = name,
		.kind = METRIC_COUNTER,
		.unit = e->unit,
		.scope = counts_machine(code) ? SCOPE_GLOBAL : SCOPE_PROCESS,
		.group = METRIC_NO_GROUP,
		.part = code->part ? code->pmu->name : NULL,
		.note = note,
		.absent = code->absent,
	};
	size_t index = p->plan->metrics.count;
	int err;

	err = metric_list_add(&p->plan->metrics, &metric);
	if (err < 0 || code->absent)
		return err;
	return perf_groups_place(p->plan, e, code, index, p->reason);
}

static bool name_is_taken(const struct metric_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->metric[i].name, name))
			return true;
	return false;
}

/* Its name says what is counted of it. */
static int metrics_add(struct planner *p, const struct event *e)
{
	bool limited = is_limited(p, e);
	bool faults = e->software && e->reach == REACH_USER && (limited || e->word.user) &&
		      e->code[0].attr.type == PERF_TYPE_SOFTWARE;
	char fault_note[] = "faults inside system calls are missing";
	char *name;
	int err = 0;

	if (asprintf(&name, "%s%s", e->name, limited ? ":u" : "") < 0)
		return -ENOMEM;
	if (name_is_taken(&p->plan->metrics, name))
		err = event_refuse(p, e,
			"only user space is counted here, as it is for another "
			"event of the list",
			-EINVAL);
	for (size_t i = 0; i < e->count && err == 0; i++)
		err = metric_add(p, e, &e->code[i], name, faults ? fault_note : e->note);
	free(name);
	return err;
}

static int event_plan(struct planner *p, struct event *e)
{
	int err = codes_try(p, e);

	return err < 0 ? err : metrics_add(p, e);
}

static int plan_fill(struct planner *p)
{
	struct event_words words;
	int err;

	err = events_parse(p->env->events ? p->env->events : DEFAULT_EVENTS, &words, p->reason);
	if (err < 0)
		return err;
	err = events_resolve(p->env, &words, &p->plan->events, p->reason);
	event_words_clear(&words);
	if (err == 0)
		err = permissions_find(p);
	for (size_t i = 0; i < p->plan->events.count && err == 0; i++)
		err = event_plan(p, &p->plan->events.event[i]);
	return err;
}

static void plan_clear(struct perf_plan *plan)
{
	metric_list_clear(&plan->metrics);
	free(plan->group);
	events_clear(&plan->events);
}

/* Plans are few and live as long as the process. */
struct known_plan {
	struct perf_plan plan;
	struct known_plan *next;
	char *proc_root, *sys_root, *events;
	pid_t owner; /* what was found out as another process may not hold for this one */
};

static struct known_plan *known_plans;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_plan_for(const struct known_plan *known, const struct reader_env *env)
{
	if (!known->events != !env->events)
		return false;
	return known->owner == getpid() && str_eq(known->proc_root, env->proc_root) &&
	       str_eq(known->sys_root, env->sys_root) &&
	       (!env->events || str_eq(known->events, env->events));
}

static void known_free(struct known_plan *known)
{
	plan_clear(&known->plan);
	free(known->proc_root);
	free(known->sys_root);
	free(known->events);
	free(known);
}

static int plan_make(const struct reader_env *env, struct known_plan **ret, char *reason)
{
	struct known_plan *known = calloc(1, sizeof(*known));
	struct planner p = { .env = env, .reason = reason };
	int err;

	if (!known)
		return -ENOMEM;
	p.plan = &known->plan;
	known->owner = getpid();
	known->proc_root = strdup(env->proc_root);
	known->sys_root = strdup(env->sys_root);
	known->events = env->events ? strdup(env->events) : NULL;
	err = -ENOMEM;
	if (known->proc_root && known->sys_root && !known->events == !env->events)
		err = plan_fill(&p);
	if (err < 0) {
		known_free(known);
		return err;
	}
	*ret = known;
	return 0;
}

int perf_plan_get(const struct reader_env *env, const struct perf_plan **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct known_plan *known;
	int err = 0;

	/* Held while a plan is made: libpfm4 keeps global state. */
	pthread_mutex_lock(&known_lock);
	for (known = known_plans; known && !is_plan_for(known, env);)
		known = known->next;
	if (!known) {
		reason_set(ret_reason, "out of memory");
		err = plan_make(env, &known, ret_reason);
		if (err == 0) {
			known->next = known_plans;
			known_plans = known;
		}
	}
	if (err == 0)
		*ret = &known->plan;
	pthread_mutex_unlock(&known_lock);
	return err;
}
