/* SPDX-License-Identifier: MIT */
#include "marks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "intake.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "members.h"
#include "snapshot.h"

/* A clock that differs by more is not ours. */
#define CLOCK_NS NSEC_PER_SEC

/* No chain of parents is longer. */
#define PARENTS_MAX 64

/* Each may be for another process; tokens are all the first one's. */
#define ASKING_MAX (SNAPSHOT_PROCESSES - 1)

struct marks {
	size_t count;
	size_t asking; /* who waits for an answer */
	struct process *process[CONSUMER_BATCH];
	int fd[CONSUMER_BATCH];
};

__attribute__((format(printf, 4, 5))) static void answer(
	int fd, int status, pid_t pid, const char *format, ...)
{
	struct jphase_answer a = {
		.length = sizeof(a),
		.status = status,
		.pid = (uint32_t)pid,
	};
	va_list ap;

	if (fd < 0)
		return;
	va_start(ap, format);
	vsnprintf(a.message, sizeof(a.message), format, ap);
	va_end(ap);
	/* Who does not wait for it is not told. */
	(void)send(fd, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

void marks_refuse(const struct job *job)
{
	answer(job->fd, -ESRCH, 0, "the session has ended");
}

static struct process *find_first(const struct session *s)
{
	for (size_t i = 0; i < s->processes.count; i++)
		if (s->processes.live[i]->first)
			return s->processes.live[i];
	return NULL;
}

/* Who owns its files in /proc: not its user, if nobody may look into it. */
static bool have_same_owner(pid_t a, pid_t b)
{
	char path[2][32];
	struct stat st[2];

	snprintf(path[0], sizeof(path[0]), "/proc/%d", (int)a);
	snprintf(path[1], sizeof(path[1]), "/proc/%d", (int)b);
	return stat(path[0], &st[0]) == 0 && stat(path[1], &st[1]) == 0 &&
	       st[0].st_uid == st[1].st_uid;
}

/* The process of the session that this one descends from, or NULL. */
static const struct process *find_ancestor(const struct session *s, pid_t pid)
{
	struct process_facts facts;

	for (int i = 0; i < PARENTS_MAX && pid > 1; i++) {
		const struct process *p = process_find_pid(&s->processes, pid);

		if (p || process_facts(pid, &facts) < 0)
			return p;
		pid = facts.parent;
	}
	return NULL;
}

/*
 * NULL: it is none of ours.  A program without our library does not say that it
 * is there: then its parents prove it.
 */
static struct process *find_process(struct session *s, const struct job *job, uint64_t time_ns)
{
	struct process *p = job->pid ? process_find_pid(&s->processes, job->pid) : find_first(s);
	const struct process *ancestor;

	if (p || !job->pid)
		return p;
	ancestor = find_ancestor(s, job->pid);
	if (!ancestor || !have_same_owner(ancestor->pid, job->pid))
		return NULL;
	return members_join(s, job->pid, "fork", time_ns);
}

static void refuse(struct session *s, const struct job *job)
{
	s->outside_lost += job->fd < 0;
	if (job->pid)
		answer(job->fd, -ESRCH, job->pid, "process %d is not of this session",
			(int)job->pid);
	else
		answer(job->fd, -ESRCH, 0,
			"the program has ended; choose another of its processes with --pid");
}

static uint64_t time_of(const struct job *job)
{
	uint64_t now = now_ns();

	if (job->clock_ns > now || (job->fd >= 0 && now - job->clock_ns > CLOCK_NS))
		return now;
	return job->clock_ns;
}

static void add(struct session *s, struct marks *m, const struct job *job)
{
	uint64_t time_ns = time_of(job);
	struct process *p = find_process(s, job, time_ns);
	struct jphase_record *rec = &s->batch[m->count].record;

	if (!p || !p->confirmed) {
		refuse(s, job);
		return;
	}
	if (job->mark.kind == JPHASE_NONE) {
		answer(job->fd, 0, p->pid, "%s", p->name);
		return;
	}
	/* No thread of the process did it. */
	*rec = (struct jphase_record){
		.clock_ns = time_ns,
		.id = job->mark.id,
		.pid = (uint32_t)p->as_named,
		.kind = job->mark.kind,
		.flags = JPHASE_FLAG_OUTSIDE | (job->mark.flags & JPHASE_FLAG_TOKEN),
	};
	memcpy(rec->name, job->mark.name, sizeof(rec->name));
	m->asking += job->fd >= 0;
	m->process[m->count] = p;
	m->fd[m->count++] = job->fd;
}

void marks_take(struct session *s, const struct job *first)
{
	struct job job = *first;
	struct marks m;

	m.count = m.asking = 0;
	do
		add(s, &m, &job);
	while (m.count < CONSUMER_BATCH && m.asking < ASKING_MAX && jobs_take_mark(&s->jobs, &job));
	if (!m.count)
		return;
	intake_marks(s, m.process, m.count);
	for (size_t i = 0; i < m.count; i++)
		answer(m.fd[i], 0, m.process[i]->pid, "%s", m.process[i]->name);
}
