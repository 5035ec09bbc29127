/* SPDX-License-Identifier: MIT */
/*
 * The energy reader: what the processor's packages and their parts have used
 * since the session began.  Counters begin anew after minutes to hours; each
 * is read often enough for no round to be missed.
 */
#include "readers/energy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal/util.h"
#include "readers/reason.h"

/* The hardware brings its counters up to date about this often. */
#define STEP_NS NSEC_PER_MSEC

/* How often two dies are compared before they count as different, and the pause between. */
#define COMPARISONS 10
#define COMPARE_NS  (200 * NSEC_PER_USEC)

#define IDLE_SLICE_NS (100 * NSEC_PER_MSEC)

#define NO_TWIN   SIZE_MAX
#define NAME_ROOM 32
#define NOTE_ROOM 256

/* What has come of one counter. */
struct track {
	uint64_t last_uj;
	uint64_t total_uj;
	size_t metric;
	size_t twin;  /* shows the same counter as that one: not counted */
	bool settled; /* whether it is a twin: unknown while both are 0 */
	bool begun;
	bool missing; /* at the last reading */
	bool broken;  /* it went back in a way that nobody can explain */
	bool told;    /* of its being missing or broken */
};

/* All counters of one kind and package. */
struct domain {
	enum energy_kind kind;
	int package;
	uint64_t idle_uw;
};

struct energy {
	struct reader base;
	const struct energy_way *way;
	struct energy_bank *bank;
	struct energy_counters counters;
	struct track *track; /* of each counter */
	uint64_t *raw;       /* the same: the last reading */
	uint64_t *again;     /* the same, while comparing */
	struct domain *domain;
	size_t domains;
	bool no_idle; /* it was asked for and could not be measured */
	char note[NOTE_ROOM];
};

static const char *const kind_names[] = {
	[ENERGY_PACKAGE] = "PACKAGE",
	[ENERGY_CORE] = "CORE",
	[ENERGY_DRAM] = "DRAM",
	[ENERGY_UNCORE] = "UNCORE",
	[ENERGY_PSYS] = "PSYS",
};

/* --- domains --- */

static void domain_name(const struct domain *d, char name[NAME_ROOM])
{
	if (d->kind == ENERGY_PSYS && d->package == 0)
		snprintf(name, NAME_ROOM, "%s", kind_names[d->kind]);
	else
		snprintf(name, NAME_ROOM, "%s-%d", kind_names[d->kind], d->package);
}

