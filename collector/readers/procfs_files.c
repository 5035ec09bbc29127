/* SPDX-License-Identifier: MIT */
#include "readers/procfs_files.h"

#include <errno.h>
#include <stdio.h>

#include "internal/sys.h"
#include "metric.h"

#define BUFFER_BYTES (16u << 10) /* status of a process with many groups; meminfo; vmstat */

static const struct kfile_key raw_keys[RAW_COUNT] = {
	[RAW_PARENT] = { "ppid", 4 },
	[RAW_MINFLT] = { "minflt", 10 },
	[RAW_CMINFLT] = { "cminflt", 11 },
	[RAW_MAJFLT] = { "majflt", 12 },
	[RAW_CMAJFLT] = { "cmajflt", 13 },
	[RAW_UTIME] = { "utime", 14 },
	[RAW_STIME] = { "stime", 15 },
	[RAW_CUTIME] = { "cutime", 16 },
	[RAW_CSTIME] = { "cstime", 17 },
	[RAW_NUM_THREADS] = { "num_threads", 20 },
	[RAW_BORN] = { "starttime", 22 },
	[RAW_IGNORED] = { "sigignore", 33 },
	[RAW_VM_SIZE] = { "VmSize", 0 },
	[RAW_VM_HWM] = { "VmHWM", 0 },
	[RAW_VM_RSS] = { "VmRSS", 0 },
	[RAW_RSS_ANON] = { "RssAnon", 0 },
	[RAW_RSS_FILE] = { "RssFile", 0 },
	[RAW_RSS_SHMEM] = { "RssShmem", 0 },
	[RAW_THREADS] = { "Threads", 0 },
	[RAW_VOLUNTARY] = { "voluntary_ctxt_switches", 0 },
	[RAW_INVOLUNTARY] = { "nonvoluntary_ctxt_switches", 0 },
	[RAW_READ_BYTES] = { "read_bytes", 0 },
	[RAW_WRITE_BYTES] = { "write_bytes", 0 },
	[RAW_EXEC_NS] = { "exec_ns", 1 },
	[RAW_MEM_TOTAL] = { "MemTotal", 0 },
	[RAW_MEM_AVAILABLE] = { "MemAvailable", 0 },
	[RAW_CACHED] = { "Cached", 0 },
	[RAW_SWAP_FREE] = { "SwapFree", 0 },
	[RAW_ANON_PAGES] = { "AnonPages", 0 },
	[RAW_PAGED_IN] = { "pgpgin", 0 },
	[RAW_PAGED_OUT] = { "pgpgout", 0 },
	[RAW_SWAPPED_IN] = { "pswpin", 0 },
	[RAW_SWAPPED_OUT] = { "pswpout", 0 },
	[RAW_FAULTS] = { "pgfault", 0 },
	[RAW_MAJOR_FAULTS] = { "pgmajfault", 0 },
	[RAW_PSS] = { "Pss", 0 },
	[RAW_CPU_NS] = { "cpu_ns", 0 },
	[RAW_PROCESSES] = { "VmRSS", 0 },
};

const struct procfs_file_facts procfs_file_facts[FILE_COUNT] = {
	[FILE_STAT] = { "stat", kfile_stat, RAW_PARENT, RAW_IGNORED, .tree = true,
		.missing = "no /proc" },
	[FILE_STATUS] = { "status", kfile_labelled, RAW_VM_SIZE, RAW_INVOLUNTARY, .gauges = true,
		.tree = true, .missing = "no /proc" },
	[FILE_IO] = { "io", kfile_labelled, RAW_READ_BYTES, RAW_WRITE_BYTES, .tree = true,
		.missing = "the kernel was built without CONFIG_TASK_IO_ACCOUNTING" },
	[FILE_SCHEDSTAT] = { "schedstat", kfile_columns, RAW_EXEC_NS, RAW_EXEC_NS,
		.missing = "the kernel was built without CONFIG_SCHED_INFO" },
	[FILE_MEMINFO] = { "meminfo", kfile_labelled, RAW_MEM_TOTAL, RAW_ANON_PAGES,
		.machine = true, .gauges = true, .missing = "no /proc" },
	[FILE_VMSTAT] = { "vmstat", kfile_flat, RAW_PAGED_IN, RAW_MAJOR_FAULTS, .machine = true,
		.missing = "no /proc" },
};

enum procfs_file procfs_file_of(enum raw raw)
{
	enum procfs_file file = FILE_STAT;

	while (file < FILE_VMSTAT && raw > procfs_file_facts[file].last)
		file++;
	return file;
}

const char *procfs_raw_name(enum raw raw)
{
	return raw_keys[raw].name;
}

int procfs_file_open(const char *proc_root, enum procfs_file file, pid_t pid)
{
	const struct procfs_file_facts *facts = &procfs_file_facts[file];
	char path[4096];

	if (facts->machine)
		snprintf(path, sizeof(path), "%s/%s", proc_root, facts->name);
	else
		snprintf(path, sizeof(path), "%s/%d/%s", proc_root, pid, facts->name);
	return sys_open(path, O_RDONLY, 0);
}

void procfs_files_open(struct procfs_files *f, const char *proc_root, pid_t pid)
{
	for (enum procfs_file i = 0; i < FILE_COUNT; i++)
		f->fd[i] = f->error[i] = procfs_file_open(proc_root, i, pid);
}

void procfs_files_open_child(struct procfs_files *f, const char *proc_root, pid_t pid)
{
	for (enum procfs_file i = 0; i < FILE_COUNT; i++)
		f->fd[i] = f->error[i] =
			procfs_file_facts[i].tree ? procfs_file_open(proc_root, i, pid) : -ENOENT;
}

int procfs_file_read(const struct procfs_files *f, enum procfs_file file, uint64_t raw[RAW_COUNT])
{
	const struct procfs_file_facts *facts = &procfs_file_facts[file];
	char buffer[BUFFER_BYTES];
	ssize_t size;

	for (enum raw r = facts->first; r <= facts->last; r++)
		raw[r] = VALUE_ABSENT;
	if (f->fd[file] < 0)
		return f->error[file];
	size = kfile_pread(f->fd[file], buffer, sizeof(buffer));
	if (size < 0)
		return (int)size;
	facts->parse(buffer, (size_t)size, &raw_keys[facts->first],
		(size_t)(facts->last - facts->first) + 1, &raw[facts->first]);
	return 0;
}

void procfs_files_close(struct procfs_files *f)
{
	for (enum procfs_file i = 0; i < FILE_COUNT; i++)
		f->fd[i] = sys_close(f->fd[i]);
}
