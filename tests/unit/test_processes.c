/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/tape.h"

/* Shares a bucket with pid 200. */
#define NEIGHBOUR (200 + 4096)

static void phase(struct tape *t, uint64_t process_index, uint64_t ms, const char *name)
{
	marker(t, (struct record_marker){
			  .time_ns = T0 + ms * MS, .process = process_index, .name = name });
}

/* A gauge of the whole session, which belongs to all that live. */
static void memory(struct tape *t, uint64_t ms, uint64_t bytes)
{
	recorder_sample(t->r, T0 + ms * MS, RECORD_NO_PROCESS, "cgroup",
		(uint64_t[]){ VALUE_ABSENT, bytes }, &cgroup_list);
}

static const struct row *row_of(const struct model *m, uint64_t process_index, const char *name)
{
	for (size_t i = 0; i < m->row_count; i++)
		if (m->rows[i].process == process_index && str_eq(m->rows[i].name, name))
			return &m->rows[i];
	fail_msg("no phase %s", name);
	return NULL;
}

static struct value most_memory(const struct model *m, uint64_t process_index, const char *name)
{
	return value(m, (size_t)(row_of(m, process_index, name) - m->rows), "proc_current_max");
}

static void who_is_gone_sees_no_readings_until_a_late_marker(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	session(&t, 1, T0, 0, 10);
	process(&t, T0, 1, 200, "fork");
	marker(&t,
		(struct record_marker){ .time_ns = T0, .process = 1, .name = "a", .snapshot = 1 });
	memory(&t, 1, 20);
	gone(&t, 1, T0 + 2 * MS, 2);
	session(&t, 2, T0 + 2 * MS, 0, 10);
	memory(&t, 3, 7000);
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 4 * MS, .process = 1, .name = "late", .snapshot = 3 });
	session(&t, 3, T0 + 4 * MS, 0, 10);
	memory(&t, 5, 400);
	gone(&t, 1, T0 + 6 * MS, 4);
	session(&t, 4, T0 + 6 * MS, 0, 10);
	memory(&t, 7, 9000);
	gone(&t, 0, T0 + 8 * MS, 5);
	session(&t, 5, T0 + 8 * MS, 0, 10);
	m = tape_model(&t, BY_PHASE);
	assert_counted(most_memory(m, 1, "a"), 20);
	assert_counted(most_memory(m, 1, "late"), 400);
	assert_counted(most_memory(m, 0, "START"), 9000);
	model_close(m);
}

static void an_exec_after_death_follows_nobody(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	gone(&t, 0, T0 + 5 * MS, 0);
	process(&t, T0 + 6 * MS, 1, 100, "exec");
	phase(&t, 1, 6, "START");
	phase(&t, 1, 7, "work");
	gone(&t, 1, T0 + 9 * MS, 0);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(row_of(m, 0, "START")->end_ns, T0 + 5 * MS);
	assert_int_equal(row_of(m, 1, "work")->end_ns, T0 + 9 * MS);
	assert_int_equal(m->runs[0].total.end_ns, T0 + 5 * MS);
	model_close(m);
}

/* Two of pid 200, one after the other, and one of the same bucket. */
static struct tape tape_of_a_pid_used_twice(void)
{
	struct tape t = tape_started();

	process(&t, T0, 1, 200, "fork");
	phase(&t, 1, 1, "first");
	gone(&t, 1, T0 + 2 * MS, 0);
	process(&t, T0, 2, 200, "fork");
	phase(&t, 2, 3, "second");
	process(&t, T0, 3, NEIGHBOUR, "fork");
	phase(&t, 3, 4, "neighbour");
	return t;
}

static void an_exec_follows_the_one_of_its_pid_that_lives(void **state)
{
	struct tape t = tape_of_a_pid_used_twice();
	struct model *m;

	(void)state;
	process(&t, T0 + 5 * MS, 4, 200, "exec");
	phase(&t, 4, 5, "START");
	gone(&t, 3, T0 + 8 * MS, 0);
	gone(&t, 4, T0 + 9 * MS, 0);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(row_of(m, 1, "first")->end_ns, T0 + 2 * MS);
	assert_int_equal(row_of(m, 2, "second")->end_ns, T0 + 5 * MS);
	assert_false(row_of(m, 2, "second")->open);
	assert_int_equal(row_of(m, 3, "neighbour")->end_ns, T0 + 8 * MS);
	model_close(m);
}

/* The marker was late: its process was not, of these two, the one that then began another program. */
static void of_two_that_live_an_exec_follows_the_younger(void **state)
{
	struct tape t = tape_of_a_pid_used_twice();
	struct model *m;

	(void)state;
	phase(&t, 1, 4, "late");
	process(&t, T0 + 5 * MS, 4, 200, "exec");
	phase(&t, 4, 5, "START");
	gone(&t, 1, T0 + 7 * MS, 0);
	gone(&t, 4, T0 + 9 * MS, 0);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(row_of(m, 1, "late")->end_ns, T0 + 7 * MS);
	assert_int_equal(row_of(m, 2, "second")->end_ns, T0 + 5 * MS);
	assert_true(row_of(m, 3, "neighbour")->open);
	model_close(m);
}

static void processes_come_with_gaps_and_in_any_order(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	process(&t, T0, 900, 200, "fork");
	phase(&t, 900, 1, "a");
	process(&t, T0, 3, 201, "fork");
	phase(&t, 3, 2, "b");
	process(&t, T0, 3, 202, "fork");
	gone(&t, 900, T0 + 4 * MS, 0);
	gone(&t, 3, T0 + 5 * MS, 0);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(row_of(m, 900, "a")->end_ns, T0 + 4 * MS);
	assert_int_equal(row_of(m, 3, "b")->end_ns, T0 + 5 * MS);
	assert_int_equal(row_of(m, 3, "b")->pid, 201);
	assert_int_equal(m->runs[0].invalid_records, 1);
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_gone_sees_no_readings_until_a_late_marker),
		cmocka_unit_test(an_exec_after_death_follows_nobody),
		cmocka_unit_test(an_exec_follows_the_one_of_its_pid_that_lives),
		cmocka_unit_test(of_two_that_live_an_exec_follows_the_younger),
		cmocka_unit_test(processes_come_with_gaps_and_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
