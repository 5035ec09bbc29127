/* SPDX-License-Identifier: MIT */
/*
 * The counters of a cgroup that somebody else has made: the test moves into it,
 * and jphase and its program are started there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

#define BURDEN      BUILD_DIR "/guest/targets/burden"
#define ROOT        "/sys/fs/cgroup"
#define GROUP       ROOT "/guest-test"
#define MIB         (UINT64_C(1) << 20)
/* The kernel adds up what a CPU has charged 64 pages at a time. */
#define MEMORY_STEP (MIB / 4)

static void control(const char *file, const char *text)
{
	int err = file_write(file, text, strlen(text));

	if (err < 0)
		fail_msg("%s: cannot write \"%s\": %s", file, text, strerror(-err));
}

static int make_group(void **state)
{
	(void)state;
	control(ROOT "/cgroup.subtree_control", "+cpu +cpuset +io +memory +pids");
	return mkdir(GROUP, 0755);
}

static int remove_group(void **state)
{
	(void)state;
	control(ROOT "/cgroup.procs", "0");
	/* The collector leaves a moment after the program. */
	for (int i = 0; i < 500; i++) {
		if (rmdir(GROUP) == 0 || access(GROUP, F_OK) != 0)
			return 0;
		usleep(10000);
	}
	return -1;
}

static struct measured burden(const char *deed, const char *second)
{
	return (struct measured){ .argv = { BURDEN, deed, second } };
}

static void measure_in(struct measured *m, const char *group)
{
	char *procs = text_make("%s/cgroup.procs", group);

	control(procs, "0");
	free(procs);
	measure(m);
	if (m->child.code != 0)
		fail_msg("the program ended with %d: %s", m->child.code, m->child.err);
}

static uint64_t in_phase(const struct measured *m, const char *phase, const char *metric)
{
	return counted(m, phase_at(m, phase, 0), metric);
}

static bool has_column(const struct measured *m, const char *name)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, name))
			return true;
	return false;
}

static void bytes_past_the_page_cache_are_exact(void **state)
{
	struct measured m = burden("write=4096", "read=2048");

	(void)state;
	measure_in(&m, GROUP);
	assert_int_equal(in_phase(&m, "write", "proc_write_bytes"), 4 * MIB);
	assert_int_equal(in_phase(&m, "write", "proc_write_ops"), 64);
	assert_int_equal(in_phase(&m, "write", "proc_read_bytes"), 0);
	assert_int_equal(in_phase(&m, "read", "proc_read_bytes"), 2 * MIB);
	assert_int_equal(in_phase(&m, "read", "proc_read_ops"), 32);
	assert_int_equal(in_phase(&m, "read", "proc_write_bytes"), 0);
	assert_int_equal(in_phase(&m, "finish", "proc_read_bytes"), 0);
	measure_clear(&m);
}

static void memory_grows_by_what_is_touched(void **state)
{
	struct measured m = burden("memory=20", NULL);
	uint64_t grown;

	(void)state;
	measure_in(&m, GROUP);
	grown = in_phase(&m, "memory", "proc_anon_max") - in_phase(&m, "memory", "proc_anon_min");
	assert_in_range(grown, 20 * MIB - MEMORY_STEP, 20 * MIB + MEMORY_STEP);
	grown = in_phase(&m, "memory", "proc_current_max") -
		in_phase(&m, "memory", "proc_current_min");
	assert_in_range(grown, 20 * MIB - MEMORY_STEP, 21 * MIB);
	measure_clear(&m);
}

static void the_peak_is_the_groups_highest(void **state)
{
	struct measured m = burden("memory=20", "spin=10");
	const struct row *row;

	(void)state;
	measure_in(&m, GROUP);
	row = phase_at(&m, "spin", 0);
	assert_in_range(counted(&m, row, "proc_peak"), counted(&m, row, "proc_current_max"),
		counted(&m, row, "proc_current_max") + MIB);
	assert_non_null(strstr(value_of(&m, row, "proc_peak").note, "lifetime"));
	measure_clear(&m);
}

static void cpu_time_is_the_groups(void **state)
{
	struct measured m = burden("spin=300", NULL);

	(void)state;
	measure_in(&m, GROUP);
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 300000, 330000);
	assert_int_equal(in_phase(&m, "spin", "proc_nr_throttled"), 0);
	measure_clear(&m);
}

