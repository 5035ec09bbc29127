/* SPDX-License-Identifier: MIT */
/* The doorbell: whatever was published before it was rung is seen, or wakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "internal/doorbell.h"
#include "internal/util.h"
#include "support/proc.h"

/* The thread sanitizer makes each of them cost fifty times as much. */
#define ROUNDS (HAVE_TSAN ? 100000u : 2000000u)

#define LOOK_NS (20 * NSEC_PER_MSEC)

static struct jphase_session_page page;

/* Apart: these lines must not travel together, or nothing can be seen in the wrong order. */
static struct {
	_Alignas(128) _Atomic uint32_t published;
	_Alignas(128) _Atomic uint32_t rung;
	_Alignas(128) _Atomic uint32_t taken;
} shared;

/* Both are about as fast as each other, so that they meet at any point of the protocol. */
static void dawdle(uint32_t *seed, uint32_t most)
{
	*seed = *seed * 1664525u + 1013904223u;
	for (uint32_t i = (*seed >> 16) % most; i; i--)
		__asm__ volatile("" : : : "memory");
}

static void *emit_rounds(void *data)
{
	static const uint32_t other;
	uint32_t seed = 1;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		/* D0 with no order of its own: the doorbell's has to do. */
		atomic_store_explicit(&shared.published, i, memory_order_relaxed);
		if (i % 2)
			doorbell_ring(&page);
		else
			doorbell_ring_and_wait(&page, &other, !other, UINT64_MAX);
		atomic_store_explicit(&shared.rung, i, memory_order_release);
		for (uint32_t spins = 0;
			atomic_load_explicit(&shared.taken, memory_order_acquire) != i; spins++)
			if (spins % 1000 == 999)
				sched_yield();
		dawdle(&seed, 64);
	}
	return data;
}

/*
 * It sleeps, although all has been done for it to wake: time has no part in it.
 * What was taken while the emitter was still ringing is ahead of what was rung.
 */
static bool is_lost(uint32_t seen, uint32_t taken)
{
	return atomic_load_explicit(&shared.rung, memory_order_acquire) > taken &&
	       atomic_load(&page.doorbell) == seen;
}

static void no_ring_is_lost_in_millions(void **state)
{
	uint32_t taken = 0, seed = 2;
	uint64_t waits = 0;
	pthread_t emitter;

	(void)state;
	assert_int_equal(pthread_create(&emitter, NULL, emit_rounds, NULL), 0);
	while (taken < ROUNDS) {
		uint32_t seen = doorbell_arm(&page);

		if (atomic_load_explicit(&shared.published, memory_order_relaxed) == taken) {
			waits++;
			while (doorbell_wait(&page, seen, LOOK_NS) == -ETIMEDOUT)
				if (is_lost(seen, taken))
					fail_msg("a ring was lost after %u rounds", taken);
		}
		doorbell_disarm(&page);
		if (atomic_load_explicit(&shared.published, memory_order_acquire) != taken)
			atomic_store_explicit(&shared.taken, ++taken, memory_order_release);
		dawdle(&seed, 1024);
	}
	pthread_join(emitter, NULL);
	/* Or nothing of this was needed. */
	assert_true(waits > 0);
	print_message("%u rounds, %llu of them met a sleeper\n", ROUNDS, (unsigned long long)waits);
}

static void a_ring_before_the_wait_keeps_it_from_waiting(void **state)
{
	uint32_t seen = doorbell_arm(&page);

	(void)state;
	doorbell_ring(&page);
	assert_int_equal(doorbell_wait(&page, seen, UINT64_MAX), -EAGAIN);
	doorbell_disarm(&page);
}

static void who_waits_rings_whether_or_not_somebody_sleeps(void **state)
{
	static const uint32_t word = 7;
	uint32_t seen = doorbell_arm(&page);

	(void)state;
	assert_int_equal(doorbell_ring_and_wait(&page, &word, 8, UINT64_MAX), -EAGAIN);
	assert_int_equal(page.doorbell, seen + 1);
	assert_int_equal(page.sleeps, 0);
	assert_int_equal(doorbell_ring_and_wait(&page, &word, 7, NSEC_PER_MSEC), -ETIMEDOUT);
	assert_int_equal(page.doorbell, seen + 2);
	assert_int_equal(doorbell_ring_and_wait(&page, NULL, 7, NSEC_PER_MSEC), -EFAULT);
}

static void of_a_burst_one_pays(void **state)
{
	uint32_t before = doorbell_arm(&page);

	(void)state;
	for (int i = 0; i < 10; i++)
		doorbell_ring(&page);
	assert_int_equal(page.doorbell, before + 1);
	doorbell_ring(&page);
	assert_int_equal(page.doorbell, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_before_the_wait_keeps_it_from_waiting),
		cmocka_unit_test(of_a_burst_one_pays),
		cmocka_unit_test(who_waits_rings_whether_or_not_somebody_sleeps),
		cmocka_unit_test(no_ring_is_lost_in_millions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
