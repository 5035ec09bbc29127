/* SPDX-License-Identifier: MIT */
/* Recordings made by hand, the same on every machine. */
#ifndef SUPPORT_RECORDING_H
#define SUPPORT_RECORDING_H

#include "recorder.h"

/* CLOCK_MONOTONIC and µs since the epoch at the header. */
#define RECORDING_CLOCK_NS   UINT64_C(1000000000)
#define RECORDING_STARTED_US UINT64_C(1700000000000000)

/* Bytes in memory that a recorder can write to. */
int recording_fd(void);

/* A header with fixed texts, and behind it a recorder on a copy of fd. */
struct recorder *recording_begin(
	int fd, const char *mode, const struct recorder_reader *readers, size_t count);

/* Closes the recorder and puts fd back to its beginning. */
void recording_end(int fd, struct recorder *r);

/* All of fd from its beginning, to be freed. */
char *recording_bytes(int fd, size_t *ret_size);

#endif
