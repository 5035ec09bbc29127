/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of a process, of what it starts and of the machine's memory.
 * It needs no privileges, so it stands in where the kernel refuses perf.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cpu_clock.h"
#include "readers/procfs_files.h"
#include "readers/procfs_tree.h"
#include "readers/reader.h"
#include "readers/reason.h"

/* USER_HZ is 100 on every architecture that we build for. */
#define TICK_US 10000u

/* Times stand still but for ticks and switches, so that the first try most often fits. */
#define TRIES 16

struct procfs_metric {
	const char *name;
	enum metric_kind kind;
	enum metric_unit unit;
	enum raw raw, plus, minus;
	uint64_t scale;
	bool first_thread; /* the kernel has it for each thread alone */
	const char *note;
};

#define RESET_PEAK "5" /* what clear_refs takes for it */
#define RESET_NOTE "reset at each boundary: so is what getrusage tells the program"

#define PAGES 0 /* a scale: they are counted, not bytes */

/* Without samples nobody looks for children. */
#define CHILDREN    "children count when they are waited for"
#define ONE_PROCESS "of the process without its children"
#define PSS_NOTE    "shared pages in parts; read now and then between the boundaries"
#define ALL_THREADS "of all threads; one that runs on is behind by up to a timer tick; " ONE_PROCESS
#define ONE_THREAD  "kept for each thread: counted while no second one has run, without children"
#define PROCESSES   "of which the sizes are added up"
#define LAGS        "within about 128 kB per CPU"

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
	COUNTER("proc_user_time", UNIT_US, RAW_UTIME, RAW_CUTIME, TICK_US, "10 ms steps"),
	COUNTER("proc_system_time", UNIT_US, RAW_STIME, RAW_CSTIME, TICK_US, "10 ms steps"),
	COUNTER("proc_cpu_time", UNIT_NS, RAW_CPU_NS, RAW_NONE, 1, ALL_THREADS),
	COUNTER("proc_minor_faults", UNIT_COUNT, RAW_MINFLT, RAW_CMINFLT, 1, NULL),
	COUNTER("proc_major_faults", UNIT_COUNT, RAW_MAJFLT, RAW_CMAJFLT, 1, NULL),
	THREAD("proc_voluntary_switches", UNIT_COUNT, RAW_VOLUNTARY),
	THREAD("proc_involuntary_switches", UNIT_COUNT, RAW_INVOLUNTARY),
	COUNTER("proc_io_read_bytes", UNIT_BYTES, RAW_READ_BYTES, RAW_NONE, 1, "from storage"),
	COUNTER("proc_io_write_bytes", UNIT_BYTES, RAW_WRITE_BYTES, RAW_NONE, 1, "to storage"),
	GAUGE("proc_vm_size", UNIT_BYTES, RAW_VM_SIZE, RAW_NONE, RAW_NONE, NULL),
	GAUGE("proc_rss", UNIT_BYTES, RAW_VM_RSS, RAW_NONE, RAW_NONE, LAGS),
	GAUGE("proc_pss", UNIT_BYTES, RAW_PSS, RAW_NONE, RAW_NONE, PSS_NOTE),
	GAUGE("proc_shared", UNIT_BYTES, RAW_RSS_FILE, RAW_RSS_SHMEM, RAW_NONE, LAGS),
	GAUGE("proc_anon", UNIT_BYTES, RAW_RSS_ANON, RAW_NONE, RAW_NONE, LAGS),
	GAUGE("proc_processes", UNIT_COUNT, RAW_PROCESSES, RAW_NONE, RAW_NONE, PROCESSES),
	GAUGE("proc_threads", UNIT_COUNT, RAW_THREADS, RAW_NONE, RAW_NONE, NULL),
	{ .name = "proc_rss_peak",
		.kind = METRIC_PEAK,
		.unit = UNIT_BYTES,
		.raw = RAW_VM_HWM,
		.scale = 1,
		.note = "highest since the program started; " ONE_PROCESS },
	GAUGE("global_mem_used", UNIT_BYTES, RAW_MEM_TOTAL, RAW_NONE, RAW_MEM_AVAILABLE,
		"total less available"),
	GAUGE("global_cached", UNIT_BYTES, RAW_CACHED, RAW_NONE, RAW_NONE, NULL),
	GAUGE("global_anon", UNIT_BYTES, RAW_ANON_PAGES, RAW_NONE, RAW_NONE, NULL),
	GAUGE("global_swap_free", UNIT_BYTES, RAW_SWAP_FREE, RAW_NONE, RAW_NONE, NULL),
	COUNTER("global_page_faults", UNIT_COUNT, RAW_FAULTS, RAW_NONE, 1, NULL),
	COUNTER("global_major_faults", UNIT_COUNT, RAW_MAJOR_FAULTS, RAW_NONE, 1, NULL),
	COUNTER("global_io_read_bytes", UNIT_BYTES, RAW_PAGED_IN, RAW_NONE, 1024, NULL),
	COUNTER("global_io_write_bytes", UNIT_BYTES, RAW_PAGED_OUT, RAW_NONE, 1024, NULL),
	COUNTER("global_swap_in_bytes", UNIT_BYTES, RAW_SWAPPED_IN, RAW_NONE, PAGES, NULL),
	COUNTER("global_swap_out_bytes", UNIT_BYTES, RAW_SWAPPED_OUT, RAW_NONE, PAGES, NULL),
};

