/* SPDX-License-Identifier: MIT */
/*
 * The collector.  Started by libjphase.so or by `jphase run` with a socket on
 * descriptor 3; detaches itself from whatever it was started by.
 */
#include "commands.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "config.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "log.h"
#include "loop.h"
#include "output.h"
#include "session.h"
#include "welcome.h"

#define HELLO_WAIT_MS 2000
#define DESCRIPTORS   65536
#define TURN_NS       100000
#define RESET_ON_FORK 1

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Who started us and what it wants measured. */
struct caller {
	struct jphase_hello hello;
	pid_t pid;
	char *command; /* NUL between the arguments */
	size_t command_bytes;
	uint32_t others[JPHASE_ATTACH_MAX + 1]; /* with ATTACH; ends with 0 */
	size_t other_count;
};

static void default_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	sigaction(SIGXCPU, &ignore, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void default_scheduling(void)
{
	const struct sched_param normal = { .sched_priority = 0 };
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	sched_setscheduler(0, SCHED_OTHER, &normal);
	setpriority(PRIO_PROCESS, 0, 0);
}

/* What the kernel calls struct sched_attr; only newer C libraries do. */
struct scheduling {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

/*
 * From Linux 6.12 on, who asks for short turns gets them sooner when woken: a
 * marker that shares its CPU with us is answered before it comes to wait.
 * Older kernels take no notice.  For the calling thread alone.
 */
static void ask_for_short_turns(void)
{
	const struct scheduling wish = {
		.size = sizeof(wish),
		.policy = SCHED_OTHER,
		.flags = RESET_ON_FORK,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime_ns = TURN_NS,
	};

	syscall(SYS_sched_setattr, 0, &wish, 0);
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	/* The hard limit is the target's; root may have more. */
	limit.rlim_cur = limit.rlim_max = MAX(limit.rlim_max, (rlim_t)DESCRIPTORS);
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The kernel would end us for what the program may use. */
static void raise_cpu_limit(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_CPU, &limit) == 0 || getrlimit(RLIMIT_CPU, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CPU, &limit);
}

static void close_from(int first)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, first, ~0u, 0) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	for (int fd = first; fd < (int)MIN(limit.rlim_cur, (rlim_t)65536); fd++)
		close(fd);
}

/* Nothing of the target's is held: no pipe, no terminal, no lock. */
static void detach(void)
{
	int null;

	setsid();
	default_signals();
	default_scheduling();
	close_from(JPHASE_COLLECTOR_FD + 1);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < JPHASE_COLLECTOR_FD && null >= 0; fd++)
		dup2(null, fd);
	if (null > JPHASE_COLLECTOR_FD)
		close(null);
	raise_descriptor_limit();
	raise_cpu_limit();
	unsetenv("LD_PRELOAD");
}

static ssize_t receive(void *to, size_t room)
{
	struct pollfd p = { .fd = JPHASE_COLLECTOR_FD, .events = POLLIN };

	if (poll(&p, 1, HELLO_WAIT_MS) <= 0)
		return -ETIMEDOUT;
	return SYS_RESULT(recv(JPHASE_COLLECTOR_FD, to, room, MSG_DONTWAIT));
}

static int read_command_line(struct caller *caller)
{
	struct process_facts facts;
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", caller->pid);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = sys_read(fd, caller->command, JPHASE_COMMAND_ROOM);
	close(fd);
	caller->command_bytes = (size_t)MAX(n, (ssize_t)0);
	/* A kernel thread has none. */
	if (n == 0 && process_facts(caller->pid, &facts) == 0)
		caller->command_bytes = (size_t)sprintf(caller->command, "%s", facts.name);
	return n < 0 ? (int)n : 0;
}

static int receive_others(struct caller *caller)
{
	ssize_t n = receive(caller->others, sizeof(caller->others));

	if (n < (ssize_t)sizeof(caller->others[0]))
		return n < 0 ? (int)n : -EPROTO;
	caller->other_count = (size_t)n / sizeof(caller->others[0]) - 1;
	return 0;
}

