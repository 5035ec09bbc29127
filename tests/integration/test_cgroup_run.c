/* SPDX-License-Identifier: MIT */
/* Groups of the program's own, groups that are there, and a copy of the kernel's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/cgroup_place.h"
#include "readers/reader.h"
#include "report/columns.h"
#include "support/measure.h"
#include "support/tree.h"

#define ATTEMPTS 5
/* spin=200 */
#define BURN_US  200000.0

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

static char mount_path[1024], name[64], path[2048], choice[128], choice_env[256];

/* False: this machine does not let us make groups. */
static bool may_make_groups(void)
{
	struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char reason[READER_REASON_ROOM];
	struct cgroup_mount mount;

	if (cgroup_mount_find(&env, &mount, reason) < 0) {
		print_message("%s\n", reason);
		return false;
	}
	snprintf(mount_path, sizeof(mount_path), "%s", mount.path);
	cgroup_mount_clear(&mount);
	if (access(mount_path, W_OK) < 0)
		return false;
	snprintf(name, sizeof(name), "/jphase-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s%s", mount_path, name);
	snprintf(choice, sizeof(choice), "create=%s", name);
	snprintf(choice_env, sizeof(choice_env), "JPHASE_CGROUP=%s", choice);
	return true;
}

#define need_groups()                                                                              \
	do {                                                                                       \
		if (!may_make_groups())                                                            \
			skip_because("groups cannot be made here");                                \
	} while (0)

static bool is_gone(void)
{
	/* The collector may be a moment behind the program. */
	for (int i = 0; i < 500 && access(path, F_OK) == 0; i++)
		usleep(10000);
	return access(path, F_OK) < 0;
}

static bool within_two_percent(double a, double b)
{
	return a <= 1.02 * b && b <= 1.02 * a;
}

static bool burning_agrees(const struct measured *m)
{
	const struct row *burn = phase_at(m, "burn", 0), *rest = phase_at(m, "rest", 0);
	double task_us = (double)counted(m, burn, "task-clock") / 1000;
	double usage_us = (double)counted(m, burn, "proc_usage_usec");
	double share = 100.0 * usage_us * 1000 / (double)burn->duration_ns;

	print_message("task-clock %.0f us, usage %.0f us\n", task_us, usage_us);
	return within_two_percent(usage_us, BURN_US) && task_us >= usage_us / 1.02 &&
	       within_two_percent(share, (double)counted(m, burn, "proc_cpu_usage") / 100) &&
	       counted(m, rest, "proc_usage_usec") < usage_us / 10;
}

/* What interrupts and the hypervisor take away is in the task-clock alone. */
static void usage_is_what_was_burnt_and_no_more_than_the_task_clock(void **state)
{
	bool agrees = false;

	(void)state;
	need_groups();
	for (int i = 0; i < ATTEMPTS && !agrees; i++) {
		struct measured m = {
			.options = { "--cgroup", choice },
			.argv = { TARGET("act"), "phase=burn", "spin=200", "phase=rest",
				"sleep=200", "phase=end" },
		};

		measure(&m);
		agrees = burning_agrees(&m);
		measure_clear(&m);
	}
	assert_true(agrees);
	assert_true(is_gone());
}

static void the_program_is_inside_from_its_first_instruction(void **state)
{
	(void)state;
	need_groups();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.options = { "--cgroup", choice },
			.env = { choice_env },
			.argv = { "cat", "/proc/self/cgroup" },
		};
		char line[128];

		measure(&m);
		snprintf(line, sizeof(line), "0::%s\n", name);
		assert_non_null(strstr(m.child.out, line));
		assert_null(value_of(&m, &m.model->runs[0].total, "proc_usage_usec").note);
		assert_true(is_gone());
		measure_clear(&m);
	}
}

static void children_that_escaped_are_counted(void **state)
{
	struct measured m = {
		.options = { "--cgroup", choice },
		.argv = { TARGET("act"), "phase=work", "fork", "daemonise", "spin=100", "join",
			"sleep=1500", "phase=end" },
	};

	(void)state;
	need_groups();
	measure(&m);
	assert_true(counted(&m, phase_at(&m, "work", 0), "proc_usage_usec") >= 100000);
	assert_true(is_gone());
	measure_clear(&m);
}