/* Package by package, the platform last. */
static int domain_compare(const void *a, const void *b)
{
	const struct domain *x = a, *y = b;
	int x_last = x->kind == ENERGY_PSYS, y_last = y->kind == ENERGY_PSYS;

	if (x_last != y_last)
		return x_last - y_last;
	if (x->package != y->package)
		return x->package < y->package ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static size_t domain_find(const struct energy *e, const struct energy_counter *c)
{
	size_t i = 0;

	while (i < e->domains &&
		(e->domain[i].kind != c->kind || e->domain[i].package != c->package))
		i++;
	return i;
}

static void domains_make(struct energy *e)
{
	for (size_t i = 0; i < e->counters.count; i++) {
		const struct energy_counter *c = &e->counters.counter[i];

		if (domain_find(e, c) == e->domains)
			e->domain[e->domains++] =
				(struct domain){ .kind = c->kind, .package = c->package };
	}
	qsort(e->domain, e->domains, sizeof(*e->domain), domain_compare);
	for (size_t i = 0; i < e->counters.count; i++)
		e->track[i].metric = domain_find(e, &e->counters.counter[i]);
}

/* A sum without one of its parts is no sum: why the domain is not counted, or NULL. */
static const char *domain_absent(const struct energy *e, size_t domain)
{
	for (size_t i = 0; i < e->counters.count; i++)
		if (e->track[i].metric == domain && e->counters.counter[i].absent)
			return e->counters.counter[i].absent;
	return NULL;
}

/* --- counting on --- */

static void track_advance(struct track *t, uint64_t range_uj, uint64_t uj)
{
	t->missing = uj == VALUE_ABSENT;
	if (t->missing)
		return;
	if (!t->begun)
		t->last_uj = uj;
	t->begun = true;
	/* A whole round less than what one step of the counter is worth. */
	if (uj < t->last_uj && range_uj > t->last_uj)
		t->total_uj += range_uj - t->last_uj + uj;
	else if (uj < t->last_uj)
		t->broken = true;
	else
		t->total_uj += uj - t->last_uj;
	t->last_uj = uj;
}

/* Both have begun to move: equal ones go on as one. */
static void twins_settle(struct energy *e, size_t i)
{
	struct track *t = &e->track[i];

	if (t->twin == NO_TWIN || t->settled || e->raw[i] == VALUE_ABSENT ||
		e->raw[t->twin] == VALUE_ABSENT || (e->raw[i] == 0 && e->raw[t->twin] == 0))
		return;
	t->settled = true;
	if (e->raw[i] != e->raw[t->twin])
		t->twin = NO_TWIN;
}

static void advance(struct energy *e)
{
	e->way->read(e->bank, e->raw);
	for (size_t i = 0; i < e->counters.count; i++) {
		track_advance(&e->track[i], e->counters.counter[i].range_uj, e->raw[i]);
		twins_settle(e, i);
	}
}

static int energy_read(struct reader *r, uint64_t *ret_values)
{
	struct energy *e = (struct energy *)r;

	advance(e);
	memset(ret_values, 0, e->domains * sizeof(*ret_values));
	for (size_t i = 0; i < e->counters.count; i++) {
		const struct track *t = &e->track[i];
		uint64_t *value = &ret_values[t->metric];

		if (t->twin != NO_TWIN || *value == VALUE_ABSENT)
			continue;
		if (t->missing || t->broken)
			*value = VALUE_ABSENT;
		else
			*value += t->total_uj;
	}
	return 0;
}

static const char *energy_keep_alive(struct reader *r)
{
	struct energy *e = (struct energy *)r;

	advance(e);
	for (size_t i = 0; i < e->counters.count; i++) {
		const struct energy_counter *c = &e->counters.counter[i];
		struct track *t = &e->track[i];
		char name[NAME_ROOM];

		if (c->absent || t->told || !(t->missing || t->broken))
			continue;
		t->told = true;
		domain_name(&e->domain[t->metric], name);
		snprintf(e->note, sizeof(e->note), "%s is not counted any more: %.120s %s", name,
			c->where, t->broken ? "went back" : "can no longer be read");
		return e->note;
	}
	return NULL;
}

/* --- dies that show the same counter --- */

static bool may_be_twins(const struct energy *e, size_t i, size_t k)
{
	const struct energy_counter *a = &e->counters.counter[i], *b = &e->counters.counter[k];

	return a->kind == b->kind && a->package == b->package && !a->absent && !b->absent;
}

/* The earlier counter that shows the same as i: it was read before and after it. */
static size_t twin_of(const struct energy *e, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (may_be_twins(e, i, k) && e->track[k].twin == NO_TWIN &&
			e->raw[k] <= e->raw[i] && e->raw[i] <= e->again[k])
			return k;
	return NO_TWIN;
}

static bool has_dies(const struct energy *e)
{
	for (size_t i = 0; i < e->counters.count; i++)
		for (size_t k = 0; k < i; k++)
			if (may_be_twins(e, i, k))
				return true;
	return false;
}

/* Dies may be brought up to date at different times, so one look is not enough. */
static void twins_find(struct energy *e)
{
	const struct timespec pause = ns_timespec(COMPARE_NS);

	if (!e->way->absolute || !has_dies(e))
		return;
	for (int look = 0; look < COMPARISONS; look++) {
		if (look)
			nanosleep(&pause, NULL);
		e->way->read(e->bank, e->raw);
		e->way->read(e->bank, e->again);
		for (size_t i = 0; i < e->counters.count; i++) {
			struct track *t = &e->track[i];

			if (t->twin != NO_TWIN || e->raw[i] == VALUE_ABSENT)
				continue;
			t->twin = twin_of(e, i);
			t->settled = t->twin != NO_TWIN && e->raw[i] > 0;
		}
	}
}

static size_t count_twins(const struct energy *e, size_t domain)
{
	size_t count = 0;

	for (size_t i = 0; i < e->counters.count; i++)
		count += e->track[i].metric == domain && e->track[i].twin != NO_TWIN;
	return count;
}

/* --- the idle machine --- */

static void idle_wait(struct energy *e, uint64_t until)
{
	for (uint64_t now = now_ns(); now < until; now = now_ns()) {
		struct timespec slice = ns_timespec(MIN(until - now, (uint64_t)IDLE_SLICE_NS));

		nanosleep(&slice, NULL);
		advance(e);
	}
}

static int idle_measure(struct energy *e, uint64_t idle_ns)
{
	uint64_t *before = calloc(2 * e->domains + 1, sizeof(*before));
	uint64_t *after, begin, passed;

	if (!before)
		return -ENOMEM;
	after = before + e->domains;
	begin = now_ns();
	energy_read(&e->base, before);
	idle_wait(e, begin + idle_ns);
	passed = now_ns() - begin;
	energy_read(&e->base, after);
	for (size_t i = 0; i < e->domains; i++)
		if (before[i] != VALUE_ABSENT && after[i] != VALUE_ABSENT)
			e->domain[i].idle_uw = (uint64_t)((double)(after[i] - before[i]) *
							  NSEC_PER_SEC / (double)passed);
	free(before);
	return 0;
}

/* --- the reader --- */

static void energy_close(struct reader *r)
{
	struct energy *e = (struct energy *)r;

	if (!e)
		return;
	if (e->way)
		e->way->close(e->bank);
	energy_counters_clear(&e->counters);
	free(e->track);
	free(e->raw);
	free(e->again);
	free(e->domain);
	free(e);
}

/* The first way that works.  The reason is that of a way that exists and is refused. */
static int way_open(
	struct energy *e, const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	static const struct energy_way *const ways[] = { &rapl_perf_way, &powercap_way };
	int err = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char reason[READER_REASON_ROOM];
		int failed;

		if (env->powercap_root && ways[i] != &powercap_way)
			continue;
		failed = ways[i]->open(env, &e->counters, &e->bank, reason);
		if (failed == 0) {
			e->way = ways[i];
			return 0;
		}
		if (failed == -ENODEV && err != -ENODEV)
			continue;
		err = failed;
		reason_set(ret_reason, "%s", reason);
	}
	return err;
}

