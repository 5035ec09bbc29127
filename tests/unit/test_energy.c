/* SPDX-License-Identifier: MIT */
/* The energy reader: sums, wraps, twins, what goes missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "readers/energy.h"
#include "readers/reader.h"
#include "support/tree.h"

#define VALUES_MAX 16
#define RANGE      1000000

struct opened {
	char *root;
	struct reader_env env;
	struct reader *reader;
	struct metric_list list;
	uint64_t values[VALUES_MAX];
};

static void set(const struct opened *o, int zone, uint64_t uj)
{
	char file[64];

	snprintf(file, sizeof(file), "intel-rapl:%d/energy_uj", zone);
	tree_write(o->root, file, "%llu\n", (unsigned long long)uj);
}

static void zone(const struct opened *o, int number, const char *label, uint64_t uj)
{
	char file[64];

	snprintf(file, sizeof(file), "intel-rapl:%d/name", number);
	tree_write(o->root, file, "%s\n", label);
	snprintf(file, sizeof(file), "intel-rapl:%d/max_energy_range_uj", number);
	tree_write(o->root, file, "%d\n", RANGE);
	set(o, number, uj);
}

static struct opened *tree_begin(struct opened *o)
{
	*o = (struct opened){ .root = tree_make() };
	o->env = (struct reader_env){
		.proc_root = o->root, .sys_root = o->root, .powercap_root = o->root
	};
	return o;
}

static void open_for(struct opened *o, bool launched)
{
	struct reader_target target = { .env = &o->env, .pid = 1, .enable_on_exec = launched };
	char reason[READER_REASON_ROOM] = "";

	if (energy_reader.open(&target, &o->reader, reason) < 0)
		fail_msg("%s", reason);
	assert_int_equal(energy_reader.describe(o->reader, &o->list), 0);
	assert_true(metric_list_values(&o->list) <= VALUES_MAX);
}

static void open_it(struct opened *o)
{
	open_for(o, false);
}

static void end(struct opened *o)
{
	metric_list_clear(&o->list);
	energy_reader.close(o->reader);
	tree_remove(o->root);
}

static size_t index_of(const struct opened *o, const char *name)
{
	for (size_t i = 0; i < o->list.count; i++)
		if (str_eq(o->list.metric[i].name, name))
			return i;
	fail_msg("no metric %s", name);
	return 0;
}

static uint64_t read_one(struct opened *o, const char *name)
{
	memset(o->values, 0x55, sizeof(o->values));
	assert_int_equal(energy_reader.read(o->reader, o->values), 0);
	return o->values[index_of(o, name)];
}

static void metrics_are_ordered_and_named(void **state)
{
	static const char *const names[] = { "PACKAGE-0", "PACKAGE-1", "PSYS" };
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "psys", 1);
	zone(&o, 1, "package-1", 2);
	zone(&o, 2, "package-0", 3);
	open_it(&o);
	assert_int_equal(o.list.count, ARRAY_SIZE(names));
	assert_int_equal(o.list.groups, 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct metric *m = &o.list.metric[i];

		assert_string_equal(m->name, names[i]);
		assert_string_equal(m->source, "RAPL (powercap)");
		assert_int_equal(m->kind, METRIC_COUNTER);
		assert_int_equal(m->unit, UNIT_UJ);
		assert_int_equal(m->scope, SCOPE_GLOBAL);
		assert_int_equal(m->step_ns, NSEC_PER_MSEC);
		assert_null(m->absent);
	}
	end(&o);
}

static void values_count_from_the_opening(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 5000);
	zone(&o, 1, "psys", 900);
	open_it(&o);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 0);
	set(&o, 0, 5123);
	set(&o, 1, 1900);
	/* The platform holds the package and is not added to it. */
	assert_int_equal(read_one(&o, "PACKAGE-0"), 123);
	assert_int_equal(read_one(&o, "PSYS"), 1000);
	end(&o);
}

static void a_wrap_adds_the_rest_of_the_range(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 999000);
	open_it(&o);
	set(&o, 0, 500);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 1500);
	end(&o);
}

static void three_wraps_between_two_readings_are_kept_alive(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 400000);
	open_it(&o);
	for (int i = 0; i < 3; i++) {
		set(&o, 0, 900000);
		assert_null(energy_reader.keep_alive(o.reader));
		set(&o, 0, 400000);
		assert_null(energy_reader.keep_alive(o.reader));
	}
	assert_int_equal(read_one(&o, "PACKAGE-0"), 3000000);
	end(&o);
}

static void equal_dies_are_counted_once(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0-die-0", 7000);
	zone(&o, 1, "package-0-die-1", 7000);
	zone(&o, 2, "package-1-die-0", 7000);
	open_it(&o);
	assert_int_equal(o.list.count, 2);
	assert_non_null(strstr(o.list.metric[0].note, "2 dies show the same counter"));
	assert_null(o.list.metric[1].note);
	for (int i = 0; i < 3; i++)
		set(&o, i, 7500);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 500);
	assert_int_equal(read_one(&o, "PACKAGE-1"), 500);
	end(&o);
}

static void different_dies_are_added(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0-die-0", 7000);
	zone(&o, 1, "package-0-die-1", 9000);
	open_it(&o);
	assert_null(o.list.metric[0].note);
	set(&o, 0, 7500);
	set(&o, 1, 9200);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 700);
	end(&o);
}

