/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "support/golden.h"
#include "support/tape.h"

#define TID 100

static void begin(struct tape *t, uint64_t time, const char *name, uint64_t number, struct counts c)
{
	sampled(t, T0 + time, TID, JPHASE_BEGIN, name, number, c);
}

static void end(struct tape *t, uint64_t time, const char *name, uint64_t number, struct counts c)
{
	sampled(t, T0 + time, TID, JPHASE_END, name, number, c);
}

static struct tape exact_tape(void)
{
	struct tape t = tape_begin("exact");

	process(&t, T0, 0, TID, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	return t;
}

/* outer holds inner twice: 10 + 20 of its 100 faults, 1 + 2 of its 9 ms of task-clock. */
static struct tape nested_tape(void)
{
	struct tape t = exact_tape();

	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 5, 0, 0 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 1 * MS, 15, 1 * MS, 0 });
	end(&t, 3 * MS, "inner", 4, (struct counts){ 2 * MS, 25, 2 * MS, 0 });
	begin(&t, 5 * MS, "inner", 5, (struct counts){ 4 * MS, 65, 4 * MS, 0 });
	end(&t, 7 * MS, "inner", 6, (struct counts){ 6 * MS, 85, 6 * MS, 0 });
	end(&t, 10 * MS, "outer", 7, (struct counts){ 9 * MS, 105, 9 * MS, 0 });
	return t;
}

static void a_region_has_what_its_thread_counted_between_its_markers(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	assert_int_equal(m->region_count, 3);
	assert_counted(whole(m, 0, "page-faults"), 100);
	assert_counted(whole(m, 0, "task-clock"), 9 * MS);
	assert_counted(whole(m, 1, "page-faults"), 10);
	assert_counted(whole(m, 2, "page-faults"), 20);
	assert_quality(whole(m, 0, "task-clock"), "exact");
	assert_missing(whole(m, 0, "CPU_CYCLES"), "not counted: no hardware counters here");
	model_close(m);
}

static void exclusive_values_leave_out_the_regions_within(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	assert_counted(own(m, 0, "page-faults"), 70);
	assert_counted(own(m, 0, "task-clock"), 6 * MS);
	assert_counted(own(m, 1, "page-faults"), 10);
	assert_int_equal(m->regions[0].own_ns, 6 * MS);
	assert_int_equal(m->regions[2].own_ns, 2 * MS);
	assert_quality(own(m, 0, "task-clock"), "exact");
	model_close(m);
}

static void sampled_boundaries_have_the_samples_times(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	assert_int_equal(m->regions[0].begin_ns, T0 + 1 * MS + 1 * US);
	assert_int_equal(m->regions[0].end_ns, T0 + 10 * MS + 1 * US);
	assert_int_equal(m->regions[0].begin_taken.how, TAKEN_EXACT);
	assert_int_equal(m->regions[0].end_taken.how, TAKEN_EXACT);
	model_close(m);
}

static void regions_of_one_name_are_one_in_the_tree(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	assert_int_equal(m->node_count, 2);
	assert_int_equal(m->nodes[1].count, 2);
	assert_int_equal(m->nodes[1].duration_ns, 3 * MS);
	assert_counted(node_whole(m, 1, "page-faults"), 30);
	assert_counted(node_own(m, 0, "page-faults"), 70);
	assert_int_equal(m->nodes[1].taken[TAKEN_EXACT], 4);
	model_close(m);
}

static void values_that_only_processes_have_are_no_matter_of_regions(void **state)
{
	struct tape t = nested_tape();
	struct model *m;

	(void)state;
	session(&t, 1, T0, 50000, 4096);
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(whole(m, 0, "proc_usage_usec").state, VALUE_MISSING);
	assert_int_equal(whole(m, 0, "proc_current_max").state, VALUE_MISSING);
	model_close(m);
}

static void each_region_is_scaled_by_its_own_times(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	/* 40 in a quarter of 1000 ns; within, all 10 of 200 ns: 30 in 50 of 800 ns are left. */
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 5000, 5000 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 0, 10, 5100, 5010 });
	end(&t, 3 * MS, "inner", 4, (struct counts){ 0, 20, 5300, 5210 });
	end(&t, 4 * MS, "outer", 5, (struct counts){ 0, 40, 6000, 5250 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 160);
	assert_quality(whole(m, 0, "task-clock"), "scaled from 25.0 % coverage");
	assert_counted(own(m, 0, "page-faults"), 480);
	assert_true(own(m, 0, "page-faults").coverage == 50.0 / 800);
	assert_counted(own(m, 1, "page-faults"), 10);
	model_close(m);
}

