/* SPDX-License-Identifier: MIT */
/* Which of a model's columns are shown to people. */
#ifndef REPORT_COLUMNS_H
#define REPORT_COLUMNS_H

#include "report/format.h"

/* Those shown beside the counters of perf without being asked for; NULL: that is all. */
const char *columns_usual(size_t index);

/* shown: one for each column. */
void columns_choose(const struct model *m, const struct report_options *o, bool *shown);

/* What was asked for and cannot be had is told of also where its column is left out. */
bool column_is_told_of(const struct model *m, const bool *shown, size_t column);

#endif
