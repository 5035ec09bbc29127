/* SPDX-License-Identifier: MIT */
#include "support/proc.h"

#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "internal/sys.h"
#include "internal/util.h"

#define CHUNK        (64u << 10)
#define EXEC_FAILURE 127

/* A test without memory or folders cannot go on. */
static void give_up(const char *what)
{
	perror(what);
	abort();
}

struct output {
	char *data;
	size_t used, room;
};

static void output_reserve(struct output *o, size_t more)
{
	size_t need = o->used + more + 1;

	if (need <= o->room)
		return;
	o->room = MAX(need, 2 * o->room);
	o->data = realloc(o->data, o->room);
	if (!o->data)
		give_up("realloc");
}

/* Takes what is there.  True: the end was reached. */
static bool output_take(struct output *o, int fd)
{
	ssize_t n;

	output_reserve(o, CHUNK);
	n = sys_read(fd, o->data + o->used, CHUNK);
	if (n > 0)
		o->used += (size_t)n;
	return n == 0 || (n < 0 && n != -EINTR && n != -EAGAIN);
}

static char *output_finish(struct output *o, size_t *ret_bytes)
{
	output_reserve(o, 0);
	o->data[o->used] = '\0';
	*ret_bytes = o->used;
	return o->data;
}

static void change_env(const char *const *env)
{
	for (; *env; env++) {
		const char *equals = strchr(*env, '=');
		char name[128];

		if (!equals) {
			unsetenv(*env);
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(equals - *env), *env);
		setenv(name, equals + 1, 1);
	}
}

/* In the child.  The three descriptors are above 2. */
static void become(const struct child *r, int in, int out, int err)
{
	setpgid(0, 0);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(EXEC_FAILURE);
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	if (r->cwd && chdir(r->cwd) < 0) {
		perror(r->cwd);
		_exit(EXEC_FAILURE);
	}
	change_env(r->env);
	execvp(r->argv[0], (char *const *)(uintptr_t)r->argv);
	perror(r->argv[0]);
	_exit(EXEC_FAILURE);
}

struct pipes {
	int in[2], out[2], err[2]; /* read end, write end */
};

static void pipes_close(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		p->in[i] = sys_close(p->in[i]);
		p->out[i] = sys_close(p->out[i]);
		p->err[i] = sys_close(p->err[i]);
	}
}

/* Above 2, so that become() may overwrite these. */
static int raise_fd(int fd)
{
	int raised = SYS_RESULT(fcntl(fd, F_DUPFD_CLOEXEC, 3));

	sys_close(fd);
	return raised;
}

static int pipe_open(int fds[2])
{
	int err = SYS_RESULT(pipe2(fds, O_CLOEXEC));

	if (err < 0)
		return err;
	fds[0] = raise_fd(fds[0]);
	fds[1] = raise_fd(fds[1]);
	return MIN(MIN(fds[0], fds[1]), 0);
}

static int pipes_open(struct pipes *p, bool input)
{
	int err;

	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (input) {
		err = pipe_open(p->in);
	} else {
		p->in[0] = raise_fd(sys_open("/dev/null", O_RDONLY, 0));
		err = MIN(p->in[0], 0);
	}
	if (err == 0)
		err = pipe_open(p->out);
	if (err == 0)
		err = pipe_open(p->err);
	if (err < 0)
		pipes_close(p);
	return err;
}

/* Feeds the input and collects the output until both outputs end or the time is over. */
static void talk(struct child *r, struct pipes *p, struct output *out, struct output *err)
{
	uint64_t limit = (r->timeout_ms ? r->timeout_ms : RUN_TIMEOUT_MS) * NSEC_PER_MSEC;
	uint64_t deadline = now_ns() + limit;
	const char *input = r->input;
	size_t left = !input ? 0 : r->input_bytes ? r->input_bytes : strlen(input);

	while (p->out[0] >= 0 || p->err[0] >= 0) {
		struct pollfd fds[] = {
			{ .fd = p->out[0], .events = POLLIN },
			{ .fd = p->err[0], .events = POLLIN },
			{ .fd = p->in[1], .events = POLLOUT },
		};
		int wait_ms = (int)((saturating_sub(deadline, now_ns()) + 999999) / NSEC_PER_MSEC);

		if (left == 0)
			p->in[1] = fds[2].fd = sys_close(p->in[1]);
		if (poll(fds, ARRAY_SIZE(fds), wait_ms) == 0) {
			r->timed_out = true;
			kill(-r->pid, SIGKILL);
			return;
		}
		if (fds[0].revents && output_take(out, p->out[0]))
			p->out[0] = sys_close(p->out[0]);
		if (fds[1].revents && output_take(err, p->err[0]))
			p->err[0] = sys_close(p->err[0]);
		if (fds[2].revents) {
			ssize_t n = SYS_RESULT(write(p->in[1], input, MIN(left, (size_t)4096)));

			/* A program need not read its input. */
			left = n < 0 && n != -EINTR ? 0 : left - (size_t)MAX(n, 0);
			input += MAX(n, 0);
		}
	}
}

