/* SPDX-License-Identifier: MIT */
/* Programs that include jphase.h, built in every way they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "support/proc.h"

#define STRICT "-pedantic -Wall -Wextra -Wshadow -Wundef -Wconversion -Werror"

static const char without[] = "active 0\nactive 0\n";
static const char with[] = "phase one\nbegin two\nvalue items 2.5\nmark three\nend two\nactive 1\n"
			   "phase four\nactive 1\n";

struct language {
	const char *gcc, *clang; /* the compilers */
	const char *flags;
};

static const struct language languages[] = {
	{ "gcc", "clang", "-x c -std=c99 -O0" },
	{ "gcc", "clang", "-x c -std=c99 -O2" },
	{ "gcc", "clang", "-x c -std=c11 -O2" },
	{ "g++", "clang++", "-x c++ -std=c++11 -O0" },
	{ "g++", "clang++", "-x c++ -std=c++11 -O2" },
};

struct kind {
	const char *name;
	const char *build; /* shell text that makes ./program; $CC holds compiler and flags */
	bool preloadable;
};

static const struct kind kinds[] = {
	{ "position-independent", "$CC -fPIE -pie main.c markers.c -o program", true },
	{ "position-dependent", "$CC -fno-pie -no-pie main.c markers.c -o program", true },
	{ "no procedure linkage table", "$CC -fno-plt main.c markers.c -o program", true },
	{ "shared object",
		"$CC -fPIC -shared markers.c -o libmarkers.so && "
		"$CC main.c -o program -L. -Wl,-rpath,. -Wl,--no-as-needed -x none -lmarkers",
		true },
	{ "static", "$CC -static main.c markers.c -o program", false },
	{ "link-time optimised", "$CC -flto $LTO main.c markers.c -o program", true },
};

static char *dir;

static int setup(void **state)
{
	struct child r = { 0 };
	int err;

	(void)state;
	dir = tmpdir_make();
	r.cwd = dir;
	err = run_shell(&r,
		"cp %s/*.[ch] . && cc -shared -fPIC -I%s/include fake_jphase.c -o libjphase.so",
		FIXTURE("header"), SOURCE_DIR);
	if (err == 0 && r.code != 0)
		print_error("%s", r.err);
	err = err || r.code != 0 ? -1 : 0;
	run_clear(&r);
	return err;
}

static int teardown(void **state)
{
	(void)state;
	dir = tmpdir_remove(dir);
	return 0;
}

/* The program's output with or without the preloaded stand-in. */
static void check_output(const char *what, bool preload, const char *expected)
{
	char *variable = text_make("LD_PRELOAD=%s/libjphase.so", dir);
	struct child r = {
		.argv = { "./program" },
		.cwd = dir,
		.env = { preload ? variable : "LD_PRELOAD" },
	};

	assert_int_equal(run_program(&r), 0);
	if (r.code != 0 || !str_eq(r.out, expected) || r.err_bytes)
		fail_msg("%s, %s preload: status %d, output \"%s\", errors \"%s\"", what,
			preload ? "with" : "without", r.code, r.out, r.err);
	run_clear(&r);
	free(variable);
}

static void check_program(const char *compiler, const char *flags, const struct kind *kind)
{
	char *what = text_make("%s %s, %s", compiler, flags, kind->name);
	const char *lto = strstr(compiler, "clang") ? "-fuse-ld=lld" : "";
	struct child r = { .cwd = dir };

	assert_int_equal(run_shell(&r, "rm -f program; CC='%s %s %s -I%s/include' LTO='%s'; %s",
				 compiler, STRICT, flags, SOURCE_DIR, lto, kind->build),
		0);
	if (r.code != 0 || r.err_bytes)
		fail_msg("%s does not compile:\n%s", what, r.err);
	run_clear(&r);

	check_output(what, false, without);
	check_output(what, true, kind->preloadable ? with : without);
	free(what);
}

static void check_compiler(bool clang)
{
	if (clang && (!have_program("clang++") || !have_program("ld.lld")))
		skip_because("clang++ or lld is not installed");
	if (!have_program("g++"))
		skip_because("g++ is not installed");
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++)
		for (size_t j = 0; j < ARRAY_SIZE(kinds); j++)
			check_program(clang ? languages[i].clang : languages[i].gcc,
				languages[i].flags, &kinds[j]);
}

static void calls_are_found_in_every_kind_of_program_by_gcc(void **state)
{
	(void)state;
	check_compiler(false);
}

static void calls_are_found_in_every_kind_of_program_by_clang(void **state)
{
	(void)state;
	check_compiler(true);
}

static void calls_are_found_whatever_the_linker(void **state)
{
	static const char *const linkers[] = { "bfd", "gold", "lld" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(linkers); i++) {
		char *program = text_make("ld.%s", linkers[i]);
		char *flags = text_make("-x c -std=c99 -O1 -fuse-ld=%s", linkers[i]);

		if (!have_program(program))
			print_message("left out: %s is not installed\n", program);
		else
			for (size_t j = 0; j < 2; j++)
				check_program("gcc", flags, &kinds[j]);
		free(flags);
		free(program);
	}
}

static void a_program_may_declare_the_function_and_link(void **state)
{
	struct child r = { .cwd = dir, .env = { "LD_LIBRARY_PATH=." } };

	(void)state;
	assert_int_equal(
		run_shell(&r, "cc %s declare.c -o program -L. -ljphase && ./program", STRICT), 0);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "phase one\ndone\n");
	run_clear(&r);
}

static void the_header_leaves_no_symbol_that_must_be_linked(void **state)
{
	struct child r = { .cwd = dir };

	(void)state;
	assert_int_equal(run_shell(&r,
				 "cc -std=c99 -I%s/include -c markers.c -o markers.o && "
				 "nm -u markers.o | grep -v ' w joule_' | grep -c joule",
				 SOURCE_DIR),
		0);
	assert_string_equal(r.out, "0\n");
	run_clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_found_in_every_kind_of_program_by_gcc),
		cmocka_unit_test(calls_are_found_in_every_kind_of_program_by_clang),
		cmocka_unit_test(calls_are_found_whatever_the_linker),
		cmocka_unit_test(a_program_may_declare_the_function_and_link),
		cmocka_unit_test(the_header_leaves_no_symbol_that_must_be_linked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
