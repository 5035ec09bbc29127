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
#include "readers/perf_scale.h"
#include "readers/perf_unit.h"
#include "readers/reader.h"
#include "support/proc.h"

#define NOBODY 65534

static struct reader_env env_for(const char *events)
{
	return (struct reader_env){ .proc_root = "/proc", .sys_root = "/sys", .events = events };
}

/*
 * A process that does what it is told, one byte and a number at a time: touch
 * so many fresh pages; do the same in two children; start a thread that does.
 */
struct order {
	char what;
	int pages;
};

struct worker {
	pid_t pid;
	int orders, answers;
};

static __attribute__((no_sanitize("address"))) void touch(int pages)
{
	size_t bytes = (size_t)pages * 4096;
	volatile char *area =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == 0 || area == MAP_FAILED)
		return;
	madvise((void *)area, bytes, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		area[(size_t)i * 4096] = 1;
	munmap((void *)area, bytes);
}

static void touch_in_children(int pages)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			touch(pages);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *touch_in_thread(void *pages)
{
	touch(*(int *)pages);
	return NULL;
}

static void obey(int orders, int answers)
{
	struct order order;
	pthread_t thread;

	while (read(orders, &order, sizeof(order)) == sizeof(order)) {
		if (order.what == 'c')
			touch_in_children(order.pages);
		else if (order.what == 't' &&
			 pthread_create(&thread, NULL, touch_in_thread, &order.pages) == 0)
			pthread_join(thread, NULL);
		else
			touch(order.pages);
		if (write(answers, "", 1) != 1)
			break;
	}
}

static struct worker worker_start(void)
{
	int orders[2], answers[2];
	struct worker w;

	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	w.pid = fork();
	assert_true(w.pid >= 0);
	if (w.pid == 0) {
		close(orders[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		obey(orders[0], answers[1]);
		_exit(0);
	}
	close(orders[0]);
	close(answers[1]);
	w.orders = orders[1];
	w.answers = answers[0];
	return w;
}

static void worker_order(const struct worker *w, char what, int pages)
{
	struct order order = { what, pages };
	char answer;

	assert_int_equal(write(w->orders, &order, sizeof(order)), sizeof(order));
	assert_int_equal(read(w->answers, &answer, 1), 1);
}

static void worker_end(struct worker *w)
{
	close(w->orders);
	close(w->answers);
	waitpid(w->pid, NULL, 0);
}

static struct reader *reader_open(const struct reader_env *env, pid_t pid, bool enable_on_exec)
{
	struct reader_target target = { .env = env, .pid = pid, .enable_on_exec = enable_on_exec };
	char reason[READER_REASON_ROOM] = "";
	struct reader *r = NULL;

	if (perf_reader.open(&target, &r, reason) < 0)
		print_message("%s\n", reason);
	assert_non_null(r);
	return r;
}

static struct metric_list described(const struct reader *r)
{
	struct metric_list list = { 0 };

	assert_int_equal(perf_reader.describe(r, &list), 0);
	return list;
}

static const struct metric *metric_find(const struct metric_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->metric[i].name, name))
			return &list->metric[i];
	return NULL;
}

static uint64_t value_read(struct reader *r, const char *name)
{
	struct metric_list list = described(r);
	const struct metric *m = metric_find(&list, name);
	uint64_t values[64], value;

	assert_non_null(m);
	assert_true(metric_list_values(&list) <= ARRAY_SIZE(values));
	assert_int_equal(perf_reader.read(r, values), 0);
	value = values[m - list.metric];
	metric_list_clear(&list);
	return value;
}

/* What the counter of the page faults says that an order cost. */
static uint64_t faults_of(struct reader *r, const struct worker *w, char what, int pages)
{
	uint64_t before = value_read(r, "page-faults");

	worker_order(w, what, pages);
	return value_read(r, "page-faults") - before;
}

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

