/* SPDX-License-Identifier: MIT */
/* Reports of real runs: what all formats show, and how they behave among other programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder.h"
#include "internal/util.h"
#include "report/utf8.h"
#include "schema.h"
#include "support/measure.h"

/* Recordings of all tests: hello, threads and workers in sync mode, threads in async. */
static char *dir;
static struct child r;

static const char record[] =
	"for e in hello threads workers; do "
	"  %s run -q --mode sync -o $e.msgpack -- %s/examples/$e >/dev/null || exit 1; "
	"done; "
	"%s run -q --mode async --poll 50ms -o async.msgpack -- %s/examples/threads >/dev/null";

static int make_recordings(void **state)
{
	char *text = text_make(record, JPHASE, BUILD_DIR, JPHASE, BUILD_DIR);
	int err;

	(void)state;
	dir = tmpdir_make();
	err = run_shell(&r, "cd %s; %s", dir, text);
	free(text);
	if (err < 0 || r.code != 0)
		print_message("cannot record: %s\n", r.err);
	return err < 0 || r.code != 0 ? -1 : 0;
}

static int remove_recordings(void **state)
{
	(void)state;
	run_clear(&r);
	dir = tmpdir_remove(dir);
	return 0;
}

static void shell(const char *text)
{
	assert_int_equal(run_shell(&r, "cd %s; jphase=%s; %s", dir, JPHASE, text), 0);
	assert_false(r.timed_out);
}

/* Status 0, and nothing to say beside it. */
static void report(const char *words)
{
	char *text = text_make("$jphase report %s", words);

	shell(text);
	if (r.code != 0 || r.err[0])
		fail_msg("report %s: status %d, %s", words, r.code, r.err);
	free(text);
}

/* All columns side by side, so that each row is one line. */
static void wide_report(const char *words)
{
	setenv("COLUMNS", "300", 1);
	report(words);
	unsetenv("COLUMNS");
}

static void assert_shows(const char *part)
{
	if (!strstr(r.out, part))
		fail_msg("there is no \"%s\" in:\n%s", part, r.out);
}

/* The line that begins with that word, or fails. */
static const char *line_of(const char *word)
{
	size_t length = strlen(word);

	for (const char *line = r.out; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, word, length) == 0 && line[length] == ' ')
			return line;
	}
	fail_msg("no line begins with %s:\n%s", word, r.out);
	return NULL;
}