static void threads_are_counted_apart(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	sampled(&t, T0 + 1 * MS, 101, JPHASE_BEGIN, "w", 2, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 1 * MS, 102, JPHASE_BEGIN, "w", 3, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 2 * MS, 101, JPHASE_END, "w", 4, (struct counts){ 0, 100, 0, 0 });
	sampled(&t, T0 + 4 * MS, 102, JPHASE_END, "w", 5, (struct counts){ 0, 700, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 100);
	assert_counted(whole(m, 1, "page-faults"), 700);
	assert_counted(node_whole(m, 0, "page-faults"), 800);
	model_close(m);
}

static void by_thread_there_is_a_row_and_a_tree_for_each(void **state)
{
	struct tape t = nested_tape();
	struct model *m;

	(void)state;
	sampled(&t, T0 + 1 * MS, 102, JPHASE_BEGIN, "outer", 8, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 2 * MS, 102, JPHASE_END, "outer", 9, (struct counts){ 0, 7, 0, 0 });
	sampled(&t, T0 + 3 * MS, 102, JPHASE_BEGIN, "outer", 10, (struct counts){ 0, 9, 0, 0 });
	sampled(&t, T0 + 4 * MS, 102, JPHASE_END, "outer", 11, (struct counts){ 0, 14, 0, 0 });
	m = tape_model(&t, BY_THREAD);
	assert_int_equal(m->row_count, 2);
	assert_int_equal(m->rows[0].tid, TID);
	assert_int_equal(m->rows[0].count, 3);
	assert_int_equal(m->rows[0].duration_ns, 9 * MS);
	assert_counted(value(m, 0, "page-faults"), 100);
	assert_int_equal(m->rows[1].tid, 102);
	assert_int_equal(m->rows[1].count, 2);
	assert_int_equal(m->rows[1].duration_ns, 2 * MS);
	assert_counted(value(m, 1, "page-faults"), 12);
	assert_int_equal(value(m, 1, "proc_usage_usec").state, VALUE_MISSING);
	assert_int_equal(m->node_count, 3);
	assert_int_equal(m->nodes[2].tid, 102);
	model_close(m);
}

/* --- sync --- */

static void in_sync_a_region_begins_when_its_marker_returned(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	thread_snapshot(&t, 2, TID, "read", T0 + MS + 20 * US, (struct counts){ 0, 5, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 1 * MS,
			   .kind = JPHASE_BEGIN,
			   .name = "r",
			   .done_ns = T0 + 1 * MS + 30 * US,
			   .snapshot = 2 });
	thread_snapshot(&t, 3, TID, "read", T0 + 4 * MS + 20 * US, (struct counts){ 0, 45, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 4 * MS,
			   .kind = JPHASE_END,
			   .name = "r",
			   .took_ns = 50 * US,
			   .done_ns = T0 + 4 * MS + 30 * US,
			   .snapshot = 3 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->regions[0].begin_ns, T0 + 1 * MS + 50 * US);
	assert_int_equal(m->regions[0].end_ns, T0 + 4 * MS);
	assert_counted(whole(m, 0, "page-faults"), 40);
	assert_quality(whole(m, 0, "task-clock"), "sync");
	assert_int_equal(m->regions[0].begin_taken.how, TAKEN_SYNC);
	model_close(m);
}

static void markers_within_are_counted_and_timed(void **state)
{
	struct tape t = tape_started();
	struct model *m;

	(void)state;
	region(&t, T0 + 1 * MS, JPHASE_BEGIN, "outer");
	region(&t, T0 + 2 * MS, JPHASE_BEGIN, "inner");
	marker(&t, (struct record_marker){ .time_ns = T0 + 3 * MS,
			   .kind = JPHASE_END,
			   .name = "inner",
			   .took_ns = 30 * US });
	marker(&t, (struct record_marker){ .time_ns = T0 + 4 * MS,
			   .kind = JPHASE_END,
			   .name = "outer",
			   .took_ns = 50 * US });
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + 5 * MS, .name = "next", .took_ns = 7 * US, .snapshot = 2 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->rows[0].inside, 4);
	assert_int_equal(m->rows[0].inside_ns, 87 * US);
	/* The begin and the end of the inner one, but not its own. */
	assert_int_equal(m->regions[0].inside, 2);
	assert_int_equal(m->regions[0].inside_ns, 80 * US);
	assert_int_equal(m->regions[1].inside, 0);
	assert_int_equal(m->rows[1].inside, 0);
	model_close(m);
}

/* --- late, shared and missing readings --- */

static void markers_of_one_reading_are_unresolved(void **state)
{
	struct tape t = tape_begin("async");
	struct model *m;

	(void)state;
	process(&t, T0, 0, TID, "first");
	marker(&t, (struct record_marker){ .time_ns = T0, .name = "START", .snapshot = 1 });
	thread_snapshot(&t, 2, TID, "read", T0 + 4 * MS, (struct counts){ 0, 10, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 1 * MS,
			   .kind = JPHASE_BEGIN,
			   .name = "outer",
			   .snapshot = 2 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 2 * MS,
			   .kind = JPHASE_BEGIN,
			   .name = "inner",
			   .snapshot = 2 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 3 * MS, .kind = JPHASE_END, .name = "", .snapshot = 2 });
	thread_snapshot(&t, 3, TID, "read", T0 + 6 * MS, (struct counts){ 0, 60, 0, 0 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 5 * MS, .kind = JPHASE_END, .name = "", .snapshot = 3 });
	m = tape_model(&t, BY_PHASE);
	assert_missing(whole(m, 1, "page-faults"), "unresolved");
	assert_missing(own(m, 1, "page-faults"), "unresolved");
	assert_missing(whole(m, 1, "CPU_CYCLES"), "not counted: no hardware counters here");
	assert_counted(whole(m, 0, "page-faults"), 50);
	assert_quality(whole(m, 0, "page-faults"), "read 3000 µs after the boundary; "
						   "faults inside system calls are missing");
	assert_quality(own(m, 0, "task-clock"),
		"read 3000 µs after the boundary; includes 1 unresolved region in it");
	assert_int_equal(m->regions[0].begin_taken.how, TAKEN_LATE);
	assert_int_equal(m->regions[0].begin_taken.delay_ns, 3 * MS);
	assert_int_equal(m->regions[0].end_taken.delay_ns, 1 * MS);
	assert_int_equal(m->runs[0].regions_unresolved, 1);
	assert_int_equal(m->regions[1].begin_ns, T0 + 2 * MS);
	assert_true(node_is_late(&m->nodes[0]));
	/* Which has no values that could be. */
	assert_false(node_is_late(&m->nodes[1]));
	model_close(m);
}

static void a_missing_sample_is_a_late_reading(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "r", 2, (struct counts){ 0, 5, 0, 0 });
	thread_snapshot(&t, 3, TID, "read", T0 + 2 * MS + 300 * US, (struct counts){ 0, 9, 0, 0 });
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + 2 * MS, .kind = JPHASE_END, .name = "r", .snapshot = 3 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 4);
	assert_quality(whole(m, 0, "task-clock"), "read 300 µs after the boundary");
	assert_int_equal(m->regions[0].end_ns, T0 + 2 * MS);
	assert_int_equal(m->regions[0].end_taken.delay_ns, 300 * US);
	assert_true(node_is_late(&m->nodes[0]));
	model_close(m);
}

