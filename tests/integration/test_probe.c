/* SPDX-License-Identifier: MIT */
/* The probe: whose it is, what becomes of it, and whom it touches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "probe.h"
#include "site.h"
#include "support/tally.h"

/* What tracefs defines, or NULL where it cannot be read. */
static char *definitions(void)
{
	char reason[READER_REASON_ROOM], *text;
	struct probe probe;
	ssize_t n;
	int fd;

	/* This removes what killed collectors have left, as the next session would. */
	if (probe_prepare(&probe, reason) < 0)
		return NULL;
	text = calloc(1, 65536);
	fd = openat(probe.tracefs, "uprobe_events", O_RDONLY);
	n = read(fd, text, 65535);
	close(fd);
	close(probe.tracefs);
	assert_true(n >= 0);
	return text;
}

/* Where nobody waits for it a zombie stays, which has no command line. */
static void wait_gone(pid_t pid)
{
	char *path = text_make("/proc/%d/cmdline", (int)pid), *text;
	size_t bytes;

	while ((text = file_read(path, &bytes)) && bytes) {
		free(text);
		usleep(1000);
	}
	free(text);
	free(path);
}

static void no_probe_is_left_when_the_session_has_ended(void **state)
{
	struct measured m = {
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "1", "3" },
	};
	struct tally t;
	char *text, *ours;
	pid_t collector;

	(void)state;
	need_perf();
	measure_start(&m);
	collector = wait_for_collector(m.file);
	measure_finish(&m);
	t = tally_of(m.file);
	measure_clear(&m);
	tally_need_exact(&t);
	wait_gone(collector);
	text = definitions();
	ours = text_make("jphase_%d_", (int)collector);
	assert_null(strstr(text, ours));
	free(ours);
	free(text);
}

/* A program that we talk to through pipes. */
struct talk {
	FILE *to, *from;
	pid_t pid;
};

