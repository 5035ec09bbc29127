/* SPDX-License-Identifier: MIT */
/* The event list as users write it.  Pure: knows nothing of the machine. */
#ifndef READERS_EVENT_WORDS_H
#define READERS_EVENT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "readers/reader.h"

#define EVENT_NO_BRACE (-1)

struct event_word {
	char *text;  /* as written */
	char *name;  /* without the modifier */
	bool user;   /* :u, user space only */
	bool kernel; /* :k, the kernel only; both together are neither */
	int brace;   /* which {} it stands in, from 0, or EVENT_NO_BRACE */
};

struct event_words {
	struct event_word *word;
	size_t count;
};

/* A comma list with {groups}.  -EINVAL: ret_reason says what is wrong with it. */
int events_parse(const char *text, struct event_words *ret, char ret_reason[READER_REASON_ROOM]);
void event_words_clear(struct event_words *words);

#endif