static void a_threads_first_marker_in_exact_mode_waited(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	thread_snapshot(&t, 2, TID, "read", T0 + 2 * MS, (struct counts){ 0, 0, 0, 0 });
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + 1 * MS, .kind = JPHASE_BEGIN, .name = "r", .snapshot = 2 });
	thread_snapshot(&t, 3, TID, "sampled", T0 + 5 * MS + US, (struct counts){ 0, 9, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 5 * MS,
			   .kind = JPHASE_END,
			   .name = "r",
			   .took_ns = 2 * MS,
			   .snapshot = 3 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->regions[0].begin_taken.how, TAKEN_SYNC);
	assert_int_equal(m->regions[0].end_taken.how, TAKEN_EXACT);
	assert_int_equal(m->regions[0].begin_ns, T0 + 3 * MS);
	assert_int_equal(m->regions[0].end_ns, T0 + 5 * MS + US);
	assert_quality(whole(m, 0, "task-clock"), "sync");
	model_close(m);
}

static void readings_too_far_apart_give_no_exclusive_value(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 0, 5, 0, 0 });
	/* Read long after the end of the outer one, which was sampled. */
	thread_snapshot(&t, 9, TID, "read", T0 + 8 * MS, (struct counts){ 0, 90, 0, 0 });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 3 * MS, .kind = JPHASE_END, .name = "", .snapshot = 9 });
	end(&t, 4 * MS, "outer", 5, (struct counts){ 0, 20, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 20);
	assert_counted(whole(m, 1, "page-faults"), 85);
	assert_missing(own(m, 0, "page-faults"),
		"not counted: its boundaries and those in it were read too far apart");
	model_close(m);
}

