/* SPDX-License-Identifier: MIT */
/* The cgroup reader on trees of files and on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/cgroup_place.h"
#include "readers/reader.h"
#include "support/tree.h"

#define VALUES_MAX 128
#define TARGET     4321

struct opened {
	struct reader *reader;
	struct metric_list list;
	uint64_t values[VALUES_MAX];
};

/* Lives as long as the reader; a test sets what it chooses before it opens. */
static char the_proc_root[256];
static struct reader_env the_env = { .proc_root = the_proc_root, .sys_root = "/sys" };

static int forget_choices(void **state)
{
	(void)state;
	the_env.cgroup_root = the_env.cgroup_path = NULL;
	the_env.cgroup_own = false;
	return 0;
}

static struct opened open_in(const char *proc_root, pid_t pid)
{
	const struct reader_env *env = &the_env;
	struct reader_target target = { .env = env, .pid = pid };
	char reason[READER_REASON_ROOM] = "";
	struct opened o = { 0 };

	snprintf(the_proc_root, sizeof(the_proc_root), "%s", proc_root);
	if (cgroup_reader.open(&target, &o.reader, reason) < 0)
		fail_msg("%s", reason);
	assert_int_equal(cgroup_reader.describe(o.reader, &o.list), 0);
	assert_true(metric_list_values(&o.list) <= VALUES_MAX);
	memset(o.values, 0x55, sizeof(o.values));
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	return o;
}

static void close_it(struct opened *o)
{
	metric_list_clear(&o->list);
	cgroup_reader.close(o->reader);
}

static size_t index_of(const struct opened *o, const char *name)
{
	size_t i = 0;

	while (i < o->list.count && !str_eq(o->list.metric[i].name, name))
		i++;
	return i;
}

static bool has(const struct opened *o, const char *name)
{
	return index_of(o, name) < o->list.count;
}

static uint64_t value(const struct opened *o, const char *name)
{
	size_t i = index_of(o, name);

	if (i == o->list.count)
		fail_msg("no metric %s", name);
	return o->values[i];
}

static const struct metric *metric(const struct opened *o, const char *name)
{
	assert_true(has(o, name));
	return &o->list.metric[index_of(o, name)];
}

/* A small hierarchy at ROOT/cgroup with the target in /job. */
static char *small_tree(void)
{
	char *root = tree_make();

	tree_write(root, "proc/self/mountinfo",
		"35 24 0:30 / %s/cgroup rw shared:9 - cgroup2 cgroup2 rw\n", root);
	tree_write(root, "proc/4321/cgroup", "0::/job\n");
	tree_write(root, "cgroup/cpu.stat", "usage_usec 1000\nuser_usec 600\nsystem_usec 400\n");
	tree_write(root, "cgroup/job/cgroup.events", "populated 1\n");
	tree_write(root, "cgroup/job/cgroup.procs", "4321\n");
	tree_write(root, "cgroup/job/cpu.stat", "usage_usec 10\nuser_usec 6\nsystem_usec 4\n");
	tree_write(root, "cgroup/job/memory.current", "4096\n");
	tree_write(root, "cgroup/job/memory.peak", "8192\n");
	tree_write(root, "cgroup/job/io.stat", "%s", "");
	return root;
}

static struct opened open_tree(const char *root)
{
	char proc_root[256];

	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	return open_in(proc_root, TARGET);
}

