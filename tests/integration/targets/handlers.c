/* SPDX-License-Identifier: MIT */
/*
 * handlers ROUNDS: a timer interrupts malloc, printf and joule_phase; its
 * handler marks, and now and then jumps out of a marker that it interrupted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <jphase/jphase.h>

static sigjmp_buf back;
static volatile sig_atomic_t may_jump, handled, jumped;

static void on_timer(int number)
{
	(void)number;
	handled++;
	joule_phase("handler");
	if (may_jump && handled % 5 == 0) {
		may_jump = 0;
		jumped++;
		siglongjmp(back, 1);
	}
}

static void work(long i)
{
	char *memory = malloc((size_t)(i % 4000) + 1);

	if (!memory)
		abort();
	memset(memory, 1, (size_t)(i % 4000) + 1);
	printf("%ld\n", i);
	free(memory);
}

/* A marker that the handler may leave for good. */
static void mark(void)
{
	if (sigsetjmp(back, 1) == 0) {
		may_jump = 1;
		joule_phase("main");
	}
	may_jump = 0;
}

int main(int argc, char **argv)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	long rounds = argc > 1 ? atol(argv[1]) : 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < rounds; i++) {
		work(i);
		mark();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	joule_phase("last");
	fflush(stdout);
	fprintf(stderr, "handled %d, jumped %d\n", (int)handled, (int)jumped);
	return 0;
}
