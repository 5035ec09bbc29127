/* SPDX-License-Identifier: MIT */
#include "readers/process_stat.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/kfile.h"
#include "readers/textfile.h"

enum column {
	COLUMN_FLAGS,
	COLUMN_USER,
	COLUMN_SYSTEM,
	COLUMN_CHILDREN_USER,
	COLUMN_CHILDREN_SYSTEM,
	COLUMN_STARTED,
	COLUMN_STATUS,
	COLUMN_COUNT,
};

static const struct kfile_key columns[COLUMN_COUNT] = {
	[COLUMN_FLAGS] = { "flags", 9 },
	[COLUMN_USER] = { "utime", 14 },
	[COLUMN_SYSTEM] = { "stime", 15 },
	[COLUMN_CHILDREN_USER] = { "cutime", 16 },
	[COLUMN_CHILDREN_SYSTEM] = { "cstime", 17 },
	[COLUMN_STARTED] = { "starttime", 22 },
	[COLUMN_STATUS] = { "exit_code", 52 },
};

/* The name may hold anything, ')' too; the state is the word after the last one. */
static char state_of(const char *text)
{
	const char *name_end = strrchr(text, ')');

	return name_end && name_end[1] == ' ' ? name_end[2] : '\0';
}

int process_stat_read(const char *proc_root, pid_t pid, struct process_stat *ret)
{
	uint64_t value[COLUMN_COUNT] = { 0 };
	char text[2048];
	int size = textfile_read(text, sizeof(text), "%s/%d/stat", proc_root, (int)pid);

	if (size < 0)
		return size == -ENOENT ? -ESRCH : size;
	/* The status came last, with Linux 3.5. */
	if (kfile_stat(text, (size_t)size, columns, COLUMN_COUNT, value) < COLUMN_STATUS)
		return -EINVAL;
	*ret = (struct process_stat){
		.state = state_of(text),
		.flags = value[COLUMN_FLAGS],
		.user = value[COLUMN_USER],
		.system = value[COLUMN_SYSTEM],
		.children_user = value[COLUMN_CHILDREN_USER],
		.children_system = value[COLUMN_CHILDREN_SYSTEM],
		.started = value[COLUMN_STARTED],
		.status = (int)value[COLUMN_STATUS],
	};
	return 0;
}

bool process_stat_is_dead(const struct process_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

uint64_t ticks_ns(uint64_t ticks)
{
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}