static void a_note_says_why_threads_have_no_counters(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	sampled(&t, T0 + 1 * MS, 101, JPHASE_BEGIN, "a", 2, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 2 * MS, 101, JPHASE_END, "a", 3, (struct counts){ 0, 4, 0, 0 });
	recorder_note(t.r, T0 + 3 * MS, 0, "regions have times but no counters: too many files");
	marker(&t, (struct record_marker){ .time_ns = T0 + 3 * MS,
			   .tid = 102,
			   .kind = JPHASE_BEGIN,
			   .name = "b",
			   .snapshot = 4 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 5 * MS,
			   .tid = 102,
			   .kind = JPHASE_END,
			   .name = "b",
			   .snapshot = 5 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 4);
	assert_missing(whole(m, 1, "page-faults"), "not counted: too many files");
	assert_int_equal(m->regions[1].end_ns - m->regions[1].begin_ns, 2 * MS);
	assert_int_equal(m->regions[1].begin_taken.how, TAKEN_NOT);
	model_close(m);
}

static void a_counter_that_went_back_is_of_another_thread(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "r", 2, (struct counts){ 90, 90, 90, 0 });
	end(&t, 2 * MS, "r", 3, (struct counts){ 5, 5, 5, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_missing(whole(m, 0, "page-faults"), "not counted: the counter went back");
	assert_missing(own(m, 0, "page-faults"), "not counted: it could not be read");
	model_close(m);
}

/* --- repair --- */

static void a_region_closed_by_an_outer_end_has_the_values_up_to_there(void **state)
{
	struct tape t = exact_tape();
	char text[QUALITY_ROOM];
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "middle", 3, (struct counts){ 0, 10, 0, 0 });
	begin(&t, 3 * MS, "left by longjmp", 4, (struct counts){ 0, 30, 0, 0 });
	end(&t, 4 * MS, "outer", 5, (struct counts){ 0, 60, 0, 0 });
	end(&t, 5 * MS, "middle", 6, (struct counts){ 0, 70, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 60);
	assert_counted(whole(m, 1, "page-faults"), 50);
	assert_counted(whole(m, 2, "page-faults"), 30);
	assert_counted(own(m, 0, "page-faults"), 10);
	assert_counted(own(m, 1, "page-faults"), 20);
	region_quality(&m->regions[2], text);
	assert_string_equal(text, "closed by the end of outer");
	region_quality(&m->regions[0], text);
	assert_string_equal(text, "");
	assert_int_equal(m->runs[0].repairs[REPAIR_CROSSED].count, 2);
	assert_int_equal(m->runs[0].repairs[REPAIR_STRAY].count, 1);
	assert_int_equal(m->nodes[2].repaired, 1);
	model_close(m);
}

static void a_region_that_never_ends_has_its_time_alone(void **state)
{
	struct tape t = exact_tape();
	char text[QUALITY_ROOM];
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 0, 10, 0, 0 });
	end(&t, 3 * MS, "inner", 4, (struct counts){ 0, 30, 0, 0 });
	gone(&t, 0, T0 + 9 * MS, 5);
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 1, "page-faults"), 20);
	assert_missing(whole(m, 0, "page-faults"), "not counted: it was never closed");
	assert_missing(own(m, 0, "page-faults"), "not counted: it was never closed");
	assert_int_equal(m->regions[0].end_ns, T0 + 9 * MS);
	region_quality(&m->regions[0], text);
	assert_string_equal(text, "closed by the end of its process");
	model_close(m);
}

