/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal/util.h"
#include "readers/kfile.h"
#include "readers/span.h"

#define DEPTH_MAX 64

static void walk(
	const char *folder, int depth, void (*fn)(const char *folder, void *arg), void *arg)
{
	DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path;

		if (entry->d_type != DT_DIR || str_eq(entry->d_name, ".") ||
			str_eq(entry->d_name, ".."))
			continue;
		if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
			break;
		walk(path, depth + 1, fn, arg);
		free(path);
	}
	if (dir)
		closedir(dir);
	fn(folder, arg);
}

void cgroup_walk(const char *folder, void (*fn)(const char *folder, void *arg), void *arg)
{
	walk(folder, 0, fn, arg);
}

int cgroup_processes(const char *folder, void (*fn)(pid_t pid, void *arg), void *arg)
{
	struct span rest, line;
	char *path, *text;
	uint64_t pid;
	size_t size;
	int err;

	if (asprintf(&path, "%s/cgroup.procs", folder) < 0)
		return -ENOMEM;
	err = kfile_load(path, &text, &size);
	free(path);
	if (err < 0)
		return err;
	rest = span_of(text, size);
	while (span_line(&rest, &line))
		if (span_number(line, &pid))
			fn((pid_t)pid, arg);
	free(text);
	return 0;
}