/* Nobody can tell before they move. */
static void dies_that_start_at_zero_are_told_apart_when_they_move(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0-die-0", 0);
	zone(&o, 1, "package-0-die-1", 0);
	zone(&o, 2, "package-1-die-0", 0);
	zone(&o, 3, "package-1-die-1", 0);
	open_it(&o);
	set(&o, 0, 100);
	set(&o, 1, 30);
	set(&o, 2, 50);
	set(&o, 3, 50);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 130);
	assert_int_equal(read_one(&o, "PACKAGE-1"), 50);
	end(&o);
}

static void a_zone_that_vanishes_is_noted_once_and_not_counted(void **state)
{
	struct opened o;
	const char *note;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 100);
	zone(&o, 1, "package-1", 100);
	open_it(&o);
	tree_write(o.root, "intel-rapl:1/energy_uj", "\n");
	set(&o, 0, 300);
	note = energy_reader.keep_alive(o.reader);
	assert_non_null(note);
	assert_non_null(strstr(note, "PACKAGE-1 is not counted any more"));
	assert_non_null(strstr(note, "intel-rapl:1 can no longer be read"));
	assert_null(energy_reader.keep_alive(o.reader));
	assert_true(read_one(&o, "PACKAGE-1") == VALUE_ABSENT);
	assert_int_equal(read_one(&o, "PACKAGE-0"), 200);
	end(&o);
}

/* Half a package would pass for a whole one. */
static void a_package_with_an_unreadable_die_is_not_counted(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0-die-0", 100);
	zone(&o, 1, "package-0-die-1", 200);
	zone(&o, 2, "package-1", 200);
	tree_unlink(o.root, "intel-rapl:1/energy_uj");
	open_it(&o);
	assert_non_null(strstr(o.list.metric[0].absent, "intel-rapl:1/energy_uj"));
	assert_true(read_one(&o, "PACKAGE-0") == VALUE_ABSENT);
	assert_int_equal(read_one(&o, "PACKAGE-1"), 0);
	assert_null(energy_reader.keep_alive(o.reader));
	end(&o);
}

static void a_counter_that_goes_back_without_a_range_is_given_up(void **state)
{
	struct opened o;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 100);
	tree_unlink(o.root, "intel-rapl:0/max_energy_range_uj");
	open_it(&o);
	set(&o, 0, 50);
	assert_true(read_one(&o, "PACKAGE-0") == VALUE_ABSENT);
	set(&o, 0, 500);
	assert_true(read_one(&o, "PACKAGE-0") == VALUE_ABSENT);
	assert_non_null(strstr(energy_reader.keep_alive(o.reader), "went back"));
	end(&o);
}

/* One µJ more in each millisecond, never torn. */
static void tick(const struct opened *o)
{
	char path[256], text[8];
	int fd;

	snprintf(path, sizeof(path), "%s/intel-rapl:0/energy_uj", o->root);
	fd = open(path, O_WRONLY);
	for (int uj = 100001; fd >= 0; uj++) {
		int size = snprintf(text, sizeof(text), "%d\n", uj);

		if (pwrite(fd, text, (size_t)size, 0) != size)
			break;
		usleep(1000);
	}
	_exit(1);
}

static void a_baseline_is_measured_before_a_launch_alone(void **state)
{
	struct opened o;
	pid_t child;

	(void)state;
	tree_begin(&o);
	zone(&o, 0, "package-0", 100000);
	zone(&o, 1, "package-1", 100);
	o.env.idle_ns = 50 * NSEC_PER_MSEC;
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		tick(&o);
	open_for(&o, true);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* It has moved, and not faster than one in each millisecond. */
	assert_true(o.list.metric[0].idle_per_s > 0);
	assert_true(o.list.metric[0].idle_per_s <= 1100);
	assert_int_equal(o.list.metric[1].idle_per_s, 0);
	assert_int_equal(read_one(&o, "PACKAGE-1"), 0);
	end(&o);

	tree_begin(&o);
	zone(&o, 0, "package-0", 1);
	o.env.idle_ns = 3600 * NSEC_PER_SEC;
	open_it(&o);
	assert_int_equal(o.list.metric[0].idle_per_s, 0);
	assert_string_equal(o.list.metric[0].note, "no idle baseline, which needs jphase run");
	end(&o);
}

static void a_machine_without_counters_says_so(void **state)
{
	struct reader_env env = { .proc_root = "/nowhere", .sys_root = "/nowhere" };
	char reason[READER_REASON_ROOM] = "";

	(void)state;
	assert_true(energy_reader.probe(&env, reason) < 0);
	assert_non_null(strstr(reason, "no energy counters in /nowhere/class/powercap"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics_are_ordered_and_named),
		cmocka_unit_test(values_count_from_the_opening),
		cmocka_unit_test(a_wrap_adds_the_rest_of_the_range),
		cmocka_unit_test(three_wraps_between_two_readings_are_kept_alive),
		cmocka_unit_test(equal_dies_are_counted_once),
		cmocka_unit_test(different_dies_are_added),
		cmocka_unit_test(dies_that_start_at_zero_are_told_apart_when_they_move),
		cmocka_unit_test(a_zone_that_vanishes_is_noted_once_and_not_counted),
		cmocka_unit_test(a_package_with_an_unreadable_die_is_not_counted),
		cmocka_unit_test(a_counter_that_goes_back_without_a_range_is_given_up),
		cmocka_unit_test(a_baseline_is_measured_before_a_launch_alone),
		cmocka_unit_test(a_machine_without_counters_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
