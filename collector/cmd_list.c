/* SPDX-License-Identifier: MIT */
/* jphase list: the readers, metrics and events of this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "feature.h"
#include "internal/util.h"
#include "log.h"
#include "readers/events.h"
#include "readers/pmu.h"
#include "readers/reader.h"
#include "report/csv_text.h"
#include "report/json_writer.h"

#define READERS_MAX  16
#define TEXT_ROOM    512
#define ALL_SECTIONS (-1)

#define NOT_COUNTED "not counted: "
#define NO_HARDWARE "no hardware counters here: jphase doctor"

/* A reader, opened on ourselves to see what it would count. */
struct listed {
	const struct reader_ops *ops;
	bool available;
	char reason[READER_REASON_ROOM];
	struct metric_list metrics;
};

struct list {
	struct reader_env env;
	struct listed reader[READERS_MAX];
	size_t readers;
};

struct event_row {
	const char *name, *group, *description;
	bool available;
	bool first; /* of its group */
};

/* How a format writes. */
struct format {
	void (*begin)(void);
	void (*section)(const char *title, size_t section);
	void (*reader)(const struct listed *l);
	void (*metric)(const struct listed *l, const struct metric *m);
	void (*event)(const struct event_row *e);
	void (*section_end)(size_t rows);
	void (*end)(void);
};

static void nothing(void)
{
}

static void nothing_at_section(const char *title, size_t section)
{
	(void)title;
	(void)section;
}

static void nothing_at_section_end(size_t rows)
{
	(void)rows;
}

static void table_section(const char *title, size_t section)
{
	printf("%s%s:\n", section ? "\n" : "", title);
}

static void table_section_end(size_t rows)
{
	if (rows == 0)
		printf("  none\n");
}

static void table_reader(const struct listed *l)
{
	char text[TEXT_ROOM];

	if (l->available)
		snprintf(text, sizeof(text), "available, %zu metrics%s", l->metrics.count,
			l->ops->critical ? ", read before a marker returns" : "");
	else
		snprintf(text, sizeof(text), "not available: %s", l->reason);
	cli_help_line(stdout, l->ops->name, text);
}

/* "gauge in B, process"; a count needs no unit. */
static void metric_words(const struct metric *m, char *ret, size_t room)
{
	bool plain = m->unit == UNIT_COUNT;

	snprintf(ret, room, "%s%s%s, %s", metric_kind_name(m->kind), plain ? "" : " in ",
		plain ? "" : unit_name(m->unit), metric_scope_name(m->scope));
}

static void table_metric(const struct listed *l, const struct metric *m)
{
	const char *more = m->absent ? m->absent : m->note;
	bool told = !m->absent || str_starts(m->absent, NOT_COUNTED);
	char text[TEXT_ROOM], name[128], words[64];

	if (m == l->metrics.metric)
		printf(" %s\n", l->ops->name);
	snprintf(name, sizeof(name), "%s%s%s%s", m->name, m->part ? " (" : "",
		m->part ? m->part : "", m->part ? ")" : "");
	metric_words(m, words, sizeof(words));
	snprintf(text, sizeof(text), "%s%s%s%s", words, more ? "; " : "", told ? "" : NOT_COUNTED,
		more ? more : "");
	cli_help_line(stdout, name, text);
}

static void table_event(const struct event_row *e)
{
	if (e->first)
		printf(" %s%s\n", e->group, e->available ? "" : " (" NO_HARDWARE ")");
	if (*e->description)
		cli_help_line(stdout, e->name, e->description);
	else
		printf("  %s\n", e->name);
}

static struct json_writer json;

static void json_begin(void)
{
	json = (struct json_writer){ .out = stdout, .empty = true };
	json_object(&json, NULL);
}

static void json_section(const char *title, size_t section)
{
	(void)section;
	json_array(&json, title);
}

static void json_section_end(size_t rows)
{
	(void)rows;
	json_close(&json, ']');
}

static void json_end(void)
{
	json_close(&json, '}');
	putchar('\n');
}

