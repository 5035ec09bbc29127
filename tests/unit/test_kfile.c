/* SPDX-License-Identifier: MIT */
/* The kernel's text files, whole, torn and foreign. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/kfile.h"

#define UNTOUCHED 77777

static size_t parse(kfile_parser *parser, const char *text, const struct kfile_key *keys,
	size_t count, uint64_t *values)
{
	/* A copy of exactly that size, so that a sanitizer sees every step beyond it. */
	size_t size = strlen(text);
	char *copy = malloc(size ? size : 1);
	size_t found;

	assert_non_null(copy);
	memcpy(copy, text, size);
	for (size_t i = 0; i < count; i++)
		values[i] = UNTOUCHED;
	found = parser(copy, size, keys, count, values);
	free(copy);
	return found;
}

static const struct kfile_key cpu_keys[] = { { "usage_usec", 0 }, { "user_usec", 0 },
	{ "system_usec", 0 } };

static void flat_takes_each_key_from_its_line(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_flat,
				 "usage_usec 57258551\nuser_usec 28003438\nsystem_usec 29255112\n"
				 "nice_usec 0\n",
				 cpu_keys, 3, v),
		3);
	assert_int_equal(v[0], 57258551);
	assert_int_equal(v[1], 28003438);
	assert_int_equal(v[2], 29255112);
}

static void flat_needs_no_newline_at_the_end(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_flat, "usage_usec 5", cpu_keys, 3, v), 1);
	assert_int_equal(v[0], 5);
	assert_int_equal(v[1], UNTOUCHED);
}

static void flat_skips_torn_and_foreign_lines_alone(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_flat,
				 "\nusage_usec\nuser_usec 12x\n \t\nsystem_usec -3\nfoo bar baz\n"
				 "usage_usecs 9\nuser_usec 4 5\nsystem_usec 8\n",
				 cpu_keys, 3, v),
		1);
	assert_int_equal(v[0], UNTOUCHED);
	assert_int_equal(v[1], UNTOUCHED);
	assert_int_equal(v[2], 8);
}

static void flat_reads_the_64_bit_maximum_and_refuses_more(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_flat,
				 "usage_usec 18446744073709551615\nuser_usec "
				 "18446744073709551616\nsystem_usec 99999999999999999999999\n",
				 cpu_keys, 3, v),
		1);
	assert_true(v[0] == UINT64_MAX);
	assert_int_equal(v[1], UNTOUCHED);
	assert_int_equal(v[2], UNTOUCHED);
}

static const struct kfile_key status_keys[] = { { "VmRSS", 0 }, { "Threads", 0 },
	{ "voluntary_ctxt_switches", 0 } };

static void labelled_gives_bytes_for_kb_and_plain_numbers_as_they_are(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_labelled,
				 "Name:\tVmRSS: 1 kB\nVmRSS:\t    1696 kB\nThreads:\t3\n"
				 "nonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t150\n",
				 status_keys, 3, v),
		3);
	assert_int_equal(v[0], 1696 * 1024);
	assert_int_equal(v[1], 3);
	assert_int_equal(v[2], 150);
}

static void labelled_saturates_and_skips_other_units(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_labelled,
				 "VmRSS: 18446744073709551615 kB\nThreads: 3 MB\n"
				 "voluntary_ctxt_switches:\n",
				 status_keys, 3, v),
		1);
	assert_true(v[0] == UINT64_MAX);
	assert_int_equal(v[1], UNTOUCHED);
	assert_int_equal(v[2], UNTOUCHED);
}

static const struct kfile_key io_keys[] = { { "rbytes", 0 }, { "wbytes", 0 }, { "rios", 0 },
	{ "wios", 0 } };

static void nested_sums_over_devices(void **state)
{
	uint64_t v[4];

	(void)state;
	assert_int_equal(parse(kfile_nested,
				 "8:0 rbytes=100 wbytes=20 rios=3 wios=4 dbytes=0 dios=0\n"
				 "253:16 wios=40 rbytes=1000 cost.usage=7 depth=max\n"
				 "(unknown) rbytes=10000 wbytes=1 rios=1 wios=1\n",
				 io_keys, 4, v),
		4);
	assert_int_equal(v[0], 11100);
	assert_int_equal(v[1], 21);
	assert_int_equal(v[2], 4);
	assert_int_equal(v[3], 45);
}

