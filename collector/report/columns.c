/* SPDX-License-Identifier: MIT */
#include "report/columns.h"

#include <string.h>

#include "internal/util.h"

static const char *const usual_columns[] = {
	"proc_cpu_usage",
	"proc_current_max",
	"proc_rss_max",
	"target_energy",
};

const char *columns_usual(size_t index)
{
	return index < ARRAY_SIZE(usual_columns) ? usual_columns[index] : NULL;
}

static bool column_is_counted(const struct model *m, size_t column)
{
	for (size_t i = 0; i < m->row_count; i++)
		if (model_value(m, &m->rows[i], column).state == VALUE_COUNTED)
			return true;
	for (size_t i = 0; i < m->node_count; i++)
		if (node_value(m, &m->nodes[i], REGION_WHOLE, column).state == VALUE_COUNTED)
			return true;
	return false;
}

/* What others do in its group is not what the program does. */
static bool column_is_shared(const struct model *m, size_t column)
{
	for (size_t i = 0; i < m->row_count; i++) {
		struct value v = model_value(m, &m->rows[i], column);

		if (v.state == VALUE_COUNTED && v.note && strstr(v.note, "shared with"))
			return true;
	}
	return false;
}

static bool column_is_of_group(const struct column *c)
{
	return c->unit == UNIT_PERCENT || str_eq(c->source, "cgroup");
}

static bool column_is_known(const struct model *m, size_t column)
{
	for (size_t i = 0; i < m->run_count; i++)
		if (column < m->runs[i].column_count && m->runs[i].columns[column].known)
			return true;
	return false;
}

static bool column_is_usual(const struct column *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual_columns); i++)
		if (str_eq(c->name, usual_columns[i]))
			return true;
	if (str_starts(c->source, "RAPL"))
		return c->unit == UNIT_UJ || str_starts(c->name, "PACKAGE");
	/* A part of a sum: "cycles (cpu_core)". */
	return str_eq(c->source, "perf_event") && !strchr(c->name, '(');
}

/* What procfs counts stands in where perf counts nothing. */
static bool column_stands_in(const struct column *c)
{
	return str_eq(c->source, "procfs") && c->sum == COLUMN_ADD && str_starts(c->name, "proc_");
}

void columns_choose(const struct model *m, const struct report_options *o, bool *shown)
{
	bool perf = false;

	for (size_t i = 0; i < m->column_count; i++) {
		const struct column *c = &m->columns[i];

		if (o->all)
			shown[i] = column_is_known(m, i);
		else
			shown[i] = column_is_usual(c) && column_is_counted(m, i) &&
				   !(column_is_of_group(c) && column_is_shared(m, i));
		perf |= shown[i] && str_eq(c->source, "perf_event");
	}
	for (size_t i = 0; !perf && i < m->column_count; i++)
		if (column_stands_in(&m->columns[i]))
			shown[i] |= column_is_counted(m, i);
}

bool column_is_told_of(const struct model *m, const bool *shown, size_t column)
{
	return shown[column] || str_eq(m->columns[column].source, "perf_event");
}
