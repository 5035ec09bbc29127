/* SPDX-License-Identifier: MIT */
/* Regions: counters of a thread at its own markers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/tally.h"

/* Of known page faults; JPHASE_TEST_REGIONS=N for more or fewer. */
#define REGIONS     60000
#define REGIONS_SAN 4000
#define THREADS     4

/* How often a busy machine gets another chance. */
#define ATTEMPTS 10

static long regions_wanted(void)
{
	const char *text = getenv("JPHASE_TEST_REGIONS");

	return text ? atol(text) : HAVE_ASAN ? REGIONS_SAN : REGIONS;
}

static void every_region_is_exact_on_four_migrating_threads(void **state)
{
	char *each = text_make("%ld", regions_wanted() / THREADS);
	struct measured m = {
		.options = { TALLY_OPTIONS, "--mode", "auto" },
		.argv = { TARGET("regions"), "4", each },
	};
	struct tally t;

	(void)state;
	need_perf();
	measure(&m);
	assert_int_equal(m.child.code, 0);
	t = tally_of(m.file);
	measure_clear(&m);
	tally_need_exact(&t);
	print_message("%zu regions, %zu sampled at both ends, %zu right, %zu off by one\n",
		t.regions, t.sampled, t.right, t.off_by_one);
	/* On a busy machine some samples may find no room; then that is said. */
	if (t.unwaited == 0) {
		assert_int_equal(t.regions, THREADS * atol(each));
		assert_int_equal(t.sampled, t.regions);
	}
	assert_true(t.sampled > 0);
	assert_int_equal(t.sampled + t.late + t.without, t.regions);
	assert_int_equal(t.wrong, 0);
	assert_true(t.off_by_one <= 1);
	free(each);
}

static void regions_are_exact_in_sync_mode_too(void **state)
{
	static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

	(void)state;
	for (size_t w = 0; w < 2; w++) {
		struct measured m = {
			.way = ways[w],
			.env = { "JPHASE_MODE=sync", TALLY_ENV },
			.argv = { TARGET("regions"), "4", "250" },
		};
		struct tally t = tally_calmly(&m);

		assert_string_equal(t.mode, "sync");
		assert_int_equal(t.sampled, 0);
		assert_int_equal(t.regions, 1000);
		assert_int_equal(t.right, 1000);
	}
}

/*
 * A forked child meets 16 pages of the ring at a time, nine times in all, and
 * all its threads can meet the same ones at once.
 */
static void assert_child_is_exact(const struct tally *t, size_t regions, size_t threads)
{
	print_message("%zu right, %zu off by one, %zu wrong\n", t->right, t->off_by_one, t->wrong);
	assert_int_equal(t->regions, regions);
	assert_int_equal(t->sampled, regions);
	assert_true(t->off_by_one <= threads * 9);
	assert_int_equal(t->wrong, 0);
}

static void forked_child_has_exact_regions(void **state)
{
	struct measured m = {
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "2", "300", "fork" },
	};
	struct tally t = tally_calmly(&m);

	(void)state;
	tally_need_exact(&t);
	assert_child_is_exact(&t, 600, 2);
}

static void raw_clone_has_exact_regions(void **state)
{
	struct measured m = {
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "1", "300", "clone" },
	};
	struct tally t = tally_calmly(&m);

	(void)state;
	tally_need_exact(&t);
	assert_child_is_exact(&t, 300, 1);
}

/* The shell has no region: the probe is met by what it starts. */
static void exec_ed_children_have_exact_regions(void **state)
{
	struct measured m = {
		.options = { TALLY_OPTIONS },
		.argv = { "sh", "-c",
			TARGET("regions") " 2 100 && " TARGET("regions") " 2 100 fork && :" },
	};
	struct tally t = tally_calmly(&m);

	(void)state;
	tally_need_exact(&t);
	assert_child_is_exact(&t, 400, 2);
}

