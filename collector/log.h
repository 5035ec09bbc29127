/* SPDX-License-Identifier: MIT */
/* What commands say to people, on standard error, each line beginning "jphase: ". */
#ifndef COLLECTOR_LOG_H
#define COLLECTOR_LOG_H

/* One clear sentence and, where there is one, the next step. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like say, but not with --quiet. */
void inform(const char *format, ...) __attribute__((format(printf, 1, 2)));

void log_set_quiet(int quiet);

#endif
