/* SPDX-License-Identifier: MIT */
/*
 * patched: opens a region, then tells at each line of standard input how many
 * bytes of the library's code differ from its file.  Ends with the input.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jphase/jphase.h>

static size_t differences(const char *start, size_t bytes, uint64_t offset, const char *path)
{
	char *file = malloc(bytes);
	int fd = open(path, O_RDONLY);
	size_t count = 0;

	if (!file || fd < 0 || pread(fd, file, bytes, (off_t)offset) <= 0)
		exit(3);
	for (size_t i = 0; i < bytes; i++)
		count += file[i] != start[i];
	close(fd);
	free(file);
	return count;
}

/* Of the executable mapping: what follows the file's end is not looked at. */
static size_t look(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4352], path[4096], rights[8];
	size_t count = 0;

	if (!maps)
		exit(3);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &start, &end, rights,
			    &offset, path) == 5 &&
			strstr(path, "libjphase.so") && rights[2] == 'x')
			count += differences((const char *)start, end - start, offset, path);
	}
	fclose(maps);
	return count;
}

int main(void)
{
	char line[64];

	joule_begin("first");
	joule_end("first");
	while (fgets(line, sizeof(line), stdin)) {
		joule_begin("again");
		joule_end("again");
		printf("%zu\n", look());
		fflush(stdout);
	}
	return 0;
}
