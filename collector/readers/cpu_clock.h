/* SPDX-License-Identifier: MIT */
/*
 * The CPU time of a process: of all its threads, those that have ended too.
 * One that runs at this moment is behind by up to a tick of the kernel's timer.
 */
#ifndef READERS_CPU_CLOCK_H
#define READERS_CPU_CLOCK_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* -ENXIO: proc_root has other numbers for processes than the kernel has for us. */
int cpu_clock_of(const char *proc_root, pid_t pid, clockid_t *ret);

/* VALUE_ABSENT: there is no such process any more. */
uint64_t cpu_clock_read(clockid_t clock);

#endif