#define FORKS     1500
#define FORKS_SAN 200

/* Each child's r5 is whole, if its parent was interrupted at whatever place. */
static void a_handler_forks_inside_a_marker(void **state)
{
	char *count = text_make("%d", HAVE_ASAN ? FORKS_SAN : FORKS);
	struct measured m = {
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("forker"), count },
		.child.timeout_ms = 300000,
	};
	struct tally t;
	int forked = 0, bad = -1;

	(void)state;
	need_perf();
	measure(&m);
	assert_int_equal(sscanf(m.child.out, "%d %d", &forked, &bad), 2);
	assert_int_equal(bad, 0);
	assert_int_equal(forked, atol(count));
	assert_int_equal(m.child.code, 0);
	t = tally_of(m.file);
	measure_clear(&m);
	tally_need_exact(&t);
	print_message("%zu regions, %zu sampled, %zu off by one, %zu late, %zu without counters\n",
		t.regions, t.sampled, t.off_by_one, t.late, t.without);
	assert_true(t.regions <= FORKS);
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.right + t.off_by_one, t.sampled);
	/* Its markers cannot be taken while the handler holds up its parent's claim. */
	assert_true(t.sampled > 0);
	free(count);
}

static void two_sessions_do_not_disturb_each_other(void **state)
{
	struct measured a = {
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "2", "500" },
	};
	struct measured b = a;
	struct tally of_a = { .unwaited = 1 }, of_b = { .unwaited = 1 };

	(void)state;
	need_perf();
	for (int i = 0; i < ATTEMPTS && of_a.unwaited + of_b.unwaited; i++) {
		measure_start(&a);
		measure_start(&b);
		measure_finish(&a);
		measure_finish(&b);
		of_a = tally_of(a.file);
		of_b = tally_of(b.file);
		unlink(a.file);
		unlink(b.file);
	}
	measure_clear(&a);
	measure_clear(&b);
	tally_need_exact(&of_a);
	if (of_a.unwaited + of_b.unwaited)
		skip_because("markers had to wait for more than 50 ms: too busy a machine");
	assert_int_equal(of_a.sampled, 1000);
	assert_int_equal(of_a.wrong, 0);
	assert_int_equal(of_b.sampled, 1000);
	assert_int_equal(of_b.wrong, 0);
	assert_true(of_a.off_by_one + of_b.off_by_one <= 1);
}

/* Those beyond the limit have times alone. */
static void assert_some_without(struct measured *m, const char *why)
{
	struct tally t = { .regions = 0 };

	/* On a busy machine a thread may have ended first, and that be the note. */
	for (int i = 0; i < ATTEMPTS && !strstr(t.notes, why); i++) {
		measure(m);
		assert_int_equal(m->child.code, 0);
		t = tally_of(m->file);
		unlink(m->file);
	}
	measure_clear(m);
	tally_need_exact(&t);
	print_message("%zu regions, %zu sampled, %zu without counters\n", t.regions, t.sampled,
		t.without);
	if (!strstr(t.notes, why) && strstr(t.notes, "ended before its counters"))
		skip_because("threads end before the collector meets them: too busy a machine");
	assert_non_null(strstr(t.notes, "regions have times but no counters: "));
	assert_non_null(strstr(t.notes, why));
	assert_int_equal(t.regions, 60 * 3);
	assert_int_equal(t.wrong, 0);
	assert_true(t.without > 0);
}

static void threads_beyond_the_descriptors_keep_their_times(void **state)
{
	struct measured m = {
		/* Who may would raise the limit. */
		.through = { "setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource",
			"prlimit", "--nofile=160:160" },
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "60", "3" },
	};

	(void)state;
	need_perf();
	if (geteuid() != 0 || !have_program("setpriv") || !have_program("prlimit"))
		skip_because("it needs root, setpriv and prlimit");
	assert_some_without(&m, "too many open files for the counters of thread");
}

