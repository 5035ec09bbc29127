/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/process_stat.h"
#include "recorder.h"

#define PROC "/proc"

/* linux/pidfd.h of 6.15; the kernel fills in what it knows and says so in the mask. */
struct pidfd_info {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t pid, tgid, ppid;
	uint32_t ids[8];
	int32_t exit_code;
};

#define PIDFD_INFO_HAS_EXIT (UINT64_C(1) << 3)
#define PIDFD_ASK_INFO      _IOWR(0xff, 11, struct pidfd_info)

static FILE *open_proc(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), PROC "/%d/%s", pid, file);
	return fopen(path, "re");
}

/* The last of several numbers, which is the innermost namespace's. */
static pid_t last_number(const char *text)
{
	const char *last = strrchr(text, '\t');

	return (pid_t)strtol(last ? last : text, NULL, 10);
}

int process_facts(pid_t pid, struct process_facts *ret)
{
	struct process_facts facts = { .inner = pid };
	char line[256];
	FILE *f;

	f = open_proc(pid, "status");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, '\t');

		if (!value)
			continue;
		line[strcspn(line, "\n")] = '\0';
		value++;
		if (str_starts(line, "Name:"))
			snprintf(facts.name, sizeof(facts.name), "%.*s", PROCESS_NAME_ROOM - 1,
				value);
		else if (str_starts(line, "Tgid:"))
			facts.tgid = (pid_t)strtol(value, NULL, 10);
		else if (str_starts(line, "PPid:"))
			facts.parent = (pid_t)strtol(value, NULL, 10);
		else if (str_starts(line, "NSpid:"))
			facts.inner = last_number(value);
	}
	fclose(f);
	if (!facts.tgid)
		return -ESRCH;
	*ret = facts;
	return 0;
}

int process_maps_ring(pid_t pid, const struct shared *shared)
{
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	f = open_proc(pid, "maps");
	if (!f)
		return -errno;
	/* Whole lines: the rest of a long one could look like another. */
	while (!found && getline(&line, &room, f) > 0) {
		unsigned major_, minor_;
		uint64_t inode;

		found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &major_, &minor_, &inode) == 3 &&
			inode == shared->ring_inode &&
			makedev(major_, minor_) == shared->ring_device;
	}
	free(line);
	fclose(f);
	return found;
}

static void swap_to_front(const struct process_table *t, size_t i)
{
	struct process *p = t->live[i];

	t->live[i] = t->live[0];
	t->live[0] = p;
}

bool process_is_called(const struct process *p, pid_t as_named)
{
	return as_named > 0 && (p->as_named == as_named || p->alias == as_named);
}

struct process *process_find(const struct process_table *t, pid_t as_named)
{
	for (size_t i = 0; i < t->count; i++)
		if (!t->live[i]->replaced && process_is_called(t->live[i], as_named)) {
			swap_to_front(t, i);
			return t->live[0];
		}
	return NULL;
}

size_t process_count_confirmed(const struct process_table *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += t->live[i]->confirmed;
	return count;
}

struct process *process_find_pid(const struct process_table *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->live[i]->pid == pid && !t->live[i]->replaced)
			return t->live[i];
	return NULL;
}

struct process *process_add(struct process_table *t)
{
	struct process *p;

	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct process **grown = reallocarray(t->live, room, sizeof(*grown));

		if (!grown)
			return NULL;
		t->live = grown;
		t->room = room;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->index = t->next_index++;
	p->pidfd = -1;
	t->live[t->count++] = p;
	return p;
}

/* When it was started, in clock ticks.  -ESRCH: it is gone, or nothing but a zombie. */
static int read_start(pid_t pid, uint64_t *ret)
{
	struct process_stat stat;
	int err = process_stat_read(PROC, pid, &stat);

	if (err < 0)
		return err;
	*ret = stat.started;
	return process_stat_is_dead(&stat) ? -ESRCH : 0;
}

