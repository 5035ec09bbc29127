/* SPDX-License-Identifier: MIT */
/* Values as cells of a table. */
#ifndef REPORT_CELLS_H
#define REPORT_CELLS_H

#include "report/grid.h"
#include "report/model.h"

/* "-": not counted; with the marks that the legend explains. */
void cell_value(const struct value *v, enum metric_unit unit, char text[GRID_CELL]);
void cell_number(uint64_t number, char text[GRID_CELL]);
/* part of whole in percent; "-" of nothing. */
void cell_share(uint64_t part, uint64_t whole, char text[GRID_CELL]);

/* How names of nested regions are indented: less where they are deep, and at last no more. */
struct nesting {
	unsigned step;
	unsigned most;
};

struct nesting nesting_of(const struct model *m, unsigned width);
/* The name of the node, behind its depth where that is not seen any more. */
void cell_nested(const struct nesting *nesting, const struct region_node *n, char text[GRID_CELL]);

#endif
