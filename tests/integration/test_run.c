/* SPDX-License-Identifier: MIT */
/* jphase run on all kinds of programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"

static struct measured m;
static struct child r;

static int clear(void **state)
{
	(void)state;
	measure_clear(&m);
	run_clear(&r);
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

/* In a folder of its own, with a file of that content and mode in it. */
static void make_file(const char *name, const char *text, mode_t mode)
{
	char *path;

	m.dir = m.dir ? m.dir : tmpdir_make();
	path = text_make("%s/%s", m.dir, name);
	assert_int_equal(file_write(path, text, strlen(text)), 0);
	assert_int_equal(chmod(path, mode), 0);
	free(path);
}

static void make_copy(const char *from, const char *name)
{
	m.dir = m.dir ? m.dir : tmpdir_make();
	assert_int_equal(run_shell(&r, "cp %s %s/%s", from, m.dir, name), 0);
	assert_int_equal(r.code, 0);
}

/* The launcher's own answer. */
static void assert_refused(const char *program, int code, const char *sentence)
{
	m.dir = m.dir ? m.dir : tmpdir_make();
	assert_int_equal(
		run_shell(&r, "cd %s && %s run -o x.msgpack -- %s", m.dir, JPHASE, program), 0);
	assert_string_equal(r.out, "");
	assert_string_equal(r.err, sentence);
	assert_int_equal(r.code, code);
}

static void what_cannot_be_started_is_126_or_127(void **state)
{
	(void)state;
	assert_refused("./missing", 127, "jphase: ./missing: no such program\n");
	assert_refused("missing-too", 127, "jphase: missing-too: no such program\n");
	make_file("plain", "text", 0644);
	assert_refused("./plain", 126, "jphase: ./plain: not executable\n");
	assert_refused("/tmp", 126, "jphase: /tmp: not executable\n");
	make_file("orphan", "#!/no/such/interpreter\n", 0755);
	assert_refused("./orphan", 127, "jphase: ./orphan: its interpreter does not exist\n");
	assert_refused("", 125,
		"jphase: no program to run; write: jphase run [options] -- PROGRAM [ARGUMENTS]\n");
}

static void a_static_program_is_one_phase_and_we_say_so(void **state)
{
	(void)state;
	make_copy(TARGET("act_static"), "app");
	assert_int_equal(
		run_shell(&r, "cd %s && %s run -o test.msgpack -- ./app phase=a print=x touch=100",
			m.dir, JPHASE),
		0);
	assert_string_equal(r.out, "x\n");
	assert_non_null(strstr(r.err, "jphase: ./app is statically linked: its markers cannot be "
				      "seen, it is measured as one phase\n"));
	m.file = text_make("%s/test.msgpack", m.dir);
	measure_load(&m);
	assert_int_equal(m.model->row_count, 1);
	assert_true(counted(&m, phase_at(&m, "START", 0), "page-faults") >= 100);
}

/* The kernel takes the counters away: "not counted", never 0. */
static void a_set_user_id_program_is_not_counted_and_never_zero(void **state)
{
	static const char *const gone[] = { "task-clock", "page-faults", "context-switches" };
	char *path;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can make a set-user-ID program of another user");
	make_copy(TARGET("act"), "app");
	path = text_make("%s/app", m.dir);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(path, 04755), 0);
	free(path);
	GIVE("./app", "touch=1000", "print=x", "sleep=200");
	measure(&m);
	assert_string_equal(m.child.out, "x\n");
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		struct value v = value_of(&m, phase_at(&m, "START", 0), gone[i]);

		assert_int_equal(v.state, VALUE_NULL);
		assert_non_null(v.note);
		assert_non_null(strstr(v.note, "set-user-ID"));
	}
}

/* The launcher cannot see it coming: it is the shell's child. */
static void a_set_user_id_descendant_is_noticed_while_it_lives(void **state)
{
	bool told = false;
	char *path;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can make a set-user-ID program of another user");
	make_copy(TARGET("act"), "app");
	path = text_make("%s/app", m.dir);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(path, 04755), 0);
	free(path);
	GIVE("sh", "-c", "exec ./app touch=1000 sleep=500");
	measure(&m);
	for (size_t i = 0; i < m.model->runs[0].note_count; i++)
		told |= strstr(m.model->runs[0].notes[i], "set-user-ID") != NULL;
	assert_true(told);
	assert_int_equal(value_of(&m, phase_at(&m, "START", 0), "page-faults").state, VALUE_NULL);
}

static void scripts_and_shells_run_as_always(void **state)
{
	(void)state;
	make_file("script", "#!/bin/sh\necho from the script \"$@\"\nexit 4\n", 0755);
	GIVE("./script", "a b");
	measure(&m);
	assert_string_equal(m.child.out, "from the script a b\n");
	assert_int_equal(m.child.code, 4);
	make_file("bare", "echo without a first line\n", 0755);
	unlink(m.file);
	GIVE("./bare");
	measure(&m);
	assert_string_equal(m.child.out, "without a first line\n");
	unlink(m.file);
	GIVE("sh", "-c", "echo $0 $1; exit 7", "zero", "one");
	measure(&m);
	assert_string_equal(m.child.out, "zero one\n");
	assert_int_equal(m.child.code, 7);
}

