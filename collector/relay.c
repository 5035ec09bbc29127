/* SPDX-License-Identifier: MIT */
#include "relay.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "log.h"

/* `jphase run` has no more. */
#define FOLLOWER_FDS 64

struct relay {
	struct token_finder *finder;
	struct relay_sink sink;
	int in;
	int input;   /* the program's end, until it has it */
	int quit[2]; /* its end is closed when the program has ended */
	sem_t seen;  /* all that it wrote has been looked at */
	pthread_t thread;
	bool running;
	char *buf; /* from sent to used: not passed on yet */
	size_t room;
	size_t sent;
	size_t used;
	uint64_t clock_ns;
};

static void found(void *data, const struct token *token)
{
	const struct relay *r = data;

	r->sink.token(r->sink.data, token, r->clock_ns);
}

static void free_all(struct relay *r)
{
	sys_close(r->in);
	sys_close(r->input);
	sys_close(r->quit[0]);
	sys_close(r->quit[1]);
	sem_destroy(&r->seen);
	token_close(r->finder);
	free(r->buf);
	free(r);
}

static int make_pipes(struct relay *r)
{
	int pair[2] = { -1, -1 }, err;

	err = SYS_RESULT(pipe2(pair, O_CLOEXEC));
	if (err < 0)
		return err;
	r->in = pair[0];
	r->input = pair[1];
	return SYS_RESULT(pipe2(r->quit, O_CLOEXEC));
}

int relay_open(const char *pattern, const struct relay_sink *sink, struct relay **ret)
{
	char reason[TOKEN_ERROR_ROOM];
	struct relay *r;
	int err;

	err = SYS_RESULT(fcntl(STDOUT_FILENO, F_GETFD));
	if (err < 0)
		return err;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct relay){
		.sink = *sink,
		.in = -1,
		.input = -1,
		.quit = { -1, -1 },
		.buf = malloc(RELAY_ROOM),
		.room = RELAY_ROOM,
	};
	sem_init(&r->seen, 0, 0);
	err = r->buf ? token_open(pattern, &r->finder, reason) : -ENOMEM;
	if (err == 0)
		err = make_pipes(r);
	if (err < 0) {
		free_all(r);
		return err;
	}
	*ret = r;
	return 0;
}

int relay_input(const struct relay *r)
{
	return r->input;
}

/* Else "/dev/stdout" could not be opened by it. */
int relay_give_to(const struct relay *r, uid_t uid)
{
	return SYS_RESULT(fchown(r->input, uid, (gid_t)-1));
}

static void stop_reading(struct relay *r)
{
	r->in = sys_close(r->in);
}

/* Into the room behind what waits already.  0: the end; -EAGAIN: nothing now. */
static ssize_t take(struct relay *r, size_t most)
{
	ssize_t n = sys_read(r->in, r->buf + r->used, MIN(most, r->room - r->used));

	if (n == -EINTR)
		return -EAGAIN;
	if (n <= 0)
		return n;
	r->clock_ns = now_ns();
	if (r->finder)
		token_feed(r->finder, r->buf + r->used, (size_t)n, found, r);
	r->used += (size_t)n;
	return n;
}

static void take_some(struct relay *r)
{
	ssize_t n = take(r, r->room);

	if (n > 0 || n == -EAGAIN)
		return;
	if (r->finder)
		token_end(r->finder, found, r);
	stop_reading(r);
}

/* All that is in the pipe at this moment, however slow our reader is. */
static void take_rest(struct relay *r)
{
	int left = 0;

	if (r->in < 0 || ioctl(r->in, FIONREAD, &left) < 0)
		return;
	if (r->used + (size_t)left > r->room) {
		char *grown = realloc(r->buf, r->used + (size_t)left);

		if (!grown)
			return;
		r->buf = grown;
		r->room = r->used + (size_t)left;
	}
	while (left > 0) {
		ssize_t n = take(r, (size_t)left);

		if (n <= 0 && n != -EAGAIN)
			break;
		left -= (int)MAX(n, (ssize_t)0);
	}
	if (r->finder)
		token_end(r->finder, found, r);
}

