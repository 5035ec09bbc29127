/* SPDX-License-Identifier: MIT */
/*
 * What a marker costs in each mode, and what a whole run costs, as ratios to a
 * getppid() and to the plain program measured in the same run.  Medians of
 * several rounds; the spread is the quartiles.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jphase/jphase.h>

#include "internal/util.h"

#define ROUNDS 21

struct series {
	double at[ROUNDS];
	size_t count;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(struct series *s, double q)
{
	qsort(s->at, s->count, sizeof(s->at[0]), compare);
	return s->at[(size_t)(q * (double)(s->count - 1))];
}

static void call_getppid(void)
{
	syscall(SYS_getppid);
}

static void call_phase(void)
{
	joule_phase("bench");
}

static void call_region(void)
{
	joule_begin("bench");
	joule_end("bench");
}

static void call_value(void)
{
	joule_value("bench", 1);
}

static const struct kind {
	const char *name;
	void (*call)(void);
	unsigned loops;
	unsigned markers; /* in one call */
} kinds[] = {
	{ "getppid", call_getppid, 2000, 1 },
	{ "phase", call_phase, 200, 1 },
	{ "region", call_region, 200, 2 },
	{ "value", call_value, 1000, 1 },
};

static double time_of(const struct kind *k)
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < k->loops; i++)
		k->call();
	return (double)(now_ns() - begin) / k->loops / k->markers;
}

/* The measured program: one line of nanoseconds per round on descriptor 1. */
static int measure(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		time_of(&kinds[i]);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			printf("%.1f ", time_of(&kinds[i]));
		printf("\n");
		/* Let the collector drain the ring. */
		usleep(20000);
	}
	return 0;
}

static FILE *start(const char *program, const char *jphase, const char *mode)
{
	char command[2048];

	if (mode)
		snprintf(command, sizeof(command),
			"'%s' run -q --sources perf -o /dev/null --mode %s -- '%s' child", jphase,
			mode, program);
	else
		snprintf(command, sizeof(command), "'%s' child", program);
	return popen(command, "r");
}

static int bench_mode(const char *program, const char *jphase, const char *mode)
{
	struct series series[ARRAY_SIZE(kinds)] = { 0 };
	FILE *f = start(program, jphase, mode);
	double ns[ARRAY_SIZE(kinds)];

	if (!f)
		return 1;
	while (fscanf(f, "%lf %lf %lf %lf", &ns[0], &ns[1], &ns[2], &ns[3]) == 4)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			if (series[i].count < ROUNDS)
				series[i].at[series[i].count++] = ns[i] / (i ? ns[0] : 1);
	if (pclose(f) != 0 || series[0].count == 0) {
		printf("%-8s cannot be had here\n", mode ? mode : "absent");
		return 0;
	}
	for (size_t i = 1; i < ARRAY_SIZE(kinds); i++)
		printf("%-8s %-8s %9.3f getppid   (quartiles %.3f to %.3f)\n",
			mode ? mode : "absent", kinds[i].name, quantile(&series[i], 0.5),
			quantile(&series[i], 0.25), quantile(&series[i], 0.75));
	return 0;
}

static double whole_run(const char *command)
{
	uint64_t begin = now_ns();

	if (system(command) != 0)
		return -1;
	return (double)(now_ns() - begin);
}

static void bench_runs(const char *jphase, const char *library)
{
	struct series plain = { 0 }, run = { 0 }, preload = { 0 };
	char by_run[2048], by_preload[2048];

	snprintf(by_run, sizeof(by_run), "'%s' run -q -o /dev/null -- /bin/true", jphase);
	snprintf(by_preload, sizeof(by_preload),
		"JPHASE_OUTPUT=/dev/null LD_PRELOAD='%s' /bin/true", library);
	for (int i = 0; i < ROUNDS; i++) {
		double base = whole_run("/bin/true");

		plain.at[plain.count++] = base;
		run.at[run.count++] = whole_run(by_run) / base;
		preload.at[preload.count++] = whole_run(by_preload) / base;
	}
	printf("%-17s %9.2f times the plain program (quartiles %.2f to %.2f)\n", "jphase run",
		quantile(&run, 0.5), quantile(&run, 0.25), quantile(&run, 0.75));
	printf("%-17s %9.2f times the plain program (quartiles %.2f to %.2f)\n", "LD_PRELOAD",
		quantile(&preload, 0.5), quantile(&preload, 0.25), quantile(&preload, 0.75));
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { NULL, "async", "sync", "exact" };
	char program[512], jphase[600], library[600], *slash;

	if (argc > 1 && str_eq(argv[1], "child"))
		return measure();
	if (!realpath(argv[0], program))
		return 1;
	slash = strrchr(program, '/');
	snprintf(jphase, sizeof(jphase), "%.*s/../jphase", (int)(slash - program), program);
	snprintf(library, sizeof(library), "%.*s/../libjphase.so", (int)(slash - program), program);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		bench_mode(program, jphase, modes[i]);
	bench_runs(jphase, library);
	return 0;
}
