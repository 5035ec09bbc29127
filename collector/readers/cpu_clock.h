/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of a process: of all its threads, those that have ended too.
 * One that runs at this moment is behind by up to a tick of the kernel's timer.
 */
#ifndef READERS_CPU_CLOCK_H
#define READERS_CPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Are the numbers of processes below proc_root those that the kernel knows us by? */
bool cpu_clock_knows(const char *proc_root);

/* VALUE_ABSENT: there is no such process. */
uint64_t cpu_clock_read(pid_t pid);

#endif