static const struct expected {
	const char *name;
	enum metric_kind kind;
	enum metric_unit unit;
	enum metric_scope scope;
	uint64_t value;
} unified[] = {
	{ "proc_usage_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 1200 },
	{ "proc_user_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 800 },
	{ "proc_system_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 400 },
	{ "proc_nr_periods", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 50 },
	{ "proc_nr_throttled", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 5 },
	{ "proc_throttled_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 70000 },
	{ "proc_nr_bursts", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 2 },
	{ "proc_burst_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 30 },
	{ "proc_anon", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 40960 },
	{ "proc_file", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 81920 },
	{ "proc_kernel", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 9000 },
	{ "proc_kernel_stack", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 1600 },
	{ "proc_shmem", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 100 },
	{ "proc_slab", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 5000 },
	{ "proc_workingset_refault_anon", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 6 },
	{ "proc_workingset_refault_file", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 7 },
	{ "proc_current", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 135168 },
	{ "proc_swap_current", METRIC_GAUGE, UNIT_BYTES, SCOPE_GROUP, 8192 },
	{ "proc_peak", METRIC_PEAK, UNIT_BYTES, SCOPE_GROUP, 200704 },
	{ "proc_memory_oom", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 2 },
	{ "proc_memory_oom_kill", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 1 },
	{ "proc_memory_high", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 3 },
	{ "proc_read_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GROUP, 4097 },
	{ "proc_write_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GROUP, 8194 },
	{ "proc_read_ops", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 4 },
	{ "proc_write_ops", METRIC_COUNTER, UNIT_COUNT, SCOPE_GROUP, 6 },
	{ "proc_cpu_some_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 11 },
	{ "proc_cpu_full_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 12 },
	{ "proc_memory_some_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 21 },
	{ "proc_memory_full_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 22 },
	{ "proc_io_some_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 31 },
	{ "proc_io_full_usec", METRIC_COUNTER, UNIT_US, SCOPE_GROUP, 32 },
	{ "proc_pids_current", METRIC_GAUGE, UNIT_COUNT, SCOPE_GROUP, 4 },
	{ "proc_pids_peak", METRIC_PEAK, UNIT_COUNT, SCOPE_GROUP, 9 },
	{ "global_usage_usec", METRIC_COUNTER, UNIT_US, SCOPE_GLOBAL, 9000000 },
	{ "global_user_usec", METRIC_COUNTER, UNIT_US, SCOPE_GLOBAL, 6000000 },
	{ "global_system_usec", METRIC_COUNTER, UNIT_US, SCOPE_GLOBAL, 3000000 },
	{ "global_anon", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 400000 },
	{ "global_file", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 800000 },
	{ "global_kernel", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 90000 },
	{ "global_kernel_stack", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 16000 },
	{ "global_shmem", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 1000 },
	{ "global_slab", METRIC_GAUGE, UNIT_BYTES, SCOPE_GLOBAL, 50000 },
	{ "global_workingset_refault_anon", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 60 },
	{ "global_workingset_refault_file", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 70 },
	{ "global_read_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 1000500 },
	{ "global_write_bytes", METRIC_COUNTER, UNIT_BYTES, SCOPE_GLOBAL, 2000600 },
	{ "global_read_ops", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 107 },
	{ "global_write_ops", METRIC_COUNTER, UNIT_COUNT, SCOPE_GLOBAL, 208 },
};

static void every_file_of_a_unified_host_is_read(void **state)
{
	struct opened o = open_in("tests/fixtures/proc-basic", TARGET);

	(void)state;
	assert_int_equal(o.list.count, ARRAY_SIZE(unified));
	assert_int_equal(o.list.groups, 0);
	for (size_t i = 0; i < ARRAY_SIZE(unified); i++) {
		const struct expected *e = &unified[i];
		const struct metric *m = &o.list.metric[i];

		assert_string_equal(m->name, e->name);
		assert_int_equal(m->kind, e->kind);
		assert_int_equal(m->unit, e->unit);
		assert_int_equal(m->scope, e->scope);
		assert_int_equal(m->group, METRIC_NO_GROUP);
		assert_null(m->absent);
		assert_int_equal(o.values[i], e->value);
	}
	close_it(&o);
}

static void others_in_the_group_and_below_are_told(void **state)
{
	struct opened o = open_in("tests/fixtures/proc-basic", TARGET);

	(void)state;
	assert_string_equal(metric(&o, "proc_usage_usec")->note, "shared with 2 other processes");
	assert_string_equal(metric(&o, "proc_peak")->note,
		"highest of the group's lifetime; shared with 2 other processes");
	assert_null(metric(&o, "global_usage_usec")->note);
	close_it(&o);
}

static void a_group_of_its_own_needs_no_note(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);

	(void)state;
	assert_null(metric(&o, "proc_usage_usec")->note);
	assert_string_equal(metric(&o, "proc_peak")->note, "highest of the group's lifetime");
	close_it(&o);
	tree_write(root, "cgroup/job/cgroup.procs", "4321\n17\n");
	o = open_tree(root);
	assert_string_equal(metric(&o, "proc_usage_usec")->note, "shared with 1 other process");
	close_it(&o);
	/* The collector is this program. */
	tree_write(root, "cgroup/job/cgroup.procs", "4321\n%d\n", getpid());
	o = open_tree(root);
	assert_null(metric(&o, "proc_usage_usec")->note);
	close_it(&o);
	tree_remove(root);
}

static void values_follow_the_files(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);

	(void)state;
	assert_int_equal(value(&o, "proc_usage_usec"), 10);
	assert_int_equal(value(&o, "proc_read_bytes"), 0);
	tree_write(root, "cgroup/job/cpu.stat", "usage_usec 250\nuser_usec 200\nsystem_usec 50");
	tree_write(
		root, "cgroup/job/io.stat", "252:0 \n8:0 rbytes=512 wbytes=1024 rios=1 wios=2\n");
	tree_write(root, "cgroup/job/memory.current", "12288\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_usage_usec"), 250);
	assert_int_equal(value(&o, "proc_system_usec"), 50);
	assert_int_equal(value(&o, "proc_read_bytes"), 512);
	assert_int_equal(value(&o, "proc_write_ops"), 2);
	assert_int_equal(value(&o, "proc_current"), 12288);
	assert_int_equal(value(&o, "global_usage_usec"), 1000);
	close_it(&o);
	tree_remove(root);
}

static void a_torn_line_is_absent_alone_and_comes_back(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);

	(void)state;
	tree_write(root, "cgroup/job/cpu.stat",
		"usage_usec\nuser_usec 18446744073709551615\nsystem_usec 5\n");
	tree_write(root, "cgroup/job/memory.current", "max\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_true(value(&o, "proc_usage_usec") == VALUE_ABSENT);
	assert_true(value(&o, "proc_user_usec") == VALUE_ABSENT);
	assert_int_equal(value(&o, "proc_system_usec"), 5);
	assert_true(value(&o, "proc_current") == VALUE_ABSENT);
	tree_write(root, "cgroup/job/cpu.stat", "usage_usec 11\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_usage_usec"), 11);
	assert_true(value(&o, "proc_system_usec") == VALUE_ABSENT);
	close_it(&o);
	tree_remove(root);
}

static void samples_hold_only_gauges(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);

	(void)state;
	assert_int_equal(cgroup_reader.sample(o.reader, o.values), 0);
	for (size_t i = 0; i < o.list.count; i++)
		assert_int_equal(
			o.values[i] == VALUE_ABSENT, o.list.metric[i].kind != METRIC_GAUGE);
	assert_int_equal(value(&o, "proc_current"), 4096);
	close_it(&o);
	tree_remove(root);
}

static void a_file_that_is_missing_is_no_metric(void **state)
{
	static const struct {
		const char *file, *gone;
	} files[] = {
		{ "cgroup/job/memory.current", "proc_current" },
		{ "cgroup/job/memory.peak", "proc_peak" },
		{ "cgroup/job/io.stat", "proc_read_bytes" },
		{ "cgroup/job/cpu.stat", "proc_usage_usec" },
		{ "cgroup/cpu.stat", "global_usage_usec" },
	};
	char *root = small_tree();
	size_t before = VALUES_MAX;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files) - 1; i++) {
		struct opened o;

		tree_unlink(root, files[i].file);
		o = open_tree(root);
		assert_false(has(&o, files[i].gone));
		assert_true(o.list.count < before);
		before = o.list.count;
		assert_int_equal(value(&o, "global_usage_usec"), 1000);
		close_it(&o);
	}
	tree_remove(root);
}

static void a_group_without_any_counter_is_an_error(void **state)
{
	char *root = small_tree();
	char proc_root[256], reason[READER_REASON_ROOM];
	struct reader_env env = { .proc_root = proc_root, .sys_root = "/sys" };
	struct reader_target target = { .env = &env, .pid = TARGET };
	struct reader *reader;

	(void)state;
	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	tree_unlink(root, "cgroup/cpu.stat");
	tree_unlink(root, "cgroup/job/cpu.stat");
	tree_unlink(root, "cgroup/job/memory.current");
	tree_unlink(root, "cgroup/job/memory.peak");
	tree_unlink(root, "cgroup/job/io.stat");
	assert_int_equal(cgroup_reader.open(&target, &reader, reason), -ENOENT);
	assert_non_null(strstr(reason, "jphase doctor"));
	tree_remove(root);
}

static void the_target_in_the_root_shares_it_and_each_file_is_read_once(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "proc/4321/cgroup", "1:name=systemd:/x\n0::/\n");
	tree_write(root, "cgroup/cgroup.procs", "1\n4321\n");
	o = open_tree(root);
	assert_int_equal(o.list.count, 6);
	assert_int_equal(value(&o, "proc_usage_usec"), 1000);
	assert_int_equal(value(&o, "global_usage_usec"), 1000);
	assert_int_equal(value(&o, "global_system_usec"), 400);
	assert_string_equal(metric(&o, "proc_user_usec")->note, "shared with 1 other process");
	assert_null(metric(&o, "global_user_usec")->note);
	close_it(&o);
	tree_remove(root);
}

static void the_root_of_a_container_says_so(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "cgroup/cgroup.events", "populated 1\n");
	o = open_tree(root);
	assert_string_equal(metric(&o, "global_usage_usec")->note,
		"the container's groups, not the whole machine");
	close_it(&o);
	tree_remove(root);
}

static void a_mount_point_and_a_group_may_hold_blanks(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "proc/self/mountinfo",
		"35 24 0:30 / %s/my\\040groups rw - cgroup2 cgroup2 rw\n", root);
	tree_write(root, "proc/4321/cgroup", "0::/a job\\x\n");
	tree_write(root, "my groups/cpu.stat", "usage_usec 3\n");
	tree_write(root, "my groups/a job\\x/cpu.stat", "usage_usec 2\n");
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 2);
	assert_int_equal(value(&o, "global_usage_usec"), 3);
	close_it(&o);
	tree_remove(root);
}

static void refused(const char *root, int err, const char *says)
{
	char proc_root[256], reason[READER_REASON_ROOM] = "";
	struct reader_env env = { .proc_root = proc_root, .sys_root = "/sys" };
	struct reader_target target = { .env = &env, .pid = TARGET };
	struct reader *reader;

	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	assert_int_equal(cgroup_reader.open(&target, &reader, reason), err);
	if (!strstr(reason, says))
		fail_msg("\"%s\" does not say \"%s\"", reason, says);
}

static void what_cannot_be_found_is_told_with_the_fix(void **state)
{
	char *root = small_tree();

	(void)state;
	tree_write(root, "proc/4321/cgroup", "0::/gone (deleted)\n");
	refused(root, -ENOENT, "has been removed");
	tree_write(root, "proc/4321/cgroup", "4:memory:/x\n");
	refused(root, -ENOENT, "no cgroup v2");
	tree_unlink(root, "proc/4321/cgroup");
	refused(root, -ENOENT, "has ended");
	tree_write(root, "proc/self/mountinfo", "31 23 0:28 / /x rw - tmpfs tmpfs rw\n");
	refused(root, -ENOENT, "mount -t cgroup2");
	tree_remove(root);
}

static void the_probe_needs_only_the_mount(void **state)
{
	char *root = small_tree();
	char proc_root[256], reason[READER_REASON_ROOM] = "";
	struct reader_env env = { .proc_root = proc_root, .sys_root = "/sys" };

	(void)state;
	snprintf(proc_root, sizeof(proc_root), "%s/proc", root);
	assert_int_equal(cgroup_reader.probe(&env, reason), 0);
	tree_unlink(root, "proc/self/mountinfo");
	assert_int_equal(cgroup_reader.probe(&env, reason), -ENOENT);
	assert_non_null(strstr(reason, "mountinfo"));
	tree_remove(root);
}

/* True if this machine has cgroup v2 and lets us make groups in it. */
static bool make_group(char *ret_path, size_t room, char **ret_name)
{
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char reason[READER_REASON_ROOM];
	struct cgroup_place place;

	if (cgroup_place_find(&env, getpid(), &place, reason) < 0) {
		printf("skipped: %s\n", reason);
		return false;
	}
	snprintf(ret_path, room, "%s/jphase test \\ %d", place.root_path, getpid());
	*ret_name = ret_path + strlen(place.root_path);
	cgroup_place_clear(&place);
	if (mkdir(ret_path, 0755) < 0) {
		printf("skipped: cannot make %s: %s\n", ret_path, strerror(errno));
		return false;
	}
	return true;
}

static void a_removed_group_stays_at_its_last_values_and_says_so(void **state)
{
	char path[4096], *name = NULL, *root;
	struct cgroup_mount mount = { 0 };
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char reason[READER_REASON_ROOM];
	struct opened o;

	(void)state;
	if (!make_group(path, sizeof(path), &name))
		skip();
	assert_int_equal(cgroup_mount_find(&env, &mount, reason), 0);
	root = tree_make();
	tree_write(root, "proc/self/mountinfo", "35 24 0:30 / %s rw - cgroup2 cgroup2 rw\n",
		mount.path);
	tree_write(root, "proc/4321/cgroup", "0::%s\n", name);
	cgroup_mount_clear(&mount);
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 0);
	assert_int_equal(rmdir(path), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
		assert_int_equal(value(&o, "proc_usage_usec"), 0);
		assert_true(value(&o, "global_usage_usec") != VALUE_ABSENT);
	}
	assert_non_null(strstr(cgroup_reader.keep_alive(o.reader), "was removed"));
	assert_null(cgroup_reader.keep_alive(o.reader));
	close_it(&o);
	tree_remove(root);
}

static void the_root_is_read_for_a_process_outside_of_what_is_mounted(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "proc/4321/cgroup", "0::/../..\n");
	o = open_tree(root);
	assert_int_equal(o.list.count, 6);
	assert_int_equal(value(&o, "global_usage_usec"), 1000);
	assert_null(metric(&o, "global_usage_usec")->absent);
	assert_true(value(&o, "proc_usage_usec") == VALUE_ABSENT);
	assert_non_null(strstr(metric(&o, "proc_usage_usec")->absent, "--cgroupns=host"));
	assert_null(cgroup_reader.keep_alive(o.reader));
	close_it(&o);
	tree_remove(root);
}

