/* SPDX-License-Identifier: MIT */
/* What the PMU `power` would count, from its files in sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/rapl_perf.h"
#include "support/proc.h"
#include "support/tree.h"

#define POWER "bus/event_source/devices/power"

struct loaded {
	char *root;
	struct rapl_plan plan;
	char reason[READER_REASON_ROOM];
};

static void event(const char *root, const char *name, const char *code, const char *scale)
{
	char file[128];

	snprintf(file, sizeof(file), POWER "/events/%s", name);
	tree_write(root, file, "%s\n", code);
	snprintf(file, sizeof(file), POWER "/events/%s.scale", name);
	tree_write(root, file, "%s\n", scale);
	snprintf(file, sizeof(file), POWER "/events/%s.unit", name);
	tree_write(root, file, "Joules\n");
}

static void place(const char *root, int cpu, int package, int die)
{
	char file[128];

	snprintf(file, sizeof(file), "devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
	tree_write(root, file, "%d\n", package);
	snprintf(file, sizeof(file), "devices/system/cpu/cpu%d/topology/die_id", cpu);
	tree_write(root, file, "%d\n", die);
}

static char *power_make(const char *cpumask)
{
	char *root = tree_make();

	tree_write(root, POWER "/type", "23\n");
	tree_write(root, POWER "/cpumask", "%s\n", cpumask);
	tree_write(root, POWER "/format/event", "config:0-7\n");
	event(root, "energy-pkg", "event=0x02", "2.3283064365386962890625e-10");
	event(root, "energy-cores", "event=0x01", "2.3283064365386962890625e-10");
	event(root, "energy-ram", "event=0x03", "1.5258789062500000000000e-05");
	event(root, "energy-psys", "event=0x05", "2.3283064365386962890625e-10");
	return root;
}

static int load(struct loaded *l)
{
	struct reader_env env = { .proc_root = l->root, .sys_root = l->root };

	return rapl_plan_load(&env, &l->plan, l->reason);
}

static void end(struct loaded *l)
{
	rapl_plan_clear(&l->plan);
	tree_remove(l->root);
}

static const struct rapl_event *event_of(const struct loaded *l, enum energy_kind kind)
{
	for (size_t i = 0; i < l->plan.events; i++)
		if (l->plan.event[i].kind == kind)
			return &l->plan.event[i];
	fail_msg("no event of kind %d", (int)kind);
	return NULL;
}

static void events_have_their_code_and_worth(void **state)
{
	struct loaded l = { .root = power_make("0") };

	(void)state;
	assert_int_equal(load(&l), 0);
	assert_int_equal(l.plan.type, 23);
	assert_int_equal(l.plan.events, 4);
	assert_int_equal(event_of(&l, ENERGY_PACKAGE)->config, 2);
	assert_int_equal(event_of(&l, ENERGY_CORE)->config, 1);
	assert_int_equal(event_of(&l, ENERGY_DRAM)->config, 3);
	assert_int_equal(event_of(&l, ENERGY_PSYS)->config, 5);
	/* 2^32 counts are a joule; memory has a scale of its own, 2^16. */
	assert_int_equal(
		(uint64_t)(4294967296.0L * event_of(&l, ENERGY_PACKAGE)->uj + 0.5L), 1000000);
	assert_int_equal((uint64_t)(65536.0L * event_of(&l, ENERGY_DRAM)->uj + 0.5L), 1000000);
	end(&l);
}

static void each_package_is_counted_on_one_cpu(void **state)
{
	struct loaded l = { .root = power_make("0,28") };

	(void)state;
	place(l.root, 0, 1, 0);
	place(l.root, 28, 0, 0);
	assert_int_equal(load(&l), 0);
	assert_int_equal(l.plan.places, 2);
	assert_int_equal(l.plan.place[0].cpu, 0);
	assert_int_equal(l.plan.place[0].package, 1);
	assert_int_equal(l.plan.place[1].cpu, 28);
	assert_int_equal(l.plan.place[1].package, 0);
	end(&l);
}

static void dies_of_one_package_are_counted_each(void **state)
{
	struct loaded l = { .root = power_make("0,8") };

	(void)state;
	tree_write(l.root, "cpuinfo", "vendor_id\t: GenuineIntel\n");
	place(l.root, 0, 0, 0);
	place(l.root, 8, 0, 1);
	assert_int_equal(load(&l), 0);
	assert_int_equal(l.plan.places, 2);
	assert_int_equal(l.plan.place[1].die, 1);
	end(&l);
}

static void dies_of_amd_are_counted_once(void **state)
{
	struct loaded l = { .root = power_make("0,8,16") };

	(void)state;
	tree_write(l.root, "cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n");
	place(l.root, 0, 0, 0);
	place(l.root, 8, 0, 1);
	place(l.root, 16, 1, 0);
	assert_int_equal(load(&l), 0);
	assert_int_equal(l.plan.places, 2);
	assert_int_equal(l.plan.place[0].cpu, 0);
	assert_int_equal(l.plan.place[1].cpu, 16);
	end(&l);
}

