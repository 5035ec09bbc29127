/* SPDX-License-Identifier: MIT */
/* Where libjphase.so is. */
#ifndef COLLECTOR_LIBRARY_H
#define COLLECTOR_LIBRARY_H

#include <limits.h>

/* Beside this program in the build tree, else where `make install` puts it.  -ENOENT; -ENODEV without /proc. */
int library_find(char path[PATH_MAX]);

#endif
