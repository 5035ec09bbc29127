/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

static const char *const unit_names[] = {
	[UNIT_COUNT] = "count",
	[UNIT_BYTES] = "B",
	[UNIT_US] = "µs",
	[UNIT_UJ] = "µJ",
	[UNIT_PERCENT] = "%",
	[UNIT_NS] = "ns",
	[UNIT_UW] = "µW",
};

static const char *const kind_names[] = {
	[METRIC_COUNTER] = "counter",
	[METRIC_GAUGE] = "gauge",
	[METRIC_PEAK] = "peak",
	[METRIC_PEAK_SINCE] = "peak-since",
	[METRIC_SCALED] = "scaled",
};

static const char *const scope_names[] = {
	[SCOPE_PROCESS] = "process",
	[SCOPE_GROUP] = "group",
	[SCOPE_GLOBAL] = "global",
};

static void metric_clear(struct metric *m)
{
	free(m->name);
	free(m->part);
	free(m->note);
	free(m->absent);
	free(m->source);
}

static int copy_string(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return from && !*ret ? -ENOMEM : 0;
}

int metric_list_add(struct metric_list *list, const struct metric *metric)
{
	struct metric *grown;
	struct metric copy = *metric;
	int err = 0;

	grown = reallocarray(list->metric, list->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->metric = grown;

	err |= copy_string(metric->name, &copy.name);
	err |= copy_string(metric->part, &copy.part);
	err |= copy_string(metric->note, &copy.note);
	err |= copy_string(metric->absent, &copy.absent);
	err |= copy_string(metric->source, &copy.source);
	if (err) {
		metric_clear(&copy);
		return -ENOMEM;
	}
	list->metric[list->count++] = copy;
	return 0;
}

void metric_list_clear(struct metric_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		metric_clear(&list->metric[i]);
	free(list->metric);
	*list = (struct metric_list){ 0 };
}

const char *unit_name(enum metric_unit unit)
{
	return unit_names[unit];
}

const char *metric_kind_name(enum metric_kind kind)
{
	return kind_names[kind];
}

const char *metric_scope_name(enum metric_scope scope)
{
	return scope_names[scope];
}

static int name_index(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(names[i], name))
			return (int)i;
	return -EINVAL;
}

int unit_parse(const char *name, enum metric_unit *ret)
{
	int i = name_index(unit_names, ARRAY_SIZE(unit_names), name);

	if (i < 0)
		return i;
	*ret = (enum metric_unit)i;
	return 0;
}

int metric_kind_parse(const char *name, enum metric_kind *ret)
{
	int i = name_index(kind_names, ARRAY_SIZE(kind_names), name);

	if (i < 0)
		return i;
	*ret = (enum metric_kind)i;
	return 0;
}

int metric_scope_parse(const char *name, enum metric_scope *ret)
{
	int i = name_index(scope_names, ARRAY_SIZE(scope_names), name);

	if (i < 0)
		return i;
	*ret = (enum metric_scope)i;
	return 0;
}
