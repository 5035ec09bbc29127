/* SPDX-License-Identifier: MIT */
/* Values of several phases or regions as one. */
#ifndef REPORT_MERGE_H
#define REPORT_MERGE_H

#include "report/model.h"

/*
 * into begins as VALUE_MISSING.  v is of that much time: a mean weighs it
 * against the time of those that were counted so far.
 */
void value_merge(struct value *into, const struct value *v, const struct column *column,
	uint64_t duration_ns);

#endif
