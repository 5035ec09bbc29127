/* SPDX-License-Identifier: MIT */
/* The ring, step by step: a test plays the emitter against the real consumer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer.h"
#include "internal/ring.h"
#include "internal/util.h"

#define RECORDS 64
#define PID     4242

struct fixture {
	struct jphase_ring *ring;
	struct consumer consumer;
	struct taken batch[CONSUMER_BATCH];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->ring = aligned_alloc(64, (ring_bytes(RECORDS) + 63) / 64 * 64);
	memset(f->ring, 0, ring_bytes(RECORDS));
	consumer_init(&f->consumer, f->ring, RECORDS);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->ring);
	free(f);
	return 0;
}

static struct jphase_record *slot(struct fixture *f, uint64_t position)
{
	return ring_slot(f->ring, RECORDS, position);
}

static uint64_t claim(struct fixture *f)
{
	uint64_t position = UINT64_MAX;

	assert_true(ring_claim(f->ring, RECORDS, PID, &position));
	return position;
}

static void fill(struct fixture *f, uint64_t position, uint64_t id)
{
	struct jphase_record *rec = slot(f, position);

	rec->id = id;
	rec->kind = JPHASE_MARK;
	rec->pid = PID;
	strcpy(rec->name, "x");
}

static uint64_t emit(struct fixture *f, uint64_t id)
{
	uint64_t position = claim(f);

	fill(f, position, id);
	assert_true(ring_publish(slot(f, position), PID, position));
	return position;
}

static size_t take(struct fixture *f, uint64_t now)
{
	return consumer_take(&f->consumer, now, f->batch);
}

static void take_all_ids(struct fixture *f, uint64_t first, size_t count)
{
	size_t n = take(f, 0);

	assert_int_equal(n, count);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(f->batch[i].record.id, first + i);
	consumer_release(&f->consumer, f->batch, n);
}

static void states_keep_their_parts(void **state)
{
	uint64_t s = ring_state(RING_RETIRED, 4194303, RING_POSITION_MASK - 1);

	(void)state;
	assert_int_equal(ring_kind_of(s), RING_RETIRED);
	assert_int_equal(ring_pid_of(s), 4194303);
	assert_int_equal(ring_position_of(s), RING_POSITION_MASK - 1);
}

static void distances_survive_the_wrap_of_positions(void **state)
{
	(void)state;
	assert_int_equal(ring_distance(0, RING_POSITION_MASK), 1);
	assert_int_equal(ring_distance(RING_POSITION_MASK, 0), -1);
	assert_int_equal(ring_distance(RECORDS, 0), RECORDS);
}

static void records_come_out_in_order(void **state)
{
	struct fixture *f = *state;

	for (uint64_t id = 1; id <= 10; id++)
		emit(f, id);
	take_all_ids(f, 1, 10);
	assert_int_equal(take(f, 0), 0);
}

static void ring_is_reused_many_rounds(void **state)
{
	struct fixture *f = *state;

	for (uint64_t id = 0; id < 100 * RECORDS; id++) {
		emit(f, id);
		take_all_ids(f, id, 1);
	}
}

static void full_ring_is_seen_before_anything_is_claimed(void **state)
{
	struct fixture *f = *state;
	uint64_t position;

	for (uint64_t id = 0; id < RECORDS; id++)
		emit(f, id);
	assert_false(ring_claim(f->ring, RECORDS, PID, &position));
	assert_int_equal(position, RECORDS);
	take_all_ids(f, 0, RECORDS);
	emit(f, 7);
	take_all_ids(f, 7, 1);
}

static void unpublished_claim_holds_later_records_back(void **state)
{
	struct fixture *f = *state;
	uint64_t held = claim(f);

	emit(f, 2);
	assert_int_equal(take(f, 100), 0);
	assert_false(consumer_unblock(&f->consumer, 100 + CONSUMER_CLAIM_NS - 1, false));
	fill(f, held, 1);
	assert_true(ring_publish(slot(f, held), PID, held));
	take_all_ids(f, 1, 2);
}

static void claim_of_dead_owner_is_freed_and_counted(void **state)
{
	struct fixture *f = *state;

	claim(f);
	emit(f, 2);
	assert_int_equal(take(f, 100), 0);
	assert_true(consumer_unblock(&f->consumer, 101, true));
	take_all_ids(f, 2, 1);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 1);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 0);
}

static void late_owner_of_retired_claim_cannot_publish(void **state)
{
	struct fixture *f = *state;
	uint64_t held = claim(f);

	assert_int_equal(take(f, 100), 0);
	assert_true(consumer_unblock(&f->consumer, 100 + CONSUMER_CLAIM_NS, false));
	fill(f, held, 1);
	assert_false(ring_publish(slot(f, held), PID, held));
	emit(f, 2);
	take_all_ids(f, 2, 1);
}

/* As a target may write it, or 64 processes that were stopped within their claims. */
static void a_round_of_skipped_positions_is_as_good_as_an_empty_ring(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < RECORDS; i++)
		slot(f, i)->state = ring_state(RING_RETIRED, PID, i + 1000 * RECORDS);
	assert_true(consumer_has_work(&f->consumer));
	assert_int_equal(take(f, 0), 0);
	assert_int_equal(f->consumer.tail, RECORDS);
	assert_false(consumer_has_work(&f->consumer));
	/* Looked at again, it is still no work. */
	assert_int_equal(take(f, 0), 0);
	assert_false(consumer_has_work(&f->consumer));
	for (uint64_t i = 0; i < RECORDS; i++)
		slot(f, i)->state = ring_state(RING_FREE, 0, f->consumer.tail + i);
	f->ring->head = f->consumer.tail;
	emit(f, 1);
	take_all_ids(f, 1, 1);
	slot(f, f->consumer.tail)->state = ring_state(RING_RETIRED, PID, f->consumer.tail);
	assert_true(consumer_has_work(&f->consumer));
}