static size_t count_of(const char *part)
{
	size_t count = 0;

	for (const char *at = r.out; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

/* --- which recording --- */

static void without_a_name_it_is_the_newest_one(void **state)
{
	(void)state;
	shell("mkdir newest; cd newest; cp ../hello.msgpack jphase-old-1.msgpack; "
	      "cp ../threads.msgpack new.msgpack; cp ../hello.msgpack jphase-old-2.msgpack; "
	      "touch -d '2001-01-01' jphase-old-?.msgpack; $jphase report");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err, "jphase: new.msgpack\n");
	assert_shows("/examples/threads\n");
}

static void several_recordings_are_runs_of_one_report(void **state)
{
	(void)state;
	wide_report("hello.msgpack threads.msgpack");
	assert_shows("run 0: ");
	assert_shows("run 1: ");
	assert_int_equal(count_of("\nTOTAL "), 2);
	report("-f csv hello.msgpack threads.msgpack");
	assert_shows(";0;true\n");
}

static void standard_input_is_a_recording_too(void **state)
{
	(void)state;
	report("- <hello.msgpack");
	assert_shows("\nTOTAL ");
}

/* --- what it shows --- */

static void rows_can_be_phases_names_processes_and_threads(void **state)
{
	(void)state;
	report("--by phase workers.msgpack");
	assert_shows("phase ");
	report("--by name workers.msgpack");
	line_of("START");
	report("--by process workers.msgpack");
	assert_shows("process ");
	line_of("workers");
	wide_report("--by thread threads.msgpack");
	assert_shows("tid");
	assert_int_equal(count_of("\nthreads "), 3);
	assert_int_equal(count_of("\nwork "), 3);
	line_of("TOTAL");
}

/* Of forked children and of an exec'ed one. */
static void a_run_counts_the_phases_that_reports_show(void **state)
{
	size_t said = 0;

	(void)state;
	shell("act=" TARGET(
		"act") "; $jphase run -o many.msgpack -- $act phase=a fork phase=b "
		       "phase=c join fork phase=d join fork exec=$act phase=e _exit=0 join");
	assert_int_equal(r.code, 0);
	/* 7, or fewer where a busy machine has left one of them out. */
	assert_int_equal(sscanf(r.err, "jphase: %zu phases", &said), 1);
	assert_true(said > 1);
	report("-f json many.msgpack");
	assert_int_equal(count_of("\"start_token\""), said);
}

static void regions_are_a_tree_with_shares(void **state)
{
	unsigned count = 0;
	double time = 0, share = 0;
	char unit[8];

	(void)state;
	report("threads.msgpack");
	/* On a busy machine some of them may be too short for their markers. */
	assert_int_equal(
		sscanf(line_of("work"), "work%*[ ?!]%u %lf %7s %lf", &count, &time, unit, &share),
		4);
	assert_int_equal(count, 3);
	assert_true(share == 100);
	assert_int_equal(sscanf(line_of("  mix"), "  mix%*[ ?!]%u", &count), 1);
	assert_int_equal(count, 12);
	assert_int_equal(sscanf(line_of("  reduce"), "  reduce%*[ ?!]%u", &count), 1);
	assert_int_equal(count, 12);
}

static void quality_explains_phases_and_regions(void **state)
{
	(void)state;
	report("--quality threads.msgpack");
	assert_shows("sync mode: ");
	assert_shows("its marker");
	assert_shows("\nregion mix\n");
	assert_shows("\nparallel\n");
	report("--quality async.msgpack");
	assert_shows("async mode: ");
	shell("$jphase report --quality -f json hello.msgpack");
	assert_int_equal(r.code, 2);
	assert_string_equal(r.out, "");
	assert_true(str_starts(r.err, "jphase: --quality is a table"));
}

static void unresolved_regions_of_async_are_null_and_told_of(void **state)
{
	(void)state;
	shell("$jphase report -f csv-regions async.msgpack | grep -c ';unresolved;'");
	if (r.code != 0) {
		run_clear(&r);
		skip_because("no two markers met the collector at once");
	}
	shell("$jphase report -f csv-regions async.msgpack | awk -F';' "
	      "'$13 == \"unresolved\" && $9 != \"\"' | wc -l");
	assert_string_equal(r.out, "0\n");
	report("async.msgpack");
	assert_shows("\n- unresolved: ");
}

static void values_that_were_not_counted_can_be_left_out(void **state)
{
	(void)state;
	report("-f json --no-null hello.msgpack");
	assert_null(strstr(r.out, "\"value\": null"));
	assert_shows("\"name\": \"task-clock\"");
	report("-f csv --no-null hello.msgpack");
	assert_null(strstr(r.out, "not counted"));
}

static void csv_is_read_by_others(void **state)
{
	static const char program[] =
		"import csv, sys; "
		"print(len({ len(row) for row in csv.reader(sys.stdin, delimiter=\";\") }))";
	static const char *const formats[] = { "csv", "csv-regions" };

	(void)state;
	if (!have_program("python3"))
		skip_because("no python3 here to read CSV");
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		char *text = text_make("$jphase report -f %s threads.msgpack | python3 -c '%s'",
			formats[i], program);

		shell(text);
		assert_string_equal(r.out, "1\n");
		free(text);
	}
}

static void json_is_read_by_others(void **state)
{
	(void)state;
	if (!have_program("python3"))
		skip_because("no python3 here to read JSON");
	shell("for by in phase name process thread; do for f in hello threads workers async; do "
	      "$jphase report -f json --by $by $f.msgpack | python3 -m json.tool >/dev/null || "
	      "echo $f $by; done; done; "
	      "$jphase report -f json hello.msgpack async.msgpack | python3 -m json.tool | tail -1");
	assert_string_equal(r.out, "}\n");
	assert_string_equal(r.err, "");
}

/* Two workers touch 100 and 700 pages. */
static void statistics_say_how_phases_of_one_name_differ(void **state)
{
	(void)state;
	shell("$jphase report --stats -f csv workers.msgpack | grep ';touch;.*;page-faults;'");
	assert_shows(";2;400;424.264068711929;100;400;700;exact");
	shell("$jphase report --stats -f csv workers.msgpack workers.msgpack | "
	      "grep ';touch;.*;page-faults;'");
	assert_shows(";4;400;346.410161513775;100;400;700;exact");
	wide_report("--stats threads.msgpack threads.msgpack");
	assert_shows("2 runs of ");
	assert_shows("\nparallel\n  time");
	assert_shows("\nwork\n  time");
	assert_shows("\n  mix\n    time ");
	shell("$jphase report --stats -f json threads.msgpack | "
	      "grep -A6 '\"name\": \"mix\"' | grep -c '^ *\"count\": 12'");
	assert_string_equal(r.out, "1\n");
}

