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

#define SOCKET_FD	 3
#define WELCOME_WAIT_MS	 5000
#define COMMAND_ROOM	 (60u << 10)

static void exec_collector(struct launch *l, int socket)
{
	char *argv[] = { (char *)"jphase", (char *)"collect", NULL };

	if (config_export() < 0)
		_exit(EXIT_FAILED);
	unsetenv("LD_PRELOAD");
	unsetenv("JPHASE_SESSION");
	if (socket == SOCKET_FD)
		fcntl(socket, F_SETFD, 0);
	else if (dup2(socket, SOCKET_FD) < 0)
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
	if (!who->name)
		return 0;
	if (initgroups(who->name, who->gid) < 0 || setgid(who->gid) < 0 || setuid(who->uid) < 0)
		return -errno;
	setenv("USER", who->name, 1);
	setenv("LOGNAME", who->name, 1);
	if (who->home)
		setenv("HOME", who->home, 1);
	return 0;
}

/* In the child: waits for the session, then becomes the program. */
static int run_program(struct launch *l, int gate)
{
	char session[JPHASE_SESSION_ROOM] = "";
	ssize_t n;
	int err;

	n = sys_read(gate, session, sizeof(session) - 1);
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

int launch_hold(struct launch *l)
{
	int gate[2], outcome[2], err;

	err = SYS_RESULT(pipe2(gate, O_CLOEXEC));
	if (err < 0)
		return err;
	err = SYS_RESULT(pipe2(outcome, O_CLOEXEC));
	if (err < 0) {
		close(gate[0]);
		close(gate[1]);
		return err;
	}
	l->pid = fork();
	if (l->pid == 0) {
		close(gate[1]);
		close(outcome[0]);
		err = run_program(l, gate[0]);
		if (write(outcome[1], &err, sizeof(err)) < 0)
			_exit(EXIT_RUN_FAILED);
		_exit(EXIT_RUN_NOT_FOUND);
	}
	err = l->pid < 0 ? -errno : 0;
	close(gate[0]);
	close(outcome[1]);
	l->gate = gate[1];
	l->outcome = outcome[0];
	return err;
}

static int send_command(const struct launch *l)
{
	char *text = calloc(1, COMMAND_ROOM);
	size_t used = 0;
	int err;

	if (!text)
		return -ENOMEM;
	for (char **word = l->argv; *word; word++) {
		size_t n = strlen(*word) + 1;

		if (n > COMMAND_ROOM - used)
			break;
		memcpy(text + used, *word, n);
		used += n;
	}
	err = send(l->collector, text, MAX(used, (size_t)1), MSG_NOSIGNAL) < 0 ? -errno : 0;
	free(text);
	return err;
}

int launch_measure(struct launch *l, char ret_session[JPHASE_SESSION_ROOM],
	char ret_error[LAUNCH_ERROR_ROOM])
{
	struct jphase_hello hello = {
		.length = sizeof(hello),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.clock_ns = now_ns(),
		.record_bytes = JPHASE_RECORD_BYTES,
		.flags = JPHASE_HELLO_LAUNCH | (l->privileged ? JPHASE_HELLO_PRIVILEGED : 0),
		.pid = (uint32_t)l->pid,
	};
	struct pollfd p = { .fd = l->collector, .events = POLLIN };
	int wait_ms = WELCOME_WAIT_MS + (int)(config.idle_ns / NSEC_PER_MSEC);
	struct jphase_welcome welcome;
	ssize_t n = 0;

	if (send(l->collector, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello) &&
		send_command(l) == 0 && poll(&p, 1, wait_ms) > 0)
		/* The descriptors sent along are for programs: no room is offered. */
		n = recv(l->collector, &welcome, sizeof(welcome), 0);
	if (n != (ssize_t)sizeof(welcome)) {
		snprintf(ret_error, LAUNCH_ERROR_ROOM, "the collector did not start");
		return -EPIPE;
	}
	if (welcome.status < 0) {
		snprintf(ret_error, LAUNCH_ERROR_ROOM, "%s", welcome.message);
		return welcome.status;
	}
	memcpy(ret_session, welcome.session, JPHASE_SESSION_ROOM);
	return 0;
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
