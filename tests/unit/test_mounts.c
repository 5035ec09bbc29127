/* SPDX-License-Identifier: MIT */
/* Where cgroup v2 is, on hosts of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "readers/mounts.h"

static const char hybrid[] =
	"22 27 0:21 / /proc rw,relatime - proc proc rw,gid=26,hidepid=invisible\n"
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 master:1 - cgroup2 cgroup2 rw\n";

static void find(const char *mountinfo, const char *path, const char *root)
{
	struct cgroup_mount mount;

	assert_int_equal(mounts_find_cgroup2(mountinfo, strlen(mountinfo), &mount), 0);
	assert_string_equal(mount.path, path);
	assert_string_equal(mount.root, root);
	cgroup_mount_clear(&mount);
}

static void a_hybrid_host_has_it_in_a_subfolder(void **state)
{
	(void)state;
	find(hybrid, "/sys/fs/cgroup/unified", "/");
}

static void a_unified_host_has_it_at_the_top(void **state)
{
	(void)state;
	find("35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
		"/sys/fs/cgroup", "/");
}

static void a_mount_of_the_whole_hierarchy_is_preferred(void **state)
{
	(void)state;
	find("50 24 0:30 /docker/abc /mnt/part rw - cgroup2 cgroup2 rw\n"
	     "51 24 0:30 / /mnt/all rw - cgroup2 cgroup2 rw\n",
		"/mnt/all", "/");
	find("50 24 0:30 /docker/abc /mnt/part rw - cgroup2 cgroup2 rw\n", "/mnt/part",
		"/docker/abc");
}

static void escapes_are_undone(void **state)
{
	(void)state;
	find("50 24 0:30 /a\\134b /mnt/my\\040group\\011x rw - cgroup2 none rw\n",
		"/mnt/my group\tx", "/a\\b");
	find("50 24 0:30 / /mnt/odd\\9\\04 rw - cgroup2 none rw\n", "/mnt/odd\\9\\04", "/");
}

static void an_empty_source_does_not_hide_it(void **state)
{
	(void)state;
	find("50 24 0:30 / /mnt/x rw - cgroup2  rw\n", "/mnt/x", "/");
}

static void without_a_mount_there_is_an_error(void **state)
{
	static const char text[] = "torn\n50 24 0:30 / /mnt\n"
				   "50 24 0:30 / /mnt/cgroup2 rw - tmpfs cgroup2 rw\n"
				   "50 24 0:30 / /mnt/x rw cgroup2 cgroup2 rw\n";
	struct cgroup_mount mount;

	(void)state;
	assert_int_equal(mounts_find_cgroup2(text, strlen(text), &mount), -ENOENT);
	assert_int_equal(mounts_find_cgroup2("", 0, &mount), -ENOENT);
}

static void super_block_options_are_found_by_name(void **state)
{
	char value[16];

	(void)state;
	assert_true(mounts_option(hybrid, strlen(hybrid), "/proc", "hidepid", value, 16));
	assert_string_equal(value, "invisible");
	assert_true(mounts_option(hybrid, strlen(hybrid), "/proc", "rw", value, 16));
	assert_string_equal(value, "");
	assert_false(mounts_option(hybrid, strlen(hybrid), "/proc", "hide", value, 16));
	assert_false(mounts_option(hybrid, strlen(hybrid), "/sys", "hidepid", value, 16));
	assert_true(mounts_option(hybrid, strlen(hybrid), "/proc", "hidepid", value, 4));
	assert_string_equal(value, "inv");
}

static void the_group_may_have_any_name(void **state)
{
	static const char text[] = "9:name=systemd:/\n4:memory:/process_api/98\n"
				   "0::/my group\\x:y/0::/z\n";
	char *group;

	(void)state;
	assert_int_equal(mounts_group(text, strlen(text), &group), 0);
	assert_string_equal(group, "/my group\\x:y/0::/z");
	free(group);
	assert_int_equal(mounts_group("0::/", 4, &group), 0);
	assert_string_equal(group, "/");
	free(group);
	assert_int_equal(mounts_group("4:memory:/a\n", 12, &group), -ENOENT);
	assert_int_equal(mounts_group("0::", 3, &group), -ENOENT);
}

static void controllers_of_version_1_are_named(void **state)
{
	static const char text[] = "4:cpu,cpuacct:/a\n3:memory:/x,pids:y\n0:io:/\n";

	(void)state;
	assert_true(mounts_controller_is_v1(text, strlen(text), "cpu"));
	assert_true(mounts_controller_is_v1(text, strlen(text), "cpuacct"));
	assert_true(mounts_controller_is_v1(text, strlen(text), "memory"));
	assert_false(mounts_controller_is_v1(text, strlen(text), "pids"));
	assert_false(mounts_controller_is_v1(text, strlen(text), "io"));
}

static void place(
	const char *mount_path, const char *mount_root, const char *group, const char *expected)
{
	struct cgroup_mount mount = { (char *)mount_path, (char *)mount_root };
	char *path;
	int err = mounts_group_path(&mount, group, &path);

	if (!expected) {
		assert_int_equal(err, -EXDEV);
		return;
	}
	assert_int_equal(err, 0);
	assert_string_equal(path, expected);
	free(path);
}

static void the_folder_is_below_the_mount(void **state)
{
	(void)state;
	place("/sys/fs/cgroup", "/", "/", "/sys/fs/cgroup");
	place("/sys/fs/cgroup", "/", "/a b/c", "/sys/fs/cgroup/a b/c");
	place("/sys/fs/cgroup", "/", "/..a/b..", "/sys/fs/cgroup/..a/b..");
}

static void a_mounted_subtree_is_taken_off_the_group(void **state)
{
	(void)state;
	place("/mnt", "/docker/abc", "/docker/abc", "/mnt");
	place("/mnt", "/docker/abc", "/docker/abc/x", "/mnt/x");
	place("/mnt", "/docker/abc", "/docker/abcd", NULL);
	place("/mnt", "/docker/abc", "/docker", NULL);
	place("/mnt", "/docker/abc", "/", NULL);
}

static void groups_outside_of_the_namespace_are_refused(void **state)
{
	(void)state;
	place("/sys/fs/cgroup", "/", "/../..", NULL);
	place("/sys/fs/cgroup", "/", "/../other", NULL);
	place("/sys/fs/cgroup", "/..", "/", NULL);
	/* Mounted from outside: both are told from our namespace and can be compared. */
	place("/sys/fs/cgroup", "/../..", "/../../other", "/sys/fs/cgroup/other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hybrid_host_has_it_in_a_subfolder),
		cmocka_unit_test(a_unified_host_has_it_at_the_top),
		cmocka_unit_test(a_mount_of_the_whole_hierarchy_is_preferred),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(an_empty_source_does_not_hide_it),
		cmocka_unit_test(without_a_mount_there_is_an_error),
		cmocka_unit_test(super_block_options_are_found_by_name),
		cmocka_unit_test(the_group_may_have_any_name),
		cmocka_unit_test(controllers_of_version_1_are_named),
		cmocka_unit_test(the_folder_is_below_the_mount),
		cmocka_unit_test(a_mounted_subtree_is_taken_off_the_group),
		cmocka_unit_test(groups_outside_of_the_namespace_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
