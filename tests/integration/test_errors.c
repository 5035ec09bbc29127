/* SPDX-License-Identifier: MIT */
/* Bad input: one clear sentence, the documented status, and what was recorded before is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal/util.h"
#include "support/measure.h"

static struct child r;
static char *dir;

static int prepare(void **state)
{
	(void)state;
	dir = tmpdir_make();
	return 0;
}

static int clear(void **state)
{
	(void)state;
	run_clear(&r);
	dir = tmpdir_remove(dir);
	return 0;
}

static void shell(const char *text)
{
	assert_int_equal(run_shell(&r, "cd %s; act=%s; jphase=%s; so=%s; %s", dir, TARGET("act"),
				 JPHASE, LIBJPHASE, text),
		0);
	assert_false(r.timed_out);
}

static void assert_one_sentence(void)
{
	char *end = strchr(r.err, '\n');

	if (!str_starts(r.err, "jphase: ") || !end || end[1])
		fail_msg("not one sentence: %s", r.err);
}

/* Nothing was started, and one line says why. */
static void assert_not_started(const char *text, int code, const char *part)
{
	shell(text);
	assert_string_equal(r.out, "");
	assert_one_sentence();
	if (!strstr(r.err, part))
		fail_msg("%s: %s", text, r.err);
	if (r.code != code)
		fail_msg("%s: status %d: %s", text, r.code, r.err);
}

/* The program runs all the same, unmeasured. */
static void assert_not_measured(const char *text, const char *part)
{
	shell(text);
	assert_string_equal(r.out, "ran\n");
	assert_one_sentence();
	if (!strstr(r.err, part) || !str_starts(r.err, "jphase: not measuring: "))
		fail_msg("%s: %s", text, r.err);
	assert_int_equal(r.code, 0);
}

static void an_unknown_event_is_answered_with_a_likely_one(void **state)
{
	(void)state;
	assert_not_started("$jphase run -e cycels -- $act print=ran", 125, "\"cycels\"");
	assert_non_null(strstr(r.err, "did you mean \"cycles\"?"));
	assert_not_started("$jphase run -e page-fautls,task-clock -- $act print=ran", 125,
		"did you mean \"page-faults\"?");
	assert_not_measured("JPHASE_EVENTS=page-fautls LD_PRELOAD=$so $act print=ran",
		"did you mean \"page-faults\"?");
	shell("ls");
	assert_string_equal(r.out, "");
}

static void an_empty_event_list_is_an_error(void **state)
{
	(void)state;
	assert_not_started("$jphase run -e '' -- $act print=ran", 125, "empty");
	assert_not_started("$jphase run -e , -- $act print=ran", 125, "event");
	assert_not_started(
		"$jphase run -e 'page-faults,,task-clock' -- $act print=ran", 125, "event");
	assert_not_started("$jphase run -e '{}' -- $act print=ran", 125, "event");
	assert_not_started("$jphase run --events= -- $act print=ran", 125, "empty");
}

static void wrong_options_are_refused_before_anything_is_started(void **state)
{
	(void)state;
	assert_not_started("$jphase run --ring 100 -- $act print=ran", 125, "power of two");
	assert_not_started("$jphase run --interval 5parsec -- $act print=ran", 125, "5parsec");
	assert_not_started("$jphase run --sources porcfs -- $act print=ran", 125, "porcfs");
	assert_not_started("$jphase run --signal KILL=x -- $act print=ran", 125, "KILL");
	assert_not_started("$jphase run --signal USR9=x -- $act print=ran", 125, "USR9");
	assert_not_started("$jphase run --signal USR1 -- $act print=ran", 125, "USR1");
	assert_not_started(
		"$jphase run --user no-such-user -- $act print=ran", 125, "no-such-user");
	assert_not_started("$jphase run -o", 125, "output");
	assert_not_measured("JPHASE_RING=100 LD_PRELOAD=$so $act print=ran", "power of two");
	assert_not_measured("JPHASE_MODE=often LD_PRELOAD=$so $act print=ran", "often");
	assert_not_measured("JPHASE_SIGNALS=USR9=x LD_PRELOAD=$so $act print=ran", "USR9");
	shell("ls");
	assert_string_equal(r.out, "");
}

