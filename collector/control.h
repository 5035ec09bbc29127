/* SPDX-License-Identifier: MIT */
/*
 * The control thread: the socket that processes register at, the ends of
 * processes, signals, and the launcher.  It hands everything to the marker
 * thread as jobs.
 */
#ifndef COLLECTOR_CONTROL_H
#define COLLECTOR_CONTROL_H

#include <stdint.h>

#include "jobs.h"

struct control;

/*
 * Makes an abstract socket (its address, without the leading NUL, goes to
 * ret_address) and starts the thread.  launcher is the socket of `jphase run`,
 * or -1; it stays the caller's.
 */
int control_start(struct jobs *jobs, const uint8_t token[JPHASE_TOKEN_BYTES], int launcher,
	char ret_address[JPHASE_SESSION_ROOM], struct control **ret);

/* Tells by JOB_GONE when the process behind the pidfd has ended.  Any thread. */
int control_watch(struct control *c, int pidfd, uint64_t index);

/* Ends the thread.  Takes NULL, returns NULL. */
struct control *control_stop(struct control *c);

/* What `jphase run` tells when its command has ended; until then it may send markers. */
struct control_command_end {
	int32_t status; /* as wait() gives it */
	uint32_t lost;  /* tokens that could not be sent */
	uint64_t user_us;
	uint64_t system_us;
	uint64_t peak_bytes;
};

#endif
