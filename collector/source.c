/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "internal/util.h"

static void fill(struct source_list *list, bool chosen[SOURCE_MAX], const bool named[SOURCE_MAX])
{
	list->count = 0;
	for (size_t i = 0; reader_registry[i]; i++)
		if (chosen[i])
			list->source[list->count++] = (struct source){
				.ops = reader_registry[i],
				.named = named[i],
			};
}

static int find_index(const char *name, char ret_error[SOURCE_ERROR_ROOM])
{
	const char *names[SOURCE_MAX + 1] = { NULL };
	const char *near;

	for (size_t i = 0; reader_registry[i]; i++) {
		if (str_eq(reader_registry[i]->name, name))
			return (int)i;
		names[i] = reader_registry[i]->name;
	}
	near = cli_suggest(name, names);
	snprintf(ret_error, SOURCE_ERROR_ROOM,
		"no source is called \"%s\"%s%s%s (jphase list shows all)", name,
		near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	return -EINVAL;
}

static void set_all(bool chosen[SOURCE_MAX], bool value)
{
	for (size_t i = 0; i < SOURCE_MAX; i++)
		chosen[i] = value;
}

int source_choose(const char *text, struct source_list *ret, char ret_error[SOURCE_ERROR_ROOM])
{
	bool chosen[SOURCE_MAX] = { false }, named[SOURCE_MAX] = { false };
	char *copy = strdup(text ? text : "all"), *rest = copy, *entry;
	bool first = true;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	while (err == 0 && (entry = strsep(&rest, ","))) {
		bool leave_out = entry[0] == '-';
		int i;

		/* "-cgroup" alone means all but that one. */
		if (first && leave_out)
			set_all(chosen, true);
		first = false;
		if (str_eq(entry, "all")) {
			set_all(chosen, true);
			continue;
		}
		i = find_index(entry + leave_out, ret_error);
		if (i < 0) {
			err = i;
			break;
		}
		chosen[i] = !leave_out;
		named[i] = !leave_out;
	}
	free(copy);
	if (err == 0)
		fill(ret, chosen, named);
	return err;
}

/* A source that cannot work: an error only where the user asked for it. */
static int leave_out(
	struct source *s, const char *reason, int err, char ret_error[SOURCE_ERROR_ROOM])
{
	s->present = false;
	snprintf(s->absent, sizeof(s->absent), "%s", reason[0] ? reason : strerror(-err));
	if (!s->named)
		return 0;
	snprintf(ret_error, SOURCE_ERROR_ROOM, "%s", s->absent);
	return err;
}

int source_probe(
	struct source_list *list, const struct reader_env *env, char ret_error[SOURCE_ERROR_ROOM])
{
	for (size_t i = 0; i < list->count; i++) {
		struct source *s = &list->source[i];
		char reason[READER_REASON_ROOM] = "";
		int err;

		/* Who names events, or zones, asks for the reader that counts them. */
		if ((env->events && s->ops == &perf_reader) ||
			(env->powercap_root && s->ops == &energy_reader))
			s->named = true;
		if (env->perf_cgroup && s->ops == &perf_reader) {
			s->named = true;
			s->ops = &perf_cgroup_reader;
		}
		s->present = true;
		err = s->ops->probe(env, reason);
		if (err < 0)
			err = leave_out(s, reason, err, ret_error);
		if (err < 0)
			return err;
	}
	return 0;
}

static bool has_gauges(const struct source *s)
{
	for (size_t i = 0; s->ops->sample && i < s->metrics.count; i++)
		if (s->metrics.metric[i].kind == METRIC_GAUGE && !s->metrics.metric[i].absent)
			return true;
	return false;
}

int source_describe(struct source_list *list, struct reader *const *instances,
	char (*reasons)[READER_REASON_ROOM], char ret_error[SOURCE_ERROR_ROOM])
{
	for (size_t i = 0; i < list->count; i++) {
		struct source *s = &list->source[i];
		const struct reader *r = s->ops->per_process ? instances[i] : s->shared;
		int err;

		if (!s->present)
			continue;
		err = r ? s->ops->describe(r, &s->metrics) : -EIO;
		if (err < 0)
			err = leave_out(s, reasons[i], err, ret_error);
		if (err < 0)
			return err;
		s->gauges = has_gauges(s);
		list->values = MAX(list->values, metric_list_values(&s->metrics));
	}
	return 0;
}

void source_close(struct source_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->source[i].shared)
			list->source[i].ops->close(list->source[i].shared);
		metric_list_clear(&list->source[i].metrics);
	}
	list->count = 0;
}