static void the_default_list_has_the_four_and_the_software_events(void **state)
{
	static const char *const names[] = { "CPU_CYCLES", "INSTRUCTIONS", "CACHE_MISSES",
		"BRANCH_MISSES", "task-clock", "page-faults", "context-switches",
		"cpu-migrations" };
	struct reader_env env = env_for(NULL);
	struct reader *r = reader_open(&env, getpid(), false);
	struct metric_list list = described(r);

	(void)state;
	assert_int_equal(list.count, ARRAY_SIZE(names));
	for (size_t i = 0; i < list.count; i++) {
		assert_string_equal(list.metric[i].name, names[i]);
		assert_int_equal(list.metric[i].kind, METRIC_COUNTER);
		assert_int_equal(list.metric[i].scope, SCOPE_PROCESS);
		assert_int_equal(list.metric[i].unit, i == 4 ? UNIT_NS : UNIT_COUNT);
	}
	for (size_t i = 4; i < 8; i++) {
		assert_null(list.metric[i].absent);
		assert_int_equal(list.metric[i].group, list.metric[4].group);
	}
	metric_list_clear(&list);
	perf_reader.close(r);
}

static bool can_open(struct perf_event_attr attr)
{
	struct perf_group group = { .count = 1, .counter[0].attr = attr };
	struct perf_where where = { .pid = 0, .cpu = -1 };
	struct perf_unit unit;

	if (perf_unit_open(&group, &where, &unit) < 0)
		return false;
	perf_unit_close(&unit);
	return true;
}

static bool has_pmu(void)
{
	return can_open(
		(struct perf_event_attr){ .type = PERF_TYPE_HARDWARE, .exclude_kernel = 1 });
}

static void without_a_pmu_hardware_events_are_absent_and_say_why(void **state)
{
	struct reader_env env = env_for("cycles,L1-dcache-loads,r00c0,instructions:u,page-faults");
	static const char *const names[] = { "CPU_CYCLES", "L1-dcache-loads", "r00c0",
		"instructions:u" };
	struct metric_list list;
	uint64_t values[16];
	struct reader *r;

	(void)state;
	if (has_pmu())
		skip_because("this machine has hardware counters");
	r = reader_open(&env, getpid(), false);
	list = described(r);
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
	struct reader_env env = env_for("cycles");
	struct reader *r;
	uint64_t before;

	(void)state;
	if (!has_pmu())
		skip_because("this machine has no hardware counters");
	r = reader_open(&env, getpid(), false);
	before = value_read(r, "CPU_CYCLES");
	touch(100);
	assert_true(value_read(r, "CPU_CYCLES") > before);
	perf_reader.close(r);
}

static void fresh_pages_are_counted_exactly(void **state)
{
	static const int pages[] = { 100, 300, 50, 1, 0, 700 };
	struct reader_env env = env_for(NULL);
	struct worker w = worker_start();
	struct reader *r;

	(void)state;
	skip_with_tsan();
	worker_order(&w, 'p', 1);
	r = reader_open(&env, w.pid, false);
	faults_of(r, &w, 'p', 1);
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		assert_int_equal(faults_of(r, &w, 'p', pages[i]), pages[i]);
	perf_reader.close(r);
	worker_end(&w);
}

static void children_are_counted_with_their_parent(void **state)
{
	struct reader_env env = env_for("page-faults");
	struct worker w = worker_start();
	struct reader *r = reader_open(&env, w.pid, false);
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
	struct reader_env env = env_for("page-faults");
	struct worker w = worker_start();
	struct reader *r = reader_open(&env, w.pid, false);
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
	obey(((int *)pipes)[0], ((int *)pipes)[1]);
	return NULL;
}

static void crew_run(int pipes[4][2])
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < 4; i++)
		pthread_create(&thread, NULL, obey_in_thread, pipes[i]);
	obey(pipes[0][0], pipes[0][1]);
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
	struct reader_env env = env_for("page-faults,task-clock");
	struct crew c = crew_start();
	struct reader *r;

	(void)state;
	skip_with_tsan();
	for (int i = 0; i < 8; i++)
		worker_order(&c.thread[i % 4], 'p', 1);
	r = reader_open(&env, c.pid, false);
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
	struct reader_env env = env_for("page-faults,task-clock");
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
	r = reader_open(&env, pid, false);
	assert_int_equal(write(go[1], "", 1), 1);
	before = value_read(r, "task-clock");
	while (value_read(r, "task-clock") - before < 200 * NSEC_PER_MSEC) {
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
			touch(pages);
		execl(program, program, "5", NULL);
		_exit(127);
	}
	return pid;
}

