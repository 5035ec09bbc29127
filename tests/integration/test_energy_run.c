/* SPDX-License-Identifier: MIT */
/*
 * Energy through the whole path: a tree of zones covers /sys/class in a mount
 * namespace of the test's own, and the program under test moves the counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "support/measure.h"
#include "support/tree.h"

#define ZONES "/sys/class/powercap"
#define POWER "/sys/bus/event_source/devices/power"
#define RANGE 1000000

/* Longer than it takes until the collector looks at every counter again. */
#define LOOK "wait=400"

#define CAP_DAC_OVERRIDE    1
#define CAP_DAC_READ_SEARCH 2

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

static const char *refused; /* why there is no tree; NULL: there is one */

static int cover(const char *path)
{
	return SYS_RESULT(mount("none", path, "tmpfs", 0, NULL));
}

static int tree_mount(void **state)
{
	int err = SYS_RESULT(unshare(CLONE_NEWNS));

	(void)state;
	if (err == 0)
		err = SYS_RESULT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (err == 0)
		err = cover("/sys/class");
	/* Else the machine's own counters come first. */
	if (err == 0 && access(POWER, F_OK) == 0)
		err = cover(POWER);
	if (err < 0)
		refused = strerror(-err);
	return 0;
}

#define NEED_TREE()                                                                                \
	do {                                                                                       \
		if (refused)                                                                       \
			skip_because("no mount namespace: %s", refused);                           \
	} while (0)

static void zone(const char *root, const char *number, const char *label, const char *uj)
{
	char file[64];

	snprintf(file, sizeof(file), "intel-rapl%s/name", number);
	tree_write(root, file, "%s\n", label);
	snprintf(file, sizeof(file), "intel-rapl%s/max_energy_range_uj", number);
	tree_write(root, file, "%d\n", RANGE);
	snprintf(file, sizeof(file), "intel-rapl%s/energy_uj", number);
	tree_write(root, file, "%s\n", uj);
}

static void zones_clear(void)
{
	struct child rm = { .argv = { "rm", "-rf", ZONES } };

	assert_int_equal(run_program(&rm), 0);
	assert_int_equal(rm.code, 0);
	run_clear(&rm);
}

static void measure_well(struct measured *m)
{
	measure(m);
	if (m->child.code != 0)
		fail_msg("%s ended with %d: %s", m->argv[0], m->child.code, m->child.err);
}

static void energy_is(
	const struct measured *m, const char *phase, const char *metric, uint64_t right)
{
	uint64_t uj = counted(m, phase_at(m, phase, 0), metric);

	if (uj != right)
		fail_msg("%s of %s: %" PRIu64 ", not %" PRIu64, metric, phase, uj, right);
}

static bool is_noted(const struct measured *m, const char *text)
{
	for (size_t i = 0; i < m->model->runs[0].note_count; i++)
		if (strstr(m->model->runs[0].notes[i], text))
			return true;
	return false;
}

static void each_phase_has_its_microjoules(void **state)
{
	(void)state;
	NEED_TREE();
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct measured m = {
			.way = ways[w],
			.argv = { TARGET("zones"), ZONES, "0=1111", "warm", "0=3111", "1=600",
				"solve", "0=3118", "1=1600", "0:0=55", "2=90000" },
		};

		/* The sockets stand in swapped order. */
		zone(ZONES, ":0", "package-1", "1000");
		zone(ZONES, ":0:0", "dram", "5");
		zone(ZONES, ":1", "package-0", "500");
		zone(ZONES, ":2", "psys", "50000");
		zone(ZONES, "-mmio:0", "package-0", "400");
		measure_well(&m);
		energy_is(&m, "START", "PACKAGE-1", 111);
		energy_is(&m, "warm", "PACKAGE-1", 2000);
		energy_is(&m, "warm", "PACKAGE-0", 100);
		energy_is(&m, "solve", "PACKAGE-1", 7);
		energy_is(&m, "solve", "PACKAGE-0", 1000);
		energy_is(&m, "solve", "DRAM-1", 50);
		energy_is(&m, "solve", "PSYS", 40000);
		assert_int_equal(counted(&m, &m.model->runs[0].total, "PACKAGE-1"), 2118);
		measure_clear(&m);
		zones_clear();
	}
}

static void energy_grows_over_one_and_three_wraps(void **state)
{
	struct measured m = {
		.argv = { TARGET("zones"), ZONES, "one", "0=000300", "three", "0=900000", LOOK,
			"0=400000", LOOK, "0=900000", LOOK, "0=400000", LOOK, "0=900000", LOOK,
			"0=400000", "rest" },
	};

	(void)state;
	NEED_TREE();
	zone(ZONES, ":0", "package-0", "999000");
	measure_well(&m);
	energy_is(&m, "one", "PACKAGE-0", 1300);
	energy_is(&m, "three", "PACKAGE-0", 899700 + 5 * 500000);
	energy_is(&m, "rest", "PACKAGE-0", 0);
	measure_clear(&m);
	zones_clear();
}

static void dies_that_show_one_counter_are_counted_once(void **state)
{
	struct measured m = {
		.argv = { TARGET("zones"), ZONES, "solve", "0=7500", "1=7500", "2=9100", "3=8200",
			"rest" },
	};
	struct value v;

	(void)state;
	NEED_TREE();
	zone(ZONES, ":0", "package-0-die-0", "7000");
	zone(ZONES, ":1", "package-0-die-1", "7000");
	zone(ZONES, ":2", "package-1-die-0", "9000");
	zone(ZONES, ":3", "package-1-die-1", "8000");
	measure_well(&m);
	energy_is(&m, "solve", "PACKAGE-0", 500);
	energy_is(&m, "solve", "PACKAGE-1", 300);
	v = value_of(&m, phase_at(&m, "solve", 0), "PACKAGE-0");
	assert_non_null(strstr(v.note, "2 dies show the same counter"));
	measure_clear(&m);
	zones_clear();
}

