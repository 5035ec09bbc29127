/* SPDX-License-Identifier: MIT */
#include "readers/events.h"

#include <errno.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "internal/util.h"
#include "readers/breakpoint.h"
#include "readers/event_names.h"
#include "readers/reason.h"
#include "readers/textfile.h"

struct resolver {
	const struct reader_env *env;
	const struct pmu_list *pmus;
	struct event *event;
	char why[READER_REASON_ROOM]; /* an error's reason, without the event */
};

/* What a step says of an event that is none of its own. */
#define NOT_MINE 1

static int code_add(struct resolver *r, struct event_code code)
{
	struct event *e = r->event;
	struct event_code *grown;

	if (code.pmu && code.pmu->cpumask.count && (e->word.user || e->word.kernel)) {
		reason_set(r->why, "it counts for the whole machine, so leave :u and :k out");
		return -EINVAL;
	}
	code.attr.size = sizeof(code.attr);
	code.attr.exclude_kernel = e->word.user;
	code.attr.exclude_user = e->word.kernel;
	code.attr.exclude_hv = e->word.user || e->word.kernel;
	grown = reallocarray(e->code, e->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	e->code = grown;
	e->code[e->count++] = code;
	return 0;
}

/* A type that the kernel gives to all core PMUs alike: one code for each of them. */
static int code_add_core(struct resolver *r, uint32_t type, uint64_t config)
{
	struct event_code code = {
		.attr.type = type, .attr.config = config, .device = PERF_TYPE_RAW
	};
	int err = 0;

	if (!pmu_is_hybrid(r->pmus))
		return code_add(r, code);
	for (size_t i = 0; i < r->pmus->count && err == 0; i++) {
		const struct pmu *pmu = &r->pmus->pmu[i];

		if (!pmu->subset)
			continue;
		code.pmu = pmu;
		code.part = true;
		code.device = pmu->type;
		if (type == PERF_TYPE_RAW)
			code.attr.type = pmu->type;
		else
			code.attr.config = config | (uint64_t)pmu->type << 32;
		err = code_add(r, code);
	}
	return err;
}

static int code_add_pmu(
	struct resolver *r, const struct pmu *pmu, const uint64_t config[PMU_CONFIGS])
{
	bool hybrid = pmu_is_hybrid(r->pmus);
	struct event_code code = {
		.attr.type = pmu->type,
		.attr.config = config[0],
		.attr.config1 = config[1],
		.attr.config2 = config[2],
		.pmu = pmu,
		.device = pmu->core && !hybrid ? PERF_TYPE_RAW : pmu->type,
		.part = pmu->subset && hybrid,
	};

	return code_add(r, code);
}

static enum event_reach software_reach(uint64_t config)
{
	switch (config) {
	case PERF_COUNT_SW_TASK_CLOCK:
	case PERF_COUNT_SW_CPU_CLOCK: return REACH_CLOCK;
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
	case PERF_COUNT_SW_ALIGNMENT_FAULTS:
	case PERF_COUNT_SW_EMULATION_FAULTS: return REACH_USER;
	default: return REACH_NONE;
	}
}

static int note_set(struct event *e, const char *note)
{
	e->note = strdup(note);
	return e->note ? 0 : -ENOMEM;
}

static int code_add_software(struct resolver *r, uint64_t config)
{
	struct event_code code = { .attr.type = PERF_TYPE_SOFTWARE, .attr.config = config };
	struct event *e = r->event;
	bool modified = e->word.user || e->word.kernel;
	int err = 0;

	e->software = true;
	e->reach = software_reach(config);
	if (e->reach == REACH_CLOCK)
		e->unit = UNIT_NS;
	if (e->reach == REACH_NONE && e->word.user) {
		reason_set(r->why, "it happens in the kernel only, so leave :u out");
		return -EINVAL;
	}
	if (e->reach == REACH_CLOCK && modified)
		err = note_set(
			e, "the kernel counts all time on a CPU, in user space and in itself");
	return err < 0 ? err : code_add(r, code);
}

static int code_add_type(struct resolver *r, uint32_t type, const uint64_t config[PMU_CONFIGS])
{
	const struct pmu *pmu;

	if (type == PERF_TYPE_SOFTWARE)
		return code_add_software(r, config[0]);
	if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE)
		return code_add_core(r, type, config[0]);
	pmu = pmu_find_type(r->pmus, type);
	if (pmu)
		return code_add_pmu(r, pmu, config);
	return code_add(r, (struct event_code){ .attr.type = type,
				   .attr.config = config[0],
				   .attr.config1 = config[1],
				   .attr.config2 = config[2],
				   .device = type });
}