struct procfs {
	struct reader base;
	struct procfs_files files;
	struct procfs_tree *tree; /* NULL: it could not be had */
	uint64_t interval_ns;
	int reset_fd; /* begins the process's peak anew; -1: not wanted or not to be had */
	int pss_error;
	clockid_t clock;
	int clock_error;
	bool threaded;      /* another thread than the first has run, or may have */
	uint64_t others_ns; /* what others had used when we came */
	bool uncertain;     /* whether one has, in this reading */
	bool absent[ARRAY_SIZE(metrics)];
	uint64_t most[ARRAY_SIZE(metrics)]; /* of each counter */
};

static uint64_t add(uint64_t a, uint64_t b)
{
	return a == VALUE_ABSENT || b == VALUE_ABSENT ? VALUE_ABSENT : a + b;
}

static uint64_t metric_value(const struct procfs_metric *m, const uint64_t raw[RAW_COUNT])
{
	uint64_t sum = add(raw[m->raw], raw[m->plus]);

	if (sum == VALUE_ABSENT || raw[m->minus] == VALUE_ABSENT)
		return VALUE_ABSENT;
	return saturating_sub(sum, raw[m->minus]) *
	       (m->scale == PAGES ? (uint64_t)sysconf(_SC_PAGESIZE) : m->scale);
}

/*
 * The time of all threads before and after that of the first one: where it is
 * the same, nobody has run in between.  False: it would not stand still.  The
 * file is the proof that the clock was not another process's.
 */
static bool times_read(const struct procfs *p, uint64_t raw[RAW_COUNT])
{
	int tries = p->clock_error < 0 ? 0 : p->threaded ? 1 : TRIES;
	bool still = false;

	raw[RAW_CPU_NS] = VALUE_ABSENT;
	while (!still && tries-- > 0) {
		uint64_t before = cpu_clock_read(p->clock);
		int err = procfs_file_read(&p->files, FILE_SCHEDSTAT, raw);

		raw[RAW_CPU_NS] = err < 0 ? VALUE_ABSENT : before;
		if (err < 0)
			return false;
		still = before != VALUE_ABSENT && cpu_clock_read(p->clock) == before;
	}
	return still;
}

/*
 * The switches in status are those of the first thread.  No thread switches
 * without having run, and its time stays in that of all when it has ended.
 */
static void threads_notice(struct procfs *p, bool first, uint64_t raw[RAW_COUNT])
{
	uint64_t others;

	p->threaded |= raw[RAW_NUM_THREADS] != VALUE_ABSENT && raw[RAW_NUM_THREADS] > 1;
	p->uncertain = !times_read(p, raw);
	others = raw[RAW_CPU_NS] - raw[RAW_EXEC_NS];
	if (first)
		p->others_ns = others;
	/* Nor can anybody tell later, without a beginning. */
	p->threaded |= p->uncertain ? first : others != p->others_ns;
}

/*
 * A child that is waited for between the reads of its parent and of itself is
 * in neither; the next reading has it again.
 */
static uint64_t not_less(uint64_t *most, uint64_t value)
{
	if (value == VALUE_ABSENT)
		return value;
	*most = MAX(*most, value);
	return *most;
}

