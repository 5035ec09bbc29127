/* SPDX-License-Identifier: MIT */
/* Strings as JSON has them. */
#ifndef REPORT_JSON_TEXT_H
#define REPORT_JSON_TEXT_H

#include <stdio.h>

/* In quotes, escaped; NULL: null.  Bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *s);

#endif
