/* SPDX-License-Identifier: MIT */
#include "feature.h"

#include <linux/perf_event.h>
#include <stdatomic.h>

#include "internal/sys.h"

enum answer {
	ANSWER_UNKNOWN,
	ANSWER_NO,
	ANSWER_YES,
};

static bool works(int fd)
{
	sys_close(fd);
	return fd >= 0;
}

static bool event_works(uint32_t type, uint64_t config, bool inherited_group)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.read_format = inherited_group ? PERF_FORMAT_GROUP : 0,
		.disabled = 1,
		.inherit = inherited_group,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return works((int)SYS_RESULT(
		syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

static bool probe_perf(void)
{
	return event_works(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
}

static bool probe_hardware(void)
{
	return event_works(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
}

static bool probe_inherited_groups(void)
{
	return event_works(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true);
}

static bool probe_pidfd(void)
{
	return works(sys_pidfd_open(getpid()));
}

static bool probe_memfd(void)
{
	return works(sys_memfd("jphase-probe"));
}

static bool (*const probes[FEATURE_COUNT])(void) = {
	[FEATURE_PERF] = probe_perf,
	[FEATURE_HARDWARE] = probe_hardware,
	[FEATURE_INHERITED_GROUPS] = probe_inherited_groups,
	[FEATURE_PIDFD] = probe_pidfd,
	[FEATURE_MEMFD] = probe_memfd,
};

/* Two threads may probe at once; they find the same. */
static _Atomic int answers[FEATURE_COUNT];

bool feature_has(enum feature feature)
{
	int answer = atomic_load_explicit(&answers[feature], memory_order_relaxed);

	if (answer == ANSWER_UNKNOWN) {
		answer = probes[feature]() ? ANSWER_YES : ANSWER_NO;
		atomic_store_explicit(&answers[feature], answer, memory_order_relaxed);
	}
	return answer == ANSWER_YES;
}