static void without_the_values_of_an_inner_one_there_is_no_exclusive_value(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 0, 10, 0, 0 });
	/* Its reading was lost with the disk. */
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + 3 * MS, .kind = JPHASE_END, .name = "", .snapshot = 77 });
	end(&t, 4 * MS, "outer", 5, (struct counts){ 0, 60, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 60);
	assert_missing(whole(m, 1, "page-faults"), "not counted: no reading at its boundaries");
	assert_missing(own(m, 0, "page-faults"), "not counted: a region in it has no values");
	model_close(m);
}

static void samples_of_a_batch_do_not_push_out_its_reading(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1, "r", 2, (struct counts){ 0, 0, 0, 0 });
	thread_snapshot(&t, 1000, TID, "read", T0 + MS, (struct counts){ 0, 42, 0, 0 });
	for (uint64_t i = 0; i < 255; i++)
		sampled(&t, T0 + 2 + i, 101, i % 2 ? JPHASE_END : JPHASE_BEGIN, "other", 3 + i,
			(struct counts){ 0, 0, 0, 0 });
	marker(&t,
		(struct record_marker){
			.time_ns = T0 + 500, .kind = JPHASE_END, .name = "r", .snapshot = 1000 });
	m = tape_model(&t, BY_PHASE);
	assert_counted(whole(m, 0, "page-faults"), 42);
	model_close(m);
}

static void own_time_is_without_the_markers_within(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m;

	(void)state;
	process(&t, T0, 0, TID, "first");
	region(&t, T0 + 0, JPHASE_BEGIN, "outer");
	marker(&t, (struct record_marker){ .time_ns = T0 + 100,
			   .took_ns = 10,
			   .kind = JPHASE_BEGIN,
			   .name = "inner" });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 200, .took_ns = 20, .kind = JPHASE_END, .name = "" });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 300, .took_ns = 30, .kind = JPHASE_MARK, .name = "m" });
	marker(&t, (struct record_marker){
			   .time_ns = T0 + 400, .took_ns = 5, .kind = JPHASE_END, .name = "" });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->regions[0].begin_ns, T0 + 10);
	assert_int_equal(m->regions[1].end_ns - m->regions[1].begin_ns, 80);
	assert_int_equal(m->regions[0].inside_ns, 55);
	/* 390 less the 80 of inner and the 55 of three markers. */
	assert_int_equal(m->regions[0].own_ns, 255);
	model_close(m);
}

/* Each was entered 1 µs before its sample, and took 3. */
static void a_sampled_marker_is_partly_in_its_own_region(void **state)
{
	struct tape t = exact_tape();
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "inner", 3, (struct counts){ 0, 0, 0, 0 });
	thread_snapshot(&t, 4, TID, "sampled", T0 + 3 * MS + 1 * US, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 3 * MS,
			   .kind = JPHASE_END,
			   .took_ns = 3 * US,
			   .name = "",
			   .snapshot = 4 });
	thread_snapshot(&t, 5, TID, "sampled", T0 + 4 * MS + 1 * US, (struct counts){ 0, 0, 0, 0 });
	marker(&t, (struct record_marker){ .time_ns = T0 + 4 * MS,
			   .kind = JPHASE_END,
			   .took_ns = 3 * US,
			   .name = "",
			   .snapshot = 5 });
	m = tape_model(&t, BY_PHASE);
	assert_int_equal(m->regions[0].inside_ns, 6 * US);
	assert_int_equal(m->regions[0].own_ns, 2 * MS - 1 * US - 2 * US);
	model_close(m);
}

