/* SPDX-License-Identifier: MIT */
/* How phases of one name differ, as JSON. */
#include <math.h>

#include "internal/util.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/stats.h"

static void put_line(struct json_writer *w, const struct stats *s, const struct stats_line *l)
{
	bool is_column = l->kind == STATS_COLUMN;
	char quality[QUALITY_ROOM];

	json_flat_object(w, NULL);
	json_text(w, "name", stats_line_name(s, l));
	json_text(w, "unit", unit_name(stats_line_unit(s, l)));
	json_text(w, "source", is_column ? s->model->columns[l->column].source : NULL);
	json_number(w, "count", l->count);
	json_real(w, "mean", l->mean);
	json_real(w, "stddev", l->deviation);
	json_real(w, "min", l->least);
	json_real(w, "median", l->median);
	json_real(w, "max", l->most);
	value_quality(&l->worst, quality);
	json_text(w, "quality", quality);
	json_close(w, '}');
}

struct json {
	struct json_writer w;
	struct stats stats;
	bool no_null;
};

static void put_quantity(
	struct json *j, const struct stats_group *g, enum stats_kind kind, size_t column)
{
	struct stats_line l;

	if (stats_line(&j->stats, g, kind, column, &l) && !(j->no_null && l.count == 0))
		put_line(&j->w, &j->stats, &l);
}

static void put_group(struct json *j, size_t index)
{
	const struct stats_group *g = &j->stats.groups[index];
	struct json_writer *w = &j->w;

	json_object(w, NULL);
	json_number(w, "index", index);
	json_text(w, "name", g->name);
	if (g->of_regions) {
		json_number(w, "depth", g->depth);
		json_number_or_null(w, "parent", g->parent, g->parent != MODEL_NONE);
	}
	json_number(w, "count", g->count);
	json_array(w, "statistics");
	put_quantity(j, g, STATS_TIME, 0);
	if (g->of_regions)
		put_quantity(j, g, STATS_OWN_TIME, 0);
	for (size_t i = 0; i < j->stats.model->column_count; i++)
		put_quantity(j, g, STATS_COLUMN, i);
	json_close(w, ']');
	json_close(w, '}');
}

static void put_groups(struct json *j, bool of_regions)
{
	json_array(&j->w, of_regions ? "regions" : "phases");
	for (size_t i = 0; i < j->stats.group_count; i++)
		if (j->stats.groups[i].of_regions == of_regions)
			put_group(j, i);
	json_close(&j->w, ']');
}

static void put_runs(struct json_writer *w, const struct model *m)
{
	json_array(w, "runs");
	for (size_t i = 0; i < m->run_count; i++) {
		json_flat_object(w, NULL);
		json_text(w, "file", m->runs[i].file);
		json_text(w, "command", m->runs[i].command);
		json_number(w, "lost_markers", run_lost_markers(&m->runs[i]));
		json_bool(w, "complete", m->runs[i].complete);
		json_close(w, '}');
	}
	json_close(w, ']');
}

static int stats_json_render(const struct model *m, const struct report_options *o, FILE *out)
{
	struct json j = { .w = { .out = out, .empty = true }, .no_null = o->no_null };
	int err = stats_make(m, &j.stats);

	if (err == 0) {
		json_object(&j.w, NULL);
		json_text(&j.w, "mode", "statistics");
		put_runs(&j.w, m);
		put_groups(&j, false);
		put_groups(&j, true);
		json_close(&j.w, '}');
		putc('\n', out);
	}
	stats_clear(&j.stats);
	return err;
}

const struct report_format stats_json_format = { stats_json_render };
