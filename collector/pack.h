/* SPDX-License-Identifier: MIT */
/* How a recording's values become msgpack. */
#ifndef COLLECTOR_PACK_H
#define COLLECTOR_PACK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder.h"

/* NULL: nil. */
void pack_text(msgpack_packer *pk, const char *s);
/* A number, or nil where it is the one that stands for "not known". */
void pack_number(msgpack_packer *pk, uint64_t value, uint64_t unknown);
void pack_bool(msgpack_packer *pk, bool value);
/* VALUE_ABSENT: nil. */
void pack_values(msgpack_packer *pk, const uint64_t *values, size_t count);

/* With what is known of this machine and this moment. */
void pack_header(msgpack_packer *pk, const struct recorder_header *h);

#endif
