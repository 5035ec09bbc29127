/* SPDX-License-Identifier: MIT */
/* Processes, threads, signals, sandboxes and faults: the program never notices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/markers.h"
#include "support/measure.h"

#define KILLS       200
#define CONTAINERS  9
#define KILL_WITHIN 60000 /* µs */

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

#define FOR_EACH_WAY(w) for (size_t w = 0; w < ARRAY_SIZE(ways); w++)

static struct measured m;

static int clear(void **state)
{
	(void)state;
	measure_clear(&m);
	return 0;
}

static void give(const char *const *words)
{
	size_t n = 0;

	for (; words[n]; n++)
		m.argv[n] = words[n];
	m.argv[n] = NULL;
}

#define GIVE(...) give((const char *const[]){ __VA_ARGS__, NULL })

/* Every test measures into a new file: an older one would become .old. */
static void measure_anew(enum way way)
{
	m.way = way;
	if (m.file)
		unlink(m.file);
	measure(&m);
}

/* What the same program says and how it ends without us. */
static void assert_as_without(void)
{
	struct child plain = { .argv = { NULL } };

	for (size_t i = 0; m.argv[i]; i++)
		plain.argv[i] = m.argv[i];
	plain.cwd = m.dir;
	assert_int_equal(run_program(&plain), 0);
	assert_string_equal(m.child.out, plain.out);
	assert_int_equal(m.child.code, plain.code);
	run_clear(&plain);
}

static uint64_t lost(void)
{
	return run_lost_markers(&m.model->runs[0]);
}

/* --- processes --- */

static void five_hundred_short_lived_children_are_all_there(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=a", "children=500", "phase=b");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_string_equal(m.child.out, "500 children, 0 failed\n");
		assert_int_equal(phase_count(&m, "child"), 500);
		assert_int_equal(lost(), 0);
		for (size_t i = 1; i < 500; i++)
			assert_true(phase_at(&m, "child", i)->process !=
				    phase_at(&m, "child", 0)->process);
	}
}

static void a_child_in_another_root_goes_on_marking(void **state)
{
	char *deed;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can change the root folder");
	m.dir = tmpdir_make();
	deed = text_make("chroot=%s", m.dir);
	GIVE(TARGET("act"), "phase=a", "fork", deed, "phase=jailed", "join", "phase=b");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_as_without();
		assert_int_equal(phase_count(&m, "jailed"), 1);
	}
	free(deed);
}

static void a_child_in_other_namespaces_goes_on_marking(void **state)
{
	struct child r = { .argv = { NULL } };

	(void)state;
	assert_int_equal(run_shell(&r, "unshare -m -p -f true"), 0);
	run_clear(&r);
	if (r.code != 0)
		skip_because("no namespaces can be made here");
	GIVE(TARGET("act"), "phase=a",
		"system=unshare -m -p -f " TARGET("act") " phase=inside touch=300 phase=end",
		"phase=b");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_as_without();
		assert_true(counted(&m, phase_at(&m, "inside", 0), "page-faults") >= 300);
	}
}

/*
 * As in a container whose script ends with the program: the collector is killed
 * in the same moment.  A program on a busy machine waits for it only so long.
 */
static void what_ends_with_its_container_is_recorded(void **state)
{
	struct child r = { .argv = { NULL } };
	int recorded = 0;

	(void)state;
	assert_int_equal(run_shell(&r, "unshare -p -f true"), 0);
	run_clear(&r);
	if (r.code != 0)
		skip_because("no namespaces can be made here");
	m.dir = tmpdir_make();
	for (int i = 0; i < CONTAINERS; i++) {
		char *file = text_make("%s/%d.msgpack", m.dir, i);
		struct markers *seen;

		run_shell(&r,
			"JPHASE_OUTPUT=%s unshare -p -f sh -c 'LD_PRELOAD=%s %s phase=a phase=b; "
			"exit 5'",
			file, LIBJPHASE, TARGET("act"));
		assert_int_equal(r.code, 5);
		wait_for_recording(file);
		seen = markers_read(file);
		recorded += markers_count(seen, "b") == 1 && markers_count(seen, "exit") == 1;
		markers_free(seen);
		free(file);
	}
	run_clear(&r);
	print_message("%d of %d were whole\n", recorded, CONTAINERS);
	assert_true(recorded > CONTAINERS / 2);
}

static void grandchildren_that_outlive_the_first_process_are_measured(void **state)
{
	(void)state;
	GIVE("sh", "-c", TARGET("act") " phase=first; (sleep 0.3; " TARGET("act") " phase=late) &");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_int_equal(phase_count(&m, "first"), 1);
		/* While the shell execs nobody is there, and the recording is complete. */
		for (int i = 0; i < 100 && phase_count(&m, "late") == 0; i++) {
			usleep(30000);
			measure_load(&m);
		}
		assert_int_equal(phase_count(&m, "late"), 1);
	}
}