static void what_a_lost_device_had_done_stays_in(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "cgroup/job/io.stat",
		"8:0 rbytes=100 wbytes=0 rios=1 wios=0\n8:16 rbytes=40 wbytes=7 rios=2 wios=3\n");
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_read_bytes"), 140);
	tree_write(root, "cgroup/job/io.stat", "8:0 rbytes=130 wbytes=0 rios=2 wios=0\n8:16 \n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_read_bytes"), 170);
	assert_int_equal(value(&o, "proc_write_ops"), 3);
	close_it(&o);
	tree_remove(root);
}

static void a_process_that_moves_is_followed(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);
	const char *news;

	(void)state;
	assert_null(cgroup_reader.keep_alive(o.reader));
	tree_write(root, "cgroup/next/cpu.stat", "usage_usec 5000\nuser_usec 0\nsystem_usec 0\n");
	tree_write(root, "cgroup/next/memory.current", "100\n");
	tree_write(root, "proc/4321/cgroup", "0::/next\n");
	news = cgroup_reader.keep_alive(o.reader);
	assert_non_null(news);
	assert_non_null(strstr(news, "/cgroup/job to "));
	assert_null(cgroup_reader.keep_alive(o.reader));
	tree_write(root, "cgroup/next/cpu.stat", "usage_usec 5300\nuser_usec 0\nsystem_usec 0\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_usage_usec"), 10 + 300);
	assert_int_equal(value(&o, "proc_current"), 100);
	assert_non_null(strstr(news, "gives no memory.peak nor 1 other"));
	assert_true(value(&o, "proc_peak") == VALUE_ABSENT);
	assert_int_equal(value(&o, "global_usage_usec"), 1000);
	close_it(&o);
	tree_remove(root);
}

