/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal/sys.h"
#include "support/tape.h"

/* --- phases --- */

static void values_of_a_phase_are_the_difference_of_its_boundaries(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	assert_int_equal(m->row_count, 2);
	assert_string_equal(m->rows[0].name, "START");
	assert_string_equal(m->rows[0].next, "solve");
	assert_string_equal(m->rows[1].name, "solve");
	assert_string_equal(m->rows[1].next, "END");
	assert_counted(value(m, 0, "page-faults"), 100);
	assert_counted(value(m, 1, "page-faults"), 300);
	assert_counted(value(m, 0, "task-clock"), 9000000);
	assert_quality(value(m, 1, "task-clock"), "exact");
	assert_quality(value(m, 1, "page-faults"), "exact; faults inside system calls are missing");
	model_close(m);
}

static void a_phase_lasts_from_its_markers_return_to_the_next_entry(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	assert_int_equal(m->rows[0].duration_ns, 10 * MS);
	assert_int_equal(m->rows[1].begin_ns, T0 + 10 * MS + 50 * US);
	assert_int_equal(m->rows[1].duration_ns, 20 * MS - 50 * US);
	assert_row_quality(m, 1, "");
	model_close(m);
}

/* Threads may be late, and a process may have another clock. */
static void no_phase_is_shorter_than_nothing(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START" });
	marker(&t, (struct record_marker){ .time_ns = T0 + 5 * MS, .name = "a" });
	marker(&t, (struct record_marker){ .time_ns = T0 + 2 * MS, .name = "b" });
	marker(&t, (struct record_marker){ .time_ns = 1, .name = "c" });
	gone(&t, 0, T0 + 9 * MS, 0);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 4);
	assert_int_equal(m->rows[0].duration_ns, 5 * MS);
	assert_int_equal(m->rows[1].duration_ns, 0);
	assert_int_equal(m->rows[2].duration_ns, 0);
	assert_int_equal(m->rows[3].duration_ns, 4 * MS);
	assert_int_equal(m->runs[0].total.duration_ns, 9 * MS);
	model_close(m);
}

static void phases_and_marker_time_add_up_to_the_total(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);
	const struct run *run = &m->runs[0];

	(void)state;
	assert_int_equal(run->total.duration_ns, 30 * MS);
	assert_int_equal(run->marker_ns, 50 * US);
	assert_int_equal(m->rows[0].duration_ns + m->rows[1].duration_ns + run->marker_ns,
		run->total.duration_ns);
	assert_counted(total(m, "page-faults"), 400);
	assert_counted(total(m, "task-clock"), 28000000);
	assert_int_equal(run->user_us, 5000);
	assert_int_equal(run->system_us, 700);
	assert_int_equal(run_exit_code(run), 42);
	assert_true(run->complete);
	model_close(m);
}

static void without_a_later_record_the_acknowledgement_stands_in(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 1 * MS,
			   .name = "a",
			   .done_ns = T0 + 1 * MS + 30 * US,
			   .snapshot = 2 });
	gone(&t, 0, T0 + 2 * MS, 3);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->rows[1].begin_ns, T0 + 1 * MS + 30 * US);
	assert_row_quality(m, 1,
		"not counted: no reading at its boundaries; begin taken from the acknowledgement");
	model_close(m);
}

static void times_never_go_back(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t,
		(struct record_marker){ .time_ns = T0 + 5 * MS, .name = "START", .snapshot = 1 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 3 * MS, .name = "a", .snapshot = 2 });
	gone(&t, 0, T0 + 4 * MS, 3);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->rows[0].duration_ns, 0);
	assert_int_equal(m->rows[1].begin_ns, T0 + 5 * MS);
	assert_int_equal(m->rows[1].duration_ns, 0);
	model_close(m);
}

