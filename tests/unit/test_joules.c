/* SPDX-License-Identifier: MIT */
/* What reports make of energy: errors, power, the target's part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "internal/util.h"
#include "support/tape.h"

#define WATT UINT64_C(1000000)

struct machine {
	struct metric energy[3];
	struct metric clock[1];
	struct metric busy[1];
	struct metric_list energy_list, clock_list, busy_list;
	struct recorder_reader readers[3];
	bool hidden; /* PACKAGE-1 */
};

static void machine_make(struct machine *m)
{
	static const struct metric domain = {
		.unit = UNIT_UJ,
		.scope = SCOPE_GLOBAL,
		.group = METRIC_NO_GROUP,
		.source = (char *)"RAPL (powercap)",
		.step_ns = MS,
	};
	static char *const names[] = { (char *)"PACKAGE-0", (char *)"PACKAGE-1", (char *)"PSYS" };

	memset(m, 0, sizeof(*m));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		m->energy[i] = domain;
		m->energy[i].name = names[i];
	}
	m->clock[0] = (struct metric){
		.name = (char *)"task-clock", .unit = UNIT_NS, .group = METRIC_NO_GROUP
	};
	m->busy[0] = (struct metric){
		.name = (char *)"global_usage_usec", .unit = UNIT_US, .group = METRIC_NO_GROUP
	};
	m->energy_list = (struct metric_list){ m->energy, 3, 0 };
	m->clock_list = (struct metric_list){ m->clock, 1, 0 };
	m->busy_list = (struct metric_list){ m->busy, 1, 0 };
	m->readers[0] = (struct recorder_reader){ "perf", true, NULL, &m->clock_list };
	m->readers[1] = (struct recorder_reader){ "cgroup", false, NULL, &m->busy_list };
	m->readers[2] = (struct recorder_reader){ "energy", true, NULL, &m->energy_list };
}

/* What stands in all counters at a boundary. */
struct at {
	uint64_t time, package_0, package_1, psys, clock_ns, busy_us;
};

static void read_all(struct tape *t, const struct machine *m, uint64_t number, struct at a)
{
	uint64_t energy[] = { a.package_0, m->hidden ? VALUE_ABSENT : a.package_1, a.psys };
	uint64_t time = T0 + a.time;

	recorder_snapshot(t->r, number, 0, "perf", time, time + US, &a.clock_ns, &m->clock_list);
	recorder_snapshot(t->r, number, RECORD_NO_PROCESS, "energy", time, time + US, energy,
		&m->energy_list);
	if (!m->readers[1].absent)
		recorder_snapshot(t->r, number, RECORD_NO_PROCESS, "cgroup", time, time + US,
			&a.busy_us, &m->busy_list);
}

static void phase(struct tape *t, uint64_t time, const char *name, uint64_t number)
{
	marker(t, (struct record_marker){ .time_ns = T0 + time,
			  .name = name,
			  .snapshot = number,
			  .done_ns = T0 + time });
}

/* START for 10 ms at 10 and 5 W, solve for 20 ms at 20 and 10 W, tiny for half a ms. */
static struct model *model_of(const struct machine *m, enum model_by by)
{
	struct tape t = { .fd = recording_fd() };

	t.r = recording_begin(t.fd, "sync", m->readers, ARRAY_SIZE(m->readers));
	process(&t, T0, 0, 100, "first");
	phase(&t, 0, "START", 1);
	read_all(&t, m, 1, (struct at){ 0, 7000, 9000, 100, 0, 50000 });
	phase(&t, 10 * MS, "solve", 2);
	read_all(&t, m, 2, (struct at){ 10 * MS, 107000, 59000, 300100, 5 * MS, 60000 });
	phase(&t, 30 * MS, "tiny", 3);
	read_all(&t, m, 3, (struct at){ 30 * MS, 507000, 259000, 1300100, 21 * MS, 92000 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 30 * MS + 500 * US,
			   .kind = JPHASE_EXIT,
			   .name = "",
			   .snapshot = 4 });
	read_all(&t, m, 4,
		(struct at){
			30 * MS + 500 * US, 508000, 259000, 1302100, 21 * MS + 400 * US, 92000 });
	gone(&t, 0, T0 + 31 * MS, 0);
	recorder_summary(t.r, T0 + 32 * MS, 4, 0, 1, 4, true);
	return tape_model(&t, by);
}

