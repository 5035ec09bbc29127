/* SPDX-License-Identifier: MIT */
/*
 * nosy: prints all that a program can find out about its own process, at its
 * start, while it marks and at its end.  Whoever watches it must not show.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

extern char **environ;

/* Pipes and sockets differ from run to run by their numbers. */
static void print_descriptor(int fd)
{
	char path[64], to[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n < 0 ? 0 : n] = '\0';
	to[strcspn(to, "[")] = '\0';
	printf("descriptor %d: %s, flags %x, status %x\n", fd, to, fcntl(fd, F_GETFD),
		fcntl(fd, F_GETFL));
}

static void print_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			print_descriptor(fd);
}

static void print_signals(void)
{
	sigset_t blocked, pending;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigpending(&pending);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction sa;

		if (sigaction(i, NULL, &sa) < 0)
			continue;
		if (sa.sa_handler != SIG_DFL)
			printf("signal %d: %s\n", i,
				sa.sa_handler == SIG_IGN ? "ignored" : "handled");
		if (sigismember(&blocked, i))
			printf("signal %d: blocked\n", i);
		if (sigismember(&pending, i))
			printf("signal %d: pending\n", i);
	}
}

static int children;

static void print_children(void)
{
	struct rusage usage;
	int status = 0;
	pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

	printf("wait: %s\n", pid < 0 ? strerror(errno) : "a child");
	/* A child of its own costs more or less each time. */
	if (children)
		return;
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("children: %ld kB, %ld faults, %ld switches, %ld us\n", usage.ru_maxrss,
		usage.ru_minflt, usage.ru_nvcsw,
		(long)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

/* What was put there to start the measuring, and for the children, is known. */
static void print_environment(void)
{
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0 && strncmp(*e, "JPHASE_", 7) != 0)
			printf("environment: %s\n", *e);
}

static void print_limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
			printf("limit %d: %llx %llx\n", i, (unsigned long long)limit.rlim_cur,
				(unsigned long long)limit.rlim_max);
	}
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count - 2;
}

static void print_process(void)
{
	int reaper = -1, death = -1;
	struct itimerval timer;
	mode_t mask = umask(0);
	char dir[4096];
	cpu_set_t cpus;

	umask(mask);
	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	prctl(PR_GET_PDEATHSIG, &death);
	getitimer(ITIMER_REAL, &timer);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	printf("folder %s, umask %o\n", getcwd(dir, sizeof(dir)), mask);
	printf("ids %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
	printf("leads its session: %d\n", getsid(0) == getpid());
	printf("policy %d, nice %d, cpus %d\n", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0),
		CPU_COUNT(&cpus));
	printf("dumpable %d, no new privileges %d, reaper %d, death signal %d, slack %d\n",
		prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), reaper, death,
		prctl(PR_GET_TIMERSLACK));
	printf("timer %ld, threads %d\n", (long)timer.it_value.tv_sec, count_threads());
}

static void look(const char *when)
{
	printf("-- %s, errno %d\n", when, errno);
	print_descriptors();
	print_signals();
	print_children();
	print_environment();
	print_limits();
	print_process();
	errno = 0;
}

static void look_last(void)
{
	look("at exit");
}

int main(void)
{
	pid_t pid;
	int status = 0; /* so it stays where children are not waited for */

	atexit(look_last);
	look("at the start");
	joule_phase("one");
	look("after a marker");
	fflush(stdout);
	pid = fork();
	children += pid > 0;
	if (pid == 0) {
		joule_phase("child");
		look("in a child");
		fflush(stdout);
		_exit(3);
	}
	printf("my child: %d", waitpid(pid, &status, 0) == pid);
	printf(", status %d\n", WEXITSTATUS(status));
	printf("no other: %d\n", wait(NULL) < 0 && errno == ECHILD);
	return 0;
}