static void a_phase_within_one_snapshot_is_unresolved(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 1 * MS, .name = "a", .snapshot = 2 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 2 * MS, .name = "b", .snapshot = 2 });
	snapshot(&t, 2, 0, T0 + 2 * MS + 300 * US, (struct counts){ 50, 50, 50, 0 });
	gone(&t, 0, T0 + 5 * MS, 3);
	snapshot(&t, 3, 0, T0 + 5 * MS, (struct counts){ 80, 80, 80, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 3);
	/* The reading was taken after both markers. */
	assert_counted(value(m, 0, "page-faults"), 50);
	assert_row_quality(m, 0,
		"includes 1 unresolved phase; late: read more than a tenth of its time after a "
		"boundary");
	assert_missing(value(m, 1, "page-faults"), "unresolved");
	assert_missing(value(m, 1, "CPU_CYCLES"), "not counted: no hardware counters here");
	assert_counted(value(m, 2, "page-faults"), 30);
	assert_int_equal(m->runs[0].unresolved, 1);
	assert_counted(total(m, "page-faults"), 80);
	assert_quality(value(m, 0, "task-clock"), "read 1300 µs after the boundary");
	model_close(m);
}

static void a_boundary_without_snapshot_leaves_its_work_to_the_next_phase(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 1 * MS, .name = "a" });
	gone(&t, 0, T0 + 5 * MS, 2);
	snapshot(&t, 2, 0, T0 + 5 * MS, (struct counts){ 80, 80, 80, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_missing(value(m, 0, "page-faults"), "unresolved");
	assert_counted(value(m, 1, "page-faults"), 80);
	assert_row_quality(
		m, 1, "includes 1 unresolved phase; ends with its process: " ROW_TO_DEATH);
	model_close(m);
}

/* Its last reading is of the end, or of a process that lives on. */
static void a_process_that_lives_on_does_not_end_a_phase(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "attach");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ 80, 80, 80, 0 });
	recorder_exit(
		t.r, &(struct record_exit){
			     .time_ns = T0 + MS, .snapshot = 2, .status = RECORD_STATUS_UNKNOWN });
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "page-faults"), 80);
	assert_row_quality(m, 0, "");
	model_close(m);
}

static void a_snapshot_may_stand_before_its_marker(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 10, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ 0, 25, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .name = "a", .snapshot = 2 });
	snapshot(&t, 3, 0, T0 + 2 * MS, (struct counts){ 0, 65, 0, 0 });
	gone(&t, 0, T0 + 2 * MS, 3);
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "page-faults"), 15);
	assert_counted(value(m, 1, "page-faults"), 40);
	model_close(m);
}

static void markers_after_the_exit_marker_go_on(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .kind = JPHASE_EXIT, .name = "", .snapshot = 2 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 2 * MS, .name = "late", .snapshot = 3 });
	gone(&t, 0, T0 + 5 * MS, 4);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 2);
	assert_int_equal(m->rows[0].end_ns, T0 + 2 * MS);
	assert_int_equal(m->rows[1].end_ns, T0 + 5 * MS);
	model_close(m);
}

/* --- perf --- */

static struct model *scaled_model(struct counts begin, struct counts end)
{
	struct tape t = tape_begin("sync");

	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, begin);
	gone(&t, 0, T0 + MS, 2);
	snapshot(&t, 2, 0, T0 + MS, end);
	return tape_model(&t, BY_PHASE);
}

static void scaling_uses_the_phases_own_times(void **state)
{
	/* 40 events in a quarter of this phase's time stand for 160. */
	struct model *m = scaled_model(
		(struct counts){ 0, 1000, 5000, 5000 }, (struct counts){ 0, 1040, 6000, 5250 });

	(void)state;
	assert_counted(value(m, 0, "page-faults"), 160);
	assert_true(value(m, 0, "page-faults").coverage == 0.25);
	assert_quality(value(m, 0, "task-clock"), "scaled from 25.0 % coverage");
	model_close(m);
}

static void enabled_without_running_is_not_counted(void **state)
{
	struct model *m = scaled_model(
		(struct counts){ 0, 1000, 5000, 5000 }, (struct counts){ 0, 1000, 6000, 5000 });

	(void)state;
	assert_missing(
		value(m, 0, "page-faults"), "not counted: its group never ran in this phase");
	model_close(m);
}

