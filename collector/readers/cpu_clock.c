/* SPDX-License-Identifier: MIT */
#include "readers/cpu_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal/util.h"
#include "metric.h"

int cpu_clock_of(const char *proc_root, pid_t pid, clockid_t *ret)
{
	char path[4096], self[32] = "";

	snprintf(path, sizeof(path), "%s/self", proc_root);
	if (readlink(path, self, sizeof(self) - 1) <= 0 || atoi(self) != (int)getpid())
		return -ENXIO;
	return -clock_getcpuclockid(pid, ret);
}

uint64_t cpu_clock_read(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts) == 0 ? timespec_ns(&ts) : VALUE_ABSENT;
}
