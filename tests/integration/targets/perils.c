/* SPDX-License-Identifier: MIT */
/*
 * perils WHAT: marks where a library in its place could go wrong, and prints what came of it.
 * WHAT is a name in the table below.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define THREADS 16
#define STEPS   50
#define SIGNALS 3000
#define TOKENS  3

extern char **environ;

static char self[4096];

static void rest_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		continue;
}

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(99);
}

static void await(pid_t child, const char *how)
{
	int status = -1;

	must(child > 0 && waitpid(child, &status, 0) == child, how);
	printf("%s: %d\n", how, status);
}

/* --- processes --- */

static void peril_vfork(void)
{
	char *argv[] = { self, (char *)"mark", NULL };
	volatile pid_t child = vfork();

	if (child == 0) {
		joule_phase("child");
		execv(self, argv);
		_exit(1);
	}
	await(child, "vfork");
}

static void peril_spawn(void)
{
	char *argv[] = { self, (char *)"mark", NULL };
	pid_t child = 0;

	must(posix_spawn(&child, self, NULL, NULL, argv, environ) == 0, "posix_spawn");
	await(child, "posix_spawn");
}

/* The C library knows nothing of it, nor does its copy of the thread's descriptor. */
static void peril_clone(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0) {
		joule_phase("child");
		syscall(SYS_exit_group, 7);
	}
	await(child, "clone");
}

static void peril_mark(void)
{
	joule_phase("child");
}

/* What a job server's clients hold is all there at the end. */
static void peril_tokens(void)
{
	int ends[2], left = 0;
	char token;

	must(pipe(ends) == 0 && write(ends[1], "+++", TOKENS) == TOKENS, "pipe");
	for (int i = 0; i < TOKENS; i++) {
		pid_t child = fork();

		if (child == 0) {
			if (read(ends[0], &token, 1) != 1)
				_exit(1);
			joule_phase("child");
			_exit(write(ends[1], &token, 1) != 1);
		}
		await(child, "client");
	}
	close(ends[1]);
	while (read(ends[0], &token, 1) == 1)
		left++;
	printf("%d tokens\n", left);
}

/* --- threads --- */

static pthread_t thread[THREADS];
static pthread_barrier_t begun;

static void start_threads(void *(*body)(void *data))
{
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_create(&thread[i], NULL, body, NULL) == 0, "pthread_create");
}

static void join_threads(void)
{
	int canceled = 0;
	void *result;

	for (size_t i = 0; i < THREADS; i++) {
		must(pthread_join(thread[i], &result) == 0, "pthread_join");
		canceled += result == PTHREAD_CANCELED;
	}
	printf("%d threads canceled\n", canceled);
}

static void *mark_after_barrier(void *data)
{
	pthread_barrier_wait(&begun);
	for (int i = 0; i < STEPS; i++)
		joule_phase("child");
	return data;
}

/* They are older than the first marker. */
static void peril_older(void)
{
	pthread_barrier_init(&begun, NULL, THREADS + 1);
	start_threads(mark_after_barrier);
	joule_phase("first");
	pthread_barrier_wait(&begun);
	join_threads();
}

static void *mark_once(void *data)
{
	joule_begin("region");
	joule_phase("child");
	return data;
}

/* Each ends within its region, between the markers of others. */
static void peril_brief(void)
{
	for (int i = 0; i < 5; i++) {
		start_threads(mark_once);
		join_threads();
	}
}

static void *mark_forever(void *data)
{
	must(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0, "setcanceltype");
	for (;;)
		joule_phase("child");
	return data;
}

static void peril_cancel(void)
{
	start_threads(mark_forever);
	rest_ms(50);
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_cancel(thread[i]) == 0, "pthread_cancel");
	join_threads();
	/* Whoever was canceled within its marker is in nobody's way for long. */
	rest_ms(1500);
}

static pthread_key_t key;

static void mark_at_end(void *data)
{
	(void)data;
	joule_begin("destructor");
	joule_phase("child");
	joule_end("destructor");
}

static void *set_key(void *data)
{
	pthread_setspecific(key, &key);
	return data;
}

static void peril_destructors(void)
{
	must(pthread_key_create(&key, mark_at_end) == 0, "pthread_key_create");
	start_threads(set_key);
	join_threads();
}

/* --- signals --- */

static void handle(int number)
{
	(void)number;
	joule_phase("child");
}

static void peril_storm(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	pid_t parent = getpid(), child;
	int status;

	sigaction(SIGUSR1, &action, NULL);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < SIGNALS; i++)
			kill(parent, SIGUSR1);
		_exit(0);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		char *memory = malloc((size_t)rand() % 4000);

		joule_phase("interrupted");
		free(memory);
	}
	printf("storm: %d\n", status);
}

static void peril_blocked(void)
{
	sigset_t all, pending;
	int count = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < STEPS; i++)
		joule_phase("child");
	sigpending(&pending);
	for (int i = 1; i < NSIG; i++)
		count += sigismember(&pending, i) == 1;
	printf("%d signals pending\n", count);
}

static bool is_stopped(pid_t pid)
{
	char path[64], line[512] = "", *after;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		_exit(1);
	fclose(f);
	after = strrchr(line, ')');
	return after && after[1] && after[2] == 'T';
}

/* Whoever tells it to go on tells the whole group, as a shell does. */
static void peril_stopped(void)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		while (!is_stopped(parent))
			rest_ms(5);
		rest_ms(50);
		kill(0, SIGCONT);
		_exit(0);
	}
	joule_phase("child");
	raise(SIGSTOP);
	joule_phase("child");
	await(child, "continued");
}

static void *write_later(void *end)
{
	for (int i = 0; i < STEPS; i++)
		joule_phase("child");
	rest_ms(100);
	must(write(*(int *)end, "x", 1) == 1, "write");
	return NULL;
}

/* Nothing of ours interrupts what it waits for. */
static void peril_waits(void)
{
	const struct timespec nap = { 0, 100000000 };
	pthread_t other;
	int ends[2];
	char byte;

	must(pipe(ends) == 0, "pipe");
	must(pthread_create(&other, NULL, write_later, &ends[1]) == 0, "pthread_create");
	printf("sleep: %d\n", nanosleep(&nap, NULL));
	printf("read: %zd\n", read(ends[0], &byte, 1));
	printf("join: %d\n", pthread_join(other, NULL));
}

static void peril_no_privileges(void)
{
	char *argv[] = { self, (char *)"mark", NULL };
	pid_t child;

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	child = fork();
	if (child == 0) {
		execv(self, argv);
		_exit(1);
	}
	await(child, "no_new_privs");
}

static const struct {
	const char *name;
	void (*peril)(void);
} table[] = {
	{ "vfork", peril_vfork },
	{ "spawn", peril_spawn },
	{ "clone", peril_clone },
	{ "mark", peril_mark },
	{ "tokens", peril_tokens },
	{ "older", peril_older },
	{ "brief", peril_brief },
	{ "cancel", peril_cancel },
	{ "destructors", peril_destructors },
	{ "storm", peril_storm },
	{ "blocked", peril_blocked },
	{ "stopped", peril_stopped },
	{ "waits", peril_waits },
	{ "no_privileges", peril_no_privileges },
};

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	must(n > 0, "/proc/self/exe");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].name, what) != 0)
			continue;
		joule_phase("begin");
		fflush(stdout);
		table[i].peril();
		joule_phase("end");
		return 0;
	}
	fprintf(stderr, "no such peril: %s\n", what);
	return 2;
}