/* A lock that the collector held open would outlive the program. */
static void locks_and_pipes_end_with_the_program(void **state)
{
	struct child r = { .argv = { NULL } };

	(void)state;
	m.dir = tmpdir_make();
	assert_int_equal(run_shell(&r,
				 "cd %s; LD_PRELOAD=%s flock lock -c '%s phase=a' | cat; "
				 "LD_PRELOAD=%s %s phase=a daemonise sleep=600; "
				 "flock -n lock echo free",
				 m.dir, LIBJPHASE, TARGET("act"), LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.out, "free\n");
	run_clear(&r);
}

/* --- threads and signals --- */

static void a_thousand_threads_mark_once_each(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=a", "threads=1000", "phase=b");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_int_equal(m.child.code, 0);
		assert_int_equal(phase_count(&m, "thread") + lost(), 1000);
		assert_int_equal(phase_count(&m, "b"), 1);
	}
}

static void handlers_mark_wherever_they_interrupt(void **state)
{
	int handled, jumped;

	(void)state;
	GIVE(TARGET("handlers"), "2000");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_as_without();
		assert_int_equal(
			sscanf(m.child.err, "handled %d, jumped %d", &handled, &jumped), 2);
		assert_true(handled > 0);
		/* Each jump may have come before its marker was emitted. */
		assert_true(phase_count(&m, "main") + (size_t)jumped >= 2000);
		assert_true(phase_count(&m, "handler") + lost() >= (size_t)handled);
		assert_int_equal(phase_count(&m, "last"), 1);
	}
}

/* What it was is over for the thread: later markers interrupt nothing. */
static void a_marker_that_was_jumped_out_of_marks_no_later_ones(void **state)
{
	static const char *const stacks[] = { "own", "stack" };

	(void)state;
	FOR_EACH_WAY(w)
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		struct markers *seen;

		GIVE(TARGET("jumper"), "4", stacks[i]);
		measure_anew(ways[w]);
		assert_as_without();
		seen = markers_read(m.file);
		assert_true(markers_count(seen, "inner") > 0);
		assert_int_equal(markers_count(seen, "deep"), 8);
		assert_int_equal(markers_flagged(seen, "deep", JPHASE_FLAG_NESTED), 0);
		assert_int_equal(markers_flagged(seen, "last", JPHASE_FLAG_NESTED), 0);
		markers_free(seen);
	}
}

static void a_phase_may_be_stopped_for_a_while(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=a", "sleep=600", "phase=b", "print=on");
	FOR_EACH_WAY(w)
	{
		m.way = ways[w];
		if (m.file)
			unlink(m.file);
		measure_start(&m);
		usleep(200000);
		kill(-m.child.pid, SIGSTOP);
		usleep(200000);
		kill(-m.child.pid, SIGCONT);
		measure_finish(&m);
		assert_string_equal(m.child.out, "on\n");
		assert_int_equal(phase_count(&m, "b"), 1);
	}
}

/* --- sandboxes --- */

static void markers_go_on_behind_a_filter_that_allows_futex_alone(void **state)
{
	(void)state;
	GIVE(TARGET("sandbox"), "filter");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_int_equal(m.child.code, 0);
		assert_non_null(strstr(m.child.out, "caged\n"));
		assert_non_null(strstr(m.child.out, "child\n"));
		assert_non_null(strstr(m.child.out, "thread\n"));
		assert_int_equal(phase_count(&m, "caged"), 20);
		assert_int_equal(phase_count(&m, "child"), 20);
		assert_int_equal(phase_count(&m, "thread"), 20);
	}
}

static void markers_go_on_in_the_strict_mode_in_async(void **state)
{
	(void)state;
#if defined(__x86_64__)
	skip_because("the kernel takes the processor's clock away in the strict mode on x86");
#endif
	m.env[0] = "JPHASE_MODE=async";
	GIVE(TARGET("sandbox"), "strict");
	FOR_EACH_WAY(w)
	{
		measure_anew(ways[w]);
		assert_string_equal(m.child.out, "caged\n");
		assert_int_equal(m.child.code, 0);
		assert_int_equal(phase_count(&m, "caged"), 20);
	}
}

