/* SPDX-License-Identifier: MIT */
/* Sentences that say why a reader or an event cannot be had. */
#ifndef READERS_REASON_H
#define READERS_REASON_H

#include <stdarg.h>
#include <stdio.h>

#include "readers/reader.h"

/*
 * Writes the sentence, cut to the room there is.  What a user wrote may hold
 * control characters, which must not reach a terminal.
 */
static inline void __attribute__((format(printf, 2, 3)))
reason_set(char reason[READER_REASON_ROOM], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, READER_REASON_ROOM, format, args);
	va_end(args);
	for (char *c = reason; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

#endif
