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

/* A recording starts with a map whose first key is "format"; an empty file is none's loss. */
static bool looks_like_recording(const char *path)
{
	static const char start[] = "\xa6"
				    "format\xa6" SCHEMA_FORMAT;
	int fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
	char head[32];
	ssize_t n;

	if (fd < 0)
		return false;
	n = sys_pread(fd, head, sizeof(head), 0);
	close(fd);
	return n == 0 || (n > 0 && memmem(head, (size_t)n, start, sizeof(start) - 1));
}

static int explain(char ret_error[OUTPUT_ERROR_ROOM], const char *what, const char *path, int err)
{
	snprintf(ret_error, OUTPUT_ERROR_ROOM, "cannot %s %s: %s", what, path, strerror(-err));
	return err;
}

static int refuse(char ret_error[OUTPUT_ERROR_ROOM], const char *path)
{
	snprintf(ret_error, OUTPUT_ERROR_ROOM,
		"%s exists and is not a recording; it is not overwritten, choose another name "
		"with -o",
		path);
	return -EEXIST;
}

/* May what is there be moved out of the way? */
static int check_replaceable(const char *path, const char *shown, char ret_error[OUTPUT_ERROR_ROOM])
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : explain(ret_error, "write", shown, -errno);
	if (S_ISDIR(st.st_mode))
		return explain(ret_error, "write", shown, -EISDIR);
	return S_ISREG(st.st_mode) && looks_like_recording(path) ? 0 : refuse(ret_error, shown);
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

/* The working directory is left before the file gets its place. */
static char *absolute(const char *path)
{
	char *cwd, *joined;

	if (path[0] == '/')
		return strdup(path);
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return NULL;
	if (asprintf(&joined, "%s/%s", cwd, path) < 0)
		joined = NULL;
	free(cwd);
	return joined;
}

/* A device or a pipe that somebody reads: written as it is. */
static int open_special(const char *path, char ret_error[OUTPUT_ERROR_ROOM])
{
	int fd = sys_open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENXIO) {
		snprintf(ret_error, OUTPUT_ERROR_ROOM, "nobody reads from the pipe %s", path);
		return fd;
	}
	if (fd < 0)
		return explain(ret_error, "write", path, fd);
	fcntl(fd, F_SETFL, O_WRONLY);
	return fd;
}

static int check_places(const struct output *o, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *old, *shown;
	int err;

	err = check_replaceable(o->path, o->shown, ret_error);
	if (err < 0 || access(o->path, F_OK) < 0)
		return err;
	if (asprintf(&old, "%s.old", o->path) < 0)
		return -ENOMEM;
	shown = old + strlen(o->path) - strlen(o->shown);
	err = check_replaceable(old, shown, ret_error);
	free(old);
	return err;
}

static int open_temporary(struct output *o, pid_t pid, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *part;
	int fd, err;

	err = check_places(o, ret_error);
	if (err < 0)
		return err;
	if (asprintf(&part, "%s.%d.part", o->path, pid) < 0)
		return -ENOMEM;
	fd = sys_open(part, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0666);
	if (fd < 0) {
		free(part);
		return explain(ret_error, "write", o->shown, fd);
	}
	o->temporary = part;
	give_to_folder_owner(fd, o->path);
	flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

int output_open(const char *path, const char *name, pid_t pid, struct output *ret,
	char ret_error[OUTPUT_ERROR_ROOM])
{
	struct output o = { .fd = -1, .shown = path ? strdup(path) : default_path(name, pid) };
	struct stat st;
	int err = -ENOMEM;

	o.path = o.shown ? absolute(o.shown) : NULL;
	if (!o.path)
		goto fail;
	if (lstat(o.path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
		o.fd = err = open_special(o.path, ret_error);
	else
		o.fd = err = open_temporary(&o, pid, ret_error);
	if (err < 0)
		goto fail;
	*ret = o;
	return 0;

fail:
	o.fd = -1;
	output_close(&o);
	return err;
}

int output_commit(struct output *o, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *old;
	int err;

	if (!o->temporary)
		return 0;
	if (asprintf(&old, "%s.old", o->path) < 0)
		return -ENOMEM;
	err = SYS_RESULT(rename(o->path, old));
	free(old);
	if (err == 0 || err == -ENOENT)
		err = SYS_RESULT(rename(o->temporary, o->path));
	if (err < 0)
		return explain(ret_error, "write", o->shown, err);
	free(o->temporary);
	o->temporary = NULL;
	return 0;
}

void output_close(struct output *o)
{
	if (o->temporary)
		unlink(o->temporary);
	if (o->fd >= 0)
		close(o->fd);
	free(o->shown);
	free(o->path);
	free(o->temporary);
	*o = (struct output){ .fd = -1 };
}
