/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "readers/cgroup_io.h"

static const struct kfile_key keys[] = { { "rbytes", 0 }, { "wios", 0 } };
static uint64_t values[2];

static void add(struct cgroup_io *io, const char *text)
{
	cgroup_io_add(io, text, strlen(text), keys, 2, values);
}

static void devices_are_added_up(void **state)
{
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "8:0 rbytes=10 wbytes=1 rios=2 wios=3 dbytes=0 new=7\n259:0 wios=4 rbytes=20\n");
	assert_int_equal(values[0], 30);
	assert_int_equal(values[1], 7);
	add(io, "");
	assert_int_equal(values[0], 30);
	cgroup_io_close(io);
}

static void a_device_that_is_gone_keeps_what_it_had(void **state)
{
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "8:0 rbytes=10 wios=1\n8:16 rbytes=500 wios=9\n");
	add(io, "8:0 rbytes=700 wios=1\n");
	assert_int_equal(values[0], 1200);
	assert_int_equal(values[1], 10);
	cgroup_io_close(io);
}

static void a_device_that_comes_back_begins_anew(void **state)
{
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "8:0 rbytes=100 wios=5\n");
	add(io, "8:0 rbytes=3 wios=6\n");
	assert_int_equal(values[0], 103);
	assert_int_equal(values[1], 6);
	cgroup_io_close(io);
}

static void torn_and_foreign_lines_change_nothing(void **state)
{
	static const char *const lines[] = {
		"8:0 \n",
		"8:0\n",
		"8:0 rbytes= wios=2\n",
		"8:0 rbytes=x wios=2\n",
		"8:0 rbytes=18446744073709551616 wios=2\n",
		"rbytes=4 wios=2\n",
		"\n\n",
		"eight:zero rbytes=4 wios=2\n",
	};
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "8:0 rbytes=10 wios=1\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		add(io, lines[i]);
		assert_int_equal(values[0], 10);
		assert_int_equal(values[1], 1);
	}
	add(io, "8:0 rbytes=11\n");
	assert_int_equal(values[0], 11);
	assert_int_equal(values[1], 1);
	cgroup_io_close(io);
}

static void devices_without_a_name_are_one(void **state)
{
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "(unknown) rbytes=1 wios=1\n(unknown) rbytes=2 wios=1\n");
	assert_int_equal(values[0], 3);
	add(io, "(unknown) rbytes=4 wios=1\n(unknown) rbytes=2 wios=1\n");
	assert_int_equal(values[0], 6);
	cgroup_io_close(io);
}

static void more_devices_than_there_is_room_for_are_counted_too(void **state)
{
	struct cgroup_io *io = cgroup_io_open();
	static char text[16384];
	size_t used = 0;

	(void)state;
	for (int i = 0; i < 400; i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "8:%d rbytes=10 wios=1\n", i);
	add(io, text);
	assert_int_equal(values[0], 4000);
	assert_int_equal(values[1], 400);
	cgroup_io_close(io);
}

static void sums_stop_at_the_largest_number(void **state)
{
	struct cgroup_io *io = cgroup_io_open();

	(void)state;
	add(io, "8:0 rbytes=18446744073709551614 wios=1\n8:1 rbytes=5 wios=1\n");
	assert_true(values[0] == UINT64_MAX);
	assert_int_equal(values[1], 2);
	cgroup_io_close(io);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_added_up),
		cmocka_unit_test(a_device_that_is_gone_keeps_what_it_had),
		cmocka_unit_test(a_device_that_comes_back_begins_anew),
		cmocka_unit_test(torn_and_foreign_lines_change_nothing),
		cmocka_unit_test(devices_without_a_name_are_one),
		cmocka_unit_test(more_devices_than_there_is_room_for_are_counted_too),
		cmocka_unit_test(sums_stop_at_the_largest_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
