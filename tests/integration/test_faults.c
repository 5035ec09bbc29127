/* SPDX-License-Identifier: MIT */
/*
 * The fault matrix: each program runs without jphase and with it, both ways,
 * and behaves the same.  A table is printed at the end.
 */
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
#include "support/markers.h"
#include "support/measure.h"

/* What is said about a recording that cannot be, or is not whole. */
#define TELLS    1u
/* Not with `jphase run`, which says so and starts nothing. */
#define NOT_RUN  2u
/* With the address sanitizer it needs more than it gets. */
#define NOT_ASAN 4u

/*
 * A shell script.  $with stands before the program and is "env", "jphase run
 * --" or "env LD_PRELOAD=..."; JPHASE_OUTPUT is the recording.  It prints all that is compared.
 */
struct fault {
	const char *group;
	const char *name;
	const char *script;
	const char *marker; /* must be in the recording; NULL: there need be none */
	const char *needs;  /* a script that fails where the case cannot be had */
	unsigned flags;
};

#define ACT    "$act phase=begin "
#define MOUNTS "unshare -m mount -t tmpfs none /mnt"
#define PIDS   "unshare -p -f true"
#define ROOT   "test $(id -u) = 0"

/* Waits for the recording, if there is one. */
#define COMPLETE "test ! -e x.msgpack || flock -s x.msgpack true"

#define PERIL(group, name, what)                                                                   \
	{                                                                                          \
		group, name, "$with $perils " what, "child", NULL, 0                               \
	}

/* Where a file system is made for the program alone. */
#define IN_MOUNTS(setup, program) "exec unshare -m sh -c '" setup "; exec $with '\"" program "\""