static void a_misspelled_variable_is_told_and_the_program_is_measured(void **state)
{
	static const char *const ways[] = { "LD_PRELOAD=$so", "$jphase run -q" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char *text =
			text_make("export JPHASE_EVNTS=cycles JPHASE_ROOT=/ JPHASE_OUTPUT=x%zu; "
				  "%s $act phase=a print=ran; unset JPHASE_EVNTS; "
				  "JPHASE_OUTPUT=y%zu %s $act print=again",
				i, ways[i], i, ways[i]);

		shell(text);
		assert_string_equal(r.out, "ran\nagain\n");
		assert_string_equal(r.err,
			"jphase: the variable JPHASE_EVNTS means nothing; did you "
			"mean JPHASE_EVENTS?\n");
		free(text);
		text = text_make("$jphase report -f csv x%zu | grep -c 'a -> END'", i);
		shell(text);
		assert_int_equal(r.code, 0);
		free(text);
	}
}

static void a_wrong_line_of_a_config_file_is_named(void **state)
{
	(void)state;
	shell("printf '# fine\\nmode = async\\nevnts = cycles\\n' >c1; printf 'mode async\\n' >c2; "
	      "printf 'ring = many\\n' >c3; printf 'mode = async\\n' >good");
	assert_not_started("$jphase run --config c1 -- $act print=ran", 125, "c1");
	assert_non_null(strstr(r.err, "3"));
	assert_non_null(strstr(r.err, "evnts"));
	assert_not_started("$jphase run --config c2 -- $act print=ran", 125, "c2");
	assert_not_started("$jphase run --config c3 -- $act print=ran", 125, "many");
	assert_not_started("$jphase run --config . -- $act print=ran", 125, "\".\"");
	shell("$jphase run --config good -o x.msgpack -q -- $act print=ran && "
	      "$jphase report -f json x.msgpack | grep -c '\"async\"'");
	assert_int_equal(r.code, 0);
}

static void a_file_that_is_no_recording_is_said_to_be_none(void **state)
{
	(void)state;
	shell("echo text >text; : >empty; head -c 5000 /dev/urandom >noise; printf '\\x80' >nothing");
	assert_not_started("$jphase report text", 1, "text is not a jphase recording");
	assert_not_started("$jphase report noise", 1, "noise is not a jphase recording");
	assert_not_started("$jphase report nothing", 1, "nothing is not a jphase recording");
	assert_not_started("$jphase report empty", 1, "empty is empty");
	assert_not_started("$jphase report missing", 1, "cannot read missing: No such file");
	assert_not_started("$jphase report .", 1, "cannot read .: Is a directory");
	assert_not_started("$jphase report", 1, "no recording here");
	assert_not_started("$jphase report --by colour text", 2, "colour");
	assert_not_started("$jphase report --format jsn text", 2, "did you mean \"json\"?");
}

static void a_report_does_not_overwrite_a_recording(void **state)
{
	(void)state;
	shell("$jphase run -q -o x.msgpack -- $act phase=a; cp x.msgpack y.msgpack");
	assert_not_started("$jphase report -o x.msgpack y.msgpack", 1,
		"x.msgpack is a recording; it is not overwritten");
	shell("cmp x.msgpack y.msgpack && echo text >z.txt && "
	      "$jphase report -o z.txt x.msgpack && grep -c '^a ' z.txt");
	assert_string_equal(r.out, "1\n");
}

static void the_newest_recording_is_found_under_any_name(void **state)
{
	(void)state;
	shell("$jphase run -q -- $act phase=old; touch -d '1 minute ago' jphase-*.msgpack; "
	      "$jphase run -q -o mine.msgpack -- $act phase=newest; echo none >later.msgpack; "
	      "$jphase report -f csv | cut -d';' -f2 | grep -c newest");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err, "jphase: mine.msgpack\n");
}

static void what_cannot_be_read_again_is_not_offered(void **state)
{
	(void)state;
	assert_not_started("$jphase run -o - -- $act print=ran", 125,
		"output \"-\": standard output is the program's");
	shell("$jphase run -o /dev/null -- $act print=ran");
	assert_string_equal(r.err, "jphase: 1 phase\n");
	shell("$jphase run -o f.msgpack -- $act print=ran");
	assert_string_equal(r.err, "jphase: 1 phase; see: jphase report f.msgpack\n");
}

static void a_program_that_was_taken_for_the_pattern_is_named(void **state)
{
	(void)state;
	assert_not_started("$jphase run --token-pattern /bin/echo hello", 127,
		"\"/bin/echo\" was taken for the pattern");
	assert_not_started(
		"$jphase run --token-pattern=x hello", 127, "jphase: hello: no such program\n");
}

static void an_idle_baseline_without_energy_is_refused(void **state)
{
	(void)state;
	assert_not_started("$jphase run --sources perf --idle-baseline 20ms -- $act print=ran", 125,
		"idle-baseline needs energy counters: the sources that were chosen leave them out");
}

