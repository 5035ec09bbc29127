/* SPDX-License-Identifier: MIT */
/* /proc/PID/stat, as a whole and once. */
#ifndef READERS_PROCESS_STAT_H
#define READERS_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
	char state;
	uint64_t flags;                          /* PF_* of the kernel */
	uint64_t user, system;                   /* these five in clock ticks */
	uint64_t children_user, children_system; /* of those that it has waited for */
	uint64_t started;                        /* since the boot: tells a pid's holders apart */
	int status; /* as wait() gives it; 0 until it has ended, and for who may not look into it */
};

/* -ESRCH: there is no such process; else it could not be asked. */
int process_stat_read(const char *proc_root, pid_t pid, struct process_stat *ret);

/* Nothing of it is left but what its parent has to take away. */
bool process_stat_is_dead(const struct process_stat *stat);

uint64_t ticks_ns(uint64_t ticks);

#endif
