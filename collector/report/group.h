/* SPDX-License-Identifier: MIT */
/* Several rows as one. */
#ifndef REPORT_GROUP_H
#define REPORT_GROUP_H

#include "report/model.h"

/*
 * Replaces the rows by one for each name (over all runs) or for each process,
 * in the order of their first.
 */
int group_rows(struct model *m, enum model_by by);

/* Replaces the rows by one for each thread with regions: what its outermost ones counted. */
int group_threads(struct model *m);

void row_clear(struct row *row);

#endif