static void values_fill(
	struct procfs *p, bool gauges_only, const uint64_t raw[RAW_COUNT], uint64_t *ret_values)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		const struct procfs_metric *m = &metrics[i];

		if (p->absent[i] || (gauges_only && m->kind != METRIC_GAUGE) ||
			(m->first_thread && (p->threaded || p->uncertain)))
			ret_values[i] = VALUE_ABSENT;
		else if (m->kind == METRIC_COUNTER)
			ret_values[i] = not_less(&p->most[i], metric_value(m, raw));
		else
			ret_values[i] = metric_value(m, raw);
	}
}

static void reset_peak(const struct procfs *p)
{
	if (p->reset_fd >= 0)
		(void)pwrite(p->reset_fd, RESET_PEAK, 1, 0);
}

static void read_files(struct procfs *p, bool gauges_only, uint64_t raw[RAW_COUNT])
{
	for (enum procfs_file i = 0; i < FILE_COUNT; i++)
		if (i != FILE_SCHEDSTAT && (!gauges_only || procfs_file_facts[i].gauges))
			(void)procfs_file_read(&p->files, i, raw);
	raw[RAW_PROCESSES] = raw[RAW_VM_RSS] == VALUE_ABSENT ? VALUE_ABSENT : 1;
}

static int procfs_read(struct reader *r, uint64_t *ret_values)
{
	struct procfs *p = (struct procfs *)r;
	uint64_t raw[RAW_COUNT] = { 0 };

	read_files(p, false, raw);
	reset_peak(p);
	threads_notice(p, false, raw);
	/* After their parent: who is waited for meanwhile is in neither rather than in both. */
	if (p->tree)
		procfs_tree_add(p->tree, false, raw);
	raw[RAW_PSS] = VALUE_ABSENT;
	values_fill(p, false, raw, ret_values);
	return 0;
}

static int procfs_sample(struct reader *r, uint64_t *ret_values)
{
	struct procfs *p = (struct procfs *)r;
	uint64_t raw[RAW_COUNT] = { 0 };

	read_files(p, true, raw);
	if (p->tree)
		procfs_tree_add(p->tree, true, raw);
	raw[RAW_PSS] = p->tree ? procfs_tree_take_pss(p->tree) : VALUE_ABSENT;
	values_fill(p, true, raw, ret_values);
	return 0;
}

static const char *procfs_keep_alive(struct reader *r)
{
	struct procfs *p = (struct procfs *)r;

	return p->tree ? procfs_tree_shortfall(p->tree) : NULL;
}

static int procfs_probe(const struct reader_env *env, char ret_reason[READER_REASON_ROOM])
{
	int fd = procfs_file_open(env->proc_root, FILE_MEMINFO, 0);

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

	if (!p)
		return;
	procfs_tree_close(p->tree);
	procfs_files_close(&p->files);
	sys_close(p->reset_fd);
	free(p);
}

/* What cannot be had at the beginning stays absent, with a reason. */
static void first_read(struct procfs *p)
{
	uint64_t raw[RAW_COUNT] = { 0 };

	for (enum procfs_file i = 0; i < FILE_COUNT; i++) {
		p->files.error[i] = procfs_file_read(&p->files, i, raw);
		if (p->files.error[i] < 0)
			p->files.fd[i] = sys_close(p->files.fd[i]);
	}
	raw[RAW_PSS] = p->pss_error < 0 ? VALUE_ABSENT : 0;
	raw[RAW_PROCESSES] = raw[RAW_VM_RSS] == VALUE_ABSENT ? VALUE_ABSENT : 1;
	threads_notice(p, true, raw);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		p->absent[i] = metric_value(&metrics[i], raw) == VALUE_ABSENT ||
			       (metrics[i].first_thread && raw[RAW_CPU_NS] == VALUE_ABSENT);
}

static int process_file_open(const struct reader_target *target, const char *name, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%d/%s", target->env->proc_root, (int)target->pid, name);
	return sys_open(path, flags, 0);
}

/* Only what the user asked for may change what the program sees of itself. */
static void peak_open(struct procfs *p, const struct reader_target *target)
{
	if (!target->env->reset_peak)
		return;
	p->reset_fd = process_file_open(target, "clear_refs", O_WRONLY);
	reset_peak(p);
}

static void pss_look(struct procfs *p, const struct reader_target *target)
{
	int fd = process_file_open(target, "smaps_rollup", O_RDONLY);

	p->pss_error = p->interval_ns ? MIN(fd, 0) : -EAGAIN;
	sys_close(fd);
}