/* siglongjmp may leave a marker between its claim and its publishing. */
static void claim_retired_by_its_owner_holds_nobody_back(void **state)
{
	struct fixture *f = *state;
	uint64_t left = claim(f);

	emit(f, 1);
	assert_int_equal(take(f, 0), 0);
	assert_true(ring_retire(slot(f, left), PID, left));
	assert_false(ring_retire(slot(f, left), PID, left));
	take_all_ids(f, 1, 1);
	/* Should its marker go on after all, it cannot publish. */
	assert_false(ring_publish(slot(f, left), PID, left));
	consumer_bury(&f->consumer, PID);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 1);
}

static void retired_slot_is_passed_by_for_as_many_rounds_as_it_takes(void **state)
{
	struct fixture *f = *state;
	uint64_t held = claim(f), id = 1;

	assert_int_equal(take(f, 100), 0);
	assert_true(consumer_unblock(&f->consumer, 100 + CONSUMER_CLAIM_NS, false));
	for (; id < 10 * RECORDS; id++) {
		uint64_t position = emit(f, id);

		assert_int_not_equal(position % RECORDS, held % RECORDS);
		take_all_ids(f, id, 1);
	}
	ring_return_retired(slot(f, held), RECORDS, PID);
	for (bool used = false; !used; id++) {
		used = emit(f, id) % RECORDS == held % RECORDS;
		take_all_ids(f, id, 1);
		assert_true(id < 12 * RECORDS);
	}
}

static void retired_slot_given_back_before_its_round_is_skipped_once(void **state)
{
	struct fixture *f = *state;
	uint64_t held = claim(f);

	assert_int_equal(take(f, 100), 0);
	assert_true(consumer_unblock(&f->consumer, 100 + CONSUMER_CLAIM_NS, false));
	for (uint64_t id = 1; id < RECORDS; id++)
		emit(f, id);
	/* An emitter passes the slot, then the owner gives it back, then we come. */
	take_all_ids(f, 1, RECORDS - 1);
	emit(f, RECORDS);
	ring_return_retired(slot(f, held), RECORDS, PID);
	take_all_ids(f, RECORDS, 1);
	for (uint64_t id = 0; id < 3 * RECORDS; id++) {
		emit(f, id);
		take_all_ids(f, id, 1);
	}
}

static void slots_of_a_dead_process_are_given_back(void **state)
{
	struct fixture *f = *state;

	claim(f);
	assert_int_equal(take(f, 100), 0);
	assert_true(consumer_unblock(&f->consumer, 100 + CONSUMER_CLAIM_NS, false));
	consumer_bury(&f->consumer, PID + 1);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 0);
	consumer_bury(&f->consumer, PID);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 1);
	for (uint64_t id = 0; id < 2 * RECORDS; id++) {
		emit(f, id);
		take_all_ids(f, id, 1);
	}
}

/* Most processes leave none, and a large ring takes milliseconds to be looked through. */
static void only_what_can_be_retired_is_looked_at_when_a_process_ends(void **state)
{
	struct fixture *f = *state;
	uint64_t left;

	for (uint64_t id = 1; id <= 10; id++)
		emit(f, id);
	take_all_ids(f, 1, 10);
	/* Behind the tail, where none was seen: it would be given back if it were looked at. */
	slot(f, 3)->state = ring_state(RING_RETIRED, PID, 3 + RECORDS);
	consumer_bury(&f->consumer, PID);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 0);
	ring_return_retired(slot(f, 3), RECORDS, PID);
	/* Before it, and retired by the owner itself. */
	left = claim(f);
	assert_true(ring_retire(slot(f, left), PID, left));
	consumer_bury(&f->consumer, PID);
	assert_int_equal(consumer_take_losses(&f->consumer).claims, 1);
}

static void waiter_is_told_by_the_position(void **state)
{
	struct fixture *f = *state;
	uint64_t position = emit(f, 1);

	assert_true(ring_wait_begin(slot(f, position), position));
	assert_false(ring_is_acknowledged(slot(f, position), position));
	take_all_ids(f, 1, 1);
	assert_true(ring_is_acknowledged(slot(f, position), position));
	assert_false(ring_wait_begin(slot(f, position), position));
}

