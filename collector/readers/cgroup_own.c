/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_own.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cgroup_controllers.h"
#include "readers/cgroup_place.h"
#include "readers/cgroup_stale.h"
#include "readers/cgroup_walk.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define CREATE "create"

/* A process that is just ending holds its group for a moment. */
#define LEAVE_ROUNDS 100
#define LEAVE_NS     (10 * NSEC_PER_MSEC)

struct cgroup_own {
	struct cgroup_place place;
	char *origin;     /* the folder of the group that the program came from */
	char *aside;      /* where our own processes are meanwhile; NULL: where they were */
	unsigned enabled; /* controllers */
	int fd;
	bool takes;
	bool made;
	char note[CGROUP_OWN_NOTES][CGROUP_OWN_NOTE_ROOM];
	size_t notes;
};

__attribute__((format(printf, 2, 3))) static void note(
	struct cgroup_own *o, const char *format, ...)
{
	va_list ap;

	if (o->notes == CGROUP_OWN_NOTES)
		return;
	va_start(ap, format);
	vsnprintf(o->note[o->notes++], CGROUP_OWN_NOTE_ROOM, format, ap);
	va_end(ap);
}

/* Paths from the root down, without a slash at either end; NULL: out of memory. */
static char *join(const char *folder, const char *name)
{
	char *path;

	while (*name == '/')
		name++;
	if (asprintf(&path, "%s%s%s", folder, *name ? "/" : "", name) < 0)
		return NULL;
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	return path;
}

/* What the user calls a group: below the root, or as the whole path of its folder. */
static char *named_path(const struct cgroup_own *o, const char *name)
{
	const char *root = o->place.root_path;

	if (cgroup_place_holds(root, name))
		name += strlen(root);
	return join(root, name);
}

static bool climbs(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at += 2)
		if ((at == path || at[-1] == '/') && (at[2] == '\0' || at[2] == '/'))
			return true;
	return false;
}

/* Neither ".." nor a link may lead out of the root. */
static int stays_below(
	const struct cgroup_own *o, const char *path, char ret_reason[READER_REASON_ROOM])
{
	char *root = realpath(o->place.root_path, NULL);
	char *real = root ? realpath(path, NULL) : NULL;
	int err = real ? 0 : -errno;

	if (err < 0)
		reason_set(ret_reason, "cannot open the cgroup %.120s: %s", path, strerror(-err));
	else if (!cgroup_place_holds(root, real)) {
		reason_set(ret_reason, "%.90s leads out of the cgroups in %.90s", path, root);
		err = -EXDEV;
	}
	free(real);
	free(root);
	return err;
}

static int write_file(const char *folder, const char *file, const char *text)
{
	int dir = sys_open_dir(folder), fd = dir < 0 ? dir : sys_openat(dir, file, O_WRONLY);
	int err = fd < 0 ? fd : (int)SYS_RESULT(write(fd, text, strlen(text)));

	sys_close(fd);
	sys_close(dir);
	return MIN(err, 0);
}

static int move_process(const char *folder, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return write_file(folder, "cgroup.procs", text);
}

/* Why the group lacks these controllers, which the host has in cgroup v2. */
static void note_refusal(struct cgroup_own *o, const char *parent, unsigned set, int err)
{
	char command[CONTROLLERS_PATH_ROOM], names[CONTROLLERS_TEXT_ROOM];

	controllers_names(set, "", ", ", names);
	controllers_command(parent, set, command, sizeof(command));
	if (err == -EBUSY)
		note(o,
			"not counted in the group: %s, as %.100s holds processes itself (\"no "
			"internal processes\"): make the group elsewhere (--cgroup create=/NAME), or "
			"move them, then: %.150s",
			names, parent, command);
	else
		note(o,
			"not counted in the group: %s, which may not be enabled (%s): %.150s, or start "
			"it in a group of your own: systemd-run --user --scope -p Delegate=yes",
			names, strerror(-err), command);
}

static int change_controller(const char *folder, char sign, size_t index)
{
	char text[32];

	snprintf(text, sizeof(text), "%c%s", sign, controller_name(index));
	return write_file(folder, "cgroup.subtree_control", text);
}

