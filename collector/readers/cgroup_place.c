/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cgroup_walk.h"
#include "readers/kfile.h"
#include "readers/mounts.h"
#include "readers/reason.h"

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && str_eq(text + size - end_size, end);
}

static int load(const char *root, const char *file, char **ret_text, size_t *ret_size)
{
	char *path;
	int err;

	if (asprintf(&path, "%s/%s", root, file) < 0)
		return -ENOMEM;
	err = kfile_load(path, ret_text, ret_size);
	free(path);
	return err;
}

/* "/a" of "/mnt" and "/mnt/a"; NULL: it is not below. */
static const char *path_below(const char *path, const char *folder)
{
	size_t length = str_eq(folder, "/") ? 0 : strlen(folder);

	if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

/* The group that is seen at a folder which the user chose. */
static int root_in(const struct cgroup_mount *mount, const char *folder, char **ret)
{
	const char *below = mount->path ? path_below(folder, mount->path) : NULL;
	int err = 0;

	if (!below || !*below)
		*ret = strdup(below ? mount->root : "/");
	else if (asprintf(ret, "%s%s", str_eq(mount->root, "/") ? "" : mount->root, below) < 0)
		*ret = NULL;
	return *ret ? err : -ENOMEM;
}

/* The user knows where to look: another mount, a part of one, or a copy of files. */
static int chosen_mount(const struct reader_env *env, struct cgroup_mount *ret)
{
	struct cgroup_mount mount = { 0 }, chosen = { .path = strdup(env->cgroup_root) };
	char *text = NULL;
	size_t size;
	int err;

	if (load(env->proc_root, "self/mountinfo", &text, &size) == 0)
		(void)mounts_find_cgroup2(text, size, &mount);
	free(text);
	err = chosen.path ? root_in(&mount, chosen.path, &chosen.root) : -ENOMEM;
	cgroup_mount_clear(&mount);
	if (err < 0) {
		cgroup_mount_clear(&chosen);
		return err;
	}
	*ret = chosen;
	return 0;
}

int cgroup_mount_find(
	const struct reader_env *env, struct cgroup_mount *ret, char ret_reason[READER_REASON_ROOM])
{
	char *text;
	size_t size;
	int err;

	if (env->cgroup_root) {
		reason_set(ret_reason, "out of memory");
		return chosen_mount(env, ret);
	}
	err = load(env->proc_root, "self/mountinfo", &text, &size);

	if (err < 0) {
		reason_set(ret_reason, "cannot read %s/self/mountinfo: %s", env->proc_root,
			strerror(-err));
		return err;
	}
	err = mounts_find_cgroup2(text, size, ret);
	free(text);
	if (err < 0)
		reason_set(ret_reason,
			"cgroup v2 is not mounted: boot with systemd.unified_cgroup_hierarchy=1, or "
			"sudo mkdir -p /mnt/cgroup && sudo mount -t cgroup2 none /mnt/cgroup");
	return err;
}

static int group_find(
	const struct reader_env *env, pid_t pid, char **ret, char ret_reason[READER_REASON_ROOM])
{
	char file[32];
	char *text;
	size_t size;
	int err;

	snprintf(file, sizeof(file), "%d/cgroup", pid);
	err = load(env->proc_root, file, &text, &size);
	if (err < 0) {
		reason_set(ret_reason, "cannot read %s/%s: %s", env->proc_root, file,
			err == -ENOENT ? "the process has ended" : strerror(-err));
		return err;
	}
	err = mounts_group(text, size, ret);
	free(text);
	if (err < 0)
		reason_set(ret_reason, "the process is in no cgroup v2: boot with "
				       "systemd.unified_cgroup_hierarchy=1");
	return err;
}

static int group_check(const char *path, const char *group, char ret_reason[READER_REASON_ROOM])
{
	int fd = sys_open_dir(path);

	sys_close(fd);
	if (fd >= 0)
		return 0;
	if (fd == -ENOENT && ends_with(group, " (deleted)"))
		reason_set(ret_reason,
			"the process's cgroup has been removed: move it to another one");
	else
		reason_set(ret_reason, "cannot open the cgroup %.120s: %s", path, strerror(-fd));
	return fd;
}

/* The folder of the process's own group. */
static int process_group(const struct reader_env *env, const struct cgroup_mount *mount, pid_t pid,
	char **ret, char ret_reason[READER_REASON_ROOM])
{
	char *group, *path = NULL;
	int err;

	err = group_find(env, pid, &group, ret_reason);
	if (err < 0)
		return err;
	err = mounts_group_path(mount, group, &path);
	if (err == -EXDEV)
		reason_set(ret_reason,
			"the process's cgroup %.50s is outside of what is mounted here (%.50s): run "
			"jphase in the cgroup namespace of the program (docker run --cgroupns=host)",
			group, mount->root);
	if (err == 0)
		err = group_check(path, group, ret_reason);
	free(group);
	if (err < 0) {
		free(path);
		return err;
	}
	*ret = path;
	return 0;
}

int cgroup_place_find(const struct reader_env *env, pid_t pid, struct cgroup_place *ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_mount mount = { 0 };
	char *path = NULL;
	int err;

	err = cgroup_mount_find(env, &mount, ret_reason);
	if (err < 0)
		return err;
	if (env->cgroup_path) {
		path = strdup(env->cgroup_path);
		err = path ? group_check(path, path, ret_reason) : -ENOMEM;
	} else {
		err = process_group(env, &mount, pid, &path, ret_reason);
	}
	if (err < 0)
		goto out;

	*ret = (struct cgroup_place){ .root_path = mount.path, .group_path = path };
	mount.path = NULL;
	path = NULL;
out:
	free(path);
	cgroup_mount_clear(&mount);
	return err;
}

int cgroup_place_of_process(const struct reader_env *env, pid_t pid, char **ret_path,
	char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_mount mount = { 0 };
	int err = cgroup_mount_find(env, &mount, ret_reason);

	if (err == 0)
		err = process_group(env, &mount, pid, ret_path, ret_reason);
	cgroup_mount_clear(&mount);
	return err;
}

bool cgroup_place_holds(const char *folder, const char *group)
{
	return path_below(group, folder) != NULL;
}

void cgroup_place_clear(struct cgroup_place *place)
{
	free(place->root_path);
	free(place->group_path);
	*place = (struct cgroup_place){ 0 };
}

struct others {
	pid_t pid;
	struct stat jphase; /* its program; st_ino 0: not known */
	uint64_t count;
};

/* The collector, and who started it. */
static bool is_jphase(const struct others *others, pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return others->jphase.st_ino && stat(path, &st) == 0 &&
	       st.st_ino == others->jphase.st_ino && st.st_dev == others->jphase.st_dev;
}

static void count_other(pid_t pid, void *arg)
{
	struct others *others = arg;

	others->count += pid != others->pid && !is_jphase(others, pid);
}

/* A group that is just being removed or is threaded adds nothing. */
static void count_others(const char *folder, void *arg)
{
	(void)cgroup_processes(folder, count_other, arg);
}

int cgroup_place_others(const struct cgroup_place *place, pid_t pid, uint64_t *ret)
{
	struct others others = { .pid = pid };
	int err;

	if (stat("/proc/self/exe", &others.jphase) < 0)
		others.jphase.st_ino = 0;
	err = cgroup_processes(place->group_path, count_other, &others);
	if (err < 0)
		return err;
	others.count = 0;
	cgroup_walk(place->group_path, count_others, &others);
	*ret = others.count;
	return 0;
}
