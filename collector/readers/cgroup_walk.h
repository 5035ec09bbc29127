/* SPDX-License-Identifier: MIT */
/* The groups below a group and the processes in them. */
#ifndef READERS_CGROUP_WALK_H
#define READERS_CGROUP_WALK_H

#include <sys/types.h>

/* Calls fn for the folder and each below it, the lowest first.  Some may come and go meanwhile. */
void cgroup_walk(const char *folder, void (*fn)(const char *folder, void *arg), void *arg);

/* Calls fn for each process of this one group.  -EOPNOTSUPP: a threaded group tells none. */
int cgroup_processes(const char *folder, void (*fn)(pid_t pid, void *arg), void *arg);

#endif