static void faults_of_the_group_are_exact(void **state)
{
	static const uint64_t pages[] = { 100, 300, 50 };
	static const char *const names[] = { "p0", "p1", "p2" };

	(void)state;
	need_groups();
	if (geteuid() != 0)
		skip_because("counting a group needs root");
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.options = { "--cgroup", choice, "--scope", "cgroup" },
			.env = { choice_env, "JPHASE_SCOPE=cgroup" },
			.argv = { TARGET("pages"), "50", "100", "300", "50" },
		};

		measure(&m);
		for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
			for (size_t n = 0; n < 50; n++)
				assert_int_equal(
					counted(&m, phase_at(&m, names[i], n), "page-faults"),
					pages[i]);
		assert_true(is_gone());
		measure_clear(&m);
	}
}

static void run_until_signal(const char *start, const char *how)
{
	char *dir = tmpdir_make();
	struct child c = { .cwd = dir };

	assert_int_equal(run_shell(&c,
				 "%s" JPHASE " run -q -o s.msgpack --cgroup %s -- " TARGET(
					 "act") " phase=a sleep=3000%s",
				 start, choice, how),
		0);
	assert_false(c.timed_out);
	assert_true(is_gone());
	run_clear(&c);
	tmpdir_remove(dir);
}

static void the_group_is_gone_after_an_interrupt_and_a_termination(void **state)
{
	(void)state;
	need_groups();
	/* The terminal sends it to the whole process group. */
	run_until_signal("(sleep 0.5; kill -INT 0) & exec ", "");
	run_until_signal("timeout 0.5 ", "");
	/* The launcher is killed; its collector cleans up behind it. */
	run_until_signal("", " & sleep 0.5; kill -KILL $!");
}

static void a_daemon_goes_back_to_where_it_came_from(void **state)
{
	struct measured m = {
		.options = { "--cgroup", choice, "--grace", "100ms" },
		.dir = tmpdir_make(),
	};
	char *look = text_make(
		"system=cat /proc/self/cgroup >%s/new; mv %s/new %s/where", m.dir, m.dir, m.dir);
	char *file = text_make("%s/where", m.dir), *text = NULL;
	const char *const argv[] = { TARGET("act"), "phase=a", "daemonise", "sleep=1500", look };

	(void)state;
	if (!may_make_groups()) {
		tmpdir_remove(m.dir);
		free(look);
		free(file);
		skip_because("groups cannot be made here");
	}
	memcpy(m.argv, argv, sizeof(argv));
	measure(&m);
	assert_true(is_gone());
	for (int i = 0; i < 1000 && !text; i++) {
		usleep(10000);
		text = file_read(file, NULL);
	}
	assert_non_null(text);
	assert_null(strstr(text, name));
	free(text);
	free(look);
	free(file);
	measure_clear(&m);
}

static void an_existing_group_is_observed_or_entered(void **state)
{
	(void)state;
	need_groups();
	for (int attach = 0; attach < 2; attach++) {
		struct measured m = {
			.options = { "--cgroup", name, attach ? "--cgroup-attach" : NULL },
			.argv = { TARGET("act"), "phase=a", "spin=50", "phase=b" },
		};
		uint64_t usage;

		assert_int_equal(mkdir(path, 0755), 0);
		measure(&m);
		usage = counted(&m, phase_at(&m, "a", 0), "proc_usage_usec");
		if (attach)
			/* The two clocks need not agree to the last tick. */
			assert_true(usage >= 40000);
		else
			assert_int_equal(usage, 0);
		measure_clear(&m);
		assert_int_equal(rmdir(path), 0);
	}
}

static void a_shared_group_says_with_how_many(void **state)
{
	struct measured m = { .argv = { TARGET("act"), "phase=a", "spin=10" } };
	struct value v;

	(void)state;
	need_groups();
	measure(&m);
	v = value_of(&m, phase_at(&m, "a", 0), "proc_usage_usec");
	assert_non_null(strstr(v.note, "shared with"));
	measure_clear(&m);
}

