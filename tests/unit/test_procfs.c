/* SPDX-License-Identifier: MIT */
/* The procfs reader on trees of files and on processes of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/reader.h"
#include "support/tree.h"

#define VALUES_MAX 64
#define TARGET     4321
#define FIXTURE    "tests/fixtures/proc-basic"

struct opened {
	struct reader *reader;
	struct metric_list list;
	uint64_t values[VALUES_MAX];
};

static void read_again(struct opened *o)
{
	memset(o->values, 0x55, sizeof(o->values));
	assert_int_equal(procfs_reader.read(o->reader, o->values), 0);
}

static struct opened open_in(const char *proc_root, pid_t pid)
{
	struct reader_env env = { .proc_root = proc_root, .sys_root = "/sys" };
	struct reader_target target = { .env = &env, .pid = pid };
	char reason[READER_REASON_ROOM] = "";
	struct opened o = { 0 };

	if (procfs_reader.open(&target, &o.reader, reason) < 0)
		fail_msg("%s", reason);
	assert_int_equal(procfs_reader.describe(o.reader, &o.list), 0);
	assert_true(metric_list_values(&o.list) <= VALUES_MAX);
	read_again(&o);
	return o;
}

static void close_it(struct opened *o)
{
	metric_list_clear(&o->list);
	procfs_reader.close(o->reader);
}

static size_t index_of(const struct opened *o, const char *name)
{
	for (size_t i = 0; i < o->list.count; i++)
		if (str_eq(o->list.metric[i].name, name))
			return i;
	fail_msg("no metric %s", name);
	return 0;
}

static uint64_t value(const struct opened *o, const char *name)
{
	return o->values[index_of(o, name)];
}

static const struct metric *metric(const struct opened *o, const char *name)
{
	return &o->list.metric[index_of(o, name)];
}

static bool is_absent(const struct opened *o, const char *name)
{
	return value(o, name) == VALUE_ABSENT;
}

static const struct expected {
	const char *name;
	enum metric_kind kind;
	enum metric_unit unit;
	enum metric_scope scope;
	uint64_t value;
} basic[] = {
	{ "proc_user_time", METRIC_COUNTER, UNIT_US, SCOPE_PROCESS, (250 + 40) * 10000 },
	{ "proc_system_time", METRIC_COUNTER, UNIT_US, SCOPE_PROCESS, (120 + 10) * 10000 },
	{ "proc_cpu_time", METRIC_COUNTER, UNIT_NS, SCOPE_PROCESS, VALUE_ABSENT },
	{ "proc_minor_faults", METRIC_COUNTER, UNIT_COUNT, SCOPE_PROCESS, 1800 },
	{ "proc_major_faults", METRIC_COUNTER, UNIT_COUNT, SCOPE_PROCESS, 23 },
	{ "proc_voluntary_switches", METRIC_COUNTER, UNIT_COUNT, SCOPE_PROCESS, VALUE_ABSENT },
	{ "proc_involuntary_switches", METRIC_COUNTER, UNIT_COUNT, SCOPE_PROCESS, VALUE_ABSENT },
	{ "proc_io_read_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_PROCESS, 40960 },
	{ "proc_io_write_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_PROCESS, 8192 },
	{ "proc_vm_size", METRIC_GAUGE, UNIT_BYTES, SCOPE_PROCESS, 12288 * 1024 },
	{ "proc_rss", METRIC_GAUGE, UNIT_BYTES, SCOPE_PROCESS, 4096 * 1024 },
	{ "proc_pss", METRIC_GAUGE, UNIT_BYTES, SCOPE_PROCESS, VALUE_ABSENT },
	{ "proc_shared", METRIC_GAUGE, UNIT_BYTES, SCOPE_PROCESS, (3000 + 96) * 1024 },
	{ "proc_anon", METRIC_GAUGE, UNIT_BYTES, SCOPE_PROCESS, 1000 * 1024 },
	{ "proc_processes", METRIC_GAUGE, UNIT_COUNT, SCOPE_PROCESS, 1 },
	{ "proc_threads", METRIC_GAUGE, UNIT_COUNT, SCOPE_PROCESS, 1 },
	{ "proc_rss_peak", METRIC_PEAK, UNIT_BYTES, SCOPE_PROCESS, 5000 * 1024 },
	{ "global_mem_used", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, (24684096 - 24317600) * 1024 },
	{ "global_cached", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 235220 * 1024 },
	{ "global_anon", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 14360 * 1024 },
	{ "global_swap_free", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 2000000ull * 1024 },
	{ "global_page_faults", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 900 },
	{ "global_major_faults", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 11 },
	{ "global_io_read_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 4096 },
	{ "global_io_write_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 8192 },
	{ "global_swap_in_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 2 * 4096 },
	{ "global_swap_out_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 3 * 4096 },
};

static void every_file_is_read(void **state)
{
	struct opened o = open_in(FIXTURE, TARGET);

	(void)state;
	assert_int_equal(o.list.count, ARRAY_SIZE(basic));
	for (size_t i = 0; i < ARRAY_SIZE(basic); i++) {
		const struct expected *e = &basic[i];
		const struct metric *m = &o.list.metric[i];

		assert_string_equal(m->name, e->name);
		assert_int_equal(m->kind, e->kind);
		assert_int_equal(m->unit, e->unit);
		assert_int_equal(m->scope, e->scope);
		assert_int_equal(m->group, METRIC_NO_GROUP);
		assert_int_equal(m->absent != NULL, e->value == VALUE_ABSENT);
		assert_int_equal(o.values[i], e->value);
	}
	/* The number of a process in a copy of /proc may be anybody's here. */
	assert_non_null(strstr(metric(&o, "proc_cpu_time")->absent, "PID namespace"));
	assert_non_null(strstr(metric(&o, "proc_voluntary_switches")->note, "counted while"));
	assert_non_null(strstr(metric(&o, "proc_minor_faults")->note, "children"));
	close_it(&o);
}