static void an_event_in_another_unit_is_left_out(void **state)
{
	struct loaded l = { .root = power_make("0") };

	(void)state;
	tree_write(l.root, POWER "/events/energy-psys.unit", "Watts\n");
	tree_write(l.root, POWER "/events/energy-ram.scale", "0\n");
	assert_int_equal(load(&l), 0);
	assert_int_equal(l.plan.events, 2);
	end(&l);
}

static void a_machine_without_the_pmu_has_no_device(void **state)
{
	struct loaded l = { .root = tree_make() };

	(void)state;
	tree_write(l.root, "bus/event_source/devices/software/type", "1\n");
	assert_int_equal(load(&l), -ENODEV);
	assert_non_null(strstr(l.reason, "no energy counters"));
	end(&l);
}

/* The type is nobody's, so that the kernel refuses what the files promise. */
static void a_refused_counter_is_no_counter(void **state)
{
	struct loaded l = { .root = power_make("0") };
	struct reader_env env = { .proc_root = l.root, .sys_root = l.root };
	struct energy_counters list;
	struct energy_bank *bank = NULL;

	(void)state;
	tree_write(l.root, POWER "/type", "4000000000\n");
	assert_true(rapl_perf_way.open(&env, &list, &bank, l.reason) < 0);
	assert_null(bank);
	assert_int_equal(list.count, 0);
	assert_non_null(strstr(l.reason, "energy counters"));
	end(&l);
}

/* The kernel's own clock in place of a processor's counter: 1 ns is called 1 nJ. */
static char *clock_make(const char *cpumask)
{
	char *root = tree_make();

	tree_write(root, POWER "/type", "1\n");
	tree_write(root, POWER "/cpumask", "%s\n", cpumask);
	tree_write(root, POWER "/format/event", "config:0-7\n");
	event(root, "energy-pkg", "event=0x00", "1e-09");
	event(root, "energy-psys", "event=0x00", "1e-09");
	return root;
}

static void counters_of_the_whole_cpu_are_read_in_microjoules(void **state)
{
	struct loaded l = { .root = clock_make("0") };
	struct reader_env env = { .proc_root = l.root, .sys_root = l.root };
	struct reader_target target = { .env = &env, .pid = 1 };
	struct metric_list list = { 0 };
	uint64_t before[2], after[2], outer, inner;
	struct reader *r;

	(void)state;
	if (energy_reader.open(&target, &r, l.reason) < 0) {
		end(&l);
		skip_because("%s", l.reason);
	}
	assert_int_equal(energy_reader.describe(r, &list), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.metric[0].name, "PACKAGE-0");
	assert_string_equal(list.metric[1].name, "PSYS");
	assert_string_equal(list.metric[0].source, "RAPL (perf_event)");

	outer = now_ns();
	assert_int_equal(energy_reader.read(r, before), 0);
	inner = now_ns();
	usleep(20000);
	inner = now_ns() - inner;
	assert_int_equal(energy_reader.read(r, after), 0);
	outer = now_ns() - outer;
	for (size_t i = 0; i < 2; i++) {
		/* Rounded to whole numbers at both ends. */
		assert_true(after[i] - before[i] + 1 >= inner / NSEC_PER_USEC);
		assert_true(after[i] - before[i] <= outer / NSEC_PER_USEC + 1);
	}
	metric_list_clear(&list);
	energy_reader.close(r);
	end(&l);
}

static void the_platform_is_counted_on_one_cpu_alone(void **state)
{
	struct loaded l = { .root = clock_make("0,1") };
	struct reader_env env = { .proc_root = l.root, .sys_root = l.root };
	struct energy_counters list;
	struct energy_bank *bank;
	uint64_t uj[4];

	(void)state;
	place(l.root, 0, 1, 0);
	place(l.root, 1, 0, 0);
	if (rapl_perf_way.open(&env, &list, &bank, l.reason) < 0) {
		end(&l);
		skip_because("%s", l.reason);
	}
	assert_int_equal(list.count, 3);
	assert_int_equal(list.counter[0].kind, ENERGY_PACKAGE);
	assert_int_equal(list.counter[0].package, 1);
	assert_int_equal(list.counter[1].kind, ENERGY_PSYS);
	assert_int_equal(list.counter[2].kind, ENERGY_PACKAGE);
	assert_int_equal(list.counter[2].package, 0);
	uj[3] = 42;
	usleep(1000);
	rapl_perf_way.read(bank, uj);
	for (size_t i = 0; i < 3; i++)
		assert_true(uj[i] > 0 && uj[i] != VALUE_ABSENT);
	assert_int_equal(uj[3], 42);
	rapl_perf_way.close(bank);
	energy_counters_clear(&list);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_have_their_code_and_worth),
		cmocka_unit_test(each_package_is_counted_on_one_cpu),
		cmocka_unit_test(dies_of_one_package_are_counted_each),
		cmocka_unit_test(dies_of_amd_are_counted_once),
		cmocka_unit_test(an_event_in_another_unit_is_left_out),
		cmocka_unit_test(a_machine_without_the_pmu_has_no_device),
		cmocka_unit_test(a_refused_counter_is_no_counter),
		cmocka_unit_test(counters_of_the_whole_cpu_are_read_in_microjoules),
		cmocka_unit_test(the_platform_is_counted_on_one_cpu_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
