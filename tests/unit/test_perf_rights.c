/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/perf_plan.h"
#include "support/counting.h"
#include "support/proc.h"

#define NOBODY 65534

/* Runs the claim as a process without any right; what fails in it is printed. */
static void as_nobody(void (*claim)(pid_t root))
{
	struct worker w = worker_start();
	struct reader_env env = counting_env(NULL);
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
	const struct metric *m = counting_metric(list, name);

	REQUIRE(m);
	REQUIRE(note ? m->note && str_eq(m->note, note) : !m->note);
	REQUIRE(absent ? m->absent && str_eq(m->absent, absent) : !m->absent);
}

static void claim_defaults(pid_t root)
{
	static const char kernel[] =
		"not counted: it happens in the kernel, and perf_event_paranoid is 2: set it to 1 or "
		"give jphase CAP_PERFMON (jphase doctor)";
	struct reader_env env = counting_env(NULL);
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
	if (!counting_has_pmu())
		require_metric(&list, "CPU_CYCLES", NULL, "not counted: no hardware counters here");
	else
		require_metric(&list, "CPU_CYCLES:u", NULL, NULL);
	require_metric(&list, "task-clock", NULL, NULL);
	require_metric(&list, "page-faults:u", "faults inside system calls are missing", NULL);
	require_metric(&list, "context-switches", NULL, kernel);
	require_metric(&list, "cpu-migrations", NULL, kernel);
	touch_pages(10);
	REQUIRE(perf_reader.read(r, before) == 0);
	touch_pages(30);
	REQUIRE(perf_reader.read(r, after) == 0);
	REQUIRE(after[5] - before[5] == 30);
	REQUIRE(after[6] == VALUE_ABSENT);
	metric_list_clear(&list);
	perf_reader.close(r);
}

static void require_refusal(const char *events, const char *want)
{
	struct reader_env env = counting_env(events);
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
	struct reader_env env = counting_env("page-faults");
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
		cmocka_unit_test(without_rights_user_space_is_counted_and_named_so),
		cmocka_unit_test(without_rights_named_kernel_events_are_refused_with_the_fix),
		cmocka_unit_test(without_rights_a_foreign_process_is_refused),
	};

	if (!counting_can((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE })) {
		print_message("skipped: needs root, or perf_event_paranoid at most 1\n");
		return 0;
	}
	return cmocka_run_group_tests_name("perf_rights", tests, NULL, NULL);
}
