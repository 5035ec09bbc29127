/* SPDX-License-Identifier: MIT */
/* Groups of the program's own: on trees of files, and on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/cgroup_own.h"
#include "readers/cgroup_place.h"
#include "sibling.h"
#include "support/proc.h"
#include "support/tree.h"

#define THE_PID 4321

static char proc_root[256], reason[READER_REASON_ROOM];
static struct reader_env env = { .proc_root = proc_root, .sys_root = "/sys" };

/* A hierarchy at ROOT/cgroup in which the target runs in /work. */
static char *host(const char *in_root, const char *in_work)
{
	char *root = tree_make();

	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	tree_write(root, "proc/self/mountinfo",
		"35 24 0:30 / %s/cgroup rw shared:9 - cgroup2 cgroup2 rw\n", root);
	tree_write(root, "proc/self/cgroup", "4:memory:/x\n0::/work\n");
	tree_write(root, "proc/4321/cgroup", "0::/work\n");
	tree_write(root, "cgroup/cgroup.controllers", "%s\n", in_root);
	tree_write(root, "cgroup/cgroup.subtree_control", "%s\n", in_work);
	tree_write(root, "cgroup/work/cgroup.controllers", "%s\n", in_work);
	tree_write(root, "cgroup/work/cgroup.subtree_control", "\n");
	tree_write(root, "cgroup/work/cgroup.procs", "4321\n");
	return root;
}

static struct cgroup_own *open_group(const char *where, bool attach)
{
	struct cgroup_choice choice = { where, attach };
	struct cgroup_own *o;

	if (cgroup_own_open(&env, &choice, THE_PID, &o, reason) < 0)
		fail_msg("%s: %s", where, reason);
	return o;
}

static void refused(const char *where, int err, const char *says)
{
	struct cgroup_choice choice = { where, false };
	struct cgroup_own *o;

	assert_int_equal(cgroup_own_open(&env, &choice, THE_PID, &o, reason), err);
	if (!strstr(reason, says))
		fail_msg("%s: \"%s\" does not say \"%s\"", where, reason, says);
}

static bool is_at(const struct cgroup_own *o, const char *root, const char *group)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/cgroup%s", root, group);
	return str_eq(cgroup_own_path(o), path);
}

static bool is_there(const char *root, const char *group)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/cgroup%s", root, group);
	return access(path, F_OK) == 0;
}

static void a_group_is_made_below_the_targets_and_removed(void **state)
{
	char *root = host("", "");
	struct cgroup_own *o = open_group("create=mine", false);

	(void)state;
	assert_true(is_at(o, root, "/work/mine"));
	assert_true(is_there(root, "/work/mine"));
	assert_true(cgroup_own_takes(o));
	assert_true(cgroup_own_is_new(o));
	assert_true(cgroup_own_fd(o) >= 0);
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	assert_false(is_there(root, "/work/mine"));
	cgroup_own_close(o);
	tree_remove(root);
}