static void statistics_do_not_go_with_everything(void **state)
{
	static const char *const refused[][2] = {
		{ "--stats -f trace", "--stats has no format trace; choose table, json or csv" },
		{ "--stats --quality", "--quality and --stats are two tables: choose one" },
		{ "--stats --by thread",
			"--stats has a row for each name; --by thread does not go with it" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		char *text = text_make("$jphase report %s hello.msgpack", refused[i][0]);
		char *said = text_make("jphase: %s\n", refused[i][1]);

		shell(text);
		assert_int_equal(r.code, 2);
		assert_string_equal(r.err, said);
		free(text);
		free(said);
	}
}

/* What overlaps on one track without being nested is not shown. */
static void slices_of_one_track_are_nested(void **state)
{
	static const char program[] =
		"import json, sys\n"
		"tracks = {}\n"
		"for e in json.load(sys.stdin)[\"traceEvents\"]:\n"
		"    if e[\"ph\"] == \"X\":\n"
		"        tracks.setdefault((e[\"pid\"], e[\"tid\"]), []).append("
		"(round(1000 * e[\"ts\"]), -round(1000 * e[\"dur\"])))\n"
		"for slices in tracks.values():\n"
		"    ends = []\n"
		"    for begin, size in sorted(slices):\n"
		"        while ends and ends[-1] <= begin:\n"
		"            ends.pop()\n"
		"        assert not ends or begin - size <= ends[-1], (begin, size, ends)\n"
		"        ends.append(begin - size)\n"
		"print(len(tracks))\n";
	char *text;

	(void)state;
	if (!have_program("python3"))
		skip_because("no python3 here to read JSON");
	/* The phases of one process, and three threads. */
	text = text_make("$jphase report -f trace threads.msgpack | python3 -c '%s'", program);
	shell(text);
	free(text);
	assert_string_equal(r.err, "");
	assert_string_equal(r.out, "4\n");
	/* Three processes; twice. */
	text = text_make(
		"$jphase report -f trace workers.msgpack workers.msgpack | python3 -c '%s'",
		program);
	shell(text);
	free(text);
	assert_string_equal(r.out, "6\n");
}

static void a_trace_has_each_phase_at_its_time(void **state)
{
	(void)state;
	shell("$jphase report -f trace --by name hello.msgpack");
	assert_int_equal(r.code, 2);
	assert_string_equal(r.err, "jphase: a trace shows each phase at its time; --by name puts "
				   "several in one row\n");
}

static void decode_py_prints_every_record(void **state)
{
	struct decoder_counts counts;
	static const struct decoder_ops ops = { 0 };
	struct decoder *d;
	size_t bytes, lines = 0;
	char *path, *data;

	(void)state;
	shell("/usr/bin/python3 -c 'import msgpack'");
	if (r.code != 0)
		skip_because("/usr/bin/python3 has no msgpack (python3-msgpack)");
	path = text_make("%s/threads.msgpack", dir);
	data = file_read(path, &bytes);
	assert_non_null(data);
	assert_int_equal(decoder_open(&ops, NULL, &d), 0);
	assert_int_equal(decoder_feed(d, data, bytes), 0);
	decoder_get_counts(d, &counts);
	decoder_close(d);
	free(data);
	free(path);

	shell("/usr/bin/python3 " SOURCE_DIR "/examples/decode.py threads.msgpack");
	assert_int_equal(r.code, 0);
	for (size_t i = 0; i < schema_layout_count; i++) {
		char *begin = text_make("\n%s ", schema_layouts[i].name);

		lines += count_of(begin);
		free(begin);
	}
	assert_int_equal(counts.unknown + counts.invalid, 0);
	assert_int_equal(lines, counts.records);
	assert_shows("\nprocess (calibration) ");
}

/* --- among other programs --- */

static void whoever_closes_the_pipe_has_seen_enough(void **state)
{
	(void)state;
	shell("for f in table json csv csv-regions trace; do "
	      "for i in 1 2 3; do $jphase report -f $f threads.msgpack workers.msgpack; done | "
	      "head -1 >/dev/null; done");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err, "");
}

