/* SPDX-License-Identifier: MIT */
/*
 * The ring: many emitters in the targets, one consumer in the collector.
 *
 * A record's 64-bit state holds its kind (3 bits), the pid of its claimant
 * (22 bits) and its position (39 bits).  It changes by compare-and-swap
 * alone, but for the consumer's exchange when it frees a slot.
 * The upper half, which holds the kind, is what a futex waits on.
 *
 *   emitters                                collector
 *   E1 cas  free(p) -> claimed(p, pid)      C1 load  state             acquire <- E3
 *           acquire <- C3                   C2 copy  payload
 *   E2 copy payload                         C3 xchg  free(p + size)    release -> E1, E5
 *   E3 cas  claimed(p, pid) -> published(p)    wake if the old kind was waiting
 *           release -> C1
 *   E4 cas  published(p) -> waiting(p)      (sync only)
 *   E5 futex wait; recheck the whole word   acquire <- C3
 *
 * E1/C3: an emitter writes only where the collector has finished reading.
 * E3/C1: the collector copies only what an emitter has finished writing.
 * After E3, or E4, the doorbell is rung: include/internal/doorbell.h.
 * E3 fails where the collector has retired the claim: the late owner gives
 * the slot back and counts its marker as revoked.
 *
 * While a slot is retired every round passes it by: the first emitter that
 * comes there moves retired(p) on to retired(p + size), which decides for all
 * that the new position holds no record.  The owner gives back free(x + size)
 * from whatever x it finds.  So a state whose position lies past the
 * consumer's always means: skipped.  An owner that siglongjmp has taken out of
 * its claim retires it itself.
 *
 * A child that a signal handler forks inside a claim has the claim in its memory
 * and not in its name: it looks who it is before E1, E2 and E3, and leaves it
 * to its parent.  Forked within E1 it may leave one behind as the dead do;
 * forked within E2, and back there when the slot has gone round, it writes what
 * is left of its copy.
 *
 * Positions wrap at 2^39; they are compared by their distance.
 */
#ifndef INTERNAL_RING_H
#define INTERNAL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

enum ring_kind {
	RING_FREE = 0,
	RING_CLAIMED = 1,
	RING_PUBLISHED = 2,
	RING_WAITING = 3,
	RING_RETIRED = 4,
};

#define RING_POSITION_BITS 39
#define RING_PID_BITS      22
#define RING_POSITION_MASK ((UINT64_C(1) << RING_POSITION_BITS) - 1)
#define RING_PID_MASK      ((UINT64_C(1) << RING_PID_BITS) - 1)

static inline uint64_t ring_state(enum ring_kind kind, pid_t pid, uint64_t position)
{
	return (uint64_t)kind << (RING_POSITION_BITS + RING_PID_BITS) |
	       ((uint64_t)(uint32_t)pid & RING_PID_MASK) << RING_POSITION_BITS |
	       (position & RING_POSITION_MASK);
}

static inline enum ring_kind ring_kind_of(uint64_t state)
{
	return (enum ring_kind)(state >> (RING_POSITION_BITS + RING_PID_BITS));
}

static inline pid_t ring_pid_of(uint64_t state)
{
	return (pid_t)(state >> RING_POSITION_BITS & RING_PID_MASK);
}

static inline uint64_t ring_position_of(uint64_t state)
{
	return state & RING_POSITION_MASK;
}

/* How far a lies past b; negative if before. */
static inline int64_t ring_distance(uint64_t a, uint64_t b)
{
	int64_t shifted = (int64_t)((a - b) << (64 - RING_POSITION_BITS));

	return shifted >> (64 - RING_POSITION_BITS);
}

/* Bytes of a ring with that many records. */
static inline size_t ring_bytes(uint32_t records)
{
	return sizeof(struct jphase_ring) + (size_t)records * sizeof(struct jphase_record);
}

/* The futex that a waiter of this record waits on: the half with the kind. */
static inline uint32_t *ring_futex(struct jphase_record *rec)
{
	uint32_t *half = (uint32_t *)(void *)&rec->state;

	return half + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 0);
}

/* What that futex holds while the record's state is `state`. */
static inline uint32_t ring_futex_value(uint64_t state)
{
	return (uint32_t)(state >> 32);
}

static inline struct jphase_record *ring_slot(
	struct jphase_ring *ring, uint32_t records, uint64_t position)
{
	return &ring->record[position & (records - 1)];
}

/* True if the position was decided to be skipped, or must be looked at again. */
static inline bool ring_pass_retired(
	struct jphase_record *rec, uint32_t records, uint64_t state, uint64_t position)
{
	uint64_t moved = ring_state(RING_RETIRED, ring_pid_of(state), position);

	if (ring_kind_of(state) != RING_RETIRED ||
		ring_distance(position, ring_position_of(state)) != (int64_t)records)
		return false;
	atomic_compare_exchange_strong_explicit(
		&rec->state, &state, moved, memory_order_relaxed, memory_order_relaxed);
	return true;
}

/*
 * Claims the next free slot for pid, while self, looked at last, holds it too.
 * False: it does not, or the ring is full; *ret_position is then the position
 * whose slot is still occupied.
 */
