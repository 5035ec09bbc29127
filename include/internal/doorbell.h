/* SPDX-License-Identifier: MIT */
/*
 * The doorbell of a session: one futex that the collector sleeps on, rung by
 * whoever has published something.
 *
 *   emitters                                collector
 *   D0 publish                              D3 load  doorbell
 *   D1 fence; load sleeps                   D2 store sleeps; fence; look again
 *      if set: xchg sleeps; bump; wake      D4 wait while the doorbell is as in D3
 *      who then waits, in any case: clear sleeps; bump; wake
 *
 * D1/D2: full fences on both sides.  Without either, the emitter may see no
 * sleeper while the collector sees nothing published.
 * D3/D4: a ring between them changes the value, and D4 does not wait.
 */
#ifndef INTERNAL_DOORBELL_H
#define INTERNAL_DOORBELL_H

#include <stdatomic.h>
#include <stdint.h>

#include "internal/sys.h"
#include "jphase/abi.h"

/* gcc's thread sanitizer says that it looks through fences as if they were not there. */
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* D1.  Of a burst only one pays for the wake. */
static inline void doorbell_ring(struct jphase_session_page *page)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&page->sleeps, memory_order_relaxed) ||
		!atomic_exchange_explicit(&page->sleeps, 0, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&page->doorbell, 1, memory_order_relaxed);
	sys_futex_wake(&page->doorbell, 1);
}

/*
 * D1, and sleeps while *word is value, like sys_futex_wait.  Whether or not the
 * collector sleeps, and whether or not it has answered when the wait is reached,
 * both calls are made: what a marker costs is one number, not two.
 */
static inline int doorbell_ring_and_wait(
	struct jphase_session_page *page, const void *word, uint32_t value, uint64_t timeout_ns)
{
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&page->sleeps, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&page->doorbell, 1, memory_order_relaxed);
	return sys_futex_wake_wait(&page->doorbell, word, value, timeout_ns);
}

/* D3, D2.  The caller then looks once more, and waits for the value returned if there is nothing. */
static inline uint32_t doorbell_arm(struct jphase_session_page *page)
{
	uint32_t seen = atomic_load_explicit(&page->doorbell, memory_order_relaxed);

	atomic_store_explicit(&page->sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return seen;
}

/* D4. */
static inline int doorbell_wait(
	struct jphase_session_page *page, uint32_t seen, uint64_t timeout_ns)
{
	return sys_futex_wait(&page->doorbell, seen, timeout_ns);
}

static inline void doorbell_disarm(struct jphase_session_page *page)
{
	atomic_store_explicit(&page->sleeps, 0, memory_order_relaxed);
}

#endif
