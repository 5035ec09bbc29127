/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of a process and of the machine's memory.  It needs no
 * privileges, so it stands in where the kernel refuses perf.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/kfile.h"
#include "readers/reader.h"
#include "readers/reason.h"

#define BUFFER_BYTES (16u << 10) /* status of a process with many groups; meminfo */

/* USER_HZ is 100 on every architecture that we build for. */
#define TICK_US      10000u
#define TICK_NS      (TICK_US * NSEC_PER_USEC)
#define THREAD_SLACK (2 * TICK_NS)

/* What the files hold.  The numbers of one file follow each other. */
enum raw {
	RAW_NONE,
	RAW_MINFLT, /* stat */
	RAW_CMINFLT,
	RAW_MAJFLT,
	RAW_CMAJFLT,
	RAW_UTIME,
	RAW_STIME,
	RAW_CUTIME,
	RAW_CSTIME,
	RAW_NUM_THREADS,
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
	RAW_COUNT,
};

static const struct kfile_key raw_keys[RAW_COUNT] = {
	[RAW_MINFLT] = { "minflt", 10 },
	[RAW_CMINFLT] = { "cminflt", 11 },
	[RAW_MAJFLT] = { "majflt", 12 },
	[RAW_CMAJFLT] = { "cmajflt", 13 },
	[RAW_UTIME] = { "utime", 14 },
	[RAW_STIME] = { "stime", 15 },
	[RAW_CUTIME] = { "cutime", 16 },
	[RAW_CSTIME] = { "cstime", 17 },
	[RAW_NUM_THREADS] = { "num_threads", 20 },
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
};

enum file {
	FILE_STAT,
	FILE_STATUS,
	FILE_IO,
	FILE_SCHEDSTAT, /* after stat, so that it cannot be behind it */
	FILE_MEMINFO,
	FILE_COUNT,
};

struct proc_file {
	const char *name;
	kfile_parser *parse;
	enum raw first, last;
	bool machine; /* of the machine, not of the process */
	bool gauges;
	const char *missing; /* why a kernel may lack the file */
};

static const struct proc_file files[FILE_COUNT] = {
	[FILE_STAT] = { "stat", kfile_stat, RAW_MINFLT, RAW_NUM_THREADS, false, false, "no /proc" },
	[FILE_STATUS] = { "status", kfile_labelled, RAW_VM_SIZE, RAW_INVOLUNTARY, false, true,
		"no /proc" },
	[FILE_IO] = { "io", kfile_labelled, RAW_READ_BYTES, RAW_WRITE_BYTES, false, false,
		"the kernel was built without CONFIG_TASK_IO_ACCOUNTING" },
	[FILE_SCHEDSTAT] = { "schedstat", kfile_columns, RAW_EXEC_NS, RAW_EXEC_NS, false, false,
		"the kernel was built without CONFIG_SCHED_INFO" },
	[FILE_MEMINFO] = { "meminfo", kfile_labelled, RAW_MEM_TOTAL, RAW_ANON_PAGES, true, true,
		"no /proc" },
};

struct procfs_metric {
	const char *name;
	enum metric_kind kind;
	enum metric_unit unit;
	enum raw raw, plus, minus;
	uint64_t scale;
	bool first_thread; /* the kernel has it for each thread alone */
	const char *note;
};

#define CHILDREN   "children count when they are waited for"
#define ONE_THREAD "kept for each thread: counted while the process has only one"
#define LAGS       "within about 128 kB per CPU"

#define COUNTER(n, u, r, p, s, text)                                                               \
	{                                                                                          \
		.name = (n), .kind = METRIC_COUNTER, .unit = (u), .raw = (r), .plus = (p),         \
		.scale = (s), .note = (text)                                                       \
	}
#define THREAD(n, u, r)                                                                            \
	{                                                                                          \
		.name = (n), .kind = METRIC_COUNTER, .unit = (u), .raw = (r), .scale = 1,          \
		.first_thread = true, .note = ONE_THREAD                                           \
	}
#define GAUGE(n, u, r, p, m, text)                                                                 \
	{                                                                                          \
		.name = (n), .kind = METRIC_GAUGE, .unit = (u), .raw = (r), .plus = (p),           \
		.minus = (m), .scale = 1, .note = (text)                                           \
	}

