/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "support/golden.h"
#include "support/tape.h"

static void regions_nest_on_their_thread(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	region(&t, T0 + 1 * MS, JPHASE_BEGIN, "outer");
	region(&t, T0 + 2 * MS, JPHASE_BEGIN, "inner");
	region(&t, T0 + 4 * MS, JPHASE_END, "");
	region(&t, T0 + 8 * MS, JPHASE_END, "outer");
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->region_count, 2);
	assert_int_equal(m->regions[0].depth, 0);
	assert_int_equal(m->regions[0].end_ns - m->regions[0].begin_ns, 7 * MS);
	assert_int_equal(m->regions[1].depth, 1);
	assert_int_equal(m->regions[1].parent, 0);
	assert_int_equal(m->regions[1].end_ns - m->regions[1].begin_ns, 2 * MS);
	assert_int_equal(m->regions[1].phase, 0);
	assert_int_equal(m->node_count, 2);
	assert_int_equal(m->nodes[0].child, 1);
	model_close(m);
}

static void wrong_nesting_is_repaired_and_counted(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	region(&t, T0 + 1 * MS, JPHASE_END, "never begun");
	region(&t, T0 + 2 * MS, JPHASE_BEGIN, "a");
	region(&t, T0 + 3 * MS, JPHASE_BEGIN, "b");
	region(&t, T0 + 4 * MS, JPHASE_END, "a");
	region(&t, T0 + 5 * MS, JPHASE_BEGIN, "c");
	gone(&t, 0, T0 + 9 * MS, 2);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->runs[0].repairs[REPAIR_STRAY].count, 1);
	assert_int_equal(m->runs[0].repairs[REPAIR_CROSSED].count, 1);
	assert_int_equal(m->runs[0].repairs[REPAIR_UNCLOSED].count, 1);
	assert_int_equal(m->regions[1].end_ns, T0 + 4 * MS);
	assert_true(m->regions[1].repaired);
	assert_int_equal(m->regions[2].depth, 0);
	assert_int_equal(m->regions[2].end_ns, T0 + 9 * MS);
	model_close(m);
}

static void amounts_add_up_in_their_phase_and_region(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + MS, .kind = JPHASE_VALUE, .name = "items", .value = 10 });
	region(&t, T0 + MS, JPHASE_BEGIN, "r");
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + MS, .kind = JPHASE_VALUE, .name = "items", .value = 32 });
	m = tape_model(&t, BY_PHASE);
	assert_non_null(m->rows[0].amounts);
	assert_string_equal(m->rows[0].amounts->name, "items");
	assert_true(m->rows[0].amounts->sum == 42);
	assert_true(m->regions[0].amounts->sum == 32);
	model_close(m);
}

static void work(
	struct tape *t, uint64_t process_index, uint64_t from_ms, uint64_t to_ms, const char *name)
{
	struct record_marker m = { .process = process_index, .tid = 100, .name = name };

	m.time_ns = T0 + from_ms * MS;
	m.kind = JPHASE_BEGIN;
	marker(t, m);
	m.time_ns = T0 + to_ms * MS;
	m.kind = JPHASE_END;
	marker(t, m);
}

static void assert_share(const char *text, const char *name, const char *share)
{
	char line[256];
	const char *found = strstr(text, name);

	assert_non_null(found);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(found, "\n"), found);
	assert_non_null(strstr(line, share));
}

/* Threads of one number are several where their processes are. */
static struct tape tape_of_equal_threads(void)
{
	struct tape t = tape_started();

	process(&t, T0, 1, 200, "fork");
	work(&t, 0, 0, 30, "long");
	work(&t, 1, 0, 20, "alone");
	work(&t, 0, 30, 40, "brief");
	return t;
}

static void shares_by_thread_are_of_one_thread(void **state)
{
	struct tape t = tape_of_equal_threads();
	struct model *m = tape_model(&t, BY_THREAD);
	char *text = golden_render(m, &table_format, BY_THREAD, 120);

	(void)state;
	assert_share(text, "long", "75.0 %");
	assert_share(text, "brief", "25.0 %");
	assert_share(text, "alone", "100.0 %");
	free(text);
	model_close(m);
}

static void shares_are_of_all_threads_of_a_run(void **state)
{
	struct tape t = tape_of_equal_threads();
	struct model *m = tape_model(&t, BY_PHASE);
	char *text = golden_render(m, &table_format, BY_PHASE, 120);

	(void)state;
	assert_share(text, "long", "50.0 %");
	assert_share(text, "brief", "16.7 %");
	assert_share(text, "alone", "33.3 %");
	free(text);
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_nest_on_their_thread),
		cmocka_unit_test(wrong_nesting_is_repaired_and_counted),
		cmocka_unit_test(amounts_add_up_in_their_phase_and_region),
		cmocka_unit_test(shares_by_thread_are_of_one_thread),
		cmocka_unit_test(shares_are_of_all_threads_of_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
