/* SPDX-License-Identifier: MIT */
/*
 * The counters of a cgroup that somebody else has made: the test moves into it,
 * and jphase and its program are started there; and of one that jphase makes.
 */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

#define BURDEN      BUILD_DIR "/guest/targets/burden"
#define ROOT        "/sys/fs/cgroup"
#define GROUP       ROOT "/guest-test"
#define DELEGATED   GROUP "/user"
#define USER        1000
#define MIB         (UINT64_C(1) << 20)
/* The kernel adds up what a CPU has charged 64 pages at a time. */
#define MEMORY_STEP (MIB / 4)

static void control(const char *file, const char *text)
{
	int err = file_write(file, text, strlen(text));

	if (err < 0)
		fail_msg("%s: cannot write \"%s\": %s", file, text, strerror(-err));
}

static int make_group(void **state)
{
	(void)state;
	control(ROOT "/cgroup.subtree_control", "+cpu +cpuset +io +memory +pids");
	return mkdir(GROUP, 0755);
}

/* The collector leaves a moment after the program.  False: processes or groups stay there. */
static bool is_removed(const char *group)
{
	for (int i = 0; i < 500; i++) {
		if (rmdir(group) == 0 || access(group, F_OK) != 0)
			return true;
		usleep(10000);
	}
	return false;
}

static int remove_group(void **state)
{
	(void)state;
	control(ROOT "/cgroup.procs", "0");
	return is_removed(GROUP) ? 0 : -1;
}

static struct measured burden(const char *deed, const char *second)
{
	return (struct measured){ .argv = { BURDEN, deed, second } };
}

static void measure_in(struct measured *m, const char *group)
{
	char *procs = text_make("%s/cgroup.procs", group);

	control(procs, "0");
	free(procs);
	measure(m);
	if (m->child.code != 0)
		fail_msg("the program ended with %d: %s", m->child.code, m->child.err);
}

static uint64_t in_phase(const struct measured *m, const char *phase, const char *metric)
{
	return counted(m, phase_at(m, phase, 0), metric);
}

static bool has_column(const struct measured *m, const char *name)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, name))
			return true;
	return false;
}

static bool is_noted(const struct measured *m, const char *text)
{
	const struct run *run = &m->model->runs[0];

	for (size_t i = 0; i < run->note_count; i++)
		if (strstr(run->notes[i], text))
			return true;
	return false;
}

static void bytes_past_the_page_cache_are_exact(void **state)
{
	struct measured m = burden("write=4096", "read=2048");

	(void)state;
	measure_in(&m, GROUP);
	assert_int_equal(in_phase(&m, "write", "proc_write_bytes"), 4 * MIB);
	assert_int_equal(in_phase(&m, "write", "proc_write_ops"), 64);
	assert_int_equal(in_phase(&m, "write", "proc_read_bytes"), 0);
	assert_int_equal(in_phase(&m, "read", "proc_read_bytes"), 2 * MIB);
	assert_int_equal(in_phase(&m, "read", "proc_read_ops"), 32);
	assert_int_equal(in_phase(&m, "read", "proc_write_bytes"), 0);
	assert_int_equal(in_phase(&m, "finish", "proc_read_bytes"), 0);
	measure_clear(&m);
}

static void memory_grows_by_what_is_touched(void **state)
{
	struct measured m = burden("memory=20", NULL);
	uint64_t grown;

	(void)state;
	measure_in(&m, GROUP);
	grown = in_phase(&m, "memory", "proc_anon_max") - in_phase(&m, "memory", "proc_anon_min");
	assert_in_range(grown, 20 * MIB - MEMORY_STEP, 20 * MIB + MEMORY_STEP);
	grown = in_phase(&m, "memory", "proc_current_max") -
		in_phase(&m, "memory", "proc_current_min");
	assert_in_range(grown, 20 * MIB - MEMORY_STEP, 21 * MIB);
	measure_clear(&m);
}