static int counting_begin(struct energy *e)
{
	size_t room = e->counters.count + 1;

	e->track = calloc(room, sizeof(*e->track));
	e->raw = calloc(room, sizeof(*e->raw));
	e->again = calloc(room, sizeof(*e->again));
	e->domain = calloc(room, sizeof(*e->domain));
	if (!e->track || !e->raw || !e->again || !e->domain)
		return -ENOMEM;
	for (size_t i = 0; i < e->counters.count; i++)
		e->track[i].twin = NO_TWIN;
	domains_make(e);
	twins_find(e);
	advance(e);
	return 0;
}

static int energy_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct energy *e = calloc(1, sizeof(*e));
	int err;

	reason_set(ret_reason, "out of memory");
	if (!e)
		return -ENOMEM;
	e->base.ops = &energy_reader;
	err = way_open(e, target->env, ret_reason);
	if (err == 0)
		err = counting_begin(e);
	if (err == 0 && target->env->idle_ns) {
		/* A program that runs already is not idle. */
		e->no_idle = !target->enable_on_exec;
		err = e->no_idle ? 0 : idle_measure(e, target->env->idle_ns);
	}
	if (err < 0) {
		energy_close(&e->base);
		return err;
	}
	*ret = &e->base;
	return 0;
}

static int energy_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	struct energy e = { .way = NULL };
	int err = way_open(&e, env, ret_reason);

	if (err < 0)
		return err;
	e.way->close(e.bank);
	energy_counters_clear(&e.counters);
	return 0;
}

static void note_add(char note[NOTE_ROOM], const char *text)
{
	size_t used = strlen(note);

	snprintf(note + used, NOTE_ROOM - used, "%s%s", used ? "; " : "", text);
}

/* What to know of the numbers of a domain. */
static void domain_note(const struct energy *e, size_t domain, char note[NOTE_ROOM])
{
	const struct domain *d = &e->domain[domain];
	const char *own = energy_counters_find(&e->counters, d->kind, d->package)->note;
	size_t twins = count_twins(e, domain);
	char text[64];

	note[0] = '\0';
	if (own)
		note_add(note, own);
	if (twins) {
		snprintf(text, sizeof(text), "%zu dies show the same counter, taken once",
			twins + 1);
		note_add(note, text);
	}
	if (e->no_idle)
		note_add(note, "no idle baseline, which needs jphase run");
}

static int domain_describe(const struct energy *e, size_t domain, struct metric_list *out)
{
	char name[NAME_ROOM], note[NOTE_ROOM];
	struct metric metric = {
		.name = name,
		.kind = METRIC_COUNTER,
		.unit = UNIT_UJ,
		.scope = SCOPE_GLOBAL,
		.group = METRIC_NO_GROUP,
		.absent = (char *)domain_absent(e, domain),
		.source = (char *)e->way->name,
		.step_ns = STEP_NS,
		.idle_per_s = e->domain[domain].idle_uw,
	};

	domain_name(&e->domain[domain], name);
	domain_note(e, domain, note);
	if (*note)
		metric.note = note;
	return metric_list_add(out, &metric);
}

static int energy_describe(const struct reader *r, struct metric_list *out)
{
	const struct energy *e = (const struct energy *)r;
	int err = 0;

	for (size_t i = 0; i < e->domains && err == 0; i++)
		err = domain_describe(e, i, out);
	return err;
}

const struct reader_ops energy_reader = {
	.name = "energy",
	.critical = true,
	.per_process = false,
	.probe = energy_probe,
	.open = energy_open,
	.describe = energy_describe,
	.read = energy_read,
	.keep_alive = energy_keep_alive,
	.close = energy_close,
};
