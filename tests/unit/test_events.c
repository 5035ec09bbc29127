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

#include "internal/util.h"
#include "readers/event_names.h"
#include "readers/events.h"
#include "support/proc.h"

static const struct reader_env hybrid = {
	.proc_root = "/proc",
	.sys_root = FIXTURE("sys-hybrid"),
};

static const struct reader_env bare = { .proc_root = "/proc", .sys_root = "/nonexistent" };

static int resolve(const struct reader_env *env, const char *text, struct events *ret,
	char reason[READER_REASON_ROOM])
{
	struct event_words words;
	int err;

	err = events_parse(text, &words, reason);
	if (err < 0)
		return err;
	err = events_resolve(env, &words, ret, reason);
	event_words_clear(&words);
	return err;
}

static void lists_are_split(void **state)
{
	static const struct {
		const char *text;
		const struct event_word word[4];
	} right[] = {
		{ "cycles", { { "cycles", "cycles", false, false, -1 } } },
		{ " a , b\n", { { "a", "a", false, false, -1 }, { "b", "b", false, false, -1 } } },
		{ "a:u,b:k,c:uk",
			{ { "a:u", "a", true, false, -1 }, { "b:k", "b", false, true, -1 },
				{ "c:uk", "c", false, false, -1 } } },
		{ "{a,b},c,{d}",
			{ { "a", "a", false, false, 0 }, { "b", "b", false, false, 0 },
				{ "c", "c", false, false, -1 }, { "d", "d", false, false, 1 } } },
		{ "{ a }", { { "a", "a", false, false, 0 } } },
		{ "p/a=1,b/,q/c/u,r/d/:k", { { "p/a=1,b/", "p/a=1,b/", false, false, -1 },
						   { "q/c/u", "q/c/", true, false, -1 },
						   { "r/d/:k", "r/d/", false, true, -1 } } },
		{ "sched:sched_switch",
			{ { "sched:sched_switch", "sched:sched_switch", false, false, -1 } } },
		{ "skl::A:B:u", { { "skl::A:B:u", "skl::A:B", true, false, -1 } } },
		{ ":u", { { ":u", ":u", false, false, -1 } } },
		{ "mem:0x10/4:w,mem:16:r:u",
			{ { "mem:0x10/4:w", "mem:0x10/4:w", false, false, -1 },
				{ "mem:16:r:u", "mem:16:r", true, false, -1 } } },
		{ "{mem:0x10/4,a}", { { "mem:0x10/4", "mem:0x10/4", false, false, 0 },
					    { "a", "a", false, false, 0 } } },
	};
	char reason[READER_REASON_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		struct event_words words;
		size_t count = 0;

		assert_int_equal(events_parse(right[i].text, &words, reason), 0);
		for (; count < 4 && right[i].word[count].text; count++) {
			const struct event_word *want = &right[i].word[count];

			assert_true(count < words.count);
			assert_string_equal(words.word[count].text, want->text);
			assert_string_equal(words.word[count].name, want->name);
			assert_int_equal(words.word[count].user, want->user);
			assert_int_equal(words.word[count].kernel, want->kernel);
			assert_int_equal(words.word[count].brace, want->brace);
		}
		assert_int_equal(words.count, count);
		event_words_clear(&words);
	}
}

static void wrong_lists_are_refused_in_one_sentence(void **state)
{
	static const char *const wrong[][2] = {
		{ "", "the event list is empty (jphase list shows the events)" },
		{ " \t", "the event list is empty (jphase list shows the events)" },
		{ ",", "an event is missing in the list before \",\"" },
		{ "a,,b", "an event is missing in the list before \",b\"" },
		{ "a,", "an event is missing in the list before \"its end\"" },
		{ "{}", "an event is missing in the list before \"}\"" },
		{ "{a,b", "a \"{\" in the event list has no \"}\"" },
		{ "a}", "a \"}\" in the event list has no \"{\"" },
		{ "{a,{b}}", "a group of events cannot hold another: \"{b}}\"" },
		{ "{a}b", "a comma is missing in the event list before \"b\"" },
		{ "a{b}", "a comma is missing in the event list before \"{b}\"" },
		{ "{a}:u", "a comma is missing in the event list before \":u\"" },
		{ "cpu/a", "cannot count \"cpu/a\": it is written PMU/EVENT,TERM=VALUE/ with two "
			   "slashes" },
		{ "cpu/a/b/", "cannot count \"cpu/a/b/\": it is written PMU/EVENT,TERM=VALUE/ with "
			      "two slashes" },
		{ "cpu/a/p", "cannot count \"cpu/a/p\": \"p\" is no modifier; u (user space) and k "
			     "(kernel) are" },
		{ "cpu/a/:", "cannot count \"cpu/a/:\": \"\" is no modifier; u (user space) and k "
			     "(kernel) are" },
		{ "\033[2J,", "an event is missing in the list before \"its end\"" },
	};
	char reason[READER_REASON_ROOM];
	struct event_words words;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(events_parse(wrong[i][0], &words, reason), -EINVAL);
		assert_string_equal(reason, wrong[i][1]);
	}
}