static const char *go_to(struct opened *o, const char *root, const char *group)
{
	const char *news;

	tree_write(root, "proc/4321/cgroup", "0::%s\n", group);
	news = cgroup_reader.keep_alive(o->reader);
	assert_non_null(news);
	assert_int_equal(cgroup_reader.read(o->reader, o->values), 0);
	return news;
}

static void what_the_new_group_lacks_is_absent_until_the_move_back(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "cgroup/job/io.stat", "8:0 rbytes=100 wbytes=0 rios=1 wios=0\n");
	tree_write(root, "cgroup/next/cpu.stat", "usage_usec 5\n");
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_read_bytes"), 100);
	assert_non_null(strstr(go_to(&o, root, "/next"), "memory.current nor 2 others"));
	assert_true(value(&o, "proc_read_bytes") == VALUE_ABSENT);
	assert_true(value(&o, "proc_current") == VALUE_ABSENT);
	assert_null(strstr(go_to(&o, root, "/job"), "gives no"));
	tree_write(root, "cgroup/job/io.stat", "8:0 rbytes=130 wbytes=0 rios=2 wios=0\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_read_bytes"), 130);
	assert_int_equal(value(&o, "proc_current"), 4096);
	close_it(&o);
	tree_remove(root);
}

static void out_of_sight_nothing_goes_on_until_the_move_back(void **state)
{
	char *root = small_tree();
	struct opened o = open_tree(root);

	(void)state;
	assert_non_null(strstr(go_to(&o, root, "/../else"), "out of sight"));
	assert_true(value(&o, "proc_usage_usec") == VALUE_ABSENT);
	assert_int_equal(value(&o, "global_usage_usec"), 1000);
	go_to(&o, root, "/job");
	assert_int_equal(value(&o, "proc_usage_usec"), 10);
	close_it(&o);
	tree_remove(root);
}

