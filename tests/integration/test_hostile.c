/* SPDX-License-Identifier: MIT */
/* Hostile bytes in the socket and in the ring: the collector stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "support/markers.h"
#include "support/measure.h"
#include "support/watch.h"

#define CONNECTIONS 10000
#define HELD        40 /* more than strangers may hold */
#define SENT_ALONG  8
#define NOBODY      65534

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

static struct measured m;
static pid_t collector;
static struct sockaddr_un at;
static socklen_t at_size;
static uint8_t token[JPHASE_TOKEN_BYTES];

/* A program that waits in its phase "a" until its input ends. */
static int set_up(void **state)
{
	static const char *const words[] = { TARGET("act"), "phase=a", "session=session", "input",
		"system=" TARGET("act") " phase=late", "phase=b", "print=done" };
	char *path, *session = NULL;

	(void)state;
	memcpy(m.argv, words, sizeof(words));
	m.way = WAY_PRELOAD;
	m.child.input = "";
	measure_start(&m);
	collector = wait_for_collector(m.file);
	path = text_make("%s/session", m.dir);
	for (int i = 0; i < 1000 && !session; i++) {
		usleep(10000);
		session = file_read(path, NULL);
	}
	free(path);
	if (!session)
		return -1;
	at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	path = strchr(session, ':');
	memcpy(at.sun_path + 1, session, (size_t)(path - session));
	at_size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(path - session));
	for (size_t i = 0; i < sizeof(token); i++)
		sscanf(path + 1 + 2 * i, "%2hhx", &token[i]);
	free(session);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	/* A test that has failed or was skipped has left it waiting. */
	kill(collector, SIGCONT);
	if (!m.model)
		run_finish(&m.child);
	measure_clear(&m);
	return 0;
}

/* The program, and one that it starts, have been measured as if nothing had been. */
static void assert_unharmed(void)
{
	struct markers *seen;

	measure_finish(&m);
	assert_string_equal(m.child.out, "done\n");
	assert_string_equal(m.child.err, "");
	assert_int_equal(m.child.code, 0);
	seen = markers_read(m.file);
	assert_true(seen->complete);
	assert_int_equal(seen->lost, 0);
	assert_int_equal(markers_count(seen, "late"), 1);
	assert_int_equal(markers_count(seen, "b"), 1);
	markers_free(seen);
}

/* Once its backlog has room. */
static int connect_once(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, at_size), 0);
	return fd;
}

static struct jphase_hello good_hello(void)
{
	struct jphase_hello hello = {
		.length = sizeof(hello),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.record_bytes = JPHASE_RECORD_BYTES,
	};

	memcpy(hello.token, token, sizeof(token));
	return hello;
}

/* Is the connection closed without an answer? */
static bool is_turned_away(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[4096];

	return poll(&p, 1, 10000) == 1 && recv(fd, answer, sizeof(answer), 0) <= 0;
}

/* --- the socket --- */

static void spoil_token(struct jphase_hello *hello)
{
	hello->token[JPHASE_TOKEN_BYTES - 1] ^= 1;
}

static void spoil_length(struct jphase_hello *hello)
{
	hello->length = 0;
}

static void spoil_major(struct jphase_hello *hello)
{
	hello->abi_major++;
}

static void spoil_record(struct jphase_hello *hello)
{
	hello->record_bytes = 64;
}

/* A marker from outside is announced and does not follow. */
static void promise_mark(struct jphase_hello *hello)
{
	hello->flags = JPHASE_HELLO_MARK;
}

static void promise_much(struct jphase_hello *hello)
{
	hello->flags = JPHASE_HELLO_MARK;
	hello->length = UINT32_MAX - 8;
}

static void (*const spoilers[])(struct jphase_hello *hello) = { spoil_token, spoil_length,
	spoil_major, spoil_record, promise_mark, promise_much };

