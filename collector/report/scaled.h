/* SPDX-License-Identifier: MIT */
/* Numbers for people: at most five digits and a unit. */
#ifndef REPORT_SCALED_H
#define REPORT_SCALED_H

#include <stdint.h>

#include "metric.h"

#define SCALED_ROOM 32

/* number in unit (percent: in hundredths): "42", "1.234 M", "12.34 ms", "3.50 KiB", "99.50 %" */
void scaled(uint64_t number, enum metric_unit unit, char text[SCALED_ROOM]);
/* The same of a number with a fraction, in unit (percent: as it is). */
void scaled_real(double number, enum metric_unit unit, char text[SCALED_ROOM]);

#endif
