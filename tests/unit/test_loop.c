/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>

#include "loop.h"

static struct session s;
static struct jphase_session_page page;

static int set_up(void **state)
{
	(void)state;
	jobs_init(&s.jobs, &page);
	s.stopping = false;
	return 0;
}

/* An end that is asked for is a flag, not a job: nothing is there to be taken. */
static void who_lingers_ends_when_asked_to(void **state)
{
	(void)state;
	jobs_post(&s.jobs, &(struct job){ .kind = JOB_STOP });
	assert_false(loop_linger(&s));
	assert_true(s.stopping);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_lingers_ends_when_asked_to, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