static void what_cannot_be_done_is_refused_before_the_program_starts(void **state)
{
	static const struct {
		const char *words[6], *says;
	} cases[] = {
		{ { "--cgroup", "create=../x" }, "is no name of a cgroup" },
		{ { "--cgroup", "/no/such/group" }, "cannot open the cgroup" },
		{ { "--cgroup-root", "/no/such/folder" }, "cannot read cgroups from" },
		{ { "--cgroup-attach" }, "add --cgroup PATH" },
		{ { "--cpus", "0" }, "needs --scope cgroup" },
		{ { "--scope", "cgroup", "--cpus", "0,4095" }, "CPU 4095: there is none" },
		{ { "--scope", "cgroup", "--cpus", "x" }, "is no list of CPUs" },
	};

	(void)state;
	need_groups();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct child c = { .argv = { JPHASE, "run" } };
		size_t n = 2;

		for (size_t k = 0; cases[i].words[k]; k++)
			c.argv[n++] = cases[i].words[k];
		c.argv[n++] = "echo";
		c.argv[n] = "started";
		assert_int_equal(run_program(&c), 0);
		if (c.code != 125 || !strstr(c.err, cases[i].says))
			fail_msg("case %zu: status %d: %s", i, c.code, c.err);
		assert_string_equal(c.out, "");
		run_clear(&c);
	}
}

/* --- a copy of the files, which the program itself changes in its phases --- */

static const char *const before[][2] = {
	{ "cpu.stat", "usage_usec 1000\nuser_usec 700\nsystem_usec 300\nnr_periods 4\n"
		      "nr_throttled 1\nthrottled_usec 50\nnr_bursts 0\nburst_usec 0\n" },
	{ "memory.stat", "anon 4096\nfile 100\nkernel 50\nkernel_stack 10\nshmem 1\nslab 2\n"
			 "workingset_refault_anon 5\nworkingset_refault_file 6\n" },
	{ "memory.current", "8192\n" },
	{ "memory.swap.current", "0\n" },
	{ "memory.peak", "9000\n" },
	{ "memory.events", "low 0\nhigh 1\nmax 0\noom 2\noom_kill 3\n" },
	{ "io.stat", "8:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=0 dios=0\n"
		     "8:16 rbytes=1000 wbytes=0 rios=9 wios=0\n" },
	{ "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\n"
			  "full avg10=0.00 avg60=0.00 avg300=0.00 total=4\n" },
	{ "memory.pressure", "some avg10=0.00 total=1\nfull avg10=0.00 total=1\n" },
	{ "io.pressure", "some avg10=0.00 total=2\nfull avg10=0.00 total=2\n" },
	{ "pids.current", "3\n" },
	{ "pids.peak", "5\n" },
};

/* Lines that are torn or foreign, a device that is gone, one that is only just there. */
static const char *const later[][2] = {
	{ "cpu.stat", "usage_usec 51000\nuser_usec 40700\ntorn\nsystem_usec 10300\nnr_periods 9 9\n"
		      "nr_throttled 3\nthrottled_usec 18446744073709551615\nnr_bursts 1\n"
		      "burst_usec 7\nunknown 1\n" },
	{ "memory.stat", "anon 1048576\nfile 90\nkernel 60\nkernel_stack 12\nshmem x\nslab 3\n"
			 "workingset_refault_anon 15\nworkingset_refault_file 16\n" },
	{ "memory.current", "2097152\n" },
	{ "memory.swap.current", "max\n" },
	{ "memory.peak", "3000000\n" },
	{ "memory.events", "low 0\nhigh 2\nmax 0\noom 4\noom_kill 3\n" },
	{ "io.stat", "8:0 rbytes=150 wbytes=201 rios=2 wios=3 dbytes=0 dios=0\n252:0 \n"
		     "(unknown) rbytes=7 wbytes=0 rios=1 wios=0\n" },
	{ "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=30\nfull tot" },
	{ "memory.pressure", "some avg10=0.00 total=3\nfull avg10=0.00 total=1\n" },
	{ "io.pressure", "some avg10=0.00 total=2\nfull avg10=0.00 total=9\n" },
	{ "pids.current", "4\n" },
	{ "pids.peak", "6\n" },
};