static void wrong_hellos_are_turned_away(void **state)
{
	size_t before = descriptors_of(collector);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spoilers); i++) {
		struct jphase_hello hello = good_hello();
		int fd = connect_once();

		spoilers[i](&hello);
		assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
		if (!is_turned_away(fd))
			fail_msg("hello %zu was answered", i);
		close(fd);
	}
	wait_for_descriptors(collector, before);
	assert_unharmed();
}

static void a_mark_whose_name_has_no_end_is_turned_away(void **state)
{
	struct {
		struct jphase_hello hello;
		struct jphase_mark mark;
	} m_ = { .hello = good_hello(),
		.mark = { .length = sizeof(m_.mark), .kind = JPHASE_PHASE } };
	int fd = connect_once();

	(void)state;
	m_.hello.flags = JPHASE_HELLO_MARK;
	memset(m_.mark.name, 'x', sizeof(m_.mark.name));
	assert_int_equal(send(fd, &m_, sizeof(m_), 0), sizeof(m_));
	assert_true(is_turned_away(fd));
	close(fd);
	assert_unharmed();
}

static void ten_thousand_connections_leave_nothing(void **state)
{
	static const size_t sizes[] = { 1, 55, 56, 57, 200, 512, 5000 };
	size_t before = descriptors_of(collector);
	unsigned seed = 1;
	char bytes[5000];
	long memory = 0;

	(void)state;
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = connect_once();

		if (i == CONNECTIONS / 10)
			memory = memory_kb_of(collector);
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)rand_r(&seed);
		/* One in eight says nothing, which is waited for only so long. */
		if (i % 8 < (int)ARRAY_SIZE(sizes))
			(void)send(fd, bytes, sizes[i % 8], MSG_NOSIGNAL);
		close(fd);
	}
	wait_for_descriptors(collector, before);
	if (!HAVE_ASAN)
		wait_for_memory_below(collector, memory + 1024);
	assert_unharmed();
}

/* Whoever sent them finds that nobody holds them. */
static void descriptors_that_are_sent_along_are_not_kept(void **state)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(SENT_ALONG * sizeof(int))];
	} control = { .buf = "" };
	struct jphase_hello hello = good_hello();
	struct iovec iov = { .iov_base = &hello, .iov_len = sizeof(hello) };
	struct msghdr message = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf) };
	size_t before = descriptors_of(collector);
	int ends[2], fds[SENT_ALONG], fd;
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < SENT_ALONG; i++)
		fds[i] = ends[1];
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.align), fds, sizeof(fds));
	spoil_token(&hello);
	fd = connect_once();
	assert_int_equal(sendmsg(fd, &message, 0), sizeof(hello));
	assert_true(is_turned_away(fd));
	close(fd);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	wait_for_descriptors(collector, before);
	assert_unharmed();
}