static void python_marks_through_ctypes(void **state)
{
	(void)state;
	if (!have_program("/usr/bin/python3"))
		skip_because("there is no python3");
	GIVE("/usr/bin/python3", "-c",
		"import ctypes; f = ctypes.CDLL(None).joule_phase; f(b'one'); f(b'two'); print(42)");
	measure(&m);
	assert_string_equal(m.child.out, "42\n");
	assert_int_equal(phase_count(&m, "one"), 1);
	counted(&m, phase_at(&m, "two", 0), "task-clock");
}

static void forks_and_execs_are_followed(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=parent", "fork", "phase=forked", "touch=100", "join",
		"system=" TARGET("act") " phase=spawned", "exec=" TARGET("act"), "phase=execed",
		"exit=6");
	measure(&m);
	assert_int_equal(m.child.code, 6);
	assert_int_equal(phase_count(&m, "parent"), 1);
	assert_true(phase_at(&m, "forked", 0)->pid != phase_at(&m, "parent", 0)->pid);
	assert_true(phase_at(&m, "spawned", 0)->pid != phase_at(&m, "parent", 0)->pid);
	assert_int_equal(phase_at(&m, "execed", 0)->pid, phase_at(&m, "parent", 0)->pid);
	/* Inherited by the forked child from its parent, where they are counted too. */
	assert_true(counted(&m, phase_at(&m, "parent", 0), "page-faults") >= 100);
}

static void an_exec_without_environment_is_counted_unmarked(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=a", "clearenv", "exec=" TARGET("act"), "phase=unseen",
		"touch=500");
	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_int_equal(phase_count(&m, "unseen"), 0);
	assert_true(counted(&m, phase_at(&m, "a", 0), "page-faults") >= 500);
}

static void a_daemon_is_measured_for_as_long_as_it_lives(void **state)
{
	char *path, *deed;

	(void)state;
	m.dir = tmpdir_make();
	path = text_make("%s/here", m.dir);
	deed = text_make("write=%s", path);
	m.way = WAY_PRELOAD;
	GIVE(TARGET("act"), "phase=a", "daemonise", "phase=daemon", "sleep=700", "phase=later",
		deed);
	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_int_equal(phase_count(&m, "daemon"), 1);
	assert_int_equal(phase_count(&m, "later"), 1);
	assert_int_equal(access(path, R_OK), 0);
	free(deed);
	free(path);
}

/* jphase run does not wait for it for ever. */
static void what_outlives_the_command_and_the_grace_runs_on_unharmed(void **state)
{
	char *path, *deed;

	(void)state;
	m.dir = tmpdir_make();
	path = text_make("%s/here", m.dir);
	deed = text_make("write=%s", path);
	m.options[0] = "--grace";
	m.options[1] = "100ms";
	GIVE(TARGET("act"), "phase=a", "daemonise", "phase=daemon", "sleep=1000", "phases=100",
		deed);
	measure(&m);
	assert_int_equal(m.child.code, 0);
	assert_true(m.model->runs[0].complete);
	assert_int_equal(phase_count(&m, "daemon"), 1);
	assert_int_equal(phase_count(&m, "step"), 0);
	assert_int_not_equal(access(path, R_OK), 0);
	for (int i = 0; i < 500 && access(path, R_OK) != 0; i++)
		usleep(10000);
	assert_int_equal(access(path, R_OK), 0);
	free(deed);
	free(path);
}

static void a_program_without_descriptors_goes_on_marking(void **state)
{
	(void)state;
	GIVE(TARGET("act"), "phase=a", "close=all", "phases=50", "phase=b", "_exit=5");
	measure(&m);
	assert_int_equal(m.child.code, 5);
	assert_int_equal(phase_count(&m, "step"), 50);
	assert_int_equal(phase_count(&m, "b"), 1);
}

static void a_time_limit_ends_program_and_recording(void **state)
{
	(void)state;
	m.dir = tmpdir_make();
	assert_int_equal(
		run_shell(&r,
			"cd %s && timeout 1 %s run -q -o test.msgpack -- sleep 10; test $? -gt 123",
			m.dir, JPHASE),
		0);
	/* 124, and 143 where timeout tells the status of what it ended. */
	assert_int_equal(r.code, 0);
	m.file = text_make("%s/test.msgpack", m.dir);
	wait_for_recording(m.file);
	measure_load(&m);
	assert_true(m.model->runs[0].complete);
	assert_int_equal(run_exit_code(&m.model->runs[0]), 128 + SIGTERM);
}