static void a_phase_in_which_nothing_ran_is_an_exact_zero(void **state)
{
	struct model *m = scaled_model(
		(struct counts){ 9, 1000, 5000, 5000 }, (struct counts){ 9, 1000, 5000, 5000 });

	(void)state;
	assert_counted(value(m, 0, "task-clock"), 0);
	assert_quality(value(m, 0, "task-clock"), "exact");
	model_close(m);
}

static void a_counter_that_went_back_is_not_counted(void **state)
{
	struct model *m = scaled_model(
		(struct counts){ 9, 1000, 5000, 5000 }, (struct counts){ 8, 1000, 6000, 6000 });

	(void)state;
	assert_missing(value(m, 0, "task-clock"), "not counted: the counter went back");
	model_close(m);
}

static void core_types_are_summed_and_split(void **state)
{
	static struct metric metrics[] = {
		{ .name = "cycles", .group = 0, .part = "cpu_core" },
		{ .name = "cycles", .group = 1, .part = "cpu_atom" },
	};
	static struct metric_list list = { metrics, 2, 2 };
	static const struct recorder_reader hybrid = { "perf", true, NULL, &list };
	/* 300 of 1000 ns on one type, 700 on the other: nothing was missed. */
	const uint64_t begin[] = { 10, 20, 0, 0, 0, 0 };
	const uint64_t end[] = { 40, 90, 1000, 300, 1000, 700 };
	struct tape t = { .fd = recording_fd() };
	struct model *m;

	(void)state;
	t.r = recording_begin(t.fd, "sync", &hybrid, 1);
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	recorder_snapshot(t.r, 1, 0, "perf", T0, T0, begin, &list);
	gone(&t, 0, T0 + MS, 2);
	recorder_snapshot(t.r, 2, 0, "perf", T0, T0, end, &list);
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "cycles"), 100);
	assert_quality(value(m, 0, "cycles"), "exact");
	assert_counted(value(m, 0, "cycles (cpu_core)"), 30);
	assert_counted(value(m, 0, "cycles (cpu_atom)"), 70);
	model_close(m);
}

static void a_note_gives_the_reason_for_what_is_missing(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	recorder_note(t.r, T0, 0, "not counted: the kernel stops counting here");
	gone(&t, 0, T0 + MS, 2);
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ VALUE_ABSENT, VALUE_ABSENT, 5, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_missing(value(m, 0, "page-faults"), "not counted: the kernel stops counting here");
	model_close(m);
}

/* --- gauges, shares, peaks --- */

static void a_gauge_ranges_over_its_boundaries_and_the_samples_between(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	assert_counted(value(m, 0, "proc_current_min"), 4096);
	assert_counted(value(m, 0, "proc_current_max"), 8192);
	assert_counted(value(m, 1, "proc_current_min"), 8192);
	assert_counted(value(m, 1, "proc_current_max"), 1 << 20);
	assert_counted(total(m, "proc_current_min"), 4096);
	assert_counted(total(m, "proc_current_max"), 1 << 20);
	model_close(m);
}

static void cpu_usage_is_a_percentage_of_the_time_between_its_readings(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);
	struct value v = value(m, 1, "proc_cpu_usage");
	char number[NUMBER_ROOM];

	(void)state;
	/* 20,000 µs in 20 ms. */
	assert_counted(v, 10000);
	value_number(&v, UNIT_PERCENT, number);
	assert_string_equal(number, "100.00");
	assert_quality(v, "read 60 µs after the boundary; shared with 12 other processes");
	model_close(m);
}

static void a_peak_is_what_stood_at_the_end(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	recorder_snapshot(t.r, 1, 0, "procfs", T0, T0, (uint64_t[]){ 4096 }, &procfs_list);
	gone(&t, 0, T0 + MS, 2);
	recorder_snapshot(
		t.r, 2, 0, "procfs", T0 + MS, T0 + MS, (uint64_t[]){ 12288 }, &procfs_list);
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "proc_rss_peak"), 12288);
	assert_missing(value(m, 0, "page-faults"), "not counted: no reading at the boundary");
	model_close(m);
}

