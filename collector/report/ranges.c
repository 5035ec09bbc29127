/* SPDX-License-Identifier: MIT */
#include "report/ranges.h"

#include "internal/util.h"
#include "report/output.h"

void ranges_clear(struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct range){ VALUE_ABSENT, 0 };
}

void ranges_merge(struct range *into, const struct range *from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		into[i].least = MIN(into[i].least, from[i].least);
		into[i].most = MAX(into[i].most, from[i].most);
	}
}

static void widen(const struct outputs *o, enum metric_kind kind, size_t reader,
	const uint64_t *values, struct range *ranges)
{
	const struct metric_list *list = &o->header->readers[reader].metrics;
	struct range *range = ranges + o->base[reader];

	for (size_t i = 0; i < list->count; i++) {
		struct range seen = { values[i], values[i] };

		if (list->metric[i].kind == kind && values[i] != VALUE_ABSENT)
			ranges_merge(&range[i], &seen, 1);
	}
}

void outputs_widen(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges)
{
	widen(o, METRIC_GAUGE, reader, values, ranges);
}

bool outputs_has_peaks(const struct outputs *o, size_t reader)
{
	const struct metric_list *list = &o->header->readers[reader].metrics;

	for (size_t i = 0; i < list->count; i++)
		if (list->metric[i].kind == METRIC_PEAK_SINCE)
			return true;
	return false;
}

void outputs_widen_peaks(
	const struct outputs *o, size_t reader, const uint64_t *values, struct range *ranges)
{
	widen(o, METRIC_PEAK_SINCE, reader, values, ranges);
}

void outputs_widen_boundary(const struct outputs *o, const struct boundary *b, struct range *ranges)
{
	for (size_t i = 0; i < o->header->reader_count; i++) {
		const struct reading *reading = boundary_reading(b, i);

		if (reading)
			outputs_widen(o, i, reading->values, ranges);
	}
}