static void under_sudo_the_program_is_its_callers(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");
	struct stat st;

	(void)state;
	if (geteuid() != 0 || !nobody)
		skip_because("needs root and a user called nobody");
	m.dir = tmpdir_make();
	assert_int_equal(chown(m.dir, nobody->pw_uid, nobody->pw_gid), 0);
	m.env[0] = "SUDO_USER=nobody";
	m.env[1] = "USER=root";
	GIVE("sh", "-c", "id -un; echo $USER");
	measure(&m);
	assert_string_equal(m.child.out, "nobody\nnobody\n");
	assert_int_equal(stat(m.file, &st), 0);
	assert_int_equal(st.st_uid, nobody->pw_uid);
	unlink(m.file);
	m.options[0] = "--user";
	m.options[1] = "root";
	measure(&m);
	assert_string_equal(m.child.out, "root\nroot\n");
	m.env[0] = "SUDO_USER";
	m.options[1] = "nobody";
	unlink(m.file);
	measure(&m);
	assert_string_equal(m.child.out, "nobody\nnobody\n");
}

/* --- process 1 --- */

static bool have_namespaces(void)
{
	return run_shell(&r, "unshare -p -f --mount-proc true") == 0 && r.code == 0;
}

static void as_process_1_it_reaps_strangers_and_finishes(void **state)
{
	(void)state;
	if (!have_namespaces())
		skip_because("no PID namespace can be made here");
	m.dir = tmpdir_make();
	assert_int_equal(run_shell(&r,
				 "cd %s && unshare -p -f --mount-proc %s run -q -o test.msgpack -- "
				 "%s phase=a daemonise phase=daemon sleep=200",
				 m.dir, JPHASE, TARGET("act")),
		0);
	assert_string_equal(r.err, "");
	assert_int_equal(r.code, 0);
	m.file = text_make("%s/test.msgpack", m.dir);
	measure_load(&m);
	assert_true(m.model->runs[0].complete);
	counted(&m, phase_at(&m, "daemon", 0), "page-faults");
}

static void a_preloaded_process_1_is_told_and_does_not_hang(void **state)
{
	(void)state;
	if (!have_namespaces())
		skip_because("no PID namespace can be made here");
	m.dir = tmpdir_make();
	assert_int_equal(
		run_shell(&r,
			"cd %s && LD_PRELOAD= unshare -p -f --mount-proc sh -c 'LD_PRELOAD=%s "
			"exec %s pid phase=a wait'; ls",
			m.dir, LIBJPHASE, TARGET("act")),
		0);
	assert_string_equal(r.err,
		"jphase: not measuring: process 1 cannot start a collector of its "
		"own; use jphase run\n");
	assert_string_equal(r.out, "pid 1\nwait: No child processes\n");
}

static void a_subreaper_does_not_meet_our_collector(void **state)
{
	(void)state;
	m.way = WAY_PRELOAD;
	GIVE("env", "-u", "NOTHING", TARGET("act"), "subreaper=1", "exec=" TARGET("act"), "phase=a",
		"wait", "daemonise");
	measure(&m);
	assert_string_equal(m.child.out, "");
	assert_int_equal(phase_count(&m, "a"), 1);
	unlink(m.file);
	GIVE(TARGET("act"), "subreaper=1", "exec=" TARGET("act"), "phase=a", "wait");
	measure(&m);
	assert_string_equal(m.child.out, "wait: No child processes\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_cannot_be_started_is_126_or_127, clear),
		cmocka_unit_test_teardown(a_static_program_is_one_phase_and_we_say_so, clear),
		cmocka_unit_test_teardown(
			a_set_user_id_program_is_not_counted_and_never_zero, clear),
		cmocka_unit_test_teardown(
			a_set_user_id_descendant_is_noticed_while_it_lives, clear),
		cmocka_unit_test_teardown(scripts_and_shells_run_as_always, clear),
		cmocka_unit_test_teardown(python_marks_through_ctypes, clear),
		cmocka_unit_test_teardown(forks_and_execs_are_followed, clear),
		cmocka_unit_test_teardown(an_exec_without_environment_is_counted_unmarked, clear),
		cmocka_unit_test_teardown(a_daemon_is_measured_for_as_long_as_it_lives, clear),
		cmocka_unit_test_teardown(
			what_outlives_the_command_and_the_grace_runs_on_unharmed, clear),
		cmocka_unit_test_teardown(a_program_without_descriptors_goes_on_marking, clear),
		cmocka_unit_test_teardown(a_time_limit_ends_program_and_recording, clear),
		cmocka_unit_test_teardown(under_sudo_the_program_is_its_callers, clear),
		cmocka_unit_test_teardown(as_process_1_it_reaps_strangers_and_finishes, clear),
		cmocka_unit_test_teardown(a_preloaded_process_1_is_told_and_does_not_hang, clear),
		cmocka_unit_test_teardown(a_subreaper_does_not_meet_our_collector, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
