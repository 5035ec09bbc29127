/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "jobs.h"

static struct jphase_session_page page;
static struct jobs jobs;

static int set_up(void **state)
{
	(void)state;
	jobs_init(&jobs, &page);
	return 0;
}

static bool post(enum job_kind kind, uint64_t index)
{
	return jobs_post(&jobs, &(struct job){ .kind = kind, .index = index });
}

static void assert_next(enum job_kind kind, uint64_t index)
{
	struct job job;

	assert_true(jobs_take(&jobs, &job));
	assert_int_equal(job.kind, kind);
	assert_int_equal(job.index, index);
}

static void jobs_come_in_their_order(void **state)
{
	struct job job;

	(void)state;
	for (uint64_t i = 0; i < 3 * JOBS_ROOM; i++) {
		assert_true(post(JOB_GONE, i));
		assert_next(JOB_GONE, i);
	}
	assert_false(jobs_take(&jobs, &job));
}

static void who_waits_for_a_welcome_comes_first(void **state)
{
	(void)state;
	assert_true(post(JOB_GONE, 1));
	assert_true(post(JOB_COMMAND, 2));
	assert_true(post(JOB_REGISTER, 3));
	assert_next(JOB_REGISTER, 3);
	assert_next(JOB_GONE, 1);
	assert_next(JOB_COMMAND, 2);
}

static void ends_of_processes_leave_room_for_others(void **state)
{
	uint64_t ends = 0;

	(void)state;
	while (post(JOB_GONE, ends))
		ends++;
	assert_int_equal(ends, JOBS_ROOM - JOBS_KEPT);
	for (int i = 0; i < JOBS_KEPT; i++)
		assert_true(post(JOB_REGISTER, 0));
	assert_false(post(JOB_REGISTER, 0));
	assert_false(post(JOB_MARK, 0));
}

static void stop_needs_no_room_and_is_pending(void **state)
{
	(void)state;
	while (post(JOB_MARK, 0))
		continue;
	assert_false(jobs_stopped(&jobs));
	assert_true(post(JOB_STOP, 0));
	assert_true(jobs_stopped(&jobs));
	assert_true(jobs_pending(&jobs));
}

static void posting_rings_the_doorbell(void **state)
{
	uint32_t before = page.doorbell;

	(void)state;
	post(JOB_GONE, 0);
	assert_int_equal(page.doorbell, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(jobs_come_in_their_order, set_up),
		cmocka_unit_test_setup(who_waits_for_a_welcome_comes_first, set_up),
		cmocka_unit_test_setup(ends_of_processes_leave_room_for_others, set_up),
		cmocka_unit_test_setup(stop_needs_no_room_and_is_pending, set_up),
		cmocka_unit_test_setup(posting_rings_the_doorbell, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
