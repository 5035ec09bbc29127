/* SPDX-License-Identifier: MIT */
#include "decoder.h"

#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>

#include "extent.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "schema.h"
#include "unpack.h"

#define READ_BYTES (256u << 10)

struct decoder {
	const struct decoder_ops *ops;
	void *data;
	struct decoded_header header;
	bool has_header;
	int error;
	struct decoder_counts counts;
	msgpack_zone *zone; /* of the current object */
	char *rest;         /* begun, not yet whole */
	size_t rest_size;
	size_t rest_room;
	uint64_t *values; /* room for the largest reader's */
};

/* --- fields --- */

/* What a record's function reads its columns from; bad is set where one makes no sense. */
struct columns {
	const msgpack_object *at;
	msgpack_zone *zone;
	bool bad;
};

static uint64_t next_number(struct columns *c)
{
	uint64_t value = 0;

	if (!number_of(c->at++, &value))
		c->bad = true;
	return value;
}

/* nil stands for missing. */
static uint64_t next_number_or(struct columns *c, uint64_t missing)
{
	if (c->at->type == MSGPACK_OBJECT_NIL) {
		c->at++;
		return missing;
	}
	return next_number(c);
}

static pid_t next_pid(struct columns *c)
{
	uint64_t value = next_number(c);

	if (value > INT32_MAX)
		c->bad = true;
	return (pid_t)value;
}

static double next_real(struct columns *c)
{
	const msgpack_object *o = c->at++;

	switch (o->type) {
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64: return o->via.f64;
	case MSGPACK_OBJECT_POSITIVE_INTEGER: return (double)o->via.u64;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER: return (double)o->via.i64;
	default: c->bad = true; return 0;
	}
}

static const char *next_text_or_null(struct columns *c)
{
	const msgpack_object *o = c->at++;

	if (o->type != MSGPACK_OBJECT_NIL && o->type != MSGPACK_OBJECT_STR)
		c->bad = true;
	return text_of(o, c->zone);
}

static const char *next_text(struct columns *c)
{
	const char *text = next_text_or_null(c);

	return text ? text : "";
}

static bool next_bool(struct columns *c)
{
	const msgpack_object *o = c->at++;

	if (o->type != MSGPACK_OBJECT_BOOLEAN)
		c->bad = true;
	return o->type == MSGPACK_OBJECT_BOOLEAN && o->via.boolean;
}

/* Exactly count numbers; nil and everything odd is a value that was not counted. */
static void next_values(struct columns *c, uint64_t *values, size_t count)
{
	const msgpack_object *o = c->at++;

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != count) {
		c->bad = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (!number_of(&o->via.array.ptr[i], &values[i]))
			values[i] = VALUE_ABSENT;
}

/* --- records --- */

static int decode_header(struct decoder *d, const msgpack_object *o)
{
	size_t most = 0;
	int err = header_decode(&d->header, d->zone, o);

	if (err < 0)
		return err;
	for (size_t i = 0; i < d->header.reader_count; i++)
		most = MAX(most, metric_list_values(&d->header.readers[i].metrics));
	d->values = calloc(most + 1, sizeof(*d->values));
	if (!d->values)
		return -ENOMEM;
	d->has_header = true;
	return d->ops->header ? d->ops->header(d->data, &d->header) : 0;
}

/*
 * Each reads its columns and calls back; where a column is bad it does not, and
 * the caller counts.
 */
static int decode_process(struct decoder *d, struct columns *c)
{
	struct decoded_process p;

	p.time_ns = next_number(c);
	p.process = next_number(c);
	p.pid = next_pid(c);
	p.parent = next_pid(c);
	p.name = next_text(c);
	p.how = next_text(c);
	p.absent = next_text_or_null(c);
	return !c->bad && d->ops->process ? d->ops->process(d->data, &p) : 0;
}

static uint8_t next_marker_kind(struct columns *c)
{
	uint64_t number;
	const msgpack_object *o = c->at++;
	const char *name = text_of(o, c->zone);
	int kind = name ? schema_marker_kind(name) : -EINVAL;

	if (number_of(o, &number) && number <= UINT8_MAX)
		return (uint8_t)number;
	if (kind < 0)
		c->bad = true;
	return kind < 0 ? 0 : (uint8_t)kind;
}

static int decode_marker(struct decoder *d, struct columns *c)
{
	struct record_marker m;

	m.time_ns = next_number(c);
	m.process = next_number_or(c, RECORD_NO_PROCESS);
	m.tid = (uint32_t)next_number(c);
	m.kind = next_marker_kind(c);
	m.name = next_text(c);
	m.value = next_real(c);
	m.id = next_number(c);
	m.flags = (uint8_t)next_number(c);
	m.took_ns = (uint32_t)next_number(c);
	m.done_ns = next_number_or(c, 0);
	m.snapshot = next_number_or(c, 0);
	return !c->bad && d->ops->marker ? d->ops->marker(d->data, &m) : 0;
}

