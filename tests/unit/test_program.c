/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "support/proc.h"

static struct program program;
static char *dir;

static int set_up(void **state)
{
	(void)state;
	dir = tmpdir_make();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dir = tmpdir_remove(dir);
	return 0;
}

static char *make(const char *name, const void *data, size_t bytes, mode_t mode)
{
	char *path = text_make("%s/%s", dir, name);

	assert_int_equal(file_write(path, data, bytes), 0);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static enum program_kind kind_of(char *path)
{
	assert_int_equal(program_find(path, getuid(), getgid(), &program), 0);
	free(path);
	return program.kind;
}

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	char interpreter[32];
};

static struct image image_of(uint16_t machine, const char *interpreter)
{
	struct image image = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			.e_machine = machine,
			.e_phoff = offsetof(struct image, segment),
			.e_phnum = 1,
		},
		.segment = {
			.p_type = interpreter ? PT_INTERP : PT_LOAD,
			.p_offset = offsetof(struct image, interpreter),
		},
	};

	if (interpreter) {
		image.segment.p_filesz = strlen(interpreter) + 1;
		strcpy(image.interpreter, interpreter);
	}
	return image;
}

#if defined(__x86_64__)
#define OWN   EM_X86_64
#define OTHER EM_AARCH64
#else
#define OWN   EM_AARCH64
#define OTHER EM_X86_64
#endif

static void kinds_of_programs_are_told_apart(void **state)
{
	struct image dynamic = image_of(OWN, "/lib64/ld-linux.so.2");
	struct image fixed = image_of(OWN, NULL);
	struct image musl = image_of(OWN, "/lib/ld-musl-x86_64.so.1");
	struct image foreign = image_of(OTHER, "/lib64/ld-linux.so.2");

	(void)state;
	assert_int_equal(kind_of(make("a", &dynamic, sizeof(dynamic), 0755)), PROGRAM_PRELOADABLE);
	assert_int_equal(kind_of(make("b", &fixed, sizeof(fixed), 0755)), PROGRAM_STATIC);
	assert_int_equal(kind_of(make("c", &musl, sizeof(musl), 0755)), PROGRAM_MUSL);
	assert_int_equal(kind_of(make("d", &foreign, sizeof(foreign), 0755)), PROGRAM_FOREIGN);
	assert_non_null(strstr(program_obstacle(PROGRAM_STATIC), "static"));
	assert_null(program_obstacle(PROGRAM_PRELOADABLE));
	assert_null(program_obstacle(PROGRAM_UNKNOWN));
}

static void script_is_what_its_interpreter_is(void **state)
{
	struct image fixed = image_of(OWN, NULL);
	char *interpreter, *script;

	(void)state;
	interpreter = make("interpreter", &fixed, sizeof(fixed), 0755);
	script = text_make("#! %s -x\n", interpreter);
	assert_int_equal(kind_of(make("script", script, strlen(script), 0755)), PROGRAM_STATIC);
	free(script);
	free(interpreter);
	assert_int_equal(kind_of(make("plain", "echo hello\n", 11, 0755)), PROGRAM_PRELOADABLE);
}

static void damaged_headers_are_survived(void **state)
{
	struct image odd = image_of(OWN, "/lib64/ld-linux.so.2");

	(void)state;
	odd.segment.p_offset = UINT64_MAX - 2;
	odd.segment.p_filesz = UINT64_MAX;
	assert_int_equal(kind_of(make("a", &odd, sizeof(odd), 0755)), PROGRAM_PRELOADABLE);
	odd.header.e_phoff = UINT64_MAX - 8;
	odd.header.e_phnum = 0xffff;
	assert_int_equal(kind_of(make("b", &odd, sizeof(odd), 0755)), PROGRAM_STATIC);
	assert_int_equal(kind_of(make("c", &odd, 5, 0755)), PROGRAM_UNKNOWN);
}

static void missing_and_forbidden_programs_differ(void **state)
{
	char *path = make("data", "x", 1, 0644);

	(void)state;
	assert_int_equal(program_find(path, getuid(), getgid(), &program), -EACCES);
	assert_int_equal(program_find(dir, getuid(), getgid(), &program), -EACCES);
	assert_int_equal(program_find("/nonexistent/x", 0, 0, &program), -ENOENT);
	assert_int_equal(program_find("no-such-program-anywhere", 0, 0, &program), -ENOENT);
	assert_int_equal(program_find("", 0, 0, &program), -ENOENT);
	assert_int_equal(program_find("sh", getuid(), getgid(), &program), 0);
	assert_int_equal(program.path[0], '/');
	free(path);
}

static void set_user_id_and_unreadable_programs_are_privileged(void **state)
{
	char *path = make("p", "#!/bin/sh\n", 10, 0755);

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can make files of another user");
	assert_int_equal(program_find(path, 1000, 1000, &program), 0);
	assert_false(program.privileged);
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(program_find(path, 1000, 1000, &program), 0);
	assert_true(program.privileged);
	assert_int_equal(program_find(path, 0, 0, &program), 0);
	assert_false(program.privileged);
	assert_int_equal(chmod(path, 0711), 0);
	assert_int_equal(program_find(path, 1000, 1000, &program), 0);
	assert_true(program.privileged);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			kinds_of_programs_are_told_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			script_is_what_its_interpreter_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_headers_are_survived, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			missing_and_forbidden_programs_differ, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			set_user_id_and_unreadable_programs_are_privileged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
