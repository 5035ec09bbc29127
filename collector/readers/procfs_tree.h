/* SPDX-License-Identifier: MIT */
/*
 * What a process has started, followed by a thread of its own: finding it takes
 * a walk through /proc, and a proportional set size takes the kernel a walk
 * through all page tables.  Neither must keep a marker waiting.
 */
#ifndef READERS_PROCFS_TREE_H
#define READERS_PROCFS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/procfs_files.h"
#include "readers/reader.h"

struct procfs_tree;

/*
 * The tree of pid, without pid.  With env's interval a thread keeps it up to
 * date, less often the longer that takes; else procfs_tree_update() does.
 */
int procfs_tree_open(const struct reader_env *env, pid_t pid, struct procfs_tree **ret);

/* Looks for processes that are new.  Any thread. */
void procfs_tree_update(struct procfs_tree *t);

/*
 * Adds the numbers of all processes of the tree to raw, which are the first
 * process's and were read before.  What one had used before the tree was opened
 * is left out; what one had used when it ended stays in.  Without gauges_only
 * it is a boundary.
 */
void procfs_tree_add(struct procfs_tree *t, bool gauges_only, uint64_t raw[RAW_COUNT]);

/*
 * The proportional set size of all, once for each time it was read since the
 * last boundary; else VALUE_ABSENT.
 */
uint64_t procfs_tree_take_pss(struct procfs_tree *t);

/* What makes the values too low from now on, told once; or NULL.  One thread alone. */
const char *procfs_tree_shortfall(struct procfs_tree *t);

/* Takes NULL, returns NULL; what the thread is busy with is freed when it is done. */
struct procfs_tree *procfs_tree_close(struct procfs_tree *t);

#endif
