/* SPDX-License-Identifier: MIT */
/* The helpers of the integration tests, since these believe them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/proc.h"

static struct child r;

static int clear(void **state)
{
	(void)state;
	run_clear(&r);
	r = (struct child){ 0 };
	return 0;
}

static void a_status_is_that_of_a_shell(void **state)
{
	(void)state;
	assert_int_equal(run_shell(&r, "exit 42"), 0);
	assert_int_equal(r.code, 42);
	assert_int_equal(run_shell(&r, "kill -TERM $$"), 0);
	assert_int_equal(r.code, 128 + SIGTERM);
	assert_true(WIFSIGNALED(r.status));

	r.argv[0] = "/nonexistent/program";
	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 127);
}

static void outputs_are_kept_apart_and_whole(void **state)
{
	(void)state;
	assert_int_equal(run_shell(&r, "head -c 3000000 /dev/zero; echo no >&2"), 0);
	assert_int_equal(r.out_bytes, 3000000);
	assert_int_equal(r.out[2999999], 0);
	assert_string_equal(r.err, "no\n");
}

static void input_is_fed_and_may_be_ignored(void **state)
{
	size_t bytes = 1000000;
	char *input = calloc(1, bytes);

	(void)state;
	assert_non_null(input);
	r.input = input;
	r.input_bytes = bytes;
	assert_int_equal(run_shell(&r, "wc -c"), 0);
	assert_string_equal(r.out, "1000000\n");
	assert_int_equal(run_shell(&r, "true"), 0);
	assert_int_equal(r.code, 0);

	r.input = NULL;
	assert_int_equal(run_shell(&r, "wc -c"), 0);
	assert_string_equal(r.out, "0\n");
	free(input);
}

static void environment_and_folder_are_the_programs_alone(void **state)
{
	char *dir = tmpdir_make();

	(void)state;
	setenv("TEST_GONE", "1", 1);
	r.env[0] = "TEST_GONE";
	r.env[1] = "TEST_NEW=a=b";
	r.cwd = dir;
	assert_int_equal(run_shell(&r, "echo $TEST_GONE,$TEST_NEW; pwd -P >here"), 0);
	assert_string_equal(r.out, ",a=b\n");
	assert_string_equal(getenv("TEST_GONE"), "1");
	assert_null(getenv("TEST_NEW"));
	unsetenv("TEST_GONE");
	tmpdir_remove(dir);
}

static void a_program_has_three_descriptors(void **state)
{
	(void)state;
	/* ls itself opens the folder it lists. */
	r.argv[0] = "ls";
	r.argv[1] = "/proc/self/fd";
	assert_int_equal(run_program(&r), 0);
	assert_string_equal(r.out, "0\n1\n2\n3\n");
}

static void a_program_that_hangs_is_killed_with_its_children(void **state)
{
	(void)state;
	r.timeout_ms = 100;
	assert_int_equal(run_shell(&r, "echo before; sleep 1000 & sleep 1000"), 0);
	assert_true(r.timed_out);
	assert_int_equal(r.code, 128 + SIGKILL);
	assert_string_equal(r.out, "before\n");

	assert_int_equal(run_shell(&r, "exec >&- 2>&-; sleep 1000"), 0);
	assert_true(r.timed_out);

	assert_int_equal(run_shell(&r, "true"), 0);
	assert_false(r.timed_out);
}

static void output_of_what_is_left_behind_belongs_to_the_run(void **state)
{
	(void)state;
	assert_int_equal(run_shell(&r, "(sleep 0.05; echo late) &"), 0);
	assert_string_equal(r.out, "late\n");
}

static void files_are_written_and_read_whole(void **state)
{
	char *dir = tmpdir_make();
	char *path = text_make("%s/file", dir);
	char *data;
	size_t bytes;

	(void)state;
	assert_null(file_read(path, &bytes));
	assert_int_equal(file_write(path, "a\0b", 3), 0);
	data = file_read(path, &bytes);
	assert_int_equal(bytes, 3);
	assert_memory_equal(data, "a\0b", 4);
	assert_int_equal(file_write(dir, "x", 1), -EISDIR);

	free(data);
	tmpdir_remove(dir);
	assert_int_not_equal(access(path, F_OK), 0);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_status_is_that_of_a_shell, clear),
		cmocka_unit_test_teardown(outputs_are_kept_apart_and_whole, clear),
		cmocka_unit_test_teardown(input_is_fed_and_may_be_ignored, clear),
		cmocka_unit_test_teardown(environment_and_folder_are_the_programs_alone, clear),
		cmocka_unit_test_teardown(a_program_has_three_descriptors, clear),
		cmocka_unit_test_teardown(a_program_that_hangs_is_killed_with_its_children, clear),
		cmocka_unit_test_teardown(output_of_what_is_left_behind_belongs_to_the_run, clear),
		cmocka_unit_test_teardown(files_are_written_and_read_whole, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
