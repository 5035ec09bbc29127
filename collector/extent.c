/* SPDX-License-Identifier: MIT */
#include "extent.h"

#include <errno.h>
#include <stdint.h>

/* What a first byte says: bytes of a length field, bytes of payload, kind of content. */
struct head {
	uint8_t length_bytes;
	uint8_t fixed_bytes;
	uint8_t children; /* objects for each unit of length: 1 array, 2 map; 0: bytes */
	uint8_t known;
};

#define SCALAR(bytes)                                                                              \
	{                                                                                          \
		0, (bytes), 0, 1                                                                   \
	}
#define BLOB(length_bytes)                                                                         \
	{                                                                                          \
		(length_bytes), 0, 0, 1                                                            \
	}
#define EXTENSION(length_bytes)                                                                    \
	{                                                                                          \
		(length_bytes), 1, 0, 1                                                            \
	}
#define NESTED(length_bytes, each)                                                                 \
	{                                                                                          \
		(length_bytes), 0, (each), 1                                                       \
	}

/* 0xc0 to 0xdf. */
static const struct head heads[32] = {
	[0x00] = SCALAR(0), /* nil */
	[0x02] = SCALAR(0), /* false */
	[0x03] = SCALAR(0), /* true */
	[0x04] = BLOB(1),   /* bin */
	[0x05] = BLOB(2),
	[0x06] = BLOB(4),
	[0x07] = EXTENSION(1), /* ext */
	[0x08] = EXTENSION(2),
	[0x09] = EXTENSION(4),
	[0x0a] = SCALAR(4), /* float */
	[0x0b] = SCALAR(8),
	[0x0c] = SCALAR(1), /* unsigned */
	[0x0d] = SCALAR(2),
	[0x0e] = SCALAR(4),
	[0x0f] = SCALAR(8),
	[0x10] = SCALAR(1), /* signed */
	[0x11] = SCALAR(2),
	[0x12] = SCALAR(4),
	[0x13] = SCALAR(8),
	[0x14] = SCALAR(2), /* fixext */
	[0x15] = SCALAR(3),
	[0x16] = SCALAR(5),
	[0x17] = SCALAR(9),
	[0x18] = SCALAR(17),
	[0x19] = BLOB(1), /* str */
	[0x1a] = BLOB(2),
	[0x1b] = BLOB(4),
	[0x1c] = NESTED(2, 1), /* array */
	[0x1d] = NESTED(4, 1),
	[0x1e] = NESTED(2, 2), /* map */
	[0x1f] = NESTED(4, 2),
};

/* The first byte's meaning; ret_length is what the byte itself holds of the length. */
static struct head head_of(uint8_t byte, size_t *ret_length)
{
	*ret_length = 0;
	if (byte < 0x80 || byte >= 0xe0)
		return (struct head)SCALAR(0);
	if (byte >= 0xc0)
		return heads[byte - 0xc0];
	*ret_length = byte < 0xa0 ? byte & 0x0f : byte & 0x1f;
	if (byte < 0x90)
		return (struct head)NESTED(0, 2);
	if (byte < 0xa0)
		return (struct head)NESTED(0, 1);
	return (struct head)BLOB(0);
}

static size_t big_endian(const uint8_t *p, size_t bytes)
{
	size_t value = 0;

	while (bytes--)
		value = value << 8 | *p++;
	return value;
}

/* Reads one head at *offset and moves past its bytes; *ret_children follow it. */
static int head_pass(const uint8_t *p, size_t size, size_t *offset, size_t *ret_children)
{
	struct head head;
	size_t length;
	size_t at = *offset;

	if (at >= size)
		return -EAGAIN;
	head = head_of(p[at++], &length);
	if (!head.known)
		return -EILSEQ;
	if (head.length_bytes > size - at)
		return -EAGAIN;
	if (head.length_bytes)
		length = big_endian(p + at, head.length_bytes);
	if (length > EXTENT_BYTES_MAX)
		return -EFBIG;
	at += head.length_bytes + head.fixed_bytes + (head.children ? 0 : length);
	if (at > EXTENT_BYTES_MAX)
		return -EFBIG;
	if (at > size)
		return -EAGAIN;
	*offset = at;
	*ret_children = length * head.children;
	return 0;
}

int extent(const void *data, size_t size, size_t *ret_bytes)
{
	size_t left[EXTENT_DEPTH_MAX + 1] = { 1 };
	size_t depth = 0;
	size_t offset = 0;

	for (;;) {
		size_t children;
		int err;

		while (left[depth] == 0) {
			if (depth == 0) {
				*ret_bytes = offset;
				return 0;
			}
			depth--;
		}
		left[depth]--;
		err = head_pass(data, size, &offset, &children);
		if (err < 0)
			return err;
		/* Each of them takes at least a byte. */
		if (children > EXTENT_BYTES_MAX - offset || (children && depth == EXTENT_DEPTH_MAX))
			return -EFBIG;
		if (children)
			left[++depth] = children;
	}
}
