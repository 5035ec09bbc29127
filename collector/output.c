/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "schema.h"

#define NAME_ROOM 64

/* A recording starts with a map whose first key is "format". */
static bool looks_like_recording(int fd)
{
	static const char start[] = "\xa6"
				    "format\xa6" SCHEMA_FORMAT;
	char head[32];
	ssize_t n = sys_pread(fd, head, sizeof(head), 0);

	return n == 0 || (n > 0 && memmem(head, (size_t)n, start, sizeof(start) - 1));
}

static int explain(char ret_error[OUTPUT_ERROR_ROOM], const char *what, const char *path, int err)
{
	snprintf(ret_error, OUTPUT_ERROR_ROOM, "cannot %s %s: %s", what, path, strerror(-err));
	return err;
}

/* Moves an earlier recording out of the way. */
static int keep_old(const char *path, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *old;
	int fd, err = 0;

	fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return explain(ret_error, "replace", path, fd);
	if (!looks_like_recording(fd)) {
		snprintf(ret_error, OUTPUT_ERROR_ROOM,
			"%s exists and is not a recording; it is not overwritten, choose another "
			"name with -o",
			path);
		err = -EEXIST;
	}
	close(fd);
	if (err < 0)
		return err;
	if (asprintf(&old, "%s.old", path) < 0)
		return -ENOMEM;
	err = SYS_RESULT(rename(path, old));
	free(old);
	return err < 0 ? explain(ret_error, "replace", path, err) : 0;
}

static void give_to_folder_owner(int fd, const char *path)
{
	char *copy = strdup(path);
	struct stat st;

	if (geteuid() == 0 && copy && stat(dirname(copy), &st) == 0 && st.st_uid != 0 &&
		fchown(fd, st.st_uid, st.st_gid) < 0)
		errno = 0; /* it stays root's, which is no reason to fail */
	free(copy);
}

/* The name's last component, with what would be awkward in a file name replaced. */
static char *default_path(const char *name, pid_t pid)
{
	const char *base = strrchr(name, '/');
	char clean[NAME_ROOM];
	char *path;
	size_t n = 0;

	for (const char *c = base ? base + 1 : name; *c && n + 1 < sizeof(clean); c++)
		clean[n++] = (unsigned char)*c <= ' ' || *c == 0x7f ? '_' : *c;
	clean[n] = '\0';
	return asprintf(&path, "jphase-%s-%d.msgpack", clean, pid) < 0 ? NULL : path;
}

static int open_path(const char *path, char ret_error[OUTPUT_ERROR_ROOM])
{
	struct stat st;
	int fd, err;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		fd = sys_open(path, O_WRONLY, 0);
		return fd < 0 ? explain(ret_error, "write", path, fd) : fd;
	}
	for (;;) {
		fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
		if (fd != -EEXIST)
			break;
		err = keep_old(path, ret_error);
		if (err < 0)
			return err;
	}
	if (fd < 0)
		return explain(ret_error, "write", path, fd);
	give_to_folder_owner(fd, path);
	flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

int output_open(const char *path, const char *name, pid_t pid, char **ret_path,
	char ret_error[OUTPUT_ERROR_ROOM])
{
	char *chosen = path ? strdup(path) : default_path(name, pid);
	int fd;

	if (!chosen)
		return -ENOMEM;
	fd = open_path(chosen, ret_error);
	if (fd < 0) {
		free(chosen);
		return fd;
	}
	*ret_path = chosen;
	return fd;
}