/* The index of the reader named next; bad where there is none. */
static size_t next_reader(struct decoder *d, struct columns *c)
{
	const struct decoded_reader *r = reader_named(&d->header, next_text(c));

	if (!r)
		c->bad = true;
	return r ? (size_t)(r - d->header.readers) : 0;
}

static int decode_snapshot(struct decoder *d, struct columns *c)
{
	const struct metric_list *list;
	struct decoded_snapshot s;

	s.snapshot = next_number(c);
	s.process = next_number_or(c, RECORD_NO_PROCESS);
	s.reader = next_reader(d, c);
	s.begin_ns = next_number(c);
	s.end_ns = next_number(c);
	s.values = d->values;
	if (c->bad)
		return 0;
	list = &d->header.readers[s.reader].metrics;
	next_values(c, d->values, list->count);
	next_values(c, d->values + list->count, 2 * list->groups);
	return !c->bad && d->ops->snapshot ? d->ops->snapshot(d->data, &s) : 0;
}

static int decode_thread(struct decoder *d, struct columns *c)
{
	const struct metric_list *list;
	struct decoded_thread t;

	t.snapshot = next_number(c);
	t.process = next_number(c);
	t.tid = (uint32_t)next_number(c);
	t.reader = next_reader(d, c);
	t.how = next_text(c);
	t.begin_ns = next_number(c);
	t.end_ns = next_number(c);
	t.values = d->values;
	if (c->bad)
		return 0;
	list = &d->header.readers[t.reader].metrics;
	next_values(c, d->values, list->count);
	next_values(c, d->values + list->count, 2 * list->groups);
	return !c->bad && d->ops->thread ? d->ops->thread(d->data, &t) : 0;
}

static int decode_sample(struct decoder *d, struct columns *c)
{
	struct decoded_sample s;

	s.time_ns = next_number(c);
	s.process = next_number_or(c, RECORD_NO_PROCESS);
	s.reader = next_reader(d, c);
	s.values = d->values;
	if (c->bad)
		return 0;
	next_values(c, d->values, d->header.readers[s.reader].metrics.count);
	return !c->bad && d->ops->sample ? d->ops->sample(d->data, &s) : 0;
}

static int decode_loss(struct decoder *d, struct columns *c)
{
	uint64_t time_ns = next_number(c);
	const char *what = next_text(c);
	uint64_t count = next_number(c);

	return !c->bad && d->ops->loss ? d->ops->loss(d->data, time_ns, what, count) : 0;
}

static int decode_note(struct decoder *d, struct columns *c)
{
	uint64_t time_ns = next_number(c);
	uint64_t process = next_number_or(c, RECORD_NO_PROCESS);
	const char *text = next_text(c);

	return !c->bad && d->ops->note ? d->ops->note(d->data, time_ns, process, text) : 0;
}

static int decode_exit(struct decoder *d, struct columns *c)
{
	struct record_exit e;

	e.time_ns = next_number(c);
	e.process = next_number_or(c, RECORD_NO_PROCESS);
	e.status = (int)next_number_or(c, (uint64_t)(int64_t)RECORD_STATUS_UNKNOWN);
	e.user_us = next_number_or(c, VALUE_ABSENT);
	e.system_us = next_number_or(c, VALUE_ABSENT);
	e.peak_bytes = next_number_or(c, VALUE_ABSENT);
	e.snapshot = next_number_or(c, 0);
	return !c->bad && d->ops->exit ? d->ops->exit(d->data, &e) : 0;
}

static int decode_summary(struct decoder *d, struct columns *c)
{
	struct decoded_summary s;

	s.time_ns = next_number(c);
	s.markers = next_number(c);
	s.lost = next_number(c);
	s.processes = next_number(c);
	s.snapshots = next_number(c);
	s.complete = next_bool(c);
	return !c->bad && d->ops->summary ? d->ops->summary(d->data, &s) : 0;
}

static int (*const decode_record[])(struct decoder *d, struct columns *c) = {
	[SCHEMA_PROCESS] = decode_process,
	[SCHEMA_MARKER] = decode_marker,
	[SCHEMA_SNAPSHOT] = decode_snapshot,
	[SCHEMA_SAMPLE] = decode_sample,
	[SCHEMA_LOSS] = decode_loss,
	[SCHEMA_NOTE] = decode_note,
	[SCHEMA_EXIT] = decode_exit,
	[SCHEMA_SUMMARY] = decode_summary,
	[SCHEMA_THREAD] = decode_thread,
};

static int decode_object(struct decoder *d, const msgpack_object *o)
{
	struct columns c = { .zone = d->zone };
	uint64_t kind;
	int err;

	if (!d->has_header)
		return decode_header(d, o);
	d->counts.records++;
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size == 0 ||
		!number_of(&o->via.array.ptr[0], &kind)) {
		d->counts.invalid++;
		return 0;
	}
	if (kind >= ARRAY_SIZE(decode_record) || !decode_record[kind]) {
		d->counts.unknown++;
		return 0;
	}
	if (o->via.array.size < schema_columns((enum schema_kind)kind) + 1) {
		d->counts.invalid++;
		return 0;
	}
	c.at = o->via.array.ptr + 1;
	err = decode_record[kind](d, &c);
	d->counts.invalid += c.bad;
	return err;
}

