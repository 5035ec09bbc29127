/* SPDX-License-Identifier: MIT */
/* Which columns the metrics of a recording become. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal/util.h"
#include "report/output.h"

/* A counter that is also shown as a share of the time. */
static const struct {
	const char *source;
	const char *counter;
	const char *share;
} shares[] = {
	{ "cgroup", "proc_usage_usec", "proc_cpu_usage" },
	{ "cgroup", "global_usage_usec", "global_cpu_usage" },
};

struct builder {
	struct model *model;
	struct run *run;
	struct outputs *outputs;
	size_t reader;
	size_t metric;
	const char *source;
	const struct metric *info;
};

static int pool_put_or_null(struct pool *pool, const char *text, const char **ret)
{
	*ret = text ? pool_put(pool, text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* Sizes of memory are added up over processes that may share some of it. */
static const char *const sizes[] = { "proc_rss", "proc_shared", "proc_anon", "proc_vm_size" };

static size_t processes_metric(const struct builder *b)
{
	const struct metric_list *list = &b->outputs->header->readers[b->reader].metrics;
	bool is_size = false;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		is_size |= str_eq(sizes[i], b->info->name);
	for (size_t i = 0; is_size && i < list->count; i++)
		if (str_eq(list->metric[i].name, "proc_processes"))
			return i + 1;
	return 0;
}

/* Why the sum of all parts of a metric is never counted, or NULL. */
static const char *parts_absent(const struct builder *b)
{
	const struct metric_list *list = &b->outputs->header->readers[b->reader].metrics;

	for (size_t i = 0; i < list->count; i++) {
		const struct metric *m = &list->metric[i];

		if (m->part && !m->absent && str_eq(m->name, b->info->name))
			return NULL;
	}
	return b->info->absent;
}

static int add_output(const struct builder *b, const char *name, enum metric_unit unit,
	enum column_sum sum, fill_fn fill)
{
	struct column column = { name, b->source, unit, sum };
	struct outputs *o = b->outputs;
	struct output out = {
		.fill = fill,
		.reader = b->reader,
		.metric = b->metric,
		.processes = processes_metric(b),
	};
	const char *absent = fill == fill_parts ? parts_absent(b) : b->info->absent;
	int err;

	err = model_column(b->model, &column, &out.column);
	if (err == 0)
		err = pool_put_or_null(b->model->pool, b->info->note, &out.note);
	if (err == 0)
		err = pool_put_or_null(b->model->pool, absent, &out.absent);
	if (out.absent)
		out.absent = reason_bare(out.absent);
	if (err == 0)
		err = run_knows(b->run, out.column, out.absent);
	if (err < 0)
		return err;
	if (o->count == o->room) {
		size_t room = o->room ? 2 * o->room : 64;
		struct output *grown = reallocarray(o->list, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		o->list = grown;
		o->room = room;
	}
	o->list[o->count++] = out;
	o->columns = MAX(o->columns, out.column + 1);
	return 0;
}

/* name and its ending as one string of the pool. */
static const char *joined(struct model *m, const char *format, const char *name, const char *end)
{
	const char *kept;
	char *text;

	if (asprintf(&text, format, name, end) < 0)
		return NULL;
	kept = pool_put(m->pool, text);
	free(text);
	return kept;
}

static int add_gauge(const struct builder *b)
{
	const char *least = joined(b->model, "%s_%s", b->info->name, "min");
	const char *most = joined(b->model, "%s_%s", b->info->name, "max");
	int err;

	if (!least || !most)
		return -ENOMEM;
	err = add_output(b, least, b->info->unit, COLUMN_LEAST, fill_least);
	return err < 0 ? err : add_output(b, most, b->info->unit, COLUMN_MOST, fill_most);
}

static bool is_first_part(const struct builder *b)
{
	const struct metric_list *list = &b->outputs->header->readers[b->reader].metrics;

	for (size_t i = 0; i < b->metric; i++)
		if (list->metric[i].part && str_eq(list->metric[i].name, b->info->name))
			return false;
	return true;
}

static int add_part(const struct builder *b, const char *name)
{
	const char *part = joined(b->model, "%s (%s)", name, b->info->part);
	int err = 0;

	if (!part)
		return -ENOMEM;
	if (is_first_part(b))
		err = add_output(b, name, b->info->unit, COLUMN_ADD, fill_parts);
	return err < 0 ? err : add_output(b, part, b->info->unit, COLUMN_ADD, fill_part);
}

static int add_counter(const struct builder *b, const char *name)
{
	int err = add_output(b, name, b->info->unit, COLUMN_ADD, fill_difference);

	for (size_t i = 0; err == 0 && i < ARRAY_SIZE(shares); i++)
		if (str_eq(shares[i].source, b->source) && str_eq(shares[i].counter, name))
			err = add_output(
				b, shares[i].share, UNIT_PERCENT, COLUMN_SHARE, fill_share);
	return err;
}

/* What the values come from, as reports call it. */
static const char *source_name(const struct builder *b)
{
	const char *reader = b->outputs->header->readers[b->reader].name;

	if (b->info->source)
		return b->info->source;
	return str_eq(reader, "perf") ? "perf_event" : reader;
}

static int add_metric(struct builder *b)
{
	const char *name = pool_put(b->model->pool, b->info->name);

	b->source = pool_put(b->model->pool, source_name(b));
	if (!name || !b->source)
		return -ENOMEM;
	if (b->info->kind == METRIC_GAUGE)
		return add_gauge(b);
	if (b->info->kind == METRIC_PEAK)
		return add_output(b, name, b->info->unit, COLUMN_MOST, fill_end);
	if (b->info->kind == METRIC_PEAK_SINCE)
		return add_output(b, name, b->info->unit, COLUMN_MOST, fill_peak);
	return b->info->part ? add_part(b, name) : add_counter(b, name);
}

static int add_reader(struct builder *b)
{
	const struct decoded_reader *reader = &b->outputs->header->readers[b->reader];
	int err = 0;

	b->outputs->base[b->reader] = b->outputs->ranges;
	b->outputs->ranges += reader->metrics.count;
	for (b->metric = 0; err == 0 && b->metric < reader->metrics.count; b->metric++) {
		b->info = &reader->metrics.metric[b->metric];
		err = add_metric(b);
	}
	return err;
}

int outputs_make_columns(struct model *m, struct run *run, struct outputs *o)
{
	struct builder b = { .model = m, .run = run, .outputs = o };
	int err = 0;

	for (b.reader = 0; err == 0 && b.reader < o->header->reader_count; b.reader++)
		err = add_reader(&b);
	return err;
}
