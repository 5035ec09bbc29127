/* SPDX-License-Identifier: MIT */
/* How many bytes the next msgpack object takes, found without allocating. */
#ifndef COLLECTOR_EXTENT_H
#define COLLECTOR_EXTENT_H

#include <stddef.h>

/* Larger or more deeply nested objects than these are never in a recording. */
#define EXTENT_BYTES_MAX (1u << 20)
#define EXTENT_DEPTH_MAX 8

/*
 * 0: the object at data has *ret_bytes bytes, all of them there.  -EAGAIN: it
 * does not end within size.  -EILSEQ: not msgpack.  -EFBIG: it claims to be
 * larger or deeper than the limits.
 */
int extent(const void *data, size_t size, size_t *ret_bytes);

#endif
