/* SPDX-License-Identifier: MIT */
/* Choosing events: more than there are counters, groups, names, absent ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

#define WORK BUILD_DIR "/guest/targets/work"

/* One event by twelve names, for a PMU that holds six at a time. */
static const char *const twelve[] = {
	"instructions:u",
	"r8:u",
	"r08:u",
	"r008:u",
	"r0008:u",
	"r00008:u",
	"r000008:u",
	"r0000008:u",
	"r00000008:u",
	"r000000008:u",
	"r0000000008:u",
	"r00000000008:u",
};

static char *join(const char *const *words, size_t count)
{
	char *all = strdup("");

	for (size_t i = 0; i < count; i++) {
		char *longer = text_make("%s%s%s", all, i ? "," : "", words[i]);

		free(all);
		all = longer;
	}
	return all;
}

static struct measured work_with(const char *events, const char *count, const char *length)
{
	return (struct measured){
		.options = { "-e", events },
		.argv = { WORK, "phases", count, length, "0" },
	};
}

static bool has_text(const char *text, const char *part)
{
	return text && strstr(text, part);
}

static void assert_text(const char *text, const char *part)
{
	if (!has_text(text, part))
		fail_msg("\"%s\" is not in: %s", part, text ? text : "(nothing)");
}

static void more_events_than_counters_are_scaled_to_within_a_hundredth(void **state)
{
	char *events = join(twelve, ARRAY_SIZE(twelve));
	struct measured m = work_with(events, "2", "100000000");
	size_t scaled = 0;

	(void)state;
	measure(&m);
	for (size_t i = 0; i < ARRAY_SIZE(twelve); i++) {
		for (size_t n = 0; n < 2; n++) {
			const struct row *row = phase_at(&m, n ? "p00001" : "p00000", 0);
			struct value v = value_of(&m, row, twelve[i]);

			assert_in_range(counted(&m, row, twelve[i]), 99000000, 101000000);
			if (!(v.flags & VALUE_SCALED))
				continue;
			scaled++;
			if (v.coverage < 0.3 || v.coverage > 0.8)
				fail_msg("%s was counted %.3f of the time", twelve[i], v.coverage);
		}
	}
	assert_int_equal(scaled, 2 * ARRAY_SIZE(twelve));
	measure_clear(&m);
	free(events);
}

/* The counters change hands every few milliseconds, a phase takes a tenth of one. */
static void a_group_that_never_ran_in_a_phase_is_not_counted_there(void **state)
{
	char *events = join(twelve, ARRAY_SIZE(twelve));
	struct measured m = work_with(events, "20", "100000");
	size_t never = 0, whole = 0;

	(void)state;
	measure(&m);
	for (size_t i = 0; i < m.model->row_count; i++) {
		const struct row *row = &m.model->rows[i];

		if (row->name[0] != 'p')
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(twelve); k++) {
			struct value v = value_of(&m, row, twelve[k]);

			if (v.state == VALUE_COUNTED && !(v.flags & VALUE_SCALED)) {
				whole++;
				assert_in_range(v.number, 100000, 105000);
			} else if (v.state == VALUE_NULL) {
				never++;
				assert_text(v.note, "its group never ran in this phase");
			}
		}
	}
	print_message("%zu values whole, %zu never counted\n", whole, never);
	assert_true(never > 0 && whole > 0);
	measure_clear(&m);
	free(events);
}

static void a_group_that_fits_shares_its_counters_with_none(void **state)
{
	struct measured m = work_with("{cycles:u,instructions:u,r8:u,r08:u}", "3", "1000000");

	(void)state;
	measure(&m);
	for (size_t i = 0; i < m.model->row_count; i++) {
		const struct row *row = &m.model->rows[i];
		uint64_t first = counted(&m, row, "instructions:u");

		assert_int_equal(counted(&m, row, "cycles:u"), first);
		assert_int_equal(counted(&m, row, "r8:u"), first);
		assert_int_equal(counted(&m, row, "r08:u"), first);
		assert_int_equal(value_of(&m, row, "r08:u").flags & VALUE_SCALED, 0);
	}
	measure_clear(&m);
}

