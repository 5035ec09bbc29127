/* SPDX-License-Identifier: MIT */
/* What jphase doctor finds in trees of files, and the commands that it gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "internal/util.h"
#include "support/tree.h"

/* Runs one check on ROOT/proc and ROOT/sys. */
static struct finding run(const char *root, const struct check *checks, const char *what)
{
	char proc_root[256], sys_root[256];
	struct reader_env env = { .proc_root = proc_root, .sys_root = sys_root };
	struct finding f = { .health = HEALTH_OK };

	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	snprintf(sys_root, sizeof(sys_root), "%s/sys", root);
	for (; checks->what; checks++)
		if (str_eq(checks->what, what)) {
			checks->check(&env, &f);
			return f;
		}
	fail_msg("no check %s", what);
	return f;
}

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not hold \"%s\"", text, part);
}

static void paranoid(
	const char *root, int level, const char *caps, enum health health, const char *says)
{
	struct finding f;

	tree_write(root, "proc/sys/kernel/perf_event_paranoid", "%d\n", level);
	tree_write(root, "proc/self/status", "CapEff:\t%s\nSeccomp:\t0\n", caps);
	f = run(root, doctor_perf_checks, "perf level");
	assert_int_equal(f.health, health);
	contains(f.text, says);
	assert_int_equal(f.fix[0] != '\0', health != HEALTH_OK);
	if (health != HEALTH_OK)
		contains(f.fix, "echo 1 | sudo tee /proc/sys/kernel/perf_event_paranoid\n");
}

static void each_perf_level_says_what_it_allows(void **state)
{
	static const char none[] = "0000000000000000";
	char *root = tree_make();

	(void)state;
	paranoid(root, -1, none, HEALTH_OK, "everything may be counted");
	paranoid(root, 0, none, HEALTH_OK, "all but raw tracepoints");
	paranoid(root, 1, none, HEALTH_OK, "in user space and in the kernel");
	paranoid(root, 2, none, HEALTH_LIMITED, "in user space only");
	paranoid(root, 3, none, HEALTH_LIMITED, "nothing may be counted");
	paranoid(root, 4, none, HEALTH_LIMITED, "perf_event_paranoid is 4: nothing");
	paranoid(root, -7, none, HEALTH_OK, "everything may be counted");
	/* CAP_PERFMON, CAP_SYS_ADMIN, and the one between them that is neither. */
	paranoid(root, 2, "0000004000000000", HEALTH_OK, "you have the privilege");
	paranoid(root, 2, "0000000000200000", HEALTH_OK, "you have the privilege");
	paranoid(root, 2, "0000000000400000", HEALTH_LIMITED, "in user space only");
	tree_remove(root);
}

static void a_kernel_without_perf_is_told(void **state)
{
	char *root = tree_make();
	struct finding f = run(root, doctor_perf_checks, "perf level");

	(void)state;
	assert_int_equal(f.health, HEALTH_MISSING);
	contains(f.text, "CONFIG_PERF_EVENTS");
	tree_remove(root);
}

static void little_memory_for_samples_is_told_with_the_fix(void **state)
{
	char *root = tree_make();
	struct finding f;

	(void)state;
	tree_write(root, "proc/sys/kernel/perf_event_mlock_kb", "64\n");
	f = run(root, doctor_perf_checks, "sample memory");
	assert_int_equal(f.health, HEALTH_LIMITED);
	assert_string_equal(f.fix, "echo 516 | sudo tee /proc/sys/kernel/perf_event_mlock_kb\n");
	tree_remove(root);
}

