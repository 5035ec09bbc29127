/* SPDX-License-Identifier: MIT */
/* Folds the records of one recording into the rows of a model. */
#ifndef REPORT_FOLD_H
#define REPORT_FOLD_H

#include "decoder.h"
#include "report/model.h"

struct fold;

/* run is an index into the model's. */
int fold_open(struct model *m, size_t run, struct fold **ret);

/* For a decoder, with the fold as its data. */
extern const struct decoder_ops fold_ops;

/* The recording's end, while its decoder is still open. */
int fold_finish(struct fold *f);

struct fold *fold_close(struct fold *f);

#endif
