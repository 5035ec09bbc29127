/* SPDX-License-Identifier: MIT */
/*
 * Counters of cgroup v2: the target's group and the root.  Every file that
 * exists is opened once and read by one pread per snapshot.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cgroup_folder.h"
#include "readers/cgroup_place.h"
#include "readers/reader.h"
#include "readers/reason.h"

#define NOTE_ROOM   128
#define PROC_PREFIX "proc_"
#define ROOT_PREFIX "global_"

/* /proc/PID/cgroup; what goes beyond is not compared. */
#define WHERE_ROOM 4096

struct cgroup {
	struct reader base;
	const struct reader_env *env;
	pid_t pid;
	struct cgroup_place place;
	bool group_is_root; /* then only one folder is open, and serves both scopes */
	struct cgroup_folder group;
	struct cgroup_folder root;
	size_t group_values;
	char group_note[NOTE_ROOM];
	char root_note[NOTE_ROOM];
	char outside[READER_REASON_ROOM]; /* why the process's group cannot be seen, or "" */
	char *buffer;

	int where_fd; /* tells the process's group */
	char where[WHERE_ROOM];
	size_t where_size;
	bool lost; /* the process is where nothing can be read */
	bool removal_told;
	bool loss_told;
	char news[READER_REASON_ROOM];
};

static bool holds_process(const struct cgroup *c)
{
	char *path, reason[READER_REASON_ROOM];
	bool holds;

	if (!c->env->cgroup_path)
		return true;
	if (cgroup_place_of_process(c->env, c->pid, &path, reason) < 0)
		return false;
	holds = cgroup_place_holds(c->place.group_path, path);
	free(path);
	return holds;
}

static void group_note(struct cgroup *c)
{
	const char *scope = holds_process(c) ? "shared with" : "the program is not in it, but";
	uint64_t others = 0;

	if (c->env->cgroup_own)
		return;
	if (cgroup_place_others(&c->place, c->pid, &others) == -EOPNOTSUPP)
		snprintf(c->group_note, NOTE_ROOM, "threaded group: may be shared with others");
	else if (others > 0 || !str_eq(scope, "shared with"))
		snprintf(c->group_note, NOTE_ROOM, "%s %llu other process%s", scope,
			(unsigned long long)others, others == 1 ? "" : "es");
}

/* Only the root of the whole machine lacks cgroup.events. */
static void root_note(struct cgroup *c)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/cgroup.events", c->place.root_path);
	if (access(path, F_OK) == 0)
		snprintf(c->root_note, NOTE_ROOM, "the container's groups, not the whole machine");
}

static int both_read(struct cgroup *c, bool gauges_only, uint64_t *ret_values)
{
	uint64_t *root_values = ret_values + c->group_values;

	for (size_t i = 0; *c->outside && i < c->group_values; i++)
		ret_values[i] = VALUE_ABSENT;
	cgroup_folder_read(&c->group, gauges_only, c->buffer, ret_values);
	if (c->group_is_root)
		memcpy(root_values, ret_values, c->group_values * sizeof(*ret_values));
	else
		cgroup_folder_read(&c->root, gauges_only, c->buffer, root_values);
	return 0;
}

static int cgroup_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_mount mount;
	int err = cgroup_mount_find(env, &mount, ret_reason);

	if (err < 0)
		return err;
	cgroup_mount_clear(&mount);
	return 0;
}

static void cgroup_close(struct reader *r)
{
	struct cgroup *c = (struct cgroup *)r;

	if (!c)
		return;
	cgroup_folder_close(&c->group);
	cgroup_folder_close(&c->root);
	sys_close(c->where_fd);
	cgroup_place_clear(&c->place);
	free(c->buffer);
	free(c);
}

static int folders_open(struct cgroup *c, char ret_reason[READER_REASON_ROOM])
{
	int err = 0;

	if (!*c->outside)
		err = cgroup_folder_open(&c->group, c->place.group_path, c->buffer);
	c->group_is_root = !*c->outside && str_eq(c->place.group_path, c->place.root_path);
	if (err == 0 && !c->group_is_root)
		err = cgroup_folder_open(&c->root, c->place.root_path, c->buffer);
	c->group_values = *c->outside ? c->root.values : c->group.values;
	if (err < 0)
		reason_set(ret_reason, "cannot open the cgroup folders: %s", strerror(-err));
	else if (c->group.values + c->root.values == 0)
		err = -ENOENT;
	if (err == -ENOENT)
		reason_set(ret_reason, "no counters in %.120s: enable controllers (jphase doctor)",
			*c->outside ? c->place.root_path : c->place.group_path);
	return err;
}

