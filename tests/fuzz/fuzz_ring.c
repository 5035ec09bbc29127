/* SPDX-License-Identifier: MIT */
/*
 * The consumer on a ring whose memory changes under it.  The input is a script:
 * each byte is a step, and its operands follow.
 */
#include "fuzz.h"

#include <stdbool.h>

#include "consumer.h"
#include "internal/ring.h"
#include "internal/util.h"

#define RECORDS 64
#define PIDS    4

/* What is left of the input; an end gives zeros. */
struct script {
	const uint8_t *at;
	const uint8_t *end;
};

struct stage {
	struct script script;
	struct jphase_ring *ring;
	struct consumer consumer;
	struct taken batch[CONSUMER_BATCH];
	size_t taken; /* taken, not yet given back */
	uint64_t now_ns;
};

static uint8_t next_byte(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static struct jphase_record *near_tail(struct stage *s, uint8_t offset)
{
	return ring_slot(s->ring, RECORDS, s->consumer.tail + offset);
}

/* --- what a target can do to the memory --- */

/* A state that may make sense: kinds 0 to 7, few pids, positions about the tail. */
static void write_state(struct stage *s)
{
	struct jphase_record *rec = near_tail(s, next_byte(&s->script));
	uint8_t kind = next_byte(&s->script), pid = next_byte(&s->script);
	uint64_t position = s->consumer.tail + (uint64_t)(int64_t)(int8_t)next_byte(&s->script);

	atomic_store(&rec->state, ring_state((enum ring_kind)(kind & 7), pid % PIDS, position));
}

static void write_bytes(struct stage *s)
{
	size_t room = ring_bytes(RECORDS);
	size_t offset = (next_byte(&s->script) | (size_t)next_byte(&s->script) << 8) % room;
	size_t length = next_byte(&s->script);
	uint8_t *to = (uint8_t *)s->ring + offset;

	for (size_t i = 0; i < MIN(length, room - offset); i++)
		to[i] = next_byte(&s->script);
}

static void fill_bytes(struct stage *s)
{
	memset(s->ring, next_byte(&s->script), ring_bytes(RECORDS));
}

/* As an emitter does it, as long as the ring makes sense. */
static void publish(struct stage *s)
{
	uint64_t position = s->consumer.tail + next_byte(&s->script) % RECORDS;
	struct jphase_record *rec = ring_slot(s->ring, RECORDS, position);
	pid_t pid = next_byte(&s->script) % PIDS;

	atomic_store(&rec->state, ring_state(RING_CLAIMED, pid, position));
	rec->kind = next_byte(&s->script);
	memset(rec->name, 'x', sizeof(rec->name));
	ring_publish(rec, pid, position);
	if (next_byte(&s->script) & 1)
		ring_wait_begin(rec, position);
}

static void return_retired(struct stage *s)
{
	struct jphase_record *rec = near_tail(s, next_byte(&s->script));

	ring_return_retired(rec, RECORDS, next_byte(&s->script) % PIDS);
}

/* --- what the collector does --- */

static void claim_moved(const struct stage *s, uint64_t tail, uint64_t most)
{
	CLAIM(s->consumer.tail - tail <= most);
}

static void give_back(struct stage *s, size_t count)
{
	uint64_t tail = s->consumer.tail;

	consumer_release(&s->consumer, s->batch, count);
	claim_moved(s, tail, RECORDS);
	CLAIM(count == 0 || s->consumer.tail == s->batch[count - 1].position + 1);
	s->taken = 0;
}

static void take(struct stage *s)
{
	uint64_t tail;

	give_back(s, s->taken);
	tail = s->consumer.tail;
	s->taken = consumer_take(&s->consumer, s->now_ns, s->batch);
	claim_moved(s, tail, RECORDS);
	CLAIM(s->taken <= RECORDS);
	for (size_t i = 0; i < s->taken; i++) {
		CLAIM(s->batch[i].position >= (i ? s->batch[i - 1].position + 1 : tail));
		CLAIM(s->batch[i].position - tail < RECORDS);
		CLAIM(memchr(s->batch[i].record.name, '\0', JPHASE_NAME_ROOM));
	}
}

static void release_some(struct stage *s)
{
	size_t count = next_byte(&s->script);

	give_back(s, MIN(count, s->taken));
}

static void unblock(struct stage *s)
{
	uint8_t how = next_byte(&s->script);
	uint64_t tail;
	bool ended;

	give_back(s, s->taken);
	tail = s->consumer.tail;
	s->now_ns += how & 2 ? CONSUMER_CLAIM_NS : 1;
	ended = consumer_unblock(&s->consumer, s->now_ns, how & 1);
	claim_moved(s, tail, 1);
	CLAIM(ended == (s->consumer.tail != tail));
}

static void bury(struct stage *s)
{
	uint64_t tail = s->consumer.tail;

	consumer_bury(&s->consumer, next_byte(&s->script) % PIDS);
	CLAIM(s->consumer.tail == tail);
}

/* Without a hostile hand in between, work that is seen is done. */
static void work(struct stage *s)
{
	uint64_t tail;

	give_back(s, s->taken);
	tail = s->consumer.tail;
	if (!consumer_has_work(&s->consumer))
		return;
	take(s);
	CLAIM(s->taken || s->consumer.tail != tail);
}

static void count_losses(struct stage *s)
{
	struct consumer_losses losses;

	consumer_take_losses(&s->consumer);
	losses = consumer_take_losses(&s->consumer);
	CLAIM(!losses.dropped && !losses.revoked && !losses.claims && !losses.invalid);
}

static void (*const steps[])(struct stage *s) = {
	take,
	release_some,
	unblock,
	bury,
	work,
	count_losses,
	write_state,
	write_bytes,
	fill_bytes,
	publish,
	return_retired,
};

/* The last round before positions wrap. */
static void begin_before_wrap(struct stage *s)
{
	uint64_t first = RING_POSITION_MASK + 1 - RECORDS;

	for (uint64_t i = 0; i < RECORDS; i++)
		atomic_store(&s->ring->record[i].state, ring_state(RING_FREE, 0, first + i));
	s->consumer.tail = first;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stage *s = calloc(1, sizeof(*s));

	CLAIM(s);
	s->script = (struct script){ data, data + size };
	s->ring = calloc(1, ring_bytes(RECORDS));
	CLAIM(s->ring);
	s->now_ns = 1;
	consumer_init(&s->consumer, s->ring, RECORDS);
	if (next_byte(&s->script) & 1)
		begin_before_wrap(s);
	while (s->script.at < s->script.end)
		steps[next_byte(&s->script) % ARRAY_SIZE(steps)](s);
	free(s->ring);
	free(s);
	return 0;
}
