/* SPDX-License-Identifier: MIT */
/* Regions of the same names in the same nesting as one. */
#ifndef REPORT_TREE_H
#define REPORT_TREE_H

#include "report/model.h"

/* Makes the model's nodes; apart: each thread has its own. */
int tree_build(struct model *m, bool apart);

/* The one after it, where each stands before its children; MODEL_NONE: it is the last. */
size_t tree_next(const struct model *m, size_t node);

#endif
