/* SPDX-License-Identifier: MIT */
/*
 * Where the energy reader gets its numbers: the processor's energy counters
 * (RAPL), which the kernel shows in two ways.
 */
#ifndef READERS_ENERGY_H
#define READERS_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "readers/reader.h"

enum energy_kind {
	ENERGY_PACKAGE,
	ENERGY_CORE,
	ENERGY_DRAM,
	ENERGY_UNCORE,
	ENERGY_PSYS,
};

/* One counter, of one die. */
struct energy_counter {
	enum energy_kind kind;
	int package; /* as the kernel numbers it; PSYS are numbered from 0 */
	int die;
	uint64_t range_uj; /* what it begins anew after; 0: nothing */
	char *where;       /* how to call it in a sentence */
	char *absent;      /* why it cannot be read, or NULL */
	const char *note;  /* what to know of it, or NULL */
};

struct energy_counters {
	struct energy_counter *counter;
	size_t count;
};

/* What a way keeps open. */
struct energy_bank;

struct energy_way {
	const char *name; /* in reports: permanent */
	/* Counters start with the machine, so that two that are equal are one and the same. */
	bool absolute;

	/* -ENODEV: the machine has nothing of the kind.  On other errors too ret_reason is set. */
	int (*open)(const struct reader_env *env, struct energy_counters *ret_counters,
		struct energy_bank **ret, char ret_reason[READER_REASON_ROOM]);

	/* One number in µJ for each counter, VALUE_ABSENT where it cannot be read. */
	void (*read)(struct energy_bank *b, uint64_t *ret_uj);

	/* Takes NULL, returns NULL. */
	struct energy_bank *(*close)(struct energy_bank *b);
};

extern const struct energy_way powercap_way;
extern const struct energy_way rapl_perf_way;

/* Takes what the strings point to.  -ENOMEM leaves the list as it was. */
int energy_counters_add(struct energy_counters *list, const struct energy_counter *counter);
void energy_counters_clear(struct energy_counters *list);

/* The first counter of that kind and package, or NULL. */
const struct energy_counter *energy_counters_find(
	const struct energy_counters *list, enum energy_kind kind, int package);

/* AMD's dies all show the energy of their package; a core's counter is that of one core. */
bool energy_is_amd(const struct reader_env *env);

#endif
