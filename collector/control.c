/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "metric.h"
#include "recorder.h"

/* Connections that have not yet said hello; a further one waits in the backlog. */
#define PENDING_MAX 64
#define PENDING_NS  NSEC_PER_SEC
#define REST_NS     (100 * NSEC_PER_MSEC)
#define FOREIGN_MAX 32
#define FOREIGN_NS  (100 * NSEC_PER_MSEC)
#define BACKLOG     128
#define EVENTS      16

/* The marker thread takes a marker in less than that. */
#define MARK_PATIENCE_MS 50

/* What an epoll event is about, with the descriptor and a process's index. */
enum topic {
	TOPIC_LISTEN,
	TOPIC_HELLO,
	TOPIC_PROCESS,
	TOPIC_LAUNCHER,
	TOPIC_SIGNAL,
	TOPIC_QUIT,
};

#define TOPIC_BITS 4
#define FD_BITS    24

struct pending {
	int fd;
	bool foreign;
	uint64_t until_ns;
};

struct control {
	struct jobs *jobs;
	uint8_t token[JPHASE_TOKEN_BYTES];
	int epoll;
	int listener;
	int launcher;
	int signals;
	int spare; /* given up to accept where no other descriptor is left */
	int quit[2];
	pthread_t thread;
	bool running;
	bool listening;
	uint64_t rest_until_ns; /* no descriptor is left to accept with */
	uint64_t lost;          /* tokens for which there was no room */
	struct job end;         /* of the command */
	bool end_due;           /* there was no room for it yet */
	struct pending pending[PENDING_MAX];
	size_t pending_count;
};

static int watch(
	struct control *c, int operation, uint32_t events, enum topic topic, int fd, uint64_t index)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (uint64_t)topic | (uint64_t)(uint32_t)fd << TOPIC_BITS |
			    index << (TOPIC_BITS + FD_BITS),
	};

	return SYS_RESULT(epoll_ctl(c->epoll, operation, fd, &event));
}

int control_watch(struct control *c, int pidfd, uint64_t index)
{
	return watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLONESHOT, TOPIC_PROCESS, pidfd, index);
}

/* While as many connections are pending as fit, the others wait in the backlog. */
static void set_listening(struct control *c, bool on)
{
	if (c->listening == on)
		return;
	c->listening = on;
	watch(c, EPOLL_CTL_MOD, on ? EPOLLIN : 0, TOPIC_LISTEN, c->listener, 0);
}

static void drop_pending(struct control *c, int fd, bool close_it)
{
	for (size_t i = 0; i < c->pending_count; i++)
		if (c->pending[i].fd == fd) {
			c->pending[i] = c->pending[--c->pending_count];
			break;
		}
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL);
	if (close_it)
		close(fd);
	set_listening(c, true);
}