static void samples_hold_only_gauges(void **state)
{
	struct opened o = open_in(FIXTURE, TARGET);

	(void)state;
	assert_int_equal(procfs_reader.sample(o.reader, o.values), 0);
	for (size_t i = 0; i < ARRAY_SIZE(basic); i++)
		if (basic[i].kind == METRIC_GAUGE)
			assert_int_equal(o.values[i], basic[i].value);
		else
			assert_true(o.values[i] == VALUE_ABSENT);
	close_it(&o);
}

static char *small_tree(void)
{
	char *root = tree_make();

	tree_write(root, "4321/stat", "4321 (x) S 1 1 1 0 -1 0 5 0 0 0 7 5 0 0 20 0 1 0 1 1 1\n");
	tree_write(root, "4321/status", "VmSize: 10 kB\nVmRSS: 8 kB\nThreads: 1\n");
	tree_write(root, "meminfo", "MemTotal: 100 kB\nMemAvailable: 60 kB\n");
	return root;
}

static void what_the_kernel_does_not_tell_is_absent_with_the_reason(void **state)
{
	char *root = small_tree();
	struct opened o = open_in(root, TARGET);

	(void)state;
	assert_int_equal(o.list.count, ARRAY_SIZE(basic));
	assert_true(is_absent(&o, "proc_io_read_bytes"));
	assert_non_null(
		strstr(metric(&o, "proc_io_read_bytes")->absent, "CONFIG_TASK_IO_ACCOUNTING"));
	assert_true(is_absent(&o, "proc_anon"));
	assert_non_null(strstr(metric(&o, "proc_anon")->absent, "RssAnon"));
	assert_true(is_absent(&o, "global_swap_free"));
	assert_null(metric(&o, "proc_rss")->absent);
	assert_int_equal(value(&o, "proc_rss"), 8192);
	assert_int_equal(value(&o, "global_mem_used"), 40 * 1024);
	close_it(&o);
	tree_remove(root);
}

