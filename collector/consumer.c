/* SPDX-License-Identifier: MIT */
#include "consumer.h"

#include <limits.h>
#include <string.h>

#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"

#define AWAIT_SLEEP_NS 5000
#define SETTLE_NS      1500

void consumer_init(struct consumer *c, struct jphase_ring *ring, uint32_t records)
{
	ring->magic = JPHASE_RING_MAGIC;
	ring->abi_major = JPHASE_ABI_MAJOR;
	ring->abi_minor = JPHASE_ABI_MINOR;
	ring->record_bytes = JPHASE_RECORD_BYTES;
	ring->records = records;
	for (uint32_t i = 0; i < records; i++)
		atomic_store_explicit(
			&ring->record[i].state, ring_state(RING_FREE, 0, i), memory_order_relaxed);
	*c = (struct consumer){ .ring = ring, .records = records };
}

static uint64_t state_at(const struct consumer *c, uint64_t position)
{
	struct jphase_record *rec = ring_slot(c->ring, c->records, position);

	/* C1 <- E3. */
	return atomic_load_explicit(&rec->state, memory_order_acquire);
}

static void copy_record(const struct consumer *c, uint64_t position, struct taken *to)
{
	const size_t skip = offsetof(struct jphase_record, clock_ns);
	const struct jphase_record *from = ring_slot(c->ring, c->records, position);

	to->position = position;
	memcpy((char *)&to->record + skip, (const char *)from + skip, sizeof(*from) - skip);
	to->record.name[JPHASE_NAME_ROOM - 1] = '\0';
}

static void note_blocked(struct consumer *c, uint64_t position, uint64_t state, uint64_t now_ns)
{
	if (c->blocked_since_ns && c->blocked_at == position)
		return;
	c->blocked_at = position;
	c->blocked_since_ns = now_ns;
	c->blocked_by = ring_pid_of(state);
}

enum look {
	LOOK_EMPTY,
	LOOK_RECORD,
	LOOK_SKIP,    /* the position holds no record */
	LOOK_BLOCKED, /* claimed, not yet published */
	LOOK_INVALID, /* a kind that does not exist */
};

static enum look look_at(uint64_t state, uint64_t position)
{
	int64_t ahead = ring_distance(ring_position_of(state), position);

	if (ahead < 0)
		return LOOK_EMPTY;
	if (ahead > 0)
		return LOOK_SKIP;
	switch (ring_kind_of(state)) {
	case RING_FREE: return LOOK_EMPTY;
	case RING_CLAIMED: return LOOK_BLOCKED;
	case RING_PUBLISHED:
	case RING_WAITING: return LOOK_RECORD;
	case RING_RETIRED: return LOOK_SKIP;
	}
	return LOOK_INVALID;
}

/*
 * The tail moves over skipped positions at once, and over records in
 * consumer_release().
 */
size_t consumer_take(struct consumer *c, uint64_t now_ns, struct taken *batch)
{
	uint64_t position = c->tail;
	size_t count = 0;

	for (uint32_t step = 0; step < c->records && count < CONSUMER_BATCH; step++, position++) {
		uint64_t state = state_at(c, position);

		enum look look = look_at(state, position);

		if (look != LOOK_SKIP)
			c->skipped = 0;
		switch (look) {
		case LOOK_EMPTY: return count;
		case LOOK_RECORD: copy_record(c, position, &batch[count++]); break;
		case LOOK_SKIP:
			c->skipped += count == 0;
			c->holds_retired |= ring_kind_of(state) == RING_RETIRED;
			break;
		case LOOK_BLOCKED: note_blocked(c, position, state, now_ns); return count;
		case LOOK_INVALID:
			ring_free(ring_slot(c->ring, c->records, position), c->records, position);
			c->invalid++;
			break;
		}
		if (count == 0)
			c->tail = position + 1;
	}
	return count;
}