/* As a controller that is switched off, this takes files and leaves the group. */
static void a_file_that_goes_while_its_group_stays_is_absent_and_told(void **state)
{
	char path[4096], file[4200], *name = NULL, *root;
	struct cgroup_mount mount = { 0 };
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char reason[READER_REASON_ROOM];
	const char *news;
	struct opened o;
	bool switched;
	FILE *f;

	(void)state;
	if (!make_group(path, sizeof(path), &name))
		skip();
	assert_int_equal(cgroup_mount_find(&env, &mount, reason), 0);
	root = tree_make();
	tree_write(root, "proc/self/mountinfo", "35 24 0:30 / %s rw - cgroup2 cgroup2 rw\n",
		mount.path);
	tree_write(root, "proc/4321/cgroup", "0::%s\n", name);
	cgroup_mount_clear(&mount);
	o = open_tree(root);
	snprintf(file, sizeof(file), "%s/cgroup.pressure", path);
	f = has(&o, "proc_cpu_some_usec") ? fopen(file, "r+") : NULL;
	switched = f && fputs("0", f) >= 0;
	if (f)
		switched = fclose(f) == 0 && switched;
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	news = cgroup_reader.keep_alive(o.reader);
	if (switched && news) {
		assert_non_null(strstr(news, "lost a controller"));
		assert_true(value(&o, "proc_cpu_some_usec") == VALUE_ABSENT);
		assert_null(cgroup_reader.keep_alive(o.reader));
	}
	assert_int_equal(value(&o, "proc_usage_usec"), 0);
	assert_int_equal(rmdir(path), 0);
	close_it(&o);
	tree_remove(root);
	if (!switched || !news) {
		printf("skipped: this kernel does not take away pressure files that are open\n");
		skip();
	}
}

