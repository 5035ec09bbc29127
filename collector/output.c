/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "schema.h"

#define NAME_ROOM 64

/* A session that has just ended is complete by then. */
#define LOCK_WAIT_NS  NSEC_PER_SEC
#define LOCK_RETRY_NS (5 * NSEC_PER_MSEC)

/* An empty file is none's loss. */
static bool looks_like_recording(int folder, const char *name)
{
	int fd = sys_openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	bool recording;

	if (fd < 0)
		return false;
	recording = schema_begins(fd) || (fstat(fd, &st) == 0 && st.st_size == 0);
	close(fd);
	return recording;
}

/* Its session holds a lock on it until it is complete. */
static bool is_being_written(int folder, const char *name)
{
	int fd = sys_openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	int err = fd < 0 ? fd : SYS_RESULT(flock(fd, LOCK_SH | LOCK_NB));

	sys_close(fd);
	return err == -EWOULDBLOCK;
}

static bool stays_being_written(int folder, const char *name)
{
	const struct timespec pause = ns_timespec(LOCK_RETRY_NS);
	uint64_t deadline = now_ns() + LOCK_WAIT_NS;

	while (is_being_written(folder, name)) {
		if (now_ns() >= deadline)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
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

static int refuse_busy(char ret_error[OUTPUT_ERROR_ROOM], const char *path)
{
	snprintf(ret_error, OUTPUT_ERROR_ROOM,
		"%s is still being written by another session; wait for its end, or choose another "
		"name with -o",
		path);
	return -EBUSY;
}

/* May what is there be moved out of the way? */
static int check_replaceable(
	int folder, const char *name, const char *shown, char ret_error[OUTPUT_ERROR_ROOM])
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : explain(ret_error, "write", shown, -errno);
	if (S_ISDIR(st.st_mode))
		return explain(ret_error, "write", shown, -EISDIR);
	if (!S_ISREG(st.st_mode) || !looks_like_recording(folder, name))
		return refuse(ret_error, shown);
	return stays_being_written(folder, name) ? refuse_busy(ret_error, shown) : 0;
}

static void give_to_folder_owner(const struct output *o, int fd)
{
	struct stat st;

	if (geteuid() == 0 && fstat(o->folder, &st) == 0 && st.st_uid != 0 &&
		fchown(fd, st.st_uid, st.st_gid) < 0)
		errno = 0; /* it stays root's, which is no reason to fail */
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
static int open_folder(struct output *o)
{
	const char *slash = strrchr(o->shown, '/');
	char *folder;

	o->name = strdup(slash ? slash + 1 : o->shown);
	folder = slash ? strndup(o->shown, (size_t)(slash - o->shown) + 1) : strdup(".");
	if (!o->name || !folder) {
		free(folder);
		return -ENOMEM;
	}
	o->folder = sys_open_dir(folder);
	free(folder);
	if (o->folder >= 0 && !*o->name)
		return -EISDIR;
	return MIN(o->folder, 0);
}

static char *old_name(const char *name)
{
	char *old;

	return asprintf(&old, "%s.old", name) < 0 ? NULL : old;
}

/* A device or a pipe that somebody reads: written as it is. */
static int open_special(const struct output *o, char ret_error[OUTPUT_ERROR_ROOM])
{
	int fd = sys_openat(o->folder, o->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd == -ENXIO) {
		snprintf(ret_error, OUTPUT_ERROR_ROOM, "nobody reads from the pipe %s", o->shown);
		return fd;
	}
	if (fd < 0)
		return explain(ret_error, "write", o->shown, fd);
	fcntl(fd, F_SETFL, O_WRONLY);
	return fd;
}

static int check_places(const struct output *o, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *old = old_name(o->name), *shown = old_name(o->shown);
	int err = old && shown ? 0 : -ENOMEM;

	if (err == 0)
		err = check_replaceable(o->folder, o->name, o->shown, ret_error);
	if (err == 0 && faccessat(o->folder, o->name, F_OK, 0) == 0)
		err = check_replaceable(o->folder, old, shown, ret_error);
	free(old);
	free(shown);
	return err;
}

static int open_temporary(struct output *o, pid_t pid, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *part;
	int fd, err;

	err = check_places(o, ret_error);
	if (err < 0)
		return err;
	if (asprintf(&part, "%s.%d.part", o->name, pid) < 0)
		return -ENOMEM;
	fd = SYS_RESULT(openat(o->folder, part,
		O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
	if (fd < 0) {
		free(part);
		return explain(ret_error, "write", o->shown, fd);
	}
	o->temporary = part;
	give_to_folder_owner(o, fd);
	flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

bool output_is_special(const struct output *o)
{
	struct stat st;

	return fstatat(o->folder, o->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode));
}

int output_open(const char *path, const char *name, pid_t pid, struct output *ret,
	char ret_error[OUTPUT_ERROR_ROOM])
{
	struct output o = { .fd = -1, .folder = -1 };
	int err = -ENOMEM;

	o.shown = path ? strdup(path) : default_path(name, pid);
	if (!o.shown)
		return err;
	err = open_folder(&o);
	if (err < 0)
		explain(ret_error, "write", o.shown, err);
	else
		err = output_is_special(&o) ? open_special(&o, ret_error)
					    : open_temporary(&o, pid, ret_error);
	if (err < 0) {
		output_close(&o);
		return err;
	}
	o.fd = err;
	*ret = o;
	return 0;
}

int output_commit(struct output *o, char ret_error[OUTPUT_ERROR_ROOM])
{
	char *old;
	int err;

	if (!o->temporary)
		return 0;
	/* Two that started at once have both found nothing in their way. */
	if (is_being_written(o->folder, o->name))
		return refuse_busy(ret_error, o->shown);
	old = old_name(o->name);
	if (!old)
		return -ENOMEM;
	err = SYS_RESULT(renameat(o->folder, o->name, o->folder, old));
	free(old);
	if (err == 0 || err == -ENOENT)
		err = SYS_RESULT(renameat(o->folder, o->temporary, o->folder, o->name));
	if (err < 0)
		return explain(ret_error, "write", o->shown, err);
	free(o->temporary);
	o->temporary = NULL;
	return 0;
}

void output_close(struct output *o)
{
	if (o->temporary)
		unlinkat(o->folder, o->temporary, 0);
	sys_close(o->fd);
	sys_close(o->folder);
	free(o->shown);
	free(o->name);
	free(o->temporary);
	*o = (struct output){ .fd = -1, .folder = -1 };
}
