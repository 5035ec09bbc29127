/* SPDX-License-Identifier: MIT */
#include "readers/kfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "readers/span.h"

#define LOAD_FIRST_BYTES 4096
#define KEYS_MAX         16

/* Index of the key of that name, or count. */
static size_t key_index(const struct kfile_key *keys, size_t count, struct span name)
{
	size_t i = 0;

	while (i < count && !span_is(name, keys[i].name))
		i++;
	return i;
}

uint64_t kfile_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static size_t bits_count(uint32_t bits)
{
	return (size_t)__builtin_popcount(bits);
}

size_t kfile_flat(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line, name, number, more;
	uint32_t found = 0;

	count = MIN(count, KEYS_MAX);
	while (bits_count(found) < count && span_line(&rest, &line)) {
		size_t i;

		if (!span_word(&line, &name))
			continue;
		i = key_index(keys, count, name);
		if (i == count || !span_word(&line, &number) || span_word(&line, &more))
			continue;
		if (span_number(number, &values[i]))
			found |= 1u << i;
	}
	return bits_count(found);
}

/* What follows the colon: a number, and perhaps "kB". */
static bool labelled_value(struct span line, uint64_t *ret)
{
	struct span number, unit, more;
	uint64_t value;

	if (!span_word(&line, &number) || !span_number(number, &value))
		return false;
	if (span_word(&line, &unit)) {
		if (!span_is(unit, "kB") || span_word(&line, &more))
			return false;
		value = value > UINT64_MAX / 1024 ? UINT64_MAX : value * 1024;
	}
	*ret = value;
	return true;
}

size_t kfile_labelled(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line;
	uint32_t found = 0;

	count = MIN(count, KEYS_MAX);
	while (bits_count(found) < count && span_line(&rest, &line)) {
		size_t i = key_index(keys, count, span_take(&line, ':'));

		if (i < count && labelled_value(line, &values[i]))
			found |= 1u << i;
	}
	return bits_count(found);
}

/* "8:0"; "(unknown)" is one that is going away and still has its counters. */
static bool is_device(struct span word)
{
	struct span rest = word, major = span_take(&rest, ':');
	uint64_t number;

	return span_is(word, "(unknown)") ||
	       (span_number(major, &number) && span_number(rest, &number));
}

/* Returns the keys that the line has; none where a value that we need is no number. */
static uint32_t nested_line(
	struct span line, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span word;
	uint32_t found = 0;

	if (!span_word(&line, &word) || !is_device(word))
		return 0;
	while (span_word(&line, &word)) {
		size_t i = key_index(keys, count, span_take(&word, '='));

		if (i == count)
			continue;
		if (!span_number(word, &values[i]))
			return 0;
		found |= 1u << i;
	}
	return found;
}

size_t kfile_nested_line(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	uint64_t of_line[KEYS_MAX];
	uint32_t found;

	count = MIN(count, KEYS_MAX);
	found = nested_line(span_of(text, size), keys, count, of_line);
	for (size_t i = 0; i < count; i++)
		if (found & 1u << i)
			values[i] = of_line[i];
	return bits_count(found);
}

size_t kfile_nested(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line;

	count = MIN(count, KEYS_MAX);
	memset(values, 0, count * sizeof(*values));
	while (span_line(&rest, &line)) {
		uint64_t of_line[KEYS_MAX];
		uint32_t found = nested_line(line, keys, count, of_line);

		for (size_t i = 0; i < count; i++)
			if (found & 1u << i)
				values[i] = kfile_add(values[i], of_line[i]);
	}
	return count;
}

static bool pressure_total(struct span line, uint64_t *ret)
{
	struct span word;

	while (span_word(&line, &word))
		if (span_is(span_take(&word, '='), "total"))
			return span_number(word, ret);
	return false;
}

size_t kfile_pressure(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line, name;
	uint32_t found = 0;

	count = MIN(count, KEYS_MAX);
	while (span_line(&rest, &line)) {
		size_t i;

		if (!span_word(&line, &name))
			continue;
		i = key_index(keys, count, name);
		if (i < count && pressure_total(line, &values[i]))
			found |= 1u << i;
	}
	return bits_count(found);
}

size_t kfile_single(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line, word, more;
	uint64_t value = UINT64_MAX;

	(void)keys;
	if (!span_line(&rest, &line) || !span_word(&line, &word) || span_word(&line, &more))
		return 0;
	if (!span_is(word, "max") && !span_number(word, &value))
		return 0;
	for (size_t i = 0; i < count; i++)
		values[i] = value;
	return count;
}

/* The line's first word is column `first`. */
static size_t columns_from(struct span line, unsigned first, const struct kfile_key *keys,
	size_t count, uint64_t *values)
{
	struct span word;
	uint32_t found = 0;

	count = MIN(count, KEYS_MAX);
	for (unsigned column = first; span_word(&line, &word); column++)
		for (size_t i = 0; i < count; i++)
			if (keys[i].column == column && span_number(word, &values[i]))
				found |= 1u << i;
	return bits_count(found);
}

size_t kfile_columns(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line;

	if (!span_line(&rest, &line))
		return 0;
	return columns_from(line, 1, keys, count, values);
}

size_t kfile_stat(
	const char *text, size_t size, const struct kfile_key *keys, size_t count, uint64_t *values)
{
	struct span rest = span_of(text, size), line;
	const char *comm_end;

	/* comm may hold anything, ')' and newlines too, so the rest starts after the last ')'. */
	comm_end = size ? memrchr(text, ')', size) : NULL;
	if (!comm_end)
		return 0;
	rest.at = comm_end + 1;
	if (!span_line(&rest, &line))
		return 0;
	return columns_from(line, 3, keys, count, values);
}

ssize_t kfile_pread(int fd, char *buf, size_t room)
{
	ssize_t size = sys_pread(fd, buf, room, 0);
	const char *last;

	if (size < 0 || (size_t)size < room)
		return size;
	last = memrchr(buf, '\n', room);
	return last ? last + 1 - buf : 0;
}

int kfile_load(const char *path, char **ret_text, size_t *ret_size)
{
	size_t size = 0, room = LOAD_FIRST_BYTES;
	char *text = malloc(room);
	int fd = sys_open(path, O_RDONLY, 0);
	ssize_t n = text ? fd : -ENOMEM;

	while (n >= 0) {
		char *grown;

		n = sys_read(fd, text + size, room - size - 1);
		if (n <= 0)
			break;
		size += (size_t)n;
		if (size < room / 2)
			continue;
		grown = realloc(text, room *= 2);
		if (!grown)
			n = -ENOMEM;
		else
			text = grown;
	}
	sys_close(fd);
	if (n < 0) {
		free(text);
		return (int)n;
	}
	text[size] = '\0';
	*ret_text = text;
	*ret_size = size;
	return 0;
}
