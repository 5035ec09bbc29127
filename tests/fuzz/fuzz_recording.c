/* SPDX-License-Identifier: MIT */
/* Recordings: decoded whole and in pieces, folded into the model, shown in all formats. */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>

#include "decoder.h"
#include "extent.h"
#include "internal/util.h"
#include "report/format.h"
#include "report/utf8.h"

static const struct report_format *const formats[] = { &table_format, &json_format, &csv_format,
	&csv_regions_format, &trace_format, &quality_format };

/* Of models by phase alone. */
static const struct report_format *const stats_formats[] = { &stats_format, &stats_csv_format,
	&stats_json_format };

/* What a terminal shows. */
static bool is_shown(const struct report_format *format)
{
	return format == &table_format || format == &quality_format || format == &stats_format;
}

struct outcome {
	int err;
	bool has_header;
	struct decoder_counts counts;
};

/* The lengths of the pieces follow from the size, so that an input means the same each time. */
static size_t piece_length(uint32_t *seed, size_t most)
{
	*seed = *seed * 1664525u + 1013904223u;
	return MIN(most, 1 + (*seed >> 16) % (*seed >> 31 ? 7 : 700));
}

static struct outcome decode(const uint8_t *data, size_t size, bool in_pieces)
{
	const struct decoder_ops ops = { 0 };
	struct outcome o = { 0 };
	struct decoder *d;
	uint32_t seed = (uint32_t)size;

	CLAIM(decoder_open(&ops, NULL, &d) == 0);
	for (size_t at = 0, length; at < size && o.err == 0; at += length) {
		length = in_pieces ? piece_length(&seed, size - at) : size;
		o.err = decoder_feed(d, data + at, length);
	}
	o.has_header = decoder_has_header(d);
	decoder_get_counts(d, &o.counts);
	decoder_close(d);
	return o;
}

static void claim_pieces_make_no_difference(const uint8_t *data, size_t size)
{
	struct outcome whole = decode(data, size, false);
	struct outcome pieces = decode(data, size, true);

	CLAIM(whole.err == pieces.err);
	CLAIM(whole.has_header == pieces.has_header);
	CLAIM(whole.counts.records == pieces.counts.records);
	CLAIM(whole.counts.unknown == pieces.counts.unknown);
	CLAIM(whole.counts.invalid == pieces.counts.invalid);
	CLAIM(whole.counts.bytes == pieces.counts.bytes);
	CLAIM(whole.err < 0 || whole.counts.bytes + whole.counts.rest == size);
	CLAIM(whole.err < 0 || pieces.counts.rest == whole.counts.rest);
}

/* Whatever a recording holds, what is shown of it is UTF-8. */
static void claim_utf8(const char *text, size_t size)
{
	CLAIM(strlen(text) == size);
	while (*text) {
		uint32_t code;
		size_t length = utf8_next(text, &code);

		CLAIM(code != UTF8_REPLACEMENT || length > 1);
		text += length;
	}
}

/* In the table nothing tells the terminal what to do, or turns the writing direction. */
static void claim_no_controls(const char *text)
{
	uint32_t code;

	for (; *text; text += utf8_next(text, &code)) {
		utf8_next(text, &code);
		CLAIM(code == '\n' || (code >= 0x20 && (code < 0x7f || code > 0x9f)));
		CLAIM(code < 0x202a || code > 0x202e);
		CLAIM(code < 0x2066 || code > 0x2069);
	}
}

static void render(const struct model *m, const struct report_format *format,
	const struct report_options *options)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	CLAIM(out);
	CLAIM(format->render(m, options, out) == 0);
	CLAIM(fclose(out) == 0);
	claim_utf8(text, size);
	if (is_shown(format) && !options->colour)
		claim_no_controls(text);
	free(text);
}

static void report(const uint8_t *data, size_t size)
{
	const struct report_options options = {
		.by = (enum model_by)(size % 4),
		.all = size & 4,
		.colour = size & 8,
		.width = size & 16 ? 40 : 140,
		.no_null = size & 64,
	};
	struct model *m;

	CLAIM(model_open(&m) == 0);
	m->compensate = size & 32;
	model_read_bytes(m, data, size, "fuzz.msgpack");
	if (m->run_count) {
		CLAIM(model_finish(m, options.by) == 0);
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
			render(m, formats[i], &options);
		for (size_t i = 0; options.by == BY_PHASE && i < ARRAY_SIZE(stats_formats); i++)
			render(m, stats_formats[i], &options);
	}
	model_close(m);
}

/* --- mutations that leave the records whole --- */

#define OBJECTS_MAX 1024

struct objects {
	size_t end[OBJECTS_MAX]; /* the first is the header's */
	size_t count;
};

static void find_objects(const uint8_t *data, size_t size, struct objects *ret)
{
	size_t at = 0, bytes;

	ret->count = 0;
	while (at < size && ret->count < OBJECTS_MAX && extent(data + at, size - at, &bytes) == 0)
		ret->end[ret->count++] = at += bytes;
}

static size_t record_remove(uint8_t *data, size_t size, size_t at, size_t bytes)
{
	memmove(data + at, data + at + bytes, size - at - bytes);
	return size - bytes;
}

static size_t record_copy(uint8_t *data, size_t size, size_t at, size_t bytes, size_t to)
{
	uint8_t *copy = malloc(bytes);

	CLAIM(copy);
	memcpy(copy, data + at, bytes);
	memmove(data + to + bytes, data + to, size - to);
	memcpy(data + to, copy, bytes);
	free(copy);
	return size + bytes;
}

/* Only libFuzzer has it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Blind mutations mostly break the header; these reach the model. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct objects o;
	size_t record, at, bytes;

	find_objects(data, size, &o);
	if (o.count < 3 || seed % 4 == 0)
		return LLVMFuzzerMutate(data, size, max);
	record = 1 + seed / 16 % (o.count - 1);
	at = o.end[record - 1];
	bytes = o.end[record] - at;
	if (seed % 4 == 1 && size + bytes <= max)
		return record_copy(data, size, at, bytes, o.end[seed / 7 % o.count]);
	if (seed % 16 == 2)
		return record_remove(data, size, at, bytes);
	data[at + seed / 11 % bytes] ^= (uint8_t)(1u << seed / 16 % 8);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	claim_pieces_make_no_difference(data, size);
	report(data, size);
	return 0;
}
