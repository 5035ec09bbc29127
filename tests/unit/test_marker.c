/* SPDX-License-Identifier: MIT */
/* One marker: who it is of, what it is called, and whom it may wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* With its own functions, which the library hides. */
#include "../../preload/emit.c"

#include "consumer.h"

#define RECORDS JPHASE_RING_MIN

struct shim shim;
static struct consumer consumer;

static void *memory(size_t bytes, int kind)
{
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

/* From outside, as a program does it: the compiler knows nothing of the name. */
static __attribute__((noinline)) void mark(enum jphase_kind kind, const char *name, uint8_t flags)
{
	emit(&(struct marker){ .kind = kind, .name = name, .flags = flags });
}

static int begin(void **state)
{
	(void)state;
	shim = (struct shim){
		.ring = memory(ring_bytes(RECORDS), MAP_SHARED),
		.page = memory(JPHASE_PAGE_BYTES, MAP_SHARED),
		.guard = memory(4096, MAP_PRIVATE),
		.records = RECORDS,
		.registered = getpid(),
	};
	assert_int_equal(madvise(shim.guard, 4096, MADV_WIPEONFORK), 0);
	shim.guard->pid = getpid();
	shim.page->owner = 1;
	consumer_init(&consumer, shim.ring, RECORDS);
	memset(&self, 0, sizeof(self));
	return 0;
}

static int end(void **state)
{
	(void)state;
	munmap(shim.ring, ring_bytes(RECORDS));
	munmap(shim.page, JPHASE_PAGE_BYTES);
	munmap(shim.guard, 4096);
	return 0;
}

static void a_name_leaves_nothing_of_the_stack_behind_it(void **state)
{
	const char zeros[JPHASE_NAME_ROOM] = { 0 };
	char given[2 * JPHASE_NAME_ROOM] = "solve", name[JPHASE_NAME_ROOM];

	(void)state;
	memset(name, 'x', sizeof(name));
	name_copy(name, given);
	assert_string_equal(name, "solve");
	assert_memory_equal(name + 5, zeros, sizeof(name) - 5);
}

/* Its stack is another one, above that of the marker that it interrupts. */
static void our_handler_does_not_wait_for_the_claim_that_it_interrupts(void **state)
{
	struct patience patience = { .until_ns = 0 };
	uint64_t position;
	char *below = (char *)(uintptr_t)1;

	(void)state;
	shim.waits = true;
	assert_true(claim(identify(), false, &patience, &position));
	self.frame = below;
	mark(JPHASE_PHASE, "signal", JPHASE_FLAG_SIGNAL);
	/* It would have waited for as long as any marker may, and told all others so. */
	assert_int_equal(shim.page->stalled, 0);
	assert_true(shim.ring->record[position + 1].flags & JPHASE_FLAG_UNWAITED);
	/* The marker that was interrupted goes on as if nothing had been. */
	assert_ptr_equal(self.frame, below);
	assert_true(self.open);
	assert_true(ring_publish(&shim.ring->record[position], getpid(), position));
}

/* The C library knows nothing of it: its thread descriptor is the parent's. */
static void assert_raw_clone_is_known(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		mark(JPHASE_MARK, "child", 0);
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(shim.ring->head > 0);
	assert_int_equal(shim.ring->record[shim.ring->head - 1].pid, pid);
	assert_int_equal(shim.ring->record[shim.ring->head - 1].tid, pid);
}

static void a_raw_clone_is_somebody_else(void **state)
{
	(void)state;
	assert_raw_clone_is_known();
	mark(JPHASE_MARK, "parent", 0);
	assert_raw_clone_is_known();
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_leaves_nothing_of_the_stack_behind_it),
		TEST(our_handler_does_not_wait_for_the_claim_that_it_interrupts),
		TEST(a_raw_clone_is_somebody_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
