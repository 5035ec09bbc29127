/* SPDX-License-Identifier: MIT */
/*
 * Work of a known number of instructions, in phases.
 *
 *	work phases COUNT FIRST STEP   COUNT phases p00000 ... of FIRST, FIRST + STEP, ...
 *	work children COUNT N          a phase "work" with COUNT children of N each
 *	work threads COUNT N           a phase "work" with COUNT threads of N each
 *	work regions COUNT N           a phase "work" with COUNT threads, each with regions "r"
 *	                               of N, 2 N, ... 50 N
 *	work workers COUNT N           children with a phase "work" of their own: N, 2 N, ...
 *	work accesses COUNT N          COUNT phases p00000 ... of N, 2 N, ... writes to
 *	                               0x10000000, and half as many reads
 *	work calls COUNT N             COUNT phases p00000 ... of N, 2 N, ... getppid calls
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

#define PHASES_MAX  20000
#define THREADS_MAX 16
#define NAME_ROOM   8
#define WARM_UPS    10
#define REGIONS     50
#define WATCHED     0x10000000
/* In place of the work that is given. */
#define WARM_UP     500000

/* Exactly that many instructions, an even number, from the first to the last. */
static void run_instructions(uint64_t count)
{
	uint64_t rounds = count / 2;

	__asm__ volatile("1:\n\tsubs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* The names are made before, as to make one costs what its number is like. */
static int run_phases(uint64_t count, uint64_t first, uint64_t step, void (*run)(uint64_t amount))
{
	static char name[PHASES_MAX][NAME_ROOM];

	if (count > PHASES_MAX)
		return 2;
	for (uint64_t i = 0; i < count; i++)
		snprintf(name[i], NAME_ROOM, "p%05u", (unsigned)i);
	/* The collector is busy with a new process for a while. */
	for (int i = 0; i < WARM_UPS; i++) {
		joule_phase("warm-up");
		run_instructions(WARM_UP);
	}
	for (uint64_t i = 0; i < count; i++) {
		joule_phase(name[i]);
		run(first + i * step);
	}
	joule_phase("finish");
	return 0;
}

static int work_phases(char **args)
{
	return run_phases(number(args[0]), number(args[1]), number(args[2]), run_instructions);
}

static void access_watched(uint64_t count)
{
	volatile uint32_t *watched = (volatile uint32_t *)WATCHED;

	for (uint64_t i = 0; i < count; i++)
		*watched = (uint32_t)i;
	for (uint64_t i = 0; i < count / 2; i++)
		(void)*watched;
}

static int work_accesses(char **args)
{
	uint64_t each = number(args[1]);

	if (mmap((void *)WATCHED, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return 1;
	return run_phases(number(args[0]), each, each, access_watched);
}

static void call_kernel(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		syscall(SYS_getppid);
}

static int work_calls(char **args)
{
	uint64_t each = number(args[1]);

	return run_phases(number(args[0]), each, each, call_kernel);
}

static int wait_all(void)
{
	int status, failed = 0;

	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

static int work_children(char **args)
{
	uint64_t count = number(args[0]), instructions = number(args[1]);
	int failed;

	joule_phase("work");
	for (uint64_t i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			run_instructions(instructions);
			_exit(0);
		}
	}
	failed = wait_all();
	joule_phase("finish");
	return failed;
}

static void *thread_main(void *instructions)
{
	run_instructions(*(uint64_t *)instructions);
	return NULL;
}

static void *regions_main(void *instructions)
{
	for (uint64_t i = 1; i <= REGIONS; i++) {
		joule_begin("r");
		run_instructions(i * *(uint64_t *)instructions);
		joule_end("r");
	}
	return NULL;
}

static int work_on_threads(char **args, void *(*main_of_thread)(void *))
{
	uint64_t count = number(args[0]), instructions = number(args[1]);
	pthread_t thread[THREADS_MAX];

	if (count > THREADS_MAX)
		return 2;
	joule_phase("work");
	for (uint64_t i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, main_of_thread, &instructions) != 0)
			return 1;
	for (uint64_t i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	joule_phase("finish");
	return 0;
}

static int work_threads(char **args)
{
	return work_on_threads(args, thread_main);
}

static int work_regions(char **args)
{
	return work_on_threads(args, regions_main);
}

static int work_workers(char **args)
{
	uint64_t count = number(args[0]), instructions = number(args[1]);
	int failed;

	joule_phase("workers");
	for (uint64_t i = 1; i <= count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			/* The counters of a forked child begin at its first marker. */
			joule_phase("ready");
			joule_phase("work");
			run_instructions(i * instructions);
			joule_phase("finish");
			_exit(0);
		}
	}
	failed = wait_all();
	joule_phase("finish");
	return failed;
}

static const struct {
	const char *name;
	int args;
	int (*run)(char **args);
} modes[] = {
	{ "phases", 3, work_phases },
	{ "children", 2, work_children },
	{ "threads", 2, work_threads },
	{ "regions", 2, work_regions },
	{ "workers", 2, work_workers },
	{ "accesses", 2, work_accesses },
	{ "calls", 2, work_calls },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0 && argc == 2 + modes[i].args)
			return modes[i].run(argv + 2);
	return 2;
}
