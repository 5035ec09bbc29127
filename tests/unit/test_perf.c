/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/perf_plan.h"
#include "readers/perf_unit.h"
#include "readers/reader.h"
#include "support/counting.h"
#include "support/proc.h"

#define NOBODY 65534

/* What the counter of the page faults says that an order cost. */
static uint64_t faults_of(struct reader *r, const struct worker *w, char what, int pages)
{
	uint64_t before = counting_value(r, "page-faults");

	worker_order(w, what, pages);
	return counting_value(r, "page-faults") - before;
}

static void without_a_pmu_hardware_events_are_absent_and_say_why(void **state)
{
	struct reader_env env =
		counting_env("cycles,L1-dcache-loads,r00c0,instructions:u,page-faults");
	static const char *const names[] = { "CPU_CYCLES", "L1-dcache-loads", "r00c0",
		"instructions:u" };
	struct metric_list list;
	uint64_t values[16];
	struct reader *r;

	(void)state;
	if (counting_has_pmu())
		skip_because("this machine has hardware counters");
	r = counting_open(&env, getpid(), false);
	list = counting_described(r);
	assert_int_equal(list.groups, 1);
	assert_int_equal(perf_reader.read(r, values), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(list.metric[i].name, names[i]);
		assert_string_equal(
			list.metric[i].absent, "not counted: no hardware counters here");
		assert_int_equal(list.metric[i].group, METRIC_NO_GROUP);
		assert_true(values[i] == VALUE_ABSENT);
	}
	assert_true(values[4] != VALUE_ABSENT);
	metric_list_clear(&list);
	perf_reader.close(r);
}

static void with_a_pmu_cycles_are_counted(void **state)
{
	struct reader_env env = counting_env("cycles");
	struct reader *r;
	uint64_t before;

	(void)state;
	if (!counting_has_pmu())
		skip_because("this machine has no hardware counters");
	r = counting_open(&env, getpid(), false);
	before = counting_value(r, "CPU_CYCLES");
	touch_pages(100);
	assert_true(counting_value(r, "CPU_CYCLES") > before);
	perf_reader.close(r);
}

static void fresh_pages_are_counted_exactly(void **state)
{
	static const int pages[] = { 100, 300, 50, 1, 0, 700 };
	struct reader_env env = counting_env(NULL);
	struct worker w = worker_start();
	struct reader *r;

	(void)state;
	skip_with_tsan();
	worker_order(&w, 'p', 1);
	r = counting_open(&env, w.pid, false);
	faults_of(r, &w, 'p', 1);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		assert_int_equal(faults_of(r, &w, 'p', pages[i]), pages[i]);
	perf_reader.close(r);
	worker_end(&w);
}

static void children_are_counted_with_their_parent(void **state)
{
	struct reader_env env = counting_env("page-faults");
	struct worker w = worker_start();
	struct reader *r = counting_open(&env, w.pid, false);
	uint64_t none, some;

	(void)state;
	skip_with_tsan();
	/* A fork costs faults of its own, nearly the same each time. */
	faults_of(r, &w, 'c', 0);
	none = faults_of(r, &w, 'c', 0);
	some = faults_of(r, &w, 'c', 5000);
	assert_in_range(some - none, 9900, 10100);
	perf_reader.close(r);
	worker_end(&w);
}

static void threads_of_later_are_counted(void **state)
{
	struct reader_env env = counting_env("page-faults");
	struct worker w = worker_start();
	struct reader *r = counting_open(&env, w.pid, false);
	uint64_t none, some;

	(void)state;
	skip_with_tsan();
	faults_of(r, &w, 't', 0);
	none = faults_of(r, &w, 't', 0);
	some = faults_of(r, &w, 't', 5000);
	assert_in_range(some - none, 4950, 5050);
	perf_reader.close(r);
	worker_end(&w);
}

/* Four threads of one process, each obeying orders of its own. */
struct crew {
	pid_t pid;
	struct worker thread[4];
};

static void *obey_in_thread(void *pipes)
{
	worker_obey(((int *)pipes)[0], ((int *)pipes)[1]);
	return NULL;
}

static void crew_run(int pipes[4][2])
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < 4; i++)
		pthread_create(&thread, NULL, obey_in_thread, pipes[i]);
	worker_obey(pipes[0][0], pipes[0][1]);
	_exit(0);
}

static struct crew crew_start(void)
{
	int inside[4][2];
	struct crew c;

