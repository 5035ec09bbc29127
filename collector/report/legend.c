/* SPDX-License-Identifier: MIT */
#include "report/legend.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "internal/util.h"
#include "report/columns.h"
#include "report/grid.h"
#include "report/scaled.h"
#include "report/utf8.h"

/* Reasons and notes beyond this many are left to the other formats. */
#define REMARKS_MAX 12
#define NAMES_MAX   6
#define LINE_ROOM   1024

#define THREADS_SHOWN "threads: those with regions, and of their work what is in regions"
#define NO_THREADS                                                                                 \
	"threads: none, since no thread has regions, which joule_begin() and joule_end() make"

/* One thing to say, of some columns. */
struct remark {
	const char *text;
	size_t columns[NAMES_MAX];
	size_t count; /* of columns, also those without room */
	uint64_t values;
};

struct legend {
	const struct model *model;
	const struct report_options *options;
	FILE *out;
	bool shares;
	struct remark reasons[REMARKS_MAX];
	size_t reason_count;
	struct remark notes[REMARKS_MAX];
	size_t note_count;
	struct remark sampled; /* between the boundaries */
	struct remark summed;  /* sizes of several processes */
	double least_coverage;
	double most_coverage;
	double error; /* of energy: the largest, as a part of its value */
	double step_ms;
	double share_error; /* the same of CPU usage */
	double share_step_ms;
	bool scaled;
	bool too_short;
	bool partial;
	bool is_short;
	bool is_late;
	bool to_death;
	bool adds_processes;
	bool exceeds; /* more task-clock than time */
	uint64_t includes;
};

static void put_line(const struct legend *l, const char *mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put_line(const struct legend *l, const char *mark, const char *format, ...)
{
	char text[LINE_ROOM];
	char clean[LINE_ROOM];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	utf8_printable(text, clean, sizeof(clean), sizeof(clean));
	fputs(l->options->colour ? COLOUR_QUIET : "", l->out);
	fprintf(l->out, "%s ", mark);
	print_wrapped(l->out, clean, 2, l->options->width);
	fputs(l->options->colour ? COLOUR_OFF : "", l->out);
}

static void remark_column(struct remark *r, size_t column)
{
	for (size_t i = 0; i < MIN(r->count, (size_t)NAMES_MAX); i++)
		if (r->columns[i] == column)
			return;
	/* Columns are looked at one after the other, so that no later one was seen before. */
	if (r->count < NAMES_MAX)
		r->columns[r->count] = column;
	else if (r->columns[NAMES_MAX - 1] == column)
		return;
	r->count++;
}

static void remark(struct remark *list, size_t *count, const char *text, size_t column)
{
	size_t i = 0;

	while (i < *count && !str_eq(list[i].text, text))
		i++;
	if (i == REMARKS_MAX)
		return;
	if (i == *count)
		list[(*count)++] = (struct remark){ .text = text };
	list[i].values++;
	remark_column(&list[i], column);
}

static double error_of(const struct value *v)
{
	bool known = v->flags & VALUE_COARSE && !(v->flags & VALUE_SHORT) && v->number;

	return known ? (double)v->error / (double)v->number : 0;
}

static void see_error(struct legend *l, const struct value *v, size_t column)
{
	if (l->model->columns[column].unit == UNIT_PERCENT) {
		l->share_step_ms = MAX(l->share_step_ms, v->step_us / 1e3);
		l->share_error = MAX(l->share_error, error_of(v));
	} else {
		l->step_ms = MAX(l->step_ms, v->step_us / 1e3);
		l->error = MAX(l->error, error_of(v));
	}
}

static void see_value(struct legend *l, const struct value *v, size_t column)
{
	if (v->state == VALUE_NULL)
		remark(l->reasons, &l->reason_count, v->note, column);
	if (v->state != VALUE_COUNTED)
		return;
	if (v->note)
		remark(l->notes, &l->note_count, v->note, column);
	l->partial |= v->without > 0;
	l->too_short |= (v->flags & VALUE_SHORT) != 0;
	see_error(l, v, column);
	if (v->flags & VALUE_STEPS)
		remark_column(&l->sampled, column);
	if (v->flags & VALUE_SUMMED)
		remark_column(&l->summed, column);
	if (!(v->flags & VALUE_SCALED))
		return;
	l->least_coverage = l->scaled ? MIN(l->least_coverage, v->coverage) : v->coverage;
	l->most_coverage = l->scaled ? MAX(l->most_coverage, v->coverage) : v->coverage;
	l->scaled = true;
}

static void see_column(struct legend *l, size_t column)
{
	const struct model *m = l->model;
	struct value v;

	for (size_t i = 0; i < m->row_count; i++) {
		v = model_value(m, &m->rows[i], column);
		see_value(l, &v, column);
	}
	for (size_t i = 0; i < m->run_count; i++) {
		v = model_value(m, &m->runs[i].total, column);
		see_value(l, &v, column);
	}
	for (size_t i = 0; i < m->node_count; i++) {
		v = node_value(m, &m->nodes[i], REGION_WHOLE, column);
		see_value(l, &v, column);
	}
}

/* "cycles, instructions, ..." */
static void name_columns(const struct legend *l, const struct remark *r, char *text, size_t size)
{
	size_t named = MIN(r->count, (size_t)NAMES_MAX);
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < named && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
			l->model->columns[r->columns[i]].name);
	if (r->count > named && used < size)
		snprintf(text + used, size - used, ", …");
}

