/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_controllers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/kfile.h"
#include "readers/mounts.h"
#include "readers/span.h"

static const struct controller {
	const char *name;
	const char *v1_name;
	const char *gives;
} controllers[CONTROLLERS_COUNT] = {
	{ "cpu", "cpu", "throttling" },
	{ "memory", "memory", "memory" },
	{ "io", "blkio", "I/O" },
	{ "pids", "pids", "number of processes" },
};

const char *controller_name(size_t index)
{
	return controllers[index].name;
}

unsigned controllers_in(const char *folder, const char *file)
{
	char path[CONTROLLERS_PATH_ROOM];
	struct span rest, word;
	unsigned found = 0;
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (kfile_load(path, &text, &size) < 0)
		return 0;
	rest = span_of(text, size);
	rest = span_take(&rest, '\n');
	while (span_word(&rest, &word))
		for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
			if (span_is(word, controllers[i].name))
				found |= 1u << i;
	free(text);
	return found;
}

unsigned controllers_on_v1(const struct reader_env *env)
{
	char path[CONTROLLERS_PATH_ROOM];
	unsigned found = 0;
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/self/cgroup", env->proc_root);
	if (kfile_load(path, &text, &size) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (mounts_controller_is_v1(text, size, controllers[i].v1_name))
			found |= 1u << i;
	free(text);
	return found;
}

const char *controllers_names(
	unsigned set, const char *prefix, const char *between, char ret[CONTROLLERS_TEXT_ROOM])
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (set & 1u << i)
			used += (size_t)snprintf(ret + used, CONTROLLERS_TEXT_ROOM - used, "%s%s%s",
				used ? between : "", prefix, controllers[i].name);
	return ret;
}

const char *controllers_gives(unsigned set, char ret[CONTROLLERS_TEXT_ROOM])
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
		if (set & 1u << i)
			used += (size_t)snprintf(ret + used, CONTROLLERS_TEXT_ROOM - used, "%s%s",
				used ? ", " : "", controllers[i].gives);
	return ret;
}

bool controllers_ancestor(
	const struct cgroup_place *place, size_t depth, char ret[CONTROLLERS_PATH_ROOM])
{
	size_t at = strlen(place->root_path);

	for (size_t i = 0; i < depth && place->group_path[at]; i++) {
		at++;
		at += strcspn(place->group_path + at, "/");
	}
	snprintf(ret, CONTROLLERS_PATH_ROOM, "%.*s", (int)at, place->group_path);
	return place->group_path[at] != '\0';
}

void controllers_shell_word(const char *path, char *ret, size_t room)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-:@+,";
	size_t used = 0;

	if (path[strspn(path, plain)] == '\0') {
		snprintf(ret, room, "%s", path);
		return;
	}
	ret[used++] = '\'';
	for (; *path && used + 8 < room; path++)
		if (*path == '\'')
			used += (size_t)snprintf(ret + used, room - used, "'\\''");
		else
			ret[used++] = *path;
	snprintf(ret + used, room - used, "'");
}

void controllers_command(const char *folder, unsigned wanted, char *ret, size_t room)
{
	unsigned lacking = wanted & ~controllers_in(folder, "cgroup.subtree_control");
	char word[CONTROLLERS_PATH_ROOM], names[CONTROLLERS_TEXT_ROOM];

	ret[0] = '\0';
	if (!lacking)
		return;
	controllers_shell_word(folder, word, sizeof(word));
	snprintf(ret, room, "echo \"%s\" | sudo tee %s/cgroup.subtree_control",
		controllers_names(lacking, "+", " ", names), word);
}