static inline bool ring_claim_as(const _Atomic pid_t *self, struct jphase_ring *ring,
	uint32_t records, pid_t pid, uint64_t *ret_position)
{
	uint64_t position = atomic_load_explicit(&ring->head, memory_order_relaxed);

	/* Bounded, whatever another process of the session has written there. */
	for (uint32_t left = 2 * records + 1024; left; left--) {
		struct jphase_record *rec = ring_slot(ring, records, position);
		uint64_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);
		uint64_t head = position;
		int64_t ahead = ring_distance(ring_position_of(state), position);

		if (ahead < 0 && ring_pass_retired(rec, records, state, position))
			continue;
		if (ahead < 0) {
			*ret_position = position & RING_POSITION_MASK;
			return false;
		}
		if (ahead == 0 && ring_kind_of(state) == RING_FREE) {
			uint64_t claimed = ring_state(RING_CLAIMED, pid, position);

			if (atomic_load_explicit(self, memory_order_relaxed) != pid)
				break;
			/* E1 <- C3: the collector has finished with this slot. */
			if (!atomic_compare_exchange_strong_explicit(&rec->state, &state, claimed,
				    memory_order_acquire, memory_order_relaxed))
				continue;
			atomic_compare_exchange_strong_explicit(&ring->head, &head, position + 1,
				memory_order_relaxed, memory_order_relaxed);
			*ret_position = position & RING_POSITION_MASK;
			return true;
		}
		/* Taken by another emitter: help the hint forward and go on. */
		if (atomic_compare_exchange_strong_explicit(&ring->head, &head, position + 1,
			    memory_order_relaxed, memory_order_relaxed) ||
			ring_distance(head, position) <= 0)
			position++;
		else
			position = head;
	}
	*ret_position = position & RING_POSITION_MASK;
	return false;
}

static inline bool ring_claim(
	struct jphase_ring *ring, uint32_t records, pid_t pid, uint64_t *ret_position)
{
	const _Atomic pid_t self = pid;

	return ring_claim_as(&self, ring, records, pid, ret_position);
}

/* Has the collector not yet come to that position, or not gone beyond it?  A hint. */
static inline bool ring_is_pending(struct jphase_record *rec, uint64_t position)
{
	uint64_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);

	return ring_kind_of(state) != RING_FREE && ring_position_of(state) == position;
}

/* E3.  False: the collector has retired the claim meanwhile. */
static inline bool ring_publish(struct jphase_record *rec, pid_t pid, uint64_t position)
{
	uint64_t claimed = ring_state(RING_CLAIMED, pid, position);

	/* E3 -> C1: publishes the payload. */
	return atomic_compare_exchange_strong_explicit(&rec->state, &claimed,
		ring_state(RING_PUBLISHED, 0, position), memory_order_release,
		memory_order_relaxed);
}

/* Ends a claim that nobody will publish.  False: it was published or ended meanwhile. */
static inline bool ring_retire(struct jphase_record *rec, pid_t pid, uint64_t position)
{
	uint64_t claimed = ring_state(RING_CLAIMED, pid, position);

	return atomic_compare_exchange_strong_explicit(&rec->state, &claimed,
		ring_state(RING_RETIRED, pid, position), memory_order_release,
		memory_order_relaxed);
}

/*
 * The late owner of a retired claim gives the slot to the round after the
 * current one.  False: it is not retired.
 */
static inline bool ring_return_retired(struct jphase_record *rec, uint32_t records, pid_t pid)
{
	uint64_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);

	while (ring_kind_of(state) == RING_RETIRED && ring_pid_of(state) == pid) {
		uint64_t given = ring_state(RING_FREE, 0, ring_position_of(state) + records);

		/* -> E1: like C3. */
		if (atomic_compare_exchange_weak_explicit(
			    &rec->state, &state, given, memory_order_release, memory_order_relaxed))
			return true;
	}
	return false;
}

/* E4.  False: the record is no longer there to wait for. */
static inline bool ring_wait_begin(struct jphase_record *rec, uint64_t position)
{
	uint64_t state = ring_state(RING_PUBLISHED, 0, position);

	return atomic_compare_exchange_strong_explicit(&rec->state, &state,
		       ring_state(RING_WAITING, 0, position), memory_order_acquire,
		       memory_order_acquire) ||
	       state == ring_state(RING_WAITING, 0, position);
}

/* E5 <- C3: true once the collector has given the record back. */
static inline bool ring_is_acknowledged(struct jphase_record *rec, uint64_t position)
{
	uint64_t state = atomic_load_explicit(&rec->state, memory_order_acquire);

	return ring_position_of(state) != (position & RING_POSITION_MASK);
}

/* C3.  Frees the slot for the next round; returns the state it had. */
static inline uint64_t ring_free(struct jphase_record *rec, uint32_t records, uint64_t position)
{
	/* C3 -> E1, E5. */
	return atomic_exchange_explicit(
		&rec->state, ring_state(RING_FREE, 0, position + records), memory_order_acq_rel);
}

#endif