static void threads_beyond_the_locked_memory_keep_their_times(void **state)
{
	/* perf_event_mlock_kb for each CPU, and no more. */
	struct measured m = {
		.through = { "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
			"prlimit", "--memlock=0:0" },
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "60", "3" },
	};
	char *kb;
	size_t bytes;

	(void)state;
	need_perf();
	if (geteuid() != 0 || !have_program("setpriv") || !have_program("prlimit"))
		skip_because("it needs root, setpriv and prlimit");
	kb = file_read("/proc/sys/kernel/perf_event_mlock_kb", &bytes);
	if (!kb || atol(kb) * sysconf(_SC_NPROCESSORS_ONLN) > 60 * 36) {
		free(kb);
		skip_because("perf_event_mlock_kb lets 60 threads be sampled here");
	}
	free(kb);
	assert_some_without(&m, "no memory to lock for the samples of thread");
}

/* The process stops itself; then so is what it has told. */
static void wait_stopped(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* Its regions come while the collector does nothing. */
static struct tally tally_without_collector(const char *count, const char *ring)
{
	struct measured m = {
		.way = WAY_PRELOAD,
		.env = { TALLY_ENV, ring },
		.argv = { TARGET("regions"), "1", count, "stop" },
	};
	struct tally t = { .cold = 1 };

	need_perf();
	for (int i = 0; i < ATTEMPTS && t.cold; i++) {
		pid_t collector;

		measure_start(&m);
		wait_stopped(m.child.pid);
		collector = wait_for_collector(m.file);
		kill(collector, SIGSTOP);
		kill(m.child.pid, SIGCONT);
		wait_stopped(m.child.pid);
		kill(collector, SIGCONT);
		kill(m.child.pid, SIGCONT);
		measure_finish(&m);
		assert_int_equal(m.child.code, 0);
		t = tally_of(m.file);
		unlink(m.file);
	}
	measure_clear(&m);
	if (t.cold)
		skip_because("markers had to wait for more than 50 ms: too busy a machine");
	tally_need_exact(&t);
	print_message("%zu regions, %zu sampled, %zu right, %zu late, %zu without; lost: "
		      "%llu markers, %llu samples\n",
		t.regions, t.sampled, t.right, t.late, t.without, (unsigned long long)t.lost,
		(unsigned long long)t.lost_samples);
	return t;
}

/* Each marker makes a sample of 144 bytes, in a buffer of 32 KiB. */
static void regions_are_exact_while_the_collector_is_stopped(void **state)
{
	struct tally t = tally_without_collector("100", "JPHASE_RING=4096");

	(void)state;
	assert_int_equal(t.regions, 100);
	assert_int_equal(t.sampled, 100);
	assert_int_equal(t.right, 100);
	assert_int_equal(t.lost + t.lost_samples, 0);
}

/* The ring holds all markers, the buffer a part of their samples. */
static void samples_beyond_the_buffer_are_counted(void **state)
{
	struct tally t = tally_without_collector("1000", "JPHASE_RING=4096");

	(void)state;
	assert_int_equal(t.regions, 1000);
	assert_true(t.sampled >= 100);
	assert_int_equal(t.right, t.sampled);
	assert_int_equal(t.lost, 0);
	/* A region with one boundary more is among the late ones. */
	assert_in_range(t.lost_samples, 2 * (1000 - t.sampled) - 1, 2 * (1000 - t.sampled));
	assert_int_equal(t.late, 1000 - t.sampled);
}

/* Nor does the ring: what comes when it is full is gone. */
static void markers_beyond_the_ring_are_counted(void **state)
{
	struct tally t = tally_without_collector("1000", "JPHASE_RING=1024");

	(void)state;
	assert_true(t.sampled >= 100);
	assert_int_equal(t.right, t.sampled);
	/* The warm-up's markers may still be in the ring. */
	assert_in_range(t.lost, 2 * 1000 - 1024, 2 * 1000 - 1024 + 6);
	assert_int_equal(t.regions, (2 * 1000 - t.lost) / 2);
	assert_in_range(
		t.lost_samples, 2 * (t.regions - t.sampled) - 1, 2 * (t.regions - t.sampled) + 1);
}

static const struct region *region_at(const struct measured *m, const char *name)
{
	for (size_t i = 0; i < m->model->region_count; i++)
		if (str_eq(m->model->regions[i].name, name))
			return &m->model->regions[i];
	fail_msg("no region is called %s", name);
	return NULL;
}

/* What was tangled is named, and what follows is as it should be. */
static void mismatches_are_repaired_and_counted(void **state)
{
	static const char *const repaired[] = { "crossed", "left", "thread", "inner" };
	static const char *const modes[] = { "sync", "auto", "async" };

	(void)state;
	need_perf();
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct measured m = {
			.options = { TALLY_OPTIONS, "--mode", modes[i] },
			.argv = { TARGET("tangle") },
		};
		const struct run *run;
		size_t whole = 0;

		measure(&m);
		assert_int_equal(m.child.code, 0);
		run = &m.model->runs[0];
		/* Its own end comes when it is closed already. */
		assert_int_equal(run->repairs[REPAIR_STRAY].count, 2);
		assert_int_equal(run->repairs[REPAIR_CROSSED].count, 2);
		assert_int_equal(run->repairs[REPAIR_UNCLOSED].count, 2);
		for (size_t k = 0; k < ARRAY_SIZE(repaired); k++)
			assert_true(region_at(&m, repaired[k])->repaired);
		for (size_t k = 0; k < m.model->region_count; k++) {
			const struct region *r = &m.model->regions[k];

			whole += str_eq(r->name, "whole") && !r->repaired;
			if (str_eq(r->name, "whole"))
				assert_int_equal(r->depth, r->parent == MODEL_NONE ? 0 : 2);
		}
		assert_int_equal(whole, 5);
		measure_clear(&m);
	}
}

