/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <inttypes.h>
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

#define TRACEFS_KIND 0x74726163
#define PREFIX       "jphase_"
#define OWN_EVENT    "marker"

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
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int fd = sys_open_dir(places[i]);

		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TRACEFS_KIND)
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

/* A process that has ended and was not waited for has no command line any more. */
static bool is_collector(int pid)
{
	static const char command[] = "jphase\0collect";
	char path[64], found[sizeof(command)] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return false;
	n = sys_read(fd, found, sizeof(found));
	close(fd);
	return n == (ssize_t)sizeof(command) && memcmp(found, command, sizeof(command)) == 0;
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
		if (is_collector(pid))
			continue;
		snprintf(removal, sizeof(removal), "-%.*s\n", end - 1, line + 1);
		write_definition(tracefs, removal);
	}
}

int probe_prepare(struct probe *ret, char ret_reason[READER_REASON_ROOM])
{
	int fd = open_mounted(), events;

	if (fd < 0)
		fd = open_detached();
	events = fd < 0 ? fd : sys_openat(fd, "uprobe_events", O_WRONLY | O_APPEND);
	if (events < 0) {
		sys_close(fd);
		reason_set(ret_reason, "%s",
			events == -ENOENT || events == -ENODEV
				? "this kernel has no tracefs with uprobe_events"
				: "probes need root (CAP_SYS_ADMIN); run it with sudo");
		return events;
	}
	close(events);
	remove_stale(fd);
	*ret = (struct probe){ .tracefs = fd, .anchor = -1 };
	return 0;
}

struct site {
	uint64_t start, end; /* of the mapping */
	uint64_t offset;     /* in the file */
};

/* Follows the mapping itself, so that the file is right whatever its path shows. */
static int find_site(pid_t pid, uint64_t address, struct site *ret)
{
	char path[64], *line = NULL;
	size_t room = 0;
	int err = -ENOENT;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (err < 0 && getline(&line, &room, f) > 0) {
		uint64_t start, end, offset, inode;
		char rights[8];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64, &start,
			    &end, rights, &offset, &inode) != 5)
			continue;
		if (address < start || address >= end || rights[2] != 'x' || inode == 0)
			continue;
		*ret = (struct site){ start, end, address - start + offset };
		err = 0;
	}
	free(line);
	fclose(f);
	return err;
}

/* The address is the target's word: only a plain nop may become a trap. */
static int check_site(pid_t pid, const struct site *site)
{
#if defined(__aarch64__)
	static const uint8_t nop[] = { 0x1f, 0x20, 0x03, 0xd5 };
#else
	static const uint8_t nop[] = { 0x90 };
#endif
	uint8_t found[sizeof(nop)];
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, site->start,
		site->end);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = sys_pread(fd, found, sizeof(found), (off_t)site->offset);
	close(fd);
	return n == (ssize_t)sizeof(nop) && memcmp(found, nop, sizeof(nop)) == 0 ? 0 : -ENOEXEC;
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
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = p->id,
		.disabled = 1,
	};

	/* On the first thread: an event goes with the thread that it is on. */
	p->anchor = (int)SYS_RESULT(
		syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC));
	return NULL;
}

int probe_define(struct probe *p, pid_t pid, uint64_t address)
{
	char text[256], path[PROBE_GROUP_ROOM + 32];
	struct site site = { 0 };
	int err;

	err = find_site(pid, address, &site);
	if (err == 0)
		err = check_site(pid, &site);
	if (err < 0)
		return err;
	snprintf(p->group, sizeof(p->group), PREFIX "%d_%" PRIx64, (int)getpid(), now_ns());
	snprintf(text, sizeof(text),
		"p:%s/" OWN_EVENT " /proc/%d/map_files/%" PRIx64 "-%" PRIx64 ":0x%" PRIx64 "\n",
		p->group, pid, site.start, site.end, site.offset);
	err = write_definition(p->tracefs, text);
	if (err < 0) {
		p->group[0] = '\0';
		return err;
	}
	snprintf(path, sizeof(path), "events/%s/" OWN_EVENT "/id", p->group);
	err = read_text(p->tracefs, path, text, sizeof(text));
	p->id = err < 0 ? 0 : strtoull(text, NULL, 10);
	if (!p->id)
		probe_remove(p);
	return p->id ? 0 : err < 0 ? err : -EIO;
}

void probe_anchor(struct probe *p)
{
	if (p->id && !p->opening)
		p->opening = pthread_create(&p->opener, NULL, open_anchor, p) == 0;
}

void probe_remove(struct probe *p)
{
	char text[PROBE_GROUP_ROOM + 32];

	if (p->opening)
		pthread_join(p->opener, NULL);
	p->opening = false;
	p->anchor = sys_close(p->anchor);
	if (p->group[0]) {
		snprintf(text, sizeof(text), "-:%s/" OWN_EVENT "\n", p->group);
		write_definition(p->tracefs, text);
		p->group[0] = '\0';
	}
	p->id = 0;
}
