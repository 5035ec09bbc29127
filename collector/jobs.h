/* SPDX-License-Identifier: MIT */
/*
 * What the control thread hands to the marker thread.  The lock is held for a
 * copy only; posting rings the session's doorbell.
 */
#ifndef COLLECTOR_JOBS_H
#define COLLECTOR_JOBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

enum job_kind {
	JOB_REGISTER, /* fd: where the welcome goes; pid: its process */
	JOB_GONE,     /* index: a process has ended */
	JOB_COMMAND,  /* `jphase run` has seen its command end: status and times */
	JOB_STOP,     /* end the session now */
	JOB_MARK,     /* a marker from outside; fd: where the answer goes, or -1 */
};

struct job {
	enum job_kind kind;
	int fd;
	pid_t pid;
	uint64_t site; /* address of the library's probe site */
	uint64_t index;
	int status;
	uint64_t user_us;
	uint64_t system_us;
	uint64_t peak_bytes;
	uint64_t lost; /* of a command's end: tokens */
	uint64_t clock_ns;
	struct jphase_mark mark;
};

#define JOBS_ROOM 1024

/* Places that the ends of processes, which may come by the thousand, leave to others. */
#define JOBS_KEPT 128

struct jobs {
	pthread_mutex_t lock;
	struct job job[JOBS_ROOM];
	size_t first;
	size_t count;
	_Atomic bool stop; /* JOB_STOP needs no room */
	struct jphase_session_page *page;
};

void jobs_init(struct jobs *jobs, struct jphase_session_page *page);

/*
 * False: no room now; try again later.  A process that waits for its welcome
 * comes before all that is there already.
 */
bool jobs_post(struct jobs *jobs, const struct job *job);

/* Marker thread. */
bool jobs_take(struct jobs *jobs, struct job *ret);
/* The same if the next one is a marker. */
bool jobs_take_mark(struct jobs *jobs, struct job *ret);
bool jobs_pending(struct jobs *jobs);
bool jobs_stopped(struct jobs *jobs);

#endif
