/* SPDX-License-Identifier: MIT */
/* Neither the program nor its collector touches memory that is not theirs, or loses any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "jphase/abi.h"
#include "support/markers.h"
#include "support/measure.h"

#define COLLECTOR_FD 3 /* where it finds its socket */
#define START_MS     60000
#define ATTEMPTS     10

#define VALGRIND                                                                                   \
	"valgrind", "-q", "--vgdb=no", "--error-exitcode=9", "--leak-check=full",                  \
		"--show-leak-kinds=definite,indirect,possible",                                    \
		"--errors-for-leak-kinds=definite,indirect,possible"

static void need_valgrind(void)
{
	skip_with_asan("and valgrind exclude each other");
	if (!have_program("valgrind"))
		skip_because("there is no valgrind");
}

/* False: it was too slow to be let in. */
static bool measure_one(const char *mode)
{
	struct measured m = {
		.env = { mode },
		.argv = { VALGRIND, TARGET("act"), "phase=a", "children=5", "threads=20",
			"phases=20", "fork", "phase=child", "join", "phase=b" },
	};
	bool recorded;

	measure(&m);
	if (m.child.code != 0)
		fail_msg("%s: status %d: %s", mode, m.child.code, m.child.err);
	recorded = phase_count(&m, "b") == 1;
	measure_clear(&m);
	return recorded;
}

static void a_measured_program_has_no_errors(void **state)
{
	static const char *const modes[] = { "JPHASE_MODE=sync", "JPHASE_MODE=async",
		"JPHASE_MODE=auto" };

	(void)state;
	need_valgrind();
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		bool recorded = false;

		for (int k = 0; k < ATTEMPTS && !recorded; k++)
			recorded = measure_one(modes[i]);
		if (!recorded)
			skip_because("the machine is too busy for a program in valgrind");
	}
}

/* --- the collector, whose first process we are, as slow as it may be --- */

static pid_t start_collector(const char *file, const char *log, int *ret_socket)
{
	const char *const argv[] = { VALGRIND, log, JPHASE, "collect", NULL };
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		setenv("JPHASE_OUTPUT", file, 1);
		if (dup2(pair[1], COLLECTOR_FD) < 0 || fcntl(COLLECTOR_FD, F_SETFD, 0) < 0)
			_exit(1);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(1);
	}
	close(pair[1]);
	*ret_socket = pair[0];
	return pid;
}

/* As the library does it. */
static void be_welcomed(int socket, struct jphase_welcome *ret)
{
	const struct jphase_hello hello = {
		.length = sizeof(hello),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.clock_ns = now_ns(),
		.record_bytes = JPHASE_RECORD_BYTES,
	};
	struct pollfd p = { .fd = socket, .events = POLLIN };

	assert_int_equal(send(socket, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(poll(&p, 1, START_MS), 1);
	/* No room is offered for the descriptors: others are to use them. */
	assert_int_equal(recv(socket, ret, sizeof(*ret), 0), sizeof(*ret));
	ret->message[sizeof(ret->message) - 1] = '\0';
	if (ret->status < 0)
		fail_msg("%s", ret->message);
}

static void run_in(const char *session)
{
	/* The '+' gives it the time that a first process has. */
	char *variable = text_make("JPHASE_SESSION=+%s", session);
	struct child c = {
		.argv = { TARGET("act"), "phase=a", "phases=200", "threads=20", "children=20",
			"fork", "phase=child", "join", "phase=b" },
		.env = { "LD_PRELOAD=" LIBJPHASE, variable },
	};

	assert_int_equal(run_program(&c), 0);
	assert_int_equal(c.code, 0);
	run_clear(&c);
	free(variable);
}

/* A program that it has no time to answer goes on without it. */
static bool has_recorded(const char *file)
{
	struct markers *seen = markers_read(file);
	bool found = markers_count(seen, "b") > 0 && markers_count(seen, "child") > 0;

	markers_free(seen);
	return found;
}

static void assert_clean_end(pid_t collector, const char *log)
{
	char *text;
	int status;

	kill(collector, SIGTERM);
	assert_int_equal(waitpid(collector, &status, 0), collector);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	text = file_read(log, NULL);
	fail_msg("the collector ended with %x: %s", (unsigned)status, text ? text : "");
}

static void a_collector_has_no_errors(void **state)
{
	struct jphase_welcome welcome;
	char *dir, *file, *log;
	bool recorded = false;
	pid_t collector;
	int socket;

	(void)state;
	need_valgrind();
	dir = tmpdir_make();
	file = text_make("%s/x.msgpack", dir);
	log = text_make("--log-file=%s/log", dir);
	collector = start_collector(file, log, &socket);
	be_welcomed(socket, &welcome);
	for (int i = 0; i < ATTEMPTS && !recorded; i++) {
		run_in(welcome.session);
		/* It writes ten times a second. */
		usleep(500000);
		recorded = has_recorded(file);
	}
	assert_clean_end(collector, strchr(log, '/'));
	close(socket);
	free(log);
	free(file);
	tmpdir_remove(dir);
	if (!recorded)
		skip_because("the machine is too busy for a collector in valgrind");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measured_program_has_no_errors),
		cmocka_unit_test(a_collector_has_no_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
