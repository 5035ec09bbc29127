/* SPDX-License-Identifier: MIT */
/* What gauges were seen to be. */
#ifndef REPORT_RANGES_H
#define REPORT_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* least is VALUE_ABSENT while nothing was seen. */
struct range {
	uint64_t least;
	uint64_t most;
};

void ranges_clear(struct range *ranges, size_t count);
void ranges_merge(struct range *into, const struct range *from, size_t count);

#endif
