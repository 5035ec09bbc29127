/* SPDX-License-Identifier: MIT */
#include "members.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "calibrate.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "snapshot.h"
#include "welcome.h"

/*
 * Processes that we could not confirm and still keep apart: more than one batch
 * of records can name, since those must not go before it is done.
 */
#define STRANGERS_MAX (2 * CONSUMER_BATCH)

/* The process's first phase is called START; with counters it has a baseline. */
struct birth {
	const char *how;    /* "first", "exec", "fork" */
	uint64_t time_ns;   /* a forked child's: of its first marker */
	const char *absent; /* why it has no counters, or NULL */
};

static void record_start(struct session *s, struct process *p, const struct birth *birth)
{
	/* What a forked child did before its first marker was counted by nobody. */
	bool baseline = !str_eq(birth->how, "fork");
	bool shown = str_eq(birth->how, "first") || str_eq(birth->how, "attach");
	uint64_t time = birth->time_ns;

	p->baseline = baseline;
	p->start_counts = shown;
	s->phases += shown;

	recorder_process(s->recorder, time, p->index, p->as_named, p->parent, p->name, birth->how,
		birth->absent);
	p->last_ns = time;
	recorder_marker(s->recorder, &(struct record_marker){
					     .time_ns = time,
					     .process = p->index,
					     .tid = (uint32_t)p->as_named,
					     .kind = JPHASE_PHASE,
					     .name = "START",
					     .snapshot = baseline ? snapshot_of(s, p) : 0,
					     .done_ns = time,
				     });
}

/* Without a pidfd, or where it cannot be watched, its end is looked for now and then. */
static void watch_end(struct session *s, struct process *p)
{
	if (p->pidfd >= 0 && control_watch(s->control, p->pidfd, p->index) < 0)
		p->pidfd = sys_close(p->pidfd);
}

/* What a process that cannot be looked at has in place of counters. */
static const char *absence(int err, char room[READER_REASON_ROOM])
{
	if (err == 0 || err == -ESRCH || err == -ENOENT)
		return "not counted: the process had ended before its counters could be opened";
	snprintf(room, READER_REASON_ROOM, "not counted: the process could not be looked at: %s%s",
		strerror(-err),
		err == -EMFILE ? " in the collector; raise its limit (ulimit -n)" : "");
	return room;
}

int members_add_first(struct session *s, const struct session_start *start, struct process **ret)
{
	struct process_facts facts;
	struct process *p;
	int err = process_facts(start->pid, &facts);

	if (err < 0)
		return err;
	p = process_add(&s->processes);
	if (!p)
		return -ENOMEM;
	p->pid = start->pid;
	p->as_named = facts.inner;
	p->parent = facts.parent;
	p->first = p->confirmed = true;
	p->site = start->site;
	/* Before its exec the program still has our name. */
	snprintf(p->name, sizeof(p->name), "%s",
		start->launched ? basename(start->command) : facts.name);
	*ret = p;
	return 0;
}

void members_start_first(struct session *s, struct process *p, bool privileged)
{
	record_start(s, p, &(struct birth){ .how = "first", .time_ns = now_ns() });
	for (size_t i = 0; privileged && i < s->sources.count; i++)
		if (p->reader[i] && s->sources.source[i].ops->lost)
			snapshot_give_up(s, p, i, READER_LOST_AT_EXEC);
	watch_end(s, p);
}

/* A process that is proven to be ours gets its own counters. */
static struct process *join(struct session *s, pid_t pid, const struct process_facts *facts,
	const char *how, uint64_t time_ns)
{
	char reasons[SOURCE_MAX][READER_REASON_ROOM] = { "" }, room[READER_REASON_ROOM];
	struct reader_target target = session_target(s, pid, false);
	struct birth birth = { .how = how, .time_ns = time_ns };
	struct process *p;
	int err;

	p = process_add(&s->processes);
	if (!p)
		return NULL;
	p->pid = pid;
	p->as_named = facts->inner;
	p->parent = facts->parent;
	p->confirmed = true;
	p->calibrates = calibrate_is(s, pid);
	snprintf(p->name, sizeof(p->name), "%s", facts->name);
	err = process_open(p, &s->sources, &target, reasons);
	if (err < 0) {
		p->confirmed = false;
		birth.absent = absence(err, room);
	}
	for (size_t i = 0; i < s->sources.count && !birth.absent; i++)
		if (reasons[i][0])
			birth.absent = reasons[i];
	record_start(s, p, &birth);
	watch_end(s, p);
	return p;
}

