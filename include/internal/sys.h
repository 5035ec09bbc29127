/* SPDX-License-Identifier: MIT */
/*
 * System calls that return their error as -errno.  Above this header nobody
 * reads errno.  Calls that are newer than glibc 2.17 are made directly.
 */
#ifndef INTERNAL_SYS_H
#define INTERNAL_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "internal/util.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define SYS_RESULT(call)                                                                           \
	({                                                                                         \
		__typeof__(call) result_ = (call);                                                 \
		result_ < 0 ? -errno : result_;                                                    \
	})

static inline int sys_open(const char *path, int flags, mode_t mode)
{
	return SYS_RESULT(open(path, flags | O_CLOEXEC, mode));
}

static inline int sys_openat(int dir, const char *path, int flags)
{
	return SYS_RESULT(openat(dir, path, flags | O_CLOEXEC));
}

static inline int sys_open_dir(const char *path)
{
	return SYS_RESULT(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static inline ssize_t sys_read(int fd, void *buf, size_t size)
{
	return SYS_RESULT(read(fd, buf, size));
}

static inline ssize_t sys_pread(int fd, void *buf, size_t size, off_t offset)
{
	return SYS_RESULT(pread(fd, buf, size, offset));
}

/* Closes fd unless it is negative; returns -1, to be stored in its place. */
static inline int sys_close(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Sealable shared memory; noexec where the kernel knows it (6.3). */
static inline int sys_memfd(const char *name)
{
	int fd = (int)SYS_RESULT(
		syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));

	if (fd != -EINVAL)
		return fd;
	return (int)SYS_RESULT(syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

static inline int sys_pidfd_open(pid_t pid)
{
	return (int)SYS_RESULT(syscall(SYS_pidfd_open, pid, 0));
}

/* Of the process that connected (6.5): -ESRCH or -EINVAL if it is gone. */
static inline int sys_peer_pidfd(int socket)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0)
		return -errno;
	return fd;
}

static inline pid_t sys_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/*
 * Sleeps while *word is value, until woken or for at most timeout_ns
 * (UINT64_MAX: no limit).  0, or -EAGAIN, -EINTR, -ETIMEDOUT.
 */
static inline int sys_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns)
{
	const struct timespec ts = ns_timespec(timeout_ns);

	return (int)SYS_RESULT(syscall(SYS_futex, word, FUTEX_WAIT, value,
		timeout_ns == UINT64_MAX ? NULL : &ts, NULL, 0));
}

static inline int sys_futex_wake(void *word, int waiters)
{
	return (int)SYS_RESULT(syscall(SYS_futex, word, FUTEX_WAKE, waiters, NULL, NULL, 0));
}

/*
 * Wakes one that sleeps on rung, then sys_futex_wait.  Who is woken may run
 * before the wait is reached or after: on the named processors no more than
 * four instructions lie between the two.
 */
static inline int sys_futex_wake_wait(
	void *rung, const void *word, uint32_t value, uint64_t timeout_ns)
{
	const struct timespec ts = ns_timespec(timeout_ns),
			      *limit = timeout_ns == UINT64_MAX ? NULL : &ts;
#if defined(__x86_64__) && defined(__LP64__)
	register const struct timespec *timeout __asm__("r10") = limit;
	long result = SYS_futex, operation = FUTEX_WAKE, count = 1;

	__asm__ volatile("syscall\n\t"
			 "movl %[call], %%eax\n\t"
			 "movq %[word], %%rdi\n\t"
			 "movl %[wait], %%esi\n\t"
			 "movl %[value], %%edx\n\t"
			 "syscall"
			 : "+&a"(result), "+&D"(rung), "+&S"(operation), "+&d"(count)
			 : "r"(timeout), [call] "i"(SYS_futex), [wait] "i"(FUTEX_WAIT),
			 [word] "r"(word), [value] "r"(value)
			 : "rcx", "r11", "cc", "memory");
	return (int)result;
#elif defined(__aarch64__)
	register long result __asm__("x0") = (long)rung, operation __asm__("x1") = FUTEX_WAKE,
			     count __asm__("x2") = 1, call __asm__("x8") = SYS_futex;
	register const struct timespec *timeout __asm__("x3") = limit;

	__asm__ volatile(
		"svc #0\n\t"
		"mov x0, %[word]\n\t"
		"mov x1, %[wait]\n\t"
		"mov w2, %w[value]\n\t"
		"svc #0"
		: "+&r"(result), "+&r"(call), "+&r"(operation), "+&r"(count)
		: "r"(timeout), [wait] "i"(FUTEX_WAIT), [word] "r"(word), [value] "r"(value)
		: "cc", "memory");
	return (int)result;
#else
	sys_futex_wake(rung, 1);
	return (int)SYS_RESULT(syscall(SYS_futex, word, FUTEX_WAIT, value, limit, NULL, 0));
#endif
}

#endif
