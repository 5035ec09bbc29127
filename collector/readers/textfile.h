/* SPDX-License-Identifier: MIT */
/* Small files of the kernel, read whole. */
#ifndef READERS_TEXTFILE_H
#define READERS_TEXTFILE_H

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal/sys.h"

/*
 * Reads the file whose path the format gives, cut to the room, ended by NUL and
 * without white space at its end.  The length, or -errno.
 */
static inline int __attribute__((format(printf, 3, 4)))
textfile_read(char *buf, size_t room, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t size;
	int fd;

	va_start(args, format);
	size = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (size >= (ssize_t)sizeof(path))
		return -ENAMETOOLONG;
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	size = sys_read(fd, buf, room - 1);
	sys_close(fd);
	if (size < 0)
		return (int)size;
	while (size > 0 && strchr(" \t\n", buf[size - 1]))
		size--;
	buf[size] = '\0';
	return (int)size;
}

#endif
