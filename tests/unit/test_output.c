/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output.h"
#include "support/proc.h"

struct fixture {
	char *dir;
	char *path;
	struct output output;
	char error[OUTPUT_ERROR_ROOM];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = tmpdir_make();
	f->path = text_make("%s/out.msgpack", f->dir);
	f->output.fd = f->output.folder = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	output_close(&f->output);
	tmpdir_remove(f->dir);
	free(f->path);
	free(f);
	return 0;
}

static const char recording[] = "\x8b\xa6"
				"format\xa6"
				"jphase\xa7version\x01";

static int try_open(struct fixture *f)
{
	return output_open(f->path, "app", 7, &f->output, f->error);
}

static void new_file_is_made_and_locked(void **state)
{
	struct fixture *f = *state;
	int other;

	assert_int_equal(try_open(f), 0);
	assert_string_equal(f->output.shown, f->path);
	assert_int_equal(access(f->path, F_OK), -1);
	assert_int_equal(output_commit(&f->output, f->error), 0);
	other = open(f->path, O_RDONLY);
	assert_true(other >= 0);
	assert_int_equal(flock(other, LOCK_SH | LOCK_NB), -1);
	close(other);
}

static void write_recording(const char *path)
{
	assert_int_equal(file_write(path, recording, sizeof(recording) - 1), 0);
}

static void earlier_recording_is_kept_as_old(void **state)
{
	struct fixture *f = *state;
	char *old = text_make("%s.old", f->path), *kept;

	write_recording(f->path);
	assert_int_equal(try_open(f), 0);
	assert_int_equal(output_commit(&f->output, f->error), 0);
	kept = file_read(old, NULL);
	assert_non_null(kept);
	assert_string_equal(kept, recording);
	free(kept);
	free(old);
}

static void session_that_does_not_begin_leaves_all_as_it_was(void **state)
{
	struct fixture *f = *state;
	char *old = text_make("%s.old", f->path), *kept, *count;

	write_recording(f->path);
	assert_int_equal(try_open(f), 0);
	output_close(&f->output);
	kept = file_read(f->path, NULL);
	assert_string_equal(kept, recording);
	assert_int_equal(access(old, F_OK), -1);
	count = text_make("test $(ls '%s' | wc -l) = 1", f->dir);
	assert_int_equal(system(count), 0);
	free(count);
	free(kept);
	free(old);
}

static void symbolic_links_are_not_followed(void **state)
{
	struct fixture *f = *state;
	char *victim = text_make("%s/victim", f->dir), *old = text_make("%s.old", f->path);

	assert_int_equal(file_write(victim, "precious", 8), 0);
	assert_int_equal(symlink(victim, f->path), 0);
	assert_int_equal(try_open(f), -EEXIST);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(symlink("/dev/null", f->path), 0);
	assert_int_equal(try_open(f), -EEXIST);
	assert_int_equal(unlink(f->path), 0);
	/* Nor is what stands where the earlier recording would go overwritten. */
	write_recording(f->path);
	assert_int_equal(symlink(victim, old), 0);
	assert_int_equal(try_open(f), -EEXIST);
	free(victim);
	free(old);
}

static void pipe_without_a_reader_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(try_open(f), -ENXIO);
	assert_non_null(strstr(f->error, "nobody reads"));
}

static void anything_else_is_not_overwritten(void **state)
{
	struct fixture *f = *state;
	char *kept;

	assert_int_equal(file_write(f->path, "precious", 8), 0);
	assert_int_equal(try_open(f), -EEXIST);
	assert_non_null(strstr(f->error, "is not a recording"));
	assert_non_null(strstr(f->error, "-o"));
	kept = file_read(f->path, NULL);
	assert_string_equal(kept, "precious");
	free(kept);
}

static void missing_folder_is_named(void **state)
{
	struct fixture *f = *state;

	free(f->path);
	f->path = text_make("%s/none/out.msgpack", f->dir);
	assert_int_equal(try_open(f), -ENOENT);
	assert_non_null(strstr(f->error, "/none/out.msgpack"));
}

static void device_is_written_as_it_is(void **state)
{
	struct fixture *f = *state;

	free(f->path);
	f->path = strdup("/dev/null");
	assert_int_equal(try_open(f), 0);
}

static void default_name_has_program_and_pid(void **state)
{
	struct fixture *f = *state;
	char before[4096];
	int err;

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(f->dir), 0);
	err = output_open(NULL, "/usr/bin/my app", 123, &f->output, f->error);
	assert_int_equal(chdir(before), 0);
	assert_int_equal(err, 0);
	assert_string_equal(f->output.shown, "jphase-my_app-123.msgpack");
}

static int lock_recording(const char *path)
{
	int fd;

	write_recording(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static void recording_of_a_live_session_is_not_touched(void **state)
{
	struct fixture *f = *state;
	char *old = text_make("%s.old", f->path);
	int live = lock_recording(f->path);

	assert_int_equal(try_open(f), -EBUSY);
	assert_non_null(strstr(f->error, "still being written by another session"));
	assert_int_equal(access(f->path, F_OK), 0);
	assert_int_equal(access(old, F_OK), -1);
	close(live);
	assert_int_equal(try_open(f), 0);
	free(old);
}

static void of_two_that_start_at_once_the_later_one_is_refused(void **state)
{
	struct fixture *f = *state;
	struct output first = { .fd = -1 };

	assert_int_equal(output_open(f->path, "app", 8, &first, f->error), 0);
	assert_int_equal(try_open(f), 0);
	assert_int_equal(output_commit(&first, f->error), 0);
	assert_int_equal(output_commit(&f->output, f->error), -EBUSY);
	output_close(&first);
}

/* As a program that was killed a moment ago leaves it. */
static void session_that_is_just_ending_is_waited_for(void **state)
{
	struct fixture *f = *state;
	int live = lock_recording(f->path);
	pid_t child = fork();

	if (child == 0) {
		usleep(50000);
		_exit(0);
	}
	close(live);
	assert_int_equal(try_open(f), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void recording_of_root_belongs_to_the_folders_owner(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	if (geteuid() != 0)
		skip_because("only root can give files away");
	assert_int_equal(chown(f->dir, 65534, 65534), 0);
	assert_int_equal(try_open(f), 0);
	assert_int_equal(fstat(f->output.fd, &st), 0);
	assert_int_equal(st.st_uid, 65534);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(new_file_is_made_and_locked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			earlier_recording_is_kept_as_old, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			session_that_does_not_begin_leaves_all_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(symbolic_links_are_not_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			pipe_without_a_reader_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			anything_else_is_not_overwritten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(missing_folder_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(device_is_written_as_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			default_name_has_program_and_pid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			recording_of_a_live_session_is_not_touched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			of_two_that_start_at_once_the_later_one_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			session_that_is_just_ending_is_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			recording_of_root_belongs_to_the_folders_owner, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