#define NULL_VALUE UINT64_MAX

/* Of the phase "grow", which begins with `before` and ends with `later`. */
static const struct {
	const char *metric;
	uint64_t value;
	enum metric_unit unit;
} grown[] = {
	{ "proc_usage_usec", 50000, UNIT_US },
	{ "proc_user_usec", 40000, UNIT_US },
	{ "proc_system_usec", 10000, UNIT_US },
	{ "proc_nr_periods", NULL_VALUE, UNIT_COUNT },
	{ "proc_nr_throttled", 2, UNIT_COUNT },
	{ "proc_throttled_usec", NULL_VALUE, UNIT_US },
	{ "proc_nr_bursts", 1, UNIT_COUNT },
	{ "proc_burst_usec", 7, UNIT_US },
	{ "proc_anon_min", 4096, UNIT_BYTES },
	{ "proc_anon_max", 1048576, UNIT_BYTES },
	{ "proc_file_min", 90, UNIT_BYTES },
	{ "proc_file_max", 100, UNIT_BYTES },
	{ "proc_kernel_min", 50, UNIT_BYTES },
	{ "proc_kernel_max", 60, UNIT_BYTES },
	{ "proc_kernel_stack_max", 12, UNIT_BYTES },
	{ "proc_shmem_min", 1, UNIT_BYTES },
	{ "proc_shmem_max", 1, UNIT_BYTES },
	{ "proc_slab_max", 3, UNIT_BYTES },
	{ "proc_workingset_refault_anon", 10, UNIT_COUNT },
	{ "proc_workingset_refault_file", 10, UNIT_COUNT },
	{ "proc_current_min", 8192, UNIT_BYTES },
	{ "proc_current_max", 2097152, UNIT_BYTES },
	{ "proc_swap_current_max", 0, UNIT_BYTES },
	{ "proc_peak", 3000000, UNIT_BYTES },
	{ "proc_memory_high", 1, UNIT_COUNT },
	{ "proc_memory_oom", 2, UNIT_COUNT },
	{ "proc_memory_oom_kill", 0, UNIT_COUNT },
	{ "proc_read_bytes", 57, UNIT_BYTES },
	{ "proc_write_bytes", 1, UNIT_BYTES },
	{ "proc_read_ops", 2, UNIT_COUNT },
	{ "proc_write_ops", 1, UNIT_COUNT },
	{ "proc_cpu_some_usec", 20, UNIT_US },
	{ "proc_cpu_full_usec", NULL_VALUE, UNIT_US },
	{ "proc_memory_some_usec", 2, UNIT_US },
	{ "proc_memory_full_usec", 0, UNIT_US },
	{ "proc_io_some_usec", 0, UNIT_US },
	{ "proc_io_full_usec", 7, UNIT_US },
	{ "proc_pids_current_min", 3, UNIT_COUNT },
	{ "proc_pids_current_max", 4, UNIT_COUNT },
	{ "proc_pids_peak", 6, UNIT_COUNT },
	{ "global_usage_usec", 0, UNIT_US },
};

static void write_files(const char *root, const char *folder, const char *const (*files)[2],
	size_t count, const char *without)
{
	for (size_t i = 0; i < count; i++) {
		char file[128];

		snprintf(file, sizeof(file), "%s/%s", folder, files[i][0]);
		if (!without || !str_eq(files[i][0], without))
			tree_write(root, file, "%s", files[i][1]);
	}
}

static size_t column_of(const struct measured *m, const char *metric)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, metric) &&
			str_eq(m->model->columns[i].source, "cgroup"))
			return i;
	return SIZE_MAX;
}

