/* SPDX-License-Identifier: MIT */
/*
 * sleeper: a phase "asleep" with one long sleep and a phase "naps" with ten
 * short ones; then the same in a forked child.
 */
#include <sys/wait.h>

#include <jphase/jphase.h>

#include "work.h"

static void sleep_in_phases(void)
{
	joule_phase("warmup");
	sleep_us(1000);
	joule_phase("asleep");
	sleep_us(50000);
	joule_phase("naps");
	for (int i = 0; i < 10; i++)
		sleep_us(1000);
	joule_phase("awake");
}

int main(void)
{
	pid_t child;

	sleep_in_phases();
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		sleep_in_phases();
		_exit(0);
	}
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}
