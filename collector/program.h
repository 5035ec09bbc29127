/* SPDX-License-Identifier: MIT */
/* What kind of program a file is, before it is started. */
#ifndef COLLECTOR_PROGRAM_H
#define COLLECTOR_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum program_kind {
	PROGRAM_PRELOADABLE,
	PROGRAM_STATIC,  /* no dynamic loader: nothing can be preloaded */
	PROGRAM_MUSL,    /* another C library: a preload would keep it from starting */
	PROGRAM_FOREIGN, /* another architecture */
	PROGRAM_UNKNOWN, /* unreadable, or no ELF file and no script */
};

struct program {
	char path[PATH_MAX];
	enum program_kind kind;
	bool privileged; /* set-user-ID for that user, or unreadable by it */
};

/*
 * Finds name as execvp does and looks at it with the eyes of uid and gid.  A
 * script is what its interpreter is.  -ENOENT: there is no such program,
 * -EACCES: it is not executable.
 */
int program_find(const char *name, uid_t uid, gid_t gid, struct program *ret);

/* Why nothing is preloaded into it, or NULL. */
const char *program_obstacle(enum program_kind kind);

#endif