static void assert_grown(const struct measured *m, size_t i)
{
	size_t column = column_of(m, grown[i].metric);
	struct value v;

	if (column == SIZE_MAX)
		fail_msg("no metric is called %s", grown[i].metric);
	v = model_value(m->model, phase_at(m, "grow", 0), column);
	assert_int_equal(m->model->columns[column].unit, grown[i].unit);
	if (grown[i].value == NULL_VALUE)
		assert_int_equal(v.state, VALUE_NULL);
	else if (v.state != VALUE_COUNTED || v.number != grown[i].value)
		fail_msg("%s is %llu (%s)", grown[i].metric, (unsigned long long)v.number,
			v.note ? v.note : "");
}

/* Each file is overwritten in place, as the open descriptors of the collector need it. */
static struct measured measure_copy(const char *root, const char *without)
{
	char *copy =
		text_make("system=cd %s/later && for f in *; do cat $f >../top/job/$f; done", root);
	char *top = text_make("%s/top", root);
	struct measured m = {
		.options = { "--cgroup-root", top, "--cgroup", "job", "-i", "1ms" },
		.argv = { TARGET("act"), "phase=before", "phase=grow", copy, "phase=after",
			"sleep=20" },
	};

	write_files(root, "top/job", before, ARRAY_SIZE(before), without);
	write_files(root, "later", later, ARRAY_SIZE(later), without);
	tree_write(root, "top/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n");
	measure(&m);
	free(copy);
	free(top);
	return m;
}

static void a_copy_of_the_files_gives_the_computed_values(void **state)
{
	char *root = tree_make();
	struct measured m = measure_copy(root, NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(grown); i++)
		assert_grown(&m, i);
	/* The phases on both sides share the boundaries' values, and nothing else. */
	assert_int_equal(counted(&m, phase_at(&m, "before", 0), "proc_current_max"), 8192);
	assert_int_equal(counted(&m, phase_at(&m, "after", 0), "proc_current_min"), 2097152);
	assert_int_equal(counted(&m, phase_at(&m, "after", 0), "proc_usage_usec"), 0);
	measure_clear(&m);
	tree_remove(root);
}

/* target_energy is the report's own. */
static void the_usual_columns_are_those_that_readers_make(void **state)
{
	char *root = tree_make();
	struct measured m = measure_copy(root, NULL);
	struct report_options options = { 0 };
	bool *shown = calloc(m.model->column_count, sizeof(*shown));
	const char *usual;

	(void)state;
	assert_non_null(shown);
	columns_choose(m.model, &options, shown);
	for (size_t u = 0; (usual = columns_usual(u)); u++) {
		size_t i = 0;

		while (i < m.model->column_count && !str_eq(m.model->columns[i].name, usual))
			i++;
		if (i == m.model->column_count && !str_eq(usual, "target_energy"))
			fail_msg("no reader makes %s", usual);
	}
	assert_true(shown[column_of(&m, "proc_current_max")]);
	free(shown);
	measure_clear(&m);
	tree_remove(root);
}

static void each_file_may_be_missing_alone(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(before); f++) {
		char *root = tree_make();
		struct measured m = measure_copy(root, before[f][0]);
		size_t missing = 0;

		for (size_t i = 0; i < ARRAY_SIZE(grown); i++)
			if (column_of(&m, grown[i].metric) == SIZE_MAX)
				missing++;
			else
				assert_grown(&m, i);
		if (missing == 0)
			fail_msg("without %s no metric is missing", before[f][0]);
		measure_clear(&m);
		tree_remove(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usage_is_what_was_burnt_and_no_more_than_the_task_clock),
		cmocka_unit_test(the_program_is_inside_from_its_first_instruction),
		cmocka_unit_test(children_that_escaped_are_counted),
		cmocka_unit_test(faults_of_the_group_are_exact),
		cmocka_unit_test(the_group_is_gone_after_an_interrupt_and_a_termination),
		cmocka_unit_test(a_daemon_goes_back_to_where_it_came_from),
		cmocka_unit_test(an_existing_group_is_observed_or_entered),
		cmocka_unit_test(a_shared_group_says_with_how_many),
		cmocka_unit_test(what_cannot_be_done_is_refused_before_the_program_starts),
		cmocka_unit_test(a_copy_of_the_files_gives_the_computed_values),
		cmocka_unit_test(the_usual_columns_are_those_that_readers_make),
		cmocka_unit_test(each_file_may_be_missing_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