static const struct procfs_metric metrics[] = {
	COUNTER("proc_user_time", UNIT_US, RAW_UTIME, RAW_CUTIME, TICK_US,
		"10 ms steps; " CHILDREN),
	COUNTER("proc_system_time", UNIT_US, RAW_STIME, RAW_CSTIME, TICK_US,
		"10 ms steps; " CHILDREN),
	THREAD("proc_cpu_time", UNIT_NS, RAW_EXEC_NS),
	COUNTER("proc_minor_faults", UNIT_COUNT, RAW_MINFLT, RAW_CMINFLT, 1, CHILDREN),
	COUNTER("proc_major_faults", UNIT_COUNT, RAW_MAJFLT, RAW_CMAJFLT, 1, CHILDREN),
	THREAD("proc_voluntary_switches", UNIT_COUNT, RAW_VOLUNTARY),
	THREAD("proc_involuntary_switches", UNIT_COUNT, RAW_INVOLUNTARY),
	COUNTER("proc_io_read_bytes", UNIT_BYTES, RAW_READ_BYTES, RAW_NONE, 1,
		"from storage; " CHILDREN),
	COUNTER("proc_io_write_bytes", UNIT_BYTES, RAW_WRITE_BYTES, RAW_NONE, 1,
		"to storage; " CHILDREN),
	GAUGE("proc_vm_size", UNIT_BYTES, RAW_VM_SIZE, RAW_NONE, RAW_NONE, NULL),
	GAUGE("proc_rss", UNIT_BYTES, RAW_VM_RSS, RAW_NONE, RAW_NONE, LAGS),
	GAUGE("proc_shared", UNIT_BYTES, RAW_RSS_FILE, RAW_RSS_SHMEM, RAW_NONE, LAGS),
	GAUGE("proc_anon", UNIT_BYTES, RAW_RSS_ANON, RAW_NONE, RAW_NONE, LAGS),
	GAUGE("proc_threads", UNIT_COUNT, RAW_THREADS, RAW_NONE, RAW_NONE, NULL),
	{ .name = "proc_rss_peak",
		.kind = METRIC_PEAK,
		.unit = UNIT_BYTES,
		.raw = RAW_VM_HWM,
		.scale = 1,
		.note = "highest since the program started" },
	GAUGE("global_mem_used", UNIT_BYTES, RAW_MEM_TOTAL, RAW_NONE, RAW_MEM_AVAILABLE,
		"total less available"),
	GAUGE("global_cached", UNIT_BYTES, RAW_CACHED, RAW_NONE, RAW_NONE, NULL),
	GAUGE("global_anon", UNIT_BYTES, RAW_ANON_PAGES, RAW_NONE, RAW_NONE, NULL),
	GAUGE("global_swap_free", UNIT_BYTES, RAW_SWAP_FREE, RAW_NONE, RAW_NONE, NULL),
};

struct procfs {
	struct reader base;
	int fd[FILE_COUNT];
	int error[FILE_COUNT]; /* of opening or the first read */
	bool threaded;         /* has been seen with more than one thread */
	bool absent[ARRAY_SIZE(metrics)];
};

static enum file raw_file(enum raw raw)
{
	enum file file = FILE_STAT;

	while (raw > files[file].last)
		file++;
	return file;
}

/* A process that has been waited for gives -ESRCH. */
static int file_read(struct procfs *p, enum file i, uint64_t raw[RAW_COUNT])
{
	const struct proc_file *file = &files[i];
	char buffer[BUFFER_BYTES];
	ssize_t size;

	for (enum raw r = file->first; r <= file->last; r++)
		raw[r] = VALUE_ABSENT;
	if (p->fd[i] < 0)
		return p->fd[i];
	size = kfile_pread(p->fd[i], buffer, sizeof(buffer));
	if (size < 0)
		return (int)size;
	file->parse(buffer, (size_t)size, &raw_keys[file->first],
		(size_t)(file->last - file->first) + 1, &raw[file->first]);
	return 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a == VALUE_ABSENT || b == VALUE_ABSENT ? VALUE_ABSENT : a + b;
}

static uint64_t metric_value(const struct procfs_metric *m, const uint64_t raw[RAW_COUNT])
{
	uint64_t sum = add(raw[m->raw], raw[m->plus]);

	if (sum == VALUE_ABSENT || raw[m->minus] == VALUE_ABSENT)
		return VALUE_ABSENT;
	return saturating_sub(sum, raw[m->minus]) * m->scale;
}

/*
 * schedstat and the switches in status are those of the first thread.  Threads
 * that came and went between two snapshots show in the sum of all threads' time.
 */
static void threads_notice(struct procfs *p, const uint64_t raw[RAW_COUNT])
{
	uint64_t all = add(raw[RAW_UTIME], raw[RAW_STIME]);

	if (raw[RAW_NUM_THREADS] != VALUE_ABSENT && raw[RAW_NUM_THREADS] > 1)
		p->threaded = true;
	if (all != VALUE_ABSENT && raw[RAW_EXEC_NS] != VALUE_ABSENT &&
		all * TICK_NS > raw[RAW_EXEC_NS] + THREAD_SLACK)
		p->threaded = true;
}

static void values_fill(
	struct procfs *p, bool gauges_only, const uint64_t raw[RAW_COUNT], uint64_t *ret_values)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		const struct procfs_metric *m = &metrics[i];

		if (p->absent[i] || (gauges_only && m->kind != METRIC_GAUGE) ||
			(m->first_thread && p->threaded))
			ret_values[i] = VALUE_ABSENT;
		else
			ret_values[i] = metric_value(m, raw);
	}
}

