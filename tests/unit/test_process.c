/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "process.h"
#include "recorder.h"
#include "support/proc.h"

#define NOBODY 65534

static struct process_table table;
static struct source_list sources;

static int tear_down(void **state)
{
	(void)state;
	process_table_clear(&table);
	table = (struct process_table){ 0 };
	return 0;
}

static pid_t start_child(int status)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		if (status < 0)
			pause();
		_exit(status);
	}
	assert_true(pid > 0);
	return pid;
}

static struct process *open_process(pid_t pid)
{
	char reasons[SOURCE_MAX][READER_REASON_ROOM];
	struct reader_target target = { .pid = pid };
	struct process *p = process_add(&table);

	assert_non_null(p);
	p->pid = p->as_named = pid;
	p->confirmed = process_open(p, &sources, &target, reasons) == 0;
	return p;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void facts_are_those_of_proc(void **state)
{
	struct process_facts facts;

	(void)state;
	assert_int_equal(process_facts(getpid(), &facts), 0);
	assert_int_equal(facts.tgid, getpid());
	assert_int_equal(facts.parent, getppid());
	assert_string_equal(facts.name, "test_process");
	assert_true(process_facts(0x3ffffff, &facts) < 0);
}

static void process_is_found_by_its_pid_and_its_alias(void **state)
{
	struct process *a = process_add(&table), *b = process_add(&table);

	(void)state;
	a->pid = a->as_named = 1001;
	b->pid = 2001;
	b->as_named = 7;
	b->alias = 9;
	assert_ptr_equal(process_find(&table, 1001), a);
	assert_ptr_equal(process_find(&table, 7), b);
	assert_ptr_equal(process_find(&table, 9), b);
	assert_ptr_equal(process_find_pid(&table, 2001), b);
	/* What a hostile record may say. */
	assert_null(process_find(&table, 0));
	assert_null(process_find(&table, -1));
}

static void end_is_seen_with_and_without_a_pidfd(void **state)
{
	pid_t pid = start_child(-1);
	struct process *p = open_process(pid), *q = open_process(pid);

	(void)state;
	assert_true(p->confirmed && q->confirmed);
	close(q->pidfd);
	q->pidfd = -1;
	assert_false(process_has_ended(p));
	assert_false(process_has_ended(q));
	end_child(pid);
	assert_true(process_has_ended(p));
	assert_true(process_has_ended(q));
}

static void dead_process_is_not_opened(void **state)
{
	pid_t pid = start_child(0);

	(void)state;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(open_process(pid)->confirmed);
}

static void pid_that_came_again_is_someone_else(void **state)
{
	pid_t first = start_child(-1), second = start_child(-1);
	struct process *p = open_process(first);

	(void)state;
	assert_false(process_is_replaced(p, now_ns()));
	end_child(first);
	/* Nobody has the pid. */
	assert_false(process_is_replaced(p, now_ns()));
	/* As if the second had got the first one's pid. */
	p->pid = second;
	p->started--;
	assert_false(process_is_replaced(p, 0));
	assert_ptr_equal(process_find(&table, first), p);
	assert_true(process_is_replaced(p, now_ns()));
	assert_null(process_find(&table, first));
	end_child(second);
}

static void status_of_a_zombie_and_of_one_that_was_reaped(void **state)
{
	pid_t pid = start_child(42);
	struct process *p;
	siginfo_t info;

	(void)state;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	p = process_add(&table);
	p->pid = pid;
	assert_int_equal(process_end_of(p).status, 42 << 8);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* Without a pidfd nobody knows any more. */
	assert_int_equal(process_end_of(p).status, RECORD_STATUS_UNKNOWN);
}

/* A pid that came again has another's status. */
static void status_is_that_of_the_process_itself(void **state)
{
	pid_t pid = start_child(42);
	struct process *p;
	siginfo_t info;

	(void)state;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	p = process_add(&table);
	p->pid = pid;
	p->started = 1;
	assert_int_equal(process_end_of(p).status, RECORD_STATUS_UNKNOWN);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The kernel shows 0 to whoever may not look into the process. */
static void status_that_may_not_be_seen_is_unknown(void **state)
{
	struct process *p = process_add(&table);
	siginfo_t info;
	pid_t viewer;
	int status;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can become another user");
	p->pid = start_child(42);
	assert_int_equal(waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT), 0);
	viewer = fork();
	if (viewer == 0)
		_exit(setgid(NOBODY) < 0 || setuid(NOBODY) < 0 ||
			process_end_of(p).status != RECORD_STATUS_UNKNOWN);
	assert_int_equal(waitpid(viewer, &status, 0), viewer);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(p->pid, NULL, 0), p->pid);
}

/* No descriptor is left to look with: that says nothing of the process. */
static void who_cannot_be_looked_at_has_not_ended(void **state)
{
	struct rlimit before, none;
	pid_t pid = start_child(-1);
	struct process *p = open_process(pid), *q;
	struct shared shared = { .ring_inode = 1 };
	bool ended, opened;
	int facts, maps;

	(void)state;
	close(p->pidfd);
	p->pidfd = -1;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ended = process_has_ended(p);
	maps = process_maps_ring(pid, &shared);
	facts = process_facts(pid, &(struct process_facts){ 0 });
	q = process_add(&table);
	q->pid = pid;
	opened = process_open(q, &sources, &(struct reader_target){ .pid = pid }, NULL) == -EMFILE;
	setrlimit(RLIMIT_NOFILE, &before);
	assert_false(ended);
	assert_int_equal(maps, -EMFILE);
	assert_int_equal(facts, -EMFILE);
	assert_true(opened);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(facts_are_those_of_proc, tear_down),
		cmocka_unit_test_teardown(process_is_found_by_its_pid_and_its_alias, tear_down),
		cmocka_unit_test_teardown(end_is_seen_with_and_without_a_pidfd, tear_down),
		cmocka_unit_test_teardown(dead_process_is_not_opened, tear_down),
		cmocka_unit_test_teardown(pid_that_came_again_is_someone_else, tear_down),
		cmocka_unit_test_teardown(status_of_a_zombie_and_of_one_that_was_reaped, tear_down),
		cmocka_unit_test_teardown(status_is_that_of_the_process_itself, tear_down),
		cmocka_unit_test_teardown(status_that_may_not_be_seen_is_unknown, tear_down),
		cmocka_unit_test_teardown(who_cannot_be_looked_at_has_not_ended, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
