/* SPDX-License-Identifier: MIT */
/* Energy zones on trees of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "internal/util.h"
#include "readers/energy.h"
#include "support/tree.h"

#define COUNTERS_MAX 16

struct opened {
	char *root;
	struct reader_env env;
	struct energy_counters list;
	struct energy_bank *bank;
	uint64_t uj[COUNTERS_MAX];
	char reason[READER_REASON_ROOM];
};

static struct opened tree_begin(void)
{
	struct opened o = { .root = tree_make() };

	o.env = (struct reader_env){ .proc_root = o.root, .sys_root = o.root };
	o.env.powercap_root = o.root;
	return o;
}

static void zone(const struct opened *o, const char *folder, const char *label, unsigned long uj)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/name", folder);
	tree_write(o->root, file, "%s\n", label);
	snprintf(file, sizeof(file), "%s/energy_uj", folder);
	tree_write(o->root, file, "%lu\n", uj);
	snprintf(file, sizeof(file), "%s/max_energy_range_uj", folder);
	tree_write(o->root, file, "262143328850\n");
}

static int open_it(struct opened *o)
{
	int err = powercap_way.open(&o->env, &o->list, &o->bank, o->reason);

	if (err == 0) {
		assert_true(o->list.count <= COUNTERS_MAX);
		powercap_way.read(o->bank, o->uj);
	}
	return err;
}

static void end(struct opened *o)
{
	powercap_way.close(o->bank);
	energy_counters_clear(&o->list);
	tree_remove(o->root);
}

static const struct energy_counter *counter(
	const struct opened *o, enum energy_kind kind, int package)
{
	const struct energy_counter *c = energy_counters_find(&o->list, kind, package);

	if (!c)
		fail_msg("no counter of kind %d in package %d", (int)kind, package);
	return c;
}

static uint64_t value(const struct opened *o, enum energy_kind kind, int package)
{
	return o->uj[counter(o, kind, package) - o->list.counter];
}

static void each_zone_is_what_its_name_says(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-0", 1000);
	zone(&o, "intel-rapl:0:0", "core", 400);
	zone(&o, "intel-rapl:0:1", "uncore", 50);
	zone(&o, "intel-rapl:0:2", "dram", 30);
	zone(&o, "intel-rapl:1", "psys", 5000);
	tree_write(o.root, "intel-rapl/enabled", "1\n");
	tree_write(o.root, "dtpm:0/name", "package-0\n");
	assert_int_equal(open_it(&o), 0);
	assert_int_equal(o.list.count, 5);
	assert_int_equal(value(&o, ENERGY_PACKAGE, 0), 1000);
	assert_int_equal(value(&o, ENERGY_CORE, 0), 400);
	assert_int_equal(value(&o, ENERGY_UNCORE, 0), 50);
	assert_int_equal(value(&o, ENERGY_DRAM, 0), 30);
	assert_int_equal(value(&o, ENERGY_PSYS, 0), 5000);
	assert_int_equal(counter(&o, ENERGY_PACKAGE, 0)->range_uj, UINT64_C(262143328850));
	end(&o);
}

static void sockets_have_the_kernels_numbers(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-1", 111);
	zone(&o, "intel-rapl:0:0", "dram", 11);
	zone(&o, "intel-rapl:1", "package-0", 222);
	zone(&o, "intel-rapl:1:0", "dram", 22);
	assert_int_equal(open_it(&o), 0);
	assert_int_equal(value(&o, ENERGY_PACKAGE, 0), 222);
	assert_int_equal(value(&o, ENERGY_PACKAGE, 1), 111);
	assert_int_equal(value(&o, ENERGY_DRAM, 0), 22);
	assert_int_equal(value(&o, ENERGY_DRAM, 1), 11);
	end(&o);
}

static void a_zone_within_its_package_is_met_once(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-0", 1000);
	zone(&o, "intel-rapl/intel-rapl:0", "package-0", 1000);
	zone(&o, "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", 400);
	zone(&o, "intel-rapl:0/intel-rapl:0:0", "core", 400);
	assert_int_equal(open_it(&o), 0);
	assert_int_equal(o.list.count, 2);
	assert_int_equal(value(&o, ENERGY_CORE, 0), 400);
	end(&o);
}

static void a_twin_by_memory_is_left_out(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl-mmio:0", "package-0", 77);
	zone(&o, "intel-rapl-mmio:1", "package-1", 88);
	zone(&o, "intel-rapl:0", "package-0", 1000);
	assert_int_equal(open_it(&o), 0);
	assert_int_equal(o.list.count, 2);
	assert_int_equal(value(&o, ENERGY_PACKAGE, 0), 1000);
	/* One without a twin stands for itself. */
	assert_int_equal(value(&o, ENERGY_PACKAGE, 1), 88);
	end(&o);
}

static void dies_of_a_package_are_told_apart(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-0-die-0", 10);
	zone(&o, "intel-rapl:1", "package-0-die-1", 20);
	zone(&o, "intel-rapl:2", "package-1", 30);
	zone(&o, "intel-rapl:3", "package-1", 40);
	assert_int_equal(open_it(&o), 0);
	assert_int_equal(o.list.count, 4);
	assert_int_equal(o.list.counter[1].package, 0);
	assert_int_equal(o.list.counter[1].die, 1);
	assert_int_equal(o.list.counter[3].package, 1);
	assert_int_equal(o.list.counter[3].die, 1);
	end(&o);
}

