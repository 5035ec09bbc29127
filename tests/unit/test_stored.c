/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/stored.h"
#include "support/tape.h"

/* --- one by one --- */

static void assert_same(const struct value *a, const struct value *b)
{
	assert_int_equal(a->number, b->number);
	assert_ptr_equal(a->note, b->note);
	assert_true(a->coverage == b->coverage);
	assert_int_equal(a->error, b->error);
	assert_int_equal(a->step_us, b->step_us);
	assert_int_equal(a->delay_us, b->delay_us);
	assert_int_equal(a->without, b->without);
	assert_int_equal(a->includes, b->includes);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->flags, b->flags);
}

static const struct value full = {
	.number = UINT64_C(0xfedcba9876543210),
	.note = "shared",
	.coverage = 0.43,
	.error = UINT64_C(0x123456789a),
	.step_us = 4000,
	.delay_us = 33,
	.without = 3,
	.includes = 2,
	.state = VALUE_COUNTED,
	.flags = VALUE_LATE | VALUE_SCALED | VALUE_SUMMED,
};

static struct stored put(struct qualities *q, struct value v)
{
	struct stored s;
	struct value back;

	assert_int_equal(stored_put(q, &v, &s), 0);
	back = stored_get(q, &s);
	assert_same(&back, &v);
	return s;
}

static void a_value_comes_back_as_it_was(void **state)
{
	static const struct stored nothing;
	struct qualities *q;
	struct value v;

	(void)state;
	assert_int_equal(qualities_open(&q), 0);
	put(q, full);
	put(q, (struct value){ .state = VALUE_NULL, .note = "it could not be read" });
	v = stored_get(q, &nothing);
	assert_int_equal(v.state, VALUE_MISSING);
	qualities_close(q);
}

static void only_what_differs_takes_room(void **state)
{
	const struct value others[] = {
		{ .state = VALUE_COUNTED, .coverage = 1 },
		{ .state = VALUE_NULL, .coverage = 1 },
		{ .state = VALUE_COUNTED, .coverage = 0.5 },
		{ .state = VALUE_COUNTED, .coverage = 1, .note = "a" },
		{ .state = VALUE_COUNTED, .coverage = 1, .error = 1 },
		{ .state = VALUE_COUNTED, .coverage = 1, .step_us = 1 },
		{ .state = VALUE_COUNTED, .coverage = 1, .delay_us = 1 },
		{ .state = VALUE_COUNTED, .coverage = 1, .without = 1 },
		{ .state = VALUE_COUNTED, .coverage = 1, .includes = 1 },
		{ .state = VALUE_COUNTED, .coverage = 1, .flags = VALUE_SYNC },
	};
	struct stored stored[ARRAY_SIZE(others)];
	struct value v = full;
	struct qualities *q;

	(void)state;
	assert_int_equal(qualities_open(&q), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		stored[i] = put(q, others[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(stored[i].quality, stored[j].quality);
	v.number = 1;
	assert_int_equal(put(q, v).quality, put(q, full).quality);
	qualities_close(q);
}

static void many_qualities_are_told_apart(void **state)
{
	enum { COUNT = 3000 };
	struct value v = full;
	struct stored stored[COUNT];
	struct qualities *q;

	(void)state;
	assert_int_equal(qualities_open(&q), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		v.delay_us = i;
		stored[i] = put(q, v);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(stored_get(q, &stored[i]).delay_us, i);
		v.delay_us = i;
		assert_int_equal(put(q, v).quality, stored[i].quality);
	}
	qualities_close(q);
}

/* --- in rows --- */

static void what_is_never_counted_takes_no_room(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);
	const struct run *run = &m->runs[0];
	size_t absent = 0;

	(void)state;
	for (size_t i = 0; i < run->column_count; i++)
		absent += run->columns[i].absent != NULL;
	assert_int_equal(absent, 1);
	assert_int_equal(m->rows[1].value_count, m->column_count - absent);
	assert_counted(value(m, 1, "page-faults"), 300);
	assert_missing(value(m, 1, "CPU_CYCLES"), "not counted: no hardware counters here");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_comes_back_as_it_was),
		cmocka_unit_test(only_what_differs_takes_room),
		cmocka_unit_test(many_qualities_are_told_apart),
		cmocka_unit_test(what_is_never_counted_takes_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
