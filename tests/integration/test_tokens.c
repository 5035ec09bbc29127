/* SPDX-License-Identifier: MIT */
/* Lines of standard output as markers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"
#include "support/trace.h"

/* One token a millisecond. */
#define TOKENS 1000

static struct measured m;
static struct child r;

static int clear(void **state)
{
	(void)state;
	measure_clear(&m);
	run_clear(&r);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	m.options[0] = "--no-calibrate";
	m.options[1] = "--token-pattern";
	m.dir = tmpdir_make();
	return 0;
}

static void give(const char *const *words)
{
	size_t n = 0;

	for (; words[n]; n++)
		m.argv[n] = words[n];
	m.argv[n] = NULL;
}

#define GIVE(...) give((const char *const[]){ __VA_ARGS__, NULL })

static void shell(const char *command)
{
	r.cwd = m.dir;
	assert_int_equal(run_shell(&r, "%s", command), 0);
	if (r.timed_out)
		fail_msg("it hangs: %s", command);
}

/* "jphase run" with the default pattern, for a shell. */
#define RUN JPHASE " run -q --no-calibrate --token-pattern -o test.msgpack -- "

static void load(void)
{
	m.file = text_make("%s/test.msgpack", m.dir);
	wait_for_recording(m.file);
	measure_load(&m);
}

/* What the talkers print, with TOKENS tokens. */
static char *expected_output(void)
{
	char *text = malloc(64 * TOKENS), *end = text;

	assert_non_null(text);
	for (int i = 0; i < TOKENS; i++)
		end += sprintf(end, "step %d __T%d__ of %d\n", i, i, TOKENS);
	return text;
}

/* Counters were read after the program had gone on, and the report knows how long after. */
static void assert_delay_is_known(const struct row *row)
{
	struct value v = value_of(&m, row, "proc_minor_faults");

	if (v.state == VALUE_COUNTED)
		assert_true(v.flags & VALUE_LATE);
}

static void assert_all_tokens(void)
{
	char *output = expected_output(), name[16];

	assert_int_equal(m.child.code, 0);
	assert_string_equal(m.child.out, output);
	free(output);
	assert_int_equal(m.model->row_count, TOKENS + 1);
	assert_int_equal(run_lost_markers(&m.model->runs[0]), 0);
	assert_string_equal(m.model->runs[0].token_pattern, "__[A-Z0-9_]+__");
	for (size_t i = 0; i < TOKENS; i++) {
		const struct row *row = &m.model->rows[i + 1];

		snprintf(name, sizeof(name), "__T%zu__", i);
		assert_string_equal(row->name, name);
		assert_int_equal(row->line, i + 1);
		assert_int_equal(row[-1].next_line, i + 1);
		assert_true(row->begin_ns >= row[-1].end_ns);
		assert_delay_is_known(row);
	}
}

static void all_tokens_of_a_c_program_are_found_in_order(void **state)
{
	(void)state;
	GIVE(TARGET("talker"), "1000", "1000");
	measure(&m);
	assert_all_tokens();
}

static void all_tokens_of_a_python_program_are_found_in_order(void **state)
{
	(void)state;
	if (!have_program("python3"))
		skip_because("there is no python3");
	GIVE("python3", "-u", "-c",
		"import time\n"
		"for i in range(1000):\n"
		"    print(f'step {i} __T{i}__ of 1000')\n"
		"    time.sleep(0.001)");
	measure(&m);
	assert_all_tokens();
}

static void all_tokens_of_a_shell_script_are_found_in_order(void **state)
{
	(void)state;
	GIVE("sh", "-c",
		"i=0; while [ $i -lt 1000 ]; do echo \"step $i __T${i}__ of 1000\"; i=$((i + 1)); "
		"done");
	measure(&m);
	assert_all_tokens();
}

/* As fast as a pipe can be: more at once than there is room for on the way. */
static void a_flood_of_tokens_is_found_too(void **state)
{
	(void)state;
	GIVE("seq", "-f", "__%06g__", "0", "19999");
	measure(&m);
	assert_int_equal(m.model->row_count - 1 + run_lost_markers(&m.model->runs[0]), 20000);
	assert_int_equal(m.child.out_bytes, 20000 * 11);
}

/*
 * One write, so that they are found at one moment, and more than are taken at
 * once: the work between them was done by nobody knows whom.
 */
static void tokens_that_are_found_together_share_their_counters(void **state)
{
	size_t together = 0;

	(void)state;
	GIVE("sh", "-c",
		"tokens=$(seq -f __%03g__ 0 399); sleep 0.05; echo \"$tokens\"; sleep 0.05");
	measure(&m);
	assert_in_range(m.model->row_count, 2, 401);
	for (size_t i = 0; i < m.model->row_count; i++) {
		const struct row *row = &m.model->rows[i];

		if (row->entry_ns != row->end_ns)
			continue;
		together++;
		assert_int_equal(row->unresolved, 1);
		assert_int_equal(row->value_count, 0);
	}
	assert_true(together > 0);
	assert_int_equal(m.model->runs[0].unresolved, together);
}

