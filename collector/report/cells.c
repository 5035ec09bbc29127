/* SPDX-License-Identifier: MIT */
#include "report/cells.h"

#include <inttypes.h>
#include <string.h>

#include "internal/util.h"
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

struct nesting nesting_of(const struct model *m, unsigned width)
{
	struct nesting n = { .step = 2, .most = (unsigned)grid_text_limit(width) / 3 };
	uint32_t deepest = 0;

	for (size_t i = 0; i < m->node_count; i++)
		deepest = MAX(deepest, m->nodes[i].depth);
	if (2 * (uint64_t)deepest > n.most)
		n.step = 1;
	return n;
}

void cell_nested(const struct nesting *nesting, const struct region_node *n, char text[GRID_CELL])
{
	uint64_t indent = (uint64_t)nesting->step * n->depth;

	if (indent <= nesting->most)
		snprintf(text, GRID_CELL, "%*s%s", (int)indent, "", n->name);
	else
		snprintf(text, GRID_CELL, "%*s%" PRIu32 ": %s", (int)nesting->most, "", n->depth,
			n->name);
}