static int accept_anyhow(struct control *c)
{
	int fd = (int)SYS_RESULT(accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd != -EMFILE || c->spare < 0)
		return fd;
	c->spare = sys_close(c->spare);
	return (int)SYS_RESULT(accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/* Neither ours nor root's: the token will tell, but it does not get all the places. */
static bool is_foreign(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	       (peer.uid != 0 && peer.uid != geteuid());
}

static size_t count_foreign(const struct control *c)
{
	size_t count = 0;

	for (size_t i = 0; i < c->pending_count; i++)
		count += c->pending[i].foreign;
	return count;
}

static void accept_one(struct control *c)
{
	int fd = accept_anyhow(c);
	bool foreign;

	if (fd < 0) {
		if (fd != -EMFILE && fd != -ENFILE)
			return;
		/* Else it is told again and again. */
		c->rest_until_ns = now_ns() + REST_NS;
		set_listening(c, false);
		return;
	}
	foreign = is_foreign(fd);
	if ((foreign && count_foreign(c) >= FOREIGN_MAX) ||
		watch(c, EPOLL_CTL_ADD, EPOLLIN, TOPIC_HELLO, fd, 0) < 0) {
		close(fd);
		return;
	}
	c->pending[c->pending_count++] = (struct pending){
		.fd = fd,
		.foreign = foreign,
		.until_ns = now_ns() + (foreign ? FOREIGN_NS : PENDING_NS),
	};
	if (c->pending_count == PENDING_MAX)
		set_listening(c, false);
}

/* In constant time: the token is a secret. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	unsigned difference = 0;

	for (size_t i = 0; i < JPHASE_TOKEN_BYTES; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

/* A message, and room for what a later version may add. */
union message {
	struct jphase_hello hello;
	struct control_command_end end;
	char bytes[512];
};

static bool is_hello(const struct jphase_hello *hello, ssize_t n)
{
	return n >= (ssize_t)sizeof(*hello) && hello->length >= sizeof(*hello) &&
	       hello->abi_major == JPHASE_ABI_MAJOR && hello->record_bytes == JPHASE_RECORD_BYTES;
}

/* Whose session it is may mark in it from outside. */
static bool is_admitted(
	const struct control *c, const struct jphase_hello *hello, const struct ucred *peer)
{
	if (same_token(hello->token, c->token))
		return true;
	return hello->flags & JPHASE_HELLO_MARK && (peer->uid == 0 || peer->uid == geteuid());
}

static bool read_mark(const union message *m, ssize_t n, struct job *job)
{
	struct jphase_mark *mark = &job->mark;
	size_t at = m->hello.length;

	if (at > (size_t)n || (size_t)n - at < sizeof(*mark))
		return false;
	memcpy(mark, m->bytes + at, sizeof(*mark));
	job->kind = JOB_MARK;
	job->pid = (pid_t)m->hello.pid;
	job->clock_ns = m->hello.clock_ns;
	return memchr(mark->name, '\0', sizeof(mark->name)) &&
	       (mark->kind == JPHASE_NONE || mark->kind == JPHASE_PHASE ||
		       mark->kind == JPHASE_MARK);
}

/* Descriptors sent along are closed by the kernel: no room is offered for them. */
static void read_hello(struct control *c, int fd)
{
	union message m;
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);
	struct job job = { .kind = JOB_REGISTER, .fd = fd };

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!is_hello(&m.hello, n) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		peer.pid <= 0 || !is_admitted(c, &m.hello, &peer)) {
		drop_pending(c, fd, true);
		return;
	}
	job.pid = peer.pid;
	job.site = m.hello.site;
	if (m.hello.flags & JPHASE_HELLO_MARK && !read_mark(&m, n, &job)) {
		drop_pending(c, fd, true);
		return;
	}
	/* First: as soon as it is posted the descriptor is another thread's. */
	drop_pending(c, fd, false);
	if (!jobs_post(c->jobs, &job))
		close(fd);
}

static void process_gone(struct control *c, int pidfd, uint64_t index)
{
	/* Not taken: armed again, and told again. */
	if (!jobs_post(c->jobs, &(struct job){ .kind = JOB_GONE, .index = index }))
		watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT, TOPIC_PROCESS, pidfd, index);
}

/* Found in the program's output: many may come at once. */
static void post_token(struct control *c, const struct job *job)
{
	for (int i = 0; i < MARK_PATIENCE_MS; i++) {
		if (jobs_post(c->jobs, job))
			return;
		usleep(1000);
	}
	c->lost++;
}

static void post_end(struct control *c)
{
	if (c->end_due && jobs_post(c->jobs, &c->end))
		c->end_due = false;
}

/* The command's end; or the launcher's own, which leaves the status unknown. */
static void read_launcher(struct control *c)
{
	union message m;
	ssize_t n = recv(c->launcher, &m, sizeof(m), MSG_DONTWAIT);
	struct job job = {
		.kind = JOB_COMMAND,
		.fd = -1,
		.status = RECORD_STATUS_UNKNOWN,
		.user_us = VALUE_ABSENT,
		.system_us = VALUE_ABSENT,
		.peak_bytes = VALUE_ABSENT,
		.lost = c->lost,
	};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(m.end)) {
		job.status = m.end.status;
		job.user_us = m.end.user_us;
		job.system_us = m.end.system_us;
		job.peak_bytes = m.end.peak_bytes;
		job.lost += m.end.lost;
	} else if (is_hello(&m.hello, n)) {
		if (read_mark(&m, n, &job))
			post_token(c, &job);
		return;
	}
	epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->launcher, NULL);
	c->end = job;
	c->end_due = true;
	post_end(c);
}

static void read_signal(struct control *c)
{
	struct signalfd_siginfo info;

	if (sys_read(c->signals, &info, sizeof(info)) > 0)
		jobs_post(c->jobs, &(struct job){ .kind = JOB_STOP });
}

static void expire(struct control *c)
{
	uint64_t now = now_ns();

	post_end(c);
	if (c->spare < 0)
		c->spare = sys_open("/dev/null", O_RDONLY, 0);
	if (c->pending_count < PENDING_MAX && now >= c->rest_until_ns)
		set_listening(c, true);

	for (size_t i = c->pending_count; i > 0; i--)
		if (c->pending[i - 1].until_ns <= now)
			drop_pending(c, c->pending[i - 1].fd, true);
}

