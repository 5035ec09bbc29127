/* SPDX-License-Identifier: MIT */
/*
 * act DEED...: does one thing after the other, each "NAME" or "NAME=ARGUMENT".
 * What stands between "fork" and "join" is done by a child; the parent waits
 * for it there, and prints its status where it is not 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jphase/jphase.h>

static char **deeds; /* the one being done, then the rest */

static void fail(const char *what)
{
	perror(what);
	exit(99);
}

static void do_touch(const char *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size_t)atol(arg);
	char *memory = mmap(
		NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, pages * page, MADV_NOHUGEPAGE) < 0)
		fail("touch");
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
}

/* Without a flush: what is printed comes out at exit, or never. */
static void do_print(const char *arg)
{
	puts(arg);
}

static void do_error(const char *arg)
{
	fprintf(stderr, "%s\n", arg);
}

static void do_flush(const char *arg)
{
	(void)arg;
	fflush(NULL);
}

static void do_sleep(const char *arg)
{
	struct timespec ts = { atol(arg) / 1000, atol(arg) % 1000 * 1000000 };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		continue;
}

static void do_spin(const char *arg)
{
	clock_t until = clock() + atol(arg) * (CLOCKS_PER_SEC / 1000);

	while (clock() < until)
		continue;
}

static void do_exit(const char *arg)
{
	exit(atoi(arg));
}

static void do_exit_at_once(const char *arg)
{
	_exit(atoi(arg));
}

static void do_raise(const char *arg)
{
	raise(atoi(arg));
}

static void do_ignore(const char *arg)
{
	signal(atoi(arg), SIG_IGN);
}

static void do_block(const char *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, atoi(arg));
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Prints the signals that it gets while it waits for the last of them. */
static void do_await(const char *arg)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	for (const char *s = arg; s; s = strchr(s, ','), s += !!s)
		sigaddset(&set, atoi(s));
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("ready");
	fflush(stdout);
	for (const char *s = arg; s; s = strchr(s, ','), s += !!s)
		if (sigwait(&set, &got) == 0)
			printf("got %d\n", got);
}

static void do_close(const char *arg)
{
	if (strcmp(arg, "all") != 0) {
		close(atoi(arg));
		return;
	}
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
}

static void do_write(const char *arg)
{
	FILE *f = fopen(arg, "w");

	if (!f || fputs("here\n", f) < 0 || fclose(f) != 0)
		_exit(98);
}

static void do_chdir(const char *arg)
{
	if (chdir(arg) < 0)
		fail(arg);
}

static void do_chroot(const char *arg)
{
	if (chroot(arg) < 0 || chdir("/") < 0)
		fail(arg);
}

static void do_setsid(const char *arg)
{
	(void)arg;
	setsid();
}

/* As a daemon does it: the first process ends, what follows is the grandchild's. */
static void do_daemonise(const char *arg)
{
	(void)arg;
	if (fork() > 0)
		_exit(0);
	setsid();
	if (fork() > 0)
		_exit(0);
	if (chdir("/") < 0)
		_exit(97);
	umask(0);
	do_close("all");
}

static bool in_child;

static void do_fork(const char *arg)
{
	pid_t pid;

	(void)arg;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		fail("fork");
	in_child = pid == 0;
	while (pid && deeds[1] && strcmp(deeds[1], "join") != 0)
		deeds++;
}

static void do_join(const char *arg)
{
	int status;

	(void)arg;
	if (in_child) {
		fflush(NULL);
		_exit(0);
	}
	if (wait(&status) < 0)
		fail("join");
	if (status)
		printf("child: %d\n", status);
}

static void do_system(const char *arg)
{
	int status = system(arg);

	if (status)
		printf("system: %d\n", status);
}

static void do_exec(const char *arg)
{
	char **argv = deeds;

	argv[0] = (char *)(uintptr_t)arg;
	fflush(NULL);
	execvp(arg, argv);
	fail(arg);
}

static void do_clearenv(const char *arg)
{
	(void)arg;
	clearenv();
}

static void do_nofile(const char *arg)
{
	struct rlimit limit = { (rlim_t)atol(arg), (rlim_t)atol(arg) };

	setrlimit(RLIMIT_NOFILE, &limit);
}

static void do_subreaper(const char *arg)
{
	prctl(PR_SET_CHILD_SUBREAPER, atol(arg), 0, 0, 0);
}

static void do_wait(const char *arg)
{
	pid_t pid;

	(void)arg;
	do
		pid = wait(NULL);
	while (pid > 0);
	printf("wait: %s\n", strerror(errno));
}

/* A child that has ended and that nobody has waited for. */
static void do_leave(const char *arg)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(atoi(arg));
	if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
		fail("leave");
}

static void do_collect(const char *arg)
{
	int status;

	(void)arg;
	if (wait(&status) < 0)
		fail("collect");
	printf("child: %d\n", WEXITSTATUS(status));
}