/* --- processes --- */

static void only_processes_that_marked_are_shown(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	for (uint64_t p = 0; p < 3; p++) {
		process(&t, T0, p, 100 + (pid_t)p, p ? "fork" : "first");
		marker(&t,
			(struct record_marker){
				.time_ns = T0, .process = p, .name = "START", .snapshot = 1 + p });
	}
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .process = 2, .name = "work", .snapshot = 9 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 3);
	assert_int_equal(m->rows[0].process, 0);
	assert_int_equal(m->rows[1].process, 2);
	assert_int_equal(m->rows[1].pid, 102);
	assert_int_equal(m->runs[0].processes, 3);
	assert_true(m->several_processes);
	model_close(m);
}

static void two_workers_have_their_own_values(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	process(&t, T0, 1, 101, "fork");
	marker(&t, (struct record_marker){
			   .time_ns = T0, .process = 0, .name = "START", .snapshot = 1 });
	marker(&t, (struct record_marker){
			   .time_ns = T0, .process = 1, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	snapshot(&t, 1, 1, T0, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .process = 0, .name = "w", .snapshot = 2 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .process = 1, .name = "w", .snapshot = 2 });
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ 0, 100, 0, 0 });
	snapshot(&t, 2, 1, T0 + MS, (struct counts){ 0, 700, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(value(m, 0, "page-faults"), 100);
	assert_counted(value(m, 2, "page-faults"), 700);
	model_close(m);
}

static void total_goes_on_through_exec(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 10, 0, 0 });
	process(&t, T0 + MS, 1, 100, "exec");
	marker(&t, (struct record_marker){
			   .time_ns = T0 + MS, .process = 1, .name = "START", .snapshot = 2 });
	snapshot(&t, 2, 1, T0 + MS, (struct counts){ 0, 30, 0, 0 });
	gone(&t, 1, T0 + 3 * MS, 3);
	snapshot(&t, 3, 1, T0 + 3 * MS, (struct counts){ 0, 70, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 2);
	assert_counted(value(m, 0, "page-faults"), 20);
	assert_counted(value(m, 1, "page-faults"), 40);
	assert_counted(total(m, "page-faults"), 60);
	assert_int_equal(m->runs[0].total.duration_ns, 3 * MS);
	assert_int_equal(run_exit_code(&m->runs[0]), 42);
	model_close(m);
}

static void ten_thousand_phases_stay_in_order(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 0, 0, 0 });
	for (uint64_t i = 1; i <= 10000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", (unsigned)i);
		marker(&t, (struct record_marker){
				   .time_ns = T0 + i * US, .name = name, .snapshot = 1 + i });
		snapshot(&t, 1 + i, 0, T0 + i * US, (struct counts){ 0, i * i, 0, 0 });
	}
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->row_count, 10001);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_counted(value(m, i, "page-faults"), 2 * i + 1);
		assert_int_equal(atoi(m->rows[i + 1].name), i + 1);
	}
	model_close(m);
}

/* --- losses and ends --- */

static void losses_are_summed_by_kind(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	recorder_loss(t.r, T0, "dropped", 2);
	recorder_loss(t.r, T0, "claim", 1);
	recorder_loss(t.r, T0, "dropped", 3);
	recorder_loss(t.r, T0, "backlog", 100);
	recorder_loss(t.r, T0, "sample", 1000);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(run_lost_markers(&m->runs[0]), 6);
	assert_int_equal(run_lost(&m->runs[0], "dropped"), 5);
	assert_int_equal(run_lost(&m->runs[0], "backlog"), 100);
	assert_int_equal(run_lost(&m->runs[0], "sample"), 1000);
	model_close(m);
}