/* The root can be read also where the process's group is out of sight. */
static int place_find(struct cgroup *c, char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_mount mount;
	int err = cgroup_place_find(c->env, c->pid, &c->place, ret_reason);

	if (err != -EXDEV)
		return err;
	reason_set(c->outside, "%s", ret_reason);
	err = cgroup_mount_find(c->env, &mount, ret_reason);
	if (err < 0)
		return err;
	c->place.root_path = mount.path;
	free(mount.root);
	return 0;
}

/* True: it tells something else than it did before. */
static bool where_read(struct cgroup *c)
{
	char text[WHERE_ROOM];
	ssize_t size = c->where_fd < 0 ? -1 : sys_pread(c->where_fd, text, sizeof(text), 0);

	if (size < 0 ||
		((size_t)size == c->where_size && memcmp(text, c->where, c->where_size) == 0))
		return false;
	memcpy(c->where, text, (size_t)size);
	c->where_size = (size_t)size;
	return true;
}

static void where_open(struct cgroup *c)
{
	char path[WHERE_ROOM];

	snprintf(path, sizeof(path), "%s/%d/cgroup", c->env->proc_root, (int)c->pid);
	c->where_fd = sys_open(path, O_RDONLY, 0);
	(void)where_read(c);
}

static int cgroup_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct cgroup *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	reason_set(ret_reason, "out of memory");
	if (!c)
		return err;
	c->base.ops = &cgroup_reader;
	c->env = target->env;
	c->pid = target->pid;
	c->where_fd = c->group.dir = c->root.dir = -1;
	c->buffer = malloc(CGROUP_BUFFER);
	if (!c->buffer)
		goto fail;
	where_open(c);
	err = place_find(c, ret_reason);
	if (err < 0)
		goto fail;
	err = folders_open(c, ret_reason);
	if (err < 0)
		goto fail;
	if (!*c->outside)
		group_note(c);
	root_note(c);
	*ret = &c->base;
	return 0;

fail:
	cgroup_close(&c->base);
	return err;
}

struct scope_text {
	enum metric_scope scope;
	bool root; /* of the whole machine, whichever scope shows it */
	const char *prefix;
	const char *note;
	const char *absent; /* or "" */
};

/* The kernel prints a 0 there that it does not keep (Documentation/accounting/psi.rst). */
static bool is_undefined(const struct scope_text *text, const char *name)
{
	return text->root && str_eq(name, "cpu_full_usec");
}

static int metric_describe(const struct cgroup_source *s, size_t key, const struct scope_text *text,
	struct metric_list *out)
{
	char name[64], note[2 * NOTE_ROOM];
	const char *own = cgroup_source_note(s, key);
	struct metric metric = {
		.name = name,
		.kind = cgroup_source_kind(s, key),
		.unit = s->metric[key]->unit,
		.scope = text->scope,
		.group = METRIC_NO_GROUP,
		.absent = *text->absent ? (char *)text->absent : NULL,
	};

	if (!metric.absent && is_undefined(text, s->metric[key]->name))
		metric.absent = (char *)"the kernel does not keep it for the whole machine";
	snprintf(name, sizeof(name), "%s%s", text->prefix, s->metric[key]->name);
	snprintf(note, sizeof(note), "%s%s%s", own ? own : "", own && *text->note ? "; " : "",
		text->note);
	if (*note)
		metric.note = note;
	return metric_list_add(out, &metric);
}

static int folder_describe(
	const struct cgroup_folder *f, const struct scope_text *text, struct metric_list *out)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->source[i].count; k++) {
			int err = metric_describe(&f->source[i], k, text, out);

			if (err < 0)
				return err;
		}
	return 0;
}

static int cgroup_describe(const struct reader *r, struct metric_list *out)
{
	const struct cgroup *c = (const struct cgroup *)r;
	struct scope_text group = { SCOPE_GROUP, c->group_is_root, PROC_PREFIX, c->group_note,
		c->outside };
	struct scope_text global = { SCOPE_GLOBAL, true, ROOT_PREFIX, c->root_note, "" };
	int err = folder_describe(*c->outside ? &c->root : &c->group, &group, out);

	if (err < 0)
		return err;
	return folder_describe(c->group_is_root ? &c->group : &c->root, &global, out);
}

