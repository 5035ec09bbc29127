/* SPDX-License-Identifier: MIT */
/* Markers from outside, and programs that are running already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "support/measure.h"

/* Page faults of a command beside its work: stacks of threads, lines of input. */
#define SLACK 60

static struct measured m;
static struct child r;        /* a command that ends soon */
static struct child crew;     /* the program, in dialogue with us */
static struct child attached; /* jphase attach */

static int begin(void **state)
{
	(void)state;
	m.dir = tmpdir_make();
	m.file = text_make("%s/test.msgpack", m.dir);
	return 0;
}

static void end(struct child *c)
{
	/* Of a command that ran to its end the output is left. */
	if (c->pid > 0 && !c->out) {
		kill(-c->pid, SIGKILL);
		run_finish(c);
	}
	run_clear(c);
	memset(c, 0, sizeof(*c));
}

/* Also after a test that has failed half-way. */
static int clear(void **state)
{
	(void)state;
	end(&attached);
	end(&crew);
	end(&r);
	measure_clear(&m);
	return 0;
}

static void finish(struct child *c)
{
	run_finish(c);
	c->pid = 0;
	assert_false(c->timed_out);
}

static void start(struct child *c, const char *const *words)
{
	size_t n = 0;

	for (; words[n]; n++)
		c->argv[n] = words[n];
	c->argv[n] = NULL;
	c->cwd = m.dir;
	c->input = "";
	assert_int_equal(run_start(c), 0);
}

#define START(c, ...) start(c, (const char *const[]){ __VA_ARGS__, NULL })

/* The next line that the program prints. */
static void read_line(const struct child *c, int fd, char line[256])
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t used = 0;

	while (used < 255) {
		if (poll(&p, 1, 20000) <= 0 || read(p.fd, line + used, 1) != 1)
			fail_msg("%s says nothing", c->argv[0]);
		if (line[used] == '\n')
			break;
		used++;
	}
	line[used] = '\0';
}

static void expect(const struct child *c, int fd, const char *text)
{
	char line[256];

	read_line(c, fd, line);
	if (!strstr(line, text))
		fail_msg("not \"%s\" but \"%s\"", text, line);
}

/* Lets the crew do it, and returns its answer. */
static long crew_does(const char *word, long n)
{
	char line[256], answered[16];
	long answer;
	int length = snprintf(line, sizeof(line), "%s %ld\n", word, n);

	assert_int_equal(write(crew.pipe_in, line, (size_t)length), length);
	read_line(&crew, crew.pipe_out, line);
	assert_int_equal(sscanf(line, "%15s %ld", answered, &answer), 2);
	assert_string_equal(answered, word);
	return answer;
}

