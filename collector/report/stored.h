/* SPDX-License-Identifier: MIT */
/*
 * Values in little room: each its own number, and all else that is known of it
 * once for the many that share it.
 */
#ifndef REPORT_STORED_H
#define REPORT_STORED_H

#include <stdint.h>

struct value;

struct stored {
	uint64_t number;
	uint32_t quality; /* index; 0: VALUE_MISSING */
} __attribute__((packed, aligned(4)));

struct qualities;

int qualities_open(struct qualities **ret);
struct qualities *qualities_close(struct qualities *q);

/* -ENOMEM or 0. */
int stored_put(struct qualities *q, const struct value *v, struct stored *ret);
struct value stored_get(const struct qualities *q, const struct stored *s);

#endif