static void any_text_is_parsed_or_refused(void **state)
{
	static const char letters[] = "ab:uk/{},= \033\xff";
	char reason[READER_REASON_ROOM];
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct event_words words;
		char text[32] = "";

		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			random = random * 1664525 + 1013904223;
			text[i] = letters[(random >> 16) % sizeof(letters)];
		}
		reason[0] = '\0';
		if (events_parse(text, &words, reason) == 0) {
			assert_true(words.count > 0);
			event_words_clear(&words);
		} else {
			assert_true(reason[0]);
			assert_null(strchr(reason, '\033'));
		}
	}
}

static void the_four_have_one_name_in_all_spellings(void **state)
{
	static const char *const spellings[][2] = {
		{ "cycles", "CPU_CYCLES" },
		{ "cpu-cycles", "CPU_CYCLES" },
		{ "CPU_CYCLES", "CPU_CYCLES" },
		{ "Cpu_Cycles", "CPU_CYCLES" },
		{ "INSTRUCTIONS", "INSTRUCTIONS" },
		{ "instructions", "INSTRUCTIONS" },
		{ "cache-misses", "CACHE_MISSES" },
		{ "CACHE_MISSES", "CACHE_MISSES" },
		{ "branch_misses", "BRANCH_MISSES" },
		{ "cycles:u", "cycles:u" },
		{ "page-faults", "page-faults" },
	};
	char reason[READER_REASON_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
		struct events events;

		assert_int_equal(resolve(&bare, spellings[i][0], &events, reason), 0);
		assert_string_equal(events.event[0].name, spellings[i][1]);
		events_clear(&events);
	}
	assert_null(event_name_metric("cycle"));
	assert_null(event_name_metric("cycles-"));
}

static void names_mean_what_the_kernel_says(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
	} right[] = {
		{ "cycles", 0, 0 },
		{ "instructions", 0, 1 },
		{ "cache-references", 0, 2 },
		{ "CACHE_MISSES", 0, 3 },
		{ "branches", 0, 4 },
		{ "branch-misses", 0, 5 },
		{ "ref-cycles", 0, 9 },
		{ "cpu-clock", 1, 0 },
		{ "task-clock", 1, 1 },
		{ "page-faults", 1, 2 },
		{ "faults", 1, 2 },
		{ "context-switches", 1, 3 },
		{ "cpu-migrations", 1, 4 },
		{ "minor-faults", 1, 5 },
		{ "major-faults", 1, 6 },
		{ "L1-dcache-loads", 3, 0 },
		{ "L1-dcache-load-misses", 3, 0x10000 },
		{ "L1-dcache-stores", 3, 0x100 },
		{ "l1-icache-load-misses", 3, 0x10001 },
		{ "LLC-store-misses", 3, 0x10102 },
		{ "dTLB-prefetch-misses", 3, 0x10203 },
		{ "iTLB-loads", 3, 0x4 },
		{ "node-load-misses", 3, 0x10006 },
		{ "PERF_COUNT_HW_CACHE_MISSES", 0, 3 },
		{ "PERF_COUNT_SW_PAGE_FAULTS", 1, 2 },
		{ "r00c0", 4, 0xc0 },
		{ "rFFFFFFFFFFFFFFFF", 4, UINT64_MAX },
	};
	char reason[READER_REASON_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		struct events events;

		assert_int_equal(resolve(&bare, right[i].text, &events, reason), 0);
		assert_int_equal(events.event[0].count, 1);
		assert_int_equal(events.event[0].code[0].attr.type, right[i].type);
		assert_true(events.event[0].code[0].attr.config == right[i].config);
		assert_false(events.event[0].code[0].part);
		events_clear(&events);
	}
}