static void put_reason(const struct legend *l, const struct remark *r)
{
	char names[512];

	/* Counted and told of as a whole. */
	if (is_unresolved(r->text))
		return;
	name_columns(l, r, names, sizeof(names));
	put_line(l, "-", "not counted: %s (%s)", reason_bare(r->text), names);
}

static void put_unresolved(const struct legend *l)
{
	const struct model *m = l->model;
	uint64_t phases = 0, regions = 0;
	char text[128] = "";

	for (size_t i = 0; i < m->run_count; i++) {
		phases += m->runs[i].unresolved;
		regions += m->runs[i].regions_unresolved;
	}
	if (phases + regions == 0)
		return;
	if (phases)
		snprintf(text, sizeof(text), "%" PRIu64 " phase%s%s", phases,
			phases == 1 ? "" : "s", regions ? " and " : "");
	if (regions)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRIu64 " region%s",
			regions, regions == 1 ? "" : "s");
	put_line(l, "-",
		"unresolved: %s %s both boundaries in one reading; a neighbour has the work", text,
		phases + regions == 1 ? "has" : "have");
}

/* How the boundaries of regions were taken. */
static void put_boundaries(const struct legend *l)
{
	static const char *const words[TAKEN_KINDS] = {
		[TAKEN_NOT] = "not read",
		[TAKEN_EXACT] = "exact",
		[TAKEN_SYNC] = "sync",
		[TAKEN_LATE] = "async",
	};
	const struct model *m = l->model;
	uint64_t taken[TAKEN_KINDS] = { 0 };
	char text[256] = "";

	for (size_t i = 0; i < m->node_count; i++)
		for (size_t k = 0; k < TAKEN_KINDS; k++)
			taken[k] += m->nodes[i].taken[k];
	for (size_t k = TAKEN_EXACT; k <= TAKEN_KINDS; k++) {
		size_t used = strlen(text);
		size_t kind = k % TAKEN_KINDS;

		if (taken[kind])
			snprintf(text + used, sizeof(text) - used, "%s%" PRIu64 " %s",
				used ? ", " : "", taken[kind], words[kind]);
	}
	if (text[0])
		put_line(l, " ", "boundaries of regions: %s (--quality explains)", text);
}

/* Where threads wait in markers, it shows in the time of the regions around them. */
static void put_region_times(const struct legend *l)
{
	const struct model *m = l->model;
	uint64_t inside = 0;
	char text[SCALED_ROOM];

	for (size_t i = 0; i < m->node_count; i++)
		if (m->nodes[i].parent == MODEL_NONE)
			inside += m->nodes[i].inside_ns;
	scaled(inside, UNIT_NS, text);
	if (m->node_count && l->shares)
		put_line(l, " ",
			"share: of the time of the region around it, or of all outermost ones");
	if (inside)
		put_line(l, " ",
			"own time: without the regions within and without markers, which took %s",
			text);
}

static void put_scaled(const struct legend *l)
{
	double least = 100 * l->least_coverage;
	double most = 100 * l->most_coverage;

	if (most - least < 1)
		put_line(l, "~", "scaled from %.0f %% coverage", least);
	else
		put_line(l, "~", "scaled from %.0f to %.0f %% coverage", least, most);
}

/* How late the shown values of a source were read. */
static void put_delay(const struct legend *l, const bool *shown, const char *source)
{
	const struct model *m = l->model;
	uint32_t most = 0;
	bool late = false;
	char text[SCALED_ROOM];

	for (size_t c = 0; c < m->column_count; c++) {
		if (!shown[c] || !str_eq(m->columns[c].source, source))
			continue;
		for (size_t i = 0; i < m->row_count; i++) {
			struct value v = model_value(m, &m->rows[i], c);

			if (v.state != VALUE_COUNTED || !(v.flags & VALUE_LATE))
				continue;
			late = true;
			most = MAX(most, v.delay_us);
		}
	}
	scaled(most, UNIT_US, text);
	if (late)
		put_line(l, " ", "%s: read up to %s after the boundaries", source, text);
}

static void put_delays(const struct legend *l, const bool *shown)
{
	const struct model *m = l->model;

	for (size_t c = 0; c < m->column_count; c++) {
		bool first = true;

		for (size_t i = 0; i < c && first; i++)
			first = !str_eq(m->columns[i].source, m->columns[c].source);
		if (first)
			put_delay(l, shown, m->columns[c].source);
	}
}

