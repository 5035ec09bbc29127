/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/reason.h"
#include "readers/textfile.h"
#include "sibling.h"

#define PREFIX      "jphase_"
#define OWN_EVENT   "marker"
#define GIVEN_GROUP "jphase"

#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
#ifndef FSCONFIG_CMD_CREATE
#define FSCONFIG_CMD_CREATE 6
#endif

static int open_mounted(void)
{
	static const char *const places[] = { PROBE_TRACEFS, "/sys/kernel/debug/tracing" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		/* It may have been made passable without being readable. */
		int fd = sys_open(places[i], O_PATH | O_DIRECTORY, 0);

		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TRACEFS_MAGIC)
			return fd;
		sys_close(fd);
	}
	return -ENOENT;
}

/* Where nobody has mounted it: a mount that only we hold, attached nowhere. */
static int open_detached(void)
{
	int context, mount, fd;

	context = (int)SYS_RESULT(syscall(SYS_fsopen, "tracefs", 1u));
	if (context < 0)
		return context;
	mount = (int)SYS_RESULT(syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	if (mount == 0)
		mount = (int)SYS_RESULT(syscall(SYS_fsmount, context, 1u, 0u));
	close(context);
	if (mount < 0)
		return mount;
	fd = sys_openat(mount, ".", O_RDONLY | O_DIRECTORY);
	close(mount);
	return fd;
}

static int write_definition(int tracefs, const char *text)
{
	int fd = sys_openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND);
	int err;

	if (fd < 0)
		return fd;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int read_text(int tracefs, const char *path, char *text, size_t room)
{
	int fd = sys_openat(tracefs, path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = sys_read(fd, text, room - 1);
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return 0;
}

/* The collectors that made these are gone; a definition in use stays. */
static void remove_stale(int tracefs)
{
	char text[16384], removal[PROBE_GROUP_ROOM + 32], *rest = text, *line;

	if (read_text(tracefs, "uprobe_events", text, sizeof(text)) < 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		int pid, end = 0;

		if (sscanf(line, "p:" PREFIX "%d_%*x/" OWN_EVENT "%n", &pid, &end) != 1 || !end)
			continue;
		if (sibling_lives(pid))
			continue;
		snprintf(removal, sizeof(removal), "-%.*s\n", end - 1, line + 1);
		write_definition(tracefs, removal);
	}
}

/* -ENODEV or -ENOENT: there is none. */
static int use_tracefs(struct probe *p)
{
	int fd = p->tracefs < 0 ? p->tracefs
				: sys_openat(p->tracefs, "uprobe_events", O_WRONLY | O_APPEND);

	if (fd < 0)
		return fd;
	close(fd);
	remove_stale(p->tracefs);
	p->origin = PROBE_OWN;
	return 0;
}

static int read_id(int tracefs, const char *group, uint64_t *ret)
{
	char path[PROBE_GROUP_ROOM + 32], text[32];
	int err;

	snprintf(path, sizeof(path), "events/%s/" OWN_EVENT "/id", group);
	err = read_text(tracefs, path, text, sizeof(text));
	if (err < 0)
		return err;
	*ret = strtoull(text, NULL, 10);
	return *ret ? 0 : -EIO;
}

static int use_given(struct probe *p)
{
	int err = p->tracefs < 0 ? p->tracefs : read_id(p->tracefs, GIVEN_GROUP, &p->given);

	if (err == 0)
		p->origin = PROBE_GIVEN;
	return err;
}

/* Without a path the kernel says whether it would be allowed. */
static int use_pmu(struct probe *p)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1 };
	char text[32];
	int err = textfile_read(text, sizeof(text), "/sys/bus/event_source/devices/uprobe/type");

	if (err < 0)
		return err;
	attr.type = (uint32_t)strtoul(text, NULL, 10);
	err = (int)SYS_RESULT(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
	if (err != -EINVAL)
		return -EACCES;
	p->pmu = attr.type;
	p->origin = PROBE_PMU;
	return 0;
}

int probe_prepare(struct probe *ret, char ret_reason[READER_REASON_ROOM])
{
	struct probe p = { .tracefs = open_mounted(), .anchor = -1, .site.file = -1 };
	int err;

	if (p.tracefs < 0)
		p.tracefs = open_detached();
	err = use_tracefs(&p);
	if (err < 0 && use_given(&p) < 0 && use_pmu(&p) < 0) {
		sys_close(p.tracefs);
		reason_set(ret_reason, "%s",
			err == -ENOENT || err == -ENODEV
				? "this kernel has no tracefs with uprobe_events"
				: "it needs root (sudo), or a probe that an "
				  "administrator defines: jphase doctor tells how");
		return err;
	}
	*ret = p;
	return 0;
}

/*
 * The kernel takes tens of milliseconds to set a probe up for its first event
 * and to give it up after its last.  This event of our own is the first and the
 * last, opened beside the work and closed after it.
 */
static void *open_anchor(void *data)
{
	struct probe *p = data;
	struct perf_event_attr attr = {
		.type = p->event.type,
		.size = sizeof(attr),
		.config = p->event.config,
		.exclude_kernel = 1,
		.disabled = 1,
	};

	/* On the first thread: an event goes with the thread that it is on. */
	p->anchor = (int)SYS_RESULT(
		syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC));
	return NULL;
}