static void a_group_without_a_name_has_one_of_ours(void **state)
{
	char *root = host("", ""), name[64];
	struct cgroup_own *o = open_group("create", false);

	(void)state;
	snprintf(name, sizeof(name), "/work/jphase-%d", (int)getpid());
	assert_true(is_at(o, root, name));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void a_name_with_a_slash_begins_at_the_root(void **state)
{
	char *root = host("", ""), whole[512];
	struct cgroup_own *o;

	(void)state;
	snprintf(whole, sizeof(whole), "create=%s/cgroup/work/a b", root);
	o = open_group("create=/top", false);
	assert_true(is_at(o, root, "/top"));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	o = open_group(whole, false);
	assert_true(is_at(o, root, "/work/a b"));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void an_existing_group_of_that_name_is_used_and_stays(void **state)
{
	char *root = host("", "");
	struct cgroup_own *o;

	(void)state;
	tree_write(root, "cgroup/work/mine/cpu.stat", "usage_usec 1\n");
	o = open_group("create=mine", false);
	assert_false(cgroup_own_is_new(o));
	assert_true(cgroup_own_takes(o));
	assert_non_null(strstr(cgroup_own_note(o, 0), "peaks may be older"));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	assert_true(is_there(root, "/work/mine"));
	cgroup_own_close(o);
	tree_remove(root);
}

static void an_existing_group_is_found_by_each_of_its_names(void **state)
{
	char *root = host("", ""), whole[512];
	const char *names[] = { "work", "/work", "work/", whole };

	(void)state;
	snprintf(whole, sizeof(whole), "%s/cgroup/work", root);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct cgroup_own *o = open_group(names[i], i == 1);

		assert_true(is_at(o, root, "/work"));
		assert_int_equal(cgroup_own_takes(o), i == 1);
		assert_false(cgroup_own_is_new(o));
		assert_null(cgroup_own_note(o, 0));
		cgroup_own_close(o);
	}
	tree_remove(root);
}

static void what_leads_out_of_the_root_is_refused(void **state)
{
	char *root = host("", ""), link[512];

	(void)state;
	snprintf(link, sizeof(link), "%s/cgroup/link", root);
	assert_int_equal(symlink("/tmp", link), 0);
	refused("create=../x", -EINVAL, "is no name");
	refused("create=a/../../x", -EINVAL, "is no name");
	refused("create=..", -EINVAL, "is no name");
	refused("create=", -EINVAL, "is no name");
	refused("create=/", -EINVAL, "is no name");
	refused("work/..", -EINVAL, "is no name");
	refused("link", -EXDEV, "leads out");
	refused("create=link/x", -EXDEV, "leads out");
	refused("create=/link", -EXDEV, "leads out");
	assert_int_equal(access("/tmp/x", F_OK), -1);
	refused("none", -ENOENT, "cannot open");
	refused("create=none/x", -ENOENT, "cannot open");
	assert_int_equal(unlink(link), 0);
	tree_remove(root);
}

static void controllers_are_enabled_where_that_may_be(void **state)
{
	char *root = host("cpu memory pids", "cpu memory pids"), path[512], *text;
	struct cgroup_own *o = open_group("create=mine", false);

	(void)state;
	snprintf(path, sizeof(path), "%s/cgroup/work/cgroup.subtree_control", root);
	text = file_read(path, NULL);
	/* A copy keeps the last word only, over what was there. */
	assert_string_equal(text, "+pidsry");
	free(text);
	assert_non_null(strstr(cgroup_own_note(o, 0), "cpu, memory, pids"));
	assert_non_null(strstr(cgroup_own_note(o, 0), "left so"));
	assert_non_null(strstr(cgroup_own_note(o, 1), "io, which this hierarchy does not have"));
	assert_null(cgroup_own_note(o, 2));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void what_the_parent_does_not_pass_on_is_told_with_the_command(void **state)
{
	char *root = host("cpu memory io pids", "cpu io pids"), command[512];
	struct cgroup_own *o = open_group("create=mine", false);

	(void)state;
	assert_non_null(strstr(cgroup_own_note(o, 1), "memory, not enabled by"));
	snprintf(command, sizeof(command),
		"echo \"+memory\" | sudo tee %s/cgroup/cgroup.subtree_control", root);
	assert_non_null(strstr(cgroup_own_note(o, 1), command));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void what_version_1_has_is_told(void **state)
{
	char *root = host("cpu io pids", "cpu io pids");
	struct cgroup_own *o = open_group("create=mine", false);

	(void)state;
	assert_non_null(strstr(cgroup_own_note(o, 1), "memory, which cgroup v1 has"));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void a_parent_that_holds_others_passes_nothing_on(void **state)
{
	char *root = host("cpu memory io pids", "cpu memory io pids"), path[512], *text;
	struct cgroup_own *o;

	(void)state;
	tree_write(root, "cgroup/work/cgroup.events", "populated 1\n");
	tree_write(root, "cgroup/work/cgroup.procs", "4321\n77\n");
	o = open_group("create=mine", false);
	assert_non_null(strstr(cgroup_own_note(o, 0), "no internal processes"));
	assert_non_null(strstr(cgroup_own_note(o, 0), "cpu, memory, io, pids"));
	snprintf(path, sizeof(path), "%s/cgroup/work/cgroup.subtree_control", root);
	text = file_read(path, NULL);
	assert_string_equal(text, "\n");
	free(text);
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	tree_remove(root);
}

static void a_parent_is_left_as_it_was_where_the_group_was_there(void **state)
{
	char *root = host("memory", "memory"), path[512], aside[64], *text;
	struct cgroup_own *o;

	(void)state;
	tree_write(root, "cgroup/work/cgroup.events", "populated 1\n");
	tree_write(root, "cgroup/work/mine/cpu.stat", "usage_usec 1\n");
	snprintf(aside, sizeof(aside), "/work/jphase-aside-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/cgroup/work/cgroup.subtree_control", root);
	o = open_group("create=mine", false);
	assert_true(is_there(root, aside));
	text = file_read(path, NULL);
	assert_string_equal(text, "+memory");
	free(text);
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	assert_true(is_there(root, "/work/mine"));
	assert_false(is_there(root, aside));
	text = file_read(path, NULL);
	assert_string_equal(text, "-memory");
	free(text);
	cgroup_own_close(o);
	tree_remove(root);
}

/* On this machine; false: it does not let us. */
static bool may_make_groups(void)
{
	struct cgroup_mount mount;
	bool may;

	snprintf(proc_root, sizeof(proc_root), "/proc");
	if (cgroup_mount_find(&env, &mount, reason) < 0)
		return false;
	may = access(mount.path, W_OK) == 0;
	snprintf(reason, sizeof(reason), "groups cannot be made in %s", mount.path);
	cgroup_mount_clear(&mount);
	return may;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (pid == 0)
		pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static char *group_of(pid_t pid)
{
	char *path;

	if (cgroup_place_of_process(&env, pid, &path, reason) < 0)
		fail_msg("%s", reason);
	return path;
}

static void survivors_go_back_to_where_the_program_came_from(void **state)
{
	struct cgroup_choice choice = { "create=jphase test group", false };
	struct cgroup_own *o;
	char *before, *inside, *after, below[512];
	pid_t pid;

	(void)state;
	if (!may_make_groups())
		skip_because("%s", reason);
	pid = sleeper();
	before = group_of(pid);
	assert_int_equal(cgroup_own_open(&env, &choice, pid, &o, reason), 0);
	assert_int_equal(cgroup_own_attach(o, pid, reason), 0);
	inside = group_of(pid);
	assert_string_equal(inside, cgroup_own_path(o));
	/* What the program makes inside goes too. */
	snprintf(below, sizeof(below), "%.400s/below", cgroup_own_path(o));
	assert_int_equal(mkdir(below, 0755), 0);

	assert_int_equal(cgroup_own_leave(o, reason), 0);
	after = group_of(pid);
	assert_string_equal(after, before);
	assert_int_equal(access(cgroup_own_path(o), F_OK), -1);
	free(before);
	free(inside);
	free(after);
	cgroup_own_close(o);
	end(pid);
}

static void who_is_just_ending_does_not_keep_the_group(void **state)
{
	struct cgroup_choice choice = { "create=jphase test ending", false };
	struct cgroup_own *o;

	(void)state;
	if (!may_make_groups())
		skip_because("%s", reason);
	for (int i = 0; i < 20; i++) {
		pid_t pid = sleeper();

		assert_int_equal(cgroup_own_open(&env, &choice, pid, &o, reason), 0);
		assert_int_equal(cgroup_own_attach(o, pid, reason), 0);
		end(pid);
		if (cgroup_own_leave(o, reason) < 0)
			fail_msg("%s", reason);
		cgroup_own_close(o);
	}
}

static void a_process_that_cannot_be_moved_is_told(void **state)
{
	struct cgroup_choice choice = { "create=jphase test gone", false };
	struct cgroup_own *o;
	pid_t pid;

	(void)state;
	if (!may_make_groups())
		skip_because("%s", reason);
	pid = sleeper();
	assert_int_equal(cgroup_own_open(&env, &choice, pid, &o, reason), 0);
	end(pid);
	assert_int_equal(cgroup_own_attach(o, pid, reason), -ESRCH);
	assert_non_null(strstr(reason, "cannot be moved into"));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
}

/* --- what killed collectors have left --- */

/* Made so long ago. */
static void leave_group(const char *root, const char *name, long seconds)
{
	const struct timespec then = { .tv_sec = time(NULL) - seconds };
	char path[512];

	snprintf(path, sizeof(path), "%s/cgroup/work/%s", root, name);
	if (mkdir(path, 0755) < 0)
		assert_int_equal(errno, EEXIST);
	assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[]){ then, then }, 0), 0);
}

/* Something that has a collector's command line and waits. */
static pid_t start_sibling(const char *root)
{
	char *argv[] = { (char *)"jphase", (char *)"collect", NULL };
	pid_t pid;

	tree_write(root, "sibling/here", "\n");
	pid = fork();
	if (pid == 0) {
		if (chdir(root) < 0 || chdir("sibling") < 0 || mkfifo("collect", 0600) < 0)
			_exit(1);
		execv("/bin/cat", argv);
		_exit(1);
	}
	assert_true(pid > 0);
	for (int i = 0; i < 1000 && !sibling_lives(pid); i++)
		usleep(10000);
	assert_true(sibling_lives(pid));
	return pid;
}

static void groups_of_killed_collectors_are_removed_and_no_others(void **state)
{
	char *root = host("cpu memory", "cpu memory");
	pid_t sibling = start_sibling(root);
	char *live = text_make("jphase-%d", (int)sibling), *path = text_make("/work/%s", live);
	struct cgroup_own *o;

	(void)state;
	leave_group(root, "jphase-99999991", 3600);
	leave_group(root, "jphase-aside-99999992", 3600);
	leave_group(root, "jphase-99999993", 5);
	tree_write(root, "cgroup/work/jphase-99999994/cgroup.procs", "1\n");
	leave_group(root, "jphase-99999994", 3600);
	leave_group(root, "jphase-mine", 3600);
	leave_group(root, "jphase-99999995-mine", 3600);
	leave_group(root, live, 3600);
	o = open_group("create=mine", false);
	assert_false(is_there(root, "/work/jphase-99999991"));
	assert_false(is_there(root, "/work/jphase-aside-99999992"));
	assert_true(is_there(root, "/work/jphase-99999993"));
	assert_true(is_there(root, "/work/jphase-99999994"));
	assert_true(is_there(root, "/work/jphase-mine"));
	assert_true(is_there(root, "/work/jphase-99999995-mine"));
	assert_true(is_there(root, path));
	assert_int_equal(cgroup_own_leave(o, reason), 0);
	cgroup_own_close(o);
	kill(sibling, SIGKILL);
	assert_int_equal(waitpid(sibling, NULL, 0), sibling);
	free(path);
	free(live);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_made_below_the_targets_and_removed),
		cmocka_unit_test(a_group_without_a_name_has_one_of_ours),
		cmocka_unit_test(a_name_with_a_slash_begins_at_the_root),
		cmocka_unit_test(an_existing_group_of_that_name_is_used_and_stays),
		cmocka_unit_test(an_existing_group_is_found_by_each_of_its_names),
		cmocka_unit_test(what_leads_out_of_the_root_is_refused),
		cmocka_unit_test(controllers_are_enabled_where_that_may_be),
		cmocka_unit_test(what_the_parent_does_not_pass_on_is_told_with_the_command),
		cmocka_unit_test(what_version_1_has_is_told),
		cmocka_unit_test(a_parent_that_holds_others_passes_nothing_on),
		cmocka_unit_test(a_parent_is_left_as_it_was_where_the_group_was_there),
		cmocka_unit_test(survivors_go_back_to_where_the_program_came_from),
		cmocka_unit_test(who_is_just_ending_does_not_keep_the_group),
		cmocka_unit_test(a_process_that_cannot_be_moved_is_told),
		cmocka_unit_test(groups_of_killed_collectors_are_removed_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
