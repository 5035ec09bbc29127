/* SPDX-License-Identifier: MIT */
#include "readers/reader.h"

#include <stddef.h>

const struct reader_ops *const reader_registry[] = {
	&perf_reader,
	&cgroup_reader,
	&procfs_reader,
	&energy_reader,
	NULL,
};
