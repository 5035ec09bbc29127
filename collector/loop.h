/* SPDX-License-Identifier: MIT */
/* The marker thread. */
#ifndef COLLECTOR_LOOP_H
#define COLLECTOR_LOOP_H

#include "session.h"

/*
 * Takes markers and jobs until the session is over: no process maps it any
 * more, or the launched command has ended and the grace has passed, or it was
 * told to stop.  Then the recording is complete on disk and its lock released.
 */
void loop_run(struct session *s);

/*
 * For one second more: a process that was just then in exec may still
 * register.  True if one has, and the session goes on.
 */
bool loop_linger(struct session *s);

#endif
