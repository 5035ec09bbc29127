/* SPDX-License-Identifier: MIT */
/* What a process that is not ours to wait for holds at the moment. */
#ifndef SUPPORT_WATCH_H
#define SUPPORT_WATCH_H

#include <stddef.h>
#include <sys/types.h>

/* 0: it has ended. */
size_t descriptors_of(pid_t pid);
/* Resident; 0: it has ended. */
long memory_kb_of(pid_t pid);

/* Waits until it holds no more than that; the test fails after 10 s. */
void wait_for_descriptors(pid_t pid, size_t most);
void wait_for_memory_below(pid_t pid, long kb);

#endif
