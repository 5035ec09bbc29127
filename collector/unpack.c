/* SPDX-License-Identifier: MIT */
#include "unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "schema.h"

bool number_of(const msgpack_object *o, uint64_t *ret)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return false;
	*ret = o->via.u64;
	return true;
}

const char *text_of(const msgpack_object *o, msgpack_zone *zone)
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
static const char *map_text(msgpack_zone *zone, const msgpack_object *map, const char *key)
{
	const msgpack_object *o = map_find(map, key);

	return o ? text_of(o, zone) : NULL;
}

/* On the heap; NULL without memory alone. */
static char *map_copy(msgpack_zone *zone, const msgpack_object *map, const char *key)
{
	const char *text = map_text(zone, map, key);

	return strdup(text ? text : "");
}

static char *header_command(const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "command");
	size_t size = 1;
	char *text;
	char *end;

	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return strdup("");
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

struct decoded_reader *reader_named(const struct decoded_header *h, const char *name)
{
	for (size_t i = 0; name && i < h->reader_count; i++)
		if (str_eq(h->readers[i].name, name))
			return &h->readers[i];
	return NULL;
}

static int header_readers(
	struct decoded_header *h, msgpack_zone *zone, const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "readers");
	if (!list || list->type != MSGPACK_OBJECT_ARRAY ||
		list->via.array.size > DECODER_READERS_MAX)
		return -EBADMSG;
	h->readers = calloc(list->via.array.size + 1, sizeof(*h->readers));
	if (!h->readers)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		const msgpack_object *entry = &list->via.array.ptr[i];
		const msgpack_object *critical = map_find(entry, "critical");
		const char *absent = map_text(zone, entry, "absent");
		struct decoded_reader *r = &h->readers[h->reader_count++];

		r->name = map_copy(zone, entry, "name");
		r->absent = absent ? strdup(absent) : NULL;
		r->critical = critical && critical->type == MSGPACK_OBJECT_BOOLEAN &&
			      critical->via.boolean;
		if (!r->name || (absent && !r->absent))
			return -ENOMEM;
	}
	return 0;
}

static int header_metric(struct decoded_header *h, msgpack_zone *zone, const msgpack_object *entry)
{
	struct decoded_reader *r = reader_named(h, map_text(zone, entry, "reader"));
	const char *name = map_text(zone, entry, "name");
	const char *unit = map_text(zone, entry, "unit");
	const char *kind = map_text(zone, entry, "kind");
	const char *scope = map_text(zone, entry, "scope");
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
	m.part = (char *)map_text(zone, entry, "part");
	m.note = (char *)map_text(zone, entry, "note");
	m.absent = (char *)map_text(zone, entry, "absent");
	m.source = (char *)map_text(zone, entry, "source");
	m.step_ns = map_number(entry, "step_ns");
	m.idle_per_s = map_number(entry, "idle_per_s");
	return metric_list_add(&r->metrics, &m);
}

static int header_metrics(
	struct decoded_header *h, msgpack_zone *zone, const msgpack_object *header)
{
	const msgpack_object *list = map_find(header, "metrics");
	const msgpack_object *groups = map_find(header, "groups");

	for (size_t i = 0; groups && i < h->reader_count; i++) {
		struct decoded_reader *r = &h->readers[i];

		r->metrics.groups = map_number(groups, r->name);
		if (r->metrics.groups > DECODER_GROUPS_MAX)
			return -EBADMSG;
	}
	if (!list || list->type != MSGPACK_OBJECT_ARRAY ||
		list->via.array.size > DECODER_METRICS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		int err = header_metric(h, zone, &list->via.array.ptr[i]);

		if (err < 0)
			return err;
	}
	return 0;
}

static int header_texts(struct decoded_header *h, msgpack_zone *zone, const msgpack_object *o)
{
	h->version = map_copy(zone, o, "jphase");
	h->host = map_copy(zone, o, "host");
	h->kernel = map_copy(zone, o, "kernel");
	h->cpu = map_copy(zone, o, "cpu");
	h->mode = map_copy(zone, o, "mode");
	h->command = header_command(o);
	h->token_pattern =
		map_text(zone, o, "token_pattern") ? map_copy(zone, o, "token_pattern") : NULL;
	return h->version && h->host && h->kernel && h->cpu && h->mode && h->command ? 0 : -ENOMEM;
}

int header_decode(struct decoded_header *h, msgpack_zone *zone, const msgpack_object *o)
{
	const char *format = map_text(zone, o, "format");
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
	err = header_texts(h, zone, o);
	if (err == 0)
		err = header_readers(h, zone, o);
	if (err == 0)
		err = header_metrics(h, zone, o);
	return err;
}

void header_clear(struct decoded_header *h)
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
	free(h->token_pattern);
	free(h->command);
}
