/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "jobs.h"

#define STATUS (5 << 8)

static struct jphase_session_page page;
static struct jobs jobs;
static const uint8_t token[JPHASE_TOKEN_BYTES];

/* Waits at most 20 s for a job of that kind. */
static bool await_job(enum job_kind kind, struct job *ret)
{
	for (int i = 0; i < 2000; i++) {
		while (jobs_take(&jobs, ret))
			if (ret->kind == kind)
				return true;
		usleep(10000);
	}
	return false;
}

/* It is sent once, and the program's status and times with it. */
static void the_end_of_the_command_waits_for_room(void **state)
{
	const struct control_command_end end = { .status = STATUS };
	char address[JPHASE_SESSION_ROOM];
	struct control *c;
	struct job job;
	int pair[2];

	(void)state;
	jobs_init(&jobs, &page);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(control_start(&jobs, token, pair[0], address, &c), 0);
	while (jobs_post(&jobs, &(struct job){ .kind = JOB_MARK, .fd = -1 }))
		continue;
	assert_int_equal(send(pair[1], &end, sizeof(end), 0), sizeof(end));
	/* Until it has been taken. */
	for (int i = 0; i < 2000 && recv(pair[0], &job, 1, MSG_PEEK | MSG_DONTWAIT) >= 0; i++)
		usleep(10000);
	assert_true(await_job(JOB_COMMAND, &job));
	assert_int_equal(job.status, STATUS);
	/* What follows is the launcher's own end, of which nobody is told. */
	close(pair[1]);
	control_stop(c);
	assert_false(jobs_take(&jobs, &job));
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_the_command_waits_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