/* From Linux 6.12 on. */
static bool kernel_resets_peaks(void)
{
	int fd = open(GROUP "/memory.peak", O_RDWR | O_CLOEXEC);
	bool resets = fd >= 0 && write(fd, "r", 1) == 1;

	if (fd >= 0)
		close(fd);
	return resets;
}

static void the_peak_is_the_groups_highest(void **state)
{
	struct measured m = burden("memory=20", "spin=10");
	const struct row *row;

	(void)state;
	measure_in(&m, GROUP);
	row = phase_at(&m, "spin", 0);
	/* Others are in the group, and the two files are read one after the other. */
	assert_in_range(counted(&m, row, "proc_peak"), counted(&m, row, "proc_current_max") - MIB,
		counted(&m, row, "proc_current_max") + 4 * MIB);
	if (!kernel_resets_peaks())
		assert_non_null(strstr(value_of(&m, row, "proc_peak").note, "lifetime"));
	measure_clear(&m);
}

static void a_phase_has_its_own_peak_where_the_kernel_resets_it(void **state)
{
	struct measured m = burden("burst=40", "spin=10");

	(void)state;
	measure_in(&m, GROUP);
	assert_in_range(in_phase(&m, "burst", "proc_peak"), 40 * MIB, 50 * MIB);
	if (kernel_resets_peaks())
		assert_in_range(in_phase(&m, "spin", "proc_peak"), 0, 20 * MIB);
	else
		assert_in_range(in_phase(&m, "spin", "proc_peak"), 40 * MIB, 50 * MIB);
	assert_in_range(counted(&m, &m.model->runs[0].total, "proc_peak"), 40 * MIB, 50 * MIB);
	measure_clear(&m);
}

/* The test's own process is in the root, which the group is made in. */
static void a_group_that_is_made_has_all_controllers(void **state)
{
	struct measured m = burden("memory=20", "write=256");

	(void)state;
	m.options[0] = "--cgroup";
	m.options[1] = "create=made";
	measure_in(&m, ROOT);
	assert_in_range(in_phase(&m, "memory", "proc_anon_max"), 20 * MIB, 22 * MIB);
	assert_in_range(in_phase(&m, "memory", "proc_pids_current_max"), 1, 1);
	assert_int_equal(in_phase(&m, "write", "proc_write_bytes"), 256 * 1024);
	assert_null(value_of(&m, phase_at(&m, "write", 0), "proc_write_bytes").note);
	assert_int_equal(access(ROOT "/made", F_OK), -1);
	measure_clear(&m);
}

/* GROUP holds processes itself, so it may not pass controllers on. */
static void controllers_that_cannot_be_enabled_are_told(void **state)
{
	struct measured m = burden("spin=10", NULL);

	(void)state;
	m.options[0] = "--cgroup";
	m.options[1] = "create";
	measure_in(&m, GROUP);
	assert_true(is_noted(&m, "no internal processes"));
	assert_false(has_column(&m, "proc_current_max"));
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 8000, 30000);
	measure_clear(&m);
}

/* As systemd-run --scope starts it: jphase alone in a group, and then a group below that. */
static void jphase_steps_aside_where_it_is_alone(void **state)
{
	static const char start[] = "echo $$ >" GROUP "/cgroup.procs && exec " JPHASE
				    " run -q -o s.msgpack --cgroup create -- " BURDEN " memory=20";
	struct measured m = { .dir = tmpdir_make() };
	char *file = text_make("%s/s.msgpack", m.dir);

	(void)state;
	m.child.cwd = m.dir;
	assert_int_equal(run_shell(&m.child, "%s", start), 0);
	assert_int_equal(m.child.code, 0);
	m.file = file;
	wait_for_recording(m.file);
	measure_load(&m);
	assert_in_range(in_phase(&m, "memory", "proc_anon_max"), 20 * MIB, 22 * MIB);
	assert_true(has_column(&m, "proc_write_bytes"));
	measure_clear(&m);
	assert_true(is_removed(GROUP));
}

