/* SPDX-License-Identifier: MIT */
/* Constructor, destructor and the public functions. */
#include "shim.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal/name.h"
#include "internal/sys.h"
#include "internal/util.h"

#define JPHASE_DECLARE_ONLY
#include "jphase/jphase.h"

static_assert(JPHASE_NAME_BYTES == NAME_MAX_BYTES, "programs are told how long names may be");

#define PUBLIC __attribute__((visibility("default")))

struct shim shim;

/* One line, by the first process alone: why nothing is measured. */
static void explain(int err, const struct jphase_welcome *welcome)
{
	char line[256];
	struct text t = { .buf = line, .room = sizeof(line) };

	if (welcome->message[0]) {
		complain(welcome->message);
		return;
	}
	switch (err) {
	case -ENOENT:
		text_add(&t, "not measuring: no collector beside libjphase.so; "
			     "set JPHASE_COLLECTOR to the jphase program");
		break;
	case -ETIMEDOUT:
		text_add(&t, "not measuring: the collector did not answer within 2 seconds");
		break;
	case -EPIPE:
		text_add(&t, "not measuring: the collector ended without an answer; try jphase "
			     "doctor");
		break;
	case -EPROTO:
		text_add(&t, "not measuring: the collector and libjphase.so are of different "
			     "versions; install both from one build");
		break;
	default:
		text_add(&t, "not measuring: the collector could not be started (error ");
		text_add_number(&t, -err);
		text_add(&t, "); try jphase doctor");
	}
	complain(line);
}

static int join_session(const struct shim_config *config, struct jphase_welcome *welcome)
{
	bool first = config->session[0] == JPHASE_SESSION_FIRST;
	struct handshake h = {
		.socket = -1,
		.deadline_ns = now_ns() + (first ? REGISTER_FIRST_WAIT_NS : REGISTER_OTHER_WAIT_NS),
	};
	int err;

	err = handshake_connect(config->session + first, &h);
	if (err < 0)
		return err;
	err = handshake_run(&h, welcome);
	sys_close(h.socket);
	return err;
}

static int start_session(const struct shim_config *config, struct jphase_welcome *welcome)
{
	struct handshake h = { .deadline_ns = now_ns() + REGISTER_FIRST_WAIT_NS };
	int err;

	/* It would be the collector's parent and hang in wait(). */
	if (getpid() == 1) {
		if (config_told())
			return -EPERM;
		complain("not measuring: process 1 cannot start a collector of its own; "
			 "use jphase run");
		return -EPERM;
	}
	h.socket = spawn_collector(config);
	if (h.socket < 0) {
		explain(h.socket, welcome);
		return h.socket;
	}
	err = handshake_run(&h, welcome);
	sys_close(h.socket);
	if (err < 0)
		explain(err, welcome);
	else if (welcome->message[0])
		complain(welcome->message);
	return err;
}

static void register_process(const struct shim_config *config)
{
	static struct jphase_welcome welcome;
	int err;

	if (config->session)
		err = join_session(config, &welcome);
	else if (config->preloaded)
		err = start_session(config, &welcome);
	else
		return;
	if (err < 0)
		return;
	config_pass_on(config, welcome.session);
	signals_install(&welcome);
}

/*
 * Lines of standard output are markers: they must not wait for others.  Only
 * where it is the pipe that is looked at; whoever buffers by himself is late.
 */
static void pass_lines_on(void)
{
	struct stat st;

	/* The library's own function is too new. */
	if (shim.ring && shim.page->output_inode && syscall(SYS_fstat, STDOUT_FILENO, &st) == 0 &&
		st.st_dev == shim.page->output_device && st.st_ino == shim.page->output_inode)
		setvbuf(stdout, NULL, _IOLBF, 0);
}

__attribute__((constructor)) static void begin(void)
{
	static struct shim_config config;
	int saved_errno = errno;
	sigset_t all, before;

	if (!config_read(&config))
		return;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	register_process(&config);
	pass_lines_on();
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved_errno;
}

/* A forked child that ends here was not the one that registered. */
__attribute__((destructor)) static void end(void)
{
	int saved_errno = errno;

	if (!shim.ring || atomic_load(&shim.guard->pid) != shim.registered)
		return;
	if (shim.first)
		signals_check();
	if (shim.first || atomic_load(&shim.marked))
		emit_exit(shim.first);
	errno = saved_errno;
}

/* The functions below: any thread, any signal context.  No locks, no allocation. */

PUBLIC void joule_phase(const char *name)
{
	emit(&(struct marker){ .kind = JPHASE_PHASE, .name = name });
}

PUBLIC void joule_begin(const char *name)
{
	emit(&(struct marker){ .kind = JPHASE_BEGIN, .name = name });
}

PUBLIC void joule_end(const char *name)
{
	emit(&(struct marker){ .kind = JPHASE_END, .name = name });
}

PUBLIC void joule_mark(const char *name)
{
	emit(&(struct marker){ .kind = JPHASE_MARK, .name = name });
}

PUBLIC void joule_value(const char *name, double amount)
{
	emit(&(struct marker){ .kind = JPHASE_VALUE, .name = name, .value = amount });
}

PUBLIC int joule_active(void)
{
	return shim.ring && !collector_is_gone();
}
