/* SPDX-License-Identifier: MIT */
#include "readers/reader.h"

#include <stddef.h>

#include "internal/util.h"

const struct reader_ops *const reader_registry[] = {
	&perf_reader,
	&cgroup_reader,
	&procfs_reader,
	&energy_reader,
	NULL,
};

const struct reader_ops *reader_find(const char *name)
{
	for (size_t i = 0; reader_registry[i]; i++)
		if (str_eq(reader_registry[i]->name, name))
			return reader_registry[i];
	return NULL;
}
