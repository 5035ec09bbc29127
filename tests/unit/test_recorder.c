/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "decoder.h"
#include "extent.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "jphase/abi.h"
#include "support/recording.h"

static struct recorder *opened(int fd)
{
	struct recorder *r;

	assert_int_equal(recorder_open(fd, false, &r), 0);
	return r;
}

/* Whole objects in the file; a rest makes it fail. */
static size_t whole_objects(int fd)
{
	size_t size;
	size_t count = 0;
	char *bytes = recording_bytes(fd, &size);

	for (size_t at = 0, bytes_of_one; at < size; at += bytes_of_one, count++)
		assert_int_equal(extent(bytes + at, size - at, &bytes_of_one), 0);
	free(bytes);
	return count;
}

static void note(struct recorder *r, const char *text)
{
	recorder_note(r, 1, RECORD_NO_PROCESS, text);
}

/* --- content --- */

static struct metric metrics[] = {
	{ .name = "page-faults", .group = 0 },
	{ .name = "cycles",
		.group = METRIC_NO_GROUP,
		.part = "cpu_core",
		.note = "a note",
		.absent = "none here" },
};
static struct metric_list list = { metrics, 2, 1 };

struct seen {
	struct decoded_process process;
	struct record_marker marker;
	struct record_exit exit;
	struct decoded_summary summary;
	uint64_t values[4];
	uint64_t sample[2];
	uint64_t loss;
	unsigned calls;
};

static int see_header(void *data, const struct decoded_header *h)
{
	struct seen *seen = data;

	seen->calls++;
	assert_string_equal(h->command, "./app -x");
	assert_string_equal(h->mode, "sync");
	assert_string_equal(h->version, JPHASE_VERSION);
	assert_true(h->host[0] && h->kernel[0] && h->cpu[0] && h->cpus > 0);
	assert_true(h->started_us > 0 && h->clock_ns > 0);
	assert_int_equal(h->pid, 4711);
	assert_int_equal(h->ring_records, 4096);
	assert_int_equal(h->reader_count, 2);
	assert_true(h->readers[0].critical);
	assert_int_equal(h->readers[0].metrics.groups, 1);
	assert_int_equal(h->readers[0].metrics.metric[0].group, 0);
	assert_string_equal(h->readers[0].metrics.metric[1].part, "cpu_core");
	assert_string_equal(h->readers[0].metrics.metric[1].note, "a note");
	assert_string_equal(h->readers[0].metrics.metric[1].absent, "none here");
	assert_int_equal(h->readers[0].metrics.metric[1].group, METRIC_NO_GROUP);
	assert_string_equal(h->readers[1].absent, "not mounted");
	return 0;
}

static int see_process(void *data, const struct decoded_process *p)
{
	struct seen *seen = data;

	seen->calls++;
	seen->process = *p;
	assert_string_equal(p->name, "app");
	assert_string_equal(p->how, "first");
	assert_null(p->absent);
	return 0;
}

static int see_marker(void *data, const struct record_marker *m)
{
	struct seen *seen = data;

	seen->calls++;
	seen->marker = *m;
	assert_string_equal(m->name, "\xff solve");
	return 0;
}

static int see_snapshot(void *data, const struct decoded_snapshot *s)
{
	struct seen *seen = data;

	seen->calls++;
	assert_int_equal(s->reader, 0);
	assert_int_equal(s->process, RECORD_NO_PROCESS);
	memcpy(seen->values, s->values, sizeof(seen->values));
	return 0;
}

static int see_sample(void *data, const struct decoded_sample *s)
{
	struct seen *seen = data;

	seen->calls++;
	memcpy(seen->sample, s->values, sizeof(seen->sample));
	return 0;
}

static int see_loss(void *data, uint64_t time_ns, const char *what, uint64_t count)
{
	struct seen *seen = data;

	(void)time_ns;
	seen->calls++;
	assert_string_equal(what, "dropped");
	seen->loss = count;
	return 0;
}

static int see_note(void *data, uint64_t time_ns, uint64_t process, const char *text)
{
	struct seen *seen = data;

	seen->calls++;
	assert_int_equal(time_ns, 5);
	assert_int_equal(process, 3);
	assert_string_equal(text, "a text");
	return 0;
}

static int see_exit(void *data, const struct record_exit *e)
{
	struct seen *seen = data;

	seen->calls++;
	seen->exit = *e;
	return 0;
}

static int see_summary(void *data, const struct decoded_summary *s)
{
	struct seen *seen = data;

	seen->calls++;
	seen->summary = *s;
	return 0;
}

static const struct decoder_ops see_ops = {
	.header = see_header,
	.process = see_process,
	.marker = see_marker,
	.snapshot = see_snapshot,
	.sample = see_sample,
	.loss = see_loss,
	.note = see_note,
	.exit = see_exit,
	.summary = see_summary,
};

