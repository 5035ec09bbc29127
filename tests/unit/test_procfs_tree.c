/* SPDX-License-Identifier: MIT */
/* What a process starts, on a copy of /proc and on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "metric.h"
#include "readers/procfs_tree.h"
#include "support/tree.h"

/* Born long after any boot of this machine, and at its very beginning. */
#define LATER 4000000000u
#define EARLY 1u

#define PAGES 300

static char *root;
static struct reader_env env;

static int make_root(void **state)
{
	(void)state;
	root = tree_make();
	env = (struct reader_env){ .proc_root = root };
	return 0;
}

static int remove_root(void **state)
{
	(void)state;
	tree_remove(root);
	return 0;
}

struct stat_line {
	unsigned pid, parent, faults, child_faults, user, born;
};

static void write_stat(struct stat_line s)
{
	char file[64];

	snprintf(file, sizeof(file), "%u/stat", s.pid);
	tree_write(root, file, "%u (x) S %u 1 1 0 -1 0 %u %u 0 0 %u 0 0 0 20 0 1 0 %u 1 1\n", s.pid,
		s.parent, s.faults, s.child_faults, s.user, s.born);
}

static void write_status(unsigned pid, unsigned rss_kb)
{
	char file[64];

	snprintf(file, sizeof(file), "%u/status", pid);
	tree_write(root, file, "VmHWM: 9 kB\nVmRSS: %u kB\nThreads: 1\n", rss_kb);
}

static void raw_clear(uint64_t raw[RAW_COUNT])
{
	memset(raw, 0, RAW_COUNT * sizeof(*raw));
}

static struct procfs_tree *open_tree(void)
{
	struct procfs_tree *t;

	assert_int_equal(procfs_tree_open(&env, 10, &t), 0);
	procfs_tree_update(t);
	return t;
}

static void children_and_theirs_are_added(void **state)
{
	uint64_t raw[RAW_COUNT] = { [RAW_MINFLT] = 1000, [RAW_VM_RSS] = 4096, [RAW_PROCESSES] = 1 };
	struct procfs_tree *t;

	(void)state;
	write_stat((struct stat_line){ 10, 1, 0, 0, 0, EARLY });
	/* The list is not in the order of births. */
	write_stat((struct stat_line){ 11, 30, 5, 0, 6, LATER });
	write_stat((struct stat_line){ 30, 10, 200, 7, 3, LATER });
	write_stat((struct stat_line){ 40, 1, 9999, 0, 9999, LATER });
	write_status(30, 8);
	t = open_tree();
	procfs_tree_add(t, false, raw);
	assert_int_equal(raw[RAW_MINFLT], 1205);
	assert_int_equal(raw[RAW_CMINFLT], 7);
	assert_int_equal(raw[RAW_UTIME], 9);
	assert_int_equal(raw[RAW_VM_RSS], 4096 + 8192);
	/* The other one has no memory. */
	assert_int_equal(raw[RAW_PROCESSES], 1 + 1);
	assert_int_equal(raw[RAW_VM_HWM], 0);
	procfs_tree_close(t);
}

static void what_was_used_before_is_left_out(void **state)
{
	uint64_t raw[RAW_COUNT] = { 0 };
	struct procfs_tree *t;

	(void)state;
	write_stat((struct stat_line){ 30, 10, 200, 0, 3, EARLY });
	t = open_tree();
	write_stat((struct stat_line){ 30, 10, 260, 0, 4, EARLY });
	procfs_tree_add(t, false, raw);
	assert_int_equal(raw[RAW_MINFLT], 60);
	assert_int_equal(raw[RAW_UTIME], 1);
	procfs_tree_close(t);
}

static void a_gauge_alone_leaves_the_counters(void **state)
{
	uint64_t raw[RAW_COUNT] = { 0 };
	struct procfs_tree *t;

	(void)state;
	write_stat((struct stat_line){ 30, 10, 200, 0, 3, LATER });
	write_status(30, 8);
	t = open_tree();
	procfs_tree_add(t, true, raw);
	assert_int_equal(raw[RAW_MINFLT], 0);
	assert_int_equal(raw[RAW_VM_RSS], 8192);
	assert_int_equal(raw[RAW_THREADS], 1);
	procfs_tree_close(t);
}

static void a_number_that_comes_again_is_not_taken_for_the_same(void **state)
{
	struct procfs_tree *t;
	uint64_t raw[RAW_COUNT] = { 0 };

	(void)state;
	/* By the time it is opened, 30 is somebody else's child. */
	write_stat((struct stat_line){ 30, 77, 200, 0, 3, LATER });
	t = open_tree();
	procfs_tree_add(t, false, raw);
	assert_int_equal(raw[RAW_MINFLT], 0);
	procfs_tree_close(t);
}

static void more_than_there_is_room_for_is_told_once(void **state)
{
	struct procfs_tree *t;

	(void)state;
	for (unsigned pid = 1000; pid < 1256; pid++)
		write_stat((struct stat_line){ pid, 10, 1, 0, 0, LATER });
	t = open_tree();
	assert_null(procfs_tree_shortfall(t));
	write_stat((struct stat_line){ 1256, 10, 1, 0, 0, LATER });
	procfs_tree_update(t);
	assert_non_null(strstr(procfs_tree_shortfall(t), "more than 256 processes"));
	assert_null(procfs_tree_shortfall(t));
	procfs_tree_close(t);
}

