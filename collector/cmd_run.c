/* SPDX-License-Identifier: MIT */
/* `jphase run`: a thin parent that starts a program and its collector. */
#include "commands.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "config.h"
#include "control.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "launch.h"
#include "library.h"
#include "log.h"
#include "outside.h"
#include "program.h"
#include "relay.h"
#include "sigspec.h"

/* The collector writes its last records; a stalled disk does not hold us. */
#define REPORT_WAIT_NS (3 * NSEC_PER_SEC)

/* Sent on to the program where somebody sends them to us. */
static const int forwarded[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGTTIN,
	SIGTTOU };

static int identity_of(const char *name, struct identity *ret)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw) {
		say("no user is called \"%s\"; choose another with --user", name);
		return -ENOENT;
	}
	if (pw->pw_uid != getuid() && geteuid() != 0) {
		say("only root can run a program as \"%s\"; use sudo, or leave --user out", name);
		return -EPERM;
	}
	ret->uid = pw->pw_uid;
	ret->gid = pw->pw_gid;
	if (pw->pw_uid == geteuid())
		return 0;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(ret->home, sizeof(ret->home), "%s", pw->pw_dir);
	return 0;
}

/* Under sudo the program runs as who called it: measuring needs root, it does not. */
static int choose_identity(struct identity *ret)
{
	const char *name = config.user;

	*ret = (struct identity){ .uid = geteuid(), .gid = getegid() };
	if (!name && geteuid() == 0)
		name = getenv("SUDO_USER");
	return name ? identity_of(name, ret) : 0;
}

static void block_signals(struct launch *l)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN }, dfl = { .sa_handler = SIG_DFL };
	sigset_t set;

	/* The terminal sends these to the program itself. */
	sigaction(SIGINT, &ignore, &l->old_int);
	sigaction(SIGQUIT, &ignore, &l->old_quit);
	/* Where it is ignored the kernel keeps no status for us. */
	sigaction(SIGCHLD, &dfl, &l->old_chld);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		sigaddset(&set, i);
	sigprocmask(SIG_BLOCK, &set, &l->mask);
}

/* What the terminal, or the program itself, sends to its group has reached it already. */
static void forward(const struct launch *l, const siginfo_t *info)
{
	if (info->si_code == SI_KERNEL || info->si_pid == l->pid)
		return;
	if (info->si_signo == SIGCONT && !l->stopped)
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(l->pid, info->si_signo, info->si_value);
	else
		kill(l->pid, info->si_signo);
}

/* The shell looks at us: we stop when the program stops, by the same signal. */
static void stop_too(int number)
{
	sigset_t set;

	/* It has been told to go on meanwhile, and soon will be by us. */
	sigpending(&set);
	if (sigismember(&set, SIGCONT))
		return;
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void follow(struct launch *l, int status)
{
	l->stopped = WIFSTOPPED(status);
	if (l->stopped)
		stop_too(WSTOPSIG(status));
}

/* Reaps whoever ends, which as process 1 are strangers too. */
static bool reap(struct launch *l, struct control_command_end *end)
{
	struct rusage usage;
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage)) > 0) {
		if (pid != l->pid)
			continue;
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			follow(l, status);
			continue;
		}
		ended = true;
		*end = (struct control_command_end){
			.status = status,
			.user_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u +
				   (uint64_t)usage.ru_utime.tv_usec,
			.system_us = (uint64_t)usage.ru_stime.tv_sec * 1000000u +
				     (uint64_t)usage.ru_stime.tv_usec,
			.peak_bytes = (uint64_t)usage.ru_maxrss * 1024u,
		};
	}
	return ended;
}

