/* SPDX-License-Identifier: MIT */
/* `jphase attach`: measures programs that are running already. */
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "config.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "launch.h"
#include "log.h"
#include "process.h"

/* The collector writes its last records; a stalled disk does not hold us. */
#define REPORT_WAIT_MS 4000

struct targets {
	pid_t pid[JPHASE_ATTACH_MAX + 1];
	size_t count;
};

static int parse_pid(const char *word, pid_t *ret)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(word, &end, 10);
	if (errno || end == word || *end || n <= 0 || n > INT_MAX)
		return -EINVAL;
	*ret = (pid_t)n;
	return 0;
}

/* The kernel's question before it lets us look into a process, or count it. */
static bool may_look_into(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = sys_open(path, O_RDONLY, 0);
	sys_close(fd);
	return fd != -EACCES && fd != -EPERM;
}

static int check_target(pid_t pid)
{
	struct process_facts facts;

	if (process_facts(pid, &facts) < 0) {
		say("there is no process %d", (int)pid);
		return -ESRCH;
	}
	if (facts.tgid != pid) {
		say("%d is a thread; attach to its process: jphase attach %d", (int)pid,
			(int)facts.tgid);
		return -EINVAL;
	}
	if (!may_look_into(pid) && geteuid() == 0) {
		say("root may not look into process %d (%s) here: CAP_SYS_PTRACE is missing, as in "
		    "a container without --cap-add SYS_PTRACE",
			(int)pid, facts.name);
		return -EPERM;
	}
	if (!may_look_into(pid)) {
		say("process %d (%s) belongs to another user or runs a set-user-ID program: only "
		    "root can attach to it; write: sudo jphase attach %d",
			(int)pid, facts.name, (int)pid);
		return -EPERM;
	}
	return 0;
}

static int read_targets(int argc, char **argv, struct targets *ret)
{
	if (argc > (int)ARRAY_SIZE(ret->pid)) {
		say("more than %zu processes cannot be attached to at once", ARRAY_SIZE(ret->pid));
		return -E2BIG;
	}
	for (int i = 0; i < argc; i++) {
		pid_t pid;

		if (parse_pid(argv[i], &pid) < 0) {
			say("\"%s\" is not the number of a process", argv[i]);
			return -EINVAL;
		}
		if (check_target(pid) < 0)
			return -EPERM;
		for (size_t k = 0; k < ret->count; k++)
			if (ret->pid[k] == pid) {
				say("process %d is named twice", (int)pid);
				return -EINVAL;
			}
		ret->pid[ret->count++] = pid;
	}
	return 0;
}

/* What needs a program that is started by us, or with the library in it. */
static int check_options(void)
{
	const char *name = config_for_start();

	if (name) {
		say("%s needs a program that jphase run starts", name);
		return -EINVAL;
	}
	if (config.mode == MODE_EXACT) {
		say("exact mode needs the library in the program; attach reads the counters when "
		    "it is told (jphase mark)");
		return -EINVAL;
	}
	if (config.mode == MODE_AUTO)
		config.mode = MODE_SYNC;
	/* Nobody waits at a marker from outside. */
	config.no_calibrate = true;
	return 0;
}

/* Until the processes have ended or we are told to stop; then shows what was recorded. */
static int wait_for_end(struct launch *l, int signals)
{
	struct pollfd fds[] = {
		{ .fd = l->collector, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	char text[JPHASE_MESSAGE_ROOM];
	ssize_t n;

	while (poll(fds, ARRAY_SIZE(fds), -1) <= 0)
		continue;
	/* Nothing more comes from us: that tells it to end. */
	if (!fds[0].revents)
		shutdown(l->collector, SHUT_WR);
	if (poll(fds, 1, REPORT_WAIT_MS) <= 0) {
		say("the collector is still writing; the recording may not be complete yet");
		return EXIT_FAILED;
	}
	n = recv(l->collector, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n <= 0) {
		say("the collector has died; what it recorded until then is kept");
		return EXIT_FAILED;
	}
	text[n] = '\0';
	inform("%s", text);
	return EXIT_OK;
}

static int watch_signals(sigset_t *ret_before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, ret_before);
	return (int)SYS_RESULT(signalfd(-1, &set, SFD_CLOEXEC));
}

static int measure(const struct targets *targets)
{
	struct launch l = { .collector = -1 };
	char error[LAUNCH_ERROR_ROOM] = "";
	int signals, err;

	signals = watch_signals(&l.mask);
	err = signals < 0 ? signals : launch_collector(&l);
	if (err == 0)
		err = launch_attach(&l, targets->pid, targets->count, error);
	if (err < 0) {
		say("%s", error[0] ? error : strerror(-err));
		return EXIT_FAILED;
	}
	inform("measuring until %s or Ctrl-C; jphase mark NAME begins a phase",
		targets->count == 1 ? "it ends" : "all have ended");
	return wait_for_end(&l, signals);
}

static int run(int argc, char **argv)
{
	static struct targets targets;
	char error[CLI_ERROR_ROOM];
	int first;

	first = config_load(argc, argv, error);
	if (first < 0) {
		say("%s", error);
		return EXIT_USAGE;
	}
	if (config.help) {
		command_help(&cmd_attach);
		return EXIT_OK;
	}
	log_set_quiet(config.quiet);
	if (config_misspelled(error))
		say("%s", error);
	if (first == argc) {
		say("no process to measure; write: jphase attach [options] PID...");
		return EXIT_USAGE;
	}
	if (check_options() < 0)
		return EXIT_USAGE;
	if (read_targets(argc - first, argv + first, &targets) < 0)
		return EXIT_FAILED;
	return measure(&targets);
}

const struct command cmd_attach = {
	.name = "attach",
	.usage = "[options] PID...",
	.summary = "Measure programs that are running already",
	.opts = config_opts,
	.run = run,
	.running = true,
};