/* The library's own process, or the one that the launcher holds stopped. */
static int meet_caller(struct caller *caller)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	ssize_t n;

	n = receive(&caller->hello, sizeof(caller->hello));
	if (n < (ssize_t)sizeof(caller->hello) || caller->hello.abi_major != JPHASE_ABI_MAJOR ||
		caller->hello.record_bytes != JPHASE_RECORD_BYTES)
		return -EPROTO;
	if (getsockopt(JPHASE_COLLECTOR_FD, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	caller->pid = peer.pid;
	if (caller->hello.flags & JPHASE_HELLO_GROUP)
		return 0;
	caller->command = calloc(1, JPHASE_COMMAND_ROOM + 1);
	if (!caller->command)
		return -ENOMEM;
	if (caller->hello.flags & JPHASE_HELLO_LAUNCH) {
		caller->pid = (pid_t)caller->hello.pid;
		n = receive(caller->command, JPHASE_COMMAND_ROOM);
		caller->command_bytes = (size_t)MAX(n, (ssize_t)0);
		return n < 0 ? (int)n : 0;
	}
	if (caller->hello.flags & JPHASE_HELLO_ATTACH) {
		caller->pid = (pid_t)caller->hello.pid;
		n = receive_others(caller);
		if (n < 0)
			return (int)n;
	}
	return read_command_line(caller);
}

static bool is_launched(const struct caller *caller)
{
	return caller->hello.flags & JPHASE_HELLO_LAUNCH;
}

/* It waits for us to end. */
static bool has_launcher(const struct caller *caller)
{
	return caller->hello.flags & (JPHASE_HELLO_LAUNCH | JPHASE_HELLO_ATTACH);
}

static struct session_start start_of(const struct caller *caller)
{
	return (struct session_start){
		.pid = caller->pid,
		.launched = is_launched(caller),
		.privileged = caller->hello.flags & JPHASE_HELLO_PRIVILEGED,
		.placed = caller->hello.flags & JPHASE_HELLO_PLACED,
		.attached = caller->hello.flags & JPHASE_HELLO_ATTACH,
		.others = caller->others,
		.other_count = caller->other_count,
		.site = has_launcher(caller) ? 0 : caller->hello.site,
		.command = caller->command,
		.command_bytes = caller->command_bytes,
	};
}

/* Before the launcher has its program, it asks for the group to start it in. */
static int offer_group(struct session *s, struct caller *caller, char error[SESSION_ERROR_ROOM])
{
	int err;

	if (!(caller->hello.flags & JPHASE_HELLO_GROUP))
		return 0;
	err = session_group(s, caller->pid, error);
	if (err == 0)
		err = welcome_offer_group(s, JPHASE_COLLECTOR_FD);
	return err < 0 ? err : meet_caller(caller);
}

static void refuse(const struct caller *caller, int err, const char *error)
{
	char message[JPHASE_MESSAGE_ROOM] = "";

	if (!*error && access("/proc/self", F_OK) < 0)
		error = "/proc is not mounted here, and jphase finds all it counts there";
	/* What different versions have to say to each other is told by the older side. */
	if (*error || err != -EPROTO)
		snprintf(message, sizeof(message), "%s%.480s",
			has_launcher(caller) ? "" : "not measuring: ",
			*error ? error : strerror(-err));
	welcome_refuse(JPHASE_COLLECTOR_FD, err, message);
}

static void note_cpu_limit(struct session *s)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		session_note(s, NULL,
			"the collector inherited a limit of %llu s of its own CPU time (ulimit -H "
			"-t): it would end there, and the recording with it",
			(unsigned long long)limit.rlim_cur);
}

/* The library tells its user; `jphase run` has done so itself. */
static void hint_at_variables(struct session *s, const struct caller *caller)
{
	char hint[CLI_ERROR_ROOM];

	if (!has_launcher(caller) && config_misspelled(hint))
		snprintf(s->welcome.message, sizeof(s->welcome.message), "%s", hint);
}

/* On success the session runs and the caller has its answer. */
static int begin(struct session *s, struct caller *caller, struct output *output)
{
	char error[SESSION_ERROR_ROOM] = "";
	struct session_start start;
	int err;

	err = config_load_env(error);
	if (err == 0 && config.token_pattern && !is_launched(caller)) {
		snprintf(error, sizeof(error),
			"token-pattern needs jphase run, through which the output goes");
		err = -EINVAL;
	}
	if (err == 0)
		err = session_prepare(s, &config, error);
	if (err == 0)
		err = offer_group(s, caller, error);
	start = start_of(caller);
	if (err == 0)
		err = output_open(config.output, caller->command, caller->pid, output, error);
	if (err == 0) {
		start.output_fd = output->fd;
		output->fd = -1;
		umask(022);
		if (chdir("/") < 0)
			umask(022); /* it only holds the folder */
		err = session_begin(
			s, &start, has_launcher(caller) ? JPHASE_COLLECTOR_FD : -1, error);
	}
	if (err == 0)
		err = output_commit(output, error);
	if (err == 0) {
		note_cpu_limit(s);
		hint_at_variables(s, caller);
	}
	if (err == 0)
		err = welcome_send(s, JPHASE_COLLECTOR_FD, true);
	if (err < 0)
		refuse(caller, err, error);
	return err;
}

/* What `jphase run` shows at the end. */
static void tell_launcher(const struct session *s, const struct output *output)
{
	char text[JPHASE_MESSAGE_ROOM];
	int n;

	n = snprintf(
		text, sizeof(text), "%" PRIu64 " phase%s", s->phases, s->phases == 1 ? "" : "s");
	if (s->lost)
		n += snprintf(
			text + n, sizeof(text) - (size_t)n, ", %" PRIu64 " markers lost", s->lost);
	if (s->unwritten < 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", not all written: %s",
			s->unwritten == -ETIMEDOUT ? "the disk is too slow"
						   : strerror(-s->unwritten));
	/* What went into a pipe or a device cannot be read again from there. */
	if (!output_is_special(output))
		snprintf(text + n, sizeof(text) - (size_t)n, "; see: jphase report %.300s",
			output->shown);
	send(JPHASE_COLLECTOR_FD, text, strlen(text) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int collect(int argc, char **argv)
{
	static struct session session;
	struct caller caller = { .pid = 0 };
	struct output output = { .fd = -1, .folder = -1 };
	struct stat st;
	int err;

	(void)argv;
	if (argc > 1 || fstat(JPHASE_COLLECTOR_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		say("collect is started by jphase run or by libjphase.so; use jphase run");
		return EXIT_USAGE;
	}
	detach();
	err = meet_caller(&caller);
	if (err < 0)
		refuse(&caller, err, "");
	else
		err = begin(&session, &caller, &output);
	if (err == 0) {
		if (!has_launcher(&caller))
			close(JPHASE_COLLECTOR_FD);
		ask_for_short_turns();
		do
			loop_run(&session);
		while (loop_linger(&session));
		if (has_launcher(&caller))
			tell_launcher(&session, &output);
	}
	session_end(&session);
	free(caller.command);
	output_close(&output);
	return err < 0 ? EXIT_FAILED : EXIT_OK;
}

static const struct opt no_opts[] = { OPT_END };

const struct command cmd_collect = {
	.name = "collect",
	.usage = "",
	.summary = "Own the counters of a session",
	.opts = no_opts,
	.run = collect,
	.hidden = true,
};