static void wait_for_program(struct launch *l, struct control_command_end *end)
{
	siginfo_t info;
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	while (!reap(l, end)) {
		if (sigwaitinfo(&set, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD)
			forward(l, &info);
	}
}

static int ms_left(uint64_t until_ns)
{
	return (int)(saturating_sub(until_ns, now_ns()) / NSEC_PER_MSEC);
}

/*
 * A collector that has died is told nothing, and missed by show_report().  One
 * that is stopped may have left no room.
 */
static void tell_end(
	const struct launch *l, const struct control_command_end *end, uint64_t until_ns)
{
	struct pollfd p = { .fd = l->collector, .events = POLLOUT };

	while (send(l->collector, end, sizeof(*end), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		if (errno != EAGAIN || poll(&p, 1, ms_left(until_ns)) <= 0)
			return;
}

static void show_report(const struct launch *l, uint64_t until_ns)
{
	struct pollfd p = { .fd = l->collector, .events = POLLIN };
	char text[JPHASE_MESSAGE_ROOM];
	ssize_t n;

	if (poll(&p, 1, ms_left(until_ns)) <= 0) {
		say("the collector is still writing; the recording may not be complete yet");
		return;
	}
	n = recv(l->collector, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n <= 0) {
		say("the collector has died; what it recorded until then is kept");
		return;
	}
	text[n] = '\0';
	inform("%s", text);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void show_killer(const char *name, int status)
{
	char killer[SIGSPEC_NAME_ROOM];

	if (!WIFSIGNALED(status))
		return;
	sigspec_name(WTERMSIG(status), killer);
	inform("%s was killed by %s%s", name, killer, WCOREDUMP(status) ? " (core dumped)" : "");
}

static int start_failed(const char *name, int err)
{
	if (err == -ENOENT) {
		say("%s: no such program", name);
		return EXIT_RUN_NOT_FOUND;
	}
	if (err == -EACCES || err == -ENOEXEC) {
		say("%s: not executable", name);
		return EXIT_RUN_NOT_EXECUTABLE;
	}
	say("cannot start %s: %s", name, strerror(-err));
	return err == -EPERM ? EXIT_RUN_NOT_EXECUTABLE : EXIT_RUN_FAILED;
}

static void show_lines(char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		if (*line)
			inform("%s", line);
}

/* Between the program's standard output and ours, if that is looked at. */
static int open_relay(struct launch *l, struct outside_sender *sender, struct relay **ret,
	char error[LAUNCH_ERROR_ROOM])
{
	const struct relay_sink sink = { outside_send_token, sender };
	int err;

	if (!config.token_pattern)
		return 0;
	err = relay_open(config.token_pattern, &sink, ret);
	if (err == -EBADF)
		snprintf(error, LAUNCH_ERROR_ROOM,
			"token-pattern looks at standard output, which is closed");
	if (err == 0)
		err = relay_give_to(*ret, l->identity->uid);
	if (err == 0)
		l->output = relay_input(*ret);
	return err;
}

static int start_relay(const struct launch *l, struct outside_sender *sender, struct relay *relay)
{
	sender->socket = l->collector;
	return relay ? relay_start(relay) : 0;
}

static int measure(struct launch *l)
{
	struct control_command_end end = { .status = 0 };
	char error[LAUNCH_ERROR_ROOM] = "", session[JPHASE_SESSION_ROOM];
	char notes[JPHASE_MESSAGE_ROOM] = "";
	struct outside_sender sender = { .socket = -1 };
	struct relay *relay = NULL;
	uint64_t until_ns;
	int err;

	block_signals(l);
	err = open_relay(l, &sender, &relay, error);
	if (err == 0)
		err = launch_collector(l);
	if (err == 0)
		err = launch_group(l, notes, error);
	if (err == 0)
		show_lines(notes);
	if (err == 0)
		err = launch_hold(l);
	if (err == 0)
		err = launch_measure(l, session, error);
	if (err == 0)
		err = start_relay(l, &sender, relay);
	if (err < 0) {
		say("%s", error[0] ? error : strerror(-err));
		launch_abandon(l);
		relay_close(relay);
		return EXIT_RUN_FAILED;
	}
	err = launch_release(l, session);
	wait_for_program(l, &end);
	if (relay)
		relay_settle(relay);
	end.lost = sender.lost;
	until_ns = now_ns() + config.grace_ns + REPORT_WAIT_NS;
	tell_end(l, &end, until_ns);
	relay_close(relay);
	if (err == -ENOENT) {
		/* The program itself was found. */
		say("%s: its interpreter does not exist", l->argv[0]);
		return EXIT_RUN_NOT_FOUND;
	}
	if (err < 0)
		return start_failed(l->argv[0], err);
	show_killer(l->argv[0], end.status);
	show_report(l, until_ns);
	return exit_status(end.status);
}

/* Perhaps the program, since the pattern may be left out. */
static bool pattern_was_a_word(char **argv, int words)
{
	for (int i = 1; i < words; i++)
		if (argv[i] == config.token_pattern)
			return true;
	return false;
}

static int run(int argc, char **argv)
{
	struct identity identity;
	struct launch l = { .output = -1,
		.collector = -1,
		.group = -1,
		.gate = -1,
		.outcome = -1,
		.identity = &identity };
	char error[CLI_ERROR_ROOM], library[PATH_MAX];
	static struct program program;
	const char *obstacle;
	int first, err;

	first = config_load(argc, argv, error);
	if (first < 0) {
		say("%s", error);
		return EXIT_RUN_FAILED;
	}
	if (config.help) {
		command_help(&cmd_run);
		return EXIT_OK;
	}
	log_set_quiet(config.quiet);
	if (config_misspelled(error))
		say("%s", error);
	if (first == argc) {
		say("no program to run; write: jphase run [options] -- PROGRAM [ARGUMENTS]");
		return EXIT_RUN_FAILED;
	}
	if (choose_identity(&identity) < 0)
		return EXIT_RUN_FAILED;
	l.argv = argv + first;
	err = program_find(l.argv[0], identity.uid, identity.gid, &program);
	if (err == -ENOENT && pattern_was_a_word(argv, first)) {
		say("%s: no such program; \"%s\" was taken for the pattern, write: "
		    "--token-pattern -- PROGRAM",
			l.argv[0], config.token_pattern);
		return EXIT_RUN_NOT_FOUND;
	}
	if (err < 0)
		return start_failed(l.argv[0], err);
	err = library_find(library);
	if (err == -ENODEV) {
		say("/proc is not mounted here, and jphase finds all it counts there");
		return EXIT_RUN_FAILED;
	}
	if (err < 0) {
		say("libjphase.so is neither beside this program nor installed; run make install");
		return EXIT_RUN_FAILED;
	}
	obstacle = program_obstacle(program.kind);
	if (obstacle)
		inform("%s %s: its markers cannot be seen, it is measured as one phase", l.argv[0],
			obstacle);
	else if (program.privileged)
		inform("%s is set-user-ID or cannot be read by its user: its markers cannot be "
		       "seen and the kernel does not count it (cgroup values remain)",
			l.argv[0]);
	l.preload = obstacle ? NULL : library;
	l.privileged = program.privileged;
	return measure(&l);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "[options] [--] PROGRAM [ARGUMENTS]",
	.summary = "Run a program and record what its phases cost",
	.opts = config_opts,
	.run = run,
};
