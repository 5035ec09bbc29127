/* SPDX-License-Identifier: MIT */
/*
 * The formats of the kernel's text files.  The parsers are pure functions over
 * any bytes: a torn or foreign line is skipped, alone.
 */
#ifndef READERS_KFILE_H
#define READERS_KFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kfile_key {
	const char *name; /* in files with names */
	unsigned column;  /* in files with columns, from 1 */
};

/*
 * Sets values[i] for each keys[i] that is there and leaves the others alone.
 * Returns how many were found.
 */
typedef size_t kfile_parser(const char *text, size_t size, const struct kfile_key *keys,
	size_t count, uint64_t *values);

/* "usage_usec 123" */
kfile_parser kfile_flat;
/* "VmRSS:   12 kB" in bytes, saturating; "Threads: 3" as it is. */
kfile_parser kfile_labelled;
/*
 * "8:0 rbytes=1 wbytes=2": the sum over all lines, saturating.  A device
 * without counters has done nothing yet, so a key that no line has is 0.
 */
kfile_parser kfile_nested;
/* One such line, without its end. */
kfile_parser kfile_nested_line;
/* "some avg10=0.00 ... total=9": the total of "some" and "full". */
kfile_parser kfile_pressure;
/* One number, or "max", which gives UINT64_MAX; for each key. */
kfile_parser kfile_single;
/* Numbers in one line. */
kfile_parser kfile_columns;
/* /proc/PID/stat, its columns numbered as in proc(5). */
kfile_parser kfile_stat;

/*
 * The file from its beginning, by one system call.  Of a file that does not
 * fit, the last line, which may be torn, is left out.  Returns bytes or -errno.
 */
ssize_t kfile_pread(int fd, char *buf, size_t room);

/* The largest number instead of an overflow. */
uint64_t kfile_add(uint64_t a, uint64_t b);

/* A file of any size, ended by NUL, to be freed. */
int kfile_load(const char *path, char **ret_text, size_t *ret_size);

#endif
