/* SPDX-License-Identifier: MIT */
/* Which events the kernel can sample at a region's markers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "internal/util.h"
#include "readers/perf_thread.h"

/* Each word is a group: "h" of the processor, "s" of software, "m" of the machine. */
struct fixture {
	struct metric metric[PERF_GROUP_MAX];
	struct perf_group group[4];
	struct pmu_cpus cpus;
	struct perf_plan plan;
};

static void add_group(struct fixture *f, char kind, const char *const *names, size_t count)
{
	struct perf_group *g = &f->group[f->plan.metrics.groups++];

	g->software = kind == 's';
	g->cpus = kind == 'm' ? &f->cpus : NULL;
	for (size_t i = 0; i < count; i++) {
		f->metric[f->plan.metrics.count].name = (char *)(uintptr_t)names[i];
		g->counter[g->count++].metric = f->plan.metrics.count++;
	}
	f->plan.group = f->group;
	f->plan.metrics.metric = f->metric;
}

static const char *const four[] = { "cycles", "instructions:u", "r11", "r12" };

static void one_group_of_the_processor_can_be_sampled(void **state)
{
	struct fixture f = { .plan.single = false };
	char reason[READER_REASON_ROOM] = "";

	(void)state;
	add_group(&f, 's', four, 2);
	add_group(&f, 'h', four, 4);
	add_group(&f, 'm', four, 1);
	assert_int_equal(perf_thread_can_sample(&f.plan, reason), 0);
	assert_string_equal(reason, "");
}

static void what_does_not_fit_beside_is_refused_by_name(void **state)
{
	struct fixture f = { .plan.single = false };
	char reason[READER_REASON_ROOM] = "";

	(void)state;
	add_group(&f, 'h', four, 2);
	add_group(&f, 's', four, 1);
	add_group(&f, 'h', four + 2, 2);
	assert_int_equal(perf_thread_can_sample(&f.plan, reason), -EINVAL);
	assert_string_equal(reason,
		"r11, r12: more than the processor counts at once, of which the kernel can sample "
		"no more; choose fewer events or --mode sync");
}

static void many_names_are_cut(void **state)
{
	static const char *const one[] = { "a_rather_long_name_of_an_event_of_some_pmu" };
	struct fixture f = { .plan.single = false };
	char reason[READER_REASON_ROOM] = "";

	(void)state;
	add_group(&f, 'h', four, 4);
	add_group(&f, 'h', one, 1);
	add_group(&f, 'h', one, 1);
	f.group[2].count = 6;
	assert_int_equal(perf_thread_can_sample(&f.plan, reason), -EINVAL);
	assert_non_null(strstr(reason, "pmu, a_rather"));
	assert_non_null(strstr(reason, "...: more than"));
	assert_non_null(strstr(reason, "--mode sync"));
}

static void single_events_cannot_be_sampled(void **state)
{
	struct fixture f = { .plan.single = true };
	char reason[READER_REASON_ROOM] = "";

	(void)state;
	add_group(&f, 's', four, 2);
	assert_int_equal(perf_thread_can_sample(&f.plan, reason), -EINVAL);
	assert_string_equal(reason, "this kernel reads no groups of events");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_group_of_the_processor_can_be_sampled),
		cmocka_unit_test(what_does_not_fit_beside_is_refused_by_name),
		cmocka_unit_test(many_names_are_cut),
		cmocka_unit_test(single_events_cannot_be_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