static void joules_come_with_their_error(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 1, "PACKAGE-0"), 400000);
	/* A millisecond more or less, of 20. */
	assert_int_equal(value(m, 1, "PACKAGE-0").error, 20000);
	assert_quality(value(m, 1, "PACKAGE-0"),
		"±5 % of the value as its counter moves about once in 1 ms");
	assert_counted(value(m, 2, "PACKAGE-0"), 1000);
	assert_quality(value(m, 2, "PACKAGE-0"),
		"shorter than the 1 ms in which its counter moves about once");
	model_close(m);
}

static void power_is_energy_by_time(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 0, "PACKAGE-0_power"), 10 * WATT);
	assert_counted(value(m, 1, "PACKAGE-0_power"), 20 * WATT);
	assert_counted(value(m, 1, "PSYS_power"), 50 * WATT);
	assert_missing(
		value(m, 2, "PACKAGE-0_power"), "not counted: shorter than a step of the counter");
	/* 501,000 µJ in 30.5 ms. */
	assert_counted(total(m, "PACKAGE-0_power"), 16426229);
	model_close(m);
}

static void the_target_has_its_share_of_the_packages_alone(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 0, "target_cpu_share"), 5000);
	assert_counted(value(m, 0, "target_energy"), 75000);
	assert_counted(value(m, 1, "target_energy"), 300000);
	assert_quality(value(m, 1, "target_energy"),
		"estimate; energy of the packages, idle power included, by target_cpu_share");
	assert_missing(value(m, 2, "target_energy"),
		"not counted: shorter than a step of the machine's busy time");
	model_close(m);
}

static void idle_power_is_taken_off_where_it_was_measured(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	machine.energy[0].idle_per_s = 2 * WATT;
	machine.energy[1].idle_per_s = 1 * WATT;
	m = model_of(&machine, BY_PHASE);
	/* Half of 600 mJ less 20 ms of 3 W. */
	assert_counted(value(m, 1, "target_energy"), 270000);
	assert_quality(value(m, 1, "target_energy"),
		"estimate; energy of the packages above that of the idle machine, by "
		"target_cpu_share");
	assert_int_equal(m->runs[0].note_count, 2);
	assert_string_equal(
		m->runs[0].notes[0], "PACKAGE-0: 2.000 W while the program had not begun");
	model_close(m);
}

static void idle_power_of_one_package_is_none_of_all(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	machine.energy[0].idle_per_s = 2 * WATT;
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 1, "target_energy"), 300000);
	model_close(m);
}

static void without_the_busy_time_there_is_no_estimate(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	machine.readers[1] = (struct recorder_reader){ "cgroup", false, "none here", NULL };
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 1, "PACKAGE-0"), 400000);
	assert_missing(value(m, 1, "target_energy"),
		"not counted: the busy time of the machine is not known, which the reader cgroup "
		"gives");
	model_close(m);
}

static void a_package_that_is_not_counted_has_its_reason_everywhere(void **state)
{
	static const char *const names[] = { "PACKAGE-1", "PACKAGE-1_power", "target_energy" };
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	machine.energy[1].absent = (char *)"only root may read it";
	machine.hidden = true;
	m = model_of(&machine, BY_PHASE);
	assert_counted(value(m, 1, "PACKAGE-0"), 400000);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_missing(value(m, 1, names[i]), "not counted: only root may read it");
	model_close(m);
}

static void rows_of_one_process_add_energies_and_errors(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = model_of(&machine, BY_PROCESS);
	assert_counted(value(m, 0, "PACKAGE-0"), 501000);
	/* 10,000 and 20,000 µJ, and all of the short one. */
	assert_int_equal(value(m, 0, "PACKAGE-0").error, 31000);
	assert_counted(value(m, 0, "target_energy"), 375000);
	assert_int_equal(value(m, 0, "target_energy").without, 1);
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joules_come_with_their_error),
		cmocka_unit_test(power_is_energy_by_time),
		cmocka_unit_test(the_target_has_its_share_of_the_packages_alone),
		cmocka_unit_test(idle_power_is_taken_off_where_it_was_measured),
		cmocka_unit_test(idle_power_of_one_package_is_none_of_all),
		cmocka_unit_test(without_the_busy_time_there_is_no_estimate),
		cmocka_unit_test(a_package_that_is_not_counted_has_its_reason_everywhere),
		cmocka_unit_test(rows_of_one_process_add_energies_and_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
