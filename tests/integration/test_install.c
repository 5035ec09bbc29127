/* SPDX-License-Identifier: MIT */
/* `make install` and what is installed. */
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

/* The build folder as this tree's Makefile names it, so that nothing is built again. */
#define MAKE "make -s -C " SOURCE_DIR " B=%s "

static const char build_dir[] = BUILD_DIR;
static const char *build;
static char *dest;

/* An outer make's flags and jobs are none of the inner one's business. */
#define MAKE_ENV "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"

static int setup(void **state)
{
	struct child r = { .env = { MAKE_ENV } };
	int failed;

	(void)state;
	build = &build_dir[strlen(SOURCE_DIR) + 1];
	dest = tmpdir_make();
	failed = run_shell(&r, MAKE "install DESTDIR=%s PREFIX=/opt/j", build, dest) < 0 || r.code;
	if (failed)
		print_error("make install: %s\n", r.err);
	run_clear(&r);
	return failed ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	dest = tmpdir_remove(dest);
	return 0;
}

static void exactly_these_files_are_installed(void **state)
{
	struct child r = { .cwd = dest };

	(void)state;
	assert_int_equal(
		run_shell(&r, "find . ! -type d -printf '%%m %%p\\n' | LC_ALL=C sort -k2"), 0);
	assert_string_equal(r.out, "755 ./opt/j/bin/jphase\n"
				   "644 ./opt/j/include/jphase/abi.h\n"
				   "644 ./opt/j/include/jphase/jphase.h\n"
				   "755 ./opt/j/lib/libjphase.so\n"
				   "644 ./opt/j/lib/pkgconfig/jphase.pc\n"
				   "644 ./opt/j/share/bash-completion/completions/jphase\n"
				   "644 ./opt/j/share/man/man1/jphase.1\n");
	run_clear(&r);
}

static void uninstall_removes_all_of_them(void **state)
{
	char *other = tmpdir_make();
	struct child r = { .cwd = other, .env = { MAKE_ENV } };

	(void)state;
	assert_int_equal(run_shell(&r,
				 MAKE "install DESTDIR=%s LIBDIR=/usr/lib/here && " MAKE
				      "uninstall DESTDIR=%s LIBDIR=/usr/lib/here && "
				      "find . ! -type d && find . -name jphase",
				 build, other, build, other),
		0);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "");
	assert_int_equal(r.code, 0);
	run_clear(&r);
	tmpdir_remove(other);
}

static void pkg_config_builds_a_program_that_runs(void **state)
{
	char *dir = tmpdir_make();
	char *path = text_make("PKG_CONFIG_PATH=%s/opt/j/lib/pkgconfig", dest);
	char *root = text_make("PKG_CONFIG_SYSROOT_DIR=%s", dest);
	char *libraries = text_make("LD_LIBRARY_PATH=%s/opt/j/lib", dest);
	struct child r = { .cwd = dir, .env = { path, root, libraries, "LD_PRELOAD" } };

	(void)state;
	if (!have_program("pkg-config"))
		skip_because("pkg-config is not installed");
	assert_int_equal(run_shell(&r, "pkg-config --modversion jphase"), 0);
	assert_string_equal(r.out, JPHASE_VERSION "\n");

	assert_int_equal(
		run_shell(&r, "printf '#define JPHASE_DECLARE_ONLY\\n#include <jphase/jphase.h>"
			      "\\n#include <stdio.h>\\nint main(void)\\n"
			      "{ joule_phase(\"x\"); printf(\"%%%%d\\\\n\", joule_active()); }'"
			      " >p.c && cc p.c -o p $(pkg-config --cflags --libs jphase) && ./p"),
		0);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "0\n");

	run_clear(&r);
	free(libraries);
	free(root);
	free(path);
	tmpdir_remove(dir);
}

static void the_man_page_has_no_formatting_errors(void **state)
{
	struct child r = { .cwd = dest };

	(void)state;
	if (!have_program("groff"))
		skip_because("groff is not installed");
	assert_int_equal(
		run_shell(&r, "groff -man -Tutf8 -ww -z opt/j/share/man/man1/jphase.1"), 0);
	assert_string_equal(r.err, "");
	assert_int_equal(r.code, 0);
	run_clear(&r);
}

