/* SPDX-License-Identifier: MIT */
#include "decoder.h"

#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>

#include "extent.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "schema.h"

#define READ_BYTES (256u << 10)
#define TEXT_NONE  ""

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

static bool number_of(const msgpack_object *o, uint64_t *ret)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return false;
	*ret = o->via.u64;
	return true;
}

/* A copy in the zone, cut at a NUL; NULL where it is no text. */
static const char *text_of(const msgpack_object *o, msgpack_zone *zone)
{
	char *copy;

	if (o->type != MSGPACK_OBJECT_STR)
		return NULL;
	copy = msgpack_zone_malloc(zone, o->via.str.size + 1);
	if (!copy)
		return NULL;
	/* msgpack-c has no pointer for an empty one. */
	if (o->via.str.size)
		memcpy(copy, o->via.str.ptr, o->via.str.size);
	copy[o->via.str.size] = '\0';
	return copy;
}

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

	return text ? text : TEXT_NONE;
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

/* --- the header --- */

static const msgpack_object *map_find(const msgpack_object *map, const char *key)
{
	size_t length = strlen(key);

	if (map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *k = &map->via.map.ptr[i].key;

		if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == length &&
			memcmp(k->via.str.ptr, key, length) == 0)
			return &map->via.map.ptr[i].val;
	}
	return NULL;
}

static uint64_t map_number(const msgpack_object *map, const char *key)
{
	const msgpack_object *o = map_find(map, key);
	uint64_t value = 0;

	return o && number_of(o, &value) ? value : 0;
}

/* In the zone, or NULL. */
static const char *map_text(struct decoder *d, const msgpack_object *map, const char *key)
{
	const msgpack_object *o = map_find(map, key);

	return o ? text_of(o, d->zone) : NULL;
}

/* On the heap; NULL without memory alone. */
static char *map_copy(struct decoder *d, const msgpack_object *map, const char *key)
{
	const char *text = map_text(d, map, key);

	return strdup(text ? text : TEXT_NONE);
}

static char *header_command(const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "command");
	size_t size = 1;
	char *text;
	char *end;

	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return strdup(TEXT_NONE);
	for (uint32_t i = 0; i < list->via.array.size; i++)
		if (list->via.array.ptr[i].type == MSGPACK_OBJECT_STR)
			size += list->via.array.ptr[i].via.str.size + 1;
	text = end = malloc(size);
	if (!text)
		return NULL;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		const msgpack_object *o = &list->via.array.ptr[i];

		if (o->type != MSGPACK_OBJECT_STR)
			continue;
		if (end > text)
			*end++ = ' ';
		if (o->via.str.size)
			end = mempcpy(end, o->via.str.ptr, o->via.str.size);
	}
	*end = '\0';
	return text;
}

static struct decoded_reader *reader_named(struct decoded_header *h, const char *name)
{
	for (size_t i = 0; name && i < h->reader_count; i++)
		if (str_eq(h->readers[i].name, name))
			return &h->readers[i];
	return NULL;
}

static int header_readers(struct decoder *d, const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "readers");
	struct decoded_header *h = &d->header;

	if (!list || list->type != MSGPACK_OBJECT_ARRAY ||
		list->via.array.size > DECODER_READERS_MAX)
		return -EBADMSG;
	h->readers = calloc(list->via.array.size + 1, sizeof(*h->readers));
	if (!h->readers)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		const msgpack_object *entry = &list->via.array.ptr[i];
		const msgpack_object *critical = map_find(entry, "critical");
		const char *absent = map_text(d, entry, "absent");
		struct decoded_reader *r = &h->readers[h->reader_count++];

		r->name = map_copy(d, entry, "name");
		r->absent = absent ? strdup(absent) : NULL;
		r->critical = critical && critical->type == MSGPACK_OBJECT_BOOLEAN &&
			      critical->via.boolean;
		if (!r->name || (absent && !r->absent))
			return -ENOMEM;
	}
	return 0;
}