static void a_core_of_amd_says_that_it_is_one(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	tree_write(o.root, "cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n");
	zone(&o, "intel-rapl:0", "package-0", 10);
	zone(&o, "intel-rapl:0:0", "core", 10);
	assert_int_equal(open_it(&o), 0);
	assert_null(counter(&o, ENERGY_PACKAGE, 0)->note);
	assert_non_null(strstr(counter(&o, ENERGY_CORE, 0)->note, "one core alone"));
	end(&o);
}

/* A folder in place of the file cannot be read by root either. */
static void a_zone_that_cannot_be_read_says_why(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-0", 10);
	zone(&o, "intel-rapl:1", "package-1", 20);
	tree_unlink(o.root, "intel-rapl:1/energy_uj");
	tree_write(o.root, "intel-rapl:1/energy_uj/file", "\n");
	assert_int_equal(open_it(&o), 0);
	assert_null(counter(&o, ENERGY_PACKAGE, 0)->absent);
	assert_non_null(strstr(counter(&o, ENERGY_PACKAGE, 1)->absent, "intel-rapl:1/energy_uj"));
	assert_non_null(strstr(counter(&o, ENERGY_PACKAGE, 1)->absent, "Is a directory"));
	assert_true(value(&o, ENERGY_PACKAGE, 0) == 10);
	assert_true(value(&o, ENERGY_PACKAGE, 1) == VALUE_ABSENT);
	end(&o);
}

/* As a user whom the file's mode keeps out. */
static void a_zone_for_root_alone_names_the_command(void **state)
{
	struct opened o = tree_begin();
	char file[256];
	int err;

	(void)state;
	zone(&o, "intel-rapl:0", "package-0", 10);
	snprintf(file, sizeof(file), "%s/intel-rapl:0/energy_uj", o.root);
	assert_int_equal(chmod(file, 0400), 0);
	assert_int_equal(chmod(o.root, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	else
		assert_int_equal(chmod(file, 0), 0);
	err = open_it(&o);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(err, -EACCES);
	assert_non_null(strstr(o.reason, "sudo chmod a+r "));
	assert_non_null(strstr(o.reason, "intel-rapl:0/energy_uj"));
	end(&o);
}

static struct finding doctor_says(const struct opened *o)
{
	struct reader_env env = { .proc_root = o->root, .sys_root = o->root };
	struct finding f = { .health = HEALTH_OK };

	doctor_energy_checks[0].check(&env, &f);
	return f;
}

static void the_doctor_tells_how_to_read_zones(void **state)
{
	struct opened o = tree_begin();
	struct finding f;

	(void)state;
	assert_int_equal(doctor_says(&o).health, HEALTH_MISSING);
	assert_string_equal(doctor_says(&o).fix, "");
	zone(&o, "class/powercap/intel-rapl:0", "package-0", 10);
	zone(&o, "class/powercap/intel-rapl:1", "package-1", 10);
	f = doctor_says(&o);
	assert_int_equal(f.health, HEALTH_OK);
	assert_string_equal(f.text, "2 zones can be read");
	tree_unlink(o.root, "class/powercap/intel-rapl:1/energy_uj");
	f = doctor_says(&o);
	assert_int_equal(f.health, HEALTH_LIMITED);
	assert_non_null(strstr(f.fix, "sudo chmod a+r "));
	assert_non_null(strstr(f.fix, "| sudo tee /etc/udev/rules.d/60-jphase-energy.rules\n"));
	assert_non_null(strstr(f.fix, "sudo setcap cap_perfmon,cap_dac_read_search=ep "));
	end(&o);
}

static void a_machine_without_zones_has_no_device(void **state)
{
	struct opened o = tree_begin();

	(void)state;
	assert_int_equal(open_it(&o), -ENODEV);
	assert_non_null(strstr(o.reason, "no energy counters in"));
	o.env.powercap_root = "/nowhere/at/all";
	assert_int_equal(open_it(&o), -ENODEV);
	assert_non_null(strstr(o.reason, "/nowhere/at/all"));
	end(&o);
}

static void a_torn_number_is_no_reading(void **state)
{
	static const char *const texts[] = { "", "\n", "abc\n", "-5\n", "1 2\n",
		"99999999999999999999999\n" };
	struct opened o = tree_begin();

	(void)state;
	zone(&o, "intel-rapl:0", "package-0", 10);
	assert_int_equal(open_it(&o), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		tree_write(o.root, "intel-rapl:0/energy_uj", "%s", texts[i]);
		powercap_way.read(o.bank, o.uj);
		assert_true(o.uj[0] == VALUE_ABSENT);
	}
	tree_write(o.root, "intel-rapl:0/energy_uj", "12\n");
	powercap_way.read(o.bank, o.uj);
	assert_int_equal(o.uj[0], 12);
	end(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_zone_is_what_its_name_says),
		cmocka_unit_test(sockets_have_the_kernels_numbers),
		cmocka_unit_test(a_zone_within_its_package_is_met_once),
		cmocka_unit_test(a_twin_by_memory_is_left_out),
		cmocka_unit_test(dies_of_a_package_are_told_apart),
		cmocka_unit_test(a_core_of_amd_says_that_it_is_one),
		cmocka_unit_test(a_zone_that_cannot_be_read_says_why),
		cmocka_unit_test(a_zone_for_root_alone_names_the_command),
		cmocka_unit_test(the_doctor_tells_how_to_read_zones),
		cmocka_unit_test(a_machine_without_zones_has_no_device),
		cmocka_unit_test(a_torn_number_is_no_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