static unsigned enable(struct cgroup_own *o, const char *parent, unsigned wanted)
{
	unsigned refused = 0, enabled = 0;
	int error = 0;

	for (size_t i = 0; i < CONTROLLERS_COUNT; i++) {
		int err = wanted & 1u << i ? change_controller(parent, '+', i) : 0;

		if (err < 0) {
			refused |= 1u << i;
			error = err;
		} else {
			enabled |= wanted & 1u << i;
		}
	}
	if (refused)
		note_refusal(o, parent, refused, error);
	return enabled;
}

struct residents {
	pid_t ours[2];
	size_t count;
	bool others;
};

static void count_resident(pid_t pid, void *arg)
{
	struct residents *r = arg;

	r->count++;
	r->others |= pid != r->ours[0] && pid != r->ours[1];
}

static void move_aside(pid_t pid, void *arg)
{
	const struct cgroup_own *o = arg;

	(void)move_process(o->aside, pid);
}

/*
 * A group that passes controllers on holds no processes itself, but for the
 * root of all.  Where only ours are there, as in a scope of systemd's that was
 * made for us, they go to a group beside the program's meanwhile.
 */
static int make_room(struct cgroup_own *o, const char *parent, pid_t pid)
{
	struct residents r = { .ours = { getpid(), pid } };
	char path[CONTROLLERS_PATH_ROOM + 16];

	snprintf(path, sizeof(path), "%s/cgroup.events", parent);
	if (access(path, F_OK) < 0 || cgroup_processes(parent, count_resident, &r) < 0 || !r.count)
		return 0;
	/* The kernel would pass on those of threads, and let no process into the groups below. */
	if (r.others)
		return -EBUSY;
	if (asprintf(&o->aside, "%s/jphase-aside-%d", parent, (int)getpid()) < 0) {
		o->aside = NULL;
		return -ENOMEM;
	}
	if (mkdir(o->aside, 0755) < 0)
		return -errno;
	return cgroup_processes(parent, move_aside, o);
}

static void note_missing(struct cgroup_own *o, const struct reader_env *env, unsigned missing)
{
	unsigned old = missing & controllers_on_v1(env);
	char names[CONTROLLERS_TEXT_ROOM];

	if (old)
		note(o,
			"not counted in the group: %s, which cgroup v1 has on this host: add "
			"systemd.unified_cgroup_hierarchy=1 or cgroup_no_v1=all to the kernel's "
			"command line",
			controllers_names(old, "", ", ", names));
	if (missing & ~old)
		note(o, "not counted in the group: %s, which this hierarchy does not have",
			controllers_names(missing & ~old, "", ", ", names));
}

static void enable_controllers(struct cgroup_own *o, const struct reader_env *env, pid_t pid)
{
	char parent[CONTROLLERS_PATH_ROOM], folder[CONTROLLERS_PATH_ROOM];
	char command[CONTROLLERS_PATH_ROOM], names[CONTROLLERS_TEXT_ROOM];
	unsigned has = controllers_in(o->place.group_path, "cgroup.controllers");
	unsigned in_root = controllers_in(o->place.root_path, "cgroup.controllers");
	unsigned in_parent, lacking;
	int err;

	snprintf(parent, sizeof(parent), "%s", o->place.group_path);
	*strrchr(parent, '/') = '\0';
	in_parent = controllers_in(parent, "cgroup.controllers");
	err = in_parent & ~has ? make_room(o, parent, pid) : 0;
	if (err < 0)
		note_refusal(o, parent, in_parent & ~has, err);
	else
		o->enabled = enable(o, parent, in_parent & ~has);
	if (o->enabled && !o->aside)
		note(o, "enabled for the groups in %.200s, and left so: %s", parent,
			controllers_names(o->enabled, "", ", ", names));
	lacking = in_root & ~in_parent & ~has;
	for (size_t depth = 0; lacking && controllers_ancestor(&o->place, depth, folder); depth++) {
		controllers_command(folder, lacking, command, sizeof(command));
		if (*command)
			note(o, "not counted in the group: %s, not enabled by %.100s: %.250s",
				controllers_names(lacking, "", ", ", names), folder, command);
	}
	if (CONTROLLERS_ALL & ~in_root & ~has)
		note_missing(o, env, CONTROLLERS_ALL & ~in_root & ~has);
}

static int perf_refusal(const struct cgroup_own *o)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};
	int fd = (int)SYS_RESULT(syscall(SYS_perf_event_open, &attr, o->fd, 0, -1,
		PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC));

	sys_close(fd);
	return MIN(fd, 0);
}