static void a_recording_cut_short_shows_what_is_there(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, 100, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	snapshot(&t, 1, 0, T0, (struct counts){ 0, 5, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + MS, .name = "a", .snapshot = 2 });
	snapshot(&t, 2, 0, T0 + MS, (struct counts){ 0, 8, 0, 0 });
	recorder_loss(t.r, T0 + 4 * MS, "dropped", 1);
	m = tape_model(&t, BY_PHASE);
	assert_false(m->runs[0].complete);
	assert_counted(value(m, 0, "page-faults"), 3);
	assert_true(m->rows[1].open);
	assert_int_equal(m->rows[1].duration_ns, 3 * MS);
	assert_missing(value(m, 1, "page-faults"), "not counted: the recording ends in this phase");
	assert_int_equal(run_exit_code(&m->runs[0]), -1);
	model_close(m);
}

static void any_cut_of_a_recording_can_be_read(void **state)
{
	struct tape t = tape_begin("sync");
	char *bytes;
	size_t size;

	(void)state;
	two_phases(&t);
	tape_end(&t);
	bytes = recording_bytes(t.fd, &size);
	sys_close(t.fd);
	for (size_t cut = 0; cut <= size; cut++) {
		struct model *m;
		int err;

		assert_int_equal(model_open(&m), 0);
		err = model_read_bytes(m, bytes, cut, "cut");
		assert_true(err == 0 || err == (cut > 14 ? -ENODATA : -EBADMSG));
		assert_int_equal(m->run_count, err == 0);
		if (err == 0)
			assert_int_equal(m->runs[0].complete, cut == size);
		assert_int_equal(model_finish(m, BY_PHASE), 0);
		model_close(m);
	}
	free(bytes);
}

static void an_empty_recording_has_no_rows(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	assert_int_equal(m->run_count, 1);
	assert_int_equal(m->row_count, 0);
	assert_int_equal(m->runs[0].absent_count, 1);
	assert_string_equal(m->runs[0].absent[0].name, "energy");
	assert_missing(total(m, "page-faults"), "not counted: nothing was read");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_a_phase_are_the_difference_of_its_boundaries),
		cmocka_unit_test(a_phase_lasts_from_its_markers_return_to_the_next_entry),
		cmocka_unit_test(no_phase_is_shorter_than_nothing),
		cmocka_unit_test(phases_and_marker_time_add_up_to_the_total),
		cmocka_unit_test(without_a_later_record_the_acknowledgement_stands_in),
		cmocka_unit_test(times_never_go_back),
		cmocka_unit_test(a_phase_within_one_snapshot_is_unresolved),
		cmocka_unit_test(a_boundary_without_snapshot_leaves_its_work_to_the_next_phase),
		cmocka_unit_test(a_process_that_lives_on_does_not_end_a_phase),
		cmocka_unit_test(a_snapshot_may_stand_before_its_marker),
		cmocka_unit_test(markers_after_the_exit_marker_go_on),
		cmocka_unit_test(scaling_uses_the_phases_own_times),
		cmocka_unit_test(enabled_without_running_is_not_counted),
		cmocka_unit_test(a_phase_in_which_nothing_ran_is_an_exact_zero),
		cmocka_unit_test(a_counter_that_went_back_is_not_counted),
		cmocka_unit_test(core_types_are_summed_and_split),
		cmocka_unit_test(a_note_gives_the_reason_for_what_is_missing),
		cmocka_unit_test(a_gauge_ranges_over_its_boundaries_and_the_samples_between),
		cmocka_unit_test(cpu_usage_is_a_percentage_of_the_time_between_its_readings),
		cmocka_unit_test(a_peak_is_what_stood_at_the_end),
		cmocka_unit_test(only_processes_that_marked_are_shown),
		cmocka_unit_test(two_workers_have_their_own_values),
		cmocka_unit_test(total_goes_on_through_exec),
		cmocka_unit_test(ten_thousand_phases_stay_in_order),
		cmocka_unit_test(losses_are_summed_by_kind),
		cmocka_unit_test(a_recording_cut_short_shows_what_is_there),
		cmocka_unit_test(any_cut_of_a_recording_can_be_read),
		cmocka_unit_test(an_empty_recording_has_no_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
