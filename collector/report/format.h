/* SPDX-License-Identifier: MIT */
/* The ways a model can be shown. */
#ifndef REPORT_FORMAT_H
#define REPORT_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/model.h"

struct report_options {
	enum model_by by;
	bool all;     /* columns, also those that are of little use to most */
	bool no_null; /* leave out values that were not counted; JSON and CSV */
	bool colour;
	unsigned width; /* of the terminal */
};

struct report_format {
	/*
	 * The model has at least one run.  0 or -ENOMEM; errors of writing show in the
	 * stream's state.
	 */
	int (*render)(const struct model *m, const struct report_options *o, FILE *out);
};

extern const struct report_format table_format;
extern const struct report_format json_format;
extern const struct report_format csv_format;
extern const struct report_format csv_regions_format;
extern const struct report_format trace_format;
extern const struct report_format quality_format; /* these: not in the list of formats */
extern const struct report_format stats_format;
extern const struct report_format stats_csv_format;
extern const struct report_format stats_json_format;

#endif