	for (int i = 0; i < 4; i++) {
		int orders[2], answers[2];

		assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
		assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
		inside[i][0] = orders[0];
		inside[i][1] = answers[1];
		c.thread[i].orders = orders[1];
		c.thread[i].answers = answers[0];
	}
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0)
		crew_run(inside);
	for (int i = 0; i < 4; i++) {
		close(inside[i][0]);
		close(inside[i][1]);
	}
	return c;
}

static void all_threads_of_an_attached_process_are_counted(void **state)
{
	struct reader_env env = counting_env("page-faults,task-clock");
	struct crew c = crew_start();
	struct reader *r;

	(void)state;
	skip_with_tsan();
	for (int i = 0; i < 8; i++)
		worker_order(&c.thread[i % 4], 'p', 1);
	r = counting_open(&env, c.pid, false);
	for (int i = 0; i < 4; i++)
		faults_of(r, &c.thread[i], 'p', 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(faults_of(r, &c.thread[i], 'p', 25 + i), 25 + i);
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	for (int i = 0; i < 4; i++) {
		close(c.thread[i].orders);
		close(c.thread[i].answers);
	}
}

/*
 * exec by another thread than the first one ends the first: its event goes, but
 * the counters go on.
 */
static void *become_shell(void *arg)
{
	(void)arg;
	execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
	return NULL;
}

static void an_exec_by_another_thread_loses_nothing(void **state)
{
	struct reader_env env = counting_env("page-faults,task-clock");
	struct reader *r;
	uint64_t before;
	char byte;
	pid_t pid;
	int go[2];

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &byte, 1) == 1)
			pthread_create(&thread, NULL, become_shell, NULL);
		for (;;)
			pause();
	}
	r = counting_open(&env, pid, false);
	assert_int_equal(write(go[1], "", 1), 1);
	before = counting_value(r, "task-clock");
	while (counting_value(r, "task-clock") - before < 200 * NSEC_PER_MSEC) {
		assert_null(perf_reader.lost(r));
		usleep(5000);
	}
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
}

/* Waits for a byte, touches pages, then becomes the program. */
static pid_t start_before_exec(int go, int pages, const char *program)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go, &byte, 1) == 1)
			touch_pages(pages);
		execl(program, program, "5", NULL);
		_exit(127);
	}
	return pid;
}