/*
 * perf's part of a group is there once any controller has ever been enabled in
 * the root.  Enabling one and disabling it leaves nothing else behind.
 */
static void wake_perf(const struct cgroup_own *o)
{
	char names[CONTROLLERS_TEXT_ROOM], change[CONTROLLERS_TEXT_ROOM + 1];

	if (perf_refusal(o) != -ENOENT || textfile_read(names, sizeof(names),
						  "%s/cgroup.controllers", o->place.root_path) <= 0)
		return;
	names[strcspn(names, " ")] = '\0';
	snprintf(change, sizeof(change), "+%s", names);
	if (write_file(o->place.root_path, "cgroup.subtree_control", change) < 0)
		return;
	change[0] = '-';
	(void)write_file(o->place.root_path, "cgroup.subtree_control", change);
}

/* --- opening --- */

static int make_refused(const char *path, int err, char ret_reason[READER_REASON_ROOM])
{
	if (err == -EROFS)
		reason_set(ret_reason,
			"cannot make the cgroup %.90s: it is read-only here, as in a container (jphase "
			"doctor)",
			path);
	else if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"cannot make the cgroup %.70s: it belongs to another user; try systemd-run "
			"--user --scope -p Delegate=yes jphase run --cgroup create",
			path);
	else
		reason_set(ret_reason, "cannot make the cgroup %.120s: %s", path, strerror(-err));
	return err;
}

static int make(struct cgroup_own *o, char ret_reason[READER_REASON_ROOM])
{
	char *path = o->place.group_path, *slash = strrchr(path, '/');
	int err;

	*slash = '\0';
	err = stays_below(o, path, ret_reason);
	if (err == 0)
		cgroup_stale_remove(path);
	*slash = '/';
	if (err < 0)
		return err;
	err = (int)SYS_RESULT(mkdir(path, 0755));
	o->made = err == 0;
	if (err < 0 && err != -EEXIST)
		return make_refused(path, err, ret_reason);
	if (err == -EEXIST)
		note(o, "%.200s was there already: it is used, and its peaks may be older", path);
	return stays_below(o, path, ret_reason);
}

static int find_path(
	struct cgroup_own *o, const char *where, bool create, char ret_reason[READER_REASON_ROOM])
{
	char own[32];

	if (create) {
		where += strlen(CREATE);
		snprintf(own, sizeof(own), "jphase-%d", (int)getpid());
		where = *where ? where + 1 : own;
	}
	if (!where[strspn(where, "/")] || climbs(where)) {
		reason_set(ret_reason, "\"%.100s\" is no name of a cgroup", where);
		return -EINVAL;
	}
	if (create && !strchr(where, '/') && !o->origin)
		return -EXDEV;
	o->place.group_path =
		create && !strchr(where, '/') ? join(o->origin, where) : named_path(o, where);
	return o->place.group_path ? 0 : -ENOMEM;
}

static int find_root(struct cgroup_own *o, const struct reader_env *env, pid_t pid,
	char ret_reason[READER_REASON_ROOM])
{
	struct cgroup_mount mount;
	int err = cgroup_mount_find(env, &mount, ret_reason);

	if (err < 0)
		return err;
	o->place.root_path = mount.path;
	free(mount.root);
	err = cgroup_place_of_process(env, pid, &o->origin, ret_reason);
	return err == -EXDEV ? 0 : err;
}

static bool is_create(const char *where)
{
	size_t n = strlen(CREATE);

	return str_starts(where, CREATE) && (where[n] == '\0' || where[n] == '=');
}

int cgroup_own_open(const struct reader_env *env, const struct cgroup_choice *choice, pid_t pid,
	struct cgroup_own **ret, char ret_reason[READER_REASON_ROOM])
{
	bool create = is_create(choice->where);
	struct cgroup_own *o = calloc(1, sizeof(*o));
	int err = -ENOMEM;

	reason_set(ret_reason, "out of memory");
	if (!o)
		return err;
	o->fd = -1;
	o->takes = create || choice->attach;
	err = find_root(o, env, pid, ret_reason);
	if (err == 0)
		err = find_path(o, choice->where, create, ret_reason);
	if (err == 0)
		err = create ? make(o, ret_reason)
			     : stays_below(o, o->place.group_path, ret_reason);
	if (err == 0)
		o->fd = err = sys_open_dir(o->place.group_path);
	if (err == -ENOTDIR)
		reason_set(ret_reason, "%.120s is no cgroup", o->place.group_path);
	if (err < 0) {
		char ignored[READER_REASON_ROOM];

		(void)cgroup_own_leave(o, ignored);
		cgroup_own_close(o);
		return err;
	}
	if (create)
		enable_controllers(o, env, pid);
	if (create && env->perf_cgroup)
		wake_perf(o);
	*ret = o;
	return 0;
}

