/* SPDX-License-Identifier: MIT */
/*
 * Stands between a program's standard output and ours: passes every byte on as
 * it comes, and looks for tokens meanwhile.  A thread of its own does it.
 *
 * It holds up to RELAY_ROOM bytes more than the pipe for a reader that is slow.
 * When our reader goes, the pipe is closed, so that the program gets its
 * SIGPIPE.
 */
#ifndef COLLECTOR_RELAY_H
#define COLLECTOR_RELAY_H

#include <stdint.h>
#include <sys/types.h>

#include "token.h"

#define RELAY_ROOM (64u << 10)

struct relay;

/* Called by the thread, with the time at which the line's end was read. */
struct relay_sink {
	void (*token)(void *data, const struct token *token, uint64_t clock_ns);
	void *data;
};

/* Makes the pipe.  -EBADF: our own standard output is closed.  -EINVAL: the pattern. */
int relay_open(const char *pattern, const struct relay_sink *sink, struct relay **ret);

/* The end that becomes the program's standard output, whose user may open it anew. */
int relay_input(const struct relay *r);
int relay_give_to(const struct relay *r, uid_t uid);

/* To be called when the program has its end: ours is closed, the thread begins. */
int relay_start(struct relay *r);

/* The program has ended: returns when all that it has written has been looked at. */
void relay_settle(struct relay *r);

/*
 * Returns when that has been passed on as well.  Should others hold the pipe
 * still, a process that goes on passing on is left behind.  Frees; takes NULL,
 * returns NULL.
 */
struct relay *relay_close(struct relay *r);

#endif
