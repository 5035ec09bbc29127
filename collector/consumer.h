/* SPDX-License-Identifier: MIT */
/*
 * The consuming end of the ring.  Whatever the memory holds, it neither
 * crashes nor hangs: sizes and the position are the collector's own, every
 * record is copied before it is looked at, and one call takes a bounded number
 * of steps.
 */
#ifndef COLLECTOR_CONSUMER_H
#define COLLECTOR_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

/* How long a claim may stay unpublished before it is taken back. */
#define CONSUMER_CLAIM_NS UINT64_C(1000000000)

#define CONSUMER_BATCH 256

/* A copy of one record, without its state. */
struct taken {
	uint64_t position;
	struct jphase_record record; /* name ends with NUL */
};

struct consumer {
	struct jphase_ring *ring;
	uint32_t records;
	uint64_t tail;
	uint64_t skipped;          /* positions in a row that held no record */
	uint64_t blocked_at;       /* the position of an unpublished claim */
	uint64_t blocked_since_ns; /* 0: none */
	pid_t blocked_by;
	uint64_t dropped; /* as last seen in the ring's header */
	uint64_t revoked;
	bool holds_retired; /* the tail has passed a slot that may be retired still */
	uint64_t retired;   /* claims taken back since the losses were taken */
	uint64_t invalid;   /* records of an impossible state since then */
};

void consumer_init(struct consumer *c, struct jphase_ring *ring, uint32_t records);

/*
 * Copies up to CONSUMER_BATCH published records in order, leaving them in the
 * ring; consumer_release() gives them back.  Returns their number.
 */
size_t consumer_take(struct consumer *c, uint64_t now_ns, struct taken *batch);

/* Waits, 7 µs at most, until that record's emitter has gone to sleep. */
void consumer_await_sleep(struct consumer *c, const struct taken *taken);

/* Frees what consumer_take() returned and wakes who waits for it. */
void consumer_release(struct consumer *c, const struct taken *batch, size_t count);

/*
 * True if a record can be taken now, or there may be one behind positions that
 * hold none: a whole round of those is as good as an empty ring.
 */
bool consumer_has_work(const struct consumer *c);

/*
 * A claim is in the way: ends it if its owner is known to be dead, or after
 * CONSUMER_CLAIM_NS.  Returns true if it was ended.
 */
bool consumer_unblock(struct consumer *c, uint64_t now_ns, bool owner_is_dead);

/* Gives back the slots that are retired for a dead process. */
void consumer_bury(struct consumer *c, pid_t pid);

/* Markers lost since the last call, by kind. */
struct consumer_losses {
	uint64_t dropped;
	uint64_t revoked;
	uint64_t claims;
	uint64_t invalid;
};

struct consumer_losses consumer_take_losses(struct consumer *c);

#endif
