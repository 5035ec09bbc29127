/* SPDX-License-Identifier: MIT */
/* Values of several phases or regions as one. */
#ifndef REPORT_MERGE_H
#define REPORT_MERGE_H

#include "report/model.h"

/* into begins as VALUE_MISSING.  share: of v in the time of all so far. */
void value_merge(
	struct value *into, const struct value *v, const struct column *column, double share);

/* Of the second in the time of both. */
static inline double time_share(uint64_t first_ns, uint64_t second_ns)
{
	uint64_t both = first_ns + second_ns;

	return both ? (double)second_ns / (double)both : 0.5;
}

#endif
