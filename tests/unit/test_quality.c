/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/tape.h"

static void a_phase_says_how_its_boundaries_were_taken(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	assert_int_equal(m->rows[1].begin_taken.how, TAKEN_SYNC);
	assert_int_equal(m->rows[1].end_taken.how, TAKEN_SYNC);
	assert_int_equal(m->rows[1].marker_ns, 50 * US);
	model_close(m);
}

static void a_late_boundary_says_how_late(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0 + 5, (struct counts){ 0, 0, 0, 0 });
	gone(&t, 0, T0 + 5 * MS, 2);
	snapshot(&t, 2, 0, T0 + 5 * MS + 700 * US, (struct counts){ 9, 9, 9, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->rows[0].begin_taken.how, TAKEN_LATE);
	assert_int_equal(m->rows[0].begin_taken.delay_ns, 5);
	assert_int_equal(m->rows[0].end_taken.delay_ns, 700 * US);
	model_close(m);
}

static void all_is_explained_in_80_columns(void **state)
{
	struct tape t = tape_begin("exact");
	struct model *m;

	(void)state;
	two_phases(&t);
	sampled(&t, T0 + 32 * MS, 100, JPHASE_BEGIN, "outer", 4, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 33 * MS, 100, JPHASE_BEGIN, "inner", 5, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 34 * MS, 100, JPHASE_END, "outer", 6, (struct counts){ 9, 9, 9, 0 });
	m = tape_model(&t, BY_PHASE);
	golden_check(m, &quality_format, BY_PHASE, 80, "quality.txt");
	model_close(m);
}

static void an_empty_recording_has_nothing_to_explain(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);
	char *text = golden_render(m, &quality_format, BY_PHASE, 80);

	(void)state;
	assert_non_null(strstr(text, "not counted: nothing was read: task-clock, page-faults"));
	free(text);
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_phase_says_how_its_boundaries_were_taken),
		cmocka_unit_test(a_late_boundary_says_how_late),
		cmocka_unit_test(all_is_explained_in_80_columns),
		cmocka_unit_test(an_empty_recording_has_nothing_to_explain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