static int jphase(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int jphase(const char *format, ...)
{
	char words[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	r.cwd = m.dir;
	assert_int_equal(run_shell(&r, "exec %s %s", JPHASE, words), 0);
	assert_false(r.timed_out);
	return r.code;
}

static void mark(pid_t pid, const char *name)
{
	if (jphase("mark --pid %d %s", (int)pid, name) != 0)
		fail_msg("%s", r.err);
}

static void crew_begin(const char *threads)
{
	START(&crew, TARGET("crew"), threads);
	expect(&crew, crew.pipe_out, "ready");
}

static void crew_end(void)
{
	crew.pipe_in = sys_close(crew.pipe_in);
	finish(&crew);
	assert_int_equal(crew.code, 0);
}

static void attach(pid_t pid)
{
	char *text = text_make("%d", (int)pid);

	START(&attached, JPHASE, "attach", "-o", "test.msgpack", text);
	expect(&attached, attached.pipe_err, "jphase: measuring until it ends or Ctrl-C");
	free(text);
}

static void attach_end(void)
{
	finish(&attached);
	assert_int_equal(attached.code, 0);
	assert_non_null(strstr(attached.err, "; see: jphase report"));
	wait_for_recording(m.file);
	measure_load(&m);
	assert_true(m.model->runs[0].complete);
}

static void assert_is_counted(void)
{
	const struct run *run = &m.model->runs[0];

	for (size_t i = 0; i < run->absent_count; i++)
		if (str_eq(run->absent[i].name, "perf"))
			fail_msg("perf: %s", run->absent[i].reason);
}

static void assert_faults(const char *phase, uint64_t least, uint64_t most)
{
	uint64_t faults;

	assert_is_counted();
	faults = counted(&m, phase_at(&m, phase, 0), "page-faults");

	if (faults < least || faults > most)
		fail_msg("%llu page faults in %s, not %llu to %llu", (unsigned long long)faults,
			phase, (unsigned long long)least, (unsigned long long)most);
}

static void attaching_counts_all_threads_and_what_they_start(void **state)
{
	(void)state;
	need_perf();
	crew_begin("5");
	attach(crew.pid);
	mark(crew.pid, "threads");
	crew_does("touch", 200);
	mark(crew.pid, "newborn");
	crew_does("born", 300);
	mark(crew.pid, "child");
	crew_does("child", 400);
	mark(crew.pid, "rest");
	crew_end();
	attach_end();
	assert_faults("threads", 5 * 200, 5 * 200 + SLACK);
	assert_faults("newborn", 300, 300 + SLACK);
	/* A forked child has page tables to fill. */
	assert_faults("child", 400, 400 + 4 * SLACK);
	assert_int_equal(m.model->row_count, 5);
}

/* While three threads start others without end. */
static void attaching_in_a_storm_of_threads_neither_fails_nor_counts_twice(void **state)
{
	uint64_t faults;

	(void)state;
	need_perf();
	crew_begin("3");
	crew_does("storm", 0);
	attach(crew.pid);
	crew_does("calm", 0);
	mark(crew.pid, "count");
	faults = (uint64_t)crew_does("count", 100);
	mark(crew.pid, "threads");
	crew_does("touch", 200);
	mark(crew.pid, "rest");
	crew_end();
	attach_end();
	assert_true(faults >= 1000);
	assert_faults("count", faults, faults + SLACK);
	assert_faults("threads", 3 * 200, 3 * 200 + SLACK);
}

static void a_signal_to_attach_ends_the_session_and_not_the_program(void **state)
{
	(void)state;
	crew_begin("1");
	attach(crew.pid);
	mark(crew.pid, "one");
	crew_does("touch", 10);
	kill(attached.pid, SIGINT);
	attach_end();
	assert_int_equal(m.model->row_count, 2);
	assert_int_equal(run_exit_code(&m.model->runs[0]), -1);
	crew_does("touch", 10);
	assert_int_equal(jphase("mark --pid %d two", (int)crew.pid), 1);
	crew_end();
}

/* Whoever kills it: the recording ends as it should. */
static void the_death_of_attach_ends_the_session(void **state)
{
	(void)state;
	crew_begin("1");
	attach(crew.pid);
	mark(crew.pid, "one");
	kill(attached.pid, SIGKILL);
	wait_for_recording(m.file);
	measure_load(&m);
	assert_true(m.model->runs[0].complete);
	assert_int_equal(phase_count(&m, "one"), 1);
	crew_end();
}

static void several_processes_have_phases_of_their_own(void **state)
{
	char *first = text_make("%d", (int)getpid()), *second;

	(void)state;
	need_perf();
	crew_begin("2");
	second = text_make("%d", (int)crew.pid);
	START(&attached, JPHASE, "attach", "-o", "test.msgpack", first, second);
	expect(&attached, attached.pipe_err, "jphase: measuring until all have ended");
	mark(crew.pid, "crew");
	mark(getpid(), "test");
	crew_does("touch", 500);
	crew_end();
	kill(attached.pid, SIGTERM);
	attach_end();
	assert_faults("crew", 1000, 1000 + SLACK);
	assert_int_equal(phase_at(&m, "crew", 0)->pid, crew.pid ? crew.pid : atoi(second));
	assert_int_equal(phase_at(&m, "test", 0)->pid, getpid());
	assert_int_equal(phase_count(&m, "START"), 2);
	free(first);
	free(second);
}

static void nothing_to_attach_to_is_said(void **state)
{
	(void)state;
	assert_int_equal(jphase("attach"), 2);
	assert_string_equal(
		r.err, "jphase: no process to measure; write: jphase attach [options] PID...\n");
	assert_int_equal(jphase("attach abc"), 1);
	assert_string_equal(r.err, "jphase: \"abc\" is not the number of a process\n");
	assert_int_equal(jphase("attach 4194304"), 1);
	assert_string_equal(r.err, "jphase: there is no process 4194304\n");
	assert_int_equal(jphase("attach --mode exact 1"), 2);
	assert_non_null(strstr(r.err, "exact mode needs the library in the program"));
	assert_int_equal(jphase("attach --token-pattern=x 1"), 2);
	assert_string_equal(
		r.err, "jphase: token-pattern needs a program that jphase run starts\n");
	assert_int_equal(jphase("attach --idle-baseline 1s 1"), 2);
	assert_string_equal(
		r.err, "jphase: idle-baseline needs a program that jphase run starts\n");
}

static void help_names_no_option_that_is_refused(void **state)
{
	(void)state;
	assert_int_equal(jphase("attach --help"), 0);
	assert_non_null(strstr(r.out, "--events"));
	assert_null(strstr(r.out, "--signal"));
	assert_null(strstr(r.out, "--user"));
	assert_int_equal(jphase("run --help"), 0);
	assert_non_null(strstr(r.out, "--signal"));
}

static void a_set_user_id_program_needs_root_and_we_say_so(void **state)
{
	char *path, *sentence;

	(void)state;
	if (geteuid() != 0 || !have_program("setpriv"))
		skip_because("only root can make a set-user-ID program of another user");
	path = text_make("%s/app", m.dir);
	assert_int_equal(run_shell(&r, "cp %s %s && chmod 4755 %s && chmod 755 %s", TARGET("crew"),
				 path, path, m.dir),
		0);
	START(&crew, "setpriv", "--reuid", "65534", "--clear-groups", path, "1");
	expect(&crew, crew.pipe_out, "ready");
	assert_int_equal(run_shell(&r, "setpriv --reuid 65534 --clear-groups %s attach %d", JPHASE,
				 (int)crew.pid),
		0);
	sentence = text_make("jphase: process %d (app) belongs to another user or runs a "
			     "set-user-ID program: only root can attach to it; write: sudo jphase "
			     "attach %d\n",
		(int)crew.pid, (int)crew.pid);
	assert_string_equal(r.err, sentence);
	assert_int_equal(r.code, 1);
	free(path);
	free(sentence);
	crew_end();
}

static void root_attaches_to_a_set_user_id_program(void **state)
{
	char *path;

	(void)state;
	need_perf();
	if (geteuid() != 0 || !have_program("setpriv"))
		skip_because("only root can make a set-user-ID program of another user");
	path = text_make("%s/app", m.dir);
	assert_int_equal(run_shell(&r, "cp %s %s && chmod 4755 %s && chmod 755 %s", TARGET("crew"),
				 path, path, m.dir),
		0);
	START(&crew, "setpriv", "--reuid", "65534", "--clear-groups", path, "2");
	expect(&crew, crew.pipe_out, "ready");
	free(path);
	attach(crew.pid);
	mark(crew.pid, "work");
	crew_does("touch", 500);
	mark(crew.pid, "rest");
	crew_end();
	attach_end();
	assert_faults("work", 1000, 1000 + SLACK);
}

/* Nothing is loaded into it. */
static void marks_make_phases_of_a_static_program(void **state)
{
	char *path = text_make("%s/pid", m.dir), *text;
	pid_t pid;

	(void)state;
	need_perf();
	START(&crew, JPHASE, "run", "-q", "--no-calibrate", "-o", "test.msgpack", "--", "sh", "-c",
		"echo $$ >pid; exec " TARGET("crew_static") " 2");
	expect(&crew, crew.pipe_out, "ready");
	text = file_read(path, NULL);
	pid = atoi(text);
	mark(pid, "one");
	crew_does("touch", 150);
	mark(pid, "two");
	crew_does("touch", 350);
	assert_int_equal(jphase("mark --pid %d --mark 'half way'", (int)pid), 0);
	crew_end();
	wait_for_recording(m.file);
	measure_load(&m);
	assert_faults("one", 300, 300 + SLACK);
	assert_faults("two", 700, 700 + 2 * SLACK);
	assert_int_equal(m.model->row_count, 3);
	assert_int_equal(m.model->mark_count, 1);
	assert_string_equal(m.model->marks[0].name, "half way");
	free(path);
	free(text);
}

/* It has not registered, and never will. */
static void a_static_child_can_be_marked_by_its_number(void **state)
{
	char *path = text_make("%s/pid", m.dir), *text;
	pid_t pid;

	(void)state;
	need_perf();
	START(&crew, JPHASE, "run", "-q", "--no-calibrate", "-o", "test.msgpack", "--", "sh", "-c",
		"sh -c 'echo $$ >pid; exec " TARGET("crew_static") " 2'; :");
	expect(&crew, crew.pipe_out, "ready");
	text = file_read(path, NULL);
	pid = atoi(text);
	mark(pid, "one");
	crew_does("touch", 150);
	mark(pid, "two");
	crew_end();
	wait_for_recording(m.file);
	measure_load(&m);
	assert_int_equal(phase_at(&m, "one", 0)->pid, pid);
	assert_faults("one", 300, 300 + SLACK);
	free(path);
	free(text);
}

static void a_script_marks_in_its_own_session(void **state)
{
	(void)state;
	skip_with_asan("has to be loaded before any other library");
	assert_int_equal(
		jphase("run -q --no-calibrate -o test.msgpack -- sh -c '%s mark one; true; "
		       "%s mark --mark done; %s mark \"two words\"; %s mark \"\"'",
			JPHASE, JPHASE, JPHASE, JPHASE),
		0);
	assert_string_equal(r.err, "");
	wait_for_recording(m.file);
	measure_load(&m);
	assert_int_equal(phase_count(&m, "one"), 1);
	assert_int_equal(phase_count(&m, "two words"), 1);
	assert_int_equal(phase_count(&m, "(unnamed)"), 1);
	assert_int_equal(m.model->mark_count, 1);
	assert_true(
		phase_at(&m, "one", 0)->next && str_eq(phase_at(&m, "one", 0)->next, "two words"));
}

/* As one that the program makes itself would be cut. */
static void long_names_are_cut_as_ever(void **state)
{
	static const char name[] =
		"0123456789012345678901234567890123456789012345678901234567890123456"
		"789012345678901234567890";
	const char *ours, *its;

	(void)state;
	START(&r, JPHASE, "run", "-q", "--no-calibrate", "-o", "test.msgpack", "--", "sh", "-c",
		"\"$0\" mark \"$1\"; exec \"$2\" \"phase=$1\"", JPHASE, name, TARGET("act"));
	finish(&r);
	wait_for_recording(m.file);
	measure_load(&m);
	ours = m.model->rows[1].name;
	its = m.model->rows[m.model->row_count - 1].name;
	assert_string_equal(ours, its);
	assert_int_equal(strlen(ours), 79);
}

static void mark_says_what_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(jphase("mark"), 2);
	assert_string_equal(r.err, "jphase: a name is missing; write: jphase mark [--pid PID] "
				   "[--mark] NAME\n");
	assert_int_equal(jphase("mark a b"), 2);
	assert_int_equal(jphase("mark --phase --mark a"), 2);
	assert_int_equal(jphase("mark --session no-such x"), 1);
	assert_string_equal(r.err, "jphase: no session of yours is called \"no-such\"\n");
	assert_int_equal(jphase("mark --pid 4194304 x"), 1);
	assert_string_equal(r.err, "jphase: there is no process 4194304\n");
	assert_int_equal(jphase("mark --pid %d x", (int)getpid()), 1);
	assert_non_null(strstr(r.err, "no session of yours has process"));
	assert_non_null(strstr(r.err, "begin one with: jphase attach"));
}

static void others_cannot_mark_in_a_session(void **state)
{
	(void)state;
	if (geteuid() != 0 || !have_program("setpriv"))
		skip_because("only root can be somebody else");
	crew_begin("1");
	attach(crew.pid);
	assert_int_equal(run_shell(&r, "setpriv --reuid 65534 --clear-groups %s mark --pid %d x",
				 JPHASE, (int)crew.pid),
		0);
	assert_non_null(strstr(r.err, "no session of yours has process"));
	assert_int_equal(r.code, 1);
	crew_end();
	attach_end();
	assert_int_equal(phase_count(&m, "x"), 0);
}

/* Which one is meant is asked, and one can be chosen by the beginning of its name. */
static void sessions_are_told_apart_by_their_names(void **state)
{
	char name[32] = "", *line, *other = text_make("%s/other.msgpack", m.dir);
	int sessions = 0;

	(void)state;
	crew_begin("1");
	attach(crew.pid);
	START(&m.child, JPHASE, "run", "-q", "-o", "other.msgpack", "--", "sleep", "1");
	wait_for_collector(other);
	free(other);
	assert_int_equal(jphase("mark which"), 1);
	assert_non_null(strstr(r.err, " sessions; choose one by --session or --pid:\n"));
	line = strtok(r.err, "\n");
	while ((line = strtok(NULL, "\n"))) {
		char *pid = strstr(line, "process ");

		sessions++;
		if (pid && atoi(pid + 8) == crew.pid)
			assert_int_equal(sscanf(line, " --session jphase-%31[0-9a-f]", name), 1);
	}
	assert_true(sessions >= 2);
	assert_int_equal(strlen(name), 16);
	name[12] = '\0';
	assert_int_equal(jphase("mark --session %s chosen", name), 0);
	finish(&m.child);
	crew_end();
	attach_end();
	assert_int_equal(phase_count(&m, "chosen"), 1);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(attaching_counts_all_threads_and_what_they_start),
		TEST(attaching_in_a_storm_of_threads_neither_fails_nor_counts_twice),
		TEST(a_signal_to_attach_ends_the_session_and_not_the_program),
		TEST(the_death_of_attach_ends_the_session),
		TEST(several_processes_have_phases_of_their_own),
		TEST(nothing_to_attach_to_is_said),
		TEST(help_names_no_option_that_is_refused),
		TEST(a_set_user_id_program_needs_root_and_we_say_so),
		TEST(root_attaches_to_a_set_user_id_program),
		TEST(marks_make_phases_of_a_static_program),
		TEST(a_static_child_can_be_marked_by_its_number),
		TEST(a_script_marks_in_its_own_session),
		TEST(long_names_are_cut_as_ever),
		TEST(mark_says_what_is_wrong),
		TEST(others_cannot_mark_in_a_session),
		TEST(sessions_are_told_apart_by_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