static const struct fault faults[] = {
	{ "process", "fork", "$with " ACT "fork phase=child join phase=b print=on", "child", NULL,
		0 },
	PERIL("process", "vfork and exec", "vfork"),
	PERIL("process", "posix_spawn", "spawn"),
	PERIL("process", "raw clone", "clone"),
	PERIL("process", "a job server's tokens", "tokens"),
	{ "process", "daemonising",
		"$with " ACT "print=on flush daemonise write=$PWD/proof phase=child; "
		"while ! test -s proof; do sleep 0.01; done; cat proof",
		"child", NULL, 0 },
	{ "process", "exec of another program", "$with " ACT "exec=$act phase=child print=on",
		"child", NULL, 0 },
	{ "process", "exec without environment",
		"$with " ACT "clearenv exec=$act phase=unseen print=on", "begin", NULL, 0 },
	{ "process", "chroot",
		"mkdir jail; $with " ACT "fork chroot=jail phase=child join print=on", "child",
		ROOT, 0 },
	{ "process", "private mounts",
		"$with " ACT "\"system=unshare -m $act phase=child print=on\"", "child", MOUNTS,
		0 },
	{ "process", "private process numbers",
		"$with " ACT "\"system=unshare -p -f $act phase=child print=on\"", "child", PIDS,
		0 },
	{ "process", "private network and IPC",
		"$with " ACT "\"system=unshare -i $act phase=child print=on\"", "child",
		"unshare -i true", 0 },
	{ "process", "500 short-lived children", "$with " ACT "children=500", "child", NULL, 0 },
	{ "process", "survivors of the first",
		"$with sh -c \"" ACT "; (sleep 0.2; $act phase=late write=$PWD/proof) &\"; "
		"while ! test -s proof; do sleep 0.01; done; cat proof",
		"begin", NULL, 0 },
	{ "process", "process 1 of a namespace", "unshare -p -f $with " ACT "print=on", NULL, PIDS,
		TELLS },
	{ "process", "a subreaper",
		"$with " ACT "subreaper=1 fork fork phase=child _exit=0 join phase=b wait", "child",
		NULL, 0 },
	{ "process", "flocks",
		"$with flock lock " ACT "; flock -n lock echo free; $with " ACT "print=on", "begin",
		NULL, 0 },
	{ "process", "pipes", "$with " ACT "print=on | { cat; echo end; }", "begin", NULL, 0 },
	{ "process", "make -j",
		"printf 'all: a b c\\na b c:\\n\\t@+%s phase=child\\n' $act >mk; $with make -s -j3 "
		"-f mk; echo made",
		"child", NULL, 0 },
	{ "process", "descriptors and all it can see", "w=$with; unset with; $w $nosy", "one", NULL,
		0 },

	{ "thread", "1,000 threads", "$with " ACT "threads=1000 print=on", "thread", NULL, 0 },
	PERIL("thread", "older than the first marker", "older"),
	PERIL("thread", "ending between markers", "brief"),
	PERIL("thread", "pthread_cancel", "cancel"),
	PERIL("thread", "destructors of thread-local data", "destructors"),

	{ "signal", "in malloc, printf and joule_phase", "$with $handlers 500 2>/dev/null",
		"handler", NULL, 0 },
	{ "signal", "siglongjmp out of a marker", "$with $jumper 1", "last", NULL, 0 },
	PERIL("signal", "a storm", "storm"),
	PERIL("signal", "all blocked", "blocked"),
	PERIL("signal", "stopped and continued", "stopped"),
	PERIL("signal", "no EINTR", "waits"),
	{ "signal", "killed",
		"{ $with " ACT "phase=child print=lost raise=9; } 2>/dev/null; echo $?", "child",
		NULL, 0 },

	{ "sandbox", "seccomp filter", "$with $sandbox filter | sort", "caged", NULL, 0 },
	PERIL("sandbox", "no_new_privs", "no_privileges"),
	{ "sandbox", "another user, no privileges",
		"chmod 755 ..; chmod 777 .; $nobody $with " ACT "print=on", NULL,
		"$nobody test -x $act -a -x $jphase", TELLS },
	{ "sandbox", "read-only file system",
		IN_MOUNTS("mkdir ro; mount -t tmpfs -o ro none ro; cd ro", ACT "print=on"), "begin",
		MOUNTS, 0 },
	{ "sandbox", "recording to a read-only file system",
		IN_MOUNTS("mkdir ro; mount -t tmpfs -o ro none ro; JPHASE_OUTPUT=ro/x",
			ACT "print=on"),
		NULL, MOUNTS, TELLS | NOT_RUN },
	{ "sandbox", "no /proc", IN_MOUNTS("mount -t tmpfs none /proc", ACT "print=on"), NULL,
		MOUNTS, TELLS | NOT_RUN | NOT_ASAN },
	{ "sandbox", "no /dev/shm",
		IN_MOUNTS("mount -t tmpfs -o ro,mode=0 none /dev/shm", ACT "print=on"), "begin",
		MOUNTS " && test -d /dev/shm", 0 },
	{ "sandbox", "no /dev", IN_MOUNTS("mount -t tmpfs none /dev", ACT "print=on"), "begin",
		MOUNTS, NOT_ASAN },
	{ "sandbox", "no /sys", IN_MOUNTS("mount -t tmpfs none /sys", ACT "print=on"), "begin",
		MOUNTS, 0 },
	/* The kernel ends whoever is left when process 1 has. */
	{ "sandbox", "vm.memfd_noexec=2",
		"unshare -p -f sh -c 'echo 2 >/proc/sys/vm/memfd_noexec; $with '\"" ACT
		"print=on\"'; " COMPLETE "'",
		"begin", "unshare -p -f sh -c 'echo 2 >/proc/sys/vm/memfd_noexec'", 0 },

	{ "fault", "20 descriptors", "ulimit -n 20; $with " ACT "print=on", "begin", NULL, 0 },
	{ "fault", "100 MB of addresses", "ulimit -v 100000; $with " ACT "print=on", "begin", NULL,
		NOT_ASAN },
	{ "fault", "files of 32 kB at most",
		"ulimit -S -f 64; $with " ACT "phases=2000 print=on 2>/dev/null", NULL, NULL,
		TELLS },
	{ "fault", "no locked memory", "ulimit -l 0; $with " ACT "print=on", "begin", NULL, 0 },
	{ "fault", "little CPU time", "ulimit -S -t 600; $with " ACT "print=on", "begin", NULL, 0 },
	{ "fault", "a small stack", "ulimit -s 256; $with " ACT "print=on", "begin", NULL,
		NOT_ASAN },
	{ "fault", "a full disk",
		"unshare -m sh -c 'mkdir full; mount -t tmpfs -o size=40k none full; "
		"JPHASE_OUTPUT=full/x $with '\"" ACT
		"phases=2000 print=on\"' 2>/dev/null; cd full; "
		"test ! -e x || { flock -s x true; cp x ..; }'; ! test -e x || mv x x.msgpack",
		NULL, MOUNTS, TELLS },
	/* A pipe that nobody reads. */
	{ "fault", "a disk that stalls",
		"mkfifo stalled; export JPHASE_OUTPUT=$PWD/stalled; exec 9<>stalled; $with " ACT
		"phases=2000 print=on 2>/dev/null; exec 9>&-",
		NULL, NULL, TELLS },
	{ "fault", "a quota", "", NULL, "echo no quota can be set up here; false", 0 },
	{ "fault", "a closed pipe",
		"{ while ! test -e closed; do sleep 0.01; done; $with " ACT
		"print=lost flush print=again; echo $? >status; } | { exec <&-; : >closed; }; "
		"cat status",
		"begin", NULL, 0 },
	{ "fault", "closed standard descriptors", "$with " ACT "phase=child <&- >&- 2>&-; echo $?",
		"child", NULL, 0 },
	{ "fault", "a clock that is set back",
		"$with " ACT "\"system=unshare -T --monotonic -60 $act phase=child print=on\"",
		"child", "unshare -T --monotonic -60 true", 0 },
	{ "fault", "a dead session",
		"export JPHASE_SESSION=jphase-0:00112233445566778899aabbccddeeff; $with " ACT
		"print=on",
		NULL, NULL, 0 },
	{ "fault", "out of processes", "$nobody sh -c \"ulimit -u 1; $with " ACT "print=on\"", NULL,
		"$nobody test -x $act -a -x $jphase", TELLS | NOT_RUN },
};

