/* SPDX-License-Identifier: MIT */
/*
 * Where cgroup v2 is mounted and where a process's group lies in it.  All but
 * the closers are pure functions over the text of /proc/PID/mountinfo or
 * /proc/PID/cgroup.
 */
#ifndef READERS_MOUNTS_H
#define READERS_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

struct cgroup_mount {
	char *path; /* the mount point */
	char *root; /* the group that is mounted there: "/" but for containers */
};

/*
 * The cgroup v2 mount, which on a hybrid host is a subfolder; one that shows
 * the whole hierarchy is preferred.  -ENOENT: there is none.
 */
int mounts_find_cgroup2(const char *mountinfo, size_t size, struct cgroup_mount *ret);
void cgroup_mount_clear(struct cgroup_mount *mount);

/*
 * Whether the file system that is mounted last at `path` has the super block
 * option `name`, as "hidepid=2"; its value, cut to room, is then in ret_value.
 */
bool mounts_option(const char *mountinfo, size_t size, const char *path, const char *name,
	char *ret_value, size_t room);

/* The v2 group of a process as /proc/PID/cgroup tells it.  -ENOENT: it has none. */
int mounts_group(const char *cgroup, size_t size, char **ret_group);

/* The controller is bound to cgroup v1 (a hybrid or v1 host). */
bool mounts_controller_is_v1(const char *cgroup, size_t size, const char *controller);

/*
 * The folder of a group below the mount.  -EXDEV: it is outside of what the
 * mount or our cgroup namespace shows.
 */
int mounts_group_path(const struct cgroup_mount *mount, const char *group, char **ret_path);

#endif
