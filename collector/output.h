/* SPDX-License-Identifier: MIT */
/*
 * The file that a recording goes to.  It is made under a name of its own and
 * gets its place when the session stands: whatever fails before that leaves
 * everything as it was.
 */
#ifndef COLLECTOR_OUTPUT_H
#define COLLECTOR_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#define OUTPUT_ERROR_ROOM 512

struct output {
	int fd;          /* locked; whoever writes takes it and leaves -1 */
	char *shown;     /* the name as the user knows it */
	int folder;      /* held, so that nobody can put another in its place */
	char *name;      /* in the folder */
	char *temporary; /* in the folder; NULL: nothing has to be moved */
};

/*
 * Opens a new recording for path (NULL: jphase-NAME-PID.msgpack).  An existing
 * recording will be kept as path.old; anything else, there or here, is not
 * overwritten, and no symbolic link is followed.  One that a session still
 * writes is waited for, 1 s at most, and then not touched: -EBUSY.  A recording
 * made by root belongs to the folder's owner.  On an error ret_error holds a
 * sentence.
 */
int output_open(const char *path, const char *name, pid_t pid, struct output *ret,
	char ret_error[OUTPUT_ERROR_ROOM]);

/* A pipe or a device: it was written as it is and cannot be read again. */
bool output_is_special(const struct output *o);

/* Gives it its place. */
int output_commit(struct output *o, char ret_error[OUTPUT_ERROR_ROOM]);

/* Frees; what has no place yet is removed. */
void output_close(struct output *o);

#endif