static void clocks_are_in_ns_and_all_else_is_counted(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(
		resolve(&bare, "task-clock,page-faults,cpu-clock:u,cycles", &events, reason), 0);
	assert_int_equal(events.event[0].unit, UNIT_NS);
	assert_null(events.event[0].note);
	assert_int_equal(events.event[1].unit, UNIT_COUNT);
	assert_int_equal(events.event[2].unit, UNIT_NS);
	assert_string_equal(events.event[2].note,
		"the kernel counts all time on a CPU, in user space and in itself");
	assert_int_equal(events.event[3].unit, UNIT_COUNT);
	events_clear(&events);
}

static void modifiers_exclude_the_other_side(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(resolve(&bare, "cycles:u,instructions:k,branches:uk", &events, reason), 0);
	assert_int_equal(events.event[0].code[0].attr.exclude_kernel, 1);
	assert_int_equal(events.event[0].code[0].attr.exclude_user, 0);
	assert_int_equal(events.event[1].code[0].attr.exclude_kernel, 0);
	assert_int_equal(events.event[1].code[0].attr.exclude_user, 1);
	assert_int_equal(events.event[2].code[0].attr.exclude_kernel, 0);
	assert_int_equal(events.event[2].code[0].attr.exclude_user, 0);
	assert_int_equal(events.event[2].code[0].attr.exclude_guest, 0);
	events_clear(&events);
}

static void check_parts(const char *text, const uint64_t want[2][2])
{
	static const char *const part[] = { "cpu_core", "cpu_atom" };
	char reason[READER_REASON_ROOM];
	struct events events;

	assert_int_equal(resolve(&hybrid, text, &events, reason), 0);
	assert_int_equal(events.event[0].count, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(events.event[0].code[i].part);
		assert_string_equal(events.event[0].code[i].pmu->name, part[i]);
		assert_int_equal(events.event[0].code[i].attr.type, want[i][0]);
		assert_true(events.event[0].code[i].attr.config == want[i][1]);
	}
	assert_int_not_equal(events.event[0].code[0].device, events.event[0].code[1].device);
	events_clear(&events);
}

static void core_events_are_coded_once_per_core_type(void **state)
{
	(void)state;
	check_parts("cycles", (uint64_t[2][2]){ { 0, 0x400000000 }, { 0, 0xa00000000 } });
	check_parts("cache-misses:u", (uint64_t[2][2]){ { 0, 0x400000003 }, { 0, 0xa00000003 } });
	check_parts("L1-dcache-load-misses",
		(uint64_t[2][2]){ { 3, 0x400010000 }, { 3, 0xa00010000 } });
	check_parts("r1c0", (uint64_t[2][2]){ { 4, 0x1c0 }, { 10, 0x1c0 } });
}

static void what_names_a_core_type_is_counted_there(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(
		resolve(&hybrid, "cpu_atom/instructions/,page-faults", &events, reason), 0);
	assert_int_equal(events.event[0].count, 1);
	assert_int_equal(events.event[0].code[0].attr.type, 10);
	assert_true(events.event[0].code[0].attr.config == 0xc0);
	assert_true(events.event[0].code[0].part);
	assert_int_equal(events.event[1].count, 1);
	assert_false(events.event[1].code[0].part);
	events_clear(&events);
}

static void an_event_of_the_machine_knows_its_cpus_and_worth(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(
		resolve(&hybrid, "power/energy-pkg/,uncore_imc_0/cas_count_read/", &events, reason),
		0);
	assert_string_equal(events.event[0].name, "power/energy-pkg/");
	assert_string_equal(
		events.event[0].note, "each count stands for 2.3283064365386962890625e-10 Joules");
	assert_int_equal(events.event[0].code[0].pmu->cpumask.count, 1);
	assert_int_equal(events.event[1].code[0].pmu->cpumask.count, 2);
	assert_false(events.event[1].code[0].part);
	events_clear(&events);
}

