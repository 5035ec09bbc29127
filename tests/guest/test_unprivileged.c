/* SPDX-License-Identifier: MIT */
/*
 * What another user than root gets, for each perf_event_paranoid: the most the
 * kernel allows, and a reason for all that it does not.
 */
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

#define PARANOID    "/proc/sys/kernel/perf_event_paranoid"
#define USER        1000
#define LENGTH      1000000
/* More than a marker takes, in user space and in all. */
#define MARKER_USER 1000
#define MARKER_ALL  200000

static struct measured work_phases(void)
{
	return (struct measured){
		.argv = { BUILD_DIR "/guest/targets/work", "phases", "3", "1000000", "0" },
	};
}

static void assert_text(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" is not in: %s", part, text ? text : "(nothing)");
}

static bool has_column(const struct measured *m, const char *name)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, name))
			return true;
	return false;
}

static void assert_refused(const char *events, const char *why)
{
	struct child r = { .argv = { JPHASE, "run", "-o", "/tmp/refused.msgpack", "-e", events,
				   "--", EXAMPLE("hello") } };

	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 125);
	assert_string_equal(r.out, "");
	assert_text(r.err, why);
	run_clear(&r);
}

static void without_perf_the_reason_is_told_and_procfs_stands_in(void **state)
{
	struct measured m = work_phases();
	const struct run *run;

	(void)state;
	measure(&m);
	run = &m.model->runs[0];
	assert_int_equal(run->absent_count > 0, 1);
	assert_string_equal(run->absent[0].name, "perf");
	assert_text(run->absent[0].reason, "perf_event_paranoid is 3");
	assert_false(has_column(&m, "INSTRUCTIONS"));
	assert_false(has_column(&m, "INSTRUCTIONS:u"));
	assert_in_range(counted(&m, phase_at(&m, "p00001", 0), "proc_cpu_time"), LENGTH,
		LENGTH + 10 * MARKER_ALL);
	measure_clear(&m);
}

static void named_events_are_refused_at_3(void **state)
{
	(void)state;
	assert_refused("instructions:u", "perf_event_paranoid is 3");
	assert_refused("task-clock", "perf_event_paranoid is 3");
}

static void the_doctor_says_what_to_set(void **state)
{
	struct child r = { .argv = { JPHASE, "doctor" } };

	(void)state;
	assert_int_equal(run_program(&r), 0);
	assert_text(r.out, "perf_event_paranoid");
	run_clear(&r);
}

static void user_space_alone_is_counted_and_named_so(void **state)
{
	struct measured m = work_phases();
	const struct row *row;

	(void)state;
	measure(&m);
	row = phase_at(&m, "p00001", 0);
	assert_false(has_column(&m, "INSTRUCTIONS"));
	assert_in_range(counted(&m, row, "INSTRUCTIONS:u"), LENGTH, LENGTH + MARKER_USER);
	assert_int_equal(counted(&m, row, "CPU_CYCLES:u"), counted(&m, row, "INSTRUCTIONS:u"));
	assert_in_range(counted(&m, row, "task-clock"), LENGTH, LENGTH + MARKER_ALL);
	assert_text(value_of(&m, row, "page-faults:u").note, "faults inside system calls");
	measure_clear(&m);
}

static void what_happens_in_the_kernel_is_not_counted_at_2(void **state)
{
	static const char *const names[] = { "context-switches", "cpu-migrations" };
	struct measured m = work_phases();

	(void)state;
	measure(&m);
	for (size_t i = 0; i < m.model->row_count; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			struct value v = value_of(&m, &m.model->rows[i], names[k]);

			assert_int_equal(v.state, VALUE_NULL);
			assert_text(v.note, "perf_event_paranoid is 2: set it to 1");
		}
	}
	measure_clear(&m);
	assert_refused("context-switches", "perf_event_paranoid is 2: set it to 1");
	assert_refused("instructions:k", "perf_event_paranoid is 2");
}

static void the_kernel_is_counted_too(void **state)
{
	struct measured m = work_phases();
	const struct row *row;

	(void)state;
	measure(&m);
	row = phase_at(&m, "p00001", 0);
	assert_false(has_column(&m, "INSTRUCTIONS:u"));
	assert_in_range(
		counted(&m, row, "INSTRUCTIONS"), LENGTH + MARKER_USER, LENGTH + MARKER_ALL);
	assert_true(counted(&m, row, "context-switches") >= 1);
	assert_int_equal(counted(&m, row, "page-faults"), 0);
	assert_int_equal(value_of(&m, row, "page-faults").flags, 0);
	measure_clear(&m);
}

static void a_program_of_another_user_is_measured_by_preloading(void **state)
{
	struct measured m = work_phases();

	(void)state;
	m.way = WAY_PRELOAD;
	m.env[0] = "JPHASE_EVENTS=instructions:u";
	measure(&m);
	assert_in_range(counted(&m, phase_at(&m, "p00001", 0), "instructions:u"), LENGTH,
		LENGTH + MARKER_USER);
	measure_clear(&m);
}

static const struct CMUnitTest at_3[] = {
	cmocka_unit_test(without_perf_the_reason_is_told_and_procfs_stands_in),
	cmocka_unit_test(named_events_are_refused_at_3),
	cmocka_unit_test(the_doctor_says_what_to_set),
};

static const struct CMUnitTest at_2[] = {
	cmocka_unit_test(user_space_alone_is_counted_and_named_so),
	cmocka_unit_test(what_happens_in_the_kernel_is_not_counted_at_2),
	cmocka_unit_test(a_program_of_another_user_is_measured_by_preloading),
	cmocka_unit_test(the_doctor_says_what_to_set),
};

static const struct CMUnitTest at_1[] = {
	cmocka_unit_test(the_kernel_is_counted_too),
	cmocka_unit_test(a_program_of_another_user_is_measured_by_preloading),
};

static int run_level(char level)
{
	switch (level) {
	case '3': return cmocka_run_group_tests_name("perf_event_paranoid 3", at_3, NULL, NULL);
	case '2': return cmocka_run_group_tests_name("perf_event_paranoid 2", at_2, NULL, NULL);
	default: return cmocka_run_group_tests_name("perf_event_paranoid 1, 0", at_1, NULL, NULL);
	}
}

/* In a process of that user: there is no way back. */
static int run_as_user(char level)
{
	int status;
	pid_t pid;

	if (file_write(PARANOID, &level, 1) < 0)
		return 1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(USER) < 0 || setuid(USER) < 0)
			_exit(99);
		exit(run_level(level));
	}
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int main(void)
{
	size_t bytes;
	char *before = file_read(PARANOID, &bytes);
	int failed = 0;

	if (!before)
		return 1;
	for (const char *level = "3210"; *level; level++)
		failed |= run_as_user(*level);
	file_write(PARANOID, before, bytes);
	free(before);
	return failed;
}
