/* SPDX-License-Identifier: MIT */
/* How phases of one name differ: a line for each of their quantities. */
#include <inttypes.h>
#include <math.h>

#include "internal/util.h"
#include "report/csv_text.h"
#include "report/format.h"
#include "report/stats.h"

static const char header[] = "group_id;kind;name;depth;parent_id;members;metric_name;metric_unit;"
			     "metric_source;count;mean;stddev;min;median;max;metric_quality";

static void put_number(FILE *out, double number)
{
	putc(';', out);
	if (!isnan(number))
		fprintf(out, "%.15g", number);
}

static void put_text(FILE *out, const char *text)
{
	putc(';', out);
	csv_field(out, text);
}

static void put_line(
	const struct stats *s, const struct stats_group *g, const struct stats_line *l, FILE *out)
{
	const struct column *column =
		l->kind == STATS_COLUMN ? &s->model->columns[l->column] : NULL;
	char quality[QUALITY_ROOM];

	fprintf(out, "%zu;%s", (size_t)(g - s->groups), g->of_regions ? "region" : "phase");
	put_text(out, g->name);
	fprintf(out, ";%" PRIu32 ";", g->depth);
	if (g->parent != MODEL_NONE)
		fprintf(out, "%zu", g->parent);
	fprintf(out, ";%zu", g->count);
	put_text(out, stats_line_name(s, l));
	put_text(out, unit_name(stats_line_unit(s, l)));
	put_text(out, column ? column->source : NULL);
	fprintf(out, ";%zu", l->count);
	put_number(out, l->mean);
	put_number(out, l->deviation);
	put_number(out, l->least);
	put_number(out, l->median);
	put_number(out, l->most);
	value_quality(&l->worst, quality);
	put_text(out, quality);
	putc('\n', out);
}

static void put_quantity(const struct stats *s, const struct stats_group *g, enum stats_kind kind,
	size_t column, bool no_null, FILE *out)
{
	struct stats_line l;

	if (stats_line(s, g, kind, column, &l) && !(no_null && l.count == 0))
		put_line(s, g, &l, out);
}

static int stats_csv_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct stats s;
	int err = stats_make(m, &s);

	if (err == 0)
		fprintf(out, "%s\n", header);
	for (size_t i = 0; err == 0 && i < s.group_count; i++) {
		put_quantity(&s, &s.groups[i], STATS_TIME, 0, o->no_null, out);
		if (s.groups[i].of_regions)
			put_quantity(&s, &s.groups[i], STATS_OWN_TIME, 0, o->no_null, out);
		for (size_t c = 0; c < m->column_count; c++)
			put_quantity(&s, &s.groups[i], STATS_COLUMN, c, o->no_null, out);
	}
	stats_clear(&s);
	return err;
}

const struct report_format stats_csv_format = { stats_csv_render };