static void counting_starts_at_exec(void **state)
{
	struct reader_env env = env_for("page-faults,task-clock");
	struct reader *r;
	int go[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = start_before_exec(go[0], 20000, "/bin/true");
	r = reader_open(&env, pid, true);
	assert_int_equal(value_read(r, "page-faults"), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_in_range(value_read(r, "page-faults"), 10, 10000);
	assert_in_range(value_read(r, "task-clock"), 1, NSEC_PER_SEC);
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
	struct reader_env env = env_for("page-faults");
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
	r = reader_open(&env, pid, true);
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
	struct reader_env env = env_for("page-faults");
	struct worker w = worker_start();
	struct reader *r = reader_open(&env, w.pid, false);
	uint64_t last;

	(void)state;
	worker_order(&w, 'p', 100);
	assert_null(perf_reader.lost(r));
	kill(w.pid, SIGKILL);
	worker_end(&w);
	last = value_read(r, "page-faults");
	assert_in_range(last, 100, 1000);
	assert_null(perf_reader.lost(r));
	perf_reader.close(r);
}

static void a_process_that_has_ended_is_refused(void **state)
{
	struct reader_env env = env_for("page-faults");
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
	struct reader_env env = env_for(NULL);
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
	touch(1);
	assert_int_equal(perf_unit_open(&group, &where, &together), 0);
	where.single = true;
	assert_int_equal(perf_unit_open(&group, &where, &single), 0);
	assert_int_equal(perf_unit_add(&together, sum[0], times[0]), 0);
	assert_int_equal(perf_unit_add(&single, sum[1], times[1]), 0);
	touch(50);
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

/* PMUs of our own making, which the kernel takes for its software events. */
static char *fake_sys(void)
{
	char *dir = tmpdir_make();
	struct child r = { .argv = { NULL } };

	assert_int_equal(run_shell(&r,
				 "cd %s && mkdir -p bus/event_source/devices && "
				 "cd bus/event_source/devices && mkdir -p a wide msr && "
				 "echo 1 >a/type && echo 1 >wide/type && echo 0-1 >wide/cpumask && "
				 "cat /sys/bus/event_source/devices/msr/type >msr/type || "
				 "echo 99 >msr/type",
				 dir),
		0);
	run_clear(&r);
	return dir;
}

static void probe_refuses(const char *sys_root, const char *events, int err, const char *want)
{
	struct reader_env env = { .proc_root = "/proc", .sys_root = sys_root, .events = events };
	char reason[READER_REASON_ROOM] = "";

	assert_int_equal(perf_reader.probe(&env, reason), err);
	assert_string_equal(reason, want);
}

static void wrong_events_are_refused_by_probe(void **state)
{
	(void)state;
	probe_refuses(
		"/sys", "", -EINVAL, "the event list is empty (jphase list shows the events)");
	probe_refuses("/sys", "cycels", -ENOENT,
		"cannot count \"cycels\": no such event; did you mean \"cycles\"? (jphase list shows "
		"all)");
}

static void events_of_the_machine_are_summed_over_their_cpus(void **state)
{
	char *sys = fake_sys();
	struct reader_env env = {
		.proc_root = "/proc", .sys_root = sys, .events = "page-faults,wide/config=2/"
	};
	struct worker w = worker_start();
	struct metric_list list;
	struct reader *r;
	uint64_t before;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		worker_end(&w);
		tmpdir_remove(sys);
		skip_because("needs two CPUs");
	}
	r = reader_open(&env, w.pid, false);
	list = described(r);
	assert_int_equal(list.groups, 2);
	assert_int_equal(list.metric[0].scope, SCOPE_PROCESS);
	assert_int_equal(list.metric[1].scope, SCOPE_GLOBAL);
	before = value_read(r, "wide/config=2/");
	/* Faults of another process, wherever it runs. */
	touch(500);
	assert_true(value_read(r, "wide/config=2/") - before >= 500);
	metric_list_clear(&list);
	perf_reader.close(r);
	worker_end(&w);
	tmpdir_remove(sys);
}

static void groups_are_as_the_user_and_the_pmus_want(void **state)
{
	static const struct {
		const char *events;
		int group[5];
		size_t groups;
	} right[] = {
		{ "page-faults,task-clock", { 0, 0 }, 1 },
		{ "{page-faults},{task-clock}", { 0, 1 }, 2 },
		{ "page-faults,a/config=2/,task-clock,a/config=3/", { 0, 1, 0, 1 }, 2 },
		{ "{page-faults,a/config=2/},task-clock", { 0, 0, 1 }, 2 },
		{ "{a/config=2/,page-faults,a/config=3/}", { 0, 0, 0 }, 1 },
		{ "a/config=2/,wide/config=2/,wide/config=3/", { 0, 1, 1 }, 2 },
	};
	char *sys = fake_sys();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		struct reader_env env = {
			.proc_root = "/proc", .sys_root = sys, .events = right[i].events
		};
		struct reader *r = reader_open(&env, getpid(), false);
		struct metric_list list = described(r);

		assert_int_equal(list.groups, right[i].groups);
		for (size_t j = 0; j < list.count; j++)
			assert_int_equal(list.metric[j].group, right[i].group[j]);
		metric_list_clear(&list);
		perf_reader.close(r);
	}
	tmpdir_remove(sys);
}

static void braces_that_cannot_be_are_refused_by_name(void **state)
{
	char *sys = fake_sys(), *many = text_make("{page-faults"), *longer;
	char reason[READER_REASON_ROOM];
	struct reader_env env = { .proc_root = "/proc", .sys_root = sys };

	(void)state;
	probe_refuses(sys, "{a/config=2/,wide/config=2/}", -EINVAL,
		"cannot count {a/config=2/,wide/config=2/} as one group: \"wide/config=2/\" belongs to "
		"another PMU; leave the braces out");
	for (int i = 0; i < 40; i++) {
		longer = text_make("%s,a/config=9,config1=%d/", many, i);
		free(many);
		many = longer;
	}
	longer = text_make("%s}", many);
	env.events = longer;
	assert_int_equal(perf_reader.probe(&env, reason), -EINVAL);
	assert_non_null(strstr(reason, "does not fit beside the others; leave the braces out"));
	env.events = many + 1;
	assert_int_equal(perf_reader.probe(&env, reason), 0);
	free(many);
	free(longer);
	tmpdir_remove(sys);
}

/* Runs the claim as a process without any right; what fails in it is printed. */
static void as_nobody(void (*claim)(pid_t root))
{
	struct worker w = worker_start();
	struct reader_env env = env_for(NULL);
	int status;
	pid_t pid;

	if (geteuid() != 0 || perf_paranoid(&env) != 2) {
		worker_end(&w);
		skip_because("needs root, and perf_event_paranoid at 2");
	}
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(2);
		/* Else /proc/self stays root's. */
		prctl(PR_SET_DUMPABLE, 1);
		claim(w.pid);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	worker_end(&w);
	assert_int_equal(status, 0);
}

/* The asserts of cmocka jump out of the child: these end it. */
#define REQUIRE(what)                                                                              \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void require_metric(
	const struct metric_list *list, const char *name, const char *note, const char *absent)
{
	const struct metric *m = metric_find(list, name);

	REQUIRE(m);
	REQUIRE(note ? m->note && str_eq(m->note, note) : !m->note);
	REQUIRE(absent ? m->absent && str_eq(m->absent, absent) : !m->absent);
}

