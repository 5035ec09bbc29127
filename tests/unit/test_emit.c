/* SPDX-License-Identifier: MIT */
/* The marking path, with a handler that forks between any two of its instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* With its own functions, which the library hides. */
#include "../../preload/emit.c"

#include "consumer.h"
#include "support/proc.h"

#define RECORDS    JPHASE_RING_MIN
#define STEP_FLAG  0x100
#define OTHER_NAME "somebody else"

/* How many of a marker's instructions are tried. */
#define STEPS_MAX (HAVE_ASAN ? 100 : 600)

struct shim shim;

#if defined(__x86_64__)

/* Who goes on first when the handler has forked. */
enum order {
	CHILD_FIRST,
	CHILD_LAST, /* when the parent's slot has been used again */
};

static struct consumer consumer;
static struct play {
	enum order order;
	long at;   /* the step at which the handler forks; 0: never */
	long step; /* so far */
	pid_t parent, child;
	int hold[2];                 /* the child waits for its end */
	struct jphase_record before; /* the parent's slot when it was interrupted */
} play;

static void *memory(size_t bytes, int kind)
{
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void begin_session(void)
{
	if (!shim.ring) {
		shim = (struct shim){
			.ring = memory(ring_bytes(RECORDS), MAP_SHARED),
			.page = memory(JPHASE_PAGE_BYTES, MAP_SHARED),
			.guard = memory(4096, MAP_PRIVATE),
			.records = RECORDS,
		};
		assert_int_equal(madvise(shim.guard, 4096, MADV_WIPEONFORK), 0);
	}
	shim.page->owner = 1;
	shim.page->flags = JPHASE_SESSION_SAMPLES;
	shim.ring->head = shim.ring->dropped = shim.ring->revoked = 0;
	/* Each byte that a marker writes can be told from what was there. */
	memset(shim.ring->record, 0xff, RECORDS * sizeof(shim.ring->record[0]));
	consumer_init(&consumer, shim.ring, RECORDS);
}

static void mark(const char *name)
{
	emit(&(struct marker){ .kind = JPHASE_BEGIN, .name = name });
}

/* Takes all that is there. */
static size_t take(struct taken *ret)
{
	size_t count = consumer_take(&consumer, now_ns(), ret);

	consumer_release(&consumer, ret, count);
	return count;
}

/* Nothing but system calls, as anywhere in a handler. */
static void on_step(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	char byte;

	(void)number;
	(void)info;
	if (++play.step != play.at)
		return;
	context->uc_mcontext.gregs[REG_EFL] &= ~STEP_FLAG;
	play.before = shim.ring->record[0];
	play.child = fork();
	if (play.child == 0) {
		close(play.hold[1]);
		if (play.order == CHILD_LAST && read(play.hold[0], &byte, 1) != 0)
			_exit(3);
		return;
	}
	if (play.order == CHILD_FIRST)
		waitpid(play.child, NULL, 0);
}

/* Each instruction from here on is followed by a signal. */
static inline __attribute__((always_inline)) void step_begin(void)
{
	__asm__ volatile("sub $128, %%rsp; pushfq; orl $0x100, (%%rsp); popfq; add $128, %%rsp"
			 :
			 :
			 : "memory", "cc");
}

static inline __attribute__((always_inline)) void step_end(void)
{
	__asm__ volatile("sub $128, %%rsp; pushfq; andl $~0x100, (%%rsp); popfq; add $128, %%rsp"
			 :
			 :
			 : "memory", "cc");
}

static void mark_stepped(enum order order, long at)
{
	play = (struct play){ .order = order, .at = at, .parent = getpid(), .child = -1 };
	assert_int_equal(pipe(play.hold), 0);
	step_begin();
	mark("parent");
	step_end();
	if (getpid() != play.parent) {
		/* Its own marker is whole, wherever the fork was. */
		mark("child");
		_exit(0);
	}
}

/* False: the marker was over before, as the clock takes a step more or less. */
static bool end_child(void)
{
	int status = 0;

	close(play.hold[0]);
	close(play.hold[1]);
	if (play.child < 0)
		return false;
	if (play.order == CHILD_LAST)
		assert_int_equal(waitpid(play.child, &status, 0), play.child);
	assert_int_equal(status, 0);
	return true;
}

static bool is_of(const struct taken *t, const char *name, pid_t pid)
{
	return str_eq(t->record.name, name) && (pid_t)t->record.pid == pid &&
	       (pid_t)t->record.tid == pid;
}

/* Under the parent's name, by the child alone: between its look and its claim. */
static bool end_left_claim(void)
{
	struct taken none[CONSUMER_BATCH];

	assert_int_equal(take(none), 0);
	return consumer_unblock(&consumer, UINT64_MAX, true);
}

static size_t count_of(const struct taken *taken, size_t count, const char *name, pid_t pid)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += is_of(&taken[i], name, pid);
	return found;
}