void consumer_await_sleep(struct consumer *c, const struct taken *taken)
{
	uint64_t start = now_ns(), since = start;

	while (since - start < AWAIT_SLEEP_NS) {
		if (ring_kind_of(state_at(c, taken->position)) == RING_WAITING)
			break;
		since = now_ns();
	}
	start = since;
	while (since - start < SETTLE_NS)
		since = now_ns();
}

void consumer_release(struct consumer *c, const struct taken *batch, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct jphase_record *rec = ring_slot(c->ring, c->records, batch[i].position);
		uint64_t before = ring_free(rec, c->records, batch[i].position);

		if (ring_kind_of(before) == RING_WAITING)
			sys_futex_wake(ring_futex(rec), INT_MAX);
	}
	if (count)
		c->tail = batch[count - 1].position + 1;
}

bool consumer_has_work(const struct consumer *c)
{
	enum look look = look_at(state_at(c, c->tail), c->tail);

	if (look == LOOK_SKIP)
		return c->skipped < c->records;
	return look != LOOK_EMPTY && look != LOOK_BLOCKED;
}

bool consumer_unblock(struct consumer *c, uint64_t now_ns, bool owner_is_dead)
{
	struct jphase_record *rec = ring_slot(c->ring, c->records, c->blocked_at);
	uint64_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);
	bool ended;

	if (!c->blocked_since_ns)
		return false;
	if (c->tail != c->blocked_at || look_at(state, c->tail) != LOOK_BLOCKED) {
		c->blocked_since_ns = 0;
		return false;
	}
	if (!owner_is_dead && now_ns - c->blocked_since_ns < CONSUMER_CLAIM_NS)
		return false;

	c->blocked_since_ns = 0;
	/* Fails where the owner has published just now: all the better. */
	ended = owner_is_dead ? atomic_compare_exchange_strong_explicit(&rec->state, &state,
					ring_state(RING_FREE, 0, c->tail + c->records),
					memory_order_release, memory_order_relaxed)
			      : ring_retire(rec, ring_pid_of(state), c->tail);
	if (!ended)
		return false;
	/* A late owner counts its own marker as revoked; a dead one cannot. */
	c->retired += owner_is_dead;
	c->holds_retired |= !owner_is_dead;
	c->tail++;
	return true;
}

/* True if the slot stays retired, for somebody else. */
static bool bury_slot(struct consumer *c, struct jphase_record *rec, pid_t pid)
{
	uint64_t state = atomic_load_explicit(&rec->state, memory_order_relaxed);

	if (ring_kind_of(state) != RING_RETIRED)
		return false;
	if (ring_pid_of(state) != pid)
		return true;
	ring_return_retired(rec, c->records, pid);
	c->retired++;
	return false;
}

/* Where the tail has passed no retired slot, only those before it can hold one. */
void consumer_bury(struct consumer *c, pid_t pid)
{
	uint64_t head = atomic_load_explicit(&c->ring->head, memory_order_relaxed);
	int64_t ahead = MAX(ring_distance(head, c->tail), (int64_t)0);
	uint32_t left = c->holds_retired ? c->records : (uint32_t)MIN(ahead, (int64_t)c->records);
	bool others = false;

	for (uint64_t position = c->tail; left; left--, position++)
		others |= bury_slot(c, ring_slot(c->ring, c->records, position), pid);
	c->holds_retired = others;
}

/* The counters are in shared memory: one that runs backwards is not believed. */
static uint64_t growth(uint64_t now, uint64_t *seen)
{
	uint64_t grown = saturating_sub(now, *seen);

	*seen = now;
	return grown;
}

struct consumer_losses consumer_take_losses(struct consumer *c)
{
	struct consumer_losses losses = {
		.dropped = growth(
			atomic_load_explicit(&c->ring->dropped, memory_order_relaxed), &c->dropped),
		.revoked = growth(
			atomic_load_explicit(&c->ring->revoked, memory_order_relaxed), &c->revoked),
		.claims = c->retired,
		.invalid = c->invalid,
	};

	c->retired = 0;
	c->invalid = 0;
	return losses;
}