/* One event, in phases of 40, 80, ... times what the target does. */
static void assert_exact(const char *mode, const char *event, uint64_t each)
{
	static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		char *chosen = text_make("JPHASE_EVENTS=%s", event);
		struct measured m = {
			.way = ways[w],
			.env = { chosen },
			.argv = { WORK, mode, "20", "40" },
		};

		measure(&m);
		assert_int_equal(m.child.code, 0);
		for (unsigned i = 0; i < 20; i++) {
			char *name = text_make("p%05u", i);

			assert_int_equal(counted(&m, phase_at(&m, name, 0), event), (i + 1) * each);
			free(name);
		}
		assert_int_equal(counted(&m, phase_at(&m, "finish", 0), event), 0);
		measure_clear(&m);
		free(chosen);
	}
}

static void a_breakpoint_counts_each_access(void **state)
{
	(void)state;
	assert_exact("accesses", "mem:0x10000000:w", 40);
	assert_exact("accesses", "mem:0x10000000/4:r:u", 20);
	assert_exact("accesses", "mem:0x10000000/8", 60);
}

static void a_tracepoint_counts_each_call(void **state)
{
	(void)state;
	assert_exact("calls", "syscalls:sys_enter_getppid", 40);
}

static void assert_refused(const char *events, const char *name, const char *why)
{
	struct child r = { .argv = { JPHASE, "run", "-o", "/tmp/refused.msgpack", "-e", events,
				   "--", "echo", "started" } };

	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 125);
	assert_string_equal(r.out, "");
	assert_text(r.err, name);
	assert_text(r.err, why);
	run_clear(&r);
}

static void a_group_too_large_for_the_pmu_is_refused_by_name(void **state)
{
	char *seven = join(twelve, 7);
	char *group = text_make("{%s}", seven);

	(void)state;
	assert_refused(group, "\"r000008:u\"", "does not fit beside the others");
	free(group);
	free(seven);
}

static void an_event_that_does_not_exist_is_refused_with_a_suggestion(void **state)
{
	(void)state;
	assert_refused("INST_RETIREDD", "\"INST_RETIREDD\"", "INST_RETIRED");
	assert_refused("arm_n1::NONSENSE", "\"arm_n1::NONSENSE\"", "no such event");
	assert_refused("mem:0x10000001/8", "\"mem:0x10000001/8\"", "both sides of a multiple");
	assert_refused("mem:0x10000000:wx", "\"mem:0x10000000:wx\"", "the processor cannot watch");
}

static void names_of_the_pmu_count_as_the_generic_ones_do(void **state)
{
	static const char *const names[] = { "INST_RETIRED:u", "arm_n1::INST_RETIRED:u",
		"arm_n1::CPU_CYCLES:u", "PERF_COUNT_HW_INSTRUCTIONS:u", "cpu-cycles:u" };
	char *events = join(names, ARRAY_SIZE(names));
	char *all = text_make("instructions:u,%s", events);
	struct measured m = work_with(all, "3", "1000000");

	(void)state;
	measure(&m);
	for (size_t i = 0; i < m.model->row_count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			assert_int_equal(counted(&m, &m.model->rows[i], names[k]),
				counted(&m, &m.model->rows[i], "instructions:u"));
	measure_clear(&m);
	free(all);
	free(events);
}

static void events_that_the_pmu_lacks_are_not_counted_and_say_so(void **state)
{
	static const char *const names[] = { "CACHE_MISSES", "BRANCH_MISSES" };
	struct measured m = work_with("cache-misses,branch-misses,instructions:u", "3", "1000000");

	(void)state;
	measure(&m);
	for (size_t i = 0; i < m.model->row_count; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			struct value v = value_of(&m, &m.model->rows[i], names[k]);

			assert_int_equal(v.state, VALUE_NULL);
			assert_text(v.note, "the PMU lacks this event");
		}
		counted(&m, &m.model->rows[i], "instructions:u");
	}
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_events_than_counters_are_scaled_to_within_a_hundredth),
		cmocka_unit_test(a_group_that_never_ran_in_a_phase_is_not_counted_there),
		cmocka_unit_test(a_breakpoint_counts_each_access),
		cmocka_unit_test(a_tracepoint_counts_each_call),
		cmocka_unit_test(a_group_that_fits_shares_its_counters_with_none),
		cmocka_unit_test(a_group_too_large_for_the_pmu_is_refused_by_name),
		cmocka_unit_test(an_event_that_does_not_exist_is_refused_with_a_suggestion),
		cmocka_unit_test(names_of_the_pmu_count_as_the_generic_ones_do),
		cmocka_unit_test(events_that_the_pmu_lacks_are_not_counted_and_say_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
