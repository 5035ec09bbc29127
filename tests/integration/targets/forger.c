/* SPDX-License-Identifier: MIT */
/*
 * forger pids ROUNDS PID: writes markers of processes that are none of its
 * session, of PID among them.
 * forger bytes ROUNDS SEED: writes anything anywhere in what it shares with the
 * collector, and marks and forks between.
 * forger hold ROUNDS: so many children mark and end behind a claim of their parent.
 * forger ahead ROUNDS: lets all records of the ring, so often, be those of a far later round.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jphase/jphase.h>

#include "internal/ring.h"

#define FIRST_FORGED 5000000 /* no kernel has so many */

static struct jphase_ring *ring;
static uint8_t *page;
static unsigned seed;

static void *find_mapping(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	void *found = NULL;
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps))
		if (strstr(line, name))
			found = (void *)(uintptr_t)strtoul(line, NULL, 16);
	if (maps)
		fclose(maps);
	if (!found) {
		puts("not measured");
		exit(0);
	}
	return found;
}

static void rest(long us)
{
	const struct timespec ts = { 0, us * 1000 };

	nanosleep(&ts, NULL);
}

static uint64_t claim(void)
{
	uint64_t position;

	while (!ring_claim(ring, ring->records, getpid(), &position))
		rest(100);
	return position;
}

static void publish(uint64_t position, uint32_t pid, enum jphase_kind kind)
{
	struct jphase_record *rec = ring_slot(ring, ring->records, position);

	memset((char *)rec + sizeof(rec->state), 0, sizeof(*rec) - sizeof(rec->state));
	rec->pid = rec->tid = pid;
	rec->kind = (uint8_t)kind;
	strcpy(rec->name, "forged");
	ring_publish(rec, getpid(), position);
}

static void forge(uint32_t pid, enum jphase_kind kind)
{
	publish(claim(), pid, kind);
}

/* The first marker has been taken when it returns; what is left lies behind the claim. */
static void mark_and_wait(const int ready[2], const int go[2])
{
	char byte = 0;

	joule_phase("held");
	if (write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1)
		joule_mark("left");
	_exit(0);
}

static void hold(long rounds)
{
	int ready[2], go[2];
	char byte = 0;

	if (pipe(ready) < 0 || pipe(go) < 0)
		exit(1);
	for (long i = 0; i < rounds; i++) {
		uint64_t position;
		pid_t pid = fork();

		if (pid == 0)
			mark_and_wait(ready, go);
		if (read(ready[0], &byte, 1) != 1)
			exit(1);
		position = claim();
		if (write(go[1], &byte, 1) != 1)
			exit(1);
		waitpid(pid, NULL, 0);
		/* The collector hears of its end meanwhile. */
		rest(50000);
		publish(position, (uint32_t)getpid(), JPHASE_MARK);
	}
}

static void forge_pids(long rounds, uint32_t other)
{
	static const enum jphase_kind kinds[] = { JPHASE_PHASE, JPHASE_BEGIN, JPHASE_MARK,
		JPHASE_EXIT };

	for (long i = 0; i < rounds; i++)
		forge(i % 100 ? FIRST_FORGED + (uint32_t)i : other, kinds[i % 4]);
}

static unsigned any(unsigned below)
{
	return (unsigned)rand_r(&seed) % below;
}

static void write_record(void)
{
	struct jphase_record *rec = &ring->record[any(ring->records)];

	for (size_t i = sizeof(rec->state); i < sizeof(*rec); i++)
		((uint8_t *)rec)[i] = (uint8_t)any(256);
	if (any(2))
		rec->pid = (uint32_t)getpid();
	if (any(2))
		rec->kind = (uint8_t)any(9);
}

static void write_state(void)
{
	uint64_t position = ring->head + any(64) - 32;
	uint64_t round = (uint64_t)any(3) - 1;

	atomic_store(&ring_slot(ring, ring->records, position)->state,
		ring_state((enum ring_kind)any(8), any(3) ? getpid() : (pid_t)any(1u << 22),
			position + round * ring->records));
}

static void write_head(void)
{
	if (any(50) == 0)
		atomic_store(&ring->head, (uint64_t)any(1u << 30) << any(20));
	if (any(50) == 0)
		atomic_store(&ring->dropped, any(1000));
}

/* All but the owner's word, which tells us that the collector lives. */
static void write_page(void)
{
	if (any(20) == 0)
		page[any(64)] = (uint8_t)any(256);
}

static void mark(void)
{
	if (any(20) == 0)
		joule_mark("own");
}

static void fork_and_mark(void)
{
	pid_t pid;

	if (any(200))
		return;
	pid = fork();
	if (pid == 0) {
		joule_phase("child");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void (*const deeds[])(
	void) = { write_record, write_state, write_head, write_page, mark, fork_and_mark };

static void write_bytes(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		deeds[any(sizeof(deeds) / sizeof(deeds[0]))]();
		if (i % 1000 == 0)
			rest(1000);
	}
}

static void run_ahead(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		for (uint32_t k = 0; k < ring->records; k++)
			atomic_store(&ring->record[k].state,
				ring_state(RING_RETIRED, getpid(),
					k + (UINT64_C(1) << 32) + (uint64_t)i * ring->records));
		joule_phase("ahead");
		rest(2000);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long rounds = argc > 2 ? atol(argv[2]) : 0;
	unsigned number = argc > 3 ? (unsigned)atol(argv[3]) : 0;

	ring = find_mapping("memfd:jphase-ring");
	page = find_mapping("memfd:jphase-session");
	joule_phase("begin");
	if (strcmp(what, "pids") == 0)
		forge_pids(rounds, number);
	else if (strcmp(what, "hold") == 0)
		hold(rounds);
	else if (strcmp(what, "ahead") == 0)
		run_ahead(rounds);
	seed = number;
	if (strcmp(what, "bytes") == 0)
		write_bytes(rounds);
	puts("done");
	return 0;
}
