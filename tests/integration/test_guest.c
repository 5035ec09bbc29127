/* SPDX-License-Identifier: MIT */
/* A program that is measured behaves, and is seen by others, as one that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"

#define NAP_US 20000

static const enum way ways[] = { WAY_RUN, WAY_PRELOAD };

#define FOR_EACH_WAY(w) for (size_t w = 0; w < ARRAY_SIZE(ways); w++)

static struct measured m;

static int clear(void **state)
{
	(void)state;
	measure_clear(&m);
	return 0;
}

/* How the program of m goes without us. */
static void run_plain(struct child *plain)
{
	memset(plain, 0, sizeof(*plain));
	for (size_t i = 0; m.argv[i]; i++)
		plain->argv[i] = m.argv[i];
	for (size_t i = 0; m.env[i]; i++)
		plain->env[i] = m.env[i];
	m.dir = m.dir ? m.dir : tmpdir_make();
	plain->cwd = m.dir;
	assert_int_equal(run_program(plain), 0);
	assert_false(plain->timed_out);
}

/* The first line that differs is what one wants to know. */
static void assert_same_text(const char *text, const char *expected)
{
	while (*text || *expected) {
		size_t n = strcspn(text, "\n"), k = strcspn(expected, "\n");

		if (n != k || memcmp(text, expected, n) != 0)
			fail_msg("\"%.*s\" is \"%.*s\" without jphase", (int)n, text, (int)k,
				expected);
		text += n + (text[n] == '\n');
		expected += k + (expected[k] == '\n');
	}
}

static void assert_same(const struct child *plain)
{
	const struct child *c = &m.child;

	assert_same_text(c->out, plain->out);
	assert_int_equal(c->out_bytes, plain->out_bytes);
	assert_string_equal(c->err, plain->err);
	assert_int_equal(c->code, plain->code);
	/* The launcher can only tell the number of a signal, as a shell does. */
	if (m.way == WAY_PRELOAD)
		assert_int_equal(c->status, plain->status);
}

static void what_a_program_sees_of_itself_is_the_same(void **state)
{
	struct child plain;

	(void)state;
	m.argv[0] = TARGET("nosy");
	run_plain(&plain);
	assert_non_null(strstr(plain.out, "no other: 1"));
	FOR_EACH_WAY(w)
	{
		m.way = ways[w];
		measure(&m);
		assert_same(&plain);
		assert_int_equal(phase_count(&m, "one"), 1);
		assert_int_equal(phase_count(&m, "child"), 1);
	}
	run_clear(&plain);
}

/* Things that a careless start would tidy up. */
static void odd_things_that_it_inherits_stay(void **state)
{
	static const char *const programs[] = {
		TARGET("nosy"),
		JPHASE " run -q -- " TARGET("nosy"),
		"env LD_PRELOAD=" LIBJPHASE " " TARGET("nosy"),
	};
	struct child plain = { .argv = { NULL } };
	char *dir = tmpdir_make();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct child r = { .argv = { NULL } };

		assert_int_equal(
			run_shell(&r,
				"cd %s; ulimit -n 200; umask 027; exec 7</dev/null 9>&1; exec nice -n 3 "
				"%s ignore=17 ignore=2 ignore=13 ignore=10 block=12 block=15 exec=%s",
				dir, TARGET("act"), programs[i]),
			0);
		if (i == 0) {
			assert_non_null(strstr(r.out, "signal 17: ignored"));
			assert_non_null(strstr(r.out, "signal 15: blocked"));
			plain = r;
			continue;
		}
		assert_string_equal(r.err, "");
		assert_same_text(r.out, plain.out);
		assert_int_equal(r.code, 0);
		run_clear(&r);
	}
	run_clear(&plain);
	tmpdir_remove(dir);
}

/* From Linux 6.15 on others than the parent are told; before that they have to be quicker. */
static bool collector_knows_status(enum way way)
{
	struct utsname name;
	unsigned major, minor;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &major, &minor), 2);
	return way == WAY_RUN || major > 6 || (major == 6 && minor >= 15);
}

static void outputs_and_status_are_those_of_the_program(void **state)
{
	static const char *const ends[] = { "exit=0", "exit=1", "exit=42", "_exit=3", "raise=15",
		"raise=11", "raise=9" };
	static const int codes[] = { 0, 1, 42, 3, 143, 139, 137 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct child plain;

		m.argv[0] = TARGET("act");
		m.argv[1] = "phase=a";
		m.argv[2] = "print=to the output";
		m.argv[3] = "error=to the errors";
		m.argv[4] = "phase=b";
		m.argv[5] = ends[i];
		run_plain(&plain);
		assert_int_equal(plain.code, codes[i]);
		FOR_EACH_WAY(w)
		{
			int code;

			m.way = ways[w];
			measure(&m);
			assert_same(&plain);
			code = run_exit_code(&m.model->runs[0]);
			if (code >= 0 || collector_knows_status(ways[w]))
				assert_int_equal(code, codes[i]);
			assert_true(m.model->runs[0].complete);
			assert_int_equal(phase_count(&m, "a"), 1);
			counted(&m, phase_at(&m, "b", 0), "page-faults");
		}
		run_clear(&plain);
	}
}

