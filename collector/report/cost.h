/* SPDX-License-Identifier: MIT */
/*
 * What markers cost, from the empty phases and regions that a process of the
 * collector made for that.
 */
#ifndef REPORT_COST_H
#define REPORT_COST_H

#include "report/phases.h"

/* Gives the run its costs and takes the regions of such processes out of the model. */
int cost_take(struct fold *f);

#endif