/* What jphase run says; the recording, if any, is m->file. */
static int run_as_user(struct measured *m, const char *group, const char *deed)
{
	char *said;
	size_t bytes;
	int status;
	pid_t pid;

	m->dir = tmpdir_make();
	m->file = text_make("%s/test.msgpack", m->dir);
	assert_int_equal(chown(m->dir, USER, USER), 0);
	pid = fork();
	if (pid == 0) {
		char *procs = text_make("%s/cgroup.procs", group);

		control(procs, "0");
		if (chdir(m->dir) < 0 || setgroups(0, NULL) < 0 || setgid(USER) < 0 ||
			setuid(USER) < 0 || !freopen("said", "w", stderr))
			_exit(99);
		execl(JPHASE, "jphase", "run", "-q", "-o", m->file, "--sources", "cgroup,procfs",
			"--cgroup", "create", "--", BURDEN, deed, NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	said = text_make("%s/said", m->dir);
	m->child.err = file_read(said, &bytes);
	free(said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As a user's own systemd has it: a folder of the user's, with a process in it. */
static void a_user_makes_groups_in_a_subtree_of_his_own(void **state)
{
	static const char *const files[] = { DELEGATED, DELEGATED "/cgroup.procs",
		DELEGATED "/cgroup.subtree_control", DELEGATED "/cgroup.threads" };
	struct measured m = { .way = WAY_RUN };

	(void)state;
	control(GROUP "/cgroup.subtree_control", "+cpu +io +memory +pids");
	assert_int_equal(mkdir(DELEGATED, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(chown(files[i], USER, USER), 0);
	if (run_as_user(&m, DELEGATED, "memory=20") != 0)
		fail_msg("it says: %s", m.child.err);
	wait_for_recording(m.file);
	measure_load(&m);
	assert_in_range(in_phase(&m, "memory", "proc_anon_max"), 20 * MIB, 22 * MIB);
	assert_int_equal(in_phase(&m, "memory", "proc_pids_current_max"), 1);
	assert_null(value_of(&m, phase_at(&m, "memory", 0), "proc_anon_max").note);
	measure_clear(&m);
	assert_true(is_removed(DELEGATED));
}

static void a_user_without_a_subtree_is_told_once(void **state)
{
	struct measured m = { .way = WAY_RUN };

	(void)state;
	assert_int_equal(run_as_user(&m, GROUP, "memory=20"), 125);
	assert_non_null(strstr(m.child.err, "belongs to another user; try systemd-run --user"));
	assert_ptr_equal(strchr(m.child.err, '\n'), strrchr(m.child.err, '\n'));
	assert_int_equal(access(m.file, F_OK), -1);
	measure_clear(&m);
}

static pid_t start_outsider(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (volatile int i = 0;; i++)
			continue;
	assert_true(pid > 0);
	return pid;
}

/* How long it has computed, in ms. */
static long end_outsider(pid_t pid)
{
	struct rusage usage;
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	return usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000;
}

static void the_work_of_an_outsider_counts_nothing(void **state)
{
	struct measured m = burden("idle=200", "spin=10");
	pid_t outsider;

	(void)state;
	m.env[0] = "JPHASE_CGROUP=create=made";
	m.env[1] = "JPHASE_SCOPE=cgroup";
	m.env[2] = "JPHASE_EVENTS=instructions:u,task-clock";
	control(ROOT "/cgroup.procs", "0");
	outsider = start_outsider();
	measure(&m);
	assert_true(end_outsider(outsider) > 50);
	assert_int_equal(m.child.code, 0);
	/* The marker, and two calls to sleep. */
	assert_in_range(in_phase(&m, "idle", "instructions:u"), 1, 5000);
	assert_in_range(in_phase(&m, "idle", "task-clock"), 1, 1000000);
	assert_true(in_phase(&m, "spin", "instructions:u") > 5000000);
	measure_clear(&m);
}

/* One event by ten names, for a PMU that holds six at a time. */
#define TEN_EVENTS                                                                                 \
	"instructions:u,r8:u,r08:u,r008:u,r0008:u,r00008:u,r000008:u,r0000008:u,r00000008:u,"      \
	"r000000008:u"

/* The collector sleeps between markers: to switch to it costs the group some time. */
static struct measured ten_events(const char *count, const char *length)
{
	return (struct measured){
		.options = { "--cgroup", "create=made", "--scope", "cgroup", "-e", TEN_EVENTS },
		.env = { "JPHASE_INTERVAL=0" },
		.argv = { BUILD_DIR "/guest/targets/work", "phases", count, length, "0" },
	};
}

static bool is_of_ten(const struct measured *m, size_t column)
{
	return strstr("," TEN_EVENTS ",", m->model->columns[column].name) != NULL;
}

/* How far the worst of ten values in two phases is from that, in parts of a thousand. */
static unsigned worst_of_ten(const struct measured *m, uint64_t truth)
{
	uint64_t worst = 0;
	size_t values = 0;

	for (size_t i = 0; i < 2 * m->model->column_count; i++) {
		const struct row *row = phase_at(m, i % 2 ? "p00001" : "p00000", 0);
		struct value v = model_value(m->model, row, i / 2);

		if (!is_of_ten(m, i / 2))
			continue;
		values++;
		assert_int_equal(v.state, VALUE_COUNTED);
		worst = MAX(worst, v.number > truth ? v.number - truth : truth - v.number);
		assert_true(v.flags & VALUE_SCALED);
		if (v.coverage < 0.3 || v.coverage > 0.8)
			fail_msg("counted %.3f of the time", v.coverage);
	}
	assert_int_equal(values, 20);
	return (unsigned)(worst * 1000 / truth);
}

/* The kernel takes turns by its clock, which a busy machine may stop: three times. */
static void events_of_a_group_share_the_counters_and_are_scaled(void **state)
{
	unsigned worst = 1000;

	(void)state;
	for (int i = 0; i < 3 && worst > 10; i++) {
		struct measured m = ten_events("2", "200000000");

		measure_in(&m, ROOT);
		worst = worst_of_ten(&m, 200000000);
		print_message("scaled to within %u in a thousand\n", worst);
		measure_clear(&m);
	}
	assert_true(worst <= 10);
}

/* Nothing of what a phase lacks is in the next one. */
static void a_phase_in_which_a_group_did_not_run_is_no_others_matter(void **state)
{
	struct measured m = ten_events("40", "100000");
	size_t never = 0, whole = 0;

	(void)state;
	measure_in(&m, ROOT);
	for (size_t i = 0; i < m.model->row_count; i++) {
		const struct row *row = &m.model->rows[i];

		for (size_t k = 0; k < m.model->column_count && row->name[0] == 'p'; k++) {
			struct value v = model_value(m.model, row, k);

			if (!is_of_ten(&m, k))
				continue;
			never += v.state == VALUE_NULL;
			if (v.state != VALUE_COUNTED || v.flags & VALUE_SCALED)
				continue;
			whole++;
			assert_in_range(v.number, 100000, 105000);
		}
	}
	print_message("%zu values whole, %zu never counted\n", whole, never);
	assert_true(never > 0 && whole > 0);
	measure_clear(&m);
}

/* The kernel has no perf controller until any controller has been enabled. */
static void before_any_controller_is_enabled_a_group_is_refused(void **state)
{
	struct child r = { .argv = { JPHASE, "run", "-o", "/tmp/refused.msgpack", "--cgroup",
				   "/early", "--scope", "cgroup", "--", "echo", "started" } };
	size_t bytes;
	char *enabled = file_read(ROOT "/cgroup.subtree_control", &bytes);

	(void)state;
	assert_non_null(enabled);
	bytes = strspn(enabled, "\n");
	if (enabled[bytes])
		skip_because("some controllers have been enabled already: %s", enabled);
	free(enabled);
	assert_int_equal(mkdir(ROOT "/early", 0755), 0);
	assert_int_equal(run_program(&r), 0);
	assert_int_equal(r.code, 125);
	assert_string_equal(r.out, "");
	assert_non_null(strstr(r.err, "as long as no controller has ever been enabled in the "
				      "root: echo \"+"));
	assert_non_null(strstr(r.err, ROOT "/cgroup.subtree_control"));
	run_clear(&r);
	assert_int_equal(rmdir(ROOT "/early"), 0);
}

/* jphase enables them itself. */
static void a_group_that_is_made_first_of_all_is_counted(void **state)
{
	struct measured m = burden("spin=10", NULL);

	(void)state;
	m.options[0] = "--cgroup";
	m.options[1] = "create=made";
	m.options[2] = "--scope";
	m.options[3] = "cgroup";
	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_true(in_phase(&m, "spin", "INSTRUCTIONS") > 5000000);
	assert_int_equal(access(ROOT "/made", F_OK), -1);
	measure_clear(&m);
}

static void faults_in_a_group_of_its_own_are_exact(void **state)
{
	struct measured m = {
		.options = { "--cgroup", "create=made", "--scope", "cgroup" },
		.argv = { TARGET("pages"), "20", "100", "300" },
	};
	/* Beside hardware events, Linux 6.1 counts one too many for each interruption. */
	bool old = !kernel_resets_peaks();

	(void)state;
	measure_in(&m, ROOT);
	for (size_t i = 0; i < 40; i++) {
		const struct row *row = phase_at(&m, i % 2 ? "p1" : "p0", i / 2);
		uint64_t pages = i % 2 ? 300 : 100;
		uint64_t surplus = old ? counted(&m, row, "context-switches") : 0;

		assert_in_range(counted(&m, row, "page-faults"), pages, pages + surplus);
	}
	assert_true(counted(&m, phase_at(&m, "p1", 0), "INSTRUCTIONS") > 0);
	measure_clear(&m);
}

static void cpu_time_is_the_groups(void **state)
{
	struct measured m = burden("spin=300", NULL);

	(void)state;
	measure_in(&m, GROUP);
	/* The collector is in the group as well. */
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 300000, 360000);
	assert_int_equal(in_phase(&m, "spin", "proc_nr_throttled"), 0);
	measure_clear(&m);
}

/* A tenth of a CPU: 300 ms of it take 30 periods, and nine tenths of each pass in waiting. */
static void throttling_is_counted(void **state)
{
	struct measured m = burden("spin=300", NULL);

	(void)state;
	control(GROUP "/cpu.max", "10000 100000");
	measure_in(&m, GROUP);
	control(GROUP "/cpu.max", "max 100000");
	assert_in_range(in_phase(&m, "spin", "proc_nr_throttled"), 25, 45);
	assert_in_range(in_phase(&m, "spin", "proc_throttled_usec"), 2000000, 4500000);
	assert_in_range(in_phase(&m, "spin", "proc_cpu_usage"), 600, 1400);
	assert_true(in_phase(&m, "spin", "proc_cpu_some_usec") > 2000000);
	measure_clear(&m);
}

static void processes_are_counted(void **state)
{
	struct measured m = burden("hold=10", NULL);

	(void)state;
	measure_in(&m, GROUP);
	assert_int_equal(in_phase(&m, "hold", "proc_pids_current_max"),
		in_phase(&m, "hold", "proc_pids_current_min") + 10);
	measure_clear(&m);
}

static void a_kill_for_memory_is_counted_in_its_phase(void **state)
{
	struct measured m = burden("spin=10", "exceed=64");

	(void)state;
	control(GROUP "/memory.max", "33554432");
	measure_in(&m, GROUP);
	control(GROUP "/memory.max", "max");
	assert_int_equal(in_phase(&m, "exceed", "proc_memory_oom_kill"), 1);
	assert_int_equal(in_phase(&m, "spin", "proc_memory_oom_kill"), 0);
	assert_int_equal(in_phase(&m, "finish", "proc_memory_oom_kill"), 0);
	measure_clear(&m);
}

static void a_shared_group_says_with_how_many(void **state)
{
	struct measured m = burden("spin=10", NULL);
	struct value v;

	(void)state;
	measure_in(&m, GROUP);
	v = value_of(&m, phase_at(&m, "spin", 0), "proc_usage_usec");
	assert_non_null(v.note);
	assert_non_null(strstr(v.note, "shared with "));
	measure_clear(&m);
}

static void without_its_controllers_a_group_has_cpu_time_alone(void **state)
{
	struct measured m = burden("spin=100", "write=64");

	(void)state;
	assert_int_equal(mkdir(GROUP "/bare", 0755), 0);
	measure_in(&m, GROUP "/bare");
	control(ROOT "/cgroup.procs", "0");
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 150000);
	assert_false(has_column(&m, "proc_write_bytes"));
	assert_false(has_column(&m, "proc_current_max"));
	assert_int_equal(in_phase(&m, "write", "global_write_bytes"), 65536);
	measure_clear(&m);
	assert_true(is_removed(GROUP "/bare"));
}

static void a_threaded_group_is_measured_and_named_so(void **state)
{
	struct measured m = burden("spin=100", NULL);
	struct value v;

	(void)state;
	assert_int_equal(mkdir(GROUP "/threaded", 0755), 0);
	control(GROUP "/threaded/cgroup.type", "threaded");
	control(GROUP "/cgroup.procs", "0");
	measure_in(&m, GROUP "/threaded");
	control(ROOT "/cgroup.procs", "0");
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 150000);
	v = value_of(&m, phase_at(&m, "spin", 0), "proc_usage_usec");
	assert_non_null(strstr(v.note, "threaded group"));
	measure_clear(&m);
	assert_true(is_removed(GROUP "/threaded"));
}

/* The program is then in another group: values of two groups are not subtracted. */
static void a_group_that_is_left_and_removed_is_told(void **state)
{
	struct measured m = burden("spin=100", "remove=0");

	(void)state;
	measure_in(&m, GROUP);
	assert_in_range(in_phase(&m, "spin", "proc_usage_usec"), 100000, 150000);
	/* It stands still, or goes on with the new group's. */
	assert_in_range(in_phase(&m, "finish", "proc_usage_usec"), 0, 100000);
	assert_true(is_noted(&m, "has moved from " GROUP) || is_noted(&m, GROUP " was removed"));
	measure_clear(&m);
}

#define in_group(test) cmocka_unit_test_setup_teardown(test, make_group, remove_group)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: no controller is enabled yet. */
		cmocka_unit_test(before_any_controller_is_enabled_a_group_is_refused),
		cmocka_unit_test(a_group_that_is_made_first_of_all_is_counted),
		in_group(bytes_past_the_page_cache_are_exact),
		in_group(memory_grows_by_what_is_touched),
		in_group(the_peak_is_the_groups_highest),
		in_group(cpu_time_is_the_groups),
		in_group(throttling_is_counted),
		in_group(processes_are_counted),
		in_group(a_kill_for_memory_is_counted_in_its_phase),
		in_group(a_shared_group_says_with_how_many),
		in_group(without_its_controllers_a_group_has_cpu_time_alone),
		in_group(a_threaded_group_is_measured_and_named_so),
		in_group(a_group_that_is_left_and_removed_is_told),
		in_group(a_phase_has_its_own_peak_where_the_kernel_resets_it),
		in_group(a_group_that_is_made_has_all_controllers),
		in_group(controllers_that_cannot_be_enabled_are_told),
		in_group(jphase_steps_aside_where_it_is_alone),
		in_group(faults_in_a_group_of_its_own_are_exact),
		in_group(a_user_makes_groups_in_a_subtree_of_his_own),
		in_group(a_user_without_a_subtree_is_told_once),
		in_group(the_work_of_an_outsider_counts_nothing),
		in_group(events_of_a_group_share_the_counters_and_are_scaled),
		in_group(a_phase_in_which_a_group_did_not_run_is_no_others_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
