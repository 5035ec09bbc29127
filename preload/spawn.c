/* SPDX-License-Identifier: MIT */
/*
 * Starts the collector as a detached grandchild.  Both clones share our memory
 * and stop us until the exec, and the middle one has no exit signal, or one
 * that is ignored, so that no SIGCHLD is ever pending and no wait() of the
 * program sees a child.
 */
#include "shim.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/sys.h"
#include "internal/util.h"

#define STACK_BYTES (32u << 10)

struct launch {
	const char *path;
	char **environment;
	int socket;
	int error; /* of the exec, written by the grandchild into our memory */
	char *inner_stack;
};

static bool is_there(const char *path)
{
	return access(path, X_OK) == 0;
}

/* Beside the library in the build tree, else where `make install` puts it. */
static bool find_collector(const struct shim_config *config, char path[SHIM_PATH_ROOM])
{
	static const char *const places[] = { "jphase", "../bin/jphase", "../../bin/jphase" };
	const char *slash = strrchr(config->path, '/');
	struct text t = { .buf = path, .room = SHIM_PATH_ROOM };

	if (config->collector && config->collector[0]) {
		text_add(&t, config->collector);
		return is_there(path);
	}
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		size_t dir = (size_t)(slash - config->path) + 1;

		memcpy(path, config->path, dir);
		t.used = dir;
		path[dir] = '\0';
		text_add(&t, places[i]);
		if (is_there(path))
			return true;
	}
	return false;
}

/* The environment without LD_PRELOAD: the collector is not a target. */
static size_t fill_environment(char **list)
{
	size_t kept = 0;

	for (size_t i = 0; environ && environ[i]; i++)
		if (!str_starts(environ[i], "LD_PRELOAD="))
			list[kept++] = environ[i];
	list[kept] = NULL;
	return kept;
}

/* Grandchild: shares our memory, has descriptors of its own. */
static int run_collector(void *data)
{
	struct launch *launch = data;
	char *argv[] = { (char *)"jphase", (char *)"collect", NULL };

	if (launch->socket == JPHASE_COLLECTOR_FD)
		fcntl(JPHASE_COLLECTOR_FD, F_SETFD, 0);
	else
		dup2(launch->socket, JPHASE_COLLECTOR_FD);
	execve(launch->path, argv, launch->environment);
	launch->error = -errno;
	_exit(127);
}

static int run_middle(void *data)
{
	struct launch *launch = data;

	if (clone(run_collector, launch->inner_stack + STACK_BYTES, CLONE_VM | CLONE_VFORK,
		    launch) < 0)
		launch->error = -errno;
	_exit(0);
}

/*
 * Where the program has no children whose status it might want, SIGCHLD is
 * ignored meanwhile: then the middle process does not even show in the
 * program's getrusage(RUSAGE_CHILDREN).
 */
static bool ignore_children(struct sigaction *ret_before)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t pending;
	siginfo_t info;

	/* Only looked at: before an exec the program may have had children, whose status it wants. */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD)
		return false;
	sigemptyset(&pending);
	sigpending(&pending);
	return !sigismember(&pending, SIGCHLD) && sigaction(SIGCHLD, &ignore, ret_before) == 0;
}

static int clone_detached(struct launch *launch, char *stack)
{
	struct sigaction before;
	int subreaper = 0, flags = CLONE_VM | CLONE_VFORK;
	bool ignored;
	pid_t middle;

	/* A subreaper would inherit the collector and meet it in wait(). */
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	if (subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	launch->inner_stack = stack;
	ignored = ignore_children(&before);
	if (ignored)
		flags |= SIGCHLD;
	middle = clone(run_middle, stack + 2 * (size_t)STACK_BYTES, flags, launch);
	if (middle < 0)
		launch->error = -errno;
	else
		while (waitpid(middle, NULL, __WALL) < 0 && errno == EINTR)
			;
	if (ignored)
		sigaction(SIGCHLD, &before, NULL);
	if (subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	return launch->error;
}

/* Constructor only, with all signals blocked. */
int spawn_collector(const struct shim_config *config)
{
	char path[SHIM_PATH_ROOM];
	struct launch launch = { .path = path };
	int pair[2], err;
	size_t count = 0, bytes;
	char *memory;

	if (!find_collector(config, path))
		return -ENOENT;
	while (environ && environ[count])
		count++;
	bytes = 2 * (size_t)STACK_BYTES + (count + 1) * sizeof(char *);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	launch.environment = (char **)(void *)(memory + 2 * (size_t)STACK_BYTES);
	fill_environment(launch.environment);

	err = (int)SYS_RESULT(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	if (err == 0) {
		launch.socket = pair[1];
		err = clone_detached(&launch, memory);
		close(pair[1]);
		if (err < 0)
			close(pair[0]);
	}
	munmap(memory, bytes);
	return err < 0 ? err : pair[0];
}