static void write_one_of_each(struct recorder *r)
{
	const struct recorder_reader readers[] = {
		{ "perf", true, NULL, &list },
		{ "cgroup", false, "not mounted", NULL },
	};
	const struct recorder_header header = { .command = "./app\0-x",
		.command_bytes = sizeof("./app\0-x"),
		.mode = "sync",
		.ring_records = 4096,
		.pid = 4711,
		.readers = readers,
		.reader_count = 2 };
	const struct record_marker m = { .time_ns = 7,
		.process = 0,
		.tid = 9,
		.kind = JPHASE_PHASE,
		.name = "\xff solve",
		.value = 0.5,
		.id = UINT64_MAX,
		.flags = JPHASE_FLAG_SIGNAL,
		.took_ns = 11,
		.done_ns = 12,
		.snapshot = 13 };
	const struct record_exit e = { .time_ns = 8,
		.status = RECORD_STATUS_UNKNOWN,
		.user_us = VALUE_ABSENT,
		.system_us = 5,
		.peak_bytes = VALUE_ABSENT };

	assert_int_equal(recorder_header(r, &header), 0);
	assert_int_equal(recorder_process(r, 1, 0, 4711, 1, "app", "first", NULL), 0);
	assert_int_equal(recorder_marker(r, &m), 0);
	assert_int_equal(recorder_snapshot(r, 13, RECORD_NO_PROCESS, "perf", 1, 2,
				 (uint64_t[]){ 100, VALUE_ABSENT, 1000, 900 }, &list),
		0);
	assert_int_equal(
		recorder_sample(r, 3, 0, "perf", (uint64_t[]){ VALUE_ABSENT, 6 }, &list), 0);
	assert_int_equal(recorder_loss(r, 4, "dropped", 17), 0);
	assert_int_equal(recorder_note(r, 5, 3, "a text"), 0);
	assert_int_equal(recorder_exit(r, &e), 0);
	assert_int_equal(recorder_summary(r, 9, 1, 17, 1, 1, true), 0);
}

static void what_is_recorded_is_what_is_decoded(void **state)
{
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));
	struct seen seen = { .calls = 0 };
	struct decoder_counts counts;
	struct decoder *d;

	(void)state;
	write_one_of_each(r);
	recording_end(fd, r);
	assert_int_equal(decoder_open(&see_ops, &seen, &d), 0);
	assert_int_equal(decoder_feed_fd(d, fd), 0);
	decoder_get_counts(d, &counts);
	decoder_close(d);
	sys_close(fd);
	assert_int_equal(seen.calls, 9);
	assert_int_equal(counts.records, 8);
	assert_int_equal(counts.invalid + counts.unknown + counts.rest, 0);
	assert_int_equal(seen.process.pid, 4711);
	assert_int_equal(seen.marker.kind, JPHASE_PHASE);
	assert_int_equal(seen.marker.id, UINT64_MAX);
	assert_true(seen.marker.value == 0.5);
	assert_int_equal(seen.marker.took_ns, 11);
	assert_int_equal(seen.marker.done_ns, 12);
	assert_int_equal(seen.marker.snapshot, 13);
	assert_int_equal(seen.values[0], 100);
	assert_int_equal(seen.values[1], VALUE_ABSENT);
	assert_int_equal(seen.values[3], 900);
	assert_int_equal(seen.sample[0], VALUE_ABSENT);
	assert_int_equal(seen.sample[1], 6);
	assert_int_equal(seen.loss, 17);
	assert_int_equal(seen.exit.status, RECORD_STATUS_UNKNOWN);
	assert_int_equal(seen.exit.user_us, VALUE_ABSENT);
	assert_int_equal(seen.exit.system_us, 5);
	assert_true(seen.summary.complete);
}

static void a_kind_without_name_is_recorded_by_its_number(void **state)
{
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));
	const struct record_marker m = { .kind = 200, .name = "later" };
	size_t size;
	char *bytes;

	(void)state;
	assert_int_equal(recorder_marker(r, &m), 0);
	recording_end(fd, r);
	bytes = recording_bytes(fd, &size);
	sys_close(fd);
	/* An array of 12, the record's number, time, process, thread, kind. */
	assert_memory_equal(bytes,
		"\x9c\x02\x00\x00\x00\xcc\xc8\xa5"
		"later",
		13);
	free(bytes);
}

/* --- writing --- */

static void nothing_is_written_later_than_flush(void **state)
{
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));

	(void)state;
	note(r, "a");
	note(r, "b");
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), 0);
	assert_int_equal(whole_objects(fd), 2);
	note(r, "c");
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), 0);
	assert_int_equal(whole_objects(fd), 3);
	assert_int_equal(recorder_flush(r, 0), 0);
	recorder_close(r);
	sys_close(fd);
}

static void a_full_buffer_is_written_without_a_flush(void **state)
{
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));
	struct stat st = { .st_size = 0 };
	char text[1024];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		note(r, text);
	for (int i = 0; i < 10000 && st.st_size < 64 << 10; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		assert_int_equal(fstat(fd, &st), 0);
	}
	assert_true(st.st_size >= 64 << 10);
	recorder_close(r);
	sys_close(fd);
}

static void a_hundred_thousand_records_arrive_in_order(void **state)
{
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		/* The disk may be slower than we are. */
		while (recorder_loss(r, i, "dropped", i) == -ENOBUFS)
			recorder_flush(r, NSEC_PER_SEC);
	}
	recording_end(fd, r);
	assert_int_equal(whole_objects(fd), 100000);
	sys_close(fd);
}

