/* SPDX-License-Identifier: MIT */
/* Who is whose child, at one moment. */
#ifndef READERS_PROCFS_CHILDREN_H
#define READERS_PROCFS_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct edge {
	pid_t pid, parent;
};

struct edges {
	struct edge *edge; /* to be freed */
	size_t count;
};

/* Those below pid, of whom so many are asked for theirs.  False: the kernel does not list them. */
bool children_below(const char *proc_root, pid_t pid, size_t most, struct edges *e);

/* Elsewhere every process of the machine is asked for its parent.  -errno. */
int children_all(const char *proc_root, struct edges *e);

#endif
