/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzers share.  Each is one entry point in a file of its own, which
 * libFuzzer or replay.c calls.  A broken claim aborts.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLAIM(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A copy that ends in NUL, in a block of its own size, to be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	CLAIM(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
