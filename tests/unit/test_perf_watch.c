/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/perf_watch.h"
#include "support/proc.h"

#define MSEC NSEC_PER_MSEC

/* A real process, whose events go when it dies, and what /proc is to say of it meanwhile. */
struct stage {
	char *proc;
	struct reader_env env;
	struct perf_watch *watch;
	pid_t pid;
	bool ended;
};

struct said {
	char state;
	unsigned flags;
	unsigned ticks; /* of 10 ms, on a CPU */
	unsigned born;
	unsigned real, user;
};

static struct said usual(void)
{
	return (struct said){
		.state = 'S', .flags = 0x400000, .born = 77, .real = geteuid(), .user = geteuid()
	};
}

static struct stage s;
static struct said said;

static void say(void)
{
	char *stat = text_make("%d (a) b) %c 1 1 1 0 -1 %u 9 9 9 9 %u 0 9 9 20 0 1 0 %u 4096 1\n",
		(int)s.pid, said.state, said.flags, said.ticks, said.born);
	char *status = text_make("Name:\ta) b\nState:\tS\nUid:\t%u\t%u\t0\t0\nGid:\t5\t5\t5\t5\n",
		said.real, said.user);
	char *stat_path = text_make("%s/%d/stat", s.proc, (int)s.pid);
	char *status_path = text_make("%s/%d/status", s.proc, (int)s.pid);

	assert_int_equal(file_write(stat_path, stat, strlen(stat)), 0);
	assert_int_equal(file_write(status_path, status, strlen(status)), 0);
	free(stat);
	free(status);
	free(stat_path);
	free(status_path);
}

static void end_process(void)
{
	if (s.ended)
		return;
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	s.ended = true;
}

static int begin(void **state)
{
	char *dir;

	(void)state;
	s = (struct stage){ .proc = tmpdir_make() };
	s.env = (struct reader_env){ .proc_root = s.proc, .sys_root = "/sys" };
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	dir = text_make("%s/%d", s.proc, (int)s.pid);
	assert_int_equal(mkdir(dir, 0755), 0);
	free(dir);
	said = usual();
	say();
	assert_int_equal(perf_watch_open(&s.env, s.pid, &s.watch), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	perf_watch_close(s.watch);
	end_process();
	tmpdir_remove(s.proc);
	return 0;
}

static void while_the_event_is_there_nothing_is_lost(void **state)
{
	(void)state;
	assert_false(perf_watch_is_lost(s.watch, 0));
	said.ticks = 500;
	said.real++;
	say();
	assert_false(perf_watch_is_lost(s.watch, 0));
}

static void an_event_gone_with_other_rights_is_lost_at_once(void **state)
{
	(void)state;
	end_process();
	said.user++;
	say();
	assert_true(perf_watch_is_lost(s.watch, 0));
}

/* As when su becomes root altogether. */
static void an_event_gone_with_all_ids_new_is_lost_at_once(void **state)
{
	(void)state;
	end_process();
	said.real++;
	said.user++;
	say();
	assert_true(perf_watch_is_lost(s.watch, 0));
}

static void an_event_gone_and_50_ms_not_counted_are_lost(void **state)
{
	(void)state;
	end_process();
	assert_false(perf_watch_is_lost(s.watch, 1000 * MSEC));
	said.ticks = 4;
	say();
	assert_false(perf_watch_is_lost(s.watch, 1000 * MSEC));
	said.ticks = 5;
	say();
	assert_true(perf_watch_is_lost(s.watch, 1001 * MSEC));
}

static void an_event_gone_while_the_counters_go_on_is_not_lost(void **state)
{
	(void)state;
	end_process();
	for (unsigned i = 0; i < 10; i++) {
		said.ticks = 100 * i;
		say();
		assert_false(perf_watch_is_lost(s.watch, 1000 * i * MSEC));
	}
}

static void a_process_that_ends_has_lost_nothing(void **state)
{
	(void)state;
	end_process();
	said.real++;
	said.state = 'Z';
	say();
	assert_false(perf_watch_is_lost(s.watch, 0));
	said.state = 'R';
	said.flags |= 4;
	say();
	assert_false(perf_watch_is_lost(s.watch, 0));
}

static void another_process_of_the_same_number_is_not_ours(void **state)
{
	(void)state;
	end_process();
	said.real++;
	said.born++;
	say();
	assert_false(perf_watch_is_lost(s.watch, 0));
}

static void a_process_that_is_not_there_is_refused(void **state)
{
	struct reader_env env = { .proc_root = "/nonexistent", .sys_root = "/sys" };
	struct perf_watch *w = NULL;

	(void)state;
	assert_int_equal(perf_watch_open(&env, getpid(), &w), -ESRCH);
	assert_null(w);
	assert_null(perf_watch_close(NULL));
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(while_the_event_is_there_nothing_is_lost),
		TEST(an_event_gone_with_other_rights_is_lost_at_once),
		TEST(an_event_gone_with_all_ids_new_is_lost_at_once),
		TEST(an_event_gone_and_50_ms_not_counted_are_lost),
		TEST(an_event_gone_while_the_counters_go_on_is_not_lost),
		TEST(a_process_that_ends_has_lost_nothing),
		TEST(another_process_of_the_same_number_is_not_ours),
		cmocka_unit_test(a_process_that_is_not_there_is_refused),
	};

	if (sysconf(_SC_CLK_TCK) != 100) {
		print_message("skipped: the ticks of this machine are not 10 ms\n");
		return 0;
	}
	return cmocka_run_group_tests_name("perf_watch", tests, NULL, NULL);
}
