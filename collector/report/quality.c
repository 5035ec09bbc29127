/* SPDX-License-Identifier: MIT */
/* How far a number can be trusted, in words. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal/util.h"
#include "report/model.h"

/* Adds a part, "; " before all but the first; cut where there is no room. */
static void __attribute__((format(printf, 2, 3)))
add(char text[QUALITY_ROOM], const char *format, ...)
{
	size_t used = strlen(text);
	va_list ap;

	if (used && used + 2 < QUALITY_ROOM) {
		strcpy(text + used, "; ");
		used += 2;
	}
	va_start(ap, format);
	vsnprintf(text + used, QUALITY_ROOM - used, format, ap);
	va_end(ap);
}

static void null_quality(const struct value *v, char text[QUALITY_ROOM])
{
	add(text, "%s%s", is_unresolved(v->note) ? "" : "not counted: ", reason_bare(v->note));
}

void value_quality(const struct value *v, char text[QUALITY_ROOM])
{
	text[0] = '\0';
	if (v->state != VALUE_COUNTED) {
		null_quality(v, text);
		return;
	}
	if (v->flags & VALUE_SYNC)
		add(text, "sync");
	if (v->flags & VALUE_SCALED)
		add(text, "scaled from %.1f %% coverage", 100 * v->coverage);
	if (v->flags & VALUE_STEPS)
		add(text, "sampled");
	if (v->flags & VALUE_SUMMED)
		add(text, SUMMED_TEXT);
	if (v->flags & VALUE_ESTIMATED)
		add(text, "estimate");
	if (v->flags & VALUE_SHORT)
		add(text, "shorter than the %g ms in which its counter moves about once",
			v->step_us / 1e3);
	else if (v->flags & VALUE_COARSE && v->number)
		add(text, "±%.2g %% of the value as its counter moves about once in %g ms",
			100.0 * (double)v->error / (double)v->number, v->step_us / 1e3);
	else if (v->flags & VALUE_COARSE)
		add(text, "its counter moves about once in %g ms", v->step_us / 1e3);
	if (v->flags & VALUE_LATE)
		add(text, "read %" PRIu32 " µs after the boundary", v->delay_us);
	if (v->flags & VALUE_CLEARED)
		add(text, "without what its markers cost");
	if (v->without)
		add(text, "without %" PRIu32 " that were not counted", v->without);
	if (v->includes)
		add(text, "includes %" PRIu32 " unresolved region%s in it", v->includes,
			v->includes == 1 ? "" : "s");
	if (!text[0])
		add(text, "exact");
	if (v->note)
		add(text, "%s", v->note);
}

bool row_is_late(const struct row *row)
{
	return row->value_count && row->late_ns > row->duration_ns / 10;
}

bool node_is_late(const struct region_node *n)
{
	return n->late_ns > n->duration_ns / 10;
}

void row_quality(const struct row *row, char text[QUALITY_ROOM])
{
	text[0] = '\0';
	if (row->unresolved && row->count == 1)
		add(text, VALUE_UNRESOLVED);
	else if (row->unresolved)
		add(text, "%" PRIu32 " %s unresolved", row->unresolved,
			row->of_thread ? "regions" : "phases");
	if (row->includes)
		add(text, "includes %" PRIu32 " unresolved phase%s", row->includes,
			row->includes == 1 ? "" : "s");
	if (row->open)
		add(text, "the recording ends in it");
	else if (row->reason && !row->unresolved && row->count == 1)
		add(text, "not counted: %s", row->reason);
	if (row->is_short && row->markers_clock_ns >= (row->clock_ns + 1) / 2)
		add(text, "short: half of its task-clock or more is its markers'");
	else if (row->is_short)
		add(text, "short: with that of its markers its task-clock is more than its time");
	if (row_is_late(row))
		add(text, "late: read more than a tenth of its time after a boundary");
	if (row->adds_processes)
		add(text, ROW_ADDS_PROCESSES);
	if (row->to_death && row->clock_ns)
		add(text, "ends with its process: " ROW_TO_DEATH);
	if (row->acknowledged)
		add(text, "begin taken from the acknowledgement");
}

const char *amount_undivided(const struct amount *amount, const struct row *row)
{
	if (!isfinite(amount->sum))
		return AMOUNT_NOT_FINITE;
	/* What is smaller has lost digits, and takes others beyond all bounds. */
	if (amount->sum < DBL_MIN)
		return AMOUNT_NOT_POSITIVE;
	return amount->parts < row->count ? AMOUNT_OF_SOME : NULL;
}

void region_quality(const struct region *r, char text[QUALITY_ROOM])
{
	text[0] = '\0';
	if (r->open)
		add(text, "the recording ends in it");
	if (r->end_lost)
		add(text, "its end was lost");
	else if (r->repaired && r->closed_by)
		add(text, "closed by the end of %s", r->closed_by);
	else if (r->repaired)
		add(text, "closed by the end of its process");
	if (is_unresolved(r->reason))
		add(text, VALUE_UNRESOLVED);
}

const char *taken_name(struct taken taken)
{
	static const char *const names[TAKEN_KINDS] = {
		[TAKEN_NOT] = "none",
		[TAKEN_EXACT] = "exact",
		[TAKEN_SYNC] = "sync",
		[TAKEN_LATE] = "async",
	};

	return names[taken.how];
}

void value_number(const struct value *v, enum metric_unit unit, char text[NUMBER_ROOM])
{
	if (unit == UNIT_PERCENT)
		snprintf(text, NUMBER_ROOM, "%" PRIu64 ".%02" PRIu64, v->number / 100,
			v->number % 100);
	else
		snprintf(text, NUMBER_ROOM, "%" PRIu64, v->number);
}