static void a_full_disk_is_one_sentence(void **state)
{
	(void)state;
	shell("$jphase report -f json threads.msgpack >/dev/full");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.err, "jphase: cannot write the report: No space left on device\n");
	shell("$jphase report -o missing/x threads.msgpack");
	assert_int_equal(r.code, 1);
	assert_string_equal(r.err, "jphase: cannot write missing/x: No such file or directory\n");
}

static void the_report_can_go_to_a_file(void **state)
{
	(void)state;
	report("-f csv hello.msgpack -o hello.csv");
	assert_string_equal(r.out, "");
	shell("head -c 9 hello.csv");
	assert_string_equal(r.out, "phase_id;");
}

static void colour_is_for_terminals_alone(void **state)
{
	(void)state;
	report("hello.msgpack");
	assert_null(strchr(r.out, '\033'));
	if (!have_program("script"))
		skip_because("no `script` here to make a terminal");
	shell("unset NO_COLOR; script -qec \"$jphase report hello.msgpack\" /dev/null");
	assert_non_null(strchr(r.out, '\033'));
	shell("export NO_COLOR=1; script -qec \"$jphase report hello.msgpack\" /dev/null");
	assert_null(strchr(r.out, '\033'));
}

static size_t widest_line(void)
{
	size_t widest = 0;
	char *rest;

	for (char *line = strtok_r(r.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		widest = MAX(widest, utf8_string_width(line));
	return widest;
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	static const char *const words[] = { "hello.msgpack", "threads.msgpack", "async.msgpack",
		"--by thread threads.msgpack", "--by process workers.msgpack",
		"--quality threads.msgpack", "--quality --by thread async.msgpack",
		"--all workers.msgpack", "hello.msgpack threads.msgpack" };
	static const unsigned widths[] = { 80, 140 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words) * ARRAY_SIZE(widths); i++) {
		unsigned width = widths[i % ARRAY_SIZE(widths)];
		const char *w = words[i / ARRAY_SIZE(widths)];
		/* The command and its folder may be longer than any terminal. */
		char *text = text_make(
			"export COLUMNS=%u; $jphase report %s | grep -v /examples/", width, w);
		size_t widest;

		shell(text);
		widest = widest_line();
		if (r.code != 0 || widest > width)
			fail_msg("report %s in %u columns: status %d, %zu columns", w, width,
				r.code, widest);
		free(text);
	}
}

static void columns_stand_below_each_other_whatever_the_name(void **state)
{
	const char *line[3];
	size_t first = 0;

	(void)state;
	shell("$jphase run -q --signal 'USR1=größe,USR2=漢字' -o utf8.msgpack -- "
	      "sh -c 'kill -USR1 $$; kill -USR2 $$; exit 0' && "
	      "$jphase report utf8.msgpack");
	assert_int_equal(r.code, 0);
	line[0] = line_of("START");
	line[1] = line_of("größe");
	line[2] = line_of("漢字");
	for (size_t i = 0; i < 3; i++) {
		char *copy = strndup(line[i], strcspn(line[i], "\n"));
		size_t width = utf8_string_width(copy);

		free(copy);
		first = first ? first : width;
		assert_int_equal(width, first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_name_it_is_the_newest_one),
		cmocka_unit_test(several_recordings_are_runs_of_one_report),
		cmocka_unit_test(standard_input_is_a_recording_too),
		cmocka_unit_test(rows_can_be_phases_names_processes_and_threads),
		cmocka_unit_test(a_run_counts_the_phases_that_reports_show),
		cmocka_unit_test(regions_are_a_tree_with_shares),
		cmocka_unit_test(quality_explains_phases_and_regions),
		cmocka_unit_test(unresolved_regions_of_async_are_null_and_told_of),
		cmocka_unit_test(values_that_were_not_counted_can_be_left_out),
		cmocka_unit_test(csv_is_read_by_others),
		cmocka_unit_test(json_is_read_by_others),
		cmocka_unit_test(statistics_say_how_phases_of_one_name_differ),
		cmocka_unit_test(statistics_do_not_go_with_everything),
		cmocka_unit_test(slices_of_one_track_are_nested),
		cmocka_unit_test(a_trace_has_each_phase_at_its_time),
		cmocka_unit_test(decode_py_prints_every_record),
		cmocka_unit_test(whoever_closes_the_pipe_has_seen_enough),
		cmocka_unit_test(a_full_disk_is_one_sentence),
		cmocka_unit_test(the_report_can_go_to_a_file),
		cmocka_unit_test(colour_is_for_terminals_alone),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(columns_stand_below_each_other_whatever_the_name),
	};

	return cmocka_run_group_tests(tests, make_recordings, remove_recordings);
}
