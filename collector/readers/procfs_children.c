/* SPDX-License-Identifier: MIT */
#include "readers/procfs_children.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "metric.h"
#include "readers/procfs_files.h"
#include "readers/textfile.h"

static int edge_add(struct edges *e, pid_t pid, pid_t parent)
{
	struct edge *grown;

	/* Room for the next power of two at each one. */
	if ((e->count & (e->count - 1)) == 0) {
		grown = reallocarray(e->edge, e->count ? 2 * e->count : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		e->edge = grown;
	}
	e->edge[e->count++] = (struct edge){ pid, parent };
	return 0;
}

/* "12 34 " */
static int children_add(struct edges *e, const char *text, pid_t parent)
{
	char *end;
	int err = 0;

	for (long pid; err == 0 && (pid = strtol(text, &end, 10)) > 0; text = end)
		err = edge_add(e, (pid_t)pid, parent);
	return err;
}

/* The kernel lists them for each thread, where it was built to. */
static int children_of(const char *proc_root, pid_t pid, struct edges *e)
{
	char path[4096], text[4096];
	struct dirent *entry;
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%.4000s/%d/task", proc_root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (err >= 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		err = textfile_read(text, sizeof(text), "%s/%s/children", path, entry->d_name);
		if (err > 0)
			err = children_add(e, text, pid);
	}
	closedir(dir);
	return MIN(err, 0);
}

static pid_t parent_of(const char *proc_root, pid_t pid)
{
	struct procfs_files files = { .error = { 0 } };
	uint64_t raw[RAW_COUNT];

	files.fd[FILE_STAT] = procfs_file_open(proc_root, FILE_STAT, pid);
	files.error[FILE_STAT] = MIN(files.fd[FILE_STAT], 0);
	if (procfs_file_read(&files, FILE_STAT, raw) < 0)
		raw[RAW_PARENT] = VALUE_ABSENT;
	sys_close(files.fd[FILE_STAT]);
	return raw[RAW_PARENT] == VALUE_ABSENT ? 0 : (pid_t)raw[RAW_PARENT];
}

int children_all(const char *proc_root, struct edges *e)
{
	DIR *dir = opendir(proc_root);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (err == 0 && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			err = edge_add(e, pid, parent_of(proc_root, pid));
	}
	closedir(dir);
	return err;
}

bool children_below(const char *proc_root, pid_t pid, size_t most, struct edges *e)
{
	int err = children_of(proc_root, pid, e);

	for (size_t i = 0; i < e->count && i < most && err == 0; i++)
		(void)children_of(proc_root, e->edge[i].pid, e);
	return err == 0;
}
