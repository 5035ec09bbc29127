/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "commands.h"
#include "config.h"
#include "internal/sys.h"
#include "internal/util.h"

#define WELCOME_WAIT_MS 5000

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000u
#endif

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

static void exec_collector(struct launch *l, int socket)
{
	char *argv[] = { (char *)"jphase", (char *)"collect", NULL };

	if (config_export() < 0)
		_exit(EXIT_FAILED);
	unsetenv("LD_PRELOAD");
	unsetenv("JPHASE_SESSION");
	if (socket == JPHASE_COLLECTOR_FD)
		fcntl(socket, F_SETFD, 0);
	else if (dup2(socket, JPHASE_COLLECTOR_FD) < 0)
		_exit(EXIT_FAILED);
	sigprocmask(SIG_SETMASK, &l->mask, NULL);
	execv("/proc/self/exe", argv);
	_exit(EXIT_FAILED);
}

int launch_collector(struct launch *l)
{
	int pair[2], err;

	err = SYS_RESULT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	if (err < 0)
		return err;
	l->collector_pid = fork();
	if (l->collector_pid == 0)
		exec_collector(l, pair[1]);
	close(pair[1]);
	if (l->collector_pid < 0) {
		err = -errno;
		close(pair[0]);
		return err;
	}
	l->collector = pair[0];
	return 0;
}

/* The entry comes first; what the user preloads stays. */
static int set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;
	int err;

	if (asprintf(&value, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	err = SYS_RESULT(setenv("LD_PRELOAD", value, 1));
	free(value);
	return err;
}

static int become(const struct identity *who)
{
	if (!who->name[0])
		return 0;
	if (initgroups(who->name, who->gid) < 0 || setgid(who->gid) < 0 || setuid(who->uid) < 0)
		return -errno;
	setenv("USER", who->name, 1);
	setenv("LOGNAME", who->name, 1);
	setenv("HOME", who->home, 1);
	return 0;
}

/* In the child: waits for the session, then becomes the program. */
static int run_program(struct launch *l, int gate)
{
	char session[JPHASE_SESSION_ROOM + 1] = { JPHASE_SESSION_FIRST };
	ssize_t n;
	int err;

	n = sys_read(gate, session + 1, sizeof(session) - 2);
	if (n <= 0)
		_exit(EXIT_RUN_FAILED);
	sigaction(SIGINT, &l->old_int, NULL);
	sigaction(SIGQUIT, &l->old_quit, NULL);
	sigaction(SIGCHLD, &l->old_chld, NULL);
	sigprocmask(SIG_SETMASK, &l->mask, NULL);
	if (l->preload) {
		err = set_preload(l->preload);
		if (err == 0)
			err = SYS_RESULT(setenv("JPHASE_SESSION", session, 1));
		if (err < 0)
			return err;
	}
	err = become(l->identity);
	if (err < 0)
		return err;
	execvp(l->argv[0], l->argv);
	return -errno;
}

/* clone3's argument, as far as Linux 5.7 knows it. */
struct clone_into {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};

/*
 * The program is born with that output: the collector looks at it before the
 * program has run at all.
 */
static int set_output(int fd)
{
	int before, err;

	if (fd < 0)
		return -1;
	before = SYS_RESULT(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
	err = before < 0 ? before : SYS_RESULT(dup2(fd, STDOUT_FILENO));
	return err < 0 ? -1 : before;
}

static void restore_output(int before)
{
	if (before < 0)
		return;
	dup2(before, STDOUT_FILENO);
	close(before);
}

/* A fork whose child is in the cgroup from its birth, where the kernel can do that. */
static pid_t fork_into(struct launch *l)
{
	struct clone_into into = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)l->group,
	};
	pid_t pid = -1;

	if (l->group >= 0)
		pid = (pid_t)syscall(SYS_clone3, &into, sizeof(into));
	l->placed = pid > 0;
	return pid < 0 ? fork() : pid;
}

int launch_hold(struct launch *l)
{
	int gate[2], outcome[2], output, err;

	err = SYS_RESULT(pipe2(gate, O_CLOEXEC));
	if (err < 0)
		return err;
	err = SYS_RESULT(pipe2(outcome, O_CLOEXEC));
	if (err < 0) {
		close(gate[0]);
		close(gate[1]);
		return err;
	}
	output = set_output(l->output);
	l->pid = fork_into(l);
	if (l->pid == 0) {
		close(gate[1]);
		close(outcome[0]);
		err = run_program(l, gate[0]);
		if (write(outcome[1], &err, sizeof(err)) < 0)
			_exit(EXIT_RUN_FAILED);
		_exit(EXIT_RUN_NOT_FOUND);
	}
	err = l->pid < 0 ? -errno : 0;
	restore_output(output);
	close(gate[0]);
	close(outcome[1]);
	l->gate = gate[1];
	l->outcome = outcome[0];
	return err;
}