static int header_metric(struct decoder *d, const msgpack_object *entry)
{
	struct decoded_reader *r = reader_named(&d->header, map_text(d, entry, "reader"));
	const char *name = map_text(d, entry, "name");
	const char *unit = map_text(d, entry, "unit");
	const char *kind = map_text(d, entry, "kind");
	const char *scope = map_text(d, entry, "scope");
	const msgpack_object *group = map_find(entry, "group");
	struct metric m = { .group = METRIC_NO_GROUP };
	uint64_t number;

	if (!r || !name || !unit || !kind || !scope || unit_parse(unit, &m.unit) < 0 ||
		metric_kind_parse(kind, &m.kind) < 0 || metric_scope_parse(scope, &m.scope) < 0)
		return -EBADMSG;
	if (group && number_of(group, &number)) {
		if (number >= r->metrics.groups)
			return -EBADMSG;
		m.group = (int)number;
	}
	/* metric_list_add copies. */
	m.name = (char *)name;
	m.part = (char *)map_text(d, entry, "part");
	m.note = (char *)map_text(d, entry, "note");
	m.absent = (char *)map_text(d, entry, "absent");
	m.source = (char *)map_text(d, entry, "source");
	m.step_ns = map_number(entry, "step_ns");
	m.idle_per_s = map_number(entry, "idle_per_s");
	return metric_list_add(&r->metrics, &m);
}

static int header_metrics(struct decoder *d, const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "metrics");
	const msgpack_object *groups = map_find(header, "groups");
	size_t most = 0;

	for (size_t i = 0; groups && i < d->header.reader_count; i++) {
		struct decoded_reader *r = &d->header.readers[i];

		r->metrics.groups = map_number(groups, r->name);
		if (r->metrics.groups > DECODER_GROUPS_MAX)
			return -EBADMSG;
	}
	if (!list || list->type != MSGPACK_OBJECT_ARRAY ||
		list->via.array.size > DECODER_METRICS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		int err = header_metric(d, &list->via.array.ptr[i]);

		if (err < 0)
			return err;
	}
	for (size_t i = 0; i < d->header.reader_count; i++)
		most = MAX(most, metric_list_values(&d->header.readers[i].metrics));
	d->values = calloc(most + 1, sizeof(*d->values));
	return d->values ? 0 : -ENOMEM;
}

static int header_texts(struct decoder *d, const msgpack_object *o)
{
	struct decoded_header *h = &d->header;

	h->version = map_copy(d, o, "jphase");
	h->host = map_copy(d, o, "host");
	h->kernel = map_copy(d, o, "kernel");
	h->cpu = map_copy(d, o, "cpu");
	h->mode = map_copy(d, o, "mode");
	h->command = header_command(o);
	return h->version && h->host && h->kernel && h->cpu && h->mode && h->command ? 0 : -ENOMEM;
}

static int decode_header(struct decoder *d, const msgpack_object *o)
{
	struct decoded_header *h = &d->header;
	const char *format = map_text(d, o, "format");
	uint64_t version = map_number(o, "version");
	int err;

	if (!format || !str_eq(format, SCHEMA_FORMAT) || version == 0)
		return -EBADMSG;
	if (version > SCHEMA_VERSION)
		return -EPROTONOSUPPORT;
	h->cpus = map_number(o, "cpus");
	h->started_us = map_number(o, "started_us");
	h->clock_ns = map_number(o, "clock_ns");
	h->poll_ns = map_number(o, "poll_ns");
	h->interval_ns = map_number(o, "interval_ns");
	h->ring_records = map_number(o, "ring_records");
	h->pid = (pid_t)MIN(map_number(o, "pid"), (uint64_t)INT32_MAX);
	err = header_texts(d, o);
	if (err == 0)
		err = header_readers(d, o);
	if (err == 0)
		err = header_metrics(d, o);
	if (err < 0)
		return err;
	d->has_header = true;
	return d->ops->header ? d->ops->header(d->data, h) : 0;
}

/* --- records --- */

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

static void header_clear(struct decoded_header *h)
{
	for (size_t i = 0; i < h->reader_count; i++) {
		free(h->readers[i].name);
		free(h->readers[i].absent);
		metric_list_clear(&h->readers[i].metrics);
	}
	free(h->readers);
	free(h->version);
	free(h->host);
	free(h->kernel);
	free(h->cpu);
	free(h->mode);
	free(h->command);
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
