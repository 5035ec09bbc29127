/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "decoder.h"
#include "extent.h"
#include "internal/sys.h"
#include "support/tape.h"

struct bytes {
	char *data;
	size_t size;
};

static struct bytes two_phase_bytes(void)
{
	struct tape t = tape_begin("sync");
	struct bytes b;

	two_phases(&t);
	tape_end(&t);
	b.data = recording_bytes(t.fd, &b.size);
	sys_close(t.fd);
	return b;
}

/* What two_phase_bytes() begins with: a header alone. */
static struct bytes header_bytes(void)
{
	struct tape t = tape_begin("sync");
	struct bytes b;

	tape_end(&t);
	b.data = recording_bytes(t.fd, &b.size);
	sys_close(t.fd);
	return b;
}

static int count_marker(void *data, const struct record_marker *m)
{
	(void)m;
	++*(unsigned *)data;
	return 0;
}

static const struct decoder_ops count_ops = { .marker = count_marker };

/* Feeds step bytes at a time; the result of the last. */
static int decode(const void *data, size_t size, size_t step, unsigned *ret_markers,
	struct decoder_counts *ret)
{
	struct decoder *d;
	int err = 0;

	*ret_markers = 0;
	assert_int_equal(decoder_open(&count_ops, ret_markers, &d), 0);
	for (size_t at = 0; at < size; at += step)
		err = decoder_feed(d, (const char *)data + at, MIN(step, size - at));
	decoder_get_counts(d, ret);
	decoder_close(d);
	return err;
}

static int decode_with_header(const void *more, size_t size, struct decoder_counts *ret)
{
	struct bytes header = header_bytes();
	char *all = malloc(header.size + size);
	unsigned markers;
	int err;

	memcpy(all, header.data, header.size);
	memcpy(all + header.size, more, size);
	err = decode(all, header.size + size, header.size + size, &markers, ret);
	free(all);
	free(header.data);
	return err;
}

static void pieces_of_any_size_make_the_same_records(void **state)
{
	static const size_t steps[] = { 1, 7, 1000, 1 << 20 };
	struct bytes b = two_phase_bytes();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct decoder_counts counts;
		unsigned markers;

		assert_int_equal(decode(b.data, b.size, steps[i], &markers, &counts), 0);
		assert_int_equal(markers, 3);
		assert_int_equal(counts.records, 13);
		assert_int_equal(counts.bytes, b.size);
		assert_int_equal(counts.rest, 0);
	}
	free(b.data);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		const char *data;
		size_t size;
	} others[] = {
		{ "PERFILE2", 8 },
		{ "\x7f"
		  "ELF",
			4 },
		{ "{\"a\": 1}", 8 },
		{ "\x80", 1 },
		{ "\x81\xa6"
		  "format\xa4"
		  "perf",
			13 },
		{ "\xc1", 1 },
		{ "\x93\x01\x02\x03", 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct decoder_counts counts;
		unsigned markers;

		assert_int_equal(
			decode(others[i].data, others[i].size, 64, &markers, &counts), -EBADMSG);
	}
}

static void a_later_version_is_refused(void **state)
{
	static const char later[] = "\x82\xa6"
				    "format\xa6"
				    "jphase\xa7"
				    "version\x02";
	struct decoder_counts counts;
	unsigned markers;

	(void)state;
	assert_int_equal(decode(later, sizeof(later) - 1, 64, &markers, &counts), -EPROTONOSUPPORT);
}

static void sizes_that_claim_gigabytes_allocate_nothing(void **state)
{
	static const char *const claims[] = {
		"\xdd\xff\xff\xff\xff",     /* an array */
		"\xdf\xff\xff\xff\xff",     /* a map */
		"\xdb\xff\xff\xff\xff",     /* a text */
		"\xc6\xff\xff\xff\xff",     /* bytes */
		"\xc9\xff\xff\xff\xff\x01", /* an extension */
		"\x92\x02\xdd\x7f\xff\xff\xff",
	};
	struct rusage before;
	struct rusage after;

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		struct decoder_counts counts;

		assert_int_equal(
			decode_with_header(claims[i], strlen(claims[i]), &counts), -EILSEQ);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10);
}

