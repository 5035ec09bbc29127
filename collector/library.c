/* SPDX-License-Identifier: MIT */
#include "library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"

int library_find(char path[PATH_MAX])
{
	static const char *const places[] = { "libjphase.so", "../lib/libjphase.so",
		"../lib64/libjphase.so" };
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *name, *real;

	if (n < 0)
		return -ENODEV;
	path[n] = '\0';
	name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(name, (size_t)(path + PATH_MAX - name), "%s", places[i]);
		real = realpath(path, NULL);
		if (!real)
			continue;
		snprintf(path, PATH_MAX, "%s", real);
		free(real);
		return 0;
	}
	return -ENOENT;
}
