/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

#include "internal/util.h"
#include "readers/breakpoint.h"

static char reason[READER_REASON_ROOM];

static void names_are_read_as_perf_reads_them(void **state)
{
	static const struct {
		const char *name;
		uint64_t address, length;
		uint32_t access;
	} right[] = {
		{ "mem:0x1000", 0x1000, 4, HW_BREAKPOINT_RW },
		{ "mem:4096", 4096, 4, HW_BREAKPOINT_RW },
		{ "mem:0x1000:w", 0x1000, 4, HW_BREAKPOINT_W },
		{ "mem:0x1000/8:wr", 0x1000, 8, HW_BREAKPOINT_RW },
		{ "mem:0x1000/1:r", 0x1000, 1, HW_BREAKPOINT_R },
		{ "mem:0xffff000000001000/2", 0xffff000000001000, 2, HW_BREAKPOINT_RW },
		{ "mem:0x1007/1", 0x1007, 1, HW_BREAKPOINT_RW },
		{ "mem:0x1006:x", 0x1006, sizeof(long), HW_BREAKPOINT_X },
		{ "mem:0x1000:x", 0x1000, sizeof(long), HW_BREAKPOINT_X },
	};
	struct perf_event_attr attr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_true(breakpoint_is_meant(right[i].name));
		assert_int_equal(breakpoint_parse(right[i].name, &attr, reason), 0);
		assert_int_equal(attr.type, PERF_TYPE_BREAKPOINT);
		assert_true(attr.bp_addr == right[i].address);
		assert_true(attr.bp_len == right[i].length);
		assert_int_equal(attr.bp_type, right[i].access);
	}
	assert_false(breakpoint_is_meant("memory"));
	assert_false(breakpoint_is_meant("kmem:mm_page_alloc"));
}

static void what_is_wrong_is_told(void **state)
{
	static const char *const wrong[][2] = {
		{ "mem:", "it is written mem:" },
		{ "mem:here", "it is written mem:" },
		{ "mem:-1", "it is written mem:" },
		{ "mem: 1", "it is written mem:" },
		{ "mem:0x1000/", "it is written mem:" },
		{ "mem:0x1000/0:w", "it is written mem:" },
		{ "mem:0x1000/4w", "it is written mem:" },
		{ "mem:0x1000/4/4", "it is written mem:" },
		{ "mem:0x10000000000000000", "it is written mem:" },
		{ "mem:0x1000/9", "more than 8 bytes" },
		{ "mem:0x1001/8", "both sides of a multiple of 8" },
		{ "mem:0x1006", "both sides of a multiple of 8" },
		{ "mem:0x1000:", "\"\" is no access" },
		{ "mem:0x1000:q", "\"q\" is no access" },
		{ "mem:0x1000:ww", "\"ww\" is no access" },
	};
	struct perf_event_attr attr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(breakpoint_parse(wrong[i][0], &attr, reason), -EINVAL);
		if (!strstr(reason, wrong[i][1]))
			fail_msg("%s: \"%s\"", wrong[i][0], reason);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_as_perf_reads_them),
		cmocka_unit_test(what_is_wrong_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