/* The output may end before the program does: the time limit holds for both. */
static void wait_end(struct child *r)
{
	int pidfd = sys_pidfd_open(r->pid);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	int wait_ms = (int)(r->timeout_ms ? r->timeout_ms : RUN_TIMEOUT_MS);

	if (pidfd >= 0 && poll(&end, 1, wait_ms) == 0) {
		r->timed_out = true;
		kill(-r->pid, SIGKILL);
	}
	sys_close(pidfd);
	while (SYS_RESULT(waitpid(r->pid, &r->status, 0)) == -EINTR)
		continue;
	r->code = WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

int run_start(struct child *r)
{
	struct pipes p;
	int result;

	run_clear(r);
	result = pipes_open(&p, r->input);
	if (result < 0)
		return result;
	fflush(NULL);
	r->pid = SYS_RESULT(fork());
	if (r->pid == 0)
		become(r, p.in[0], p.out[1], p.err[1]);
	if (r->pid < 0) {
		pipes_close(&p);
		return r->pid;
	}
	sys_close(p.in[0]);
	sys_close(p.out[1]);
	sys_close(p.err[1]);
	r->pipe_in = p.in[1];
	r->pipe_out = p.out[0];
	r->pipe_err = p.err[0];
	return 0;
}

void run_finish(struct child *r)
{
	struct pipes p = { { -1, r->pipe_in }, { r->pipe_out, -1 }, { r->pipe_err, -1 } };
	struct output out = { 0 }, err = { 0 };
	void (*old_pipe)(int);

	old_pipe = signal(SIGPIPE, SIG_IGN);
	talk(r, &p, &out, &err);
	wait_end(r);
	signal(SIGPIPE, old_pipe);
	pipes_close(&p);
	r->out = output_finish(&out, &r->out_bytes);
	r->err = output_finish(&err, &r->err_bytes);
}

int run_program(struct child *r)
{
	int result = run_start(r);

	if (result == 0)
		run_finish(r);
	return result;
}

int run_shell(struct child *r, const char *format, ...)
{
	char *text;
	va_list ap;
	int result;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		give_up("vasprintf");
	va_end(ap);
	r->argv[0] = "sh";
	r->argv[1] = "-c";
	r->argv[2] = text;
	r->argv[3] = NULL;
	result = run_program(r);
	r->argv[2] = "";
	free(text);
	return result;
}

void run_clear(struct child *r)
{
	free(r->out);
	free(r->err);
	r->out = r->err = NULL;
	r->out_bytes = r->err_bytes = 0;
	r->timed_out = false;
}

bool have_program(const char *name)
{
	struct child r = { .argv = { "sh", "-c", "command -v \"$0\"", name } };
	bool found = run_program(&r) == 0 && r.code == 0;

	run_clear(&r);
	return found;
}

char *tmpdir_make(void)
{
	const char *base = getenv("TMPDIR");
	char *dir = text_make("%s/jphase-test-XXXXXX", base && *base ? base : "/tmp");

	if (!mkdtemp(dir))
		give_up(dir);
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

char *tmpdir_remove(char *dir)
{
	if (dir)
		nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(dir);
	return NULL;
}

char *file_read(const char *path, size_t *ret_bytes)
{
	struct output o = { 0 };
	size_t bytes;
	int fd = sys_open(path, O_RDONLY, 0);

	if (fd < 0)
		return NULL;
	while (!output_take(&o, fd))
		continue;
	sys_close(fd);
	return output_finish(&o, ret_bytes ? ret_bytes : &bytes);
}

int file_write(const char *path, const void *data, size_t bytes)
{
	const char *from = data;
	ssize_t n = 0;
	int fd = sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		return fd;
	while (bytes && n >= 0) {
		n = SYS_RESULT(write(fd, from, bytes));
		from += MAX(n, 0);
		bytes -= (size_t)MAX(n, 0);
	}
	sys_close(fd);
	return (int)MIN(n, 0);
}

char *text_make(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		give_up("vasprintf");
	va_end(ap);
	return text;
}
