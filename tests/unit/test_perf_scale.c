/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric.h"
#include "readers/perf_scale.h"

/* 40 events in a quarter of the time stand for 160. */
static void scale_extrapolates_partial_schedule(void **state)
{
	(void)state;
	assert_int_equal(perf_scale(40, /*enabled_ns=*/1000, /*running_ns=*/250), 160);
	assert_int_equal(perf_scale(1, 3, 2), 2);
	assert_int_equal(perf_scale(7, 1000, 1000), 7);
}

static void scale_knows_nothing_ran_from_not_counted(void **state)
{
	(void)state;
	assert_int_equal(perf_scale(0, 0, 0), 0);
	assert_true(perf_scale(0, 1000, 0) == VALUE_ABSENT);
}

static void scale_holds_products_beyond_64_bits(void **state)
{
	(void)state;
	assert_true(perf_scale(UINT64_C(1) << 62, UINT64_C(6) << 40, UINT64_C(4) << 40) ==
		    (UINT64_C(1) << 62) / 2 * 3);
	assert_true(perf_scale(UINT64_MAX / 2, 1000, 1) == VALUE_ABSENT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scale_extrapolates_partial_schedule),
		cmocka_unit_test(scale_knows_nothing_ran_from_not_counted),
		cmocka_unit_test(scale_holds_products_beyond_64_bits),
	};

	return cmocka_run_group_tests_name("perf_scale", tests, NULL, NULL);
}