static void a_program_that_was_killed_is_said_to_be(void **state)
{
	(void)state;
	shell("$jphase run -o k.msgpack -- sh -c 'kill -9 $$'; echo $?; "
	      "$jphase report k.msgpack | sed -n 2p | cut -d, -f2-3; "
	      "$jphase report -f json k.msgpack | grep '\"signal\"'");
	assert_string_equal(r.out, "137\n killed by SIGKILL, exit status 137\n"
				   "  \"signal\": \"SIGKILL\",\n");
	assert_non_null(strstr(r.err, "jphase: sh was killed by SIGKILL\n"));
}

static void an_unreadable_file_is_named(void **state)
{
	(void)state;
	if (geteuid() != 0 || !have_program("setpriv"))
		skip_because("needs root, and setpriv to become someone else");
	shell("$jphase run -q -o x.msgpack -- $act phase=a; chmod 600 x.msgpack; chmod 755 .");
	assert_not_started("setpriv --reuid 65534 --clear-groups $jphase report x.msgpack", 1,
		"cannot read x.msgpack: Permission denied");
}

/* Wherever it was cut: what comes before is shown. */
static void a_truncated_recording_shows_what_is_there(void **state)
{
	(void)state;
	shell("$jphase run -q -o x.msgpack -- $act phase=a phases=50 phase=z");
	assert_int_equal(r.code, 0);
	shell("size=$(stat -c %s x.msgpack); whole=0; for n in 1 3 10 100 1000; do "
	      "head -c $((size - n)) x.msgpack >cut; "
	      "$jphase report -f csv cut | grep -q ';a -> step;' && whole=$((whole + 1)); done; "
	      "echo $whole");
	assert_string_equal(r.out, "5\n");
	shell("head -c 40 x.msgpack >head; $jphase report head");
	assert_string_equal(r.out, "");
	assert_int_equal(r.code, 1);
	assert_one_sentence();
}

/* Of several files the good ones are shown; the status tells of the bad one. */
static void one_bad_file_does_not_hide_the_others(void **state)
{
	(void)state;
	shell("$jphase run -q -o x.msgpack -- $act phase=a; echo text >text; "
	      "$jphase report -f csv text x.msgpack | grep -c ';a -> END;'; $jphase report text x.msgpack "
	      ">/dev/null 2>&1; echo $?");
	assert_true(atoi(r.out) > 0);
	assert_non_null(strstr(r.out, "\n1\n"));
	assert_one_sentence();
}

static void an_output_that_cannot_be_written_is_an_error_at_once(void **state)
{
	(void)state;
	assert_not_started("$jphase run -o /no/such/folder/x -- $act print=ran", 125,
		"cannot write /no/such/folder/x: No such file or directory");
	assert_not_started("$jphase run -o . -- $act print=ran", 125, "cannot write .:");
	assert_not_measured("JPHASE_OUTPUT=/no/such/folder/x LD_PRELOAD=$so $act print=ran",
		"cannot write /no/such/folder/x: No such file or directory");
	if (geteuid() == 0 && have_program("setpriv"))
		assert_not_started(
			"chmod 555 .; setpriv --reuid 65534 --clear-groups $jphase run -- "
			"$act print=ran",
			125, "Permission denied");
}

static void a_recording_is_kept_and_any_other_file_is_not_touched(void **state)
{
	(void)state;
	shell("echo precious >notes.txt");
	assert_not_started("$jphase run -o notes.txt -- $act print=ran", 125, "not overwritten");
	assert_not_measured(
		"JPHASE_OUTPUT=notes.txt LD_PRELOAD=$so $act print=ran", "not overwritten");
	shell("cat notes.txt; $jphase run -q -o x.msgpack -- $act phase=older; "
	      "$jphase run -q -o x.msgpack -- $act phase=newer; "
	      "for f in x.msgpack.old x.msgpack; do $jphase report -f csv $f | grep -oE '(older|newer) -> END' | "
	      "uniq; done");
	assert_string_equal(r.out, "precious\nolder -> END\nnewer -> END\n");
}

