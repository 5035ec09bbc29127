/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/counting.h"
#include "support/proc.h"

/* Which events the perf reader takes, and in which groups. */

static void the_default_list_has_the_four_and_the_software_events(void **state)
{
	static const char *const names[] = { "CPU_CYCLES", "INSTRUCTIONS", "CACHE_MISSES",
		"BRANCH_MISSES", "task-clock", "page-faults", "context-switches",
		"cpu-migrations" };
	struct reader_env env = counting_env(NULL);
	struct reader *r = counting_open(&env, getpid(), false);
	struct metric_list list = counting_described(r);

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
	r = counting_open(&env, w.pid, false);
	list = counting_described(r);
	assert_int_equal(list.groups, 2);
	assert_int_equal(list.metric[0].scope, SCOPE_PROCESS);
	assert_int_equal(list.metric[1].scope, SCOPE_GLOBAL);
	before = counting_value(r, "wide/config=2/");
	/* Faults of another process, wherever it runs. */
	touch_pages(500);
	assert_true(counting_value(r, "wide/config=2/") - before >= 500);
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
		struct reader *r = counting_open(&env, getpid(), false);
		struct metric_list list = counting_described(r);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_list_has_the_four_and_the_software_events),
		cmocka_unit_test(wrong_events_are_refused_by_probe),
		cmocka_unit_test(events_of_the_machine_are_summed_over_their_cpus),
		cmocka_unit_test(groups_are_as_the_user_and_the_pmus_want),
		cmocka_unit_test(braces_that_cannot_be_are_refused_by_name),
	};

	if (!counting_can((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE })) {
		print_message("skipped: needs root, or perf_event_paranoid at most 1\n");
		return 0;
	}
	return cmocka_run_group_tests_name("perf_plan", tests, NULL, NULL);
}