/* Nobody reads what we write any more: the program would have been told by SIGPIPE. */
static void give_up(struct relay *r)
{
	r->sent = r->used = 0;
	stop_reading(r);
}

/* No more than what fits where poll() says that something fits: it does not wait. */
static void pass_on(struct relay *r)
{
	size_t bytes = MIN(r->used - r->sent, (size_t)PIPE_BUF);
	ssize_t n = SYS_RESULT(write(STDOUT_FILENO, r->buf + r->sent, bytes));

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n < 0) {
		if (n != -EPIPE)
			say("cannot pass the program's output on: %s", strerror((int)-n));
		give_up(r);
		return;
	}
	r->sent += (size_t)n;
	if (r->sent == r->used)
		r->sent = r->used = 0;
}

static bool has_output(const struct relay *r)
{
	return r->used > r->sent;
}

static void make_room(struct relay *r)
{
	if (r->sent < r->room / 2)
		return;
	memmove(r->buf, r->buf + r->sent, r->used - r->sent);
	r->used -= r->sent;
	r->sent = 0;
}

/* Waits for something to do and does it.  False: quit is closed. */
static bool step(struct relay *r, int quit)
{
	struct pollfd in = { .fd = -1, .events = POLLIN };
	struct pollfd fds[3];

	make_room(r);
	if (r->used < r->room)
		in.fd = r->in;
	fds[0] = in;
	/* While nothing is to be written it only tells that the reader has gone. */
	fds[1] = (struct pollfd){
		.fd = has_output(r) || r->in >= 0 ? STDOUT_FILENO : -1,
		.events = has_output(r) ? POLLOUT : 0,
	};
	fds[2] = (struct pollfd){ .fd = quit, .events = POLLIN };
	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return true;
	if (fds[1].revents && has_output(r))
		pass_on(r);
	else if (fds[1].revents)
		give_up(r);
	if (fds[0].revents && r->in >= 0) {
		take_some(r);
		/* Most often it fits at once. */
		fds[1].events = POLLOUT;
		if (has_output(r) && poll(&fds[1], 1, 0) > 0)
			pass_on(r);
	}
	return fds[2].revents == 0;
}

static void *run(void *data)
{
	struct relay *r = data;

	while (step(r, r->quit[0]))
		continue;
	take_rest(r);
	sem_post(&r->seen);
	while (has_output(r)) {
		struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

		if (poll(&out, 1, -1) > 0)
			pass_on(r);
	}
	return NULL;
}

int relay_start(struct relay *r)
{
	sigset_t all, before;
	int err;

	r->input = sys_close(r->input);
	/* SIGPIPE too: an error is enough. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	r->running = err == 0;
	return err;
}

void relay_settle(struct relay *r)
{
	r->quit[1] = sys_close(r->quit[1]);
	while (r->running && sem_wait(&r->seen) < 0)
		continue;
}

/* Somebody whom the program has left behind may write still. */
static bool is_held(const struct relay *r)
{
	struct pollfd in = { .fd = r->in, .events = POLLIN };

	return r->in >= 0 && (poll(&in, 1, 0) == 0 || in.revents & POLLIN);
}

/* Holds nothing of who waits for us but what the others hold too. */
static void follow(struct relay *r)
{
	int null = sys_open("/dev/null", O_RDWR, 0);

	dup2(null, STDIN_FILENO);
	dup2(null, STDERR_FILENO);
	dup2(r->in, STDERR_FILENO + 1);
	r->in = STDERR_FILENO + 1;
	for (int fd = r->in + 1; fd < FOLLOWER_FDS; fd++)
		close(fd);
	r->finder = NULL;
	while (r->in >= 0 || has_output(r))
		step(r, -1);
	_exit(0);
}

struct relay *relay_close(struct relay *r)
{
	if (!r)
		return NULL;
	if (r->running)
		pthread_join(r->thread, NULL);
	if (r->running && is_held(r) && fork() == 0)
		follow(r);
	free_all(r);
	return NULL;
}
