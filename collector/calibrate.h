/* SPDX-License-Identifier: MIT */
/*
 * What a marker itself costs here, in this session's mode: after the last
 * target has ended, when nobody is disturbed, a small program makes empty phases
 * and regions as any other process of the session would.  The recording has
 * it as a process of the kind "calibration".
 */
#ifndef COLLECTOR_CALIBRATE_H
#define COLLECTOR_CALIBRATE_H

#include <stdbool.h>

#include "session.h"

/* True while it is under way: the session goes on until it has ended. */
bool calibrate(struct session *s, uint64_t now_ns);

/* Is that the program? */
bool calibrate_is(const struct session *s, pid_t pid);

#endif
