/* SPDX-License-Identifier: MIT */
/*
 * sandbox filter|strict: marks before and behind a system call filter that
 * kills on everything a computing program does not need itself.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define STEPS 20

#if defined(__x86_64__)
#define OWN_AUDIT AUDIT_ARCH_X86_64
#else
#define OWN_AUDIT AUDIT_ARCH_AARCH64
#endif

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

static const int allowed[] = { SYS_futex, SYS_restart_syscall, SYS_write, SYS_exit, SYS_exit_group,
	SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk };

#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static int filter(void)
{
	struct sock_filter code[4 + 2 * ALLOWED];
	struct sock_fprog program = { .filter = code };
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ALLOWED; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(99);
}

static void steps(const char *name)
{
	for (int i = 0; i < STEPS; i++)
		joule_phase(name);
}

/* A thread that is older than the filter, and one that has never marked before. */
static pthread_barrier_t begun, caged;

static void *older_thread(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&caged);
	steps("thread");
	say("thread\n");
	return NULL;
}

int main(int argc, char **argv)
{
	int strict = argc > 1 && strcmp(argv[1], "strict") == 0;
	pthread_t thread;

	joule_phase("before");
	if (strict) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		steps("caged");
		say("caged\n");
		syscall(SYS_exit, 0);
	}
	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&caged, NULL, 2);
	if (pthread_create(&thread, NULL, older_thread, NULL) != 0)
		return 99;
	pthread_barrier_wait(&begun);
	/* The child's filter is its own: its first marker comes behind it. */
	if (fork() == 0) {
		if (filter() < 0)
			_exit(99);
		steps("child");
		say("child\n");
		_exit(0);
	}
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == 0 || filter() < 0)
		return 99;
	pthread_barrier_wait(&caged);
	steps("caged");
	say("caged\n");
	pthread_join(thread, NULL);
	_exit(0);
}
