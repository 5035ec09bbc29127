/* SPDX-License-Identifier: MIT */
#include "pack.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "internal/util.h"
#include "schema.h"

#define COMMAND_BYTES (32u << 10)

static void pack_str(msgpack_packer *pk, const char *s, size_t size)
{
	msgpack_pack_str_with_body(pk, s, size);
}

void pack_text(msgpack_packer *pk, const char *s)
{
	if (s)
		pack_str(pk, s, strlen(s));
	else
		msgpack_pack_nil(pk);
}

void pack_number(msgpack_packer *pk, uint64_t value, uint64_t unknown)
{
	if (value == unknown)
		msgpack_pack_nil(pk);
	else
		msgpack_pack_uint64(pk, value);
}

void pack_bool(msgpack_packer *pk, bool value)
{
	if (value)
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
}

void pack_values(msgpack_packer *pk, const uint64_t *values, size_t count)
{
	msgpack_pack_array(pk, count);
	for (size_t i = 0; i < count; i++)
		pack_number(pk, values[i], VALUE_ABSENT);
}

/* The processor's name; the machine's where the kernel does not give one. */
static void cpu_name(const struct utsname *uts, char *name, size_t size)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(name, size, "%s", uts->machine);
	while (in && fgets(line, sizeof(line), in)) {
		char *colon = strchr(line, ':');

		if (!str_starts(line, "model name") || !colon)
			continue;
		colon[1 + strcspn(colon + 1, "\n")] = '\0';
		snprintf(name, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
		break;
	}
	if (in)
		fclose(in);
}

static size_t count_arguments(const char *command, size_t bytes)
{
	size_t count = 0;

	for (size_t at = 0; at < bytes; at += strnlen(command + at, bytes - at) + 1)
		count++;
	return count;
}

static void pack_command(msgpack_packer *pk, const char *command, size_t bytes)
{
	bytes = MIN(bytes, COMMAND_BYTES);
	msgpack_pack_array(pk, count_arguments(command, bytes));
	for (size_t at = 0; at < bytes;) {
		size_t length = strnlen(command + at, bytes - at);

		pack_str(pk, command + at, length);
		at += length + 1;
	}
}

static void pack_readers(msgpack_packer *pk, const struct recorder_header *h)
{
	msgpack_pack_array(pk, h->reader_count);
	for (size_t i = 0; i < h->reader_count; i++) {
		msgpack_pack_map(pk, 3);
		pack_text(pk, "name");
		pack_text(pk, h->readers[i].name);
		pack_text(pk, "critical");
		pack_bool(pk, h->readers[i].critical);
		pack_text(pk, "absent");
		pack_text(pk, h->readers[i].absent);
	}
}

static void pack_metric(msgpack_packer *pk, const char *reader, const struct metric *m)
{
	msgpack_pack_map(pk, 12);
	pack_text(pk, "reader");
	pack_text(pk, reader);
	pack_text(pk, "name");
	pack_text(pk, m->name);
	pack_text(pk, "unit");
	pack_text(pk, unit_name(m->unit));
	pack_text(pk, "kind");
	pack_text(pk, metric_kind_name(m->kind));
	pack_text(pk, "scope");
	pack_text(pk, metric_scope_name(m->scope));
	pack_text(pk, "group");
	pack_number(pk, (uint64_t)(int64_t)m->group, (uint64_t)(int64_t)METRIC_NO_GROUP);
	pack_text(pk, "part");
	pack_text(pk, m->part);
	pack_text(pk, "note");
	pack_text(pk, m->note);
	pack_text(pk, "absent");
	pack_text(pk, m->absent);
	pack_text(pk, "source");
	pack_text(pk, m->source);
	pack_text(pk, "step_ns");
	pack_number(pk, m->step_ns, 0);
	pack_text(pk, "idle_per_s");
	pack_number(pk, m->idle_per_s, 0);
}

static void pack_metrics(msgpack_packer *pk, const struct recorder_header *h)
{
	size_t count = 0;

	for (size_t i = 0; i < h->reader_count; i++)
		count += h->readers[i].metrics ? h->readers[i].metrics->count : 0;
	msgpack_pack_array(pk, count);
	for (size_t i = 0; i < h->reader_count; i++) {
		const struct metric_list *list = h->readers[i].metrics;

		for (size_t m = 0; list && m < list->count; m++)
			pack_metric(pk, h->readers[i].name, &list->metric[m]);
	}
}

static void pack_groups(msgpack_packer *pk, const struct recorder_header *h)
{
	size_t count = 0;

	for (size_t i = 0; i < h->reader_count; i++)
		count += h->readers[i].metrics != NULL;
	msgpack_pack_map(pk, count);
	for (size_t i = 0; i < h->reader_count; i++) {
		if (!h->readers[i].metrics)
			continue;
		pack_text(pk, h->readers[i].name);
		msgpack_pack_uint64(pk, h->readers[i].metrics->groups);
	}
}

static void pack_layout(msgpack_packer *pk)
{
	msgpack_pack_array(pk, schema_layout_count);
	for (size_t i = 0; i < schema_layout_count; i++) {
		const struct schema_layout *layout = &schema_layouts[i];
		const char *word = layout->columns;

		msgpack_pack_array(pk, schema_columns(layout->kind) + 2);
		msgpack_pack_uint64(pk, layout->kind);
		pack_text(pk, layout->name);
		while (*word) {
			size_t length = strcspn(word, " ");

			pack_str(pk, word, length);
			word += length + (word[length] == ' ');
		}
	}
}

static void pack_key_text(msgpack_packer *pk, const char *key, const char *value)
{
	pack_text(pk, key);
	pack_text(pk, value);
}

static void pack_key_number(msgpack_packer *pk, const char *key, uint64_t value)
{
	pack_text(pk, key);
	msgpack_pack_uint64(pk, value);
}

static void pack_machine(msgpack_packer *pk)
{
	struct utsname uts;
	char cpu[128];

	uname(&uts);
	cpu_name(&uts, cpu, sizeof(cpu));
	pack_key_text(pk, "host", uts.nodename);
	pack_key_text(pk, "kernel", uts.release);
	pack_key_text(pk, "cpu", cpu);
	pack_key_number(pk, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static void pack_clocks(msgpack_packer *pk)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	pack_key_number(pk, "started_us", timespec_ns(&real) / NSEC_PER_USEC);
	pack_key_number(pk, "clock_ns", now_ns());
}

void pack_header(msgpack_packer *pk, const struct recorder_header *h)
{
	msgpack_pack_map(pk, 20);
	pack_key_text(pk, "format", SCHEMA_FORMAT);
	pack_key_number(pk, "version", SCHEMA_VERSION);
	pack_key_text(pk, "jphase", JPHASE_VERSION);
	pack_machine(pk);
	pack_text(pk, "command");
	pack_command(pk, h->command, h->command_bytes);
	pack_clocks(pk);
	pack_key_text(pk, "mode", h->mode);
	pack_key_text(pk, "token_pattern", h->token_pattern);
	pack_key_number(pk, "poll_ns", h->poll_ns);
	pack_key_number(pk, "interval_ns", h->interval_ns);
	pack_key_number(pk, "pid", (uint64_t)h->pid);
	pack_key_number(pk, "ring_records", h->ring_records);
	pack_text(pk, "readers");
	pack_readers(pk, h);
	pack_text(pk, "metrics");
	pack_metrics(pk, h);
	pack_text(pk, "groups");
	pack_groups(pk, h);
	pack_text(pk, "layout");
	pack_layout(pk);
}
