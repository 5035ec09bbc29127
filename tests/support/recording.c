/* SPDX-License-Identifier: MIT */
#include "support/recording.h"

#include <msgpack.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "schema.h"

int recording_fd(void)
{
	int fd = sys_memfd("recording");

	if (fd < 0)
		abort();
	return fd;
}

static void text(msgpack_packer *pk, const char *s)
{
	if (s)
		msgpack_pack_str_with_body(pk, s, strlen(s));
	else
		msgpack_pack_nil(pk);
}

static void pair(msgpack_packer *pk, const char *key, const char *value)
{
	text(pk, key);
	text(pk, value);
}

static void pair_number(msgpack_packer *pk, const char *key, uint64_t value)
{
	text(pk, key);
	msgpack_pack_uint64(pk, value);
}

static void pack_metric(msgpack_packer *pk, const char *reader, const struct metric *m)
{
	msgpack_pack_map(pk, 12);
	pair(pk, "reader", reader);
	pair(pk, "name", m->name);
	pair(pk, "unit", unit_name(m->unit));
	pair(pk, "kind", metric_kind_name(m->kind));
	pair(pk, "scope", metric_scope_name(m->scope));
	text(pk, "group");
	if (m->group == METRIC_NO_GROUP)
		msgpack_pack_nil(pk);
	else
		msgpack_pack_int(pk, m->group);
	pair(pk, "part", m->part);
	pair(pk, "note", m->note);
	pair(pk, "absent", m->absent);
	pair(pk, "source", m->source);
	pair_number(pk, "step_ns", m->step_ns);
	pair_number(pk, "idle_per_s", m->idle_per_s);
}

static void pack_readers(msgpack_packer *pk, const struct recorder_reader *readers, size_t count)
{
	size_t metrics = 0;

	text(pk, "readers");
	msgpack_pack_array(pk, count);
	for (size_t i = 0; i < count; i++) {
		msgpack_pack_map(pk, 3);
		pair(pk, "name", readers[i].name);
		pair(pk, "absent", readers[i].absent);
		text(pk, "critical");
		if (readers[i].critical)
			msgpack_pack_true(pk);
		else
			msgpack_pack_false(pk);
		metrics += readers[i].metrics ? readers[i].metrics->count : 0;
	}
	text(pk, "metrics");
	msgpack_pack_array(pk, metrics);
	for (size_t i = 0; i < count; i++)
		for (size_t m = 0; readers[i].metrics && m < readers[i].metrics->count; m++)
			pack_metric(pk, readers[i].name, &readers[i].metrics->metric[m]);
	text(pk, "groups");
	msgpack_pack_map(pk, count);
	for (size_t i = 0; i < count; i++)
		pair_number(
			pk, readers[i].name, readers[i].metrics ? readers[i].metrics->groups : 0);
}

struct recorder *recording_begin(
	int fd, const char *mode, const struct recorder_reader *readers, size_t count)
{
	struct recorder *r;
	msgpack_sbuffer buf;
	msgpack_packer pk;

	msgpack_sbuffer_init(&buf);
	msgpack_packer_init(&pk, &buf, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 14);
	pair(&pk, "format", SCHEMA_FORMAT);
	pair_number(&pk, "version", SCHEMA_VERSION);
	pair(&pk, "jphase", "1.0.0");
	pair(&pk, "host", "host");
	pair(&pk, "kernel", "6.1.0");
	pair(&pk, "cpu", "A CPU");
	pair_number(&pk, "cpus", 2);
	text(&pk, "command");
	msgpack_pack_array(&pk, 2);
	text(&pk, "./app");
	text(&pk, "a \"b\"");
	pair_number(&pk, "started_us", RECORDING_STARTED_US);
	pair_number(&pk, "clock_ns", RECORDING_CLOCK_NS);
	pair(&pk, "mode", mode);
	pack_readers(&pk, readers, count);
	if (write(fd, buf.data, buf.size) != (ssize_t)buf.size)
		abort();
	msgpack_sbuffer_destroy(&buf);
	if (recorder_open(dup(fd), false, &r) < 0)
		abort();
	return r;
}

void recording_end(int fd, struct recorder *r)
{
	recorder_close(r);
	lseek(fd, 0, SEEK_SET);
}

char *recording_bytes(int fd, size_t *ret_size)
{
	struct stat st;
	char *bytes;

	if (fstat(fd, &st) < 0)
		abort();
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || sys_pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		abort();
	*ret_size = (size_t)st.st_size;
	return bytes;
}
