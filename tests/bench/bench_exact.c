/* SPDX-License-Identifier: MIT */
/*
 * What a region's marker costs where the kernel samples the counters, against
 * the least that could be: a nop with a probe, sampled with the same counters,
 * in the same program and the same moments.  More and more threads have counters
 * of their own meanwhile; one of them marks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

#include "internal/util.h"
#include "probe.h"
#include "readers/perf_sampler.h"

#define ROUNDS 101
#define BURST  100 /* samples: a thread's buffer holds twice as many */

static const unsigned counts[] = { 1, 2, 4, 8, 16, 32, 64 };

#define THREADS_MAX 64

extern const uint8_t bench_site[] __attribute__((visibility("hidden")));

static struct probe probe;
static struct perf_sampler *samplers[THREADS_MAX];
static pthread_barrier_t met, end;

#if defined(__x86_64__)
#define FIRST_ARGUMENT "rdi"
#else
#define FIRST_ARGUMENT "x0"
#endif

/* As the library has it. */
static __attribute__((noinline)) void bare_hit(uint64_t position)
{
	register uint64_t first __asm__(FIRST_ARGUMENT) = position;

	__asm__ volatile(".globl bench_site\n"
			 "bench_site: nop"
			 :
			 : "r"(first)
			 : "memory");
}

static void call_getppid(unsigned i)
{
	(void)i;
	syscall(SYS_getppid);
}

static void call_marker(unsigned i)
{
	if (i % 2)
		joule_end("bench");
	else
		joule_begin("bench");
}

static void call_bare(unsigned i)
{
	bare_hit(i);
}

enum kind {
	KIND_GETPPID,
	KIND_MARKER,
	KIND_BARE,
	KINDS,
};

static void (*const calls[KINDS])(unsigned i) = { call_getppid, call_marker, call_bare };

static double burst(enum kind kind)
{
	uint64_t since = now_ns();

	for (unsigned i = 0; i < BURST; i++)
		calls[kind](i);
	return (double)(now_ns() - since) / BURST;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread {
	double low, median, high;
};

static struct spread spread_of(double at[ROUNDS])
{
	qsort(at, ROUNDS, sizeof(*at), compare);
	return (struct spread){ at[ROUNDS / 4], at[ROUNDS / 2], at[3 * ROUNDS / 4] };
}

/* The counters that jphase has by default where there is no PMU. */
static int sample_here(struct perf_sampler **ret)
{
	static const uint64_t events[] = { PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS };
	struct perf_group group = { .count = ARRAY_SIZE(events), .software = true };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		group.counter[i].attr.type = PERF_TYPE_SOFTWARE;
		group.counter[i].attr.config = events[i];
	}
	return perf_sampler_open(&group, (pid_t)syscall(SYS_gettid), &probe.event, ret);
}

/* A thread that has all that the measured one has, and does nothing. */
static void *idle(void *data)
{
	struct perf_sampler **sampler = data;

	joule_begin("idle");
	joule_end("idle");
	if (sample_here(sampler) < 0)
		exit(1);
	pthread_barrier_wait(&met);
	pthread_barrier_wait(&end);
	return NULL;
}

static int begin_threads(pthread_t *threads, unsigned from, unsigned to)
{
	pthread_barrier_init(&met, NULL, to - from + 1);
	for (unsigned i = from; i < to; i++)
		if (pthread_create(&threads[i], NULL, idle, &samplers[i]) != 0)
			return 1;
	pthread_barrier_wait(&met);
	return 0;
}

/* Were the bursts sampled, and not only counted? */
static bool was_sampled(void)
{
	uint64_t time, values[PERF_GROUP_MAX], times[2];
	bool all = true;

	for (uint64_t i = 0; i < BURST; i++)
		all &= perf_sampler_find(samplers[0], i, &time, values, times) == 0;
	return all;
}

static int measure_with(unsigned threads, bool bare)
{
	static double at[KINDS][ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < (bare ? KINDS : KIND_BARE); kind++) {
			at[kind][round] = burst((enum kind)kind);
			/* When this returns, all before it has been taken. */
			joule_phase("taken");
			if (kind == KIND_BARE && !was_sampled())
				return 1;
		}
	printf("%u", threads);
	for (int kind = 0; kind < (bare ? KINDS : KIND_BARE); kind++) {
		struct spread s = spread_of(at[kind]);

		printf(" %.1f %.1f %.1f", s.low, s.median, s.high);
	}
	printf("\n");
	return 0;
}