static int resolve_generic(struct resolver *r, const char *name)
{
	uint64_t config[PMU_CONFIGS] = { 0 };
	uint32_t type;

	if (event_name_find(name, &type, &config[0]) < 0)
		return NOT_MINE;
	return code_add_type(r, type, config);
}

static int note_worth(struct resolver *r, const struct pmu *pmu, const char *terms)
{
	char worth[128], note[160];

	if (!pmu_event_worth(r->pmus, pmu, terms, worth, sizeof(worth)))
		return 0;
	snprintf(note, sizeof(note), "each count stands for %s", worth);
	return note_set(r->event, note);
}

/* pmu/event,term=value/: the parser has seen that there are two slashes. */
static int resolve_pmu(struct resolver *r, const char *name)
{
	const char *slash = strchr(name, '/');
	uint64_t config[PMU_CONFIGS];
	const struct pmu *pmu;
	char *pmu_name, *terms;
	int err;

	if (!slash)
		return NOT_MINE;
	pmu_name = strndup(name, (size_t)(slash - name));
	terms = strndup(slash + 1, strlen(slash + 1) - 1);
	if (!pmu_name || !terms) {
		err = -ENOMEM;
		goto done;
	}
	pmu = pmu_find(r->pmus, pmu_name);
	if (!pmu) {
		reason_set(r->why, "there is no PMU \"%.60s\" here", pmu_name);
		err = -ENOENT;
		goto done;
	}
	err = pmu_encode(r->pmus, pmu, terms, config, r->why);
	if (err == 0)
		err = note_worth(r, pmu, terms);
	if (err == 0)
		err = code_add_pmu(r, pmu, config);
done:
	free(pmu_name);
	free(terms);
	return err;
}

/* rNNNN */
static int resolve_raw(struct resolver *r, const char *name)
{
	char *end;
	uint64_t config;

	if (name[0] != 'r' || name[1 + strspn(name + 1, "0123456789abcdefABCDEF")] || !name[1])
		return NOT_MINE;
	errno = 0;
	config = strtoull(name + 1, &end, 16);
	if (errno) {
		reason_set(r->why, "a raw event has at most 16 digits");
		return -EINVAL;
	}
	return code_add_core(r, PERF_TYPE_RAW, config);
}

/* cycles:ppp, as perf takes it when it samples. */
static int resolve_wrong_modifier(struct resolver *r, const char *name)
{
	const char *colon = strchr(name, ':');
	uint64_t config;
	uint32_t type;
	char *event;
	bool known;

	if (!colon)
		return NOT_MINE;
	event = strndup(name, (size_t)(colon - name));
	if (!event)
		return -ENOMEM;
	known = event_name_find(event, &type, &config) == 0;
	free(event);
	if (!known)
		return NOT_MINE;
	reason_set(
		r->why, "\"%.40s\" is no modifier; u (user space) and k (kernel) are", colon + 1);
	return -EINVAL;
}

/* The kernel schedules and groups it as a software event. */
static int resolve_breakpoint(struct resolver *r, const char *name)
{
	struct event_code code = { .pmu = NULL };
	int err;

	if (!breakpoint_is_meant(name))
		return NOT_MINE;
	err = breakpoint_parse(name, &code.attr, r->why);
	if (err < 0)
		return err;
	r->event->software = true;
	return code_add(r, code);
}

