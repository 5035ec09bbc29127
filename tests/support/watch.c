/* SPDX-License-Identifier: MIT */
#include "support/watch.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/proc.h"

#define LOOKS   1000
#define LOOK_US 10000

size_t descriptors_of(pid_t pid)
{
	char *path = text_make("/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	free(path);
	return count;
}

long memory_kb_of(pid_t pid)
{
	char *path = text_make("/proc/%d/status", (int)pid), *text = file_read(path, NULL);
	const char *line = text ? strstr(text, "VmRSS:") : NULL;
	long kb = line ? atol(line + strlen("VmRSS:")) : 0;

	free(text);
	free(path);
	return kb;
}

void wait_for_descriptors(pid_t pid, size_t most)
{
	size_t count = descriptors_of(pid);

	for (int i = 0; i < LOOKS && count > most; i++) {
		usleep(LOOK_US);
		count = descriptors_of(pid);
	}
	assert_in_range(count, 1, most);
}

void wait_for_memory_below(pid_t pid, long kb)
{
	long now = memory_kb_of(pid);

	for (int i = 0; i < LOOKS && now >= kb; i++) {
		usleep(LOOK_US);
		now = memory_kb_of(pid);
	}
	if (now >= kb)
		fail_msg("process %d holds %ld kB, not less than %ld", (int)pid, now, kb);
}
