/* SPDX-License-Identifier: MIT */
#include "readers/cpu_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "internal/util.h"
#include "metric.h"

bool cpu_clock_knows(const char *proc_root)
{
	char path[4096], self[32] = "";

	snprintf(path, sizeof(path), "%s/self", proc_root);
	return readlink(path, self, sizeof(self) - 1) > 0 && atoi(self) == (int)getpid();
}

uint64_t cpu_clock_read(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return VALUE_ABSENT;
	return timespec_ns(&ts);
}