static void touch_pages(size_t count)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(
		NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, count * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < count; i++)
		memory[i * page] = 1;
}

static pid_t start_grandchild(int ready)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (fork() == 0) {
		pid_t self = getpid();

		alarm(60);
		touch_pages(PAGES);
		if (write(ready, &self, sizeof(self)) != sizeof(self))
			_exit(1);
		pause();
	}
	pause();
	_exit(0);
}

/* Its own or, if it is a zombie that nobody takes away, as good as that. */
static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) == pid)
		return;
	for (int i = 0; i < 20 && kill(pid, 0) == 0; i++)
		usleep(10000);
}

static uint64_t faults(struct procfs_tree *t)
{
	uint64_t raw[RAW_COUNT] = { 0 };

	procfs_tree_update(t);
	procfs_tree_add(t, false, raw);
	return raw[RAW_MINFLT];
}

static void one_that_nobody_waits_for_keeps_its_numbers(void **state)
{
	struct reader_env real = { .proc_root = "/proc" };
	struct procfs_tree *t;
	uint64_t counted;
	pid_t pid, below;
	int ready[2];

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(procfs_tree_open(&real, getpid(), &t), 0);
	pid = start_grandchild(ready[1]);
	assert_int_equal(read(ready[0], &below, sizeof(below)), sizeof(below));
	assert_true(faults(t) >= PAGES);
	/* What the child had used is its parent's business, which is not asked here. */
	end(pid);
	counted = faults(t);
	assert_true(counted >= PAGES);
	end(below);
	assert_int_equal(faults(t), counted);
	procfs_tree_close(t);
	close(ready[0]);
	close(ready[1]);
}

static pid_t start_toucher(int go, int ready)
{
	pid_t pid = fork();
	char byte = 0;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(60);
	do {
		touch_pages(PAGES);
		if (write(ready, &byte, 1) != 1)
			_exit(1);
	} while (read(go, &byte, 1) == 1);
	_exit(0);
}

/* Who ignores SIGCHLD gets nothing of its children, not even their times. */
static void a_child_whose_end_is_ignored_keeps_its_numbers(void **state)
{
	struct reader_env real = { .proc_root = "/proc" };
	uint64_t raw[RAW_COUNT] = { [RAW_IGNORED] = 1u << (SIGCHLD - 1) };
	struct procfs_tree *t;
	int go[2], ready[2];
	char byte = 0;
	pid_t pid;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(procfs_tree_open(&real, getpid(), &t), 0);
	pid = start_toucher(go[0], ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	procfs_tree_update(t);
	procfs_tree_add(t, false, raw);
	assert_true(raw[RAW_MINFLT] >= PAGES);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	/* Between the boundaries, too: at the next one it is gone. */
	procfs_tree_add(t, true, raw);
	end(pid);
	raw_clear(raw);
	procfs_tree_add(t, false, raw);
	assert_true(raw[RAW_MINFLT] >= 2 * PAGES);
	procfs_tree_close(t);
	signal(SIGCHLD, SIG_DFL);
	close(go[0]);
	close(go[1]);
	close(ready[0]);
	close(ready[1]);
}

static void a_real_tree_is_followed_by_the_thread(void **state)
{
	struct reader_env real = { .proc_root = "/proc", .interval_ns = NSEC_PER_MSEC };
	struct procfs_tree *t;
	uint64_t raw[RAW_COUNT], pss = VALUE_ABSENT;
	int ready[2];
	pid_t pid, below;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = start_grandchild(ready[1]);
	assert_int_equal(read(ready[0], &below, sizeof(below)), sizeof(below));
	assert_int_equal(procfs_tree_open(&real, getpid(), &t), 0);
	for (int i = 0; i < 1000; i++) {
		raw_clear(raw);
		procfs_tree_add(t, true, raw);
		pss = procfs_tree_take_pss(t);
		if (raw[RAW_THREADS] >= 2 && pss != VALUE_ABSENT)
			break;
		usleep(10000);
	}
	/* A sanitizer may have threads of its own. */
	assert_true(raw[RAW_THREADS] >= 2);
	if (access("/proc/self/smaps_rollup", R_OK) == 0)
		assert_true(pss != VALUE_ABSENT && pss > 0);
	procfs_tree_close(t);
	end(pid);
	end(below);
	close(ready[0]);
	close(ready[1]);
}

#define in_root(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_root(children_and_theirs_are_added),
		in_root(what_was_used_before_is_left_out),
		in_root(a_gauge_alone_leaves_the_counters),
		in_root(a_number_that_comes_again_is_not_taken_for_the_same),
		in_root(more_than_there_is_room_for_is_told_once),
		cmocka_unit_test(one_that_nobody_waits_for_keeps_its_numbers),
		cmocka_unit_test(a_child_whose_end_is_ignored_keeps_its_numbers),
		cmocka_unit_test(a_real_tree_is_followed_by_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