static void without_proc_and_dev_the_program_still_runs(void **state)
{
	struct child r = { .argv = { NULL } };

	(void)state;
	assert_int_equal(run_shell(&r, "unshare -m mount -t tmpfs none /mnt"), 0);
	run_clear(&r);
	if (r.code != 0)
		skip_because("no file system can be mounted here");
	m.dir = tmpdir_make();
	assert_int_equal(
		run_shell(&r,
			"cd %s; unshare -m sh -c 'mount -t tmpfs none /proc && "
			"mount -t tmpfs none /dev && LD_PRELOAD=%s exec %s phase=a print=ran'",
			m.dir, LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.out, "ran\n");
	assert_int_equal(r.code, 0);
	run_clear(&r);
}

/* --- faults --- */

static void kill_at_a_random_moment(enum way way)
{
	struct stat st;
	pid_t collector;

	m.way = way;
	if (m.file)
		unlink(m.file);
	measure_start(&m);
	collector = wait_for_collector(m.file);
	usleep((useconds_t)(rand() % KILL_WITHIN));
	kill(collector, SIGKILL);
	run_finish(&m.child);
	assert_false(m.child.timed_out);
	/* So early that the launcher had not yet started the program: it says so. */
	if (m.child.code == 125 && strstr(m.child.err, "the collector did not start"))
		return;
	assert_string_equal(m.child.out, "done\n");
	assert_int_equal(m.child.code, 0);
	wait_for_recording(m.file);
	/* It may have come to nothing yet. */
	if (stat(m.file, &st) == 0 && st.st_size > 0)
		measure_load(&m);
}

static void the_collector_may_be_killed_at_any_moment(void **state)
{
	(void)state;
	srand(1);
	GIVE(TARGET("act"), "phase=a", "phases=60,1", "print=done");
	for (int i = 0; i < KILLS / 2; i++)
		FOR_EACH_WAY(w)
	kill_at_a_random_moment(ways[w]);
}

/* The target's own view of how long its markers took, one line for each "phases". */
static void slowest_ms(long *ret_worst, int count)
{
	const char *line = m.child.err;

	for (int i = 0; i < count; i++) {
		line = strstr(line, "slowest ");
		assert_non_null(line);
		line += strlen("slowest ");
		ret_worst[i] = atol(line);
	}
}

/*
 * Stopped during the second of three bursts: the first marker gives up after
 * 50 ms, nobody else waits, what finds no room is counted.
 */
static void a_stopped_collector_costs_50_ms_once(void **state)
{
	long worst[3];

	(void)state;
	m.env[0] = "JPHASE_RING=256";
	GIVE(TARGET("act"), "phases=100", "sleep=600", "phases=2000", "sleep=900", "phases=100",
		"phase=last", "sleep=200", "print=done");
	FOR_EACH_WAY(w)
	{
		pid_t collector;

		m.way = ways[w];
		if (m.file)
			unlink(m.file);
		measure_start(&m);
		collector = wait_for_collector(m.file);
		usleep(300000);
		kill(collector, SIGSTOP);
		usleep(700000);
		kill(collector, SIGCONT);
		measure_finish(&m);
		assert_string_equal(m.child.out, "done\n");
		slowest_ms(worst, 3);
		/* With the stop of a busy machine; a second wait would not be seen here. */
		assert_true(worst[1] >= 45 && worst[1] < 500);
		assert_int_equal(phase_count(&m, "step") + lost(), 2200);
		assert_true(lost() > 0);
		assert_int_equal(phase_count(&m, "last"), 1);
		counted(&m, phase_at(&m, "last", 0), "page-faults");
	}
}

static void a_session_that_has_died_is_ignored(void **state)
{
	struct child r = { .argv = { NULL } };

	(void)state;
	m.dir = tmpdir_make();
	assert_int_equal(
		run_shell(&r,
			"cd %s; JPHASE_SESSION=jphase-0123456789abcdef:"
			"00112233445566778899aabbccddeeff LD_PRELOAD=%s %s phase=a print=ran; ls",
			m.dir, LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.out, "ran\n");
	assert_string_equal(r.err, "");
	run_clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_teardown(t, clear)
		TEST(five_hundred_short_lived_children_are_all_there),
		TEST(a_child_in_another_root_goes_on_marking),
		TEST(a_child_in_other_namespaces_goes_on_marking),
		TEST(what_ends_with_its_container_is_recorded),
		TEST(grandchildren_that_outlive_the_first_process_are_measured),
		TEST(locks_and_pipes_end_with_the_program),
		TEST(a_thousand_threads_mark_once_each),
		TEST(handlers_mark_wherever_they_interrupt),
		TEST(a_marker_that_was_jumped_out_of_marks_no_later_ones),
		TEST(a_phase_may_be_stopped_for_a_while),
		TEST(markers_go_on_behind_a_filter_that_allows_futex_alone),
		TEST(markers_go_on_in_the_strict_mode_in_async),
		TEST(without_proc_and_dev_the_program_still_runs),
		TEST(the_collector_may_be_killed_at_any_moment),
		TEST(a_stopped_collector_costs_50_ms_once),
		TEST(a_session_that_has_died_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