/* --- the stream --- */

/* data holds one whole object of exactly size bytes. */
static int decode_bytes(struct decoder *d, const char *data, size_t size)
{
	msgpack_object o;
	size_t offset = 0;
	msgpack_unpack_return got;

	msgpack_zone_clear(d->zone);
	got = msgpack_unpack(data, size, &offset, d->zone, &o);
	if (got == MSGPACK_UNPACK_NOMEM_ERROR)
		return -ENOMEM;
	if (got != MSGPACK_UNPACK_SUCCESS)
		return -EILSEQ;
	return decode_object(d, &o);
}

static int rest_append(struct decoder *d, const char *data, size_t size)
{
	if (size == 0)
		return 0;
	if (d->rest_size + size > d->rest_room) {
		size_t room = MAX(d->rest_size + size, 2 * d->rest_room);
		char *grown = realloc(d->rest, room);

		if (!grown)
			return -ENOMEM;
		d->rest = grown;
		d->rest_room = room;
	}
	memcpy(d->rest + d->rest_size, data, size);
	d->rest_size += size;
	return 0;
}

/* Decodes what is whole; *ret_used bytes of it. */
static int decode_whole(struct decoder *d, const char *data, size_t size, size_t *ret_used)
{
	int err = 0;

	*ret_used = 0;
	while (err == 0 && *ret_used < size) {
		const char *at = data + *ret_used;
		size_t bytes;

		err = extent(at, size - *ret_used, &bytes);
		if (err == -EAGAIN)
			return 0;
		if (err == 0)
			err = decode_bytes(d, at, bytes);
		if (err == 0) {
			*ret_used += bytes;
			d->counts.bytes += bytes;
		}
	}
	/* Bytes that are not even msgpack at the very start belong to something else. */
	if ((err == -EILSEQ || err == -EFBIG) && !d->has_header)
		return -EBADMSG;
	return err == -EFBIG ? -EILSEQ : err;
}

/* A recording begins with a map: what does not needs no patience. */
static bool may_be_recording(const struct decoder *d, const char *data, size_t size)
{
	unsigned char first;

	if (d->has_header || (size == 0 && d->rest_size == 0))
		return true;
	first = (unsigned char)(d->rest_size ? d->rest[0] : data[0]);
	return (first & 0xf0) == 0x80 || first == 0xde || first == 0xdf;
}

static int feed(struct decoder *d, const char *data, size_t size)
{
	size_t used;
	int err;

	if (!may_be_recording(d, data, size))
		return -EBADMSG;
	if (d->rest_size == 0) {
		err = decode_whole(d, data, size, &used);
		return err < 0 ? err : rest_append(d, data + used, size - used);
	}
	err = rest_append(d, data, size);
	if (err < 0)
		return err;
	err = decode_whole(d, d->rest, d->rest_size, &used);
	d->rest_size -= used;
	memmove(d->rest, d->rest + used, d->rest_size);
	return err;
}

int decoder_feed(struct decoder *d, const void *bytes, size_t size)
{
	if (d->error == 0 && size > 0)
		d->error = feed(d, bytes, size);
	d->counts.rest = d->rest_size;
	return d->error;
}

int decoder_feed_fd(struct decoder *d, int fd)
{
	char *buf = malloc(READ_BYTES);
	ssize_t n;
	int err = 0;

	if (!buf)
		return -ENOMEM;
	do {
		n = sys_read(fd, buf, READ_BYTES);
		if (n > 0)
			err = decoder_feed(d, buf, (size_t)n);
		else if (n < 0 && n != -EINTR)
			err = (int)n;
	} while (err == 0 && n != 0);
	free(buf);
	return err;
}

bool decoder_has_header(const struct decoder *d)
{
	return d->has_header;
}

bool decoder_has_begun(const struct decoder *d)
{
	/* The header's first key, as short strings of msgpack. */
	static const char key[] = "\xa6"
				  "format"
				  "\xa6" SCHEMA_FORMAT;

	return d->has_header ||
	       (d->rest && memmem(d->rest, MIN(d->rest_size, (size_t)64), key, sizeof(key) - 1));
}

const struct decoded_header *decoder_header(const struct decoder *d)
{
	return &d->header;
}

void decoder_get_counts(const struct decoder *d, struct decoder_counts *ret)
{
	*ret = d->counts;
}

int decoder_open(const struct decoder_ops *ops, void *data, struct decoder **ret)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ops = ops;
	d->data = data;
	d->zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
	if (!d->zone) {
		free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

struct decoder *decoder_close(struct decoder *d)
{
	if (!d)
		return NULL;
	header_clear(&d->header);
	msgpack_zone_free(d->zone);
	free(d->rest);
	free(d->values);
	free(d);
	return NULL;
}
