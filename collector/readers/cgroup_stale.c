/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_stale.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "sibling.h"

/*
 * In another pid namespace its maker may live unseen.  It puts its program
 * there at once, and then the kernel keeps the group.
 */
#define OLD_S 60

/* As readers/cgroup_own.c names them. */
static bool is_ours(const char *name, int *ret_pid)
{
	static const char *const patterns[] = { "jphase-%d%n", "jphase-aside-%d%n" };

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		int end = 0;

		if (sscanf(name, patterns[i], ret_pid, &end) == 1 && end && !name[end])
			return true;
	}
	return false;
}

static bool is_stale(int folder, const char *name)
{
	struct stat st;
	int pid;

	return is_ours(name, &pid) && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode) && time(NULL) - st.st_mtime > OLD_S && !sibling_lives(pid);
}

void cgroup_stale_remove(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (is_stale(dirfd(dir), entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
}
