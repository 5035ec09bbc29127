/* SPDX-License-Identifier: MIT */
/* Registration: one message there, one back with the memory to map. */
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"

/* A descriptor that can still shrink could make us fault. */
#ifndef F_GET_SEALS
#define F_GET_SEALS   1034
#define F_SEAL_SHRINK 2
#endif

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool parse_token(const char *text, uint8_t token[JPHASE_TOKEN_BYTES])
{
	for (size_t i = 0; i < JPHASE_TOKEN_BYTES; i++) {
		int high = hex_digit(text[2 * i]);
		int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		token[i] = (uint8_t)(high << 4 | low);
	}
	return text[2 * JPHASE_TOKEN_BYTES] == '\0';
}

/* Waits for events; false once the deadline has passed. */
static bool wait_for(const struct handshake *h, short events)
{
	for (;;) {
		struct pollfd p = { .fd = h->socket, .events = events };
		uint64_t left = saturating_sub(h->deadline_ns, now_ns());
		int n;

		if (!left)
			return false;
		n = poll(&p, 1, (int)(left / NSEC_PER_MSEC) + 1);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

/* The collector must be our own or root's: others could feed us anything. */
static bool is_trusted(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

/* A full backlog is the only thing worth waiting for: EAGAIN. */
static int connect_until(const struct handshake *h, const struct sockaddr_un *to, socklen_t size)
{
	const struct timespec pause = ns_timespec(NSEC_PER_MSEC);

	while (connect(h->socket, (const struct sockaddr *)to, size) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (now_ns() >= h->deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Constructor only. */
int handshake_connect(const char *session, struct handshake *h)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *colon = strrchr(session, ':');
	size_t length;
	int err;

	if (!colon || !parse_token(colon + 1, h->token))
		return -EINVAL;
	length = (size_t)(colon - session);
	if (length == 0 || length > sizeof(to.sun_path) - 1)
		return -EINVAL;
	memcpy(to.sun_path + 1, session, length);

	h->socket =
		(int)SYS_RESULT(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (h->socket < 0)
		return h->socket;
	err = connect_until(
		h, &to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
	if (err == 0 && !is_trusted(h->socket))
		err = -EPERM;
	if (err < 0)
		h->socket = sys_close(h->socket);
	return err;
}

static int say_hello(const struct handshake *h)
{
	struct jphase_hello hello = {
		.length = sizeof(hello),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.clock_ns = now_ns(),
		.record_bytes = JPHASE_RECORD_BYTES,
		.site = (uint64_t)(uintptr_t)jphase_probe_site,
	};

	memcpy(hello.token, h->token, sizeof(hello.token));
	if (!wait_for(h, POLLOUT))
		return -ETIMEDOUT;
	return send(h->socket, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) ? 0 : -EPIPE;
}

static int take_descriptors(struct msghdr *message, int fds[JPHASE_WELCOME_FDS])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	size_t count;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), MIN(count, (size_t)JPHASE_WELCOME_FDS) * sizeof(int));
	/* The alignment of the control buffer leaves room for more. */
	for (size_t i = JPHASE_WELCOME_FDS; i < count; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		close(fd);
	}
	return count == JPHASE_WELCOME_FDS ? 0 : -EPROTO;
}

static int receive(
	const struct handshake *h, struct jphase_welcome *welcome, int fds[JPHASE_WELCOME_FDS])
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * JPHASE_WELCOME_FDS)];
	} control;
	struct iovec iov = { .iov_base = welcome, .iov_len = sizeof(*welcome) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	int taken;
	ssize_t n;

	if (!wait_for(h, POLLIN))
		return -ETIMEDOUT;
	n = recvmsg(h->socket, &message, MSG_CMSG_CLOEXEC);
	/* Whatever the message is worth: they are in our process now. */
	taken = n > 0 ? take_descriptors(&message, fds) : 0;
	if (n == 0)
		return -EPIPE;
	if (n < (ssize_t)offsetof(struct jphase_welcome, session))
		return n < 0 ? -errno : -EPROTO;
	welcome->message[sizeof(welcome->message) - 1] = '\0';
	welcome->session[sizeof(welcome->session) - 1] = '\0';
	if (welcome->status < 0)
		return welcome->status;
	if (taken < 0 || n != (ssize_t)sizeof(*welcome) || welcome->abi_major != JPHASE_ABI_MAJOR)
		return -EPROTO;
	return 0;
}

static void *map_shared(int fd, size_t bytes, int flags)
{
	int seals = fcntl(fd, F_GET_SEALS);
	off_t size = lseek(fd, 0, SEEK_END);
	void *memory;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || size < (off_t)bytes)
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static struct fork_guard *map_guard(void)
{
	void *memory = mmap(NULL, JPHASE_PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (madvise(memory, JPHASE_PAGE_BYTES, MADV_WIPEONFORK) < 0) {
		munmap(memory, JPHASE_PAGE_BYTES);
		return NULL;
	}
	return memory;
}

static bool records_fit(uint32_t records)
{
	return records >= JPHASE_RING_MIN && records <= JPHASE_RING_MAX &&
	       (records & (records - 1)) == 0;
}

static void *unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
	return NULL;
}

/* What a session consists of in our memory. */
struct mappings {
	struct jphase_ring *ring;
	struct jphase_session_page *page;
	void *presence; /* only mapped: as long as it is, the session goes on */
	struct fork_guard *guard;
};

static int map_all(
	const struct jphase_welcome *welcome, const int fds[JPHASE_WELCOME_FDS], struct mappings *m)
{
	if (!records_fit(welcome->records))
		return -EPROTO;
	m->ring = map_shared(fds[0], ring_bytes(welcome->records), MAP_POPULATE);
	m->page = map_shared(fds[1], JPHASE_PAGE_BYTES, MAP_POPULATE);
	m->presence = map_shared(fds[2], JPHASE_PRESENCE_BYTES, 0);
	m->guard = map_guard();
	if (!m->ring || !m->page || !m->presence || !m->guard)
		return -ENOMEM;
	if (m->ring->magic != JPHASE_RING_MAGIC || m->ring->record_bytes != JPHASE_RECORD_BYTES)
		return -EPROTO;
	return 0;
}

static void unmap_all(const struct jphase_welcome *welcome, struct mappings *m)
{
	m->ring = unmap(m->ring, m->ring ? ring_bytes(welcome->records) : 0);
	m->page = unmap(m->page, JPHASE_PAGE_BYTES);
	m->presence = unmap(m->presence, JPHASE_PRESENCE_BYTES);
	m->guard = unmap(m->guard, JPHASE_PAGE_BYTES);
}

static int map_session(const struct jphase_welcome *welcome, const int fds[JPHASE_WELCOME_FDS])
{
	struct mappings m = { .ring = NULL };
	int err = map_all(welcome, fds, &m);

	/* A process that is not measured must not keep the session alive. */
	if (err < 0) {
		unmap_all(welcome, &m);
		return err;
	}
	shim.page = m.page;
	shim.guard = m.guard;
	shim.records = welcome->records;
	shim.waits = shim.page->flags & JPHASE_SESSION_WAITS;
	shim.rings = shim.page->flags & JPHASE_SESSION_RINGS;
	shim.regions = shim.page->flags & JPHASE_SESSION_REGIONS;
	shim.first = welcome->first;
	shim.registered = getpid();
	atomic_store(&shim.guard->pid, shim.registered);
	atomic_thread_fence(memory_order_release);
	shim.ring = m.ring;
	return 0;
}

/* Constructor only, with all signals blocked. */
int handshake_run(struct handshake *h, struct jphase_welcome *welcome)
{
	int fds[JPHASE_WELCOME_FDS] = { -1, -1, -1 };
	int err;

	err = say_hello(h);
	if (err == 0)
		err = receive(h, welcome, fds);
	if (err == 0)
		err = map_session(welcome, fds);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		sys_close(fds[i]);
	return err;
}
