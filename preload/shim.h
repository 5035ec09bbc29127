/* SPDX-License-Identifier: MIT */
/*
 * The library inside the target.  It emits markers and does nothing else:
 * libc only, no heap, no locks, no threads, no descriptors kept.  The
 * constructor sets everything up, since any later moment may be inside a
 * sandbox or a signal handler.
 */
#ifndef PRELOAD_SHIM_H
#define PRELOAD_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jphase/abi.h"

#define SHIM_PATH_ROOM 4096

/* How long the target may be held up, in all. */
#define MARKER_WAIT_NS         UINT64_C(50000000)
#define EXIT_WAIT_NS           UINT64_C(200000000)
#define REGISTER_FIRST_WAIT_NS UINT64_C(2000000000)
#define REGISTER_OTHER_WAIT_NS UINT64_C(100000000)

/* A page that the kernel empties in every forked child. */
struct fork_guard {
	_Atomic pid_t pid;
};

/* Written by the constructor, read by every marker.  ring is NULL without a session. */
struct shim {
	struct jphase_ring *ring;
	struct jphase_session_page *page;
	struct fork_guard *guard;
	uint32_t records;
	bool waits;       /* phases wait for their counters */
	bool rings;       /* markers ring the doorbell */
	bool regions;     /* begin and end wait as phases do */
	bool first;       /* the session's first process */
	pid_t registered; /* who ran the constructor */
	_Atomic bool marked;
};

extern struct shim shim;

/* config.c: the variables, read once in the constructor. */
struct shim_config {
	const char *session;       /* ADDRESS:TOKEN, or NULL */
	const char *collector;     /* path, or NULL */
	const char *preload;       /* LD_PRELOAD, or NULL */
	bool preloaded;            /* LD_PRELOAD names this library */
	char path[SHIM_PATH_ROOM]; /* of this library, absolute */
};

/* False: this process is to be left alone. */
bool config_read(struct shim_config *config);

/*
 * Puts JPHASE_SESSION into the environment and makes this library's entry in
 * LD_PRELOAD absolute, for the programs that this one starts.
 */
int config_pass_on(const struct shim_config *config, const char *session);

/*
 * True if this process, or what it was before an exec, has been here before:
 * what there was to say has been said.  It is noted in the environment.
 */
bool config_told(void);

/* spawn.c: starts a detached collector.  Returns our end of its socket or -errno. */
int spawn_collector(const struct shim_config *config);

/* handshake.c */
struct handshake {
	int socket;
	uint64_t deadline_ns;
	uint8_t token[JPHASE_TOKEN_BYTES];
};

/* Connects to a session.  Returns a socket or -errno. */
int handshake_connect(const char *session, struct handshake *h);

/* Says hello, maps what comes back into shim.  welcome->message tells a refusal. */
int handshake_run(struct handshake *h, struct jphase_welcome *welcome);

/* emit.c: any thread, any signal context.  Keeps errno. */
struct marker {
	enum jphase_kind kind;
	uint8_t flags;
	const char *name;
	uint64_t id;
	double value;
};

void emit(const struct marker *marker);

/* emit.c: nobody takes markers any more.  Anywhere. */
bool collector_is_gone(void);

/* The process's own last marker: waits for its snapshot. */
void emit_exit(bool first);

/*
 * emit.c: where the kernel samples the thread's counters.  One plain nop, with
 * the record's position in the register of the first argument.
 */
extern const uint8_t jphase_probe_site[] __attribute__((visibility("hidden")));

/* signals.c */
void signals_install(const struct jphase_welcome *welcome);

/* Tells which of our handlers the program has replaced. */
void signals_check(void);

/* sigsafe.c: text without stdio. */
struct text {
	char *buf;
	size_t room;
	size_t used;
};

void text_add(struct text *t, const char *s);
void text_add_number(struct text *t, int64_t n);
/* Writes "jphase: TEXT\n" to standard error in one call. */
void complain(const char *message);

#endif