/* Nothing is flushed, and the program goes on for long after each token. */
static void the_output_of_a_c_program_is_not_late(void **state)
{
	const struct row *row;

	(void)state;
	need_perf();
	GIVE(TARGET("act"), "print=__A__", "sleep=300", "touch=500", "sleep=300", "print=__B__",
		"sleep=300", "touch=700");
	measure(&m);
	row = phase_at(&m, "__A__", 0);
	assert_true(counted(&m, row, "page-faults") >= 500);
	assert_true(counted(&m, row, "page-faults") < 700);
	row = phase_at(&m, "__B__", 0);
	assert_true(counted(&m, row, "page-faults") >= 700);
}

static void tokens_and_calls_make_phases_of_one_process(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=one", "print=__A__", "sleep=300", "phase=two", "sleep=100",
		"print=__B__", "sleep=300");
	measure(&m);
	assert_int_equal(m.model->row_count, 5);
	assert_string_equal(m.model->rows[1].name, "one");
	assert_string_equal(m.model->rows[2].name, "__A__");
	assert_int_equal(m.model->rows[2].next_line, 0);
	assert_string_equal(m.model->rows[3].name, "two");
	assert_string_equal(m.model->rows[4].name, "__B__");
	assert_int_equal(m.model->rows[4].line, 2);
}

static void fields_of_joule_profiler_are_filled(void **state)
{
	(void)state;
	shell(RUN
		"sh -c 'echo; echo __A__; sleep 0.05; echo x; echo __B__; sleep 0.05' >/dev/null; " JPHASE
		" report --format json test.msgpack | grep -E 'token|\"name\": \"(START|_)' | "
		"sed 's/^ *//; s/,$//'; " JPHASE
		" report --format csv test.msgpack | sed 1d | cut -d';' -f8-11 | uniq");
	assert_string_equal(r.out, "\"token_pattern\": \"__[A-Z0-9_]+__\"\n"
				   "\"name\": \"START\"\n"
				   "\"start_token\": \"START\"\n"
				   "\"end_token\": \"__A__\"\n"
				   "\"end_token_line\": 1\n"
				   "\"name\": \"__A__\"\n"
				   "\"start_token\": \"__A__\"\n"
				   "\"end_token\": \"__B__\"\n"
				   "\"start_token_line\": 1\n"
				   "\"end_token_line\": 3\n"
				   "\"name\": \"__B__\"\n"
				   "\"start_token\": \"__B__\"\n"
				   "\"end_token\": \"END\"\n"
				   "\"start_token_line\": 3\n"
				   "START;__A__;;1\n"
				   "__A__;__B__;1;3\n"
				   "__B__;END;3;\n");
}

static void any_output_passes_unharmed(void **state)
{
	(void)state;
	shell("head -c 3000000 /dev/urandom >bytes; tr -d '\\n' <bytes >line; "
	      "printf '\\0\\377\\n__A__ no end' >odd; cat bytes line odd >all; " RUN
	      "cat bytes line odd | cmp - all && " RUN "cat bytes line odd >copy && cmp copy all");
	assert_string_equal(r.err, "");
	assert_int_equal(r.code, 0);
	load();
	assert_int_equal(phase_count(&m, "__A__"), 1);
}

/* Else both wait for each other. */
static void a_prompt_is_not_held_back(void **state)
{
	(void)state;
	shell("mkfifo answer; " RUN
	      "sh -c 'printf \"name? \"; read name; echo \"hello $name\"' <answer | "
	      "{ exec 3>answer; head -c 6; echo bob >&3; cat; }");
	assert_string_equal(r.out, "name? hello bob\n");
}

static void a_slow_reader_holds_the_program_no_longer_than_a_pipe_does(void **state)
{
	(void)state;
	shell(RUN "sh -c 'head -c 65536 /dev/zero; touch done' | "
		  "{ while [ ! -e done ]; do sleep 0.01; done; wc -c; }");
	assert_string_equal(r.out, "65536\n");
}

static void a_reader_that_goes_ends_the_program_as_without_us(void **state)
{
	(void)state;
	shell("{ " RUN
	      "yes; echo $? >code; } | head -n 1; while [ ! -s code ]; do sleep 0.01; done; "
	      "cat code");
	assert_string_equal(r.out, "y\n141\n");
}

/* The one exception to "the program does not notice". */
static void when_we_are_killed_the_program_gets_sigpipe(void **state)
{
	(void)state;
	shell(RUN "sh -c 'echo $$ >pid; while sleep 0.01; do echo; done' >/dev/null & "
		  "while [ ! -s pid ]; do sleep 0.01; done; kill -9 $!; "
		  "while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done; echo gone");
	assert_string_equal(r.out, "gone\n");
}

