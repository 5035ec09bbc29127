/* SPDX-License-Identifier: MIT */
/* Reports against tests/golden/NAME; JPHASE_GOLDEN=write makes those files anew. */
#ifndef SUPPORT_GOLDEN_H
#define SUPPORT_GOLDEN_H

#include "report/format.h"

/* To be freed. */
char *golden_render(const struct model *m, const struct report_format *format, enum model_by by,
	unsigned width);
void golden_check(const struct model *m, const struct report_format *format, enum model_by by,
	unsigned width, const char *name);

#endif
