/* SPDX-License-Identifier: MIT */
/* The files of /proc of one process and of the machine, and the numbers in them. */
#ifndef READERS_PROCFS_FILES_H
#define READERS_PROCFS_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/kfile.h"

/* What the files hold.  The numbers of one file follow each other. */
enum raw {
	RAW_NONE,
	RAW_PARENT, /* stat */
	RAW_MINFLT,
	RAW_CMINFLT,
	RAW_MAJFLT,
	RAW_CMAJFLT,
	RAW_UTIME,
	RAW_STIME,
	RAW_CUTIME,
	RAW_CSTIME,
	RAW_NUM_THREADS,
	RAW_BORN,
	RAW_IGNORED, /* signals, as bits */
	RAW_VM_SIZE, /* status */
	RAW_VM_HWM,
	RAW_VM_RSS,
	RAW_RSS_ANON,
	RAW_RSS_FILE,
	RAW_RSS_SHMEM,
	RAW_THREADS,
	RAW_VOLUNTARY,
	RAW_INVOLUNTARY,
	RAW_READ_BYTES, /* io */
	RAW_WRITE_BYTES,
	RAW_EXEC_NS,   /* schedstat */
	RAW_MEM_TOTAL, /* meminfo */
	RAW_MEM_AVAILABLE,
	RAW_CACHED,
	RAW_SWAP_FREE,
	RAW_ANON_PAGES,
	RAW_PAGED_IN, /* vmstat */
	RAW_PAGED_OUT,
	RAW_SWAPPED_IN,
	RAW_SWAPPED_OUT,
	RAW_FAULTS,
	RAW_MAJOR_FAULTS,
	RAW_PSS, /* these are in no file that is kept open */
	RAW_CPU_NS,
	RAW_PROCESSES, /* whose sizes were added up */
	RAW_COUNT,
};

enum procfs_file {
	FILE_STAT,
	FILE_STATUS,
	FILE_IO,
	FILE_SCHEDSTAT, /* after stat, so that it cannot be behind it */
	FILE_MEMINFO,
	FILE_VMSTAT,
	FILE_COUNT,
};

struct procfs_file_facts {
	const char *name;
	kfile_parser *parse;
	enum raw first, last;
	bool machine; /* of the machine, not of the process */
	bool gauges;
	bool tree;           /* its numbers are added up over what the process starts */
	const char *missing; /* why a kernel may lack the file */
};

extern const struct procfs_file_facts procfs_file_facts[FILE_COUNT];

enum procfs_file procfs_file_of(enum raw raw);
const char *procfs_raw_name(enum raw raw);

/* Of one process; a file that is not open has its error there. */
struct procfs_files {
	int fd[FILE_COUNT];
	int error[FILE_COUNT];
};

/* Opens all, or of a child only what is added up over the tree. */
void procfs_files_open(struct procfs_files *f, const char *proc_root, pid_t pid);
void procfs_files_open_child(struct procfs_files *f, const char *proc_root, pid_t pid);
int procfs_file_open(const char *proc_root, enum procfs_file file, pid_t pid);

/*
 * Sets all numbers of the file, VALUE_ABSENT those that are not there.  A
 * process that has been waited for gives -ESRCH.
 */
int procfs_file_read(const struct procfs_files *f, enum procfs_file file, uint64_t raw[RAW_COUNT]);

void procfs_files_close(struct procfs_files *f);

#endif