static bool handle(struct control *c, uint64_t data)
{
	int fd = (int)(data >> TOPIC_BITS & ((1u << FD_BITS) - 1));

	switch ((enum topic)(data & ((1u << TOPIC_BITS) - 1))) {
	case TOPIC_LISTEN: accept_one(c); break;
	case TOPIC_HELLO: read_hello(c, fd); break;
	case TOPIC_PROCESS: process_gone(c, fd, data >> (TOPIC_BITS + FD_BITS)); break;
	case TOPIC_LAUNCHER: read_launcher(c); break;
	case TOPIC_SIGNAL: read_signal(c); break;
	case TOPIC_QUIT: return false;
	}
	return true;
}

static bool needs_time(const struct control *c)
{
	return c->pending_count || c->spare < 0 || !c->listening || c->end_due;
}

static void *run(void *data)
{
	struct control *c = data;
	struct epoll_event events[EVENTS];

	for (;;) {
		int n = epoll_wait(c->epoll, events, EVENTS, needs_time(c) ? 100 : -1);

		for (int i = 0; i < n; i++)
			if (!handle(c, events[i].data.u64))
				return NULL;
		expire(c);
	}
}

static int random_hex(char *to, size_t digits)
{
	uint8_t bytes[32];

	if (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2))
		return -EIO;
	for (size_t i = 0; i < digits / 2; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
	return 0;
}

static int listen_somewhere(struct control *c, char ret_address[JPHASE_SESSION_ROOM])
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t length;
	int err;

	strcpy(ret_address, "jphase-");
	length = strlen(ret_address);
	err = random_hex(ret_address + length, 16);
	if (err < 0)
		return err;
	length = strlen(ret_address);
	memcpy(at.sun_path + 1, ret_address, length);

	c->listener =
		(int)SYS_RESULT(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (c->listener < 0)
		return c->listener;
	err = SYS_RESULT(bind(c->listener, (const struct sockaddr *)&at,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)));
	return err < 0 ? err : SYS_RESULT(listen(c->listener, BACKLOG));
}

/* The signals that ask to end; they are blocked in every thread. */
static int watch_signals(struct control *c)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	c->signals = (int)SYS_RESULT(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	return c->signals < 0 ? c->signals
			      : watch(c, EPOLL_CTL_ADD, EPOLLIN, TOPIC_SIGNAL, c->signals, 0);
}

static int prepare(struct control *c, char ret_address[JPHASE_SESSION_ROOM])
{
	int err;

	c->epoll = (int)SYS_RESULT(epoll_create1(EPOLL_CLOEXEC));
	if (c->epoll < 0)
		return c->epoll;
	err = SYS_RESULT(pipe2(c->quit, O_CLOEXEC));
	if (err == 0)
		err = listen_somewhere(c, ret_address);
	if (err == 0)
		err = watch(c, EPOLL_CTL_ADD, EPOLLIN, TOPIC_QUIT, c->quit[0], 0);
	if (err == 0)
		err = watch(c, EPOLL_CTL_ADD, EPOLLIN, TOPIC_LISTEN, c->listener, 0);
	if (err == 0)
		err = watch_signals(c);
	if (err == 0 && c->launcher >= 0)
		err = watch(c, EPOLL_CTL_ADD, EPOLLIN, TOPIC_LAUNCHER, c->launcher, 0);
	c->listening = true;
	return err;
}

int control_start(struct jobs *jobs, const uint8_t token[JPHASE_TOKEN_BYTES], int launcher,
	char ret_address[JPHASE_SESSION_ROOM], struct control **ret)
{
	struct control *c = malloc(sizeof(*c));
	sigset_t all, before;
	int err;

	if (!c)
		return -ENOMEM;
	*c = (struct control){
		.jobs = jobs,
		.epoll = -1,
		.listener = -1,
		.launcher = launcher,
		.signals = -1,
		.spare = sys_open("/dev/null", O_RDONLY, 0),
		.quit = { -1, -1 },
	};
	memcpy(c->token, token, sizeof(c->token));
	err = prepare(c, ret_address);
	if (err == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &before);
		err = -pthread_create(&c->thread, NULL, run, c);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (err < 0) {
		control_stop(c);
		return err;
	}
	c->running = true;
	*ret = c;
	return 0;
}

struct control *control_stop(struct control *c)
{
	if (!c)
		return NULL;
	c->quit[1] = sys_close(c->quit[1]);
	if (c->running)
		pthread_join(c->thread, NULL);
	for (size_t i = 0; i < c->pending_count; i++)
		close(c->pending[i].fd);
	sys_close(c->quit[0]);
	sys_close(c->listener);
	sys_close(c->signals);
	sys_close(c->spare);
	sys_close(c->epoll);
	free(c);
	return NULL;
}
