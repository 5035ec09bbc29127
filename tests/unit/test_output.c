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
#include <unistd.h>

#include "output.h"
#include "support/proc.h"

struct fixture {
	char *dir;
	char *path;
	char *used;
	char error[OUTPUT_ERROR_ROOM];
	int fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->dir = tmpdir_make();
	f->path = text_make("%s/out.msgpack", f->dir);
	f->fd = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->fd >= 0)
		close(f->fd);
	tmpdir_remove(f->dir);
	free(f->path);
	free(f->used);
	free(f);
	return 0;
}

static int try_open(struct fixture *f)
{
	f->fd = output_open(f->path, "app", 7, &f->used, f->error);
	return f->fd;
}

static void new_file_is_made_and_locked(void **state)
{
	struct fixture *f = *state;
	int other;

	assert_true(try_open(f) >= 0);
	assert_string_equal(f->used, f->path);
	other = open(f->path, O_RDONLY);
	assert_int_equal(flock(other, LOCK_SH | LOCK_NB), -1);
	close(other);
}

static void earlier_recording_is_kept_as_old(void **state)
{
	static const char recording[] = "\x8b\xa6"
					"format\xa6"
					"jphase\xa7version\x01";
	struct fixture *f = *state;
	char *old = text_make("%s.old", f->path), *kept;

	assert_int_equal(file_write(f->path, recording, sizeof(recording) - 1), 0);
	assert_true(try_open(f) >= 0);
	kept = file_read(old, NULL);
	assert_non_null(kept);
	assert_string_equal(kept, recording);
	free(kept);
	free(old);
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
	assert_true(try_open(f) >= 0);
}

static void default_name_has_program_and_pid(void **state)
{
	struct fixture *f = *state;
	char before[4096];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(f->dir), 0);
	f->fd = output_open(NULL, "/usr/bin/my app", 123, &f->used, f->error);
	assert_int_equal(chdir(before), 0);
	assert_true(f->fd >= 0);
	assert_string_equal(f->used, "jphase-my_app-123.msgpack");
}

static void recording_of_root_belongs_to_the_folders_owner(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	if (geteuid() != 0)
		skip_because("only root can give files away");
	assert_int_equal(chown(f->dir, 65534, 65534), 0);
	assert_true(try_open(f) >= 0);
	assert_int_equal(fstat(f->fd, &st), 0);
	assert_int_equal(st.st_uid, 65534);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(new_file_is_made_and_locked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			earlier_recording_is_kept_as_old, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			anything_else_is_not_overwritten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(missing_folder_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(device_is_written_as_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			default_name_has_program_and_pid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			recording_of_root_belongs_to_the_folders_owner, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
