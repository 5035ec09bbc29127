/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "internal/util.h"
#include "readers/pmu.h"
#include "support/proc.h"

static struct pmu_list pmus;

static int setup(void **state)
{
	(void)state;
	return pmu_list_load(FIXTURE("sys-hybrid"), &pmus);
}

static int teardown(void **state)
{
	(void)state;
	pmu_list_clear(&pmus);
	return 0;
}

static void pmus_are_listed_by_type(void **state)
{
	static const char *const names[] = { "software", "tracepoint", "cpu_core", "cpu_atom",
		"power", "uncore_imc_0" };

	(void)state;
	assert_int_equal(pmus.count, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(pmus.pmu[i].name, names[i]);
	assert_int_equal(pmu_find(&pmus, "cpu_atom")->type, 10);
	assert_string_equal(pmu_find_type(&pmus, 20)->name, "power");
	assert_null(pmu_find(&pmus, "cpu"));
	assert_null(pmu_find_type(&pmus, 3));
}

static void a_machine_without_sysfs_has_no_pmu(void **state)
{
	struct pmu_list none;

	(void)state;
	assert_int_equal(pmu_list_load("/nonexistent", &none), 0);
	assert_int_equal(none.count, 0);
	assert_false(pmu_is_hybrid(&none));
	pmu_list_clear(&none);
}

static void core_types_are_told_by_their_cpus_file(void **state)
{
	(void)state;
	assert_true(pmu_is_hybrid(&pmus));
	assert_true(pmu_find(&pmus, "cpu_core")->subset);
	assert_true(pmu_find(&pmus, "cpu_core")->core);
	assert_false(pmu_find(&pmus, "power")->core);
}

static void a_cpumask_says_where_to_count(void **state)
{
	const struct pmu_cpus *imc = &pmu_find(&pmus, "uncore_imc_0")->cpumask;

	(void)state;
	assert_int_equal(imc->count, 2);
	assert_int_equal(imc->cpu[0], 0);
	assert_int_equal(imc->cpu[1], 4);
	assert_int_equal(pmu_find(&pmus, "cpu_core")->cpumask.count, 0);
}

static void cpu_lists_are_parsed(void **state)
{
	struct pmu_cpus cpus;

	(void)state;
	assert_int_equal(pmu_cpus_parse("0-2,7,10-11", &cpus), 0);
	assert_int_equal(cpus.count, 6);
	assert_int_equal(cpus.cpu[2], 2);
	assert_int_equal(cpus.cpu[3], 7);
	assert_int_equal(cpus.cpu[5], 11);
	pmu_cpus_clear(&cpus);
}

static void what_is_no_cpu_list_is_refused(void **state)
{
	static const char *const wrong[] = { "", "-1", "3-1", "1,", ",1", "1-", "a", "0 1", "3,1",
		"0-4,4-5", "0-99999999999999999999" };
	struct pmu_cpus cpus;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(pmu_cpus_parse(wrong[i], &cpus), -EINVAL);
}

static void terms_become_configs(void **state)
{
	static const struct {
		const char *pmu, *terms;
		uint64_t config[PMU_CONFIGS];
	} right[] = {
		{ "cpu_core", "event=0x3c", { 0x3c } },
		{ "cpu_core", "event=0xc0,umask=2,cmask=1,inv", { 0x018002c0 } },
		{ "cpu_core", "cpu-cycles", { 0x3c } },
		{ "cpu_core", "slots", { 0x400 } },
		{ "cpu_core", "slots,umask=0x8", { 0x800 } },
		{ "cpu_core", "mem-loads,offcore_rsp=0xffffffffffffffff", { 0x1cd, UINT64_MAX } },
		{ "cpu_core", "config=0x1234,config1=5,config2=6", { 0x1234, 5, 6 } },
		{ "cpu_core", "config=0xffff,umask=0", { 0xff } },
		{ "cpu_core", "event=010", { 8 } },
		/* The high bits of this event are elsewhere. */
		{ "uncore_imc_0", "event=0x304", { 0x300000004 } },
		{ "uncore_imc_0", "cas_count_read", { 0x300000004 } },
	};
	char reason[READER_REASON_ROOM];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		uint64_t config[PMU_CONFIGS];

		assert_int_equal(pmu_encode(&pmus, pmu_find(&pmus, right[i].pmu), right[i].terms,
					 config, reason),
			0);
		for (int j = 0; j < PMU_CONFIGS; j++)
			assert_true(config[j] == right[i].config[j]);
	}
}