static void the_man_page_has_every_option_and_variable(void **state)
{
	static const char *const words[] = { "--output FILE", "--events EVENTS", "--sources LIST",
		"--mode MODE", "--poll TIME", "--interval TIME", "--ring RECORDS", "--signal LIST",
		"--fsync", "--user NAME", "--quiet", "--config FILE", "--format", "--by",
		"jphase list", "jphase doctor", "JPHASE_OUTPUT", "JPHASE_EVENTS", "JPHASE_SOURCES",
		"JPHASE_MODE", "JPHASE_POLL", "JPHASE_INTERVAL", "JPHASE_RING", "JPHASE_SIGNALS",
		"JPHASE_FSYNC", "JPHASE_QUIET", "JPHASE_COLLECTOR", "JPHASE_SESSION",
		"JPHASE_REGISTER", "EXIT STATUS", "126", "127" };
	struct child r = { .cwd = dest };

	(void)state;
	if (!have_program("groff"))
		skip_because("groff is not installed");
	assert_int_equal(run_shell(&r, "groff -man -Tascii -P-c -P-b -P-u -rLL=200n "
				       "opt/j/share/man/man1/jphase.1"),
		0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strstr(r.out, words[i]))
			fail_msg("the man page lacks %s", words[i]);
	run_clear(&r);
}

/* Asks as bash does when the words are typed and the last one is to be completed. */
static void check_completion(const char *words, const char *expected)
{
	struct child r = { .cwd = dest };

	assert_int_equal(run_shell(&r,
				 "bash -c '. opt/j/share/bash-completion/completions/jphase; "
				 "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _jphase; "
				 "printf \"%%s \" \"${COMPREPLY[@]}\"' - %s",
				 words),
		0);
	assert_string_equal(r.err, "");
	if (!str_eq(r.out, expected))
		fail_msg("%s is completed to \"%s\"", words, r.out);
	run_clear(&r);
}

static void bash_completes_commands_options_and_choices(void **state)
{
	(void)state;
	check_completion("jphase re", "report ");
	check_completion("jphase help do", "doctor ");
	check_completion("jphase run --eve", "--events ");
	check_completion("jphase run --mode ''", "auto sync async exact ");
	check_completion("jphase run --mode = as", "async ");
	check_completion("jphase run --sources pr", "procfs ");
	check_completion("jphase run --user roo", "root ");
	check_completion("jphase attach --sig", " ");
	check_completion("jphase run -o opt", "opt ");
	check_completion("jphase run -o x -e cycles compop", "compopt ");
}

static void bash_leaves_the_programs_arguments_alone(void **state)
{
	(void)state;
	check_completion("jphase run -o x -- ls --eve", " ");
	check_completion("jphase run ls op", "opt ");
	check_completion("jphase run --output = x --mode sync ls op", "opt ");
}

/*
 * A machine of our own: private copies of /etc and /usr/local, in which the
 * plain `make install` and the plain LD_PRELOAD are tried.
 */
static void the_loader_finds_the_installed_library_by_name(void **state)
{
	struct child r = { .env = { MAKE_ENV, "LD_LIBRARY_PATH", "LD_PRELOAD" } };
	char *dir;

	(void)state;
	skip_with_asan("has to be loaded before any other library");
	if (run_shell(&r, "unshare -m true") < 0 || r.code != 0)
		skip_because("no private mounts here (it needs root)");
	r.cwd = dir = tmpdir_make();
	assert_int_equal(run_shell(&r,
				 "unshare -m sh -ec 'cp -a /etc etc; mount --bind etc /etc; "
				 "mount -t tmpfs none /usr/local; " MAKE "install; cp %s hello; "
				 "LD_PRELOAD=libjphase.so ./hello; "
				 "jphase report --format csv jphase-hello-*.msgpack >report; "
				 "jphase --version'",
				 build, EXAMPLE("hello")),
		0);
	if (r.code != 0 || r.err_bytes)
		fail_msg("status %d: %s", r.code, r.err);
	assert_non_null(strstr(r.out, "jphase " JPHASE_VERSION "\n"));
	run_clear(&r);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_these_files_are_installed),
		cmocka_unit_test(uninstall_removes_all_of_them),
		cmocka_unit_test(pkg_config_builds_a_program_that_runs),
		cmocka_unit_test(the_man_page_has_no_formatting_errors),
		cmocka_unit_test(the_man_page_has_every_option_and_variable),
		cmocka_unit_test(bash_completes_commands_options_and_choices),
		cmocka_unit_test(bash_leaves_the_programs_arguments_alone),
		cmocka_unit_test(the_loader_finds_the_installed_library_by_name),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
