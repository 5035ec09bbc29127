/* SPDX-License-Identifier: MIT */
/*
 * What the library in the target and the collector share: the layout of the
 * ring and of the session page, and the two messages of the handshake.
 *
 * A minor version adds record kinds, flags, or fields at the end of a message;
 * either side ignores what it does not know.  A major version changes
 * something that exists; sides of different major versions refuse each other.
 *
 * Everything is in the byte order and alignment of the machine.  C11 alone:
 * programs include jphase.h, which needs nothing of this.
 */
#ifndef JPHASE_ABI_H
#define JPHASE_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define JPHASE_ABI_MAJOR 1
#define JPHASE_ABI_MINOR 0

/* "jphase\0\1", the first eight bytes of a ring. */
#define JPHASE_RING_MAGIC 0x010065736168706aULL

#define JPHASE_RECORD_BYTES 128
#define JPHASE_NAME_ROOM    80 /* 70 bytes, '~', 8 hex digits, NUL */

/* Records in a ring: a power of two. */
#define JPHASE_RING_MIN     64
#define JPHASE_RING_DEFAULT 4096
#define JPHASE_RING_MAX     (1u << 20)

/* Kinds of records.  0 to 255; unknown ones are skipped and counted. */
enum jphase_kind {
	JPHASE_NONE = 0,
	JPHASE_PHASE = 1,  /* ends the process's phase, begins the next */
	JPHASE_BEGIN = 2,  /* opens a region on the thread */
	JPHASE_END = 3,    /* closes one; empty name: the innermost */
	JPHASE_MARK = 4,   /* something happened */
	JPHASE_VALUE = 5,  /* value: an amount of work */
	JPHASE_EXIT = 6,   /* the process runs its destructors */
	JPHASE_NOTICE = 7, /* id: enum jphase_notice, name: its subject */
};

/* Things that only the target can see. */
enum jphase_notice {
	JPHASE_NOTICE_SIGNAL_TAKEN = 1, /* the program replaced our handler; name: the signal */
	JPHASE_NOTICE_SIGNAL_FAILED = 2 /* the handler could not be installed */
};

/* Flags of a record. */
#define JPHASE_FLAG_SIGNAL   0x01u /* emitted by one of our signal handlers */
#define JPHASE_FLAG_NESTED   0x02u /* interrupted another marker of its thread */
#define JPHASE_FLAG_UNWAITED 0x04u /* did not wait, or not until its counters were read */
#define JPHASE_FLAG_OUTSIDE  0x08u /* not emitted by the process itself */
#define JPHASE_FLAG_TOKEN    0x10u /* found in its standard output; id: the line, from 0 */

struct jphase_record {
	_Atomic uint64_t state; /* include/internal/ring.h */
	uint64_t clock_ns;      /* CLOCK_MONOTONIC at the marker's entry */
	uint64_t id;
	double value;
	uint32_t pid; /* as the target sees itself */
	uint32_t tid;
	uint32_t took_ns; /* this thread's previous marker; 0: none, saturates */
	uint8_t kind;
	uint8_t flags;
	uint16_t reserved;
	char name[JPHASE_NAME_ROOM];
};

static_assert(sizeof(struct jphase_record) == JPHASE_RECORD_BYTES, "a record has 128 bytes");
static_assert(offsetof(struct jphase_record, clock_ns) == 8, "layout");
static_assert(offsetof(struct jphase_record, id) == 16, "layout");
static_assert(offsetof(struct jphase_record, value) == 24, "layout");
static_assert(offsetof(struct jphase_record, pid) == 32, "layout");
static_assert(offsetof(struct jphase_record, tid) == 36, "layout");
static_assert(offsetof(struct jphase_record, took_ns) == 40, "layout");
static_assert(offsetof(struct jphase_record, kind) == 44, "layout");
static_assert(offsetof(struct jphase_record, name) == 48, "layout");

struct jphase_ring {
	uint64_t magic;
	uint16_t abi_major;
	uint16_t abi_minor;
	uint32_t record_bytes;
	uint32_t records;
	uint32_t reserved0[11];
	_Atomic uint64_t head; /* a hint: where to look for a free slot */
	uint64_t reserved1[7];
	_Atomic uint64_t dropped; /* markers that found no room */
	_Atomic uint64_t revoked; /* markers whose claim was taken back */
	uint64_t reserved2[6];
	struct jphase_record record[];
};

static_assert(offsetof(struct jphase_ring, head) == 64, "layout");
static_assert(offsetof(struct jphase_ring, dropped) == 128, "layout");
static_assert(offsetof(struct jphase_ring, record) == 192, "layout");

/* Session page flags. */
#define JPHASE_SESSION_WAITS   0x01u /* phases wait until their counters are read */
#define JPHASE_SESSION_RINGS   0x02u /* markers ring the doorbell */
#define JPHASE_SESSION_REGIONS 0x04u /* begin and end have counters, and wait as phases do */
/* Begin and end pass the probe site instead of waiting; may be taken back at any time. */
#define JPHASE_SESSION_SAMPLES 0x08u

