/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/cgroup_own.h"
#include "readers/reader.h"
#include "support/proc.h"
#include "support/tree.h"

#define VALUES_MAX 64

static char reason[READER_REASON_ROOM];

static void refused(const char *cpus, int err, const char *says)
{
	char *root = tree_make();
	struct reader_env env = {
		.proc_root = "/proc",
		.sys_root = root,
		.events = "page-faults",
		.perf_cgroup = true,
		.cpus = cpus,
	};
	int result;

	tree_write(root, "devices/system/cpu/online", "0-3,6\n");
	tree_write(root, "devices/system/cpu/present", "0-7\n");
	result = perf_cgroup_reader.probe(&env, reason);
	tree_remove(root);
	if (result != err || !strstr(reason, says))
		fail_msg("%s: %d, \"%s\" does not say \"%s\"", cpus ? cpus : "all", result, reason,
			says);
}

static bool has_perf(void)
{
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };

	return perf_reader.probe(&env, reason) == 0;
}

static void cpus_that_are_not_there_are_named(void **state)
{
	(void)state;
	if (!has_perf())
		skip_because("%s", reason);
	reason[0] = '\0';
	refused("0,2-3,6", 0, "");
	refused(NULL, 0, "");
	refused("0,4", -ENODEV, "CPU 4: it is offline");
	refused("2-5", -ENODEV, "CPU 4: it is offline");
	refused("0-3,8", -ENODEV, "CPU 8: there is none");
	refused("3,1", -EINVAL, "\"3,1\" is no list of CPUs");
	refused("all", -EINVAL, "\"all\" is no list of CPUs");
}

/* What is counted in a group made for a child that waits. */
struct counted {
	struct reader_env env;
	struct cgroup_own *own;
	struct reader *reader;
	struct metric_list list;
	uint64_t values[VALUES_MAX];
	pid_t pid;
	int to, from;
};

/*
 * Touches as many pages as it is told by each byte, and answers.  Sanitizers
 * would touch pages of their own.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void child_main(
	int in, int out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char pages;
	char *memory =
		mmap(NULL, 4096 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(memory, 4096 * page, MADV_NOHUGEPAGE);
	while (read(in, &pages, 1) == 1) {
		for (size_t i = 0; i < pages; i++, memory += page)
			*memory = 1;
		if (write(out, &pages, 1) != 1)
			break;
	}
	_exit(0);
}

static void child_touch(const struct counted *c, unsigned char pages)
{
	assert_int_equal(write(c->to, &pages, 1), 1);
	assert_int_equal(read(c->from, &pages, 1), 1);
}

static void child_start(struct counted *c)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		close(to[1]);
		close(from[0]);
		child_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

static bool group_open(struct counted *c)
{
	struct cgroup_choice choice = { "create=jphase test perf", false };

	c->env = (struct reader_env){
		.proc_root = "/proc",
		.sys_root = "/sys",
		.events = "page-faults,task-clock",
		.perf_cgroup = true,
	};
	if (geteuid() != 0) {
		snprintf(reason, sizeof(reason), "counting a group needs root");
		return false;
	}
	if (cgroup_own_open(&c->env, &choice, getpid(), &c->own, reason) < 0)
		return false;
	c->env.cgroup_path = cgroup_own_path(c->own);
	c->env.cgroup_own = true;
	return true;
}

static void read_again(struct counted *c)
{
	assert_int_equal(perf_cgroup_reader.read(c->reader, c->values), 0);
}

static void finish(struct counted *c)
{
	perf_cgroup_reader.close(c->reader);
	metric_list_clear(&c->list);
	close(c->to);
	close(c->from);
	waitpid(c->pid, NULL, 0);
	assert_int_equal(cgroup_own_leave(c->own, reason), 0);
	cgroup_own_close(c->own);
}

static void faults_of_a_group_are_exact(void **state)
{
	struct counted c = { 0 };
	struct reader_target target;
	uint64_t before;

	(void)state;
	skip_with_tsan();
	if (!group_open(&c))
		skip_because("%s", reason);
	child_start(&c);
	child_touch(&c, 1);
	target = (struct reader_target){ .env = &c.env, .pid = c.pid };
	/* There is nobody in the group yet. */
	if (perf_cgroup_reader.open(&target, &c.reader, reason) < 0)
		fail_msg("%s", reason);
	assert_int_equal(perf_cgroup_reader.describe(c.reader, &c.list), 0);
	assert_int_equal(c.list.count, 2);
	assert_string_equal(c.list.metric[0].name, "page-faults");
	assert_int_equal(c.list.metric[0].kind, METRIC_SCALED);
	assert_int_equal(c.list.metric[0].scope, SCOPE_GROUP);
	assert_int_equal(c.list.groups, 1);
	read_again(&c);
	assert_int_equal(c.values[0], 0);
	child_touch(&c, 50);
	read_again(&c);
	assert_int_equal(c.values[0], 0);

	assert_int_equal(cgroup_own_attach(c.own, c.pid, reason), 0);
	read_again(&c);
	before = c.values[0];
	child_touch(&c, 200);
	child_touch(&c, 100);
	read_again(&c);
	assert_int_equal(c.values[0] - before, 300);
	assert_true(c.values[1] > 0);
	/* Enabled and running. */
	assert_true(c.values[2] > 0);
	assert_int_equal(c.values[2], c.values[3]);
	finish(&c);
}

static void a_folder_that_is_no_cgroup_is_refused(void **state)
{
	struct reader_env env = { .proc_root = "/proc",
		.sys_root = "/sys",
		.events = "page-faults",
		.perf_cgroup = true,
		.cgroup_path = "/tmp" };
	struct reader_target target = { .env = &env, .pid = getpid() };
	struct reader *reader;

	(void)state;
	if (geteuid() != 0 || !has_perf())
		skip_because("needs root and perf events");
	assert_true(perf_cgroup_reader.open(&target, &reader, reason) < 0);
	assert_non_null(strstr(reason, "/tmp: it is no cgroup"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_that_are_not_there_are_named),
		cmocka_unit_test(faults_of_a_group_are_exact),
		cmocka_unit_test(a_folder_that_is_no_cgroup_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
