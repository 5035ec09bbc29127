/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "support/golden.h"
#include "support/tape.h"

static void assert_has(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no %s in %s", wanted, text);
}

static void a_phase_is_a_slice_with_its_values(void **state)
{
	struct model *m = two_phase_model(BY_PHASE);

	(void)state;
	golden_check(m, &trace_format, BY_PHASE, 80, "two_phases.trace.json");
	model_close(m);
}

static void an_empty_recording_is_an_empty_timeline(void **state)
{
	struct tape t = tape_begin("sync");
	struct model *m = tape_model(&t, BY_PHASE);
	char *text = golden_render(m, &trace_format, BY_PHASE, 80);

	(void)state;
	assert_has(text, "\"traceEvents\": [],");
	free(text);
	model_close(m);
}

static void a_mark_is_an_instant_of_its_thread(void **state)
{
	struct tape t = tape_started();
	struct model *m;
	char *text;

	(void)state;
	marker(&t, (struct record_marker){ .time_ns = T0 + 1234 * US + 5,
			   .kind = JPHASE_MARK,
			   .tid = 107,
			   .name = "con\"verged" });
	gone(&t, 0, T0 + 3 * MS, 4);
	m = tape_model(&t, BY_PHASE);
	text = golden_render(m, &trace_format, BY_PHASE, 80);
	assert_has(text, "{\"ph\": \"i\", \"name\": \"con\\\"verged\", \"pid\": 100, \"tid\": 107, "
			 "\"cat\": \"mark\", \"s\": \"t\", \"ts\": 1234.005}");
	assert_has(text, "\"thread_name\", \"pid\": 100, \"tid\": 107");
	free(text);
	model_close(m);
}

/* Their pids may be the same. */
static void runs_are_apart(void **state)
{
	struct tape a = tape_begin("sync");
	struct tape b = tape_begin("sync");
	struct model *m;
	char *text;

	(void)state;
	two_phases(&a);
	two_phases(&b);
	tape_end(&a);
	tape_end(&b);
	assert_int_equal(model_open(&m), 0);
	assert_int_equal(model_read(m, a.fd, "a"), 0);
	assert_int_equal(model_read(m, b.fd, "b"), 0);
	assert_int_equal(model_finish(m, BY_PHASE), 0);
	/* The second began as long after the first as the clocks on the wall say. */
	m->runs[1].started_us += 2000000;
	text = golden_render(m, &trace_format, BY_PHASE, 80);
	assert_has(text, "\"pid\": 100, \"tid\": 4194404, \"args\": {\"name\": \"run 0: app\"}");
	assert_has(
		text, "\"pid\": 8388708, \"tid\": 12583012, \"args\": {\"name\": \"run 1: app\"}");
	assert_has(text, "\"START\", \"pid\": 8388708, \"tid\": 12583012, \"cat\": \"phase\", "
			 "\"ts\": 2000000.000");
	free(text);
	model_close(m);
	sys_close(a.fd);
	sys_close(b.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_phase_is_a_slice_with_its_values),
		cmocka_unit_test(an_empty_recording_is_an_empty_timeline),
		cmocka_unit_test(a_mark_is_an_instant_of_its_thread),
		cmocka_unit_test(runs_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