enum way_tried {
	PLAIN,
	RUN,
	PRELOAD,
	COLUMNS,
};

static const char *const with[COLUMNS] = {
	[PLAIN] = "env",
	[RUN] = JPHASE " run -q --",
	[PRELOAD] = "env LD_PRELOAD=" LIBJPHASE,
};

#define RESULT_ROOM 200
#define ATTEMPTS    5

static char results[ARRAY_SIZE(faults)][COLUMNS][RESULT_ROOM];

/* One shell, with all names that scripts use. */
static void run_script(const char *dir, const char *prefix, const char *script, struct child *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(
		run_shell(c,
			"cd %s; export JPHASE_OUTPUT=$PWD/x.msgpack jphase=%s act=%s perils=%s nosy=%s "
			"handlers=%s jumper=%s sandbox=%s with='%s'\n"
			"export nobody='setpriv --reuid 65534 --regid 65534 --clear-groups'\n%s",
			dir, JPHASE, TARGET("act"), TARGET("perils"), TARGET("nosy"),
			TARGET("handlers"), TARGET("jumper"), TARGET("sandbox"), prefix, script),
		0);
}

/* What jphase says for itself, in whole lines, is no part of the program. */
static void remove_own_lines(char *text)
{
	char *to = text;

	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n") + 1;

		n = MIN(n, strlen(line));
		if (!str_starts(line, "jphase: ")) {
			memmove(to, line, n);
			to += n;
		}
		line += n;
	}
	*to = '\0';
}

/* From the first line that is not the same. */
static void skip_same_lines(const char **a, const char **b)
{
	for (;;) {
		size_t n = strcspn(*a, "\n"), k = strcspn(*b, "\n");

		if (n != k || memcmp(*a, *b, n) != 0 || !(*a)[n] || !(*b)[k])
			return;
		*a += n + 1;
		*b += k + 1;
	}
}

static void tell_difference(
	const char *what, const char *text, const char *plain, char result[RESULT_ROOM])
{
	skip_same_lines(&text, &plain);
	snprintf(result, RESULT_ROOM, "%s \"%.80s\", not \"%.80s\"", what, text, plain);
}

static bool is_same(
	const struct fault *f, struct child *c, const struct child *plain, char result[RESULT_ROOM])
{
	if (f->flags & TELLS)
		remove_own_lines(c->err);
	if (c->timed_out)
		snprintf(result, RESULT_ROOM, "does not end");
	else if (c->code != plain->code)
		snprintf(
			result, RESULT_ROOM, "status %d, not %d: %s", c->code, plain->code, c->err);
	else if (!str_eq(c->out, plain->out))
		tell_difference("prints", c->out, plain->out, result);
	else if (!str_eq(c->err, plain->err))
		tell_difference("says", c->err, plain->err, result);
	else
		snprintf(result, RESULT_ROOM, "same");
	return str_eq(result, "same");
}

