/* SPDX-License-Identifier: MIT */
/* What the built library asks of a program and offers to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/proc.h"

#define GLIBC_MINOR_MAX 17
#define TLS_BYTES_MAX   64

static struct child r;

static int setup(void **state)
{
	(void)state;
	if (access(LIBJPHASE, R_OK) == 0 && access(JPHASE, X_OK) == 0)
		return 0;
	print_error("%s is not built\n", LIBJPHASE);
	return -1;
}

static int teardown(void **state)
{
	(void)state;
	run_clear(&r);
	return 0;
}

static const char *shell(const char *command)
{
	assert_int_equal(run_shell(&r, "%s", command), 0);
	if (r.code != 0)
		fail_msg("%s: %s", command, r.err);
	return r.out;
}

static void the_library_needs_libc_and_nothing_else(void **state)
{
	char *saved;

	(void)state;
	shell("ldd " LIBJPHASE);
	for (char *line = strtok_r(r.out, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved))
		if (!strstr(line, "linux-vdso.so") && !strstr(line, "libc.so.6") &&
			!strstr(line, "/ld-linux"))
			fail_msg("it needs %s", line);
}

static void the_library_runs_with_glibc_2_17(void **state)
{
	const char *at;
	unsigned int versions = 0;

	(void)state;
	for (at = shell("objdump -T " LIBJPHASE); (at = strstr(at, "GLIBC_")); at++) {
		unsigned int major = 0, minor = 0;

		assert_true(sscanf(at, "GLIBC_%u.%u", &major, &minor) == 2);
		if (major != 2 || minor > GLIBC_MINOR_MAX)
			fail_msg("it needs %.12s", at);
		versions++;
	}
	assert_true(versions > 0);
}

static void the_library_allocates_no_thread_storage_at_run_time(void **state)
{
	unsigned long bytes = 0;
	const char *tls;

	(void)state;
	assert_null(strstr(shell("nm -D " LIBJPHASE), "__tls_get_addr"));
	assert_null(strstr(shell("nm -D " LIBJPHASE), "_tls_desc"));
	tls = strstr(shell("readelf -lW " LIBJPHASE), "  TLS ");
	if (tls)
		assert_int_equal(sscanf(tls, "  TLS %*s %*s %*s %*s 0x%lx", &bytes), 1);
	assert_true(bytes < TLS_BYTES_MAX);
}

static void the_library_exports_what_is_documented(void **state)
{
	(void)state;
	assert_string_equal(shell("nm -D --defined-only " LIBJPHASE
				  " | sed 's/.* //; s/@.*//' | LC_ALL=C sort"),
		"JPHASE_1.0\n"
		"joule_active\n"
		"joule_begin\n"
		"joule_end\n"
		"joule_mark\n"
		"joule_phase\n"
		"joule_value\n"
		"jphase_marker\n");
	assert_string_equal(
		shell("nm -D --defined-only " LIBJPHASE " | grep -c 'joule_.*@@JPHASE_1.0$'"),
		"6\n");
}

static void the_library_is_loaded_without_surprises(void **state)
{
	const char *dynamic = shell("readelf -dW " LIBJPHASE);

	(void)state;
	assert_non_null(strstr(dynamic, "Library soname: [libjphase.so]"));
	assert_null(strstr(dynamic, "TEXTREL"));
	assert_null(strstr(dynamic, "RPATH"));
	assert_null(strstr(dynamic, "RUNPATH"));
	assert_null(strstr(shell("readelf -lW " LIBJPHASE), "RWE"));
}

static void the_program_needs_no_more_than_two_libraries_of_others(void **state)
{
	static const char *const allowed[] = { "libc.so.6", "libm.so.6", "libpthread.so.0",
		"libpfm.so.4", "libmsgpackc.so.2", "libasan.", "libubsan.", "libtsan.", "libgcc_s.",
		"ld-linux" };
	char *saved;

	(void)state;
	shell("readelf -dW " JPHASE " | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'");
	for (char *line = strtok_r(r.out, "\n", &saved); line;
		line = strtok_r(NULL, "\n", &saved)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(allowed) && !str_starts(line, allowed[i]))
			i++;
		if (i == ARRAY_SIZE(allowed))
			fail_msg("it needs %s", line);
	}
}

/* Without LD_PRELOAD and without a session there is nothing to measure for. */
static void a_linked_program_runs_unmeasured(void **state)
{
	char *dir = tmpdir_make();
	struct child linked = { .cwd = dir, .env = { "LD_LIBRARY_PATH=" BUILD_DIR, "LD_PRELOAD" } };

	(void)state;
	assert_int_equal(run_shell(&linked,
				 "cc %s -o program -L%s -ljphase && ./program && rm program && ls",
				 FIXTURE("header/declare.c"), BUILD_DIR),
		0);
	assert_string_equal(linked.err, "");
	assert_string_equal(linked.out, "done\n");
	run_clear(&linked);
	tmpdir_remove(dir);
}

static void the_shared_layout_is_a_header_of_its_own(void **state)
{
	char *dir = tmpdir_make();
	struct child compile = { .cwd = dir };

	(void)state;
	assert_int_equal(
		run_shell(&compile,
			"echo '#include \"jphase/abi.h\"' >abi.c && "
			"cc -std=c11 -pedantic -Wall -Wextra -Werror -I%s/include -c abi.c",
			SOURCE_DIR),
		0);
	assert_string_equal(compile.err, "");
	assert_int_equal(compile.code, 0);
	run_clear(&compile);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_needs_libc_and_nothing_else),
		cmocka_unit_test(the_library_runs_with_glibc_2_17),
		cmocka_unit_test(the_library_allocates_no_thread_storage_at_run_time),
		cmocka_unit_test(the_library_exports_what_is_documented),
		cmocka_unit_test(the_library_is_loaded_without_surprises),
		cmocka_unit_test(the_program_needs_no_more_than_two_libraries_of_others),
		cmocka_unit_test(a_linked_program_runs_unmeasured),
		cmocka_unit_test(the_shared_layout_is_a_header_of_its_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
