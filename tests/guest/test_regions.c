/* SPDX-License-Identifier: MIT */
/* Regions count the work of their own thread, while others compute as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"
#include "support/measure.h"

/* Three threads with regions of once to fifty times so many instructions. */
#define LENGTH       20000
#define THREADS      3
#define REGIONS      50
/* Markers and a wait between the two readings, in user space. */
#define MARKERS_USER 1000
/* A read of the clock begins again when the kernel has just moved it on. */
#define CLOCK_READ   60
#define TRACEFS      "/sys/kernel/tracing"

/* What the regions counted beyond their work: the least, the most, and in how many. */
struct beyond {
	uint64_t least;
	uint64_t most;
	uint64_t work; /* of all, in LENGTHs */
	size_t count;
};

static void beyond_add(struct beyond *b, uint64_t value)
{
	uint64_t beyond = value % LENGTH;

	b->least = b->count ? MIN(b->least, beyond) : beyond;
	b->most = MAX(b->most, beyond);
	b->work += value / LENGTH;
	b->count++;
}

static size_t column_of(const struct measured *m, const char *name)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, name))
			return i;
	fail_msg("no metric is called %s", name);
	return 0;
}

/* How often a busy machine gets another chance. */
#define ATTEMPTS 5

/* A marker waits for its thread's counters for 50 ms; on a busy machine that may be too short. */
static bool all_are_counted(const struct measured *m)
{
	const struct run *run = &m->model->runs[0];

	if (run->regions_unresolved)
		print_message("%llu regions could not wait for their counters\n",
			(unsigned long long)run->regions_unresolved);
	return run->regions_unresolved == 0;
}

/* The regions that were sampled by the kernel, and those that were read. */
static void measure_regions(const char *mode, struct beyond *sampled, struct beyond *read)
{
	struct measured m = {
		.env = { "JPHASE_EVENTS=instructions:u", mode },
		.argv = { BUILD_DIR "/guest/targets/work", "regions", "3", "20000" },
	};
	size_t column;

	for (int i = 0; i < ATTEMPTS; i++) {
		measure(&m);
		assert_int_equal(m.child.code, 0);
		if (all_are_counted(&m))
			break;
		unlink(m.file);
	}
	column = column_of(&m, "instructions:u");
	for (size_t i = 0; i < m.model->region_count; i++) {
		const struct region *r = &m.model->regions[i];
		struct value v;

		if (!str_eq(r->name, "r"))
			continue;
		v = region_value(m.model, r, REGION_WHOLE, column);
		if (v.state != VALUE_COUNTED)
			fail_msg("a region was not counted: %s", v.note ? v.note : "no reason");
		beyond_add(v.flags & VALUE_SYNC ? read : sampled, v.number);
	}
	print_message("%zu sampled, %llu to %llu beyond; %zu read, %llu to %llu beyond\n",
		sampled->count, (unsigned long long)sampled->least,
		(unsigned long long)sampled->most, read->count, (unsigned long long)read->least,
		(unsigned long long)read->most);
	measure_clear(&m);
	assert_int_equal(sampled->count + read->count, THREADS * REGIONS);
	assert_int_equal(sampled->work + read->work, THREADS * REGIONS * (REGIONS + 1) / 2);
	assert_true(read->most < MARKERS_USER);
	assert_true(sampled->most < MARKERS_USER);
}

static void regions_read_while_they_wait_count_their_thread(void **state)
{
	struct beyond sampled = { 0 }, read = { 0 };

	(void)state;
	measure_regions("JPHASE_MODE=sync", &sampled, &read);
	assert_int_equal(read.count, THREADS * REGIONS);
}

/* A thread's first marker makes its counters, and is read. */
static void sampled_regions_are_their_work_and_one_constant(void **state)
{
	struct beyond sampled = { 0 }, read = { 0 };

	(void)state;
	measure_regions("JPHASE_MODE=exact", &sampled, &read);
	assert_int_equal(read.count, THREADS);
	assert_true(sampled.most - sampled.least <= 2 * CLOCK_READ);
}

/* The kernel then has no probe to share: each thread has one of its own. */
static void without_tracefs_regions_are_sampled_as_exactly(void **state)
{
	struct beyond sampled = { 0 }, read = { 0 };

	(void)state;
	assert_int_equal(umount2(TRACEFS, MNT_DETACH), 0);
	measure_regions("JPHASE_MODE=exact", &sampled, &read);
	assert_int_equal(mount("tracing", TRACEFS, "tracefs", 0, NULL), 0);
	assert_int_equal(read.count, THREADS);
	assert_true(sampled.most - sampled.least <= 2 * CLOCK_READ);
}

/* Seven by the same name, for a PMU that counts six at a time. */
#define SEVEN "r8:u,r08:u,r008:u,r0008:u,r00008:u,r000008:u,r0000008:u"

static void events_beyond_one_group_are_refused_in_exact_mode(void **state)
{
	struct child c = {
		.argv = { JPHASE, "run", "-o", "/dev/null", "--mode", "exact", "-e", SEVEN, "--",
			"true" },
	};

	(void)state;
	assert_int_equal(run_program(&c), 0);
	assert_int_equal(c.code, 125);
	if (!strstr(c.err, "cannot use exact mode: r0000008:u: more than the processor counts"))
		fail_msg("%s", c.err);
	run_clear(&c);
}

static void events_beyond_one_group_make_auto_sync(void **state)
{
	struct measured m = {
		.options = { "-e", SEVEN },
		.argv = { BUILD_DIR "/guest/targets/work", "regions", "1", "20000" },
	};
	bool told = false;

	(void)state;
	measure(&m);
	assert_int_equal(m.child.code, 0);
	for (size_t i = 0; i < m.model->runs[0].note_count; i++)
		told |= strstr(m.model->runs[0].notes[i], "not exact: r0000008:u: more") != NULL;
	assert_true(told);
	measure_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_read_while_they_wait_count_their_thread),
		cmocka_unit_test(sampled_regions_are_their_work_and_one_constant),
		cmocka_unit_test(without_tracefs_regions_are_sampled_as_exactly),
		cmocka_unit_test(events_beyond_one_group_are_refused_in_exact_mode),
		cmocka_unit_test(events_beyond_one_group_make_auto_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
