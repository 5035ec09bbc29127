/* SPDX-License-Identifier: MIT */
/* The processes of a session and their readers. */
#ifndef COLLECTOR_PROCESS_H
#define COLLECTOR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader.h"
#include "shared.h"
#include "source.h"
#include "thread.h"

#define PROCESS_NAME_ROOM 64

struct process {
	uint64_t index;
	pid_t pid;      /* as we see it */
	pid_t as_named; /* as its records name it */
	uint64_t site;  /* where it says that it has the probe site; 0: not known */
	pid_t parent;   /* 0: unknown */
	pid_t alias;    /* a thread's number, by which its records name it, too; 0: none */
	int pidfd;      /* -1: unconfirmed, or its end is looked for now and then */
	bool first;
	bool confirmed;    /* proven to be ours: it may have counters */
	bool baseline;     /* its START began with counters */
	bool start_counts; /* or does not, for good, as a phase */
	bool calibrates;   /* it is ours, and shows what markers cost */
	bool ended;        /* its last boundary was its own exit marker */
	bool gone;
	bool leaving; /* it has ended, and goes when these two say so: */
	uint64_t left_ns;
	uint64_t left_at; /* before that position lies in the ring what it has left there */
	bool leaves;      /* has ended, and is buried as soon as its markers are taken */
	bool replaced;    /* its pid is someone else's by now */
	uint64_t started; /* in clock ticks since the machine has; tells a pid's holders apart */
	uint64_t seen_ns; /* of its last marker */
	uint64_t last_ns; /* time of its last marker, never decreasing */
	uint64_t read_ns; /* when the reading of its last snapshot began */
	uint64_t snapshot;
	char name[PROCESS_NAME_ROOM];
	struct reader *reader[SOURCE_MAX]; /* by source; NULL: none */
	const char *lost[SOURCE_MAX];
	struct thread_table threads; /* those with regions */
	bool threads_noted;          /* that some have no counters */
};

struct process_table {
	struct process **live;
	size_t count;
	size_t room;
	uint64_t next_index;
};

/* What /proc says of a pid. */
struct process_facts {
	pid_t tgid;
	pid_t parent;
	pid_t inner; /* its pid in its own namespace */
	char name[PROCESS_NAME_ROOM];
};

int process_facts(pid_t pid, struct process_facts *ret);

/* Does this process map the session's ring?  1, 0, or -errno. */
int process_maps_ring(pid_t pid, const struct shared *shared);

/* Do its records, or those of one of its threads, carry that number? */
bool process_is_called(const struct process *p, pid_t as_named);

/* By the number its records carry.  NULL: unknown. */
struct process *process_find(const struct process_table *t, pid_t as_named);
struct process *process_find_pid(const struct process_table *t, pid_t pid);

size_t process_count_confirmed(const struct process_table *t);

/* A new entry with nothing open.  NULL: out of memory. */
struct process *process_add(struct process_table *t);

/*
 * Opens a pidfd and the readers that have one instance a process.  A reader
 * that fails is left out, with its reason in ret_reasons.  -ESRCH: the process
 * has ended; else it could not be asked when it was started.
 */
int process_open(struct process *p, struct source_list *sources, const struct reader_target *target,
	char (*ret_reasons)[READER_REASON_ROOM]);

/* Closes everything and takes it from the table. */
void process_remove(struct process_table *t, struct process *p);
void process_table_clear(struct process_table *t);

bool process_has_ended(const struct process *p);

/*
 * Has it ended, and is its pid the pid of another that existed at that time?
 * It is then not found by its pid any more.
 */
bool process_is_replaced(struct process *p, uint64_t time_ns);

/* How it ended, as wait() says it; RECORD_STATUS_UNKNOWN if nobody knows. */
struct process_end {
	int status;
	uint64_t user_us;
	uint64_t system_us;
};

struct process_end process_end_of(const struct process *p);

#endif