/* The counters of the thread whose id it has taken count nothing any more. */
static void a_thread_that_execs_is_counted_anew(void **state)
{
	static const char *const modes[] = { "sync", "auto" };

	(void)state;
	need_perf();
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct measured m = {
			.options = { TALLY_OPTIONS, "--mode", modes[i] },
			.argv = { TARGET("successor") },
		};
		struct value faults = { .state = VALUE_MISSING };

		measure(&m);
		assert_int_equal(m.child.code, 0);
		for (size_t c = 0; c < m.model->column_count; c++)
			if (str_eq(m.model->columns[c].name, "page-faults"))
				faults = region_value(
					m.model, region_at(&m, "after"), REGION_WHOLE, c);
		assert_int_equal(faults.state, VALUE_COUNTED);
		assert_in_range(faults.number, 300, 301);
		measure_clear(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_region_is_exact_on_four_migrating_threads),
		cmocka_unit_test(regions_are_exact_in_sync_mode_too),
		cmocka_unit_test(a_thread_that_execs_is_counted_anew),
		cmocka_unit_test(forked_child_has_exact_regions),
		cmocka_unit_test(raw_clone_has_exact_regions),
		cmocka_unit_test(exec_ed_children_have_exact_regions),
		cmocka_unit_test(a_handler_forks_inside_a_marker),
		cmocka_unit_test(regions_are_exact_while_the_collector_is_stopped),
		cmocka_unit_test(samples_beyond_the_buffer_are_counted),
		cmocka_unit_test(markers_beyond_the_ring_are_counted),
		cmocka_unit_test(threads_beyond_the_descriptors_keep_their_times),
		cmocka_unit_test(threads_beyond_the_locked_memory_keep_their_times),
		cmocka_unit_test(mismatches_are_repaired_and_counted),
		cmocka_unit_test(two_sessions_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
