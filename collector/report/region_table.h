/* SPDX-License-Identifier: MIT */
/* The tree of regions, as a table. */
#ifndef REPORT_REGION_TABLE_H
#define REPORT_REGION_TABLE_H

#include "report/format.h"

/* shown: for each column, whether it is to be seen where regions have it.  0 or -ENOMEM. */
int region_table_print(
	const struct model *m, const struct report_options *o, const bool *shown, FILE *out);

#endif