static void deep_nesting_is_damage(void **state)
{
	char deep[64];
	struct decoder_counts counts;

	(void)state;
	memset(deep, '\x91', sizeof(deep));
	assert_int_equal(decode_with_header(deep, sizeof(deep), &counts), -EILSEQ);
}

static void unknown_and_senseless_records_are_counted(void **state)
{
	static const char more[] = "\x92\x63\x01"           /* kind 99 */
				   "\x92\x02\x01"           /* a marker of one column */
				   "\x05"                   /* no record at all */
				   "\x90"                   /* without a kind */
				   "\x94\x05\xa1x\xa1y\x01" /* a loss at time "x" */
				   "\x94\x05\x01\xa1y\x01"; /* a good one */
	struct decoder_counts counts;

	(void)state;
	assert_int_equal(decode_with_header(more, sizeof(more) - 1, &counts), 0);
	assert_int_equal(counts.records, 6);
	assert_int_equal(counts.unknown, 1);
	assert_int_equal(counts.invalid, 4);
}

static void columns_that_a_later_version_adds_are_ignored(void **state)
{
	static const char more[] = "\x97\x05\x01\xa1y\x01\xa3new\xc0\x91\x01";
	struct decoder_counts counts;

	(void)state;
	assert_int_equal(decode_with_header(more, sizeof(more) - 1, &counts), 0);
	assert_int_equal(counts.invalid, 0);
}

static void what_stands_before_the_damage_counts(void **state)
{
	static const char more[] = "\x94\x05\x01\xa1y\x01\xc1\x94\x05\x01\xa1y\x01";
	struct decoder_counts counts;

	(void)state;
	assert_int_equal(decode_with_header(more, sizeof(more) - 1, &counts), -EILSEQ);
	assert_int_equal(counts.records, 1);
}

/* The same bytes in each run. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void changed_bytes_never_do_harm(void **state)
{
	struct bytes b = two_phase_bytes();
	char *changed = malloc(b.size);
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct model *m;
		uint32_t changes = 1 + next_random(&seed) % 8;

		memcpy(changed, b.data, b.size);
		while (changes--)
			changed[next_random(&seed) % b.size] = (char)next_random(&seed);
		assert_int_equal(model_open(&m), 0);
		model_read_bytes(m, changed, b.size, "changed");
		assert_int_equal(model_finish(m, (enum model_by)(round % 3)), 0);
		model_close(m);
	}
	free(changed);
	free(b.data);
}

static void extent_knows_every_first_byte(void **state)
{
	static const char zeros[64] = "";

	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		char data[sizeof(zeros)];
		size_t bytes;

		memcpy(data, zeros, sizeof(data));
		data[0] = (char)first;
		if (first == 0xc1) {
			assert_int_equal(extent(data, sizeof(data), &bytes), -EILSEQ);
			continue;
		}
		assert_int_equal(extent(data, sizeof(data), &bytes), 0);
		/* One byte less is not enough. */
		assert_int_equal(extent(data, bytes - 1, &bytes), -EAGAIN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_of_any_size_make_the_same_records),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(a_later_version_is_refused),
		cmocka_unit_test(sizes_that_claim_gigabytes_allocate_nothing),
		cmocka_unit_test(deep_nesting_is_damage),
		cmocka_unit_test(unknown_and_senseless_records_are_counted),
		cmocka_unit_test(columns_that_a_later_version_adds_are_ignored),
		cmocka_unit_test(what_stands_before_the_damage_counts),
		cmocka_unit_test(changed_bytes_never_do_harm),
		cmocka_unit_test(extent_knows_every_first_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
