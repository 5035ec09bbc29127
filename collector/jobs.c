/* SPDX-License-Identifier: MIT */
#include "jobs.h"

#include <stdatomic.h>

#include "internal/sys.h"

void jobs_init(struct jobs *jobs, struct jphase_session_page *page)
{
	*jobs = (struct jobs){ .lock = PTHREAD_MUTEX_INITIALIZER, .page = page };
}

static void put(struct jobs *jobs, const struct job *job)
{
	size_t place = (jobs->first + jobs->count) % JOBS_ROOM;

	if (job->kind == JOB_REGISTER)
		place = jobs->first = (jobs->first + JOBS_ROOM - 1) % JOBS_ROOM;
	jobs->job[place] = *job;
	jobs->count++;
}

bool jobs_post(struct jobs *jobs, const struct job *job)
{
	size_t room = job->kind == JOB_GONE ? JOBS_ROOM - JOBS_KEPT : JOBS_ROOM;
	bool posted;

	pthread_mutex_lock(&jobs->lock);
	posted = job->kind == JOB_STOP || jobs->count < room;
	if (job->kind == JOB_STOP)
		atomic_store(&jobs->stop, true);
	else if (posted)
		put(jobs, job);
	pthread_mutex_unlock(&jobs->lock);

	atomic_fetch_add(&jobs->page->doorbell, 1);
	sys_futex_wake(&jobs->page->doorbell, 1);
	return posted;
}

static bool take(struct jobs *jobs, bool marks_only, struct job *ret)
{
	bool taken = false;

	pthread_mutex_lock(&jobs->lock);
	if (jobs->count && (!marks_only || jobs->job[jobs->first].kind == JOB_MARK)) {
		*ret = jobs->job[jobs->first];
		jobs->first = (jobs->first + 1) % JOBS_ROOM;
		jobs->count--;
		taken = true;
	}
	pthread_mutex_unlock(&jobs->lock);
	return taken;
}

bool jobs_take(struct jobs *jobs, struct job *ret)
{
	return take(jobs, false, ret);
}

bool jobs_take_mark(struct jobs *jobs, struct job *ret)
{
	return take(jobs, true, ret);
}

bool jobs_pending(struct jobs *jobs)
{
	bool pending;

	pthread_mutex_lock(&jobs->lock);
	pending = jobs->count > 0;
	pthread_mutex_unlock(&jobs->lock);
	return pending || jobs_stopped(jobs);
}

bool jobs_stopped(struct jobs *jobs)
{
	return atomic_load(&jobs->stop);
}
