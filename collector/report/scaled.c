/* SPDX-License-Identifier: MIT */
#include "report/scaled.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "internal/util.h"

/* Counts up to here are shown to the last digit. */
#define COUNT_PLAIN 100000

struct scale {
	const char *units[8]; /* from small to large, ends with NULL */
	double step;
	double first; /* of the smallest unit in the metric's */
	int digits;   /* in all */
	double most;  /* of the largest unit */
};

static const struct scale scales[] = {
	[UNIT_COUNT] = { { "", " K", " M", " G", " T", " P", " E" }, 1000, 1, 4, 1000 },
	[UNIT_BYTES] = { { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" }, 1024, 1, 3,
		1024 },
	[UNIT_US] = { { " ns", " µs", " ms", " s" }, 1000, 1000, 4, 1e9 },
	[UNIT_UJ] = { { " µJ", " mJ", " J", " kJ", " MJ" }, 1000, 1, 4, 1e6 },
	[UNIT_PERCENT] = { { " %" }, 1000, 1, 4, 1e6 },
	[UNIT_NS] = { { " ns", " µs", " ms", " s" }, 1000, 1, 4, 1e9 },
	[UNIT_UW] = { { " µW", " mW", " W", " kW" }, 1000, 1, 4, 1e6 },
};

static int digits_after(double value, int digits)
{
	return digits - (value >= 100 ? 3 : value >= 10 ? 2 : 1);
}

/* Where no unit fits: as 1.000e+300, or 5.000e-06 where it would read as 0. */
static bool is_beyond(double value, const struct scale *s)
{
	return fabs(value) >= s->most || (value != 0 && fabs(value) < 0.0005);
}

void scaled_real(double number, enum metric_unit unit, char text[SCALED_ROOM])
{
	const struct scale *s = &scales[unit];
	double value = number * s->first;
	size_t i = 0;

	/* A value that would be rounded up to a whole step belongs to the next unit. */
	while (s->units[i + 1] && fabs(value) >= s->step - 0.05) {
		value /= s->step;
		i++;
	}
	if (is_beyond(value, s))
		snprintf(text, SCALED_ROOM, "%.3e%s", number * s->first, s->units[0]);
	else if (unit == UNIT_PERCENT)
		snprintf(text, SCALED_ROOM, "%.2f%s", value, s->units[i]);
	else if (i == 0 && value == floor(value))
		snprintf(text, SCALED_ROOM, "%.0f%s", value, s->units[i]);
	else
		snprintf(text, SCALED_ROOM, "%.*f%s", digits_after(fabs(value), s->digits), value,
			s->units[i]);
}

void scaled(uint64_t number, enum metric_unit unit, char text[SCALED_ROOM])
{
	if (unit == UNIT_COUNT && number < COUNT_PLAIN)
		snprintf(text, SCALED_ROOM, "%" PRIu64, number);
	else
		scaled_real((double)number / (unit == UNIT_PERCENT ? 100 : 1), unit, text);
}
