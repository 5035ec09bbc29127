/* SPDX-License-Identifier: MIT */
/*
 * The group that the user wants the program measured in: made for it, or there
 * already.  The collector itself never enters it.
 */
#ifndef READERS_CGROUP_OWN_H
#define READERS_CGROUP_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "readers/reader.h"

#define CGROUP_OWN_NOTES     6
#define CGROUP_OWN_NOTE_ROOM 512

struct cgroup_own;

struct cgroup_choice {
	const char *where; /* "create", "create=NAME" or a path */
	bool attach;       /* into an existing group too */
};

/*
 * Finds the group, or makes it below that of pid, or where NAME has a slash,
 * below the root, and enables the controllers it may.  env's cgroup_root
 * counts, its cgroup_path does not.
 */
int cgroup_own_open(const struct reader_env *env, const struct cgroup_choice *choice, pid_t pid,
	struct cgroup_own **ret, char ret_reason[READER_REASON_ROOM]);

/* Its folder, as a path and as a descriptor. */
const char *cgroup_own_path(const struct cgroup_own *o);
int cgroup_own_fd(const struct cgroup_own *o);

/* The program is to be inside; the group was made just now, so nobody else is. */
bool cgroup_own_takes(const struct cgroup_own *o);
bool cgroup_own_is_new(const struct cgroup_own *o);

/* Moves the process with all its threads into the group. */
int cgroup_own_attach(const struct cgroup_own *o, pid_t pid, char ret_reason[READER_REASON_ROOM]);

/* What the user should know of it, one by one; NULL: that is all. */
const char *cgroup_own_note(const struct cgroup_own *o, size_t index);

/*
 * Moves who is still inside back to where the program came from and removes a
 * group that we made, once.  -EBUSY: not all would go; ret_reason says who
 * stays.
 */
int cgroup_own_leave(struct cgroup_own *o, char ret_reason[READER_REASON_ROOM]);

/* Leaves what is there.  Takes NULL, returns NULL. */
struct cgroup_own *cgroup_own_close(struct cgroup_own *o);

#endif