/* A tenth of a CPU: 300 ms of it take 30 periods, and nine tenths of each pass in waiting. */
static void throttling_is_counted(void **state)
{
	struct measured m = burden("spin=300", NULL);

	(void)state;
	control(GROUP "/cpu.max", "10000 100000");
	measure_in(&m, GROUP);
	control(GROUP "/cpu.max", "max 100000");
	assert_in_range(in_phase(&m, "spin", "proc_nr_throttled"), 27, 36);
	assert_in_range(in_phase(&m, "spin", "proc_throttled_usec"), 2300000, 3300000);
	assert_in_range(in_phase(&m, "spin", "proc_cpu_usage"), 800, 1200);
	assert_true(in_phase(&m, "spin", "proc_cpu_some_usec") > 2000000);
	measure_clear(&m);
}

static void processes_are_counted(void **state)
{
	struct measured m = burden("hold=10", NULL);

	(void)state;
	measure_in(&m, GROUP);
	assert_int_equal(in_phase(&m, "hold", "proc_pids_current_max"),
		in_phase(&m, "hold", "proc_pids_current_min") + 10);
	measure_clear(&m);
}

static void a_kill_for_memory_is_counted_in_its_phase(void **state)
{
	struct measured m = burden("spin=10", "exceed=64");

	(void)state;
	control(GROUP "/memory.max", "33554432");
	measure_in(&m, GROUP);
	control(GROUP "/memory.max", "max");
	assert_int_equal(in_phase(&m, "exceed", "proc_memory_oom_kill"), 1);
	assert_int_equal(in_phase(&m, "spin", "proc_memory_oom_kill"), 0);
	assert_int_equal(in_phase(&m, "finish", "proc_memory_oom_kill"), 0);
	measure_clear(&m);
}

static void a_shared_group_says_with_how_many(void **state)
{
	struct measured m = burden("spin=10", NULL);
	struct value v;

	(void)state;
	measure_in(&m, GROUP);
	v = value_of(&m, phase_at(&m, "spin", 0), "proc_usage_usec");
	assert_non_null(v.note);
	assert_non_null(strstr(v.note, "shared with "));
	measure_clear(&m);
}

static void without_its_controllers_a_group_has_cpu_time_alone(void **state)
{
	struct measured m = burden("spin=100", "write=64");

	(void)state;
	assert_int_equal(mkdir(GROUP "/bare", 0755), 0);
	measure_in(&m, GROUP "/bare");
	control(ROOT "/cgroup.procs", "0");
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 130000);
	assert_false(has_column(&m, "proc_write_bytes"));
	assert_false(has_column(&m, "proc_current_max"));
	assert_int_equal(in_phase(&m, "write", "global_write_bytes"), 65536);
	measure_clear(&m);
	usleep(100000);
	assert_int_equal(rmdir(GROUP "/bare"), 0);
}

static void a_threaded_group_is_measured_and_named_so(void **state)
{
	struct measured m = burden("spin=100", NULL);
	struct value v;

	(void)state;
	assert_int_equal(mkdir(GROUP "/threaded", 0755), 0);
	control(GROUP "/threaded/cgroup.type", "threaded");
	control(GROUP "/cgroup.procs", "0");
	measure_in(&m, GROUP "/threaded");
	control(ROOT "/cgroup.procs", "0");
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 130000);
	v = value_of(&m, phase_at(&m, "spin", 0), "proc_usage_usec");
	assert_non_null(strstr(v.note, "threaded group"));
	measure_clear(&m);
	usleep(100000);
	assert_int_equal(rmdir(GROUP "/threaded"), 0);
}

/* The program is then in another group: values of two groups are not subtracted. */
static void a_group_that_is_removed_has_no_more_values(void **state)
{
	struct measured m = burden("spin=100", "remove=0");
	struct value v;

	(void)state;
	measure_in(&m, GROUP);
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 130000);
	v = value_of(&m, phase_at(&m, "remove", 0), "proc_usage_usec");
	assert_int_equal(v.state, VALUE_NULL);
	assert_non_null(v.note);
	print_message("%s\n", v.note);
	for (size_t i = 0; i < m.model->runs[0].note_count; i++)
		print_message("%s\n", m.model->runs[0].notes[i]);
	measure_clear(&m);
}

#define in_group(test) cmocka_unit_test_setup_teardown(test, make_group, remove_group)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_group(bytes_past_the_page_cache_are_exact),
		in_group(memory_grows_by_what_is_touched),
		in_group(the_peak_is_the_groups_highest),
		in_group(cpu_time_is_the_groups),
		in_group(throttling_is_counted),
		in_group(processes_are_counted),
		in_group(a_kill_for_memory_is_counted_in_its_phase),
		in_group(a_shared_group_says_with_how_many),
		in_group(without_its_controllers_a_group_has_cpu_time_alone),
		in_group(a_threaded_group_is_measured_and_named_so),
		in_group(a_group_that_is_removed_has_no_more_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