/* The child's own go with it; a marker that it only finished is lost, or the parent's. */
static void assert_markers(const struct taken *taken, size_t count)
{
	size_t whole = count_of(taken, count, "parent", play.child);
	uint64_t lost = shim.ring->dropped + shim.ring->revoked;

	assert_int_equal(count_of(taken, count, "parent", play.parent), 1);
	assert_int_equal(count_of(taken, count, "child", play.child), 1);
	assert_true(whole + lost <= 1);
	assert_int_equal(count, 2 + whole);
}

/* The child has ended before its parent goes on. */
static bool play_child_first(long at)
{
	struct taken taken[CONSUMER_BATCH];
	size_t count;
	bool left;

	begin_session();
	mark_stepped(CHILD_FIRST, at);
	if (!end_child())
		return false;
	count = take(taken);
	left = end_left_claim();
	count += take(taken + count);
	assert_markers(taken, count);
	return left;
}

/* Was the parent's record whole, or not begun, when it was interrupted? */
static bool was_settled(const struct taken *parent)
{
	const size_t skip = offsetof(struct jphase_record, clock_ns);

	return ring_kind_of(play.before.state) != RING_CLAIMED ||
	       memcmp((const char *)&play.before + skip, (const char *)&parent->record + skip,
		       sizeof(play.before) - skip) == 0;
}

/* True: a later record of that slot is not what it was. */
static bool play_child_last(long at, bool *ret_settled)
{
	struct taken taken[CONSUMER_BATCH] = { 0 }, parent;
	size_t count = 0;

	begin_session();
	mark_stepped(CHILD_LAST, at);
	assert_int_equal(take(taken), 1);
	parent = taken[0];
	assert_true(is_of(&parent, "parent", play.parent));
	*ret_settled = was_settled(&parent);
	for (size_t i = 0; i < RECORDS - 1; i++)
		mark(OTHER_NAME);
	assert_int_equal(take(taken), RECORDS - 1);
	mark(OTHER_NAME);
	if (!end_child())
		return false;
	count = take(taken);
	if (end_left_claim())
		count += take(taken + count);
	assert_int_equal(count_of(taken, count, "child", play.child), 1);
	assert_int_equal(count, 2 + count_of(taken, count, "parent", play.child));
	return !is_of(&taken[0], OTHER_NAME, play.parent);
}

static long steps_of_a_marker(void)
{
	begin_session();
	mark_stepped(CHILD_FIRST, 0);
	end_child();
	return play.step;
}

static void arm(void)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
}

static void a_handler_forks_at_each_instruction_of_a_marker(void **state)
{
	long steps, stride, left = 0, open = 0, damaged = 0;

	(void)state;
	if (HAVE_TSAN)
		skip_because("the thread sanitizer holds signals back");
	arm();
	steps_of_a_marker();
	steps = steps_of_a_marker();
	assert_true(steps > 100);
	stride = 1 + steps / STEPS_MAX;
	for (long at = 1; at <= steps; at += stride) {
		bool settled = false;

		left += play_child_first(at);
		if (play_child_last(at, &settled)) {
			assert_false(settled);
			damaged++;
		}
		open += !settled;
	}
	print_message("%ld instructions, one in %ld tried; %ld left a claim to be taken back, "
		      "%ld were inside the copy, %ld of them wrote late\n",
		steps, stride, left, open, damaged);
}

#else

static void a_handler_forks_at_each_instruction_of_a_marker(void **state)
{
	(void)state;
	skip_because("only x86-64 lets a program step through itself");
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_forks_at_each_instruction_of_a_marker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