static void a_torn_file_is_absent_and_comes_back(void **state)
{
	char *root = small_tree();
	struct opened o = open_in(root, TARGET);

	(void)state;
	tree_write(root, "4321/stat", "4321 (x) S 1 1 1 0 -1 0 9");
	tree_write(root, "4321/status", "VmSize: 1\nVmRSS: kB\nThreads: 18446744073709551615\n");
	read_again(&o);
	assert_true(is_absent(&o, "proc_minor_faults"));
	assert_true(is_absent(&o, "proc_user_time"));
	assert_true(is_absent(&o, "proc_rss"));
	assert_int_equal(value(&o, "proc_vm_size"), 1);
	tree_write(root, "4321/status", "VmRSS: 16 kB\n");
	read_again(&o);
	assert_int_equal(value(&o, "proc_rss"), 16384);
	close_it(&o);
	tree_remove(root);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
	char *root = small_tree();
	char reason[READER_REASON_ROOM] = "";
	struct reader_env env = { .proc_root = root, .sys_root = "/sys" };
	struct reader_target target = { .env = &env, .pid = 9 };
	struct reader *reader;

	(void)state;
	assert_int_equal(procfs_reader.open(&target, &reader, reason), -ENOENT);
	assert_non_null(strstr(reason, "has ended"));
	assert_int_equal(procfs_reader.probe(&env, reason), 0);
	tree_unlink(root, "meminfo");
	assert_int_equal(procfs_reader.probe(&env, reason), -ENOENT);
	assert_non_null(strstr(reason, "mount -t proc"));
	tree_remove(root);
}

/*
 * A child that waits for a byte, touches that many pages, or for THREAD has a
 * thread that comes and goes, answers and waits on.
 */
#define THREAD 255
struct child {
	pid_t pid;
	int to, from;
};

static void *run_shortly(void *unused)
{
	usleep(1000);
	return unused;
}

