/* SPDX-License-Identifier: MIT */
/* The processes and threads of a session: how they join it and how they go. */
#ifndef COLLECTOR_MEMBERS_H
#define COLLECTOR_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "session.h"

/* The first process, with nothing opened. */
int members_add_first(struct session *s, const struct session_start *start, struct process **ret);

/* Its readers are open: its START.  privileged: the kernel will take them away at exec. */
void members_start_first(struct session *s, struct process *p, bool privileged);

/* The other processes of an attached session, which has been attaching since then. */
void members_attach(struct session *s, const struct session_start *start, uint64_t since_ns);

/* A process has asked to join: confirms, opens, answers, closes job->fd. */
void members_register(struct session *s, const struct job *job);

/* The thread of a region's marker, with its counters open if they can be. */
struct thread *members_thread(struct session *s, struct process *p, pid_t tid);

/* A process that is ours but has not registered: a forked child, first seen at that time. */
struct process *members_adopt(struct session *s, pid_t as_named, uint64_t time_ns);

/* The process joins without having registered: how as in the recording.  NULL: it cannot. */
struct process *members_join(struct session *s, pid_t pid, const char *how, uint64_t time_ns);

/* Takes the last snapshot, records the end, forgets the process. */
void members_bury(struct session *s, struct process *p);

#endif