static int procfs_read(struct reader *r, uint64_t *ret_values)
{
	struct procfs *p = (struct procfs *)r;
	uint64_t raw[RAW_COUNT] = { 0 };

	for (enum file i = 0; i < FILE_COUNT; i++)
		(void)file_read(p, i, raw);
	threads_notice(p, raw);
	values_fill(p, false, raw, ret_values);
	return 0;
}

static int procfs_sample(struct reader *r, uint64_t *ret_values)
{
	struct procfs *p = (struct procfs *)r;
	uint64_t raw[RAW_COUNT] = { 0 };

	for (enum file i = 0; i < FILE_COUNT; i++)
		if (files[i].gauges)
			(void)file_read(p, i, raw);
	values_fill(p, true, raw, ret_values);
	return 0;
}

static int file_open(const char *proc_root, const struct proc_file *file, pid_t pid)
{
	char path[4096];

	if (file->machine)
		snprintf(path, sizeof(path), "%s/%s", proc_root, file->name);
	else
		snprintf(path, sizeof(path), "%s/%d/%s", proc_root, pid, file->name);
	return sys_open(path, O_RDONLY, 0);
}

static int procfs_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	int fd = file_open(env->proc_root, &files[FILE_MEMINFO], 0);

	sys_close(fd);
	if (fd >= 0)
		return 0;
	reason_set(ret_reason, "%s cannot be read (%s): mount -t proc proc /proc", env->proc_root,
		strerror(-fd));
	return fd;
}

static void procfs_close(struct reader *r)
{
	struct procfs *p = (struct procfs *)r;

	for (enum file i = 0; p && i < FILE_COUNT; i++)
		sys_close(p->fd[i]);
	free(p);
}

/* What cannot be had at the beginning stays absent, with a reason. */
static void first_read(struct procfs *p)
{
	uint64_t raw[RAW_COUNT] = { 0 };

	for (enum file i = 0; i < FILE_COUNT; i++) {
		p->error[i] = file_read(p, i, raw);
		if (p->error[i] < 0)
			p->fd[i] = sys_close(p->fd[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		p->absent[i] = metric_value(&metrics[i], raw) == VALUE_ABSENT;
	threads_notice(p, raw);
}

static int procfs_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct procfs *p = malloc(sizeof(*p));
	int err;

	if (!p) {
		reason_set(ret_reason, "out of memory");
		return -ENOMEM;
	}
	*p = (struct procfs){ .base.ops = &procfs_reader };
	for (enum file i = 0; i < FILE_COUNT; i++)
		p->fd[i] = file_open(target->env->proc_root, &files[i], target->pid);
	first_read(p);
	err = p->error[FILE_STAT];
	if (err < 0) {
		reason_set(ret_reason, "cannot read %s/%d/stat: %s", target->env->proc_root,
			target->pid,
			err == -ENOENT || err == -ESRCH ? "the process has ended, or /proc is "
							  "mounted with hidepid (jphase doctor)"
							: strerror(-err));
		procfs_close(&p->base);
		return err;
	}
	*ret = &p->base;
	return 0;
}

static void absence_reason(
	const struct procfs *p, const struct procfs_metric *m, char ret_reason[READER_REASON_ROOM])
{
	enum file file = raw_file(m->raw);
	int err = p->error[file];

	if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"/proc/PID/%s of this process may not be read: run jphase as root",
			files[file].name);
	else if (err == -ENOENT)
		reason_set(
			ret_reason, "no /proc/PID/%s: %s", files[file].name, files[file].missing);
	else if (err < 0)
		reason_set(ret_reason, "/proc/PID/%s: %s", files[file].name, strerror(-err));
	else
		reason_set(ret_reason,
			"%s is not in /proc/PID/%s: the process has ended or the kernel is older",
			raw_keys[m->raw].name, files[file].name);
}

static int procfs_describe(const struct reader *r, struct metric_list *out)
{
	const struct procfs *p = (const struct procfs *)r;
	char reason[READER_REASON_ROOM];

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		const struct procfs_metric *m = &metrics[i];
		bool machine = files[raw_file(m->raw)].machine;
		struct metric metric = {
			.name = (char *)m->name,
			.kind = m->kind,
			.unit = m->unit,
			.scope = machine ? SCOPE_GLOBAL : SCOPE_PROCESS,
			.group = METRIC_NO_GROUP,
			.note = (char *)m->note,
		};
		int err;

		if (p->absent[i]) {
			absence_reason(p, m, reason);
			metric.absent = reason;
		}
		err = metric_list_add(out, &metric);
		if (err < 0)
			return err;
	}
	return 0;
}

const struct reader_ops procfs_reader = {
	.name = "procfs",
	.critical = false,
	.per_process = true,
	.probe = procfs_probe,
	.open = procfs_open,
	.describe = procfs_describe,
	.read = procfs_read,
	.sample = procfs_sample,
	.close = procfs_close,
};