struct process *members_join(struct session *s, pid_t pid, const char *how, uint64_t time_ns)
{
	struct process_facts facts;

	if (process_facts(pid, &facts) < 0 || facts.tgid != pid)
		return NULL;
	return join(s, pid, &facts, how, time_ns);
}

/* Then its number may be another's by now.  Older kernels cannot tell. */
static bool has_left(int socket)
{
	struct pollfd end = { .fd = sys_peer_pidfd(socket), .events = POLLIN };
	bool left = end.fd < 0 ? end.fd == -ESRCH || end.fd == -EINVAL : poll(&end, 1, 0) > 0;

	sys_close(end.fd);
	return left;
}

/* NULL: whoever asked is not there any more. */
static struct process *join_asking(struct session *s, const struct job *job)
{
	struct process_facts facts;
	struct process *p;
	int err = process_facts(job->pid, &facts);

	if (err < 0) {
		if (err != -ESRCH && err != -ENOENT)
			session_note(s, NULL, "process %d is not measured: %s", (int)job->pid,
				strerror(-err));
		return NULL;
	}
	p = join(s, job->pid, &facts, calibrate_is(s, job->pid) ? "calibration" : "exec", now_ns());
	/* What was opened meanwhile counts somebody else. */
	if (p && has_left(job->fd)) {
		p->confirmed = false;
		members_bury(s, p);
		p = NULL;
	}
	return p;
}

void members_register(struct session *s, const struct job *job)
{
	struct process *p = process_find_pid(&s->processes, job->pid);

	if (has_left(job->fd)) {
		close(job->fd);
		return;
	}
	if (p && process_is_replaced(p, now_ns()))
		p = NULL;
	session_begin_sampling(s, job->pid, job->site);
	/*
	 * The same pid after an exec keeps its group.  Its threads are gone: where
	 * another one than the main thread called exec, it has taken that one's
	 * tid, and not its counters.
	 */
	if (p)
		thread_table_clear(&p->threads);
	else
		p = join_asking(s, job);
	if (p) {
		p->site = job->site;
		welcome_send(s, job->fd, p->first);
	}
	close(job->fd);
}

/*
 * The administrator's probe is perhaps on another file, as after an update of
 * the library: the kernel would never sample anything.
 */
static void check_probe(struct session *s, const struct process *p)
{
	if (s->probe_checked || !p->site)
		return;
	s->probe_checked = true;
	if (!site_is_bare(p->pid, p->site))
		return;
	s->mode = MODE_SYNC;
	s->shared.page->flags &= ~JPHASE_SESSION_SAMPLES;
	session_note(s, NULL,
		"exact mode could not begin (the probe %s is not on the library that the program "
		"has loaded): regions are read as in sync mode",
		probe_name(&s->probe));
}

struct thread *members_thread(struct session *s, struct process *p, pid_t tid)
{
	struct reader_target target = session_target(s, tid, false);
	char reason[READER_REASON_ROOM];
	bool sampled = s->mode == MODE_EXACT && s->probe.defined;
	struct thread *t;

	/* In another pid namespace its number means nothing to us. */
	if (!s->regions || !p->confirmed || p->pid != p->as_named)
		return NULL;
	t = thread_find(&p->threads, tid);
	if (t)
		return t;
	target.alone = true;
	target.probe = sampled ? &s->probe.event : NULL;
	s->samples |= sampled;
	/* To a program without regions it is all the same. */
	if (!s->threads_seen && s->not_exact[0])
		session_note(s, NULL, "not exact: %s", s->not_exact);
	s->threads_seen = true;
	if (sampled)
		probe_anchor(&s->probe);
	t = thread_open(&p->threads, &s->sources, p->pid, &target, reason);
	if (t && sampled && !reason[0])
		check_probe(s, p);
	if (t && reason[0] && !p->threads_noted && !p->calibrates) {
		p->threads_noted = true;
		session_note(s, p, "regions have times but no counters: %s", reason);
	}
	return t;
}

