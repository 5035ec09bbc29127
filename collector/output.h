/* SPDX-License-Identifier: MIT */
/* The file that a recording goes to. */
#ifndef COLLECTOR_OUTPUT_H
#define COLLECTOR_OUTPUT_H

#include <sys/types.h>

#define OUTPUT_ERROR_ROOM 512

/*
 * Opens path for a new recording (NULL: jphase-NAME-PID.msgpack) and locks
 * it.  An existing recording is kept as path.old, anything else is not
 * overwritten.  A recording made by root belongs to the folder's owner.  The
 * name used goes to ret_path (allocated).  Returns a descriptor, or -errno
 * with a sentence in ret_error.
 */
int output_open(const char *path, const char *name, pid_t pid, char **ret_path,
	char ret_error[OUTPUT_ERROR_ROOM]);

#endif
