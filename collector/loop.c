/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <stdatomic.h>
#include <sys/file.h>

#include "calibrate.h"
#include "intake.h"
#include "internal/doorbell.h"
#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "marks.h"
#include "members.h"
#include "snapshot.h"

#define HOUSEKEEPING_NS (100 * NSEC_PER_MSEC)
#define LINGER_NS       NSEC_PER_SEC
#define EXEC_NS         (50 * NSEC_PER_MSEC)
#define SWEEP_NS        NSEC_PER_SEC
#define BLOCKED_NS      NSEC_PER_MSEC
#define FLUSH_NS        (2 * NSEC_PER_SEC)

/* A process that has ended is kept no longer for what it may have left in the ring. */
#define LEAVE_NS (2 * CONSUMER_CLAIM_NS)

/* A process that we could not confirm is forgotten when it has been silent this long. */
#define STRANGER_NS (2 * NSEC_PER_SEC)

static struct process *find_index(const struct session *s, uint64_t index)
{
	for (size_t i = 0; i < s->processes.count; i++)
		if (s->processes.live[i]->index == index)
			return s->processes.live[i];
	return NULL;
}

/* The launcher tells the end of the first process better than anyone: wait for it. */
static void process_gone(struct session *s, struct process *p)
{
	p->gone = true;
	if (p->first && s->launched && s->command.kind != JOB_COMMAND)
		return;
	members_bury(s, p);
}

static void begin_leaving(struct session *s, struct process *p)
{
	p->leaving = true;
	p->left_ns = now_ns();
	p->left_at = atomic_load_explicit(&s->shared.ring->head, memory_order_relaxed);
}

/*
 * Another one's claim may be in the way of what it has left, and would make its
 * records those of a stranger.  The position is only a hint, which a target may
 * have written: not for ever.
 */
static bool has_left(const struct session *s, const struct process *p, uint64_t now)
{
	return ring_distance(p->left_at, s->consumer.tail) <= 0 || now - p->left_ns >= LEAVE_NS;
}

/* True if somebody has gone. */
static bool see_off(struct session *s)
{
	uint64_t now = now_ns();
	bool any = false;

	for (size_t i = s->processes.count; i > 0; i--) {
		struct process *p = s->processes.live[i - 1];

		if (!p->leaving || !has_left(s, p, now))
			continue;
		p->leaving = false;
		process_gone(s, p);
		any = true;
	}
	return any;
}

/* Without a status the launcher itself has died: the program goes on as any other. */
static void command_ended(struct session *s, const struct job *job)
{
	s->launched = job->status != RECORD_STATUS_UNKNOWN;
	s->command = *job;
	s->command_ended_ns = now_ns();
	s->outside_lost += job->lost;
	for (size_t i = 0; i < s->processes.count; i++)
		if (s->processes.live[i]->first && s->processes.live[i]->gone) {
			members_bury(s, s->processes.live[i]);
			return;
		}
}

/* A dead process publishes nothing more: true if a claim of its was in the way. */
static bool end_claim(struct session *s, const struct process *p)
{
	return p->confirmed && s->consumer.blocked_since_ns &&
	       process_is_called(p, s->consumer.blocked_by) &&
	       consumer_unblock(&s->consumer, now_ns(), true);
}

/* Whatever it published before its end is in the ring by now. */
static void drain_dead(struct session *s, uint64_t index)
{
	for (uint32_t i = 0; i < s->shared.records; i++) {
		const struct process *p;

		intake_drain_present(s);
		p = find_index(s, index);
		if (!p || !end_claim(s, p))
			return;
	}
}

static void do_job(struct session *s, const struct job *job)
{
	struct process *p;

	switch (job->kind) {
	case JOB_REGISTER:
		/* What an image before an exec has left is its threads' yet. */
		if (process_find_pid(&s->processes, job->pid))
			intake_drain_present(s);
		members_register(s, job);
		break;
	case JOB_GONE:
		p = find_index(s, job->index);
		if (p)
			begin_leaving(s, p);
		drain_dead(s, job->index);
		see_off(s);
		break;
	case JOB_COMMAND:
		intake_drain(s);
		command_ended(s, job);
		break;
	case JOB_STOP: break;
	case JOB_MARK:
		intake_drain(s);
		marks_take(s, job);
		break;
	}
}

static bool do_jobs(struct session *s)
{
	struct job job;
	bool any = false;

	while (!jobs_stopped(&s->jobs) && jobs_take(&s->jobs, &job)) {
		do_job(s, &job);
		any = true;
	}
	s->stopping |= jobs_stopped(&s->jobs);
	return any;
}

static void unblock(struct session *s)
{
	struct consumer *c = &s->consumer;
	const struct process *owner =
		c->blocked_since_ns ? process_find(&s->processes, c->blocked_by) : NULL;
	bool dead = owner && owner->confirmed && process_has_ended(owner);

	consumer_unblock(c, now_ns(), dead);
}

static void forget_strangers(struct session *s, uint64_t now)
{
	for (size_t i = s->processes.count; i > 0; i--) {
		struct process *p = s->processes.live[i - 1];

		if (!p->confirmed && now - p->seen_ns > STRANGER_NS)
			members_bury(s, p);
	}
}

/* Where the kernel has no pidfd, or there was no descriptor for one. */
static void look_for_ends(struct session *s)
{
	for (size_t i = s->processes.count; i > 0; i--) {
		struct process *p = s->processes.live[i - 1];

		if (p->confirmed && p->pidfd < 0 && !p->gone && !p->leaving && process_has_ended(p))
			begin_leaving(s, p);
	}
}