/* The measured program: a line of nanoseconds for each number of threads. */
static int measure_exact(void)
{
	static pthread_t threads[THREADS_MAX];
	char reason[READER_REASON_ROOM];
	unsigned now = 1;

	if (probe_prepare(&probe, reason) < 0 ||
		probe_define(&probe, getpid(), (uintptr_t)bench_site) < 0 ||
		sample_here(&samplers[0]) < 0)
		return 1;
	pthread_barrier_init(&end, NULL, THREADS_MAX);
	burst(KIND_MARKER);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (counts[i] > now && begin_threads(threads, now, counts[i]) != 0)
			return 1;
		now = counts[i];
		if (measure_with(now, true) != 0)
			return 1;
	}
	pthread_barrier_wait(&end);
	for (unsigned i = 1; i < THREADS_MAX; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		perf_sampler_close(samplers[i]);
	probe_remove(&probe);
	return 0;
}

static FILE *start(const char *program, const char *mode)
{
	const char *slash = strrchr(program, '/');
	char command[2048];

	snprintf(command, sizeof(command),
		"'%.*s/../jphase' run -q --sources perf -o /dev/null --mode %s -- '%s' %s",
		(int)(slash - program), program, mode, program, mode);
	return popen(command, "r");
}

static bool read_spread(FILE *f, struct spread *ret)
{
	return fscanf(f, "%lf %lf %lf", &ret->low, &ret->median, &ret->high) == 3;
}

static void print_spread(const struct spread *s)
{
	printf("  %6.2f (%.2f to %.2f)", s->median / 1e3, s->low / 1e3, s->high / 1e3);
}

/* The sync marker's median as so many getppid(), or 0. */
static double bench_sync(const char *program)
{
	struct spread plain, marker;
	FILE *f = start(program, "sync");
	unsigned threads;
	bool read = f && fscanf(f, "%u", &threads) == 1 && read_spread(f, &plain) &&
		    read_spread(f, &marker);

	if (f)
		pclose(f);
	if (!read)
		return 0;
	printf("\nThe same marker in sync mode, which waits for the collector:\n%7u", threads);
	print_spread(&marker);
	printf(" µs, or %.1f getppid()\n", marker.median / plain.median);
	return marker.median / plain.median;
}

/* The exact marker's largest median as so many getppid(), or 0. */
static double bench_exact(const char *program)
{
	struct spread s[KINDS];
	double first = 0, least = 0, most = 0, worst = 0, marker = 0;
	FILE *f = start(program, "exact");
	unsigned threads;

	if (!f)
		return 0;
	while (fscanf(f, "%u", &threads) == 1 && read_spread(f, &s[KIND_GETPPID]) &&
		read_spread(f, &s[KIND_MARKER]) && read_spread(f, &s[KIND_BARE])) {
		double ratio = s[KIND_MARKER].median / s[KIND_BARE].median;

		if (!first)
			printf("threads  region's marker, µs     bare probe, µs          "
			       "times  getppid(), µs\n");
		printf("%7u", threads);
		print_spread(&s[KIND_MARKER]);
		print_spread(&s[KIND_BARE]);
		printf("  %5.2f", ratio);
		print_spread(&s[KIND_GETPPID]);
		printf("\n");
		first = first ? first : s[KIND_MARKER].median;
		least = least ? MIN(least, s[KIND_MARKER].median) : s[KIND_MARKER].median;
		most = MAX(most, s[KIND_MARKER].median);
		worst = MAX(worst, ratio);
		marker = MAX(marker, s[KIND_MARKER].median / s[KIND_GETPPID].median);
	}
	if (pclose(f) != 0 || !first) {
		printf("exact mode cannot be had here (jphase doctor says why)\n");
		return 0;
	}
	printf("\nmarker against bare probe: %.2f times at most\n"
	       "dearest against cheapest number of threads: %.2f times\n",
		worst, most / least);
	return marker;
}

int main(int argc, char **argv)
{
	char program[512];
	double exact, sync;

	if (argc > 1 && str_eq(argv[1], "exact"))
		return measure_exact();
	if (argc > 1 && str_eq(argv[1], "sync"))
		return measure_with(1, false);
	if (!realpath(argv[0], program))
		return 1;
	printf("A region's marker in exact mode: medians of %d bursts of %d, with their\n"
	       "quartiles.  So many threads have counters of their own.\n\n",
		ROUNDS, BURST);
	exact = bench_exact(program);
	sync = exact > 0 ? bench_sync(program) : 0;
	if (sync > 0)
		printf("which is %.1f times an exact one\n", sync / exact);
	return 0;
}