static void claim_defaults(pid_t root)
{
	static const char kernel[] =
		"not counted: it happens in the kernel, and perf_event_paranoid is 2: set it to 1 or "
		"give jphase CAP_PERFMON (jphase doctor)";
	struct reader_env env = env_for(NULL);
	struct reader_target target = { .env = &env, .pid = getpid() };
	char reason[READER_REASON_ROOM];
	struct metric_list list = { 0 };
	struct reader *r;
	uint64_t before[16], after[16];

	(void)root;
	REQUIRE(perf_reader.probe(&env, reason) == 0);
	REQUIRE(perf_reader.open(&target, &r, reason) == 0);
	REQUIRE(perf_reader.describe(r, &list) == 0);
	REQUIRE(list.count == 8);
	if (!has_pmu())
		require_metric(&list, "CPU_CYCLES", NULL, "not counted: no hardware counters here");
	else
		require_metric(&list, "CPU_CYCLES:u", NULL, NULL);
	require_metric(&list, "task-clock", NULL, NULL);
	require_metric(&list, "page-faults:u", "faults inside system calls are missing", NULL);
	require_metric(&list, "context-switches", NULL, kernel);
	require_metric(&list, "cpu-migrations", NULL, kernel);
	touch(10);
	REQUIRE(perf_reader.read(r, before) == 0);
	touch(30);
	REQUIRE(perf_reader.read(r, after) == 0);
	REQUIRE(after[5] - before[5] == 30);
	REQUIRE(after[6] == VALUE_ABSENT);
	metric_list_clear(&list);
	perf_reader.close(r);
}

