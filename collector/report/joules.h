/* SPDX-License-Identifier: MIT */
/*
 * What follows from energy: how exact it is, power, and an estimate of the
 * target's part in it.
 */
#ifndef REPORT_JOULES_H
#define REPORT_JOULES_H

#include "decoder.h"
#include "report/model.h"
#include "report/outputs.h"

struct joules;

/* Makes the columns beside those of the readers, which exist.  NULL: there is no energy. */
int joules_open(
	struct model *m, struct run *run, const struct decoded_header *header, struct joules **ret);

/* Takes NULL.  One more than the largest index of its columns. */
size_t joules_columns(const struct joules *j);

/* Takes NULL.  The readers' values are there. */
void joules_fill(const struct joules *j, const struct interval *interval, struct value *values);

struct joules *joules_close(struct joules *j);

#endif
