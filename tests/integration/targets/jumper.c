/* SPDX-License-Identifier: MIT */
/*
 * jumper ROUNDS [stack]: a timer's handler jumps out of a marker; later markers
 * come from deeper in the stack, with what the jump left behind still there.
 * With "stack" the handler marks and jumps on a stack of its own, which is
 * unmapped then.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include <jphase/jphase.h>

#define STACK_BYTES (256u << 10)

/* More than what a marker may take. */
static const struct timespec rest = { .tv_nsec = 150000000 };

static sigjmp_buf back;
static volatile sig_atomic_t armed, jumped, marks;

static void on_timer(int number)
{
	(void)number;
	if (!armed)
		return;
	armed = 0;
	jumped++;
	if (marks)
		joule_phase("handler");
	siglongjmp(back, 1);
}

__attribute__((noinline)) static void mark_deep(void)
{
	volatile char room[8192];

	room[0] = 1;
	joule_phase("deep");
	room[1] = room[0];
}

static void mark_until_jump(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 3000 } };

	if (sigsetjmp(back, 1))
		return;
	armed = 1;
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		joule_phase("inner");
}

static void *take_stack(void)
{
	stack_t stack = { .ss_size = STACK_BYTES };

	stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) < 0)
		abort();
	return stack.ss_sp;
}

static void give_stack_back(void *memory)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	sigaltstack(&none, NULL);
	munmap(memory, STACK_BYTES);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_ONSTACK };
	int rounds = argc > 1 ? atoi(argv[1]) : 0;

	marks = argc > 2 && strcmp(argv[2], "stack") == 0;
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < rounds; i++) {
		void *stack = marks ? take_stack() : NULL;

		mark_until_jump();
		if (stack)
			give_stack_back(stack);
		nanosleep(&rest, NULL);
		mark_deep();
		mark_deep();
	}
	joule_phase("last");
	printf("jumped %d times\n", (int)jumped);
	return 0;
}
