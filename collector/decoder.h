/* SPDX-License-Identifier: MIT */
/*
 * Reads a recording, piece by piece, from any bytes whatever.  Memory is
 * bounded by EXTENT_BYTES_MAX and a small multiple of it, not by what the bytes
 * claim.  Columns that a later version may add at a record's end are ignored;
 * records of unknown kind and records that make no sense are counted.
 */
#ifndef COLLECTOR_DECODER_H
#define COLLECTOR_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"
#include "recorder.h"

/* More metrics than this in all is not a recording. */
#define DECODER_METRICS_MAX 1024
#define DECODER_READERS_MAX 32
#define DECODER_GROUPS_MAX  256

struct decoded_reader {
	char *name;
	bool critical;
	char *absent; /* reason, or NULL */
	struct metric_list metrics;
};

/* Lives as long as the decoder.  Texts are never NULL but where said. */
struct decoded_header {
	char *version;
	char *host;
	char *kernel;
	char *cpu;
	char *command; /* arguments, a space between them */
	char *mode;
	char *token_pattern; /* or NULL */
	uint64_t cpus;
	uint64_t started_us;
	uint64_t clock_ns;
	uint64_t poll_ns;
	uint64_t interval_ns;
	uint64_t ring_records;
	pid_t pid;
	struct decoded_reader *readers;
	size_t reader_count;
};

/* The texts of all records live until the callback returns. */
struct decoded_process {
	uint64_t time_ns;
	uint64_t process;
	pid_t pid;
	pid_t parent;
	const char *name;
	const char *how;
	const char *absent; /* or NULL */
};

struct decoded_snapshot {
	uint64_t snapshot;
	uint64_t process; /* RECORD_NO_PROCESS: of the session */
	size_t reader;    /* index into the header's */
	uint64_t begin_ns;
	uint64_t end_ns;
	const uint64_t *values; /* metric_list_values() of them */
};

struct decoded_thread {
	uint64_t snapshot;
	uint64_t process;
	uint32_t tid;
	size_t reader;   /* index into the header's */
	const char *how; /* "read", "sampled" */
	uint64_t begin_ns;
	uint64_t end_ns;
	const uint64_t *values; /* metric_list_values() of them */
};

struct decoded_sample {
	uint64_t time_ns;
	uint64_t process;
	size_t reader;
	const uint64_t *values; /* one per metric */
};

struct decoded_summary {
	uint64_t time_ns;
	uint64_t markers;
	uint64_t lost;
	uint64_t processes;
	uint64_t snapshots;
	bool complete;
};

/* Each returns 0, or an error that ends the decoding.  Any may be NULL. */
struct decoder_ops {
	int (*header)(void *data, const struct decoded_header *header);
	int (*process)(void *data, const struct decoded_process *process);
	int (*marker)(void *data, const struct record_marker *marker);
	int (*snapshot)(void *data, const struct decoded_snapshot *snapshot);
	int (*thread)(void *data, const struct decoded_thread *thread);
	int (*sample)(void *data, const struct decoded_sample *sample);
	int (*loss)(void *data, uint64_t time_ns, const char *what, uint64_t count);
	int (*note)(void *data, uint64_t time_ns, uint64_t process, const char *text);
	int (*exit)(void *data, const struct record_exit *exit);
	int (*summary)(void *data, const struct decoded_summary *summary);
};

struct decoder_counts {
	uint64_t records;
	uint64_t unknown; /* of a kind that this version does not know */
	uint64_t invalid; /* of a known kind, but without sense */
	uint64_t bytes;   /* of whole objects */
	size_t rest;      /* bytes after the last whole object */
};

struct decoder;

int decoder_open(const struct decoder_ops *ops, void *data, struct decoder **ret);

/*
 * -EBADMSG: not a jphase recording.  -EPROTONOSUPPORT: of a later version.
 * -EILSEQ: damaged at counts.bytes; what came before has been told.  After an
 * error every later call returns it again.
 */
int decoder_feed(struct decoder *d, const void *bytes, size_t size);

/* Feeds all that fd gives.  Also -errno of reading. */
int decoder_feed_fd(struct decoder *d, int fd);

/* False: there was not even a whole header. */
bool decoder_has_header(const struct decoder *d);
/* There was the beginning of one. */
bool decoder_has_begun(const struct decoder *d);
const struct decoded_header *decoder_header(const struct decoder *d);
void decoder_get_counts(const struct decoder *d, struct decoder_counts *ret);

/* Takes NULL, returns NULL. */
struct decoder *decoder_close(struct decoder *d);

#endif