/* --- trouble --- */

/* Takes out of a pipe what is there. */
static size_t drain(int fd)
{
	static char buf[1 << 16];
	size_t all = 0;
	ssize_t n;

	while ((n = sys_read(fd, buf, sizeof(buf))) > 0)
		all += (size_t)n;
	return all;
}

static void a_stalled_disk_blocks_nobody_and_drops_whole_records(void **state)
{
	int ends[2];
	struct recorder *r;
	char text[4096];
	uint64_t accepted = 0;
	uint64_t dropped = 0;

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	fcntl(ends[1], F_SETFL, 0);
	r = opened(ends[1]);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 6000; i++) {
		int err = recorder_note(r, 1, 1, text);

		assert_true(err == 0 || err == -ENOBUFS);
		accepted += err == 0;
		dropped += err == -ENOBUFS;
	}
	/* 16 MiB, what the pipe has taken, and the reserve for notes. */
	assert_in_range(accepted, 4000, 4200);
	assert_int_equal(recorder_take_dropped(r), dropped);
	assert_int_equal(recorder_take_dropped(r), 0);
	assert_int_equal(recorder_flush(r, 1000), -ETIMEDOUT);
	/* With the pipe read again all that was accepted comes out. */
	for (size_t got = 0; got < accepted * sizeof(text);)
		got += drain(ends[0]);
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), 0);
	recorder_close(r);
	sys_close(ends[0]);
}

static void a_closed_pipe_ends_the_recording_and_counts(void **state)
{
	int ends[2];
	struct recorder *r;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	sys_close(ends[0]);
	r = opened(ends[1]);
	note(r, "a");
	note(r, "b");
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), -EPIPE);
	assert_int_equal(recorder_note(r, 1, 1, "c"), -EPIPE);
	assert_int_equal(recorder_take_dropped(r), 3);
	recorder_close(r);
}

/* Where a file may not grow past a limit a write is cut short in a record's middle. */
static void a_record_is_written_whole_or_not_at_all(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	const struct rlimit limit = { 1000, RLIM_INFINITY };
	int fd = recording_fd();
	struct recorder *r = opened(dup(fd));
	char text[300];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 5; i++)
		note(r, text);
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(whole_objects(fd), 3);
	assert_int_equal(recorder_take_dropped(r), 2);
	recorder_close(r);
	sys_close(fd);
}

static int mount_small(char *dir)
{
	char command[128];

	if (!mkdtemp(dir))
		return -errno;
	snprintf(command, sizeof(command), "mount -t tmpfs -o size=64k none %s 2>/dev/null", dir);
	return system(command) == 0 ? 0 : -EPERM;
}

static void grow(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "mount -o remount,size=1m %s", dir);
	assert_int_equal(system(command), 0);
}

static void unmount(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "umount %s && rmdir %s", dir, dir);
	assert_int_equal(system(command), 0);
}

static int open_in(const char *dir, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = sys_open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void a_full_disk_that_gets_room_again_goes_on(void **state)
{
	char dir[] = "/tmp/test_recorder_XXXXXX";
	struct recorder *r;
	char text[1000];
	int fd;

	(void)state;
	if (mount_small(dir) < 0) {
		print_message("cannot mount a small file system\n");
		rmdir(dir);
		skip();
	}
	fd = open_in(dir, "recording");
	r = opened(dup(fd));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		note(r, text);
	assert_int_equal(recorder_flush(r, NSEC_PER_SEC / 2), -ENOSPC);
	/* 64 KiB hold 65 records of 1,006 bytes. */
	assert_int_equal(whole_objects(fd), 65);
	grow(dir);
	assert_int_equal(recorder_flush(r, 10 * NSEC_PER_SEC), 0);
	assert_int_equal(whole_objects(fd), 100);
	assert_int_equal(recorder_take_dropped(r), 0);
	recorder_close(r);
	sys_close(fd);
	unmount(dir);
}

static void without_a_record_there_is_an_empty_file(void **state)
{
	int fd = recording_fd();

	(void)state;
	recording_end(fd, opened(dup(fd)));
	assert_int_equal(whole_objects(fd), 0);
	assert_null(recorder_close(NULL));
	sys_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_recorded_is_what_is_decoded),
		cmocka_unit_test(a_kind_without_name_is_recorded_by_its_number),
		cmocka_unit_test(nothing_is_written_later_than_flush),
		cmocka_unit_test(a_full_buffer_is_written_without_a_flush),
		cmocka_unit_test(a_hundred_thousand_records_arrive_in_order),
		cmocka_unit_test(a_stalled_disk_blocks_nobody_and_drops_whole_records),
		cmocka_unit_test(a_closed_pipe_ends_the_recording_and_counts),
		cmocka_unit_test(a_record_is_written_whole_or_not_at_all),
		cmocka_unit_test(a_full_disk_that_gets_room_again_goes_on),
		cmocka_unit_test(without_a_record_there_is_an_empty_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