static void no_region_is_nested_in_its_namesake_across_a_loss(void **state)
{
	struct tape t = exact_tape();
	char text[QUALITY_ROOM];
	struct model *m;

	(void)state;
	begin(&t, 1 * MS, "outer", 2, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 2 * MS, "r", 3, (struct counts){ 0, 0, 0, 0 });
	recorder_loss(t.r, T0 + 3 * MS, "dropped", 2);
	begin(&t, 4 * MS, "r", 4, (struct counts){ 0, 0, 0, 0 });
	begin(&t, 5 * MS, "r", 5, (struct counts){ 0, 0, 0, 0 });
	end(&t, 6 * MS, "r", 6, (struct counts){ 0, 3, 0, 0 });
	end(&t, 7 * MS, "r", 7, (struct counts){ 0, 4, 0, 0 });
	m = tape_model(&t, BY_PHASE);
	assert_missing(whole(m, 1, "page-faults"), "not counted: its end was lost");
	region_quality(&m->regions[1], text);
	assert_string_equal(text, "its end was lost");
	assert_int_equal(m->runs[0].repairs[REPAIR_END_LOST].count, 1);
	assert_int_equal(m->regions[2].parent, 0);
	assert_counted(whole(m, 2, "page-faults"), 4);
	/* Nobody lost anything between these two. */
	assert_int_equal(m->regions[3].parent, 2);
	model_close(m);
}

/* --- as people see them --- */

static void the_tree_in_80_columns(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &table_format, BY_PHASE, 80, "regions_80.txt");
	model_close(m);
}

static void one_row_a_thread(void **state)
{
	struct tape t = nested_tape();
	struct model *m;

	(void)state;
	sampled(&t, T0 + 1 * MS, 102, JPHASE_BEGIN, "outer", 8, (struct counts){ 0, 0, 0, 0 });
	sampled(&t, T0 + 3 * MS, 102, JPHASE_END, "outer", 9, (struct counts){ 0, 7, 0, 0 });
	m = tape_model(&t, BY_THREAD);
	golden_check(m, &table_format, BY_THREAD, 80, "regions_by_thread.txt");
	model_close(m);
}

static void json_has_both_parts(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &json_format, BY_PHASE, 80, "regions.json");
	model_close(m);
}

static void csv_has_a_line_for_each_value(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &csv_regions_format, BY_PHASE, 80, "regions.csv");
	model_close(m);
}

static void regions_are_slices_of_their_threads(void **state)
{
	struct tape t = nested_tape();
	struct model *m = tape_model(&t, BY_PHASE);

	(void)state;
	golden_check(m, &trace_format, BY_PHASE, 80, "regions.trace.json");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_has_what_its_thread_counted_between_its_markers),
		cmocka_unit_test(exclusive_values_leave_out_the_regions_within),
		cmocka_unit_test(sampled_boundaries_have_the_samples_times),
		cmocka_unit_test(regions_of_one_name_are_one_in_the_tree),
		cmocka_unit_test(values_that_only_processes_have_are_no_matter_of_regions),
		cmocka_unit_test(each_region_is_scaled_by_its_own_times),
		cmocka_unit_test(threads_are_counted_apart),
		cmocka_unit_test(by_thread_there_is_a_row_and_a_tree_for_each),
		cmocka_unit_test(in_sync_a_region_begins_when_its_marker_returned),
		cmocka_unit_test(markers_within_are_counted_and_timed),
		cmocka_unit_test(markers_of_one_reading_are_unresolved),
		cmocka_unit_test(a_missing_sample_is_a_late_reading),
		cmocka_unit_test(a_threads_first_marker_in_exact_mode_waited),
		cmocka_unit_test(readings_too_far_apart_give_no_exclusive_value),
		cmocka_unit_test(a_note_says_why_threads_have_no_counters),
		cmocka_unit_test(a_counter_that_went_back_is_of_another_thread),
		cmocka_unit_test(a_region_closed_by_an_outer_end_has_the_values_up_to_there),
		cmocka_unit_test(a_region_that_never_ends_has_its_time_alone),
		cmocka_unit_test(without_the_values_of_an_inner_one_there_is_no_exclusive_value),
		cmocka_unit_test(samples_of_a_batch_do_not_push_out_its_reading),
		cmocka_unit_test(own_time_is_without_the_markers_within),
		cmocka_unit_test(a_sampled_marker_is_partly_in_its_own_region),
		cmocka_unit_test(no_region_is_nested_in_its_namesake_across_a_loss),
		cmocka_unit_test(the_tree_in_80_columns),
		cmocka_unit_test(one_row_a_thread),
		cmocka_unit_test(json_has_both_parts),
		cmocka_unit_test(csv_has_a_line_for_each_value),
		cmocka_unit_test(regions_are_slices_of_their_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