static void json_reader(const struct listed *l)
{
	json_flat_object(&json, NULL);
	json_text(&json, "name", l->ops->name);
	json_bool(&json, "available", l->available);
	json_text(&json, "reason", l->available ? NULL : l->reason);
	json_bool(&json, "critical", l->ops->critical);
	json_close(&json, '}');
}

static void json_metric(const struct listed *l, const struct metric *m)
{
	json_flat_object(&json, NULL);
	json_text(&json, "reader", l->ops->name);
	json_text(&json, "name", m->name);
	json_text(&json, "part", m->part);
	json_text(&json, "unit", unit_name(m->unit));
	json_text(&json, "kind", metric_kind_name(m->kind));
	json_text(&json, "scope", metric_scope_name(m->scope));
	json_bool(&json, "available", !m->absent);
	json_text(&json, "reason", m->absent);
	json_text(&json, "note", m->note);
	json_close(&json, '}');
}

static void json_event(const struct event_row *e)
{
	json_flat_object(&json, NULL);
	json_text(&json, "name", e->name);
	json_text(&json, "group", e->group);
	json_bool(&json, "available", e->available);
	json_text(&json, "reason", e->available ? NULL : NO_HARDWARE);
	json_text(&json, "description", e->description);
	json_close(&json, '}');
}

static void csv_row(const char *const *fields)
{
	for (size_t i = 0; fields[i]; i++) {
		if (i)
			fputc(';', stdout);
		csv_field(stdout, fields[i]);
	}
	fputc('\n', stdout);
}

static void csv_begin(void)
{
	puts("what;group;name;unit;kind;scope;available;text");
}

static void csv_reader(const struct listed *l)
{
	csv_row((const char *const[]){ "reader", "", l->ops->name, "", "", "",
		l->available ? "yes" : "no", l->available ? "" : l->reason, NULL });
}

static void csv_metric(const struct listed *l, const struct metric *m)
{
	const char *more = m->absent ? m->absent : m->note;

	csv_row((const char *const[]){ "metric", l->ops->name, m->name, unit_name(m->unit),
		metric_kind_name(m->kind), metric_scope_name(m->scope), m->absent ? "no" : "yes",
		more ? more : "", NULL });
}

static void csv_event(const struct event_row *e)
{
	csv_row((const char *const[]){ "event", e->group, e->name, "", "", "",
		e->available ? "yes" : "no", e->description, NULL });
}

enum format_index {
	FORMAT_TABLE,
	FORMAT_JSON,
	FORMAT_CSV,
};

static const char *const format_names[] = { "table", "json", "csv", NULL };

static const struct format formats[] = {
	[FORMAT_TABLE] = { nothing, table_section, table_reader, table_metric, table_event,
		table_section_end, nothing },
	[FORMAT_JSON] = { json_begin, json_section, json_reader, json_metric, json_event,
		json_section_end, json_end },
	[FORMAT_CSV] = { csv_begin, nothing_at_section, csv_reader, csv_metric, csv_event,
		nothing_at_section_end, nothing },
};

static size_t readers_print(const struct list *list, const struct format *f)
{
	for (size_t i = 0; i < list->readers; i++)
		f->reader(&list->reader[i]);
	return list->readers;
}

static size_t metrics_print(const struct list *list, const struct format *f)
{
	size_t rows = 0;

	for (size_t i = 0; i < list->readers; i++) {
		const struct listed *l = &list->reader[i];

		for (size_t k = 0; k < l->metrics.count; k++)
			f->metric(l, &l->metrics.metric[k]);
		rows += l->metrics.count;
	}
	return rows;
}

struct event_walk {
	const struct format *format;
	struct pmu_list pmus;
	char group[64];
	size_t rows;
};

/* libpfm4 knows the processor's events also where a virtual machine hides its counters. */
static bool event_is_available(const struct event_walk *walk, const char *group)
{
	return feature_has(FEATURE_HARDWARE) || pmu_find(&walk->pmus, group);
}