static void wrong_terms_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *pmu, *terms;
		int err;
		const char *reason;
	} wrong[] = {
		{ "cpu_core", "", -EINVAL, "no event or term stands between the slashes" },
		{ "cpu_core", ",", -EINVAL, "no event or term stands between the slashes" },
		{ "cpu_core", "bogus", -ENOENT, "cpu_core has no event or term \"bogus\"" },
		{ "cpu_core", "bogus=1", -ENOENT, "cpu_core has no term \"bogus\"" },
		{ "cpu_core", "event=0x100", -EINVAL,
			"0x100 is too large for \"event\" of cpu_core" },
		{ "cpu_core", "event=x", -EINVAL, "the value of \"event\" is not a number: \"x\"" },
		{ "cpu_core", "event=", -EINVAL, "the value of \"event\" is not a number: \"\"" },
		{ "cpu_core", "event=-1", -EINVAL,
			"the value of \"event\" is not a number: \"-1\"" },
		{ "cpu_core", "event=0x1ffffffffffffffff", -EINVAL,
			"the value of \"event\" is not a number: \"0x1ffffffffffffffff\"" },
		{ "cpu_core", "..", -ENOENT, "\"..\" is no event or term" },
		{ "uncore_imc_0", "strange=1", -EOPNOTSUPP,
			"the kernel describes \"strange\" as \"config9:0-7\", which is new" },
	};
	char reason[READER_REASON_ROOM];
	uint64_t config[PMU_CONFIGS];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(pmu_encode(&pmus, pmu_find(&pmus, wrong[i].pmu), wrong[i].terms,
					 config, reason),
			wrong[i].err);
		assert_string_equal(reason, wrong[i].reason);
	}
}

static void an_event_says_what_its_count_is_worth(void **state)
{
	char worth[128];

	(void)state;
	assert_true(pmu_event_worth(
		&pmus, pmu_find(&pmus, "power"), "energy-pkg", worth, sizeof(worth)));
	assert_string_equal(worth, "2.3283064365386962890625e-10 Joules");
	assert_false(
		pmu_event_worth(&pmus, pmu_find(&pmus, "cpu_core"), "slots", worth, sizeof(worth)));
}

static int append_name(const char *event, void *arg)
{
	strcat(arg, event);
	strcat(arg, " ");
	return 0;
}

static int stop_at_once(const char *event, void *arg)
{
	(void)event;
	++*(int *)arg;
	return 7;
}

static void events_are_walked_without_their_attributes(void **state)
{
	char names[256] = "";
	int calls = 0;

	(void)state;
	assert_int_equal(pmu_each_event(&pmus, pmu_find(&pmus, "power"), append_name, names), 0);
	assert_string_equal(names, "energy-pkg ");
	names[0] = '\0';
	assert_int_equal(pmu_each_event(&pmus, pmu_find(&pmus, "cpu_core"), append_name, names), 0);
	assert_string_equal(names, "cpu-cycles instructions mem-loads slots ");
	assert_int_equal(
		pmu_each_event(&pmus, pmu_find(&pmus, "cpu_core"), stop_at_once, &calls), 7);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pmus_are_listed_by_type),
		cmocka_unit_test(a_machine_without_sysfs_has_no_pmu),
		cmocka_unit_test(core_types_are_told_by_their_cpus_file),
		cmocka_unit_test(a_cpumask_says_where_to_count),
		cmocka_unit_test(cpu_lists_are_parsed),
		cmocka_unit_test(what_is_no_cpu_list_is_refused),
		cmocka_unit_test(terms_become_configs),
		cmocka_unit_test(wrong_terms_are_refused_with_a_reason),
		cmocka_unit_test(an_event_says_what_its_count_is_worth),
		cmocka_unit_test(events_are_walked_without_their_attributes),
	};

	return cmocka_run_group_tests_name("pmu", tests, setup, teardown);
}
