/* SPDX-License-Identifier: MIT */
#include "report/cells.h"

#include <inttypes.h>
#include <string.h>

#include "report/scaled.h"

void cell_value(const struct value *v, enum metric_unit unit, char text[GRID_CELL])
{
	char number[SCALED_ROOM];

	if (v->state != VALUE_COUNTED) {
		strcpy(text, v->state == VALUE_NULL ? "-" : "");
		return;
	}
	scaled(v->number, unit, number);
	snprintf(text, GRID_CELL, "%s%s%s%s", v->flags & VALUE_SCALED ? "~" : "", number,
		v->without ? "*" : "", v->flags & VALUE_SHORT ? "?" : "");
}

void cell_number(uint64_t number, char text[GRID_CELL])
{
	snprintf(text, GRID_CELL, "%" PRIu64, number);
}

void cell_share(uint64_t part, uint64_t whole, char text[GRID_CELL])
{
	if (whole)
		snprintf(text, GRID_CELL, "%.1f %%", 100.0 * (double)part / (double)whole);
	else
		strcpy(text, "-");
}