static void see_row(struct legend *l, const struct row *row)
{
	l->includes += row->includes;
	l->is_short |= row->is_short;
	l->is_late |= row_is_late(row);
	l->to_death |= row->to_death && row->clock_ns;
	l->exceeds |= row->clock_ns > row->duration_ns;
	l->adds_processes |= row->adds_processes;
}

static void put_sampled(const struct legend *l)
{
	uint64_t interval = 0;
	char names[512];

	if (l->sampled.count == 0)
		return;
	for (size_t i = 0; i < l->model->run_count; i++)
		interval = MAX(interval, l->model->runs[i].interval_ns);
	name_columns(l, &l->sampled, names, sizeof(names));
	if (interval)
		put_line(l, " ", "%s: sampled every %g ms and at the boundaries", names,
			(double)interval / NSEC_PER_MSEC);
	else
		put_line(l, " ", "%s: sampled at the boundaries alone", names);
}

static void put_summed(const struct legend *l)
{
	char names[512];

	name_columns(l, &l->summed, names, sizeof(names));
	if (names[0])
		put_line(l, " ", "%s: " SUMMED_TEXT " (--all has proc_pss, with its part of them)",
			names);
}

/* The first one alone stands for all. */
static void put_amount(const struct legend *l, const char *reason, const char *text)
{
	const struct model *m = l->model;

	for (size_t i = 0; i < m->row_count; i++)
		for (const struct amount *a = m->rows[i].amounts; a; a = a->next) {
			const char *why = amount_undivided(a, &m->rows[i]);

			if (why && str_eq(why, reason)) {
				put_line(l, "-", "%s: %s (%s)", text, reason, a->name);
				return;
			}
		}
}

static void put_amounts(const struct legend *l)
{
	put_amount(l, AMOUNT_NOT_FINITE, "not counted");
	if (l->options->by != BY_PHASE && l->options->by != BY_NAME)
		return;
	put_amount(l, AMOUNT_NOT_POSITIVE, "nothing per unit of work");
	put_amount(l, AMOUNT_OF_SOME, "nothing per unit of work");
}

void legend_print(const struct model *m, const struct report_options *o, const bool *shown,
	bool shares, FILE *out)
{
	struct legend l = { .model = m, .options = o, .shares = shares, .out = out };

	for (size_t i = 0; i < m->column_count; i++)
		if (column_is_told_of(m, shown, i))
			see_column(&l, i);
	for (size_t i = 0; i < m->row_count; i++)
		see_row(&l, &m->rows[i]);
	for (size_t i = 0; i < m->node_count; i++) {
		l.is_short |= m->nodes[i].is_short;
		l.is_late |= node_is_late(&m->nodes[i]);
	}

	if (l.scaled)
		put_scaled(&l);
	if (l.includes)
		put_line(&l, "+", "includes the work of unresolved phases beside it");
	if (l.too_short)
		put_line(&l, "?", "shorter than the %g ms in which its counter moves about once",
			l.step_ms);
	if (l.is_short)
		put_line(&l, "?",
			"short: half or more of its task-clock, or of a region's time, is what its "
			"markers cost, or lifts task-clock above its time");
	if (l.is_late)
		put_line(&l, "!", "late: read more than a tenth of its time after a boundary");
	if (m->compensate)
		put_line(&l, " ", "counts without what markers cost; TOTAL has it all");
	if (l.exceeds)
		put_line(&l, " ",
			"task-clock: of all threads, and of the markers at a phase's ends, so that "
			"it may exceed time");
	if (l.adds_processes)
		put_line(&l, " ", ROW_ADDS_PROCESSES);
	if (l.to_death)
		put_line(&l, " ", "a phase that ends with its process: " ROW_TO_DEATH);
	if (l.error > 0)
		put_line(&l, " ",
			"energy: ±%.2g %% of a value at most, as its counters move once in %g ms",
			100 * l.error, l.step_ms);
	if (l.share_error > 0)
		put_line(&l, " ",
			"CPU usage: ±%.2g %% of a value at most, as it moves once in %g ms",
			100 * l.share_error, l.share_step_ms);
	if (l.partial)
		put_line(&l, "*", "without those in which it was not counted");
	for (size_t i = 0; i < l.reason_count; i++)
		put_reason(&l, &l.reasons[i]);
	put_amounts(&l);
	if (o->by == BY_THREAD)
		put_line(&l, " ", "%s", m->row_count ? THREADS_SHOWN : NO_THREADS);
	put_unresolved(&l);
	put_boundaries(&l);
	put_region_times(&l);
	put_delays(&l, shown);
	put_sampled(&l);
	put_summed(&l);
	for (size_t i = 0; i < l.note_count; i++) {
		char names[512];

		name_columns(&l, &l.notes[i], names, sizeof(names));
		put_line(&l, " ", "%s: %s", names, l.notes[i].text);
	}
}