const char *cgroup_own_path(const struct cgroup_own *o)
{
	return o->place.group_path;
}

int cgroup_own_fd(const struct cgroup_own *o)
{
	return o->fd;
}

bool cgroup_own_takes(const struct cgroup_own *o)
{
	return o->takes;
}

bool cgroup_own_is_new(const struct cgroup_own *o)
{
	return o->made;
}

const char *cgroup_own_note(const struct cgroup_own *o, size_t index)
{
	return index < o->notes ? o->note[index] : NULL;
}

int cgroup_own_attach(const struct cgroup_own *o, pid_t pid, char ret_reason[READER_REASON_ROOM])
{
	const char *path = o->place.group_path;
	int err = move_process(path, pid);

	if (err == -EBUSY)
		reason_set(ret_reason,
			"the program cannot be moved into %.90s: it passes controllers on to groups "
			"below it and may hold no processes itself",
			path);
	else if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"the program cannot be moved into %.90s: the kernel wants write access to "
			"cgroup.procs there and in the group above both; run jphase as root",
			path);
	else if (err < 0)
		reason_set(ret_reason, "the program cannot be moved into %.120s: %s", path,
			strerror(-err));
	return err;
}

/* --- leaving --- */

static void move_back(pid_t pid, void *arg)
{
	const struct cgroup_own *o = arg;

	const char *to = o->aside ? o->aside : o->origin;

	/* A group that passes controllers on holds no processes, but for the root. */
	if (!to || move_process(to, pid) < 0)
		(void)move_process(o->place.root_path, pid);
}

static void empty_group(const char *folder, void *arg)
{
	(void)cgroup_processes(folder, move_back, arg);
	(void)rmdir(folder);
}

static void move_home(pid_t pid, void *arg)
{
	const struct cgroup_own *o = arg;

	(void)move_process(o->origin, pid);
}

/* We have left the group: whoever went aside returns. */
static void return_home(struct cgroup_own *o)
{
	if (!o->aside || !o->origin)
		return;
	for (size_t i = 0; i < CONTROLLERS_COUNT; i++)
		if (o->enabled & 1u << i)
			(void)change_controller(o->origin, '-', i);
	(void)cgroup_processes(o->aside, move_home, o);
	(void)rmdir(o->aside);
	free(o->aside);
	o->aside = NULL;
}

struct stayers {
	char text[READER_REASON_ROOM / 2];
	size_t used;
};

static void tell_stayer(pid_t pid, void *arg)
{
	struct stayers *s = arg;
	char name[32];

	if (textfile_read(name, sizeof(name), "/proc/%d/comm", (int)pid) < 0 ||
		s->used + 64 > sizeof(s->text))
		return;
	s->used += (size_t)snprintf(s->text + s->used, sizeof(s->text) - s->used, "%s%d (%s)",
		s->used ? ", " : "", (int)pid, name);
}

static void tell_stayers(const char *folder, void *arg)
{
	(void)cgroup_processes(folder, tell_stayer, arg);
}

int cgroup_own_leave(struct cgroup_own *o, char ret_reason[READER_REASON_ROOM])
{
	const struct timespec pause = { .tv_nsec = (long)LEAVE_NS };
	const char *path = o->place.group_path;
	struct stayers stayers = { .used = 0 };

	if (!o->made) {
		return_home(o);
		return 0;
	}
	o->made = false;
	for (int i = 0; i < LEAVE_ROUNDS; i++) {
		cgroup_walk(path, empty_group, o);
		if (access(path, F_OK) < 0) {
			return_home(o);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	cgroup_walk(path, tell_stayers, &stayers);
	reason_set(ret_reason, "%.100s could not be removed: %s%s", path,
		stayers.used ? "these processes still live there: " : "it is in use", stayers.text);
	return -EBUSY;
}

struct cgroup_own *cgroup_own_close(struct cgroup_own *o)
{
	if (!o)
		return NULL;
	sys_close(o->fd);
	cgroup_place_clear(&o->place);
	free(o->origin);
	free(o->aside);
	free(o);
	return NULL;
}
