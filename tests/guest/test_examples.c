/* SPDX-License-Identifier: MIT */
/* Page faults and the examples, both ways of starting, on another architecture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

static struct measured example(enum way way, const char *program)
{
	struct measured m = { .way = way, .argv = { program } };

	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_string_equal(m.child.err, "");
	assert_int_equal(m.model->runs[0].lost, 0);
	assert_true(m.model->runs[0].complete);
	return m;
}

static void touched_pages_are_page_faults(void **state)
{
	static const uint64_t pages[] = { 100, 300, 50 };
	static const char *const names[] = { "p0", "p1", "p2" };

	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.argv = { TARGET("pages"), "20", "100", "300", "50" },
		};

		measure(&m);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			assert_int_equal(phase_count(&m, names[i]), 20);
			for (size_t n = 0; n < 20; n++)
				assert_int_equal(
					counted(&m, phase_at(&m, names[i], n), "page-faults"),
					pages[i]);
		}
		measure_clear(&m);
	}
}

static void hello_touches_300_pages_and_computes(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = example(ways[w], EXAMPLE("hello"));
		const struct row *solve = phase_at(&m, "solve", 0);
		uint64_t solved = counted(&m, solve, "INSTRUCTIONS");

		assert_string_equal(m.child.out, "the sum is 54.275\n");
		/* The program's first calls of a function may load a page of it. */
		assert_in_range(counted(&m, phase_at(&m, "load", 0), "page-faults"), 300, 303);
		/* The loop has at least four instructions for each element. */
		assert_true(solved > 4 * 40000000);
		assert_int_equal(counted(&m, solve, "CPU_CYCLES"), solved);
		assert_true(solve->amounts && solve->amounts->sum == 40e6);
		measure_clear(&m);
	}
}

static void regions_nest_on_each_of_three_threads(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = example(ways[w], EXAMPLE("threads"));
		size_t outer = 0, all = 0;

		for (size_t i = 0; i < m.model->region_count; i++) {
			const struct region *r = &m.model->regions[i];

			if (r->pid != m.model->runs[0].pid)
				continue;
			all++;
			assert_false(r->open || r->repaired);
			assert_int_equal(r->depth, !str_eq(r->name, "work"));
			outer += r->depth == 0;
		}
		assert_int_equal(outer, 3);
		assert_int_equal(all, 3 * (1 + 2 * 4));
		measure_clear(&m);
	}
}

static void workers_count_their_own_pages(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = example(ways[w], EXAMPLE("workers"));
		uint64_t pages[2];

		for (size_t i = 0; i < 2; i++)
			pages[i] = counted(&m, phase_at(&m, "touch", i), "page-faults");
		/* A forked child loads the pages of its program and of libc again. */
		assert_in_range(MIN(pages[0], pages[1]), 100, 120);
		assert_in_range(MAX(pages[0], pages[1]), 700, 720);
		measure_clear(&m);
	}
}

/* Nothing can be preloaded into it. */
static void a_static_program_is_one_phase_with_all_its_work(void **state)
{
	struct measured m = { .argv = { "busybox", "sh", "-c",
				      "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done" } };

	(void)state;
	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_int_equal(m.model->row_count, 1);
	assert_true(counted(&m, &m.model->rows[0], "INSTRUCTIONS") > 100000);
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(touched_pages_are_page_faults),
		cmocka_unit_test(hello_touches_300_pages_and_computes),
		cmocka_unit_test(regions_nest_on_each_of_three_threads),
		cmocka_unit_test(workers_count_their_own_pages),
		cmocka_unit_test(a_static_program_is_one_phase_with_all_its_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
