/* SPDX-License-Identifier: MIT */
/* Every command of the README's ```sh blocks runs, but those that install and test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"

/* The next ```sh block, cut out of text; NULL: there is none. */
static char *next_block(char **text)
{
	static const char fence[] = "\n```sh\n";
	char *begin = strstr(*text, fence), *end;

	if (!begin)
		return NULL;
	begin += sizeof(fence) - 1;
	end = strstr(begin, "\n```");
	assert_non_null(end);
	*end = '\0';
	*text = end + 1;
	return begin;
}

/* A folder where build/ and examples/ are the tree's. */
static char *make_place(void)
{
	char *dir = tmpdir_make(), *link;

	link = text_make("ln -s '%s' '%s/build' && ln -s '%s/examples' '%s/examples'", BUILD_DIR,
		dir, SOURCE_DIR, dir);
	assert_int_equal(system(link), 0);
	free(link);
	return dir;
}

/* The rest of .ci/run is made of these. */
static bool runs_elsewhere(const char *block)
{
	return str_starts(block, "make ");
}

static void commands_of_the_readme_run(void **state)
{
	char *text, *rest, *block, *dir;
	int blocks = 0;

	(void)state;
	skip_with_asan("has to be loaded before any other library");
	if (access("/usr/bin/python3", X_OK) != 0 ||
		system("/usr/bin/python3 -c 'import msgpack' 2>/dev/null") != 0)
		skip_because(
			"the README decodes a recording with python3-msgpack, which is not here");
	text = rest = file_read(SOURCE_DIR "/README.md", NULL);
	dir = make_place();
	while ((block = next_block(&rest))) {
		struct child c = { .cwd = dir };

		if (runs_elsewhere(block))
			continue;
		blocks++;
		assert_int_equal(run_shell(&c, "set -e\n%s", block), 0);
		if (c.code != 0)
			fail_msg("status %d from\n%s\n%s%s", c.code, block, c.out, c.err);
		run_clear(&c);
	}
	assert_true(blocks >= 8);
	tmpdir_remove(dir);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_of_the_readme_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