static const char *const tracefs_roots[] = { "kernel/tracing", "kernel/debug/tracing" };

/* The number of a tracepoint, or -errno of the tree that comes nearest to having one. */
static int64_t tracepoint_id(
	const char *sys_root, int group_length, const char *group, const char *name)
{
	int64_t err = -ENODEV;
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(tracefs_roots); i++) {
		int got = textfile_read(text, sizeof(text), "%s/%s/events/%.*s/%s/id", sys_root,
			tracefs_roots[i], group_length, group, name);

		if (got > 0)
			return strtoll(text, NULL, 10);
		if (got == -EACCES || got == -EPERM)
			err = -EACCES;
		if (textfile_read(text, sizeof(text), "%s/%s/events/header_page", sys_root,
			    tracefs_roots[i]) >= 0)
			return -ENOENT;
	}
	return err;
}

/* group:tracepoint.  One colon is libpfm4's syntax too, so an unknown one is passed on. */
static int resolve_tracepoint(struct resolver *r, const char *name)
{
	const char *colon = strchr(name, ':');
	struct event_code code = { .attr.type = PERF_TYPE_TRACEPOINT };
	struct event *e = r->event;
	int64_t id;

	if (!colon || colon == name || strchr(colon + 1, ':') || colon[1] == '.' ||
		name[0] == '.' || strchr(name, '/'))
		return NOT_MINE;
	id = tracepoint_id(r->env->sys_root, (int)(colon - name), name, colon + 1);
	if (id < 0)
		return NOT_MINE;
	code.attr.config = (uint64_t)id;
	e->software = true;
	e->reach = REACH_NONE;
	if (e->word.user) {
		int err = note_set(e, "counted where it fires in user space, as uprobes do");

		if (err < 0)
			return err;
	}
	return code_add(r, code);
}

static bool pfm_is_ready(void)
{
	static int state = -1;

	if (state < 0)
		state = pfm_initialize() == PFM_SUCCESS;
	return state;
}

static int resolve_libpfm(struct resolver *r, const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	pfm_err_t err;

	if (!pfm_is_ready())
		return NOT_MINE;
	err = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg);
	if (err == PFM_ERR_NOTFOUND || err == PFM_ERR_INVAL)
		return NOT_MINE;
	if (err != PFM_SUCCESS) {
		reason_set(r->why, "libpfm4 says \"%s\"", pfm_strerror(err));
		return -ENOENT;
	}
	return code_add_type(
		r, attr.type, (uint64_t[PMU_CONFIGS]){ attr.config, attr.config1, attr.config2 });
}

/* Nobody knows it.  With a colon it may be a tracepoint that cannot be looked up. */
static int resolve_nothing(struct resolver *r, const char *name)
{
	const char *colon = strchr(name, ':');
	int64_t err;

	reason_set(r->why, "no such event");
	if (!colon || colon[1] == ':')
		return -ENOENT;
	err = tracepoint_id(r->env->sys_root, (int)(colon - name), name, colon + 1);
	if (err == -EACCES)
		reason_set(r->why,
			"no such event, unless it is a tracepoint: only root can look "
			"those up (%s/%s)",
			r->env->sys_root, tracefs_roots[0]);
	if (err == -ENODEV)
		reason_set(r->why,
			"no such event, unless it is a tracepoint: tracefs is not mounted "
			"(mount -t tracefs tracefs %s/%s)",
			r->env->sys_root, tracefs_roots[0]);
	return -ENOENT;
}

static int (*const resolve_steps[])(struct resolver *r, const char *name) = {
	resolve_generic,
	resolve_breakpoint,
	resolve_pmu,
	resolve_raw,
	resolve_wrong_modifier,
	resolve_tracepoint,
	resolve_libpfm,
	resolve_nothing,
};

