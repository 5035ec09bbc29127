/* SPDX-License-Identifier: MIT */
/* What happened when: the marks of a model. */
#ifndef REPORT_MARK_TABLE_H
#define REPORT_MARK_TABLE_H

#include <stdio.h>

#include "report/format.h"

/* Nothing where there are none; with options->all every one.  0 or -ENOMEM. */
int mark_table_print(const struct model *m, const struct report_options *o, FILE *out);

#endif