/* variable: one more, or NULL. */
static struct talk talk_start(const char *file, char *variable)
{
	int in[2], out[2];
	struct talk t;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	t.pid = fork();
	if (t.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		setenv("LD_PRELOAD", LIBJPHASE, 1);
		setenv("JPHASE_OUTPUT", file, 1);
		setenv("JPHASE_SOURCES", "perf", 1);
		setenv("JPHASE_EVENTS", TALLY_EVENTS, 1);
		if (variable)
			putenv(variable);
		execl(TARGET("patched"), "patched", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	t.to = fdopen(in[1], "w");
	t.from = fdopen(out[0], "r");
	return t;
}

static int talk_ask(struct talk *t)
{
	int bytes = -1;

	fputs("\n", t->to);
	fflush(t->to);
	assert_int_equal(fscanf(t->from, "%d", &bytes), 1);
	return bytes;
}

/* The probe is set up while the first region waits, or later on a busy machine. */
static int talk_until_patched(struct talk *t)
{
	int patched = 0;

	for (int i = 0; i < 300 && patched == 0; i++) {
		if (i)
			usleep(10000);
		patched = talk_ask(t);
	}
	return patched;
}

static int talk_end(struct talk *t)
{
	int status;

	fclose(t->to);
	fclose(t->from);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	return status;
}

static void killed_collector_leaves_the_code_as_it_was(void **state)
{
	char *dir = tmpdir_make(), *file = text_make("%s/x.msgpack", dir), *text, *ours;
	struct talk t = talk_start(file, NULL);
	pid_t collector = wait_for_collector(file);
	int patched = talk_until_patched(&t), after = -1;

	(void)state;
	kill(collector, SIGKILL);
	/* The kernel takes the trap out when it closes the dead collector's events. */
	for (int i = 0; i < 500 && after != 0; i++) {
		usleep(10000);
		after = talk_ask(&t);
	}
	assert_int_equal(talk_end(&t), 0);
	tmpdir_remove(dir);
	free(file);
	if (patched == 0)
		skip_because("exact mode cannot be had here");
	/* One byte on x86-64, a word of which three bytes differ or four on arm64. */
	assert_in_range(patched, 1, 4);
	assert_int_equal(after, 0);
	text = definitions();
	ours = text_make("jphase_%d_", (int)collector);
	assert_null(strstr(text, ours));
	free(ours);
	free(text);
}

/* It maps the same library in a session without regions, and its code stays as it is. */
static void another_process_is_not_touched(void **state)
{
	char *dir = tmpdir_make(), *mine = text_make("%s/mine.msgpack", dir);
	char *its = text_make("%s/its.msgpack", dir);
	struct talk sampled, other;
	int patched, untouched;

	(void)state;
	need_perf();
	sampled = talk_start(mine, NULL);
	other = talk_start(its, (char[]){ "JPHASE_MODE=sync" });
	patched = talk_until_patched(&sampled);
	untouched = talk_ask(&other);
	assert_int_equal(talk_end(&sampled), 0);
	assert_int_equal(talk_end(&other), 0);
	wait_for_recording(mine);
	wait_for_recording(its);
	tmpdir_remove(dir);
	free(mine);
	free(its);
	if (patched == 0)
		skip_because("exact mode cannot be had here");
	assert_int_equal(untouched, 0);
}

/* --- the administrator's --- */

static int tracefs_write(const struct probe *p, const char *text)
{
	int fd = openat(p->tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int err = written ? 0 : -errno;

	sys_close(fd);
	return err;
}

/* One at a time on this machine, as they all have the same name.  Held to the end. */
static void lock_name(void)
{
	static int held = -1;

	if (held < 0)
		held = open("/sys/kernel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(held >= 0);
	assert_int_equal(flock(held, LOCK_EX), 0);
}

/* As an administrator does it who follows jphase doctor. */
static void given_define(const struct probe *p, const char *library, uint64_t offset)
{
	char *text = text_make("p:" PROBE_GIVEN_NAME " %s:0x%" PRIx64 "\n", library, offset);

	if (tracefs_write(p, text) < 0)
		fail_msg("cannot define %s", text);
	free(text);
}

/* Also what a test that has failed left behind; a collector may still be at its end. */
static int given_remove(void **state)
{
	char reason[READER_REASON_ROOM];
	struct probe p;

	(void)state;
	if (probe_prepare(&p, reason) < 0)
		return 0;
	for (int i = 0; i < 1000 && p.origin == PROBE_OWN; i++) {
		if (tracefs_write(&p, "-:" PROBE_GIVEN_NAME "\n") != -EBUSY)
			break;
		usleep(10000);
	}
	sys_close(p.tracefs);
	return 0;
}

/*
 * What the collector of such a user has: nobody's uid, and of all privileges
 * the one to look into tracefs, which the administrator's chmod gives as well.
 */
#define AS_NOBODY(script)                                                                          \
	"unshare", "-m", "sh", "-c", script, "sh", "setpriv", "--reuid=65534", "--clear-groups",   \
		"--bounding-set=-all,+dac_read_search,+perfmon",                                   \
		"--inh-caps=-all,+dac_read_search,+perfmon",                                       \
		"--ambient-caps=-all,+dac_read_search,+perfmon"

#define HAVE_TRACEFS                                                                               \
	"{ [ -e /sys/kernel/tracing/uprobe_events ] || "                                           \
	"mount -t tracefs none /sys/kernel/tracing 2>/dev/null; }"
#define WITH_TRACEFS HAVE_TRACEFS " && exec \"$@\""

static bool can_play_nobody(void)
{
	return geteuid() == 0 && have_program("setpriv") && have_program("unshare") &&
	       access("/sys/kernel/tracing", F_OK) == 0 &&
	       system("unshare -m sh -c '" HAVE_TRACEFS "'") == 0 &&
	       system("setpriv --ambient-caps=-all --inh-caps=+perfmon --bounding-set=+perfmon "
		      "true 2>/dev/null") == 0;
}

static struct measured measured_as_nobody(void)
{
	struct measured m = {
		.through = { AS_NOBODY(WITH_TRACEFS) },
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), "2", "200" },
		.dir = tmpdir_make(),
	};

	assert_int_equal(chmod(m.dir, 0777), 0);
	return m;
}

/* ret_after: what is defined when the session is over. */
static struct tally measure_given(const char *library, uint64_t offset, char **ret_after)
{
	struct measured m = measured_as_nobody();
	struct tally t;
	char reason[READER_REASON_ROOM];
	struct probe probe;

	lock_name();
	assert_int_equal(probe_prepare(&probe, reason), 0);
	given_define(&probe, library, offset);
	close(probe.tracefs);
	t = tally_calmly(&m);
	*ret_after = definitions();
	return t;
}

static void the_probe_of_an_administrator_is_used_and_stays(void **state)
{
	struct tally t;
	uint64_t offset = 0;
	char *after;

	(void)state;
	if (!can_play_nobody())
		skip_because("it needs root, tracefs, setpriv and unshare");
	assert_int_equal(site_offset(LIBJPHASE, &offset), 0);
	t = measure_given(LIBJPHASE, offset, &after);
	assert_string_equal(t.mode, "exact");
	assert_int_equal(t.regions, 400);
	assert_int_equal(t.sampled, 400);
	assert_int_equal(t.right, 400);
	assert_non_null(strstr(after, "p:" PROBE_GIVEN_NAME " "));
	free(after);
}

/* As when the library was updated since: the same path, another file. */
static void a_probe_on_another_file_is_told_and_not_used(void **state)
{
	char *dir = tmpdir_make(), *copy = text_make("%s/libjphase.so", dir), *data, *after;
	struct tally t;
	uint64_t offset = 0;
	size_t bytes;

	(void)state;
	if (!can_play_nobody())
		skip_because("it needs root, tracefs, setpriv and unshare");
	data = file_read(LIBJPHASE, &bytes);
	assert_non_null(data);
	assert_int_equal(file_write(copy, data, bytes), 0);
	assert_int_equal(site_offset(copy, &offset), 0);
	t = measure_given(copy, offset, &after);
	assert_int_equal(t.regions, 400);
	assert_int_equal(t.sampled, 0);
	assert_non_null(strstr(t.notes, "the probe jphase/marker is not on the library"));
	free(after);
	free(data);
	free(copy);
	tmpdir_remove(dir);
}

static void without_privileges_a_note_says_what_helps(void **state)
{
	struct measured m;
	struct tally t;

	(void)state;
	if (!can_play_nobody())
		skip_because("it needs root, tracefs, setpriv and unshare");
	lock_name();
	m = measured_as_nobody();
	t = tally_calmly(&m);
	assert_string_equal(t.mode, "sync");
	assert_int_equal(t.right, 400);
	assert_non_null(strstr(t.notes, "not exact: it needs root (sudo), or a probe that an "
					"administrator defines: jphase doctor tells how"));
}

/* A library that was copied in part, say. */
static void a_cut_library_has_no_site(void **state)
{
	char *dir = tmpdir_make(), *copy = text_make("%s/libjphase.so", dir), *data;
	uint64_t offset = 0, found;
	size_t bytes;

	(void)state;
	data = file_read(LIBJPHASE, &bytes);
	assert_non_null(data);
	assert_int_equal(site_offset(LIBJPHASE, &offset), 0);
	assert_true(offset > 0 && offset < bytes);
	for (size_t cut = 0; cut < bytes; cut += bytes / 61) {
		assert_int_equal(file_write(copy, data, cut), 0);
		assert_true(site_offset(copy, &found) < 0 || found == offset);
	}
	assert_true(site_offset(JPHASE, &found) < 0);
	assert_true(site_offset(dir, &found) < 0);
	free(data);
	free(copy);
	tmpdir_remove(dir);
}

/* It has no regions. */
static void without_privileges_a_program_of_phases_has_no_note(void **state)
{
	struct measured m;
	struct tally t;

	(void)state;
	if (!can_play_nobody())
		skip_because("it needs root, tracefs, setpriv and unshare");
	lock_name();
	m = measured_as_nobody();
	memcpy(m.argv, (const char *[]){ TARGET("pages"), "3", "10" }, 3 * sizeof(*m.argv));
	t = tally_calmly(&m);
	assert_string_equal(t.mode, "sync");
	assert_null(strstr(t.notes, "not exact"));
}

/* --- without tracefs --- */

#define WITHOUT_TRACEFS                                                                            \
	"for d in /sys/kernel/tracing /sys/kernel/debug; do "                                      \
	"[ ! -d $d ] || mount -t tmpfs none $d || exit; done; exec \"$@\""

static struct measured measured_without_tracefs(const char *threads)
{
	struct measured m = {
		.through = { "unshare", "-m", "sh", "-c", WITHOUT_TRACEFS, "sh", TARGET("denied") },
		.options = { TALLY_OPTIONS },
		.argv = { TARGET("regions"), threads, "20" },
	};

	if (geteuid() != 0 || !have_program("unshare") ||
		system("unshare -m mount -t tmpfs none /sys/kernel 2>/dev/null") != 0 ||
		access("/sys/bus/event_source/devices/uprobe", F_OK) != 0)
		skip_because("it needs root, unshare and the kernel's uprobe events");
	return m;
}

static void without_tracefs_each_thread_has_a_probe(void **state)
{
	struct measured m = measured_without_tracefs("3");
	struct tally t = tally_calmly(&m);

	(void)state;
	tally_need_exact(&t);
	assert_int_equal(t.regions, 3 * 20);
	assert_int_equal(t.sampled, 3 * 20);
	assert_int_equal(t.right, 3 * 20);
}

#define BEYOND "without tracefs only so many threads can be sampled"

/* Not those that met the collector when 32 had. */
static void without_tracefs_some_threads_are_sampled(void **state)
{
	struct measured m = measured_without_tracefs("34");
	struct tally t = { .regions = 0 };

	(void)state;
	m.argv[3] = "slow";
	need_perf();
	/* On a busy machine they may all have ended before the collector meets the last. */
	for (int i = 0; i < 5 && !strstr(t.notes, BEYOND); i++) {
		measure(&m);
		assert_int_equal(m.child.code, 0);
		t = tally_of(m.file);
		unlink(m.file);
	}
	measure_clear(&m);
	tally_need_exact(&t);
	print_message("%zu regions, %zu sampled, %zu late, %zu without\n", t.regions, t.sampled,
		t.late, t.without);
	if (!strstr(t.notes, BEYOND))
		skip_because("too busy a machine");
	assert_int_equal(t.regions, 34 * 20);
	assert_true(t.without >= 2 * 20);
	assert_true(t.sampled > 0);
	assert_int_equal(t.right, t.sampled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_probe_is_left_when_the_session_has_ended),
		cmocka_unit_test(killed_collector_leaves_the_code_as_it_was),
		cmocka_unit_test(another_process_is_not_touched),
		cmocka_unit_test_teardown(
			the_probe_of_an_administrator_is_used_and_stays, given_remove),
		cmocka_unit_test_teardown(
			a_probe_on_another_file_is_told_and_not_used, given_remove),
		cmocka_unit_test(without_privileges_a_note_says_what_helps),
		cmocka_unit_test(without_privileges_a_program_of_phases_has_no_note),
		cmocka_unit_test(a_cut_library_has_no_site),
		cmocka_unit_test(without_tracefs_each_thread_has_a_probe),
		cmocka_unit_test(without_tracefs_some_threads_are_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
