/* SPDX-License-Identifier: MIT */
/* Shares of CPU time, and why a value is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/tape.h"

/* The program's group and the machine's root, and what procfs counts of one thread alone. */
struct machine {
	struct metric usage[2];
	struct metric procfs[2];
	struct metric_list usage_list, procfs_list;
	struct recorder_reader readers[2];
};

static void machine_make(struct machine *m)
{
	*m = (struct machine){
		.usage = { { .name = "proc_usage_usec",
				   .unit = UNIT_US,
				   .scope = SCOPE_GROUP,
				   .group = METRIC_NO_GROUP },
			{ .name = "global_usage_usec",
				.unit = UNIT_US,
				.scope = SCOPE_GLOBAL,
				.group = METRIC_NO_GROUP } },
		.procfs = { { .name = "proc_cpu_time",
				    .unit = UNIT_NS,
				    .group = METRIC_NO_GROUP,
				    .note = "counted while the process has only one thread" },
			{ .name = "proc_user_time",
				.unit = UNIT_US,
				.group = METRIC_NO_GROUP,
				.note = "10 ms steps" } },
	};
	m->usage_list = (struct metric_list){ m->usage, 2, 0 };
	m->procfs_list = (struct metric_list){ m->procfs, 2, 0 };
	m->readers[0] = (struct recorder_reader){ "cgroup", false, NULL, &m->usage_list };
	m->readers[1] = (struct recorder_reader){ "procfs", false, NULL, &m->procfs_list };
}

/* One phase of that length, in which the two groups used so much. */
static struct model *phase_of(
	const struct machine *m, uint64_t length, uint64_t group_us, uint64_t root_us)
{
	struct tape t = { .fd = recording_fd() };
	uint64_t none[] = { VALUE_ABSENT, VALUE_ABSENT };
	bool same = group_us == root_us;

	t.r = recording_begin(t.fd, "sync", m->readers, 2);
	process(&t, T0, 0, 100, "first");
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t time = T0 + i * length;
		uint64_t values[] = { (same ? 7 : 5) + i * group_us, 7 + i * root_us };

		marker(&t, (struct record_marker){ .time_ns = time,
				   .kind = i ? JPHASE_EXIT : JPHASE_PHASE,
				   .name = i ? "" : "START",
				   .snapshot = 1 + i });
		recorder_snapshot(t.r, 1 + i, RECORD_NO_PROCESS, "cgroup", time, time + 10 * US,
			values, &m->usage_list);
		recorder_snapshot(
			t.r, 1 + i, 0, "procfs", time, time + 10 * US, none, &m->procfs_list);
	}
	gone(&t, 0, T0 + length, 0);
	return tape_model(&t, BY_PHASE);
}

static void a_group_of_its_own_is_exact_however_short(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = phase_of(&machine, 1 * MS, 500, 40000);
	assert_counted(value(m, 0, "proc_cpu_usage"), 5000);
	assert_missing(value(m, 0, "global_cpu_usage"),
		"not counted: shorter than ten of the 4 ms steps of the machine's CPU time");
	model_close(m);
}

static void the_root_group_has_its_steps_as_error(void **state)
{
	struct machine machine;
	struct model *m;
	char *json;

	(void)state;
	machine_make(&machine);
	m = phase_of(&machine, 80 * MS, 20000, 80000);
	assert_counted(value(m, 0, "global_cpu_usage"), 10000);
	/* 4 ms of 80. */
	assert_int_equal(value(m, 0, "global_cpu_usage").error, 500);
	assert_quality(value(m, 0, "global_cpu_usage"),
		"±5 % of the value as its counter moves about once in 4 ms; read 0 µs after the "
		"boundary");
	json = golden_render(m, &json_format, BY_PHASE, 80);
	assert_non_null(strstr(json, "\"global_cpu_usage\", \"value\": 100.00,"));
	assert_non_null(strstr(json, "\"error\": 5.00}"));
	free(json);
	model_close(m);
}

static void a_program_in_the_root_group_moves_in_its_steps(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = phase_of(&machine, 39 * MS, 20000, 20000);
	assert_missing(value(m, 0, "proc_cpu_usage"),
		"not counted: shorter than ten of the 4 ms steps of the machine's CPU time");
	model_close(m);
}

static void a_containers_root_counts_as_any_group(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	machine.usage[1].note = (char *)"the container's groups, not the whole machine";
	m = phase_of(&machine, 1 * MS, 500, 1500);
	assert_counted(value(m, 0, "global_cpu_usage"), 15000);
	model_close(m);
}