static int event_print(const char *name, const char *group, const char *description, void *arg)
{
	struct event_walk *walk = arg;
	struct event_row e = {
		.name = name,
		.group = group,
		.description = description,
		.available = event_is_available(walk, group),
		.first = strncmp(walk->group, group, sizeof(walk->group) - 1) != 0,
	};

	snprintf(walk->group, sizeof(walk->group), "%s", group);
	walk->format->event(&e);
	walk->rows++;
	return 0;
}

static size_t events_print(const struct list *list, const struct format *f)
{
	struct event_walk walk = { .format = f };

	(void)pmu_list_load(list->env.sys_root, &walk.pmus);
	(void)events_each(&list->env, event_print, &walk);
	pmu_list_clear(&walk.pmus);
	return walk.rows;
}

static const struct {
	const char *title;
	size_t (*print)(const struct list *list, const struct format *f);
} sections[] = {
	{ "readers", readers_print },
	{ "metrics", metrics_print },
	{ "events", events_print },
};

static const char *const section_names[] = { "readers", "metrics", "events", NULL };

static void reader_look(struct listed *l, const struct reader_env *env)
{
	struct reader_target self = { .env = env, .pid = getpid() };
	struct reader *r;

	if (l->ops->probe(env, l->reason) < 0 || l->ops->open(&self, &r, l->reason) < 0)
		return;
	l->available = l->ops->describe(r, &l->metrics) == 0;
	if (!l->available)
		snprintf(l->reason, sizeof(l->reason), "out of memory");
	l->ops->close(r);
}

static void list_print(const struct list *list, const struct format *f, int only)
{
	size_t shown = 0;

	f->begin();
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (only != ALL_SECTIONS && (size_t)only != i)
			continue;
		f->section(sections[i].title, shown++);
		f->section_end(sections[i].print(list, f));
	}
	f->end();
}

static struct {
	int format;
} chosen;

static const struct opt list_opts[] = {
	OPT_CHOICE('f', "format", &chosen.format, format_names, "table|json|csv",
		"how to print it (default: table)", NULL),
	OPT_END,
};

static int section_choose(int argc, char **argv, int first, int *ret_only)
{
	const char *like;

	*ret_only = ALL_SECTIONS;
	if (first >= argc)
		return 0;
	if (first + 1 < argc) {
		say("cannot list \"%s\" too: one word is enough, none lists all", argv[first + 1]);
		return -EINVAL;
	}
	for (int i = 0; section_names[i]; i++)
		if (str_eq(section_names[i], argv[first])) {
			*ret_only = i;
			return 0;
		}
	like = cli_suggest(argv[first], section_names);
	say("cannot list \"%s\": choose one of readers, metrics, events%s%s%s", argv[first],
		like ? "; did you mean \"" : "", like ? like : "", like ? "\"?" : "");
	return -EINVAL;
}

static int list_run(int argc, char **argv)
{
	struct list list = {
		.env = { .proc_root = "/proc", .sys_root = "/sys", .interval_ns = NSEC_PER_MSEC },
	};
	char error[CLI_ERROR_ROOM];
	int first, only;

	first = cli_parse(list_opts, argc, argv, error);
	if (first < 0) {
		say("%s", error);
		return EXIT_USAGE;
	}
	if (section_choose(argc, argv, first, &only) < 0)
		return EXIT_USAGE;

	for (size_t i = 0; i < READERS_MAX && reader_registry[i]; i++) {
		list.reader[i].ops = reader_registry[i];
		reader_look(&list.reader[i], &list.env);
		list.readers++;
	}
	list_print(&list, &formats[chosen.format], only);
	for (size_t i = 0; i < list.readers; i++)
		metric_list_clear(&list.reader[i].metrics);
	return EXIT_OK;
}

const struct command cmd_list = {
	.name = "list",
	.usage = "[options] [readers|metrics|events]",
	.summary = "Show the readers, metrics and events of this machine",
	.opts = list_opts,
	.run = list_run,
};
