/* SPDX-License-Identifier: MIT */
/* Markers from outside of the processes: the side of who makes them. */
#ifndef COLLECTOR_OUTSIDE_H
#define COLLECTOR_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"
#include "token.h"

#define OUTSIDE_ERROR_ROOM 2048

/* Which session is meant. */
struct outside_choice {
	const char *session; /* "jphase-0123456789abcdef" or the beginning of it; NULL: any */
	pid_t pid;           /* the one that has this process; 0: any, and its first process */
	/* JPHASE_SESSION, or NULL: its session is meant where the others do not say. */
	const char *own;
};

struct outside_mark {
	enum jphase_kind kind;
	const char *name;
	uint64_t clock_ns;
};

/*
 * Finds the session, marks, and waits until the counters have been read.
 * Errors come with a sentence, which may have lines of its own.
 */
int outside_mark(const struct outside_choice *choice, const struct outside_mark *mark,
	char ret_error[OUTSIDE_ERROR_ROOM]);

/* Who sends tokens to a collector that does not answer. */
struct outside_sender {
	int socket;
	bool stalled; /* it had no room for the last one */
	uint32_t lost;
};

/* sender is a struct outside_sender.  Waits at most 50 ms, then counts it as lost. */
void outside_send_token(void *sender, const struct token *token, uint64_t clock_ns);

#endif
