/* SPDX-License-Identifier: MIT */
#include "support/tree.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_ROOM 4096
#define OPEN_DIRS 8

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

char *tree_make(void)
{
	char *root = strdup("/tmp/jphase-tree-XXXXXX");

	must(root && mkdtemp(root), "mkdtemp");
	return root;
}

static void folders_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
}

void tree_write(const char *root, const char *file, const char *format, ...)
{
	char path[PATH_ROOM];
	va_list args;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	folders_make(path);
	out = fopen(path, "w");
	must(out != NULL, path);
	va_start(args, format);
	must(vfprintf(out, format, args) >= 0, path);
	va_end(args);
	must(fclose(out) == 0, path);
}

void tree_unlink(const char *root, const char *file)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", root, file);
	must(remove(path) == 0, path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_remove(char *root)
{
	must(nftw(root, remove_one, OPEN_DIRS, FTW_DEPTH | FTW_PHYS) == 0, root);
	free(root);
}