int process_open(struct process *p, struct source_list *sources, const struct reader_target *target,
	char (*ret_reasons)[READER_REASON_ROOM])
{
	int err;

	/* Without a pidfd its end is looked for now and then. */
	p->pidfd = sys_pidfd_open(p->pid);
	err = p->pidfd == -ESRCH ? -ESRCH : read_start(p->pid, &p->started);
	if (err < 0) {
		p->pidfd = sys_close(p->pidfd);
		return err;
	}
	p->pidfd = MAX(p->pidfd, -1);
	for (size_t i = 0; i < sources->count; i++) {
		const struct source *source = &sources->source[i];

		if (!source->present || !source->ops->per_process)
			continue;
		if (source->ops->open(target, &p->reader[i], ret_reasons[i]) < 0)
			p->reader[i] = NULL;
	}
	return 0;
}

static void process_close(struct process *p)
{
	for (size_t i = 0; i < SOURCE_MAX; i++)
		if (p->reader[i])
			p->reader[i]->ops->close(p->reader[i]);
	thread_table_clear(&p->threads);
	sys_close(p->pidfd);
	free(p);
}

void process_remove(struct process_table *t, struct process *p)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->live[i] == p) {
			t->live[i] = t->live[--t->count];
			break;
		}
	process_close(p);
}

void process_table_clear(struct process_table *t)
{
	while (t->count)
		process_remove(t, t->live[0]);
	free(t->live);
	t->live = NULL;
	t->room = 0;
}

bool process_has_ended(const struct process *p)
{
	struct pollfd poll_end = { .fd = p->pidfd, .events = POLLIN };
	uint64_t started;
	int err;

	if (p->pidfd >= 0)
		return poll(&poll_end, 1, 0) > 0;
	err = read_start(p->pid, &started);
	return err == -ESRCH || (err == 0 && started != p->started);
}

/* On the clock that markers have, which does not count the machine's sleep. */
static uint64_t ticks_to_monotonic(uint64_t ticks)
{
	struct timespec since_boot;

	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	return saturating_sub(ticks_ns(ticks) + now_ns(), timespec_ns(&since_boot));
}

bool process_is_replaced(struct process *p, uint64_t time_ns)
{
	uint64_t started;

	if (!p->confirmed || !process_has_ended(p) || read_start(p->pid, &started) < 0 ||
		started == p->started || time_ns < ticks_to_monotonic(started))
		return false;
	p->replaced = true;
	return true;
}

/* Who may not look into a process reads 0 for its status. */
static bool may_see_status(pid_t pid)
{
	char path[64], target[8];

	snprintf(path, sizeof(path), PROC "/%d/exe", pid);
	/* The same question: without that right it is EACCES, of a zombie ENOENT. */
	return readlink(path, target, sizeof(target)) >= 0 || errno == ENOENT;
}

/* While it is a zombie; afterwards its parent has taken the file away. */
static bool read_zombie(const struct process *p, struct process_end *end)
{
	struct process_stat stat;

	if (process_stat_read(PROC, p->pid, &stat) < 0 || stat.state != 'Z' ||
		(p->started && stat.started != p->started))
		return false;
	end->user_us = ticks_ns(stat.user + stat.children_user) / NSEC_PER_USEC;
	end->system_us = ticks_ns(stat.system + stat.children_system) / NSEC_PER_USEC;
	if (!may_see_status(p->pid))
		return false;
	end->status = stat.status;
	return true;
}

struct process_end process_end_of(const struct process *p)
{
	struct process_end end = {
		.status = RECORD_STATUS_UNKNOWN, .user_us = VALUE_ABSENT, .system_us = VALUE_ABSENT
	};
	struct pidfd_info info = { .mask = PIDFD_INFO_HAS_EXIT };

	if (read_zombie(p, &end))
		return end;
	if (p->pidfd >= 0 && ioctl(p->pidfd, PIDFD_ASK_INFO, &info) == 0 &&
		(info.mask & PIDFD_INFO_HAS_EXIT))
		end.status = info.exit_code;
	return end;
}