static int word_copy(const struct event_word *from, struct event_word *ret)
{
	*ret = *from;
	ret->text = strdup(from->text);
	ret->name = strdup(from->name);
	return ret->text && ret->name ? 0 : -ENOMEM;
}

static int event_resolve(struct resolver *r, const struct event_word *word)
{
	struct event *e = r->event;
	const char *metric = event_name_metric(word->name);
	int err;

	e->unit = UNIT_COUNT;
	e->reach = REACH_USER;
	err = word_copy(word, &e->word);
	if (err < 0)
		return err;
	e->name = strdup(metric && str_eq(word->text, word->name) ? metric : word->text);
	if (!e->name)
		return -ENOMEM;
	err = NOT_MINE;
	for (size_t i = 0; i < ARRAY_SIZE(resolve_steps) && err == NOT_MINE; i++)
		err = resolve_steps[i](r, word->name);
	return err;
}

struct names {
	char **name; /* ends with NULL */
	size_t count;
};

static int names_add(const char *name, const char *group, const char *description, void *arg)
{
	struct names *names = arg;
	const char *behind_pmu = strstr(name, "::");
	char **grown;

	(void)group;
	(void)description;
	grown = reallocarray(names->name, names->count + 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	names->name = grown;
	grown[names->count] = strdup(behind_pmu ? behind_pmu + 2 : name);
	grown[names->count + 1] = NULL;
	return grown[names->count] ? (names->count++, 0) : -ENOMEM;
}

static void refuse(const struct resolver *r, int err, char ret_reason[READER_REASON_ROOM])
{
	const struct event_word *word = &r->event->word;
	struct names names = { 0 };
	const char *like = NULL;

	if (err == -ENOENT && events_each(r->env, names_add, &names) == 0 && names.count)
		like = cli_suggest(word->name, (const char *const *)names.name);
	if (err == -ENOMEM)
		reason_set(ret_reason, "out of memory");
	else if (err == -ENOENT)
		reason_set(ret_reason,
			"cannot count \"%.60s\": %.120s%s%.60s%s (jphase list shows all)",
			word->text, r->why, like ? "; did you mean \"" : "", like ? like : "",
			like ? "\"?" : "");
	else
		reason_set(ret_reason, "cannot count \"%.80s\": %s", word->text, r->why);
	for (size_t i = 0; i < names.count; i++)
		free(names.name[i]);
	free(names.name);
}

static bool is_repeated(const struct events *events, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (str_eq(events->event[i].name, events->event[index].name))
			return true;
	return false;
}

int events_resolve(const struct reader_env *env, const struct event_words *words,
	struct events *ret, char ret_reason[READER_REASON_ROOM])
{
	struct events events = { 0 };
	struct resolver r = { .env = env, .pmus = &events.pmus };
	int err;

	err = pmu_list_load(env->sys_root, &events.pmus);
	if (err == 0)
		events.event = calloc(words->count, sizeof(*events.event));
	if (!events.event) {
		reason_set(ret_reason, "out of memory");
		pmu_list_clear(&events.pmus);
		return -ENOMEM;
	}
	for (size_t i = 0; i < words->count; i++) {
		r.event = &events.event[i];
		events.count = i + 1;
		err = event_resolve(&r, &words->word[i]);
		if (err == 0 && is_repeated(&events, i)) {
			reason_set(r.why, "it is named twice");
			err = -EINVAL;
		}
		if (err < 0)
			goto fail;
	}
	*ret = events;
	return 0;

fail:
	refuse(&r, err, ret_reason);
	events_clear(&events);
	return err;
}

void events_clear(struct events *events)
{
	for (size_t i = 0; i < events->count; i++) {
		struct event *e = &events->event[i];

		free(e->name);
		free(e->note);
		free(e->word.text);
		free(e->word.name);
		for (size_t j = 0; j < e->count; j++)
			free(e->code[j].absent);
		free(e->code);
	}
	free(events->event);
	pmu_list_clear(&events->pmus);
	*events = (struct events){ 0 };
}