static void sweep_threads(struct session *s, uint64_t now)
{
	if (now < s->sweep_due_ns)
		return;
	s->sweep_due_ns = now + SWEEP_NS;
	for (size_t i = 0; i < s->processes.count; i++)
		thread_sweep(&s->processes.live[i]->threads, s->processes.live[i]->pid);
}

static void keep_house(struct session *s, uint64_t now)
{
	if (now < s->due_ns)
		return;
	s->due_ns = now + HOUSEKEEPING_NS;
	session_record_losses(s);
	snapshot_check_lost(s);
	sweep_threads(s, now);
	snapshot_keep_alive(s);
	look_for_ends(s);
	forget_strangers(s, now);
}

/* Asked once per housekeeping interval, and at once when the last process has ended. */
static bool is_over(struct session *s, uint64_t now, bool ask)
{
	if (s->stopping || (s->attached && s->command_ended_ns))
		return true;
	if (s->launched) {
		if (!s->command_ended_ns)
			return false;
		if (now - s->command_ended_ns >= s->config->grace_ns)
			return true;
	}
	if (s->calibration.pid > 0 && calibrate(s, now))
		return false;
	return ask && process_count_confirmed(&s->processes) == 0 &&
	       shared_is_deserted(&s->shared) && !calibrate(s, now);
}

/* Whose markers wake nobody, be it async or regions that the kernel samples. */
static bool polls(const struct session *s)
{
	return s->config->poll_ns &&
	       (s->mode == MODE_ASYNC || (s->mode == MODE_EXACT && s->samples));
}

static uint64_t patience(const struct session *s, uint64_t now, uint64_t next_sample)
{
	uint64_t until = MIN(MIN(next_sample, s->due_ns), now + HOUSEKEEPING_NS);
	uint64_t wait = saturating_sub(until, now);

	if (s->consumer.blocked_since_ns)
		wait = MIN(wait, BLOCKED_NS);
	if (polls(s))
		wait = MIN(wait, s->config->poll_ns);
	return wait;
}

static void wait_for_work(struct session *s, uint64_t timeout_ns)
{
	struct jphase_session_page *page = s->shared.page;
	uint32_t seen = doorbell_arm(page);

	if (!consumer_has_work(&s->consumer) && !jobs_pending(&s->jobs))
		doorbell_wait(page, seen, timeout_ns);
	doorbell_disarm(page);
}

/* Claims that are still open were left by the dead, or belong to who goes on unmeasured. */
static void drain_last(struct session *s, bool deserted)
{
	intake_drain(s);
	for (uint32_t i = 0; i < s->shared.records; i++) {
		if (!consumer_unblock(&s->consumer, UINT64_MAX, deserted))
			return;
		intake_drain(s);
	}
}

static void complete(struct session *s)
{
	size_t alive = process_count_confirmed(&s->processes);

	drain_last(s, alive == 0);
	/* Who lives on marks into the void from now on. */
	atomic_store(&s->shared.page->stalled, 1);
	while (s->processes.count) {
		struct process *p = s->processes.live[0];

		members_bury(s, p);
	}
	/* What has happened since the last housekeeping. */
	snapshot_keep_alive(s);
	if (alive)
		session_note(s, NULL, "%zu process%s on, unmeasured from here", alive,
			alive == 1 ? " goes" : "es go");
	/* Else it lingers, and somebody may yet come. */
	if (s->launched || s->stopping)
		session_leave_group(s);
	session_record_losses(s);
	recorder_summary(s->recorder, now_ns(), s->markers, s->lost, s->processes.next_index,
		s->snapshots, !s->stopping);
	s->unwritten = recorder_flush(s->recorder, FLUSH_NS);
	flock(recorder_fd(s->recorder), LOCK_UN);
}

void loop_run(struct session *s)
{
	bool ask = true;

	for (;;) {
		uint64_t now, next;

		intake_drain(s);
		ask |= do_jobs(s);
		unblock(s);
		ask |= see_off(s);
		now = now_ns();
		next = snapshot_sample(s, now);
		ask |= now >= s->due_ns;
		keep_house(s, now);
		if (is_over(s, now, ask))
			break;
		ask = false;
		wait_for_work(s, patience(s, now, next));
	}
	complete(s);
}

/*
 * For a forked child that is just now in an exec.  A launcher waits for us,
 * and is held up only where its command has left other processes.
 */
static uint64_t linger_ns(const struct session *s)
{
	if (s->attached)
		return 0;
	if (!s->launched)
		return LINGER_NS;
	if (s->processes.next_index < 2)
		return 0;
	return MIN(EXEC_NS, saturating_sub(s->command_ended_ns + s->config->grace_ns, now_ns()));
}

static bool come_back(struct session *s, const struct job *job)
{
	if (shared_renew_presence(&s->shared) < 0) {
		close(job->fd);
		return false;
	}
	flock(recorder_fd(s->recorder), LOCK_EX | LOCK_NB);
	atomic_store(&s->shared.page->stalled, 0);
	members_register(s, job);
	return true;
}

bool loop_linger(struct session *s)
{
	uint64_t until = now_ns() + linger_ns(s);
	struct job job;

	for (uint64_t now = now_ns(); now < until && !s->stopping; now = now_ns()) {
		if (!jobs_pending(&s->jobs))
			wait_for_work(s, until - now);
		s->stopping = jobs_stopped(&s->jobs);
		if (s->stopping || !jobs_take(&s->jobs, &job))
			continue;
		if (job.kind == JOB_REGISTER)
			return come_back(s, &job);
		if (job.kind == JOB_MARK)
			marks_refuse(&job);
	}
	return false;
}
