/* SPDX-License-Identifier: MIT */
/*
 * Instructions and cycles of known work.  The guest counts exactly, and one
 * instruction takes one cycle and one nanosecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

#define WORK   BUILD_DIR "/guest/targets/work"
#define PHASES 1000

/* The collector sleeps between markers. */
#define ASLEEP "JPHASE_INTERVAL=0"

/*
 * A marker's own instructions on both sides of its wait.  The collector reads
 * the counters in one of the marker's two system calls, where it is woken or
 * where it is waited for, which are a few instructions apart.  A read of the
 * clock begins again when the kernel has just moved it on.
 */
#define MARKER_USER       1000
#define CALLS_APART       4
#define CLOCK_READ        60
/* Interrupts, the marker's calls and its two context switches. */
#define kernel_adds(work) (5000 + (work) / 500)
/* To fork, start and await one child or thread, in user space. */
#define START_USER        20000

static struct measured work_phases(const char *count, const char *first, const char *step)
{
	return (struct measured){
		.env = { "JPHASE_EVENTS=instructions:u,cycles:u", "JPHASE_MODE=sync" },
		.argv = { WORK, "phases", count, first, step },
	};
}

static void measure_whole(struct measured *m)
{
	measure(m);
	if (m->child.code != 0)
		fail_msg("the program ended with %d: %s", m->child.code, m->child.err);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* What each of the phases counted beyond its work; sorted. */
struct beyond {
	int64_t sorted[PHASES];
	size_t count;
};

static struct beyond beyond_of(
	const struct measured *m, const char *metric, uint64_t first, uint64_t step)
{
	struct beyond b = { .count = 0 };
	char name[8];

	while (b.count < PHASES) {
		size_t i = b.count;

		snprintf(name, sizeof(name), "p%05u", (unsigned)i);
		if (phase_count(m, name) == 0)
			break;
		b.sorted[b.count++] = (int64_t)counted(m, phase_at(m, name, 0), metric) -
				      (int64_t)(first + i * step);
	}
	qsort(b.sorted, b.count, sizeof(b.sorted[0]), compare);
	return b;
}

static int64_t median(const struct beyond *b)
{
	return b->sorted[b->count / 2];
}

/* How many lie no further from the usual constant than that. */
static size_t within(const struct beyond *b, int64_t distance)
{
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++)
		count += llabs(b->sorted[i] - median(b)) <= distance;
	return count;
}

static void assert_within(const struct beyond *b, int64_t distance)
{
	int64_t usual = median(b), least = b->sorted[0], most = b->sorted[b->count - 1];

	print_message("%zu phases, beyond their work: %lld in %zu of them, up to %d more or less "
		      "in %zu, all from %lld to %lld\n",
		b->count, (long long)usual, within(b, 0), CALLS_APART, within(b, CALLS_APART),
		(long long)least, (long long)most);
	if (within(b, distance) < b->count)
		fail_msg("not all within %lld of it", (long long)distance);
}

/* A marker costs one constant in that part of the phases, and a read of the clock more in the rest. */
static void assert_constant(const struct beyond *b, size_t percent)
{
	assert_within(b, CLOCK_READ);
	assert_in_range(median(b), 1, MARKER_USER);
	if (within(b, CALLS_APART) * 100 < b->count * percent)
		fail_msg("only %zu are at it", within(b, CALLS_APART));
}

/* Of the first process, whose whole run TOTAL is. */
static void assert_sum_is_total(const struct measured *m, const char *metric)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->model->row_count; i++) {
		const struct row *row = &m->model->rows[i];

		if (row->pid == m->model->runs[0].pid && !row->unresolved)
			sum += counted(m, row, metric);
	}
	assert_int_equal(sum, counted(m, &m->model->runs[0].total, metric));
}