static void tracepoints_are_looked_up_in_tracefs(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(resolve(&hybrid, "sched:sched_switch", &events, reason), 0);
	assert_int_equal(events.event[0].code[0].attr.type, 2);
	assert_true(events.event[0].code[0].attr.config == 316);
	assert_true(events.event[0].software);
	events_clear(&events);
}

static void breakpoints_are_grouped_as_software_events(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(resolve(&bare, "mem:0x1000/8:w:u", &events, reason), 0);
	assert_string_equal(events.event[0].name, "mem:0x1000/8:w:u");
	assert_true(events.event[0].software);
	assert_int_equal(events.event[0].code[0].attr.type, PERF_TYPE_BREAKPOINT);
	assert_int_equal(events.event[0].code[0].attr.bp_addr, 0x1000);
	assert_int_equal(events.event[0].code[0].attr.exclude_kernel, 1);
	events_clear(&events);
}

static void what_cannot_be_meant_is_refused_in_one_sentence(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *reason;
	} wrong[] = {
		{ "cycels", -ENOENT,
			"cannot count \"cycels\": no such event; did you mean \"cycles\"? (jphase list "
			"shows all)" },
		{ "cycels:u", -ENOENT,
			"cannot count \"cycels:u\": no such event; did you mean \"cycles\"? (jphase "
			"list shows all)" },
		{ "zzzzzzzzzz", -ENOENT,
			"cannot count \"zzzzzzzzzz\": no such event (jphase list shows all)" },
		{ "cycles,cpu-cycles", -EINVAL, "cannot count \"cpu-cycles\": it is named twice" },
		{ "page-faults,page-faults", -EINVAL,
			"cannot count \"page-faults\": it is named twice" },
		{ "cycles:p", -EINVAL,
			"cannot count \"cycles:p\": \"p\" is no modifier; u (user space) and k "
			"(kernel) are" },
		{ "context-switches:u", -EINVAL,
			"cannot count \"context-switches:u\": it happens in the kernel only, so leave "
			":u out" },
		{ "power/energy-pkg/u", -EINVAL,
			"cannot count \"power/energy-pkg/u\": it counts for the whole machine, so "
			"leave :u and :k out" },
		{ "power/energy-pgk/", -ENOENT,
			"cannot count \"power/energy-pgk/\": power has no event or term \"energy-pgk\"; "
			"did you mean \"power/energy-pkg/\"? (jphase list shows all)" },
		{ "powr/energy-pkg/", -ENOENT,
			"cannot count \"powr/energy-pkg/\": there is no PMU \"powr\" here; did you mean "
			"\"power/energy-pkg/\"? (jphase list shows all)" },
		{ "cpu_core/event=999/", -EINVAL,
			"cannot count \"cpu_core/event=999/\": 0x3e7 is too large for \"event\" of "
			"cpu_core" },
		{ "sched:nothing", -ENOENT,
			"cannot count \"sched:nothing\": no such event (jphase list shows all)" },
		{ "..:..", -ENOENT,
			"cannot count \"..:..\": no such event (jphase list shows all)" },
		{ "r11112222333344445", -EINVAL,
			"cannot count \"r11112222333344445\": a raw event has at most 16 digits" },
		{ "mem:here", -EINVAL,
			"cannot count \"mem:here\": it is written mem:0xADDRESS[/LENGTH][:ACCESS]" },
	};
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(resolve(&hybrid, wrong[i].text, &events, reason), wrong[i].err);
		assert_string_equal(reason, wrong[i].reason);
	}
}

static void a_tracepoint_without_tracefs_is_refused_with_the_fix(void **state)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	(void)state;
	assert_int_equal(resolve(&bare, "sched:sched_switch", &events, reason), -ENOENT);
	assert_string_equal(reason,
		"cannot count \"sched:sched_switch\": no such event, unless it is a tracepoint: "
		"tracefs is not mounted (mount -t tracefs tracefs /nonexistent/kernel/tracing) "
		"(jphase list shows all)");
}

/* libpfm4 takes one CPU for another only when it starts: a process of its own. */
static char *resolve_on(const char *cpu, const char *text)
{
	char *force = text_make("LIBPFM_FORCE_PMU=%s", cpu);
	struct child r = { .argv = { "/proc/self/exe", text }, .env = { force } };
	char *out;

	assert_int_equal(run_program(&r), 0);
	out = text_make("%s", r.out);
	run_clear(&r);
	free(force);
	return out;
}