/* In a child that is another user: as many connections as it gets, held open. */
static void hold_connections(int tell, int until)
{
	char byte = 0;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(1);
	for (int i = 0; i < HELD; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

		(void)connect(fd, (struct sockaddr *)&at, at_size);
	}
	if (write(tell, &byte, 1) < 0 || read(until, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void another_user_cannot_keep_our_own_out(void **state)
{
	int told[2], until[2];
	char byte;
	pid_t child;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can become another user");
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		close(until[1]);
		close(m.child.pipe_in);
		hold_connections(told[1], until[0]);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_unharmed();
	close(told[0]);
	close(told[1]);
	close(until[0]);
	close(until[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static pid_t fork_as(pid_t pid)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size;
	} args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Asks in a child that has ended before the collector looks; returns its number. */
static pid_t ask_and_end(int fd)
{
	struct jphase_hello hello = good_hello();
	pid_t child = fork();

	if (child == 0)
		_exit(connect(fd, (struct sockaddr *)&at, at_size) < 0 ||
			send(fd, &hello, sizeof(hello), 0) < 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return child;
}

static void a_number_that_has_changed_hands_is_not_let_in(void **state)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pid_t asked, other;

	(void)state;
	if (sys_peer_pidfd(fd) == -ENOPROTOOPT)
		skip_because("the kernel cannot tell who has connected (6.5)");
	kill(collector, SIGSTOP);
	asked = ask_and_end(fd);
	other = fork_as(asked);
	if (other == 0) {
		close(m.child.pipe_in);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	kill(collector, SIGCONT);
	if (other < 0) {
		close(fd);
		skip_because("only root can choose the number of a process");
	}
	assert_int_equal(other, asked);
	assert_true(is_turned_away(fd));
	close(fd);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_unharmed();
}

/* --- the ring --- */

static void measure_forger(const char *what, const char *rounds, const char *number)
{
	measure_clear(&m);
	m.argv[0] = TARGET("forger");
	m.argv[1] = what;
	m.argv[2] = rounds;
	m.argv[3] = number;
	measure(&m);
	assert_string_equal(m.child.out, "done\n");
	assert_string_equal(m.child.err, "");
	assert_int_equal(m.child.code, 0);
}

static int forget(void **state)
{
	(void)state;
	measure_clear(&m);
	return 0;
}

/* The test's own process among them, which root could count. */
static void markers_of_others_open_no_counters_on_them(void **state)
{
	char *own = text_make("%d", (int)getpid());
	struct markers *seen;
	size_t forged;

	(void)state;
	measure_forger("pids", "20000", own);
	seen = markers_read(m.file);
	assert_true(seen->complete);
	forged = markers_count(seen, "forged");
	assert_int_equal(forged + seen->lost, 20000);
	for (size_t i = 0; i < seen->count; i++)
		if (str_eq(seen->marker[i].name, "forged") && seen->marker[i].counted)
			fail_msg("process %d, which is none of the session, was counted",
				(int)seen->marker[i].pid);
	markers_free(seen);
	free(own);
}

static void any_bytes_in_the_ring_are_survived(void **state)
{
	static const char *const seeds[] = { "1", "2", "3", "4" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct markers *seen;

		measure_forger("bytes", "40000", seeds[i]);
		seen = markers_read(m.file);
		assert_true(seen->complete);
		assert_int_equal(markers_count(seen, "begin"), 1);
		markers_free(seen);
	}
}

static void a_ring_of_the_far_future_is_survived(void **state)
{
	struct markers *seen;

	(void)state;
	measure_forger("ahead", "50", "0");
	seen = markers_read(m.file);
	assert_true(seen->complete);
	markers_free(seen);
}

/* They are its own, and not those of a stranger with its number. */
static void what_a_dead_process_left_behind_a_claim_is_its_own(void **state)
{
	struct markers *seen;
	size_t held = 0, left = 0;
	pid_t pid = 0;

	(void)state;
	measure_forger("hold", "5", "0");
	seen = markers_read(m.file);
	assert_true(seen->complete);
	assert_int_equal(seen->lost, 0);
	for (size_t i = 0; i < seen->count; i++) {
		const struct marker_seen *marker = &seen->marker[i];

		if (str_eq(marker->name, "held") && ++held)
			pid = marker->pid;
		if (!str_eq(marker->name, "left"))
			continue;
		left++;
		assert_int_equal(marker->pid, pid);
		assert_true(marker->counted);
	}
	assert_int_equal(held, 5);
	assert_int_equal(left, 5);
	markers_free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
		TEST(wrong_hellos_are_turned_away),
		TEST(a_mark_whose_name_has_no_end_is_turned_away),
		TEST(ten_thousand_connections_leave_nothing),
		TEST(descriptors_that_are_sent_along_are_not_kept),
		TEST(another_user_cannot_keep_our_own_out),
		TEST(a_number_that_has_changed_hands_is_not_let_in),
		cmocka_unit_test_teardown(markers_of_others_open_no_counters_on_them, forget),
		cmocka_unit_test_teardown(any_bytes_in_the_ring_are_survived, forget),
		cmocka_unit_test_teardown(a_ring_of_the_far_future_is_survived, forget),
		cmocka_unit_test_teardown(
			what_a_dead_process_left_behind_a_claim_is_its_own, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