static void nested_takes_a_device_without_counters_as_nothing_done(void **state)
{
	uint64_t v[4];

	(void)state;
	assert_int_equal(parse(kfile_nested, "252:0 \n8:0 rbytes=5 wbytes=6", io_keys, 4, v), 4);
	assert_int_equal(v[0], 5);
	assert_int_equal(v[1], 6);
	assert_int_equal(v[2], 0);
	assert_int_equal(parse(kfile_nested, "", io_keys, 4, v), 4);
	assert_int_equal(v[0], 0);
}

static void nested_skips_a_torn_line_whole_and_alone(void **state)
{
	uint64_t v[4];

	(void)state;
	parse(kfile_nested,
		"8:0 rbytes=100 wbytes=\nrbytes=1000 wbytes=1000\n8:x rbytes=1\nmax rbytes=7\n"
		"8:16 rbytes=5 wbytes=6 rios=7 wios=8\n",
		io_keys, 4, v);
	assert_int_equal(v[0], 5);
	assert_int_equal(v[1], 6);
	assert_int_equal(v[2], 7);
	assert_int_equal(v[3], 8);
}

static void nested_saturates(void **state)
{
	uint64_t v[4];

	(void)state;
	parse(kfile_nested,
		"8:0 rbytes=18446744073709551615 wbytes=18446744073709551614\n"
		"8:1 rbytes=2 wbytes=1\n",
		io_keys, 4, v);
	assert_true(v[0] == UINT64_MAX);
	assert_true(v[1] == UINT64_MAX);
}

static const struct kfile_key pressure_keys[] = { { "some", 0 }, { "full", 0 } };

static void pressure_takes_the_totals(void **state)
{
	uint64_t v[2];

	(void)state;
	assert_int_equal(parse(kfile_pressure,
				 "some avg10=6.25 avg60=2.28 avg300=0.69 total=7356426\n"
				 "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
				 pressure_keys, 2, v),
		2);
	assert_int_equal(v[0], 7356426);
	assert_int_equal(v[1], 12);
}

static void pressure_skips_a_torn_line_alone(void **state)
{
	uint64_t v[2];

	(void)state;
	assert_int_equal(parse(kfile_pressure, "some avg10=6.25 avg60\nfull avg10=0.00 total=12",
				 pressure_keys, 2, v),
		1);
	assert_int_equal(v[0], UNTOUCHED);
	assert_int_equal(v[1], 12);
}

static void single_takes_a_number_or_max(void **state)
{
	static const struct kfile_key key = { "current", 0 };
	uint64_t v;

	(void)state;
	assert_int_equal(parse(kfile_single, "4096\n", &key, 1, &v), 1);
	assert_int_equal(v, 4096);
	assert_int_equal(parse(kfile_single, "max\n", &key, 1, &v), 1);
	assert_true(v == UINT64_MAX);
	assert_int_equal(parse(kfile_single, "maximum\n", &key, 1, &v), 0);
	assert_int_equal(parse(kfile_single, "1 2\n", &key, 1, &v), 0);
	assert_int_equal(parse(kfile_single, "", &key, 1, &v), 0);
	assert_int_equal(v, UNTOUCHED);
}

static const struct kfile_key stat_keys[] = { { "minflt", 10 }, { "utime", 14 },
	{ "num_threads", 20 } };

static void stat_starts_after_the_last_parenthesis(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_stat,
				 "5611 (a) R 1 (b\nc) S 5599 5599 3070 0 -1 4194304 99 0 0 0 "
				 "123 7 0 0 20 0 4 0 80555 3133440\n",
				 stat_keys, 3, v),
		3);
	assert_int_equal(v[0], 99);
	assert_int_equal(v[1], 123);
	assert_int_equal(v[2], 4);
}