/*
 * as_named may be a thread: in a forked child whose other threads mark first
 * they take their own number for the process's.
 */
static int adopt_confirmed(
	struct session *s, pid_t as_named, uint64_t time_ns, struct process **ret)
{
	struct process_facts facts;
	struct process *p;
	int err = process_facts(as_named, &facts);
	pid_t pid = err < 0 ? 0 : facts.tgid;

	if (err < 0)
		return err;
	p = pid == as_named ? NULL : process_find_pid(&s->processes, pid);
	if (!p) {
		err = pid == as_named ? 0 : process_facts(pid, &facts);
		if (err == 0 && facts.inner == pid)
			err = process_maps_ring(pid, &s->shared);
		if (err <= 0)
			return err;
		p = join(s, pid, &facts, "fork", time_ns);
	}
	if (p && pid != as_named)
		p->alias = as_named;
	*ret = p;
	return 0;
}

/* The one that has been silent for the longest makes room for another. */
static void limit_strangers(struct session *s)
{
	struct process *oldest = NULL;
	size_t count = 0;

	for (size_t i = 0; i < s->processes.count; i++) {
		struct process *p = s->processes.live[i];

		if (p->confirmed)
			continue;
		count++;
		if (!oldest || p->seen_ns < oldest->seen_ns)
			oldest = p;
	}
	if (count >= STRANGERS_MAX)
		members_bury(s, oldest);
}

struct process *members_adopt(struct session *s, pid_t as_named, uint64_t time_ns)
{
	char room[READER_REASON_ROOM];
	struct process *p = NULL;
	int err = adopt_confirmed(s, as_named, time_ns, &p);

	if (p)
		return p;
	/* Whoever it is: it keeps its markers as they are and gets no counters. */
	limit_strangers(s);
	p = process_add(&s->processes);
	if (!p)
		return NULL;
	p->as_named = as_named;
	record_start(s, p,
		&(struct birth){
			.how = "fork",
			.time_ns = time_ns,
			.absent = absence(err, room),
		});
	return p;
}

void members_bury(struct session *s, struct process *p)
{
	struct process_end end = process_end_of(p);
	struct record_exit exit = {
		.time_ns = MAX(now_ns(), p->last_ns),
		.process = p->index,
		.status = end.status,
		.user_us = end.user_us,
		.system_us = end.system_us,
		.peak_bytes = VALUE_ABSENT,
	};

	if (p->first && s->launched && s->command.kind == JOB_COMMAND) {
		exit.status = s->command.status;
		exit.user_us = s->command.user_us;
		exit.system_us = s->command.system_us;
		exit.peak_bytes = s->command.peak_bytes;
	}
	/* After its own exit marker there is nothing left to charge. */
	if (p->confirmed && !p->ended)
		exit.snapshot = snapshot_of(s, p);
	recorder_exit(s->recorder, &exit);
	if (p->confirmed && !p->replaced) {
		consumer_bury(&s->consumer, p->as_named);
		if (p->alias)
			consumer_bury(&s->consumer, p->alias);
	}
	process_remove(&s->processes, p);
}

void members_attach(struct session *s, const struct session_start *start, uint64_t since_ns)
{
	for (size_t i = 0; i < start->other_count; i++)
		if (!members_join(s, (pid_t)start->others[i], "attach", now_ns()))
			session_note(s, NULL, "process %u had ended before it could be attached to",
				start->others[i]);
	session_note(s, NULL,
		"attaching took %.1f ms; what a thread did that another one started just then may "
		"be missing",
		(double)(now_ns() - since_ns) / NSEC_PER_MSEC);
}
