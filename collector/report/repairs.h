/* SPDX-License-Identifier: MIT */
/* What was wrong with how regions begin and end, in words. */
#ifndef REPORT_REPAIRS_H
#define REPORT_REPAIRS_H

#include <stdio.h>

#include "report/model.h"

/* Keeps the first few names; one without a name is only counted. */
void repair_add(struct repair *r, const char *name);

/* Its name in JSON: "crossed". */
const char *repair_key(enum repair_kind kind);

/* "2 ends without a begin (a, b), 1 never closed (c)", or nothing. */
void repairs_print(const struct run *run, FILE *out);

#endif
