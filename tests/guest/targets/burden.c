/* SPDX-License-Identifier: MIT */
/*
 * burden DEED=AMOUNT...: one phase for each, called like the deed.
 *
 *	memory=MIB   touches so much memory, and keeps it
 *	burst=MIB    touches so much memory, and gives it back
 *	write=KIB    writes so much to the disk, past the page cache
 *	read=KIB     reads so much
 *	idle=MS      sleeps so long
 *	spin=MS      computes until that much time of a CPU has been used
 *	hold=COUNT   starts so many children, then ends them
 *	exceed=MIB   a child that touches so much memory, and is killed for it
 *	remove=0     removes its own cgroup, once all in it have moved to the root
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define DISK      "/dev/vda"
#define GROUPS    "/sys/fs/cgroup"
#define BLOCK     (64u << 10)
#define HOLD_MAX  64
#define SETTLE_US 30000

static void fail(const char *what)
{
	perror(what);
	exit(99);
}

static char *memory_of(unsigned mib)
{
	size_t size = (size_t)mib << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, size, MADV_NOHUGEPAGE);
	memset(memory, 1, size);
	return memory;
}

static void touch(unsigned mib)
{
	memory_of(mib);
}

static void burst(unsigned mib)
{
	munmap(memory_of(mib), (size_t)mib << 20);
	usleep(SETTLE_US);
}

static void transfer(unsigned kib, int flags)
{
	void *block = aligned_alloc(4096, BLOCK);
	int fd = open(DISK, flags | O_DIRECT | O_CLOEXEC);

	if (!block || fd < 0)
		fail(DISK);
	memset(block, 7, BLOCK);
	for (unsigned i = 0; i < kib / (BLOCK >> 10); i++)
		if ((flags == O_WRONLY ? write(fd, block, BLOCK) : read(fd, block, BLOCK)) != BLOCK)
			fail(DISK);
	close(fd);
	free(block);
}

static void do_write(unsigned kib)
{
	transfer(kib, O_WRONLY);
}

static void do_read(unsigned kib)
{
	transfer(kib, O_RDONLY);
}

static long used_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void do_spin(unsigned ms)
{
	long end = used_ms() + (long)ms;

	while (used_ms() < end)
		for (volatile int i = 0; i < 1000; i++)
			continue;
}

static void do_idle(unsigned ms)
{
	usleep(ms * 1000);
}

static void do_hold(unsigned count)
{
	pid_t child[HOLD_MAX];

	for (unsigned i = 0; i < count && i < HOLD_MAX; i++) {
		child[i] = fork();
		if (child[i] < 0)
			fail("fork");
		if (child[i] == 0)
			for (;;)
				pause();
	}
	usleep(5 * SETTLE_US);
	for (unsigned i = 0; i < count && i < HOLD_MAX; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
}

static void do_exceed(unsigned mib)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		touch(mib);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		exit(98);
}

/* What is in the group besides is moved as well. */
static void do_remove(unsigned unused)
{
	char group[256] = GROUPS, path[300];
	FILE *own = fopen("/proc/self/cgroup", "re"), *root, *members;
	int pid;

	(void)unused;
	if (!own || fscanf(own, "0::%200s", group + strlen(GROUPS)) != 1)
		fail("/proc/self/cgroup");
	fclose(own);
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	members = fopen(path, "re");
	root = fopen(GROUPS "/cgroup.procs", "we");
	if (!members || !root)
		fail(path);
	while (fscanf(members, "%d", &pid) == 1)
		if (fprintf(root, "%d\n", pid) < 0 || fflush(root) != 0)
			fail("cgroup.procs");
	fclose(members);
	fclose(root);
	if (rmdir(group) < 0)
		fail(group);
	usleep(SETTLE_US);
}

static const struct {
	const char *name;
	void (*run)(unsigned amount);
} deeds[] = {
	{ "memory", touch },
	{ "burst", burst },
	{ "write", do_write },
	{ "read", do_read },
	{ "idle", do_idle },
	{ "spin", do_spin },
	{ "hold", do_hold },
	{ "exceed", do_exceed },
	{ "remove", do_remove },
};

static void run(const char *word)
{
	size_t length = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		if (strlen(deeds[i].name) != length || strncmp(deeds[i].name, word, length) != 0)
			continue;
		joule_phase(deeds[i].name);
		/* Files of the kernel are read a little after the boundary. */
		usleep(SETTLE_US);
		deeds[i].run((unsigned)atoi(word + length + 1));
		return;
	}
	exit(2);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	joule_phase("finish");
	usleep(SETTLE_US);
	return 0;
}