static void require_refusal(const char *events, const char *want)
{
	struct reader_env env = env_for(events);
	char reason[READER_REASON_ROOM] = "";

	REQUIRE(perf_reader.probe(&env, reason) < 0);
	if (!str_eq(reason, want))
		fprintf(stderr, "%s\n", reason);
	REQUIRE(str_eq(reason, want));
}

static void claim_refusals(pid_t root)
{
	(void)root;
	require_refusal("context-switches",
		"cannot count \"context-switches\": it happens in the kernel, and "
		"perf_event_paranoid is 2: set it to 1 or give jphase CAP_PERFMON (jphase doctor)");
	require_refusal("page-faults:k",
		"cannot count \"page-faults:k\": it counts in the kernel, and perf_event_paranoid is "
		"2: set it to 1 or give jphase CAP_PERFMON (jphase doctor)");
	require_refusal("page-faults:u,page-faults",
		"cannot count \"page-faults\": only user space is counted here, as it is for another "
		"event of the list");
}

static void claim_foreign_process(pid_t root)
{
	struct reader_env env = env_for("page-faults");
	struct reader_target target = { .env = &env, .pid = root };
	char reason[READER_REASON_ROOM] = "";
	struct reader *r;

	REQUIRE(perf_reader.open(&target, &r, reason) == -EACCES);
	REQUIRE(strstr(reason, "the kernel refuses counters of process"));
}

static void without_rights_user_space_is_counted_and_named_so(void **state)
{
	(void)state;
	skip_with_tsan();
	as_nobody(claim_defaults);
}

static void without_rights_named_kernel_events_are_refused_with_the_fix(void **state)
{
	(void)state;
	as_nobody(claim_refusals);
}

static void without_rights_a_foreign_process_is_refused(void **state)
{
	(void)state;
	as_nobody(claim_foreign_process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scale_extrapolates_partial_schedule),
		cmocka_unit_test(scale_knows_nothing_ran_from_not_counted),
		cmocka_unit_test(scale_holds_products_beyond_64_bits),
		cmocka_unit_test(the_default_list_has_the_four_and_the_software_events),
		cmocka_unit_test(without_a_pmu_hardware_events_are_absent_and_say_why),
		cmocka_unit_test(with_a_pmu_cycles_are_counted),
		cmocka_unit_test(fresh_pages_are_counted_exactly),
		cmocka_unit_test(children_are_counted_with_their_parent),
		cmocka_unit_test(threads_of_later_are_counted),
		cmocka_unit_test(all_threads_of_an_attached_process_are_counted),
		cmocka_unit_test(counting_starts_at_exec),
		cmocka_unit_test(an_exec_by_another_thread_loses_nothing),
		cmocka_unit_test(a_set_user_id_program_takes_the_counters_away),
		cmocka_unit_test(a_process_that_ended_keeps_its_counts_and_is_not_lost),
		cmocka_unit_test(a_process_that_has_ended_is_refused),
		cmocka_unit_test(too_few_descriptors_are_an_error_with_the_fix),
		cmocka_unit_test(single_events_read_as_their_group_does),
		cmocka_unit_test(wrong_events_are_refused_by_probe),
		cmocka_unit_test(events_of_the_machine_are_summed_over_their_cpus),
		cmocka_unit_test(groups_are_as_the_user_and_the_pmus_want),
		cmocka_unit_test(braces_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(without_rights_user_space_is_counted_and_named_so),
		cmocka_unit_test(without_rights_named_kernel_events_are_refused_with_the_fix),
		cmocka_unit_test(without_rights_a_foreign_process_is_refused),
	};

	if (!can_open((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE })) {
		print_message("skipped: needs root, or perf_event_paranoid at most 1\n");
		return 0;
	}
	return cmocka_run_group_tests_name("perf", tests, NULL, NULL);
}