/* Whatever there is decodes.  False: a marker is missing. */
static bool check_recording(const struct fault *f, const char *dir, char result[RESULT_ROOM])
{
	bool whole = true;
	char *file = text_make("%s/x.msgpack", dir);
	struct markers *seen = NULL;

	if (f->marker || access(file, F_OK) == 0) {
		wait_for_recording(file);
		seen = markers_read(file);
		snprintf(result, RESULT_ROOM, "same, %zu markers", seen->count);
		whole = !f->marker || markers_count(seen, f->marker);
		if (!whole)
			snprintf(result, RESULT_ROOM, "no marker \"%s\" in the recording",
				f->marker);
	}
	markers_free(seen);
	free(file);
	return whole;
}

/* False: it cannot be had here. */
static bool can_have(const struct fault *f, char result[RESULT_ROOM])
{
	char *dir = tmpdir_make();
	struct child c;

	run_script(dir, with[PLAIN], f->needs ? f->needs : "true", &c);
	if (c.code != 0)
		snprintf(result, RESULT_ROOM, "skipped: %s", *c.out ? c.out : c.err);
	result[strcspn(result, "\n")] = '\0';
	tmpdir_remove(dir);
	run_clear(&c);
	return !*result;
}

static bool leaves_out(const struct fault *f, enum way_tried column)
{
	return (f->flags & NOT_RUN && column == RUN) || (f->flags & NOT_ASAN && HAVE_ASAN);
}

/* In a folder of its own, which has the same name each time: some print it. */
static void run_in_folder(const char *parent, const char *prefix, const char *script,
	struct child *c, char **ret_folder)
{
	char *folder = text_make("%s/work", parent);

	assert_int_equal(mkdir(folder, 0755), 0);
	run_script(folder, prefix, script, c);
	*ret_folder = folder;
}

/*
 * Behaves the same each time.  On a busy machine a program that is started
 * later may not be let in within its 100 ms, and then has no markers.
 */
static void run_fault_with(const struct fault *f, const char *parent, enum way_tried way,
	const struct child *plain, char result[RESULT_ROOM])
{
	bool again = true;

	for (int i = 0; i < ATTEMPTS && again; i++) {
		struct child c;
		char *folder;

		run_in_folder(parent, with[way], f->script, &c, &folder);
		again = is_same(f, &c, plain, result) && !check_recording(f, folder, result);
		run_clear(&c);
		tmpdir_remove(folder);
	}
}

static void run_fault(const struct fault *f, char result[COLUMNS][RESULT_ROOM])
{
	char *parent = tmpdir_make(), *folder;
	struct child plain;

	run_in_folder(parent, with[PLAIN], f->script, &plain, &folder);
	tmpdir_remove(folder);
	for (enum way_tried i = RUN; i < COLUMNS; i++) {
		if (leaves_out(f, i))
			snprintf(result[i], RESULT_ROOM, "-");
		else
			run_fault_with(f, parent, i, &plain, result[i]);
	}
	run_clear(&plain);
	tmpdir_remove(parent);
}

/* One line for each. */
static size_t print_table(void)
{
	static const char *const ways[COLUMNS] = { [RUN] = "jphase run", [PRELOAD] = "LD_PRELOAD" };
	size_t wrong = 0;

	print_message("%-8s  %-36s  %-10s  result\n", "kind", "case", "way");
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		for (enum way_tried k = RUN; k < COLUMNS; k++) {
			const char *result = results[i][k];

			wrong += !str_starts(result, "same") && !str_starts(result, "skipped") &&
				 !str_eq(result, "-");
			print_message("%-8s  %-36s  %-10s  %s\n", faults[i].group, faults[i].name,
				ways[k], result);
		}
	return wrong;
}

static void no_program_notices(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		char skipped[RESULT_ROOM] = "";

		if (can_have(&faults[i], skipped)) {
			run_fault(&faults[i], results[i]);
			continue;
		}
		for (enum way_tried k = RUN; k < COLUMNS; k++)
			memcpy(results[i][k], skipped, RESULT_ROOM);
	}
	assert_int_equal(print_table(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_program_notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