static void dropped_counter_that_runs_backwards_is_not_believed(void **state)
{
	struct fixture *f = *state;

	f->ring->dropped = 10;
	assert_int_equal(consumer_take_losses(&f->consumer).dropped, 10);
	f->ring->dropped = 3;
	assert_int_equal(consumer_take_losses(&f->consumer).dropped, 0);
	f->ring->dropped = 4;
	assert_int_equal(consumer_take_losses(&f->consumer).dropped, 1);
}

static void any_bytes_are_survived(void **state)
{
	struct fixture *f = *state;
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint64_t *words = (uint64_t *)(void *)f->ring;

		for (int k = 0; k < 8; k++) {
			uint64_t value = (uint64_t)rand_r(&seed) << 33 ^
					 (uint64_t)rand_r(&seed) << 11 ^ (uint64_t)rand_r(&seed);
			words[(size_t)rand_r(&seed) % (ring_bytes(RECORDS) / 8)] = value;
		}
		if (round % 3 == 0)
			slot(f, f->consumer.tail)->state = ring_state(
				(enum ring_kind)(rand_r(&seed) & 7), PID, f->consumer.tail);
		size_t n = take(f, (uint64_t)round);

		assert_true(n <= RECORDS);
		for (size_t i = 0; i < n; i++)
			assert_true(strlen(f->batch[i].record.name) < JPHASE_NAME_ROOM);
		consumer_release(&f->consumer, f->batch, n);
		consumer_unblock(&f->consumer, (uint64_t)round, round & 1);
		consumer_bury(&f->consumer, PID);
	}
}

/* Emitters in threads against the consumer: every id comes out exactly once or is counted. */
#define EMITTERS 4
#define EACH     50000

struct load {
	struct fixture *fixture;
	uint32_t who;
	uint64_t dropped;
};

static void *emit_load(void *data)
{
	struct load *load = data;
	struct jphase_ring *ring = load->fixture->ring;

	for (uint32_t i = 0; i < EACH; i++) {
		struct jphase_record *rec;
		uint64_t position;

		if (!ring_claim(ring, RECORDS, (pid_t)load->who + 1, &position)) {
			load->dropped++;
			continue;
		}
		rec = ring_slot(ring, RECORDS, position);
		rec->pid = load->who;
		rec->id = i;
		rec->kind = JPHASE_MARK;
		if (!ring_publish(rec, (pid_t)load->who + 1, position))
			abort();
	}
	return NULL;
}

static void concurrent_emitters_lose_nothing_uncounted(void **state)
{
	struct fixture *f = *state;
	struct load load[EMITTERS];
	pthread_t thread[EMITTERS];
	uint64_t next[EMITTERS] = { 0 }, taken = 0, dropped = 0, last = 0;
	int running = EMITTERS;

	for (uint32_t i = 0; i < EMITTERS; i++) {
		load[i] = (struct load){ .fixture = f, .who = i };
		pthread_create(&thread[i], NULL, emit_load, &load[i]);
	}
	while (running || consumer_has_work(&f->consumer)) {
		size_t n = take(f, 0);

		for (size_t i = 0; i < n; i++) {
			const struct jphase_record *rec = &f->batch[i].record;

			assert_true(rec->pid < EMITTERS);
			assert_true(rec->id >= next[rec->pid]);
			next[rec->pid] = rec->id + 1;
			assert_true(taken == 0 || f->batch[i].position > last);
			last = f->batch[i].position;
			taken++;
		}
		consumer_release(&f->consumer, f->batch, n);
		if (running && pthread_tryjoin_np(thread[EMITTERS - running], NULL) == 0)
			running--;
	}
	for (int i = 0; i < EMITTERS; i++)
		dropped += load[i].dropped;
	assert_int_equal(taken + dropped, EMITTERS * EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_keep_their_parts),
		cmocka_unit_test(distances_survive_the_wrap_of_positions),
		cmocka_unit_test_setup_teardown(records_come_out_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ring_is_reused_many_rounds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			full_ring_is_seen_before_anything_is_claimed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			unpublished_claim_holds_later_records_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			claim_of_dead_owner_is_freed_and_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			late_owner_of_retired_claim_cannot_publish, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			retired_slot_is_passed_by_for_as_many_rounds_as_it_takes, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			retired_slot_given_back_before_its_round_is_skipped_once, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			slots_of_a_dead_process_are_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			only_what_can_be_retired_is_looked_at_when_a_process_ends, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			claim_retired_by_its_owner_holds_nobody_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_round_of_skipped_positions_is_as_good_as_an_empty_ring, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(waiter_is_told_by_the_position, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			dropped_counter_that_runs_backwards_is_not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(any_bytes_are_survived, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			concurrent_emitters_lose_nothing_uncounted, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