static int define_own(struct probe *p)
{
	char text[256];
	int err;

	snprintf(p->group, sizeof(p->group), PREFIX "%d_%" PRIx64, (int)getpid(), now_ns());
	snprintf(text, sizeof(text), "p:%s/" OWN_EVENT " %s:0x%" PRIx64 "\n", p->group, p->path,
		p->site.offset);
	err = write_definition(p->tracefs, text);
	if (err < 0)
		p->group[0] = '\0';
	p->event.type = PERF_TYPE_TRACEPOINT;
	return err < 0 ? err : read_id(p->tracefs, p->group, &p->event.config);
}

static int define_given(struct probe *p)
{
	p->event.type = PERF_TYPE_TRACEPOINT;
	p->event.config = p->given;
	return 0;
}

static int define_pmu(struct probe *p)
{
	p->event.type = p->pmu;
	p->event.config1 = (uintptr_t)p->path;
	p->event.config2 = p->site.offset;
	p->event.held = p->held;
	p->event.held_room = ARRAY_SIZE(p->held);
	p->event.threads_left = PROBE_PMU_THREADS;
	return 0;
}

int probe_define(struct probe *p, pid_t pid, uint64_t address)
{
	static int (*const define[])(struct probe * p) = {
		[PROBE_OWN] = define_own,
		[PROBE_GIVEN] = define_given,
		[PROBE_PMU] = define_pmu,
	};
	int err = site_open(pid, address, &p->site);

	if (err < 0)
		return err;
	/* Our descriptor is the file, whatever becomes of the process and of the path. */
	snprintf(p->path, sizeof(p->path), "/proc/%d/fd/%d", (int)getpid(), p->site.file);
	err = define[p->origin](p);
	p->defined = err == 0;
	if (err < 0)
		probe_remove(p);
	return err;
}

const char *probe_name(const struct probe *p)
{
	return p->origin == PROBE_GIVEN ? PROBE_GIVEN_NAME : "of this session";
}

void probe_anchor(struct probe *p)
{
	if (p->defined && p->origin != PROBE_PMU && !p->opening)
		p->opening = pthread_create(&p->opener, NULL, open_anchor, p) == 0;
}

void probe_remove(struct probe *p)
{
	char text[PROBE_GROUP_ROOM + 32];

	if (p->opening)
		pthread_join(p->opener, NULL);
	p->opening = false;
	p->anchor = sys_close(p->anchor);
	while (p->event.held_count)
		close(p->held[--p->event.held_count]);
	if (p->group[0]) {
		snprintf(text, sizeof(text), "-:%s/" OWN_EVENT "\n", p->group);
		write_definition(p->tracefs, text);
		p->group[0] = '\0';
	}
	site_close(&p->site);
	p->defined = false;
}
