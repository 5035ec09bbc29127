/* SPDX-License-Identifier: MIT */
/* From msgpack objects, whatever they hold, to numbers, texts and the header. */
#ifndef COLLECTOR_UNPACK_H
#define COLLECTOR_UNPACK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "decoder.h"

bool number_of(const msgpack_object *o, uint64_t *ret);
/* A copy in the zone, cut at a NUL; NULL where it is no text. */
const char *text_of(const msgpack_object *o, msgpack_zone *zone);

/* -EBADMSG: it is none; -EPROTONOSUPPORT: of a later version. */
int header_decode(struct decoded_header *h, msgpack_zone *zone, const msgpack_object *o);
/* Also of one that was decoded in part. */
void header_clear(struct decoded_header *h);

/* NULL: no such reader. */
struct decoded_reader *reader_named(const struct decoded_header *h, const char *name);

#endif
