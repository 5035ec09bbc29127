/* SPDX-License-Identifier: MIT */
/*
 * Runs an entry point over each file of its corpus, without libFuzzer.  The
 * program's name tells which: fuzz_NAME reads tests/fuzz/corpus/NAME.
 */
#include "fuzz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/kfile.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus"

static void replay_file(const char *path)
{
	uint8_t *exact;
	size_t size;
	char *text;

	assert_int_equal(kfile_load(path, &text, &size), 0);
	/* A block of just that size, so that a sanitizer sees the first byte behind it. */
	exact = malloc(size);
	assert_true(exact || size == 0);
	if (size)
		memcpy(exact, text, size);
	free(text);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void the_corpus_does_no_harm(void **state)
{
	const char *name = program_invocation_short_name + strlen("fuzz_");
	struct dirent **entry;
	int count, files = 0;

	(void)state;
	assert_int_equal(chdir(CORPUS), 0);
	assert_int_equal(chdir(name), 0);
	count = scandir(".", &entry, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (entry[i]->d_name[0] != '.') {
			replay_file(entry[i]->d_name);
			files++;
		}
		free(entry[i]);
	}
	if (count >= 0)
		free(entry);
	printf("%d inputs of %s\n", files, name);
	assert_true(files > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_corpus_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
