/* SPDX-License-Identifier: MIT */
#include "readers/cgroup_io.h"

#include <stdlib.h>

#include "internal/util.h"
#include "readers/span.h"

/* Devices beyond these share the last place. */
#define DEVICES_MAX 256

/* Of a device that the kernel names no more. */
#define NUMBER_UNKNOWN UINT64_MAX

struct device {
	uint64_t number;
	uint64_t last[CGROUP_IO_KEYS];
	uint64_t past[CGROUP_IO_KEYS]; /* of those before it that had its number */
	uint64_t now[CGROUP_IO_KEYS];
	unsigned seen; /* bits of the keys that this read has */
};

struct cgroup_io {
	struct device device[DEVICES_MAX];
	size_t count;
};

struct cgroup_io *cgroup_io_open(void)
{
	return calloc(1, sizeof(struct cgroup_io));
}

/* "8:0" */
static uint64_t device_number(struct span line)
{
	struct span word, major_;
	uint64_t a, b;

	if (!span_word(&line, &word))
		return NUMBER_UNKNOWN;
	major_ = span_take(&word, ':');
	if (!span_number(major_, &a) || !span_number(word, &b))
		return NUMBER_UNKNOWN;
	return a << 32 | (b & UINT32_MAX);
}

static struct device *device_find(struct cgroup_io *io, uint64_t number)
{
	for (size_t i = 0; i < io->count; i++)
		if (io->device[i].number == number)
			return &io->device[i];
	if (io->count == DEVICES_MAX)
		return &io->device[DEVICES_MAX - 1];
	io->device[io->count].number = number;
	return &io->device[io->count++];
}

/* What a line lacks, as that of a device which is only just there, is not known now. */
static void line_add(
	struct cgroup_io *io, struct span line, const struct kfile_key *keys, size_t count)
{
	uint64_t values[CGROUP_IO_KEYS];
	struct device *d;

	for (size_t i = 0; i < count; i++)
		values[i] = UINT64_MAX;
	if (!kfile_nested_line(line.at, span_size(line), keys, count, values))
		return;
	d = device_find(io, device_number(line));
	for (size_t i = 0; i < count; i++) {
		if (values[i] == UINT64_MAX)
			continue;
		d->now[i] = d->seen & 1u << i ? kfile_add(d->now[i], values[i]) : values[i];
		d->seen |= 1u << i;
	}
}

static void device_settle(struct device *d, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!(d->seen & 1u << i))
			continue;
		if (d->now[i] < d->last[i])
			d->past[i] = kfile_add(d->past[i], d->last[i]);
		d->last[i] = d->now[i];
	}
	d->seen = 0;
}

void cgroup_io_add(struct cgroup_io *io, const char *text, size_t size,
	const struct kfile_key *keys, size_t count, uint64_t *ret_values)
{
	struct span rest = span_of(text, size), line;

	count = MIN(count, (size_t)CGROUP_IO_KEYS);
	while (span_line(&rest, &line))
		line_add(io, line, keys, count);
	for (size_t k = 0; k < count; k++)
		ret_values[k] = 0;
	for (size_t i = 0; i < io->count; i++) {
		struct device *d = &io->device[i];

		device_settle(d, count);
		for (size_t k = 0; k < count; k++)
			ret_values[k] = kfile_add(ret_values[k], kfile_add(d->past[k], d->last[k]));
	}
}

struct cgroup_io *cgroup_io_close(struct cgroup_io *io)
{
	free(io);
	return NULL;
}
