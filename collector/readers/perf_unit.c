/* SPDX-License-Identifier: MIT */
#include "readers/perf_unit.h"

#include <errno.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "internal/sys.h"
#include "internal/util.h"

#define THREAD_END_NS (20 * NSEC_PER_MSEC)

static int event_open(
	const struct perf_event_attr *attr, const struct perf_where *where, int leader)
{
	int fd;

	/* The kernel waits for an exec of the target to end, and gives up on a signal. */
	do
		fd = (int)SYS_RESULT(syscall(SYS_perf_event_open, attr, where->pid, where->cpu,
			leader, PERF_FLAG_FD_CLOEXEC | (where->cgroup ? PERF_FLAG_PID_CGROUP : 0)));
	while (fd == -EINTR);
	return fd;
}

/* Followers stay enabled: they count when their leader does. */
static void attr_prepare(struct perf_event_attr *attr, const struct perf_where *where, bool leads)
{
	attr->size = sizeof(*attr);
	attr->disabled = leads;
	attr->enable_on_exec = leads && where->start == PERF_START_EXEC;
	attr->inherit = where->pid >= 0 && !where->alone && !where->cgroup;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (!where->single)
		attr->read_format |= PERF_FORMAT_GROUP;
}

static int events_open(
	const struct perf_group *group, const struct perf_where *where, struct perf_unit *u)
{
	for (size_t i = 0; i < group->count; i++) {
		struct perf_event_attr attr = group->counter[i].attr;
		bool leads = where->single || i == 0;
		int fd;

		attr_prepare(&attr, where, leads);
		fd = event_open(&attr, where, leads ? -1 : u->fd[0]);
		/* The group is known to be possible: its thread ends just now. */
		if ((fd == -ENODEV || fd == -EINVAL) && !leads && where->cpu < 0 &&
			where->start == PERF_START_NOW)
			return -ECHILD;
		if (fd < 0)
			return fd;
		u->fd[u->count++] = fd;
	}
	return 0;
}

static int events_enable(const struct perf_unit *u)
{
	size_t leaders = u->single ? u->count : 1;

	for (size_t i = 0; i < leaders; i++) {
		int err = (int)SYS_RESULT(ioctl(u->fd[i], PERF_EVENT_IOC_ENABLE, 0));

		if (err < 0)
			return err;
	}
	return 0;
}

/* Zero bytes: the event is in its error state, as a pinned one without a place. */
static int read_words(int fd, uint64_t *words, size_t count)
{
	ssize_t size = sys_read(fd, words, count * sizeof(*words));

	if (size < 0)
		return (int)size;
	return (size_t)size == count * sizeof(*words) ? 0 : -ENODATA;
}

static int add_group(const struct perf_unit *u, uint64_t *values, uint64_t times[2])
{
	uint64_t words[3 + PERF_GROUP_MAX]; /* how many, enabled, running, values */
	int err = read_words(u->fd[0], words, 3 + u->count);

	if (err < 0)
		return err;
	times[0] += words[1];
	times[1] += words[2];
	for (size_t i = 0; i < u->count; i++)
		values[i] += words[3 + i];
	return 0;
}

static int add_single(const struct perf_unit *u, uint64_t *values, uint64_t times[2])
{
	uint64_t words[3]; /* value, enabled, running */

	for (size_t i = 0; i < u->count; i++) {
		int err = read_words(u->fd[i], words, 3);

		if (err < 0)
			return err;
		values[i] += words[0];
		times[0] += i == 0 ? words[1] : 0;
		times[1] += i == 0 ? words[2] : 0;
	}
	return 0;
}

static int unit_add(const struct perf_unit *u, uint64_t *values, uint64_t times[2])
{
	return u->single ? add_single(u, values, times) : add_group(u, values, times);
}

int perf_unit_open(
	const struct perf_group *group, const struct perf_where *where, struct perf_unit *ret)
{
	struct perf_unit u = { .single = where->single };
	uint64_t values[PERF_GROUP_MAX] = { 0 }, times[2] = { 0 };
	int err;

	err = events_open(group, where, &u);
	if (err == 0 && where->start == PERF_START_NOW) {
		/* Children that were born meanwhile hold a part of the group only. */
		err = unit_add(&u, values, times);
		if (err == 0)
			err = events_enable(&u);
	}
	if (err < 0) {
		perf_unit_close(&u);
		return err;
	}
	*ret = u;
	return 0;
}

/*
 * While a thread that is counted too is about to end, the kernel has put a
 * part of its events away and refuses to read the group: a matter of µs, or of
 * ms where that thread is not running just then.
 */
int perf_unit_add(const struct perf_unit *u, uint64_t *values, uint64_t times[2])
{
	uint64_t deadline = 0;
	int err;

	while ((err = unit_add(u, values, times)) == -ECHILD) {
		uint64_t now = now_ns();

		if (deadline && now >= deadline)
			break;
		deadline = deadline ? deadline : now + THREAD_END_NS;
		sched_yield();
	}
	return err;
}

void perf_unit_close(struct perf_unit *u)
{
	/* The leader last, or the kernel makes leaders of the others meanwhile. */
	while (u->count)
		sys_close(u->fd[--u->count]);
}