static void counting_starts_at_exec(void **state)
{
	struct reader_env env = counting_env("page-faults,task-clock");
	struct reader *r;
	int go[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_before_exec(go[0], 20000, "/bin/true");
	r = counting_open(&env, pid, true);
	assert_int_equal(counting_value(r, "page-faults"), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_in_range(counting_value(r, "page-faults"), 10, 10000);
	assert_in_range(counting_value(r, "task-clock"), 1, NSEC_PER_SEC);
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
	close(go[0]);
	close(go[1]);
}

static bool is_copied(const char *from, const char *to, mode_t mode)
{
	size_t bytes;
	char *data = file_read(from, &bytes);
	bool done = data && file_write(to, data, bytes) == 0 && chmod(to, mode) == 0;

	free(data);
	return done;
}

static const char *wait_for_loss(struct reader *r)
{
	const char *lost = NULL;

	for (int i = 0; i < 1000 && !lost; i++) {
		lost = perf_reader.lost(r);
		usleep(5000);
	}
	return lost;
}

static void a_set_user_id_program_takes_the_counters_away(void **state)
{
	struct reader_env env = counting_env("page-faults");
	char *dir = tmpdir_make(), *program = text_make("%s/sleep", dir);
	struct reader *r;
	pid_t pid;
	int go[2];

	(void)state;
	if (geteuid() != 0) {
		free(program);
		tmpdir_remove(dir);
		skip_because("needs root to make a set-user-ID program");
	}
	/* Owned by someone else than who runs it. */
	assert_true(is_copied("/bin/sleep", program, 0755));
	assert_int_equal(chown(program, NOBODY, NOBODY), 0);
	assert_int_equal(chmod(program, 04755), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_before_exec(go[0], 0, program);
	r = counting_open(&env, pid, true);
	assert_null(perf_reader.lost(r));
	assert_int_equal(write(go[1], "", 1), 1);
	assert_string_equal(wait_for_loss(r),
		"not counted: the kernel stops counting when a set-user-ID program starts");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
	close(go[0]);
	close(go[1]);
	free(program);
	tmpdir_remove(dir);
}

static void a_process_that_ended_keeps_its_counts_and_is_not_lost(void **state)
{
	struct reader_env env = counting_env("page-faults");
	struct worker w = worker_start();
	struct reader *r = counting_open(&env, w.pid, false);
	uint64_t last;

	(void)state;
	worker_order(&w, 'p', 100);
	assert_null(perf_reader.lost(r));
	kill(w.pid, SIGKILL);
	worker_end(&w);
	last = counting_value(r, "page-faults");
	assert_in_range(last, 100, 1000);
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
}

static void a_process_that_has_ended_is_refused(void **state)
{
	struct reader_env env = counting_env("page-faults");
	struct worker w = worker_start();
	char reason[READER_REASON_ROOM], *want = text_make("process %d has ended", (int)w.pid);
	struct reader *r = NULL;

	(void)state;
	worker_end(&w);
	for (int on_exec = 0; on_exec < 2; on_exec++) {
		struct reader_target target = {
			.env = &env, .pid = w.pid, .enable_on_exec = on_exec
		};

		assert_int_equal(perf_reader.open(&target, &r, reason), -ESRCH);
		assert_string_equal(reason, want);
	}
	free(want);
}

static void too_few_descriptors_are_an_error_with_the_fix(void **state)
{
	struct reader_env env = counting_env(NULL);
	struct worker w = worker_start();
	struct reader_target target = { .env = &env, .pid = w.pid };
	char reason[READER_REASON_ROOM];
	struct rlimit old, few;
	struct reader *r = NULL;
	int lowest, err;

	(void)state;
	assert_int_equal(perf_reader.probe(&env, reason), 0);
	lowest = dup(0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	/* Room to read the folder, but not for four events. */
	few.rlim_cur = (rlim_t)lowest + 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = perf_reader.open(&target, &r, reason);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	worker_end(&w);
	assert_int_equal(err, -EMFILE);
	assert_non_null(strstr(reason, "too many open files"));
	assert_non_null(strstr(reason, "ulimit -n"));
	assert_int_equal(dup(0), lowest);
	close(lowest);
}

static void single_events_read_as_their_group_does(void **state)
{
	struct perf_group group = {
		.count = 2,
		.counter = {
			{ .attr = { .type = PERF_TYPE_SOFTWARE,
				  .config = PERF_COUNT_SW_PAGE_FAULTS } },
			{ .attr = { .type = PERF_TYPE_SOFTWARE,
				  .config = PERF_COUNT_SW_TASK_CLOCK } },
		},
	};
	struct perf_where where = { .pid = 0, .cpu = -1, .start = PERF_START_NOW };
	struct perf_unit together, single;
	uint64_t sum[2][2] = { { 0 } }, times[2][2] = { { 0 } };

	(void)state;
	skip_with_tsan();
	touch_pages(1);
	assert_int_equal(perf_unit_open(&group, &where, &together), 0);
	where.single = true;
	assert_int_equal(perf_unit_open(&group, &where, &single), 0);
	assert_int_equal(perf_unit_add(&together, sum[0], times[0]), 0);
	assert_int_equal(perf_unit_add(&single, sum[1], times[1]), 0);
	touch_pages(50);
	sum[0][0] = -sum[0][0];
	sum[1][0] = -sum[1][0];
	assert_int_equal(perf_unit_add(&together, sum[0], times[0]), 0);
	assert_int_equal(perf_unit_add(&single, sum[1], times[1]), 0);
	assert_int_equal(sum[0][0], 50);
	assert_int_equal(sum[1][0], 50);
	assert_true(sum[1][1] > 0);
	assert_true(times[1][0] > 0 && times[1][0] == times[1][1]);
	perf_unit_close(&together);
	perf_unit_close(&single);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_pmu_hardware_events_are_absent_and_say_why),
		cmocka_unit_test(with_a_pmu_cycles_are_counted),
		cmocka_unit_test(fresh_pages_are_counted_exactly),
		cmocka_unit_test(children_are_counted_with_their_parent),
		cmocka_unit_test(threads_of_later_are_counted),
		cmocka_unit_test(all_threads_of_an_attached_process_are_counted),
		cmocka_unit_test(an_exec_by_another_thread_loses_nothing),
		cmocka_unit_test(counting_starts_at_exec),
		cmocka_unit_test(a_set_user_id_program_takes_the_counters_away),
		cmocka_unit_test(a_process_that_ended_keeps_its_counts_and_is_not_lost),
		cmocka_unit_test(a_process_that_has_ended_is_refused),
		cmocka_unit_test(too_few_descriptors_are_an_error_with_the_fix),
		cmocka_unit_test(single_events_read_as_their_group_does),
	};

	if (!counting_can((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE })) {
		print_message("skipped: needs root, or perf_event_paranoid at most 1\n");
		return 0;
	}
	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