/* "N" phases at once; "N,MS": that far apart.  Prints how long the slowest took, and all. */
static void do_phases(const char *arg)
{
	const char *pause = strchr(arg, ',');
	double worst = 0, all = 0;
	struct timespec a, b;

	for (long i = 0, n = atol(arg); i < n; i++) {
		double took;

		clock_gettime(CLOCK_MONOTONIC, &a);
		joule_phase("step");
		clock_gettime(CLOCK_MONOTONIC, &b);
		took = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		worst = took > worst ? took : worst;
		all += took;
		if (pause)
			do_sleep(pause + 1);
	}
	fprintf(stderr, "slowest %.0f ms, all %.0f ms\n", worst, all);
}

static void *mark_once(void *name)
{
	joule_phase(name);
	return NULL;
}

static void do_threads(const char *arg)
{
	for (long left = atol(arg); left > 0; left -= 50) {
		pthread_t thread[50];
		int n = left < 50 ? (int)left : 50;

		for (int i = 0; i < n; i++)
			if (pthread_create(
				    &thread[i], NULL, mark_once, (void *)(uintptr_t) "thread"))
				fail("thread");
		for (int i = 0; i < n; i++)
			pthread_join(thread[i], NULL);
	}
}

static void mark_as_child(void)
{
	joule_phase("child");
}

static void mark_by_pid(void)
{
	char name[32];

	snprintf(name, sizeof(name), "pid %d", getpid());
	joule_phase(name);
}

/* Children that mark once and end, four at a time. */
static void start_children(long n, void (*mark)(void))
{
	long started = 0, ended = 0, wrong = 0;
	int status;

	fflush(NULL);
	while (ended < n) {
		if (started < n && started - ended < 4) {
			pid_t pid = fork();

			if (pid == 0) {
				mark();
				_exit(0);
			}
			started += pid > 0;
			continue;
		}
		if (wait(&status) < 0)
			fail("wait");
		ended++;
		wrong += status != 0;
	}
	printf("%ld children, %ld failed\n", ended, wrong);
}

/* The session's address goes to that file. */
static void do_session(const char *arg)
{
	const char *session = getenv("JPHASE_SESSION");
	FILE *f = fopen(".session", "w");

	if (!f || fputs(session ? session : "", f) < 0 || fclose(f) != 0 ||
		rename(".session", arg) < 0)
		fail(arg);
}

/* Until standard input ends. */
static void do_input(const char *arg)
{
	char rest[256];

	(void)arg;
	fflush(NULL);
	while (read(0, rest, sizeof(rest)) > 0)
		continue;
}

/* What a session leaves in this process: memory and descriptors. */
static void do_inside(const char *arg)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int shared = 0, descriptors = 0;
	char line[512];

	(void)arg;
	while (maps && fgets(line, sizeof(line), maps))
		shared += strstr(line, "memfd:") != NULL;
	if (maps)
		fclose(maps);
	for (int fd = 0; fd < 1024; fd++)
		descriptors += fcntl(fd, F_GETFD) >= 0;
	printf("%d shared, %d descriptors\n", shared, descriptors);
}

static void do_children(const char *arg)
{
	start_children(atol(arg), mark_as_child);
}

static void do_forks(const char *arg)
{
	start_children(atol(arg), mark_by_pid);
}

static void do_phase(const char *arg)
{
	joule_phase(arg);
}

static void do_pid(const char *arg)
{
	(void)arg;
	printf("pid %d\n", getpid());
}

static const struct {
	const char *name;
	void (*deed)(const char *arg);
} table[] = {
	{ "phase", do_phase },
	{ "touch", do_touch },
	{ "print", do_print },
	{ "error", do_error },
	{ "flush", do_flush },
	{ "sleep", do_sleep },
	{ "spin", do_spin },
	{ "exit", do_exit },
	{ "_exit", do_exit_at_once },
	{ "raise", do_raise },
	{ "block", do_block },
	{ "ignore", do_ignore },
	{ "await", do_await },
	{ "close", do_close },
	{ "write", do_write },
	{ "chdir", do_chdir },
	{ "chroot", do_chroot },
	{ "setsid", do_setsid },
	{ "daemonise", do_daemonise },
	{ "fork", do_fork },
	{ "join", do_join },
	{ "exec", do_exec },
	{ "clearenv", do_clearenv },
	{ "nofile", do_nofile },
	{ "subreaper", do_subreaper },
	{ "wait", do_wait },
	{ "leave", do_leave },
	{ "collect", do_collect },
	{ "phases", do_phases },
	{ "threads", do_threads },
	{ "children", do_children },
	{ "forks", do_forks },
	{ "pid", do_pid },
	{ "session", do_session },
	{ "input", do_input },
	{ "inside", do_inside },
	{ "system", do_system },
};

static void act(const char *word)
{
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].name) == length && strncmp(table[i].name, word, length) == 0) {
			table[i].deed(word[length] ? word + length + 1 : "");
			return;
		}
	fprintf(stderr, "no such deed: %s\n", word);
	exit(99);
}

int main(int argc, char **argv)
{
	(void)argc;
	for (deeds = argv + 1; *deeds; deeds++)
		act(*deeds);
	return 0;
}