/* The recording's machine has two CPUs. */
static void no_share_is_more_than_all_cpus(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	/* What the readings themselves took may be in it. */
	m = phase_of(&machine, 1 * MS, 2010, 0);
	assert_counted(value(m, 0, "proc_cpu_usage"), 20000);
	model_close(m);
	m = phase_of(&machine, 1 * MS, 2030, 0);
	assert_missing(value(m, 0, "proc_cpu_usage"),
		"not counted: more than all CPUs can have worked between its readings");
	model_close(m);
}

static void a_shared_groups_usage_is_not_usual(void **state)
{
	struct machine machine;
	struct model *m;
	char *text;

	(void)state;
	machine_make(&machine);
	m = phase_of(&machine, 1 * MS, 500, 0);
	text = golden_render(m, &table_format, BY_PHASE, 80);
	assert_non_null(strstr(text, "cpu_usage"));
	free(text);
	model_close(m);
	machine.usage[0].note = (char *)"shared with 12 other processes";
	m = phase_of(&machine, 1 * MS, 500, 0);
	text = golden_render(m, &table_format, BY_PHASE, 80);
	assert_null(strstr(text, "cpu_usage"));
	free(text);
	model_close(m);
}

static void a_note_that_explains_is_the_reason(void **state)
{
	struct machine machine;
	struct model *m;

	(void)state;
	machine_make(&machine);
	m = phase_of(&machine, 1 * MS, 500, 0);
	assert_missing(value(m, 0, "proc_cpu_time"),
		"not counted: counted while the process has only one thread");
	assert_missing(value(m, 0, "proc_user_time"), "not counted: it could not be read");
	model_close(m);
}

/* Two phases; in the second one a sample saw so many processes. */
static struct model *sizes_of(uint64_t processes, enum model_by by)
{
	struct metric metrics[] = {
		{ .name = "proc_rss",
			.kind = METRIC_GAUGE,
			.unit = UNIT_BYTES,
			.group = METRIC_NO_GROUP },
		{ .name = "proc_processes", .kind = METRIC_GAUGE, .group = METRIC_NO_GROUP },
	};
	struct metric_list list = { metrics, 2, 0 };
	struct recorder_reader reader = { "procfs", false, NULL, &list };
	struct tape t = { .fd = recording_fd() };
	uint64_t boundary[] = { 4096, 1 }, between[] = { 3 * 4096, processes };

	t.r = recording_begin(t.fd, "sync", &reader, 1);
	process(&t, T0, 0, 100, "first");
	for (uint64_t i = 0; i < 3; i++) {
		marker(&t, (struct record_marker){ .time_ns = T0 + i * MS,
				   .kind = i == 2 ? JPHASE_EXIT : JPHASE_PHASE,
				   .name = "START",
				   .snapshot = 1 + i });
		recorder_snapshot(
			t.r, 1 + i, 0, "procfs", T0 + i * MS, T0 + i * MS, boundary, &list);
		if (i == 1)
			recorder_sample(t.r, T0 + MS + 5 * US, 0, "procfs", between, &list);
	}
	gone(&t, 0, T0 + 2 * MS, 0);
	return tape_model(&t, by);
}

static void sizes_of_several_processes_say_so(void **state)
{
	static const char summed[] = "sampled; " SUMMED_TEXT "; read 0 µs after the boundary";
	struct model *m = sizes_of(3, BY_PHASE);
	char *text = golden_render(m, &table_format, BY_PHASE, 80);

	(void)state;
	assert_counted(value(m, 1, "proc_rss_max"), 3 * 4096);
	assert_quality(value(m, 0, "proc_rss_max"), "sampled; read 0 µs after the boundary");
	assert_quality(value(m, 1, "proc_rss_max"), summed);
	assert_non_null(strstr(text, "\n  proc_rss_max: several processes added up: "));
	assert_non_null(strstr(text, "proc_pss"));
	free(text);
	model_close(m);
	/* Also where the phase of one process comes first. */
	m = sizes_of(3, BY_NAME);
	assert_quality(value(m, 0, "proc_rss_max"), summed);
	model_close(m);
	m = sizes_of(1, BY_PHASE);
	assert_quality(value(m, 1, "proc_rss_max"), "sampled; read 0 µs after the boundary");
	model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_several_processes_say_so),
		cmocka_unit_test(a_group_of_its_own_is_exact_however_short),
		cmocka_unit_test(the_root_group_has_its_steps_as_error),
		cmocka_unit_test(a_program_in_the_root_group_moves_in_its_steps),
		cmocka_unit_test(a_containers_root_counts_as_any_group),
		cmocka_unit_test(no_share_is_more_than_all_cpus),
		cmocka_unit_test(a_shared_groups_usage_is_not_usual),
		cmocka_unit_test(a_note_that_explains_is_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