/* The machine's values stay those of the root when the process leaves it. */
static int root_leave(struct cgroup *c)
{
	if (!c->group_is_root)
		return 0;
	c->group_is_root = false;
	return cgroup_folder_split(&c->group, &c->root);
}

static void tell_move(struct cgroup *c, const char *path)
{
	size_t count;
	const char *lacks = cgroup_folder_lacks(&c->group, &count);
	char without[64] = "";

	if (count > 1)
		snprintf(without, sizeof(without), ", which gives no %s nor %zu other%s", lacks,
			count - 1, count == 2 ? "" : "s");
	else if (lacks)
		snprintf(without, sizeof(without), ", which gives no %s", lacks);
	reason_set(c->news,
		"the program has moved from %.54s to %.54s: its cgroup counters go on with those "
		"of its new group%s",
		c->place.group_path, path, without);
}

static const char *follow(struct cgroup *c, char *path)
{
	int err = root_leave(c);

	if (err == 0)
		err = cgroup_folder_move(&c->group, path, c->buffer);
	else
		cgroup_folder_lose(&c->group);
	c->lost = err < 0;
	c->removal_told = c->loss_told = false;
	if (err < 0)
		reason_set(c->news, "the program has moved to %.90s, which cannot be read: %s",
			path, strerror(-err));
	else
		tell_move(c, path);
	free(c->place.group_path);
	c->place.group_path = path;
	return c->news;
}

/* Where it has gone is not mounted here. */
static const char *lose(struct cgroup *c)
{
	if (c->env->cgroup_path || c->lost)
		return NULL;
	if (root_leave(c) < 0)
		c->group_is_root = false;
	cgroup_folder_lose(&c->group);
	c->lost = true;
	reason_set(c->news,
		"the program has moved from %.120s to a group that is out of sight here: its "
		"cgroup values end there",
		c->place.group_path);
	return c->news;
}

/* The process may be in another group than before. */
static const char *process_moved(struct cgroup *c)
{
	char reason[READER_REASON_ROOM], *path;
	bool inside;
	int err;

	if (*c->outside)
		return NULL;
	err = cgroup_place_of_process(c->env, c->pid, &path, reason);
	if (err < 0)
		return err == -EXDEV ? lose(c) : NULL;
	if (!c->env->cgroup_path && (c->lost || !str_eq(path, c->place.group_path)))
		return follow(c, path);
	inside = cgroup_place_holds(c->place.group_path, path);
	reason_set(c->news,
		"the program has moved to %.90s: the cgroup values remain those of %.90s", path,
		c->place.group_path);
	free(path);
	return inside ? NULL : c->news;
}

static const char *tell_once(struct cgroup *c, bool happened, bool *told, const char *what)
{
	if (!happened || *told)
		return NULL;
	*told = true;
	reason_set(c->news, "%.120s %s", c->place.group_path, what);
	return c->news;
}

static const char *cgroup_keep_alive(struct reader *r)
{
	struct cgroup *c = (struct cgroup *)r;
	const char *news = where_read(c) ? process_moved(c) : NULL;

	if (!news)
		news = tell_once(c, c->group.removed, &c->removal_told,
			"was removed while it was measured: its values end there");
	if (!news)
		news = tell_once(c, c->group.lost_file && !c->group.removed, &c->loss_told,
			"lost a controller or a file while it was measured: those values end there");
	return news;
}

static int cgroup_read(struct reader *r, uint64_t *ret_values)
{
	return both_read((struct cgroup *)r, false, ret_values);
}

static int cgroup_sample(struct reader *r, uint64_t *ret_values)
{
	return both_read((struct cgroup *)r, true, ret_values);
}

const struct reader_ops cgroup_reader = {
	.name = "cgroup",
	.critical = false,
	.per_process = false,
	.probe = cgroup_probe,
	.open = cgroup_open,
	.describe = cgroup_describe,
	.read = cgroup_read,
	.sample = cgroup_sample,
	.keep_alive = cgroup_keep_alive,
	.close = cgroup_close,
};