static int procfs_open(const struct reader_target *target, struct reader **ret,
	char ret_reason[READER_REASON_ROOM])
{
	struct procfs *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		reason_set(ret_reason, "out of memory");
		return -ENOMEM;
	}
	p->base.ops = &procfs_reader;
	p->interval_ns = target->env->interval_ns;
	p->reset_fd = -1;
	p->clock_error = cpu_clock_of(target->env->proc_root, target->pid, &p->clock);
	procfs_files_open(&p->files, target->env->proc_root, target->pid);
	pss_look(p, target);
	first_read(p);
	err = p->files.error[FILE_STAT];
	if (err < 0) {
		reason_set(ret_reason, "cannot read %s/%d/stat: %s", target->env->proc_root,
			target->pid,
			err == -ENOENT || err == -ESRCH ? "the process has ended, or /proc is "
							  "mounted with hidepid (jphase doctor)"
							: strerror(-err));
		procfs_close(&p->base);
		return err;
	}
	peak_open(p, target);
	if (procfs_tree_open(target->env, target->pid, &p->tree) < 0)
		p->tree = NULL;
	*ret = &p->base;
	return 0;
}

static void file_reason(
	const char *file, int err, const char *missing, char ret_reason[READER_REASON_ROOM])
{
	if (err == -EACCES || err == -EPERM)
		reason_set(ret_reason,
			"/proc/PID/%s of this process may not be read: run jphase as root", file);
	else if (err == -ENOENT)
		reason_set(ret_reason, "no /proc/PID/%s: %s", file, missing);
	else
		reason_set(ret_reason, "/proc/PID/%s: %s", file, strerror(-err));
}

/* Whether other threads have run is told by the times. */
static enum procfs_file file_of(const struct procfs_metric *m)
{
	if (m->raw == RAW_PROCESSES)
		return FILE_STATUS;
	return m->first_thread || m->raw == RAW_CPU_NS ? FILE_SCHEDSTAT : procfs_file_of(m->raw);
}

static void absence_reason(
	const struct procfs *p, const struct procfs_metric *m, char ret_reason[READER_REASON_ROOM])
{
	enum procfs_file file = file_of(m);
	const struct procfs_file_facts *facts = &procfs_file_facts[file];

	if (m->raw == RAW_PSS && p->pss_error == -EAGAIN)
		reason_set(ret_reason,
			"it is read between the boundaries of phases only, and --interval is 0");
	else if (m->raw == RAW_PSS)
		file_reason(
			"smaps_rollup", p->pss_error, "the kernel is older than 4.14", ret_reason);
	else if (file == FILE_SCHEDSTAT && p->clock_error == -ENXIO)
		reason_set(ret_reason,
			"/proc is that of another PID namespace: mount -t proc proc /proc");
	else if (p->files.error[file] < 0)
		file_reason(facts->name, p->files.error[file], facts->missing, ret_reason);
	else
		reason_set(ret_reason,
			"%s is not in /proc/%s%s: the process has ended or the kernel is older",
			procfs_raw_name(m->raw), facts->machine ? "" : "PID/", facts->name);
}

static bool is_machine(const struct procfs_metric *m)
{
	return m->raw < RAW_PSS && procfs_file_facts[procfs_file_of(m->raw)].machine;
}

static void peak_describe(const struct procfs *p, struct metric *m)
{
	if (m->kind != METRIC_PEAK || p->reset_fd < 0)
		return;
	m->kind = METRIC_PEAK_SINCE;
	m->note = (char *)RESET_NOTE;
}

static int procfs_describe(const struct reader *r, struct metric_list *out)
{
	const struct procfs *p = (const struct procfs *)r;
	char reason[READER_REASON_ROOM];

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		const struct procfs_metric *m = &metrics[i];
		bool machine = is_machine(m);
		struct metric metric = {
			.name = (char *)m->name,
			.kind = m->kind,
			.unit = m->unit,
			.scope = machine ? SCOPE_GLOBAL : SCOPE_PROCESS,
			.group = METRIC_NO_GROUP,
			.note = (char *)m->note,
		};
		int err;

		peak_describe(p, &metric);
		if (!p->interval_ns && m->kind == METRIC_COUNTER && !machine &&
			file_of(m) != FILE_SCHEDSTAT)
			metric.note = (char *)CHILDREN;
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
	.keep_alive = procfs_keep_alive,
	.close = procfs_close,
};
