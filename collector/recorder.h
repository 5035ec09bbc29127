/* SPDX-License-Identifier: MIT */
/*
 * Writes a recording.  Records are packed into memory by the marker thread; a
 * writer thread takes them to disk at 64 KiB or after 100 ms.  A stalled disk
 * blocks nobody: over RECORDER_BACKLOG_BYTES whole records are dropped and
 * counted, and a loss record tells it.  A record is written whole or not at
 * all, so that the file always decodes to its end.
 */
#ifndef COLLECTOR_RECORDER_H
#define COLLECTOR_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "metric.h"

#define RECORDER_BACKLOG_BYTES (16u << 20)

struct recorder;

struct recorder_reader {
	const char *name;
	bool critical;
	const char *absent;                /* reason, or NULL */
	const struct metric_list *metrics; /* NULL where absent */
};

struct recorder_header {
	const char *command; /* arguments as in /proc/PID/cmdline, NUL between them */
	size_t command_bytes;
	const char *mode;
	uint64_t poll_ns;
	uint64_t interval_ns;
	uint32_t ring_records;
	pid_t pid;
	const struct recorder_reader *readers;
	size_t reader_count;
	const char *token_pattern; /* or NULL */
};

struct record_marker {
	uint64_t time_ns;
	uint64_t process;
	uint32_t tid;
	uint8_t kind; /* enum jphase_kind */
	const char *name;
	double value;
	uint64_t id;
	uint8_t flags;
	uint32_t took_ns;
	uint64_t done_ns;
	uint64_t snapshot; /* 0: none */
};

struct record_exit {
	uint64_t time_ns;
	uint64_t process;
	int status;       /* as wait() gives it, or RECORD_STATUS_UNKNOWN */
	uint64_t user_us; /* these three: VALUE_ABSENT where unknown */
	uint64_t system_us;
	uint64_t peak_bytes;
	uint64_t snapshot; /* 0: none */
};

#define RECORD_STATUS_UNKNOWN (-1)
#define RECORD_NO_PROCESS     UINT64_MAX

/*
 * Takes fd, which it owns from then on (also on failure), and starts the
 * writer.  With sync every write is followed by fdatasync.
 */
int recorder_open(int fd, bool sync, struct recorder **ret);

/* All of these are called by one thread.  They pack into memory and never wait. */
int recorder_header(struct recorder *r, const struct recorder_header *header);
int recorder_process(struct recorder *r, uint64_t time_ns, uint64_t process, pid_t pid,
	pid_t parent, const char *name, const char *how, const char *absent);
int recorder_marker(struct recorder *r, const struct record_marker *marker);
int recorder_snapshot(struct recorder *r, uint64_t snapshot, uint64_t process, const char *reader,
	uint64_t begin_ns, uint64_t end_ns, const uint64_t *values,
	const struct metric_list *metrics);
int recorder_thread(struct recorder *r, uint64_t snapshot, uint64_t process, uint32_t tid,
	const char *reader, const char *how, uint64_t begin_ns, uint64_t end_ns,
	const uint64_t *values, const struct metric_list *metrics);
int recorder_sample(struct recorder *r, uint64_t time_ns, uint64_t process, const char *reader,
	const uint64_t *values, const struct metric_list *metrics);
int recorder_loss(struct recorder *r, uint64_t time_ns, const char *what, uint64_t count);
int recorder_note(struct recorder *r, uint64_t time_ns, uint64_t process, const char *text);
int recorder_exit(struct recorder *r, const struct record_exit *exit);
int recorder_summary(struct recorder *r, uint64_t time_ns, uint64_t markers, uint64_t lost,
	uint64_t processes, uint64_t snapshots, bool complete);

/* Records dropped since the last call because of the backlog or a failed disk. */
uint64_t recorder_take_dropped(struct recorder *r);

/* Waits until everything packed so far is on disk, at most timeout_ns.  -ETIMEDOUT, or what hinders it. */
int recorder_flush(struct recorder *r, uint64_t timeout_ns);

/* The descriptor, for flock; the recorder goes on owning it. */
int recorder_fd(const struct recorder *r);

/* Flushes for at most one second, closes.  Takes NULL, returns NULL. */
struct recorder *recorder_close(struct recorder *r);

#endif