/* A collector that held the pipe would keep the shell waiting for as long as it lives. */
static void a_command_substitution_returns_with_the_program(void **state)
{
	struct child r = { .argv = { NULL } };
	char *dir = tmpdir_make();

	(void)state;
	assert_int_equal(
		run_shell(&r,
			"cd %s; x=$(LD_PRELOAD=%s %s phase=a print=hey flush daemonise sleep=3000); "
			"test $(ls jphase-act-*.msgpack | wc -l) = 1 && "
			"pgrep -f '^jphase collect' >/dev/null && echo \"$x still measured\"",
			dir, LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.out, "hey still measured\n");
	run_clear(&r);
	tmpdir_remove(dir);
}

static void a_report_right_after_the_program_is_complete(void **state)
{
	static const char *const programs[] = {
		TARGET("act") " phase=a phase=b",
		TARGET("act") " phase=a phase=b _exit=0",
		TARGET("act") " phase=a phase=b raise=9",
		"dash -c '" TARGET("act") " phase=a phase=b; true'",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct child r = { .argv = { NULL } };
		char *dir = tmpdir_make();

		assert_int_equal(run_shell(&r,
					 "cd %s; LD_PRELOAD=%s JPHASE_OUTPUT=x.msgpack %s; "
					 "%s report -f csv x.msgpack | grep -c '^[0-9]*;b -> END;'",
					 dir, LIBJPHASE, programs[i], JPHASE),
			0);
		assert_null(strstr(r.err, "jphase:"));
		assert_int_equal(r.code, 0);
		run_clear(&r);
		tmpdir_remove(dir);
	}
}

/* --- job control --- */

/* True once the process that the shell looks at has stopped; its status is for wait(). */
static bool has_stopped(pid_t pid, int *ret_signal)
{
	siginfo_t info = { .si_pid = 0 };

	for (int i = 0; i < 500; i++) {
		assert_int_equal(
			waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT), 0);
		if (info.si_pid)
			break;
		usleep(NAP_US);
	}
	*ret_signal = info.si_status;
	return info.si_pid == pid && info.si_code == CLD_STOPPED;
}

/* What the shell sees when `how` is sent to the job; then the job goes on and ends. */
static void assert_stops_and_goes_on(int group_signal, const char *first_deed, int expected)
{
	FOR_EACH_WAY(w)
	{
		int number;

		m.way = ways[w];
		m.argv[0] = TARGET("act");
		m.argv[1] = "phase=a";
		m.argv[2] = first_deed;
		m.argv[3] = "phase=b";
		m.argv[4] = "print=on";
		measure_start(&m);
		if (group_signal) {
			usleep(10 * NAP_US);
			kill(-m.child.pid, group_signal);
		}
		assert_true(has_stopped(m.child.pid, &number));
		assert_int_equal(number, expected);
		kill(-m.child.pid, SIGCONT);
		measure_finish(&m);
		assert_int_equal(m.child.code, 0);
		assert_string_equal(m.child.out, "on\n");
		assert_int_equal(phase_count(&m, "b"), 1);
	}
}

static void a_job_stops_and_goes_on_as_a_whole(void **state)
{
	(void)state;
	assert_stops_and_goes_on(SIGSTOP, "sleep=700", SIGSTOP);
}

static void a_program_that_stops_itself_stops_its_launcher(void **state)
{
	(void)state;
	assert_stops_and_goes_on(0, "raise=19", SIGSTOP);
}

static void signals_sent_to_the_launcher_reach_the_program(void **state)
{
	static const int sent[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	union sigval value = { .sival_int = 7 };

	(void)state;
	m.argv[0] = TARGET("act");
	m.argv[1] = "await=15,1,10,12,40";
	m.argv[2] = "phase=b";
	measure_start(&m);
	wait_for_collector(m.file);
	usleep(10 * NAP_US);
	for (size_t i = 0; i < ARRAY_SIZE(sent); i++)
		kill(m.child.pid, sent[i]);
	sigqueue(m.child.pid, 40, value);
	measure_finish(&m);
	assert_int_equal(m.child.code, 0);
	/* They are different ones: their order is the kernel's. */
	for (size_t i = 0; i < ARRAY_SIZE(sent); i++) {
		char *line = text_make("got %d\n", sent[i]);

		assert_non_null(strstr(m.child.out, line));
		free(line);
	}
	assert_non_null(strstr(m.child.out, "got 40\n"));
}

static void a_child_status_is_known_also_where_sigchld_was_ignored(void **state)
{
	struct child r = { .argv = { NULL } };
	char *dir = tmpdir_make();

	(void)state;
	assert_int_equal(run_shell(&r, "cd %s; %s ignore=17 exec=%s run -q %s exit=5", dir,
				 TARGET("act"), JPHASE, TARGET("act")),
		0);
	assert_int_equal(r.code, 5);
	run_clear(&r);
	tmpdir_remove(dir);
}

static void a_child_left_before_an_exec_is_still_there(void **state)
{
	struct child r = { .argv = { NULL } };
	char *dir = tmpdir_make();

	(void)state;
	assert_int_equal(run_shell(&r,
				 "cd %s; JPHASE_OUTPUT=x.msgpack %s leave=7 exec=env LD_PRELOAD=%s "
				 "%s collect",
				 dir, TARGET("act"), LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "child: 7\n");
	run_clear(&r);
	tmpdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_a_program_sees_of_itself_is_the_same, clear),
		cmocka_unit_test_teardown(odd_things_that_it_inherits_stay, clear),
		cmocka_unit_test_teardown(outputs_and_status_are_those_of_the_program, clear),
		cmocka_unit_test(a_command_substitution_returns_with_the_program),
		cmocka_unit_test(a_report_right_after_the_program_is_complete),
		cmocka_unit_test_teardown(a_job_stops_and_goes_on_as_a_whole, clear),
		cmocka_unit_test_teardown(a_program_that_stops_itself_stops_its_launcher, clear),
		cmocka_unit_test_teardown(signals_sent_to_the_launcher_reach_the_program, clear),
		cmocka_unit_test(a_child_status_is_known_also_where_sigchld_was_ignored),
		cmocka_unit_test(a_child_left_before_an_exec_is_still_there),
	};
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