static void stat_that_is_torn_gives_what_it_has(void **state)
{
	uint64_t v[3];

	(void)state;
	assert_int_equal(parse(kfile_stat, "1 (x) R 0 1 1 0 -1 0 55 0", stat_keys, 3, v), 1);
	assert_int_equal(v[0], 55);
	assert_int_equal(v[1], UNTOUCHED);
	assert_int_equal(parse(kfile_stat, "1 (x", stat_keys, 3, v), 0);
	assert_int_equal(parse(kfile_stat, "", stat_keys, 3, v), 0);
	assert_int_equal(parse(kfile_stat, "1 (x)", stat_keys, 3, v), 0);
}

static void columns_count_from_one(void **state)
{
	static const struct kfile_key keys[] = { { "ns", 1 }, { "slices", 3 } };
	uint64_t v[2];

	(void)state;
	assert_int_equal(parse(kfile_columns, "1302357 0 17\n", keys, 2, v), 2);
	assert_int_equal(v[0], 1302357);
	assert_int_equal(v[1], 17);
}

static void bytes_of_any_kind_are_survived(void **state)
{
	static kfile_parser *const parsers[] = { kfile_flat, kfile_labelled, kfile_nested,
		kfile_pressure, kfile_single, kfile_columns, kfile_stat };
	static const char pieces[] = "\n\0 :=)(8:0rbytes=kB9max\t-\xff";
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char *text = malloc(64);
		uint64_t v[4];

		assert_non_null(text);
		for (int i = 0; i < 64; i++) {
			seed = seed * 1103515245u + 12345u;
			text[i] = pieces[(seed >> 16) % (sizeof(pieces) - 1)];
		}
		for (size_t i = 0; i < ARRAY_SIZE(parsers); i++)
			assert_true(parsers[i](text, 64, io_keys, 4, v) <= 4);
		free(text);
	}
}

static int scratch_file(const char *text)
{
	int fd = memfd_create("kfile", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void a_file_that_does_not_fit_ends_with_a_whole_line(void **state)
{
	int fd = scratch_file("usage_usec 1\nuser_usec 123456\n");
	char buf[20];

	(void)state;
	/* Twenty bytes end within the number of the second line. */
	assert_int_equal(kfile_pread(fd, buf, sizeof(buf)), strlen("usage_usec 1\n"));
	assert_int_equal(kfile_pread(fd, buf, 5), 0);
	close(fd);
	assert_int_equal(kfile_pread(-1, buf, sizeof(buf)), -9 /* EBADF */);
}

static void a_whole_file_of_any_size_is_loaded(void **state)
{
	char path[64], *text;
	size_t size;
	int fd = memfd_create("kfile", 0);

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(write(fd, "0123456789abcde\n", 16), 16);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(kfile_load(path, &text, &size), 0);
	assert_int_equal(size, 160000);
	assert_memory_equal(text + 159984, "0123456789abcde\n", 17);
	free(text);
	close(fd);
	assert_int_equal(kfile_load("/nonexistent/file", &text, &size), -2 /* ENOENT */);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat_takes_each_key_from_its_line),
		cmocka_unit_test(flat_needs_no_newline_at_the_end),
		cmocka_unit_test(flat_skips_torn_and_foreign_lines_alone),
		cmocka_unit_test(flat_reads_the_64_bit_maximum_and_refuses_more),
		cmocka_unit_test(labelled_gives_bytes_for_kb_and_plain_numbers_as_they_are),
		cmocka_unit_test(labelled_saturates_and_skips_other_units),
		cmocka_unit_test(nested_sums_over_devices),
		cmocka_unit_test(nested_takes_a_device_without_counters_as_nothing_done),
		cmocka_unit_test(nested_skips_a_torn_line_whole_and_alone),
		cmocka_unit_test(nested_saturates),
		cmocka_unit_test(pressure_takes_the_totals),
		cmocka_unit_test(pressure_skips_a_torn_line_alone),
		cmocka_unit_test(single_takes_a_number_or_max),
		cmocka_unit_test(stat_starts_after_the_last_parenthesis),
		cmocka_unit_test(stat_that_is_torn_gives_what_it_has),
		cmocka_unit_test(columns_count_from_one),
		cmocka_unit_test(bytes_of_any_kind_are_survived),
		cmocka_unit_test(a_file_that_does_not_fit_ends_with_a_whole_line),
		cmocka_unit_test(a_whole_file_of_any_size_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