static void whom_the_program_leaves_behind_writes_on(void **state)
{
	(void)state;
	shell(RUN "sh -c '{ until [ -e over ]; do sleep 0.01; done; echo late; } & echo early'; "
		  "echo \"status $?\"; touch over");
	assert_string_equal(r.out, "early\nstatus 0\nlate\n");
}

static void the_status_is_the_programs(void **state)
{
	(void)state;
	shell(RUN "sh -c 'echo __A__; exit 7'; echo $?; " RUN "sh -c 'kill -9 $$'; echo $?; " RUN
		  "./missing 2>/dev/null; echo $?");
	assert_string_equal(r.out, "__A__\n7\n137\n127\n");
}

/* The tokens fill all the room there is towards it, so that the end finds none. */
static void a_collector_that_is_stopped_holds_nobody_for_long(void **state)
{
	(void)state;
	shell(RUN "sh -c 'pgrep -P $PPID -f \"^jphase collect\" >pid && kill -STOP $(cat pid) && "
		  "seq -f __%g__ 3000; exit 7' >/dev/null; echo $?; kill -9 $(cat pid)");
	assert_string_equal(r.out, "7\n");
	assert_non_null(strstr(r.err, "the collector is still writing"));
}

/* A pipe belongs to who has made it. */
static void another_user_may_open_the_output_anew(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("only root can run a program as another user");
	shell("chmod 755 .; " JPHASE
	      " run -q --no-calibrate --user nobody --token-pattern -o test.msgpack -- "
	      "sh -c 'echo __A__ >/dev/stdout'");
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "__A__\n");
	load();
	assert_int_equal(phase_count(&m, "__A__"), 1);
}

/* A file of its own is written as ever: one write at its end. */
static void only_the_output_that_is_looked_at_is_line_buffered(void **state)
{
	(void)state;
	skip_with_asan("looks for leaks, which it cannot do while it is traced");
	need_strace();
	shell("strace -f -s 9999 -o trace -e trace=write " RUN
	      "sh -c '" TARGET("talker") " 100 0 >file' && "
					 "grep -c '\"step' trace");
	assert_string_equal(r.out, "1\n");
}

static void a_pattern_of_ones_own_is_used(void **state)
{
	(void)state;
	m.options[1] = "--token-pattern=[a-z]+ing";
	GIVE("sh", "-c", "echo loading; sleep 0.05; echo __A__; echo now solving it; sleep 0.05");
	measure(&m);
	assert_int_equal(m.model->row_count, 3);
	assert_string_equal(m.model->rows[1].name, "loading");
	assert_string_equal(m.model->rows[2].name, "solving");
}

static void what_cannot_be_done_is_refused_before_the_program_starts(void **state)
{
	(void)state;
	shell(JPHASE " run --token-pattern '__\\d+__' -- echo no");
	assert_string_equal(r.out, "");
	assert_string_equal(
		r.err, "jphase: token-pattern \"__\\d+__\": \\d is not POSIX; write [0-9]\n");
	assert_int_equal(r.code, 125);
	shell(RUN "echo no >&-");
	assert_string_equal(
		r.err, "jphase: token-pattern looks at standard output, which is closed\n");
	assert_int_equal(r.code, 125);
}

static void the_library_alone_says_that_it_cannot(void **state)
{
	(void)state;
	shell("JPHASE_TOKEN_PATTERN=x LD_PRELOAD=" LIBJPHASE " " TARGET("act") " print=done");
	assert_string_equal(r.out, "done\n");
	assert_string_equal(r.err, "jphase: not measuring: token-pattern needs jphase run, through "
				   "which the output goes\n");
	assert_int_equal(r.code, 0);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_tokens_of_a_c_program_are_found_in_order),
		TEST(all_tokens_of_a_python_program_are_found_in_order),
		TEST(all_tokens_of_a_shell_script_are_found_in_order),
		TEST(a_flood_of_tokens_is_found_too),
		TEST(tokens_that_are_found_together_share_their_counters),
		TEST(the_output_of_a_c_program_is_not_late),
		TEST(tokens_and_calls_make_phases_of_one_process),
		TEST(fields_of_joule_profiler_are_filled),
		TEST(any_output_passes_unharmed),
		TEST(a_prompt_is_not_held_back),
		TEST(a_slow_reader_holds_the_program_no_longer_than_a_pipe_does),
		TEST(a_reader_that_goes_ends_the_program_as_without_us),
		TEST(when_we_are_killed_the_program_gets_sigpipe),
		TEST(whom_the_program_leaves_behind_writes_on),
		TEST(the_status_is_the_programs),
		TEST(a_collector_that_is_stopped_holds_nobody_for_long),
		TEST(another_user_may_open_the_output_anew),
		TEST(only_the_output_that_is_looked_at_is_line_buffered),
		TEST(a_pattern_of_ones_own_is_used),
		TEST(what_cannot_be_done_is_refused_before_the_program_starts),
		TEST(the_library_alone_says_that_it_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
