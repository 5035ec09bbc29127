/* SPDX-License-Identifier: MIT */
/* What stands above a table: which run it is of. */
#ifndef REPORT_TITLE_H
#define REPORT_TITLE_H

#include "report/format.h"

void title_print(const struct run *run, const struct report_options *o, FILE *out);

#endif
