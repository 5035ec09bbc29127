/* SPDX-License-Identifier: MIT */
/* Fields of CSV with semicolons. */
#ifndef REPORT_CSV_TEXT_H
#define REPORT_CSV_TEXT_H

#include <stdio.h>

/*
 * Quoted only where it holds a semicolon, a quote, a line's end, or a blank at
 * its ends; NULL: empty.  Bytes that are not UTF-8 become U+FFFD.
 */
void csv_field(FILE *out, const char *s);

#endif