static int send_command(const struct launch *l)
{
	char *text = calloc(1, JPHASE_COMMAND_ROOM);
	size_t used = 0;
	int err;

	if (!text)
		return -ENOMEM;
	for (char **word = l->argv; *word; word++) {
		size_t n = strlen(*word) + 1;

		if (n > JPHASE_COMMAND_ROOM - used)
			break;
		memcpy(text + used, *word, n);
		used += n;
	}
	err = send(l->collector, text, MAX(used, (size_t)1), MSG_NOSIGNAL) < 0 ? -errno : 0;
	free(text);
	return err;
}

static int say_hello(const struct launch *l, uint32_t flags, pid_t pid)
{
	struct jphase_hello hello = {
		.length = sizeof(hello),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.clock_ns = now_ns(),
		.record_bytes = JPHASE_RECORD_BYTES,
		.flags = flags,
		.pid = (uint32_t)pid,
	};

	return send(l->collector, &hello, sizeof(hello), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The first descriptor that is sent along goes to ret_fd; without one no room is offered. */
static ssize_t receive(const struct launch *l, struct jphase_welcome *ret, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ret_fd ? control.buf : NULL,
		.msg_controllen = ret_fd ? sizeof(control.buf) : 0,
	};
	ssize_t n = recvmsg(l->collector, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return n;
}

static int await_welcome(const struct launch *l, struct jphase_welcome *ret, int *ret_fd,
	char ret_error[LAUNCH_ERROR_ROOM])
{
	struct pollfd p = { .fd = l->collector, .events = POLLIN };
	int wait_ms = WELCOME_WAIT_MS + (int)(config.idle_ns / NSEC_PER_MSEC);

	if (poll(&p, 1, wait_ms) <= 0 || receive(l, ret, ret_fd) != (ssize_t)sizeof(*ret)) {
		snprintf(ret_error, LAUNCH_ERROR_ROOM, "the collector did not start");
		return -EPIPE;
	}
	if (ret->status < 0)
		snprintf(ret_error, LAUNCH_ERROR_ROOM, "%s", ret->message);
	return ret->status;
}

int launch_group(
	struct launch *l, char ret_notes[JPHASE_MESSAGE_ROOM], char ret_error[LAUNCH_ERROR_ROOM])
{
	struct jphase_welcome welcome;
	int err;

	if (!config.cgroup)
		return 0;
	/* If it could not be sent, no welcome comes either. */
	(void)say_hello(l, JPHASE_HELLO_LAUNCH | JPHASE_HELLO_GROUP, 0);
	err = await_welcome(l, &welcome, &l->group, ret_error);
	if (err < 0)
		return err;
	memcpy(ret_notes, welcome.message, JPHASE_MESSAGE_ROOM);
	return 0;
}

int launch_measure(
	struct launch *l, char ret_session[JPHASE_SESSION_ROOM], char ret_error[LAUNCH_ERROR_ROOM])
{
	struct jphase_welcome welcome;
	int err;

	if (say_hello(l,
		    JPHASE_HELLO_LAUNCH | (l->privileged ? JPHASE_HELLO_PRIVILEGED : 0) |
			    (l->placed ? JPHASE_HELLO_PLACED : 0),
		    l->pid) == 0)
		(void)send_command(l);
	err = await_welcome(l, &welcome, NULL, ret_error);
	if (err < 0)
		return err;
	memcpy(ret_session, welcome.session, JPHASE_SESSION_ROOM);
	l->group = sys_close(l->group);
	return 0;
}

int launch_attach(
	struct launch *l, const pid_t *pids, size_t count, char ret_error[LAUNCH_ERROR_ROOM])
{
	struct jphase_welcome welcome;
	uint32_t others[JPHASE_ATTACH_MAX + 1];

	for (size_t i = 1; i < count; i++)
		others[i - 1] = (uint32_t)pids[i];
	/* It comes as a message of its own, which must not be empty. */
	others[count - 1] = 0;
	if (say_hello(l, JPHASE_HELLO_ATTACH, pids[0]) == 0)
		(void)send(l->collector, others, count * sizeof(others[0]), MSG_NOSIGNAL);
	return await_welcome(l, &welcome, NULL, ret_error);
}

int launch_release(struct launch *l, const char *session)
{
	int err = 0;

	if (write(l->gate, session, strlen(session)) < 0)
		return -errno;
	l->gate = sys_close(l->gate);
	/* Nothing comes where the exec succeeds: it closes the other end. */
	if (sys_read(l->outcome, &err, sizeof(err)) <= 0)
		err = 0;
	l->outcome = sys_close(l->outcome);
	return err;
}

void launch_abandon(struct launch *l)
{
	l->gate = sys_close(l->gate);
	l->outcome = sys_close(l->outcome);
	if (l->pid > 0)
		waitpid(l->pid, NULL, 0);
}
