/* SPDX-License-Identifier: MIT */
/* What markers cost, held against phases and regions. */
#ifndef REPORT_COMPENSATION_H
#define REPORT_COMPENSATION_H

#include "report/model.h"

/*
 * Marks phases that are too short for their markers; with the model's
 * compensate it also takes the cost of markers away from phases and regions.
 * Before rows become one.  -ENOMEM or 0.
 */
int compensation_apply(struct model *m);

#endif