static void a_recording_that_is_being_written_is_not_taken_away(void **state)
{
	(void)state;
	shell("mkfifo go stop; $jphase run -q -o x.msgpack -- $act phase=a "
	      "'system=echo >go; read line <stop' phase=b & read line <go; "
	      "$jphase run -o x.msgpack -- $act print=ran; echo $?; "
	      "JPHASE_OUTPUT=x.msgpack LD_PRELOAD=$so $act print=ran; echo $?; "
	      "echo >stop; wait; ls; $jphase report -f csv x.msgpack | grep -c 'b -> END'");
	if (!str_starts(r.out, "125\nran\n0\ngo\nstop\nx.msgpack\n"))
		fail_msg("%s%s", r.out, r.err);
	assert_int_equal(r.code, 0);
	assert_true(
		str_starts(r.err, "jphase: x.msgpack is still being written by another session"));
	assert_non_null(strstr(r.err, "jphase: not measuring: x.msgpack is still being written"));
}

/* A file system of our own, with room for so much. */
static bool have_private_mounts(void)
{
	shell("unshare -m sh -c 'mount -t tmpfs -o size=16k none . && echo yes'");
	return str_eq(r.out, "yes\n");
}

static void a_full_disk_costs_the_rest_of_the_recording_only(void **state)
{
	(void)state;
	if (!have_private_mounts())
		skip_because("no file system can be mounted here");
	shell("unshare -m sh -c 'mkdir full; mount -t tmpfs -o size=40k none full; "
	      "$1 run -o full/x -- $2 phase=first phases=2000 phase=last print=ran; echo $?; "
	      "cp full/x kept' sh $jphase $act");
	assert_string_equal(r.out, "ran\n0\n");
	assert_non_null(strstr(r.err, "not all written: No space left on device"));
	shell("$jphase report -f csv kept | grep -c ';first -> step;'");
	assert_int_equal(r.code, 0);
	assert_true(atoi(r.out) > 0);
	assert_non_null(strstr(r.err, "incomplete"));
}

/* What jphase needs /proc for is not there: it says so instead of blaming others. */
static void a_missing_proc_is_named(void **state)
{
	(void)state;
	skip_with_asan("needs /proc itself");
	if (!have_private_mounts())
		skip_because("no file system can be mounted here");
	shell("unshare -m sh -c 'mount -t tmpfs none /proc; $1 run -- $2 print=ran; echo $?; "
	      "LD_PRELOAD=$3 $2 phase=a print=ran' sh $jphase $act $so");
	assert_string_equal(r.out, "125\nran\n");
	assert_string_equal(r.err,
		"jphase: /proc is not mounted here, and jphase finds all it counts there\n"
		"jphase: not measuring: /proc is not mounted here, and jphase finds all it counts "
		"there\n");
}

/* It stays the same process over each exec, and cannot have a child of its own. */
static void process_1_is_told_once(void **state)
{
	(void)state;
	shell("unshare -p -f true");
	if (r.code != 0)
		skip_because("no namespaces can be made here");
	shell("unshare -p -f env LD_PRELOAD=$so $act pid exec=$act pid exec=$act print=ran");
	assert_string_equal(r.out, "pid 1\npid 1\nran\n");
	assert_one_sentence();
	assert_non_null(strstr(r.err, "process 1"));
	assert_int_equal(r.code, 0);
}

static void a_full_disk_at_the_start_is_told(void **state)
{
	(void)state;
	if (!have_private_mounts())
		skip_because("no file system can be mounted here");
	shell("unshare -m sh -c 'mkdir full; mount -t tmpfs -o size=4k none full; "
	      "head -c 4096 /dev/zero >full/zero; "
	      "$1 run -o full/x -- $2 phase=first print=ran; echo $?' sh $jphase $act");
	assert_string_equal(r.out, "ran\n0\n");
	assert_non_null(strstr(r.err, "No space left on device"));
}

/* --- limits of the program, which its collector inherits --- */

static void assert_measured_under(const char *limit)
{
	static const char *const ways[] = { "$jphase run -q -o x.msgpack --",
		"env LD_PRELOAD=$so JPHASE_OUTPUT=x.msgpack" };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char *text = text_make(
			"rm -f x.msgpack; (%s; exec %s $act phase=a phases=10 print=ran) && "
			"$jphase report -f csv x.msgpack | grep -c ';step -> step;.*page-faults'",
			limit, ways[i]);

		shell(text);
		if (!str_starts(r.out, "ran\n") || r.code != 0)
			fail_msg("%s: %s%s", text, r.out, r.err);
		free(text);
	}
}

