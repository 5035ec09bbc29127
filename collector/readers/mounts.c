/* SPDX-License-Identifier: MIT */
#include "readers/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/span.h"

/* One line of mountinfo: the parts that we need, still escaped. */
struct mount_line {
	struct span root;
	struct span path;
	struct span type;
	struct span options; /* of the super block */
};

/* "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw" */
static bool mount_line_parse(struct span line, struct mount_line *ret)
{
	struct span word, source;

	for (int i = 0; i < 3; i++)
		if (!span_word(&line, &word))
			return false;
	if (!span_word(&line, &ret->root) || !span_word(&line, &ret->path))
		return false;
	/* Options and any number of optional fields, ended by a hyphen. */
	do {
		if (!span_word(&line, &word))
			return false;
	} while (!span_is(word, "-"));
	/* The source may be empty, which leaves two blanks; the options are last. */
	if (!span_word(&line, &ret->type) || !span_word(&line, &source))
		return false;
	ret->options = source;
	while (span_word(&line, &word))
		ret->options = word;
	return true;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes blank, tab, newline and backslash as \040, \011, \012, \134. */
static char *unescape(struct span s)
{
	char *text = malloc(span_size(s) + 1);
	char *to = text;

	if (!text)
		return NULL;
	while (s.at < s.end) {
		if (*s.at == '\\' && span_size(s) >= 4 && is_octal(s.at[1]) && is_octal(s.at[2]) &&
			is_octal(s.at[3])) {
			*to++ = (char)((s.at[1] - '0') << 6 | (s.at[2] - '0') << 3 |
				       (s.at[3] - '0'));
			s.at += 4;
		} else {
			*to++ = *s.at++;
		}
	}
	*to = '\0';
	return text;
}

void cgroup_mount_clear(struct cgroup_mount *mount)
{
	free(mount->path);
	free(mount->root);
	*mount = (struct cgroup_mount){ 0 };
}

int mounts_find_cgroup2(const char *mountinfo, size_t size, struct cgroup_mount *ret)
{
	struct span rest = span_of(mountinfo, size), line;
	struct mount_line m, best = { 0 };
	struct cgroup_mount mount;

	while (span_line(&rest, &line)) {
		if (!mount_line_parse(line, &m) || !span_is(m.type, "cgroup2"))
			continue;
		if (!best.path.at || (span_is(m.root, "/") && !span_is(best.root, "/")))
			best = m;
	}
	if (!best.path.at)
		return -ENOENT;

	mount = (struct cgroup_mount){ .path = unescape(best.path), .root = unescape(best.root) };
	if (!mount.path || !mount.root) {
		cgroup_mount_clear(&mount);
		return -ENOMEM;
	}
	*ret = mount;
	return 0;
}

bool mounts_option(const char *mountinfo, size_t size, const char *path, const char *name,
	char *ret_value, size_t room)
{
	struct span rest = span_of(mountinfo, size), line;
	struct mount_line m, last = { 0 };

	while (span_line(&rest, &line))
		if (mount_line_parse(line, &m) && span_is(m.path, path))
			last = m;
	while (last.options.at < last.options.end) {
		struct span value = span_take(&last.options, ',');

		if (!span_is(span_take(&value, '='), name))
			continue;
		snprintf(ret_value, room, "%.*s", (int)span_size(value), value.at);
		return true;
	}
	return false;
}

int mounts_group(const char *cgroup, size_t size, char **ret_group)
{
	struct span rest = span_of(cgroup, size), line;
	char *group;

	while (span_line(&rest, &line)) {
		if (!span_starts(line, "0::/"))
			continue;
		line.at += strlen("0::");
		group = strndup(line.at, span_size(line));
		if (!group)
			return -ENOMEM;
		*ret_group = group;
		return 0;
	}
	return -ENOENT;
}

/* "4:cpu,cpuacct:/some/group" */
bool mounts_controller_is_v1(const char *cgroup, size_t size, const char *controller)
{
	struct span rest = span_of(cgroup, size), line;

	while (span_line(&rest, &line)) {
		struct span number = span_take(&line, ':');
		struct span controllers = span_take(&line, ':');

		if (span_is(number, "0"))
			continue;
		while (controllers.at < controllers.end)
			if (span_is(span_take(&controllers, ','), controller))
				return true;
	}
	return false;
}

static bool has_parent_step(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/..")); at += 3)
		if (at[3] == '\0' || at[3] == '/')
			return true;
	return false;
}

int mounts_group_path(const struct cgroup_mount *mount, const char *group, char **ret_path)
{
	/* Both are told relative to our own namespace, so they compare as text. */
	size_t shown = str_eq(mount->root, "/") ? 0 : strlen(mount->root);
	const char *below = group + shown;
	char *path;

	if (strncmp(group, mount->root, shown) != 0 || (*below != '\0' && *below != '/') ||
		has_parent_step(below))
		return -EXDEV;
	if (str_eq(below, "/"))
		below = "";
	if (asprintf(&path, "%s%s", mount->path, below) < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}
