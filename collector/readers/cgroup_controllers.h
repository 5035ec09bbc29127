/* SPDX-License-Identifier: MIT */
/* Which controllers of cgroup v2 are where, and how a user enables them. */
#ifndef READERS_CGROUP_CONTROLLERS_H
#define READERS_CGROUP_CONTROLLERS_H

#include <stdbool.h>
#include <stddef.h>

#include "readers/cgroup_place.h"
#include "readers/reader.h"

/* The controllers that give counters, as bits of a set. */
#define CONTROLLERS_COUNT 4
#define CONTROLLERS_ALL   ((1u << CONTROLLERS_COUNT) - 1)

#define CONTROLLERS_TEXT_ROOM 256
#define CONTROLLERS_PATH_ROOM 4096

/* "cpu", "memory", "io", "pids" */
const char *controller_name(size_t index);

/* What the group's cgroup.controllers or cgroup.subtree_control names; no such file: none. */
unsigned controllers_in(const char *folder, const char *file);

/* Those that cgroup v1 has on this host. */
unsigned controllers_on_v1(const struct reader_env *env);

/* "memory, io"; with a prefix "+": "+memory +io".  Returns ret. */
const char *controllers_names(
	unsigned set, const char *prefix, const char *between, char ret[CONTROLLERS_TEXT_ROOM]);

/* What they count: "throttling, memory".  Returns ret. */
const char *controllers_gives(unsigned set, char ret[CONTROLLERS_TEXT_ROOM]);

/* The folder `depth` levels below the root on the way to the group; false: it is the group's. */
bool controllers_ancestor(
	const struct cgroup_place *place, size_t depth, char ret[CONTROLLERS_PATH_ROOM]);

/* The command that lets the groups in the folder have what it does not yet pass on; "": nothing. */
void controllers_command(const char *folder, unsigned wanted, char *ret, size_t room);

/* A path as a shell takes it: quoted only where it must be. */
void controllers_shell_word(const char *path, char *ret, size_t room);

#endif
