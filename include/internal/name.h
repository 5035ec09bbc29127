/* SPDX-License-Identifier: MIT */
/* Names of markers as records hold them.  Any thread, any signal context. */
#ifndef INTERNAL_NAME_H
#define INTERNAL_NAME_H

#include <stdint.h>
#include <string.h>

#include "jphase/abi.h"

#define NAME_MAX_BYTES 70

static inline uint32_t name_hash(const char *s)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

/*
 * Longer names end in '~' and a hash of the whole, so that different ones stay
 * different.  What follows is zeros: the caller's stack is nobody's business.
 */
static inline void name_copy(char to[JPHASE_NAME_ROOM], const char *name)
{
	size_t n = strnlen(name, NAME_MAX_BYTES + 1);
	uint32_t h;

	memset(to, 0, JPHASE_NAME_ROOM);
	if (n <= NAME_MAX_BYTES) {
		memcpy(to, name, n);
		return;
	}
	n = NAME_MAX_BYTES;
	while (n > NAME_MAX_BYTES - 4 && ((uint8_t)name[n] & 0xc0) == 0x80)
		n--;
	memcpy(to, name, n);
	to[n++] = '~';
	h = name_hash(name);
	for (int shift = 28; shift >= 0; shift -= 4)
		to[n++] = "0123456789abcdef"[h >> shift & 15];
}

#endif
