/* SPDX-License-Identifier: MIT */
#include "readers/perf_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/process_stat.h"
#include "readers/textfile.h"

/* PF_EXITING of the kernel, in /proc/PID/stat. */
#define FLAG_EXITING 0x4

/* This much time on a CPU proves that the counters should have moved. */
#define PROOF_NS (50 * NSEC_PER_MSEC)

struct state {
	uint64_t born; /* when the process started: a pid may come back */
	uint64_t ran_ns;
	bool ending;
};

struct rights {
	unsigned real_user, user, real_group, group;
	unsigned owner; /* of its files in /proc: root's, if nobody may look into it */
};

struct perf_watch {
	const struct reader_env *env;
	pid_t pid;
	int fd; /* an event of its first thread; -1: it could not be had */
	void *page;
	uint64_t born;
	struct rights rights;
	bool suspected; /* since then: */
	uint64_t enabled_ns, ran_ns;
};

static int state_read(const struct perf_watch *w, struct state *ret)
{
	struct process_stat stat;
	int err = process_stat_read(w->env->proc_root, w->pid, &stat);

	if (err < 0)
		return err;
	*ret = (struct state){
		.born = stat.started,
		.ran_ns = ticks_ns(stat.user + stat.system),
		.ending = process_stat_is_dead(&stat) || stat.flags & FLAG_EXITING,
	};
	return 0;
}

static int rights_read(const struct perf_watch *w, struct rights *ret)
{
	char text[4096], path[128];
	const char *users, *groups;
	struct stat st;
	int err;

	err = textfile_read(text, sizeof(text), "%s/%d/status", w->env->proc_root, (int)w->pid);
	if (err < 0)
		return err;
	users = strstr(text, "\nUid:");
	groups = strstr(text, "\nGid:");
	if (!users || !groups || sscanf(users, " Uid: %u %u", &ret->real_user, &ret->user) != 2 ||
		sscanf(groups, " Gid: %u %u", &ret->real_group, &ret->group) != 2)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/%d", w->env->proc_root, (int)w->pid);
	err = (int)SYS_RESULT(stat(path, &st));
	ret->owner = st.st_uid;
	return err;
}

/* Becoming another one, or one that nobody may look into, is what makes the kernel do it. */
static bool has_changed_rights(const struct perf_watch *w)
{
	struct rights now;

	if (rights_read(w, &now) < 0)
		return false;
	return now.real_user != now.user || now.real_group != now.group || now.owner != now.user ||
	       now.real_user != w->rights.real_user || now.user != w->rights.user ||
	       now.group != w->rights.group;
}

/*
 * An event that counts nothing.  It tells that it is gone by POLLHUP, which
 * every event does that has no page mapped; an inherited one cannot have any.
 */
static void event_open(struct perf_watch *w)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};

	w->fd = (int)SYS_RESULT(
		syscall(SYS_perf_event_open, &attr, w->pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
	if (w->fd < 0)
		return;
	w->page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, w->fd, 0);
	if (w->page == MAP_FAILED)
		w->fd = sys_close(w->fd);
}

int perf_watch_open(const struct reader_env *env, pid_t pid, struct perf_watch **ret)
{
	struct perf_watch *w = malloc(sizeof(*w));
	struct state state;
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct perf_watch){ .env = env, .pid = pid, .fd = -1 };
	err = state_read(w, &state);
	if (err == 0)
		err = rights_read(w, &w->rights);
	if (err < 0) {
		perf_watch_close(w);
		return err;
	}
	w->born = state.born;
	event_open(w);
	*ret = w;
	return 0;
}

static bool is_event_gone(const struct perf_watch *w)
{
	struct pollfd p = { .fd = w->fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* It has run since the last look, and its counters have not seen it. */
static bool has_run_uncounted(struct perf_watch *w, uint64_t enabled_ns, uint64_t ran_ns)
{
	uint64_t enabled = saturating_sub(enabled_ns, w->enabled_ns);
	uint64_t ran = saturating_sub(ran_ns, w->ran_ns);

	if (w->suspected && ran >= PROOF_NS && enabled < ran / 2)
		return true;
	if (!w->suspected || ran >= PROOF_NS) {
		w->suspected = true;
		w->enabled_ns = enabled_ns;
		w->ran_ns = ran_ns;
	}
	return false;
}

bool perf_watch_is_lost(struct perf_watch *w, uint64_t enabled_ns)
{
	bool gone = w->fd >= 0 && is_event_gone(w);
	struct state state;

	if (w->fd >= 0 && !gone)
		return false;
	/* Read after the look: a process that ends has said so before its events go. */
	if (state_read(w, &state) < 0 || state.ending || state.born != w->born)
		return false;
	/* Another thread may have taken the first one's place by exec; it goes on being counted. */
	return (gone && has_changed_rights(w)) || has_run_uncounted(w, enabled_ns, state.ran_ns);
}

struct perf_watch *perf_watch_close(struct perf_watch *w)
{
	if (!w)
		return NULL;
	if (w->fd >= 0)
		munmap(w->page, (size_t)sysconf(_SC_PAGESIZE));
	sys_close(w->fd);
	free(w);
	return NULL;
}