/* A unified hierarchy at ROOT/cgroup with us in GROUP. */
static char *cgroup_tree(const char *group)
{
	char *root = tree_make();
	char file[64];

	tree_write(root, "proc/self/mountinfo", "35 24 0:30 / %s/cgroup rw - cgroup2 cgroup2 rw\n",
		root);
	tree_write(root, "proc/self/cgroup", "0::%s\n", group);
	snprintf(file, sizeof(file), "proc/%d/cgroup", getpid());
	tree_write(root, file, "0::%s\n", group);
	tree_write(root, "cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
	tree_write(root, "cgroup/cgroup.subtree_control", "cpu io memory pids\n");
	return root;
}

static void controllers_are_enabled_from_the_root_down(void **state)
{
	char *root = cgroup_tree("/user.slice/my job/inner");
	char expected[1024];
	struct finding f;

	(void)state;
	tree_write(root, "cgroup/cgroup.subtree_control", "cpu pids\n");
	tree_write(root, "cgroup/user.slice/cgroup.subtree_control", "pids\n");
	tree_write(root, "cgroup/user.slice/my job/cgroup.subtree_control", "pids\n");
	tree_write(root, "cgroup/user.slice/my job/inner/cgroup.controllers", "pids\n");
	f = run(root, doctor_cgroup_checks, "controllers");
	assert_int_equal(f.health, HEALTH_LIMITED);
	contains(f.text, "cpu, memory, io");
	snprintf(expected, sizeof(expected),
		"echo \"+memory +io\" | sudo tee %s/cgroup/cgroup.subtree_control\n"
		"echo \"+cpu +memory +io\" | sudo tee "
		"%s/cgroup/user.slice/cgroup.subtree_control\n"
		"echo \"+cpu +memory +io\" | sudo tee "
		"'%s/cgroup/user.slice/my job'/cgroup.subtree_control\n",
		root, root, root);
	assert_string_equal(f.fix, expected);
	tree_remove(root);
}

static void all_controllers_need_no_command(void **state)
{
	char *root = cgroup_tree("/job");
	struct finding f;

	(void)state;
	tree_write(root, "cgroup/job/cgroup.controllers", "cpu io memory pids\n");
	f = run(root, doctor_cgroup_checks, "controllers");
	assert_int_equal(f.health, HEALTH_OK);
	assert_string_equal(f.fix, "");
	tree_remove(root);
}

static void in_the_root_the_controllers_for_its_groups_count(void **state)
{
	char *root = cgroup_tree("/");
	char expected[256];
	struct finding f;

	(void)state;
	assert_int_equal(run(root, doctor_cgroup_checks, "controllers").health, HEALTH_OK);
	tree_write(root, "cgroup/cgroup.subtree_control", "\n");
	f = run(root, doctor_cgroup_checks, "controllers");
	snprintf(expected, sizeof(expected),
		"echo \"+cpu +memory +io +pids\" | sudo tee %s/cgroup/cgroup.subtree_control\n",
		root);
	assert_string_equal(f.fix, expected);
	tree_remove(root);
}

static void a_hybrid_host_needs_the_kernel_parameter(void **state)
{
	char *root = cgroup_tree("/");
	struct finding f = run(root, doctor_cgroup_checks, "cgroup v2");

	(void)state;
	assert_int_equal(f.health, HEALTH_OK);
	tree_write(root, "proc/self/cgroup", "5:blkio:/\n4:memory:/x\n0::/\n");
	tree_write(root, "cgroup/cgroup.controllers", "cpu pids\n");
	f = run(root, doctor_cgroup_checks, "cgroup v2");
	assert_int_equal(f.health, HEALTH_LIMITED);
	contains(f.text, "version 1 has memory, io,");
	contains(f.fix, "kernel's command line: ");
	f = run(root, doctor_cgroup_checks, "controllers");
	contains(f.text, "not in this hierarchy but in version 1: memory, io");
	tree_remove(root);
}

static void a_shared_group_is_told_with_a_way_out(void **state)
{
	char *root = cgroup_tree("/job");
	struct finding f;

	(void)state;
	tree_write(root, "cgroup/job/cgroup.procs", "%d\n12\n", getpid());
	assert_int_equal(run(root, doctor_cgroup_checks, "own group").health, HEALTH_OK);
	tree_write(root, "cgroup/job/cgroup.procs", "%d\n12\n13\n14\n", getpid());
	f = run(root, doctor_cgroup_checks, "own group");
	assert_int_equal(f.health, HEALTH_LIMITED);
	contains(f.text, "shared with 3 other processes");
	assert_true(strlen(f.fix) > 0);
	tree_remove(root);
}

static void missing_stall_times_name_the_parameter(void **state)
{
	char *root = tree_make();
	struct finding f = run(root, doctor_cgroup_checks, "pressure");

	(void)state;
	assert_int_equal(f.health, HEALTH_LIMITED);
	contains(f.fix, "psi=1");
	tree_write(root, "proc/pressure/cpu", "some avg10=0.00 total=0\n");
	assert_int_equal(run(root, doctor_cgroup_checks, "pressure").health, HEALTH_OK);
	tree_remove(root);
}

static void a_fix_that_finds_no_room_is_left_out_whole(void **state)
{
	struct finding f = { .health = HEALTH_OK };
	char line[FINDING_FIX_ROOM];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	finding_fix(&f, "short");
	finding_fix(&f, "%s", line);
	assert_string_equal(f.fix, "short\n");
	/* Six bytes are used; a newline and the NUL must follow. */
	line[FINDING_FIX_ROOM - 7] = '\0';
	finding_fix(&f, "%s", line);
	assert_string_equal(f.fix, "short\n");
	line[FINDING_FIX_ROOM - 8] = '\0';
	finding_fix(&f, "%s", line);
	assert_int_equal(strlen(f.fix), FINDING_FIX_ROOM - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_perf_level_says_what_it_allows),
		cmocka_unit_test(a_kernel_without_perf_is_told),
		cmocka_unit_test(little_memory_for_samples_is_told_with_the_fix),
		cmocka_unit_test(controllers_are_enabled_from_the_root_down),
		cmocka_unit_test(all_controllers_need_no_command),
		cmocka_unit_test(in_the_root_the_controllers_for_its_groups_count),
		cmocka_unit_test(a_hybrid_host_needs_the_kernel_parameter),
		cmocka_unit_test(a_shared_group_is_told_with_a_way_out),
		cmocka_unit_test(missing_stall_times_name_the_parameter),
		cmocka_unit_test(a_fix_that_finds_no_room_is_left_out_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