static void growing_phases_count_their_work_and_a_constant(void **state)
{
	static const struct {
		enum way way;
		const char *mode;
	} runs[] = {
		{ WAY_RUN, "JPHASE_MODE=sync" },
		{ WAY_PRELOAD, "JPHASE_MODE=sync" },
		{ WAY_RUN, "JPHASE_MODE=exact" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct measured m = work_phases("1000", "500000", "100");
		struct beyond b;

		m.way = runs[i].way;
		m.env[1] = runs[i].mode;
		m.env[2] = ASLEEP;
		measure_whole(&m);
		b = beyond_of(&m, "instructions:u", 500000, 100);
		assert_int_equal(b.count, PHASES);
		assert_constant(&b, 99);
		assert_sum_is_total(&m, "instructions:u");
		measure_clear(&m);
	}
}

static void a_cycle_is_an_instruction_in_each_phase(void **state)
{
	struct measured m = work_phases("1000", "2000", "200");

	(void)state;
	measure_whole(&m);
	for (size_t i = 0; i < m.model->row_count; i++)
		assert_int_equal(counted(&m, &m.model->rows[i], "cycles:u"),
			counted(&m, &m.model->rows[i], "instructions:u"));
	assert_sum_is_total(&m, "cycles:u");
	measure_clear(&m);
}

/* Markers that follow each other closely find the collector at work, and the clock moved on. */
static void short_phases_are_no_less_exact(void **state)
{
	struct measured m = work_phases("1000", "2", "2");
	struct beyond b;

	(void)state;
	measure_whole(&m);
	b = beyond_of(&m, "instructions:u", 2, 2);
	assert_int_equal(b.count, PHASES);
	assert_constant(&b, 98);
	measure_clear(&m);
}

static void the_kernel_adds_little(void **state)
{
	struct measured m = work_phases("20", "200000000", "10000");
	struct beyond b;

	(void)state;
	m.env[0] = "JPHASE_EVENTS=instructions,cycles";
	m.env[2] = ASLEEP;
	measure_whole(&m);
	b = beyond_of(&m, "INSTRUCTIONS", 200000000, 10000);
	assert_int_equal(b.count, 20);
	assert_within(&b, kernel_adds(200000000));
	assert_in_range(b.sorted[0], 1, kernel_adds(200000000));
	assert_in_range(b.sorted[19], 1, kernel_adds(200000000));
	assert_sum_is_total(&m, "INSTRUCTIONS");
	assert_sum_is_total(&m, "CPU_CYCLES");
	measure_clear(&m);
}

static void assert_work_of_others(const char *mode)
{
	struct measured m = {
		.env = { "JPHASE_EVENTS=instructions:u,cycles:u", "JPHASE_MODE=sync" },
		.argv = { WORK, mode, "3", "10000000" },
	};
	uint64_t work, all = 30000000;

	measure_whole(&m);
	work = counted(&m, phase_at(&m, "work", 0), "instructions:u");
	print_message("3 %s of 10000000 instructions: %llu\n", mode, (unsigned long long)work);
	assert_in_range(work, all, all + 3 * START_USER);
	assert_true(counted(&m, phase_at(&m, "finish", 0), "instructions:u") < START_USER);
	assert_sum_is_total(&m, "instructions:u");
	measure_clear(&m);
}

static void children_count_in_their_parents_phase(void **state)
{
	(void)state;
	assert_work_of_others("children");
}

static void threads_count_in_their_process_phase(void **state)
{
	(void)state;
	assert_work_of_others("threads");
}

static void workers_that_run_at_once_count_each_their_own(void **state)
{
	struct measured m = {
		.env = { "JPHASE_EVENTS=instructions:u,cycles:u", "JPHASE_MODE=sync" },
		.argv = { WORK, "workers", "3", "10000000" },
	};
	uint64_t beyond[3], parent;

	(void)state;
	measure_whole(&m);
	assert_int_equal(phase_count(&m, "work"), 3);
	for (size_t i = 0; i < 3; i++) {
		uint64_t value = counted(&m, phase_at(&m, "work", i), "instructions:u");
		uint64_t work = (value + 5000000) / 10000000 * 10000000;

		beyond[i] = value - work;
		assert_in_range(work, 10000000, 30000000);
		assert_in_range(beyond[i], 1, MARKER_USER);
	}
	parent = counted(&m, phase_at(&m, "workers", 0), "instructions:u");
	assert_in_range(parent, 60000000, 60000000 + 3 * (START_USER + 4 * MARKER_USER));
	measure_clear(&m);
}

/*
 * Nobody waits: a reading is late by what it says, at each of the two ends, and
 * a nanosecond late is at most one instruction off.
 */
static void async_is_off_by_no_more_than_its_delay(void **state)
{
	struct measured m = work_phases("50", "4000000", "200000");
	size_t resolved = 0;

	(void)state;
	m.env[1] = "JPHASE_MODE=async";
	measure_whole(&m);
	for (unsigned i = 0; i < 50; i++) {
		char *name = text_make("p%05u", i);
		const struct row *row = phase_at(&m, name, 0);
		struct value v = value_of(&m, row, "instructions:u");
		int64_t off = (int64_t)v.number - (int64_t)(4000000 + i * 200000);

		free(name);
		if (v.state != VALUE_COUNTED || row->includes)
			continue;
		resolved++;
		assert_true(v.flags & VALUE_LATE);
		if (llabs(off) > 2 * (v.delay_us + 1) * 1000 + MARKER_USER)
			fail_msg("phase %u: off by %lld, read %u us late", i, (long long)off,
				v.delay_us);
	}
	assert_true(resolved >= 45);
	assert_sum_is_total(&m, "instructions:u");
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growing_phases_count_their_work_and_a_constant),
		cmocka_unit_test(a_cycle_is_an_instruction_in_each_phase),
		cmocka_unit_test(short_phases_are_no_less_exact),
		cmocka_unit_test(the_kernel_adds_little),
		cmocka_unit_test(children_count_in_their_parents_phase),
		cmocka_unit_test(threads_count_in_their_process_phase),
		cmocka_unit_test(workers_that_run_at_once_count_each_their_own),
		cmocka_unit_test(async_is_off_by_no_more_than_its_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