/* Counters may find no room any more, and say so; markers do. */
static void with_twenty_descriptors_every_marker_is_there(void **state)
{
	static const char *const ways[] = { "$jphase run -q -o x.msgpack --",
		"env LD_PRELOAD=$so JPHASE_OUTPUT=x.msgpack" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char *text =
			text_make("rm -f x.msgpack; (ulimit -n 20; exec %s $act phase=a phases=10 "
				  "print=ran) && $jphase report -f json x.msgpack >x.json; "
				  "grep -c '\"name\": \"step\"' x.json; "
				  "grep -c -e '\"page-faults\"' -e 'too many open files' x.json",
				ways[i]);

		shell(text);
		free(text);
		if (!str_starts(r.out, "ran\n10\n") || r.code != 0)
			fail_msg("%s%s", r.out, r.err);
	}
}

static void limits_on_memory_are_not_in_the_way(void **state)
{
	(void)state;
	skip_with_asan("needs terabytes of addresses");
	assert_measured_under("ulimit -l 0");
	assert_measured_under("ulimit -v 100000");
}

/* The limit on its CPU time that the collector of x.msgpack has, while a program waits for us. */
static void cpu_limit_of_collector(const char *start, char line[64])
{
	char *file = text_make("%s/x.msgpack", dir), *path, *limits, *found;
	struct child c = { .argv = { "sh", "-c", start }, .cwd = dir, .input = "" };

	assert_int_equal(run_start(&c), 0);
	path = text_make("/proc/%d/limits", wait_for_collector(file));
	limits = file_read(path, NULL);
	found = limits ? strstr(limits, "Max cpu time") : NULL;
	snprintf(line, 64, "%s", found ? found : "");
	run_finish(&c);
	assert_int_equal(c.code, 0);
	run_clear(&c);
	wait_for_recording(file);
	free(limits);
	free(path);
	free(file);
}

/* The collector may have used more by then than the program may. */
static void a_limit_on_cpu_time_is_the_programs_alone(void **state)
{
	char line[64];
	unsigned soft;

	(void)state;
	cpu_limit_of_collector(
		"ulimit -S -t 60; ulimit -H -t 3600; JPHASE_OUTPUT=x.msgpack LD_PRELOAD=" LIBJPHASE
		" exec " TARGET("act") " phase=a 'system=read line' phase=b",
		line);
	if (strstr(line, "unlimited"))
		return;
	/* Who may not lift the hard limit says so. */
	assert_int_equal(sscanf(line, "Max cpu time %u", &soft), 1);
	assert_int_equal(soft, 3600);
	shell("$jphase report -f json x.msgpack | grep -c 'a limit of 3600 s of its own CPU time'");
	assert_string_equal(r.out, "1\n");
}

static void a_limit_on_file_sizes_cuts_the_recording_only(void **state)
{
	(void)state;
	shell("(ulimit -S -f 64; exec $jphase run -q -o x.msgpack -- $act phase=first phases=3000 "
	      "print=ran) 2>err; echo $?");
	assert_string_equal(r.out, "ran\n0\n");
	shell("$jphase report -f csv x.msgpack | grep -c ';first -> step;'");
	assert_true(atoi(r.out) > 0);
	assert_non_null(strstr(r.err, "incomplete"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, prepare, clear)
		TEST(an_unknown_event_is_answered_with_a_likely_one),
		TEST(an_empty_event_list_is_an_error),
		TEST(wrong_options_are_refused_before_anything_is_started),
		TEST(a_misspelled_variable_is_told_and_the_program_is_measured),
		TEST(a_wrong_line_of_a_config_file_is_named),
		TEST(a_file_that_is_no_recording_is_said_to_be_none),
		TEST(a_report_does_not_overwrite_a_recording),
		TEST(the_newest_recording_is_found_under_any_name),
		TEST(what_cannot_be_read_again_is_not_offered),
		TEST(a_program_that_was_taken_for_the_pattern_is_named),
		TEST(an_idle_baseline_without_energy_is_refused),
		TEST(a_program_that_was_killed_is_said_to_be),
		TEST(an_unreadable_file_is_named),
		TEST(a_truncated_recording_shows_what_is_there),
		TEST(one_bad_file_does_not_hide_the_others),
		TEST(an_output_that_cannot_be_written_is_an_error_at_once),
		TEST(a_recording_is_kept_and_any_other_file_is_not_touched),
		TEST(a_recording_that_is_being_written_is_not_taken_away),
		TEST(a_full_disk_costs_the_rest_of_the_recording_only),
		TEST(a_full_disk_at_the_start_is_told),
		TEST(a_missing_proc_is_named),
		TEST(process_1_is_told_once),
		TEST(with_twenty_descriptors_every_marker_is_there),
		TEST(limits_on_memory_are_not_in_the_way),
		TEST(a_limit_on_cpu_time_is_the_programs_alone),
		TEST(a_limit_on_file_sizes_cuts_the_recording_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
