/* SPDX-License-Identifier: MIT */
/* What stands below a table: the marks in it, and what to know of its numbers. */
#ifndef REPORT_LEGEND_H
#define REPORT_LEGEND_H

#include "report/format.h"

/* shown: for each column, whether the table has it; shares: whether it has those of regions. */
void legend_print(const struct model *m, const struct report_options *o, const bool *shown,
	bool shares, FILE *out);

#endif
