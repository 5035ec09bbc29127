/* SPDX-License-Identifier: MIT */
/* The folder of a process's cgroup v2 and of the root, and who lives there. */
#ifndef READERS_CGROUP_PLACE_H
#define READERS_CGROUP_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/mounts.h"
#include "readers/reader.h"

struct cgroup_place {
	char *root_path;  /* where cgroup v2 is mounted */
	char *group_path; /* that of env, or the process's own; equal where that is the root */
};

/* On an error ret_reason says why and what to do. */
int cgroup_mount_find(const struct reader_env *env, struct cgroup_mount *ret,
	char ret_reason[READER_REASON_ROOM]);
int cgroup_place_find(const struct reader_env *env, pid_t pid, struct cgroup_place *ret,
	char ret_reason[READER_REASON_ROOM]);
/* The folder of the process's own group, whatever env chose; to be freed.  -EXDEV: not mounted. */
int cgroup_place_of_process(const struct reader_env *env, pid_t pid, char **ret_path,
	char ret_reason[READER_REASON_ROOM]);

/* Is the group the folder or below it? */
bool cgroup_place_holds(const char *folder, const char *group);

void cgroup_place_clear(struct cgroup_place *place);

/*
 * Processes other than pid and jphase's own in the group and below.
 * -EOPNOTSUPP: a threaded group.
 */
int cgroup_place_others(const struct cgroup_place *place, pid_t pid, uint64_t *ret);

#endif
