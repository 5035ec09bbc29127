/* SPDX-License-Identifier: MIT */
/* Who answers in the collector's place cannot harm the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "support/proc.h"

#define TOKEN    "00112233445566778899aabbccddeeff"
#define MANY_FDS 200
#define NOBODY   65534

#ifndef F_ADD_SEALS
#define F_ADD_SEALS   1033
#define F_SEAL_SHRINK 2
#endif

/* What an impostor sends. */
struct answer {
	const char *what;
	size_t bytes; /* of the welcome; 0: it closes the connection instead */
	uint32_t records;
	uint16_t major;
	int32_t status;
	int fds;
	size_t size; /* of the memory behind each; 0: it is /dev/null */
	bool sealed;
	bool magic;
	bool silent; /* nothing at all, until the program has ended */
};

#define GOOD                                                                                       \
	.bytes = sizeof(struct jphase_welcome), .records = JPHASE_RING_MIN,                        \
	.major = JPHASE_ABI_MAJOR, .fds = JPHASE_WELCOME_FDS, .size = 64u << 10, .sealed = true,   \
	.magic = true

static const struct answer good = { .what = "a session", GOOD };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct answer answers[] = {
	{ .what = "nothing", GOOD, .bytes = 0 },
	{ .what = "silence", GOOD, .silent = true },
	{ .what = "one byte", GOOD, .bytes = 1 },
	{ .what = "half a welcome", GOOD, .bytes = sizeof(struct jphase_welcome) / 2 },
	{ .what = "another major version", GOOD, .major = JPHASE_ABI_MAJOR + 1 },
	{ .what = "a refusal with descriptors", GOOD, .status = -EPERM },
	{ .what = "a ring of no records", GOOD, .records = 0 },
	{ .what = "a ring of 65 records", GOOD, .records = JPHASE_RING_MIN + 1 },
	{ .what = "a ring larger than its memory", GOOD, .records = JPHASE_RING_MAX },
	{ .what = "a ring of all records", GOOD, .records = UINT32_MAX },
	{ .what = "no descriptor", GOOD, .fds = 0 },
	{ .what = "one descriptor", GOOD, .fds = 1 },
	{ .what = "two hundred descriptors", GOOD, .fds = MANY_FDS },
	{ .what = "memory that can shrink", GOOD, .sealed = false },
	{ .what = "memory that is too small", GOOD, .size = 128 },
	{ .what = "a device", GOOD, .size = 0 },
	{ .what = "another magic", GOOD, .magic = false },
};
#pragma GCC diagnostic pop

static int make_memory(const struct answer *a)
{
	struct jphase_ring head = {
		.magic = a->magic ? JPHASE_RING_MAGIC : 1,
		.record_bytes = JPHASE_RECORD_BYTES,
	};
	int fd;

	if (!a->size)
		return sys_open("/dev/null", O_RDWR, 0);
	fd = sys_memfd("jphase-impostor");
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)a->size), 0);
	assert_true(pwrite(fd, &head, MIN(sizeof(head), a->size), 0) > 0);
	if (a->sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void send_answer(int socket, const struct answer *a)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} control = { .buf = "" };
	struct jphase_welcome welcome = {
		.length = sizeof(welcome),
		.abi_major = a->major,
		.status = a->status,
		.records = a->records,
		.session = "jphase-impostor:" TOKEN,
	};
	struct iovec iov = { .iov_base = &welcome, .iov_len = a->bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[MANY_FDS], memory = make_memory(a);

	/* No text in it ends. */
	memset(welcome.message, 'x', sizeof(welcome.message));
	for (int i = 0; i < a->fds; i++)
		fds[i] = memory;
	if (a->fds) {
		message.msg_control = control.buf;
		message.msg_controllen = CMSG_SPACE((size_t)a->fds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN((size_t)a->fds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, (size_t)a->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), a->bytes);
	close(memory);
}

#define SESSION_ROOM 192

static int listen_as(uid_t uid, char session[SESSION_ROOM])
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int n = snprintf(at.sun_path + 1, 64, "jphase-impostor-%d", (int)getpid());
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(
		bind(fd, (struct sockaddr *)&at,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
		0);
	/* Whose socket it is, is decided here. */
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(seteuid(getuid()), 0);
	snprintf(session, SESSION_ROOM, "JPHASE_SESSION=%s:" TOKEN, at.sun_path + 1);
	return fd;
}

/* What came from the program, or 0: it did not even ask. */
static ssize_t answer_once(int listener, const struct answer *a, int *ret_connection)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct jphase_hello hello;
	ssize_t n;
	int fd;

	*ret_connection = -1;
	if (poll(&p, 1, 10000) <= 0)
		return 0;
	fd = accept(listener, NULL, NULL);
	n = recv(fd, &hello, sizeof(hello), 0);
	if (n > 0 && a->bytes && !a->silent)
		send_answer(fd, a);
	if (a->silent)
		*ret_connection = fd;
	else
		close(fd);
	return n;
}

/* How the program goes with such an answer. */
static void run_with(int listener, const char *session, const struct answer *a, struct child *c)
{
	int connection;

	*c = (struct child){
		.argv = { TARGET("act"), "phase=a", "inside", "phase=b" },
		.env = { "LD_PRELOAD=" LIBJPHASE, session },
	};
	assert_int_equal(run_start(c), 0);
	assert_true(answer_once(listener, a, &connection) >= 0);
	run_finish(c);
	sys_close(connection);
	assert_false(c->timed_out);
}

static void a_false_answer_leaves_nothing_in_the_program(void **state)
{
	char session[SESSION_ROOM];
	int listener = listen_as(geteuid(), session);
	struct child c;

	(void)state;
	/* The others differ from this one in one thing each. */
	run_with(listener, session, &good, &c);
	assert_string_equal(c.out, "3 shared, 3 descriptors\n");
	run_clear(&c);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		run_with(listener, session, &answers[i], &c);
		if (!str_eq(c.out, "0 shared, 3 descriptors\n") || *c.err || c.code != 0)
			fail_msg("%s: status %d: %s%s", answers[i].what, c.code, c.out, c.err);
		run_clear(&c);
	}
	close(listener);
}

static void another_users_answer_is_not_even_asked_for(void **state)
{
	char session[SESSION_ROOM];
	struct child c = {
		.argv = { TARGET("act"), "phase=a", "inside", "phase=b" },
		.env = { "LD_PRELOAD=" LIBJPHASE, session },
	};
	struct jphase_hello hello;
	int listener, fd;

	(void)state;
	if (geteuid() != 0)
		skip_because("only root can become another user");
	listener = listen_as(NOBODY, session);
	assert_int_equal(run_program(&c), 0);
	assert_string_equal(c.out, "0 shared, 3 descriptors\n");
	assert_string_equal(c.err, "");
	fd = accept(listener, NULL, NULL);
	assert_int_equal(recv(fd, &hello, sizeof(hello), 0), 0);
	close(fd);
	close(listener);
	run_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_false_answer_leaves_nothing_in_the_program),
		cmocka_unit_test(another_users_answer_is_not_even_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