/*
 * With SAMPLES: an end waits for the collector before half as many again of a
 * thread's records wait for it.  The kernel's buffers hold that many samples.
 */
#define JPHASE_SAMPLES_AHEAD 128

struct jphase_session_page {
	_Atomic uint32_t doorbell; /* a futex */
	_Atomic uint32_t sleeps;   /* the collector waits on the doorbell */
	_Atomic uint32_t stalled;  /* nobody waits for anything */
	uint32_t flags;
	uint64_t output_device; /* these two: the pipe whose lines are markers, or 0 */
	uint64_t output_inode;
	uint32_t reserved0[8];
	_Atomic uint32_t owner; /* a robust futex of the collector: its tid */
	uint32_t reserved1[15];
};

static_assert(offsetof(struct jphase_session_page, output_device) == 16, "layout");
static_assert(offsetof(struct jphase_session_page, owner) == 64, "layout");
static_assert(sizeof(struct jphase_session_page) == 128, "layout");

#define JPHASE_TOKEN_BYTES 16

/* Where a collector finds the socket of who has started it, and how much of a command it takes. */
#define JPHASE_COLLECTOR_FD 3
#define JPHASE_COMMAND_ROOM (60u << 10)

/* Target to collector. */
#define JPHASE_HELLO_LAUNCH     0x01u /* from `jphase run`: pid is a stopped child of the sender */
#define JPHASE_HELLO_PRIVILEGED 0x02u /* with LAUNCH: the program is set-user-ID or unreadable */
#define JPHASE_HELLO_GROUP      0x04u /* with LAUNCH: asks for the cgroup first, without a pid */
#define JPHASE_HELLO_PLACED     0x08u /* with LAUNCH: pid was born in that cgroup */
#define JPHASE_HELLO_MARK       0x10u /* a struct jphase_mark follows; the owner needs no token */
#define JPHASE_HELLO_ATTACH                                                                        \
	0x20u /* from `jphase attach`: the next message lists other pids, then 0 */

#define JPHASE_ATTACH_MAX 255 /* others, 32 bits each */

struct jphase_hello {
	uint32_t length; /* of this message, in bytes */
	uint16_t abi_major;
	uint16_t abi_minor;
	uint8_t token[JPHASE_TOKEN_BYTES];
	uint64_t clock_ns;
	uint32_t record_bytes;
	uint32_t flags;
	uint32_t pid; /* with LAUNCH; else the socket's credentials count */
	uint32_t reserved;
	uint64_t site; /* address of the probe site, or 0 */
};

static_assert(sizeof(struct jphase_hello) == 56, "layout");

/*
 * A marker from outside: behind a hello with MARK, whose clock_ns is the
 * marker's and whose pid says which process (0: the session's first), at the
 * hello's length in the same message.
 */
struct jphase_mark {
	uint32_t length;
	uint8_t kind; /* JPHASE_PHASE, JPHASE_MARK; JPHASE_NONE only asks who is there */
	uint8_t flags;
	uint16_t reserved;
	uint64_t id;
	char name[JPHASE_NAME_ROOM];
};

static_assert(sizeof(struct jphase_mark) == 96, "layout");

/* Its answer, when the counters have been read. */
#define JPHASE_ANSWER_ROOM 256

struct jphase_answer {
	uint32_t length;
	int32_t status; /* 0, or -errno and message says why */
	uint32_t pid;   /* the process */
	uint32_t reserved;
	char message[JPHASE_ANSWER_ROOM]; /* the process's name */
};

static_assert(sizeof(struct jphase_answer) == 16 + JPHASE_ANSWER_ROOM, "layout");

#define JPHASE_SIGNALS_MAX   32
#define JPHASE_SIGNAL_NAME   60
/* Before the address in JPHASE_SESSION: for the first process, which is waited for longer. */
#define JPHASE_SESSION_FIRST '+'

#define JPHASE_SESSION_ROOM   64
#define JPHASE_MESSAGE_ROOM   512
#define JPHASE_WELCOME_FDS    3 /* ring, session page, presence page, in this order */
#define JPHASE_PRESENCE_BYTES 4096
#define JPHASE_PAGE_BYTES     4096 /* of the session page's mapping */

struct jphase_signal {
	int32_t number;
	char name[JPHASE_SIGNAL_NAME];
};

/* Collector to target. */
struct jphase_welcome {
	uint32_t length;
	uint16_t abi_major;
	uint16_t abi_minor;
	int32_t status; /* 0, or -errno and message says why */
	uint32_t records;
	uint32_t first; /* 1: the session's first process */
	uint32_t signals;
	char session[JPHASE_SESSION_ROOM]; /* "ADDRESS:TOKEN" for JPHASE_SESSION */
	char message[JPHASE_MESSAGE_ROOM];
	struct jphase_signal signal[JPHASE_SIGNALS_MAX];
};

static_assert(sizeof(struct jphase_welcome) == 24 + 64 + 512 + 32 * 64, "layout");

#endif