static void a_process_that_leaves_the_root_is_followed(void **state)
{
	char *root = small_tree();
	struct opened o;

	(void)state;
	tree_write(root, "proc/4321/cgroup", "0::/\n");
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 1000);
	tree_write(root, "proc/4321/cgroup", "0::/job\n");
	assert_non_null(cgroup_reader.keep_alive(o.reader));
	tree_write(root, "cgroup/job/cpu.stat", "usage_usec 15\nuser_usec 6\nsystem_usec 4\n");
	tree_write(root, "cgroup/cpu.stat", "usage_usec 1700\nuser_usec 600\nsystem_usec 400\n");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_int_equal(value(&o, "proc_usage_usec"), 1005);
	assert_int_equal(value(&o, "global_usage_usec"), 1700);
	close_it(&o);
	tree_remove(root);
}

static void a_chosen_group_is_read_whoever_is_in_it(void **state)
{
	char *root = small_tree(), path[256];
	struct opened o;

	(void)state;
	tree_write(root, "cgroup/else/cpu.stat", "usage_usec 77\n");
	tree_write(root, "cgroup/else/cgroup.procs", "5\n6\n");
	snprintf(path, sizeof(path), "%s/cgroup/else", root);
	the_env.cgroup_path = path;
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 77);
	assert_string_equal(metric(&o, "proc_usage_usec")->note,
		"the program is not in it, but 2 other processes");
	tree_write(root, "proc/4321/cgroup", "0::/third\n");
	tree_write(root, "cgroup/third/cpu.stat", "usage_usec 1\n");
	assert_non_null(strstr(cgroup_reader.keep_alive(o.reader), "remain those of"));
	close_it(&o);

	tree_write(root, "proc/4321/cgroup", "0::/else\n");
	o = open_tree(root);
	assert_string_equal(metric(&o, "proc_usage_usec")->note, "shared with 2 other processes");
	close_it(&o);
	the_env.cgroup_own = true;
	o = open_tree(root);
	assert_null(metric(&o, "proc_usage_usec")->note);
	close_it(&o);
	tree_remove(root);
}

