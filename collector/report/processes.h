/* SPDX-License-Identifier: MIT */
/* The processes of a recording: all by index, those that live in a list and by pid. */
#ifndef REPORT_PROCESSES_H
#define REPORT_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process;

#define PROCESS_BUCKETS 4096

struct processes {
	struct process **at; /* with gaps */
	size_t room;
	struct process *living;
	struct process *bucket[PROCESS_BUCKETS]; /* of the living, by pid */
};

/* NULL: there is none. */
struct process *process_at(const struct processes *all, uint64_t index);
/* The youngest of that pid that lives, or NULL. */
struct process *process_living(const struct processes *all, pid_t pid);

/* Takes one with an index that is free; it lives.  -ENOMEM. */
int processes_add(struct processes *all, struct process *p);
/* Each does nothing where it is so already. */
void process_dies(struct processes *all, struct process *p);
void process_revives(struct processes *all, struct process *p);

#endif