static void libpfm_names_are_coded(void **state)
{
	static const char *const right[][2] = {
		{ "INST_RETIRED", "4 0xc0 0\n" },
		{ "skl::LONGEST_LAT_CACHE:MISS", "4 0x412e 0\n" },
		{ "LONGEST_LAT_CACHE:MISS:u", "4 0x412e 1\n" },
		{ "INST_RETIRED:BOGUS",
			"cannot count \"INST_RETIRED:BOGUS\": libpfm4 says \"invalid event "
			"attribute\"; did you mean \"INST_RETIRED:ANY_P\"? (jphase list shows "
			"all)\n" },
		{ "LONGEST_LAT_CACHE:MIS",
			"cannot count \"LONGEST_LAT_CACHE:MIS\": libpfm4 says \"invalid event "
			"attribute\"; did you mean \"LONGEST_LAT_CACHE:MISS\"? (jphase list shows all)\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		char *out = resolve_on("skl", right[i][0]);

		assert_string_equal(out, right[i][1]);
		free(out);
	}
}

struct seen {
	bool cycles, misses, faults, energy;
	size_t count;
};

static int see(const char *name, const char *group, const char *description, void *arg)
{
	struct seen *seen = arg;

	seen->count++;
	seen->cycles |= str_eq(name, "cycles") && str_eq(group, "hardware");
	seen->faults |= str_eq(name, "page-faults") && str_eq(group, "software");
	seen->misses |= str_eq(name, "L1-dcache-load-misses") && str_eq(group, "cache");
	seen->energy |= str_eq(name, "power/energy-pkg/") && str_eq(group, "power") &&
			str_eq(description, "2.3283064365386962890625e-10 Joules");
	return 0;
}

static int stop_at_third(const char *name, const char *group, const char *description, void *arg)
{
	(void)name;
	(void)group;
	(void)description;
	return ++*(int *)arg == 3 ? 42 : 0;
}

static void all_kinds_of_events_are_walked(void **state)
{
	struct seen seen = { 0 };
	int calls = 0;

	(void)state;
	assert_int_equal(events_each(&hybrid, see, &seen), 0);
	assert_true(seen.cycles && seen.faults && seen.misses && seen.energy);
	assert_int_equal(events_each(&hybrid, stop_at_third, &calls), 42);
	assert_int_equal(calls, 3);
}

static int print_code(const char *text)
{
	char reason[READER_REASON_ROOM];
	struct events events;

	if (resolve(&bare, text, &events, reason) < 0) {
		printf("%s\n", reason);
		return 1;
	}
	printf("%u %#llx %d\n", events.event[0].code[0].attr.type,
		(unsigned long long)events.event[0].code[0].attr.config,
		events.event[0].code[0].attr.exclude_kernel);
	events_clear(&events);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_split),
		cmocka_unit_test(wrong_lists_are_refused_in_one_sentence),
		cmocka_unit_test(any_text_is_parsed_or_refused),
		cmocka_unit_test(the_four_have_one_name_in_all_spellings),
		cmocka_unit_test(names_mean_what_the_kernel_says),
		cmocka_unit_test(clocks_are_in_ns_and_all_else_is_counted),
		cmocka_unit_test(modifiers_exclude_the_other_side),
		cmocka_unit_test(core_events_are_coded_once_per_core_type),
		cmocka_unit_test(what_names_a_core_type_is_counted_there),
		cmocka_unit_test(an_event_of_the_machine_knows_its_cpus_and_worth),
		cmocka_unit_test(tracepoints_are_looked_up_in_tracefs),
		cmocka_unit_test(breakpoints_are_grouped_as_software_events),
		cmocka_unit_test(what_cannot_be_meant_is_refused_in_one_sentence),
		cmocka_unit_test(a_tracepoint_without_tracefs_is_refused_with_the_fix),
		cmocka_unit_test(libpfm_names_are_coded),
		cmocka_unit_test(all_kinds_of_events_are_walked),
	};

	if (argc == 2)
		return print_code(argv[1]);
	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