static void a_chosen_root_takes_the_place_of_the_mount(void **state)
{
	char *root = small_tree(), path[256];
	struct opened o;

	(void)state;
	snprintf(path, sizeof(path), "%s/copy", root);
	tree_write(root, "copy/cpu.stat", "usage_usec 9\n");
	tree_write(root, "copy/job/cpu.stat", "usage_usec 8\n");
	the_env.cgroup_root = path;
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 8);
	assert_int_equal(value(&o, "global_usage_usec"), 9);
	close_it(&o);

	/* A part of the mounted hierarchy. */
	snprintf(path, sizeof(path), "%s/cgroup/part", root);
	tree_write(root, "cgroup/part/cpu.stat", "usage_usec 6\n");
	tree_write(root, "cgroup/part/job/cpu.stat", "usage_usec 5\n");
	tree_write(root, "proc/4321/cgroup", "0::/part/job\n");
	o = open_tree(root);
	assert_int_equal(value(&o, "proc_usage_usec"), 5);
	assert_int_equal(value(&o, "global_usage_usec"), 6);
	close_it(&o);
	tree_remove(root);
}

static void this_machine_counts_cpu_time(void **state)
{
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char reason[READER_REASON_ROOM];
	struct opened o;
	uint64_t before;

	(void)state;
	if (cgroup_reader.probe(&env, reason) < 0) {
		printf("skipped: %s\n", reason);
		skip();
	}
	o = open_in("/proc", getpid());
	before = value(&o, "global_usage_usec");
	assert_int_equal(cgroup_reader.read(o.reader, o.values), 0);
	assert_true(value(&o, "global_usage_usec") >= before);
	assert_true(value(&o, "global_usage_usec") >= value(&o, "proc_usage_usec"));
	close_it(&o);
}

#define with_choices(test) cmocka_unit_test_teardown(test, forget_choices)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_of_a_unified_host_is_read),
		cmocka_unit_test(others_in_the_group_and_below_are_told),
		cmocka_unit_test(a_group_of_its_own_needs_no_note),
		cmocka_unit_test(values_follow_the_files),
		cmocka_unit_test(a_torn_line_is_absent_alone_and_comes_back),
		cmocka_unit_test(samples_hold_only_gauges),
		cmocka_unit_test(a_file_that_is_missing_is_no_metric),
		cmocka_unit_test(a_group_without_any_counter_is_an_error),
		cmocka_unit_test(the_target_in_the_root_shares_it_and_each_file_is_read_once),
		cmocka_unit_test(the_root_of_a_container_says_so),
		cmocka_unit_test(a_mount_point_and_a_group_may_hold_blanks),
		cmocka_unit_test(what_cannot_be_found_is_told_with_the_fix),
		cmocka_unit_test(the_probe_needs_only_the_mount),
		cmocka_unit_test(a_removed_group_stays_at_its_last_values_and_says_so),
		with_choices(the_root_is_read_for_a_process_outside_of_what_is_mounted),
		with_choices(what_a_lost_device_had_done_stays_in),
		with_choices(a_process_that_moves_is_followed),
		with_choices(what_the_new_group_lacks_is_absent_until_the_move_back),
		with_choices(out_of_sight_nothing_goes_on_until_the_move_back),
		with_choices(a_file_that_goes_while_its_group_stays_is_absent_and_told),
		with_choices(a_process_that_leaves_the_root_is_followed),
		with_choices(a_chosen_group_is_read_whoever_is_in_it),
		with_choices(a_chosen_root_takes_the_place_of_the_mount),
		cmocka_unit_test(this_machine_counts_cpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