static void a_zone_that_vanishes_leaves_the_others(void **state)
{
	struct measured m = {
		.argv = { TARGET("zones"), ZONES, "before", "0=1500", "1=1700", "after", "0=1600",
			"1=gone", LOOK, "rest" },
	};

	(void)state;
	NEED_TREE();
	zone(ZONES, ":0", "package-0", "1000");
	zone(ZONES, ":1", "package-1", "1000");
	measure_well(&m);
	energy_is(&m, "before", "PACKAGE-1", 700);
	energy_is(&m, "after", "PACKAGE-0", 100);
	assert_int_equal(value_of(&m, phase_at(&m, "after", 0), "PACKAGE-1").state, VALUE_NULL);
	assert_true(is_noted(&m, "energy: PACKAGE-1 is not counted any more"));
	measure_clear(&m);
	zones_clear();
}

/* Moves a counter until it is killed; all its numbers have the same length. */
static pid_t tick_begin(const char *file)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = sys_open(file, O_WRONLY, 0);
	for (int uj = 100001; fd >= 0; uj++) {
		char text[16];
		int size = snprintf(text, sizeof(text), "%d\n", uj);

		if (pwrite(fd, text, (size_t)size, 0) != size)
			break;
		usleep(1000);
	}
	_exit(1);
}

static void the_idle_machine_is_measured_before_the_program(void **state)
{
	struct measured m = {
		.options = { "--idle-baseline", "200ms" },
		.argv = { TARGET("zones"), ZONES, "solve", "wait=20" },
	};
	struct value target;
	pid_t ticker;

	(void)state;
	NEED_TREE();
	zone(ZONES, ":0", "package-0", "100000");
	ticker = tick_begin(ZONES "/intel-rapl:0/energy_uj");
	assert_true(ticker > 0);
	measure_well(&m);
	kill(ticker, SIGKILL);
	waitpid(ticker, NULL, 0);
	assert_true(is_noted(&m, "W while the program had not begun"));
	target = value_of(&m, &m.model->runs[0].total, "target_energy");
	if (target.state == VALUE_COUNTED)
		assert_non_null(strstr(target.note, "above that of the idle machine"));
	measure_clear(&m);
	zones_clear();
}

static void another_folder_needs_no_mount(void **state)
{
	char *root = tree_make();

	(void)state;
	zone(root, ":0", "package-0", "1000");
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		char *variable = text_make("JPHASE_POWERCAP_ROOT=%s", root);
		struct measured m = {
			.way = ways[w],
			.env = { variable },
			.argv = { TARGET("zones"), root, "solve", "0=1000", "rest", "0=1234" },
		};

		measure_well(&m);
		energy_is(&m, "rest", "PACKAGE-0", 234);
		measure_clear(&m);
		free(variable);
	}
	tree_remove(root);
}

static void a_folder_without_zones_is_refused(void **state)
{
	struct child r = { .argv = { JPHASE, "run", "--powercap-root", "/proc/self/fdinfo", "-o",
				   "/dev/null", "--", "true" } };

	(void)state;
	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 125);
	assert_non_null(strstr(r.err, "no energy counters in"));
	r.argv[3] = "/nowhere/at/all";
	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 125);
	assert_string_equal(r.err, "jphase: cannot read energy from \"/nowhere/at/all\": "
				   "No such file or directory\n");
	run_clear(&r);
}

/* The last one: what is dropped here cannot be taken up again. */
static void a_zone_that_may_not_be_read_names_the_command(void **state)
{
	static const char file[] = ZONES "/intel-rapl:1/energy_uj";
	struct measured m = { .argv = { TARGET("zones"), ZONES, "solve", "0=1500", "rest" } };
	struct value v;

	(void)state;
	NEED_TREE();
	zone(ZONES, ":0", "package-0", "1000");
	zone(ZONES, ":1", "package-1", "1000");
	assert_int_equal(chown(file, 65534, 65534), 0);
	assert_int_equal(chmod(file, 0400), 0);
	assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0), 0);
	measure_well(&m);
	energy_is(&m, "solve", "PACKAGE-0", 500);
	v = value_of(&m, phase_at(&m, "solve", 0), "PACKAGE-1");
	assert_int_equal(v.state, VALUE_NULL);
	assert_non_null(strstr(v.note, "sudo chmod a+r " ZONES "/intel-rapl:1/energy_uj"));
	/* The target's part cannot be told without it. */
	v = value_of(&m, phase_at(&m, "solve", 0), "target_energy");
	assert_int_equal(v.state, VALUE_NULL);
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_phase_has_its_microjoules),
		cmocka_unit_test(energy_grows_over_one_and_three_wraps),
		cmocka_unit_test(dies_that_show_one_counter_are_counted_once),
		cmocka_unit_test(a_zone_that_vanishes_leaves_the_others),
		cmocka_unit_test(the_idle_machine_is_measured_before_the_program),
		cmocka_unit_test(another_folder_needs_no_mount),
		cmocka_unit_test(a_folder_without_zones_is_refused),
		cmocka_unit_test(a_zone_that_may_not_be_read_names_the_command),
	};

	return cmocka_run_group_tests(tests, tree_mount, NULL);
}