__attribute__((no_sanitize("address", "thread", "undefined"))) static void child_main(
	int in, int out)
{
	unsigned char pages;

	while (read(in, &pages, 1) == 1) {
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		pthread_t thread;
		char *area;

		if (pages == THREAD) {
			if (pthread_create(&thread, NULL, run_shortly, NULL) != 0 ||
				pthread_join(thread, NULL) != 0)
				break;
			pages = 0;
		}
		area = mmap(NULL, 256 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

		madvise(area, 256 * page, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < pages; i++)
			area[i * page] = 1;
		if (write(out, &pages, 1) != 1)
			break;
	}
	_exit(0);
}

static struct child child_start(void)
{
	int to[2], from[2];
	struct child c;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		close(to[1]);
		close(from[0]);
		child_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	return c;
}

static void child_touch(struct child *c, unsigned char pages)
{
	assert_int_equal(write(c->to, &pages, 1), 1);
	assert_int_equal(read(c->from, &pages, 1), 1);
}

static void child_end(struct child *c)
{
	siginfo_t info;

	close(c->to);
	close(c->from);
	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
}

static uint64_t read_time(struct opened *o)
{
	read_again(o);
	assert_false(is_absent(o, "proc_cpu_time"));
	return value(o, "proc_cpu_time");
}

/* However short it was: its time is in that of all, its switches are nowhere. */
static void a_thread_between_two_reads_ends_what_the_first_alone_counts(void **state)
{
	struct child c = child_start();
	struct opened o;
	uint64_t before;

	(void)state;
	child_touch(&c, 1);
	o = open_in("/proc", c.pid);
	if (value(&o, "proc_threads") > 1) {
		printf("skipped: a sanitizer has a thread of its own\n");
		skip();
	}
	child_touch(&c, 200);
	before = read_time(&o);
	assert_false(is_absent(&o, "proc_voluntary_switches"));
	child_touch(&c, THREAD);
	assert_true(read_time(&o) > before);
	assert_int_equal(value(&o, "proc_threads"), 1);
	for (int i = 0; i < 2; i++) {
		assert_true(is_absent(&o, "proc_voluntary_switches"));
		assert_true(is_absent(&o, "proc_involuntary_switches"));
		child_touch(&c, 1);
		read_again(&o);
	}
	child_end(&c);
	waitpid(c.pid, NULL, 0);
	close_it(&o);
}

/* Threads that had gone before it was looked at are no reason. */
static void what_ran_before_is_no_matter(void **state)
{
	struct child c = child_start();
	struct opened o;

	(void)state;
	child_touch(&c, THREAD);
	o = open_in("/proc", c.pid);
	if (value(&o, "proc_threads") > 1) {
		printf("skipped: a sanitizer has a thread of its own\n");
		skip();
	}
	child_touch(&c, 200);
	read_again(&o);
	assert_false(is_absent(&o, "proc_voluntary_switches"));
	child_end(&c);
	waitpid(c.pid, NULL, 0);
	close_it(&o);
}

static void touched_pages_are_minor_faults_and_memory(void **state)
{
	struct child c = child_start();
	struct opened o;
	uint64_t faults, rss;

	(void)state;
	child_touch(&c, 1);
	o = open_in("/proc", c.pid);
	faults = value(&o, "proc_minor_faults");
	rss = value(&o, "proc_rss");
	child_touch(&c, 200);
	read_again(&o);
	assert_in_range(value(&o, "proc_minor_faults") - faults, 200, 260);
	assert_true(value(&o, "proc_rss") >= rss);
	assert_true(value(&o, "proc_rss_peak") >= value(&o, "proc_rss"));
	assert_in_range(value(&o, "proc_threads"), 1, 2); /* a sanitizer has one */
	child_end(&c);
	waitpid(c.pid, NULL, 0);
	close_it(&o);
}

static void a_process_that_ended_keeps_its_times_until_it_is_waited_for(void **state)
{
	struct child c = child_start();
	struct opened o;

	(void)state;
	child_touch(&c, 200);
	o = open_in("/proc", c.pid);
	child_end(&c);
	read_again(&o);
	assert_true(value(&o, "proc_minor_faults") >= 200);
	assert_false(is_absent(&o, "proc_user_time"));
	assert_true(is_absent(&o, "proc_rss"));
	assert_false(is_absent(&o, "global_mem_used"));
	waitpid(c.pid, NULL, 0);
	read_again(&o);
	assert_true(is_absent(&o, "proc_minor_faults"));
	assert_true(is_absent(&o, "proc_user_time"));
	assert_true(is_absent(&o, "proc_cpu_time"));
	assert_false(is_absent(&o, "global_mem_used"));
	close_it(&o);
}

static void the_io_file_of_another_user_is_refused_with_the_fix(void **state)
{
	struct opened o;
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0) {
		printf("skipped: needs root, to become someone else\n");
		skip();
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool right;

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		o = open_in("/proc", getppid());
		right = is_absent(&o, "proc_io_read_bytes") &&
			strstr(metric(&o, "proc_io_read_bytes")->absent, "as root") &&
			!is_absent(&o, "proc_minor_faults");
		close_it(&o);
		_exit(right ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void *wait_on(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

static void a_second_thread_is_seen(void **state)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	struct opened o;

	(void)state;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_on, &barrier), 0);
	o = open_in("/proc", getpid());
	assert_true(value(&o, "proc_threads") >= 2);
	assert_true(is_absent(&o, "proc_voluntary_switches"));
	assert_true(value(&o, "proc_cpu_time") > 0);
	assert_false(is_absent(&o, "proc_user_time"));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	close_it(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_is_read),
		cmocka_unit_test(samples_hold_only_gauges),
		cmocka_unit_test(what_the_kernel_does_not_tell_is_absent_with_the_reason),
		cmocka_unit_test(a_thread_between_two_reads_ends_what_the_first_alone_counts),
		cmocka_unit_test(what_ran_before_is_no_matter),
		cmocka_unit_test(a_torn_file_is_absent_and_comes_back),
		cmocka_unit_test(a_process_that_is_not_there_is_an_error),
		cmocka_unit_test(touched_pages_are_minor_faults_and_memory),
		cmocka_unit_test(a_process_that_ended_keeps_its_times_until_it_is_waited_for),
		cmocka_unit_test(the_io_file_of_another_user_is_refused_with_the_fix),
		cmocka_unit_test(a_second_thread_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
