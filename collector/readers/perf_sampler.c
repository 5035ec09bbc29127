/* SPDX-License-Identifier: MIT */
#include "readers/perf_sampler.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal/ring.h"
#include "internal/sys.h"
#include "internal/util.h"

/* Pages of the kernel's buffer, a power of two and at least; one more holds its positions. */
#define PAGES_LEAST 8

/* Samples kept until their record is taken: more than a buffer holds. */
#define KEPT 1024

/* No record's position. */
#define TAKEN UINT64_MAX

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

#if defined(__x86_64__)
#define FIRST_ARGUMENT PERF_REG_X86_DI
#define REGS_ABI_64    PERF_SAMPLE_REGS_ABI_64
#elif defined(__aarch64__)
#define FIRST_ARGUMENT PERF_REG_ARM64_X0
#define REGS_ABI_64    PERF_SAMPLE_REGS_ABI_64
#endif

struct perf_sampler {
	int fd[PERF_GROUP_MAX + 1]; /* the probe leads */
	size_t count;               /* of descriptors */
	bool lost_told;             /* the format holds the number of lost samples */
	struct perf_event_mmap_page *page;
	size_t buffer_bytes;
	size_t words;   /* of one kept sample: position, time, enabled, running, values */
	uint64_t *kept; /* KEPT of them, a ring */
	uint64_t first; /* the oldest one kept */
	uint64_t next;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t format_of(const struct perf_sampler *s)
{
	return PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
	       (s->lost_told ? PERF_FORMAT_LOST : 0);
}

/* All events of a group must use the same clock. */
static struct perf_event_attr common(const struct perf_sampler *s, struct perf_event_attr attr)
{
	attr.size = sizeof(attr);
	attr.read_format = format_of(s);
	attr.inherit = 0;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	return attr;
}

static struct perf_event_attr leader(const struct perf_sampler *s, const struct reader_probe *probe)
{
	struct perf_event_attr attr = {
		.type = probe->type,
		.config = probe->config,
		.config1 = probe->config1,
		.config2 = probe->config2,
		.sample_period = 1,
		/* It is met in the program itself. */
		.exclude_kernel = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ |
			       PERF_SAMPLE_REGS_USER,
		.sample_regs_user = UINT64_C(1) << FIRST_ARGUMENT,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(s->buffer_bytes / 2),
	};

	return common(s, attr);
}

static int add_event(struct perf_sampler *s, struct perf_event_attr attr, pid_t tid)
{
	int fd;

	do
		fd = (int)SYS_RESULT(syscall(SYS_perf_event_open, &attr, tid, -1,
			s->count ? s->fd[0] : -1, PERF_FLAG_FD_CLOEXEC));
	while (fd == -EINTR);
	if (fd >= 0)
		s->fd[s->count++] = fd;
	return fd < 0 ? fd : 0;
}

static void close_events(struct perf_sampler *s)
{
	while (s->count)
		sys_close(s->fd[--s->count]);
}

static int add_events(struct perf_sampler *s, const struct perf_group *group, pid_t tid,
	const struct reader_probe *probe)
{
	int err = add_event(s, leader(s, probe), tid);

	for (size_t i = 0; i < group->count && err == 0; i++)
		err = add_event(s, common(s, group->counter[i].attr), tid);
	if (err < 0)
		close_events(s);
	return err;
}

/* The number of lost samples is told since Linux 6.0. */
static int open_events(struct perf_sampler *s, const struct perf_group *group, pid_t tid,
	const struct reader_probe *probe)
{
	int err;

	s->lost_told = true;
	err = add_events(s, group, tid, probe);
	if (err != -EINVAL)
		return err;
	s->lost_told = false;
	return add_events(s, group, tid, probe);
}

/* Header, ids, time, group with lost samples, registers' kind, register. */
static size_t sample_bytes(const struct perf_group *group)
{
	return (3 + 3 + 2 * (group->count + 1) + 2) * sizeof(uint64_t);
}

static size_t buffer_bytes(const struct perf_group *group)
{
	size_t bytes = PAGES_LEAST * page_bytes();

	while (bytes < JPHASE_SAMPLES_AHEAD * 3 / 2 * sample_bytes(group))
		bytes *= 2;
	return bytes;
}

static int map_buffer(struct perf_sampler *s)
{
	void *memory = mmap(NULL, s->buffer_bytes + page_bytes(), PROT_READ | PROT_WRITE,
		MAP_SHARED, s->fd[0], 0);

	if (memory == MAP_FAILED)
		return -errno;
	s->page = memory;
	return 0;
}

/* The last descriptor's close is what takes long. */
static int hold(const struct perf_sampler *s, struct reader_probe *probe)
{
	int fd;

	if (!probe->held)
		return 0;
	if (probe->held_count == probe->held_room)
		return -EUSERS;
	fd = (int)SYS_RESULT(fcntl(s->fd[0], F_DUPFD_CLOEXEC, 0));
	if (fd >= 0)
		probe->held[probe->held_count++] = fd;
	return MIN(fd, 0);
}

int perf_sampler_open(const struct perf_group *group, pid_t tid, struct reader_probe *probe,
	struct perf_sampler **ret)
{
	struct perf_sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->words = 4 + group->count;
	s->buffer_bytes = buffer_bytes(group);
	s->kept = calloc(KEPT, s->words * sizeof(*s->kept));
	err = s->kept ? open_events(s, group, tid, probe) : -ENOMEM;
	if (err == 0)
		err = map_buffer(s);
	if (err == 0)
		err = hold(s, probe);
	if (err == 0)
		err = (int)SYS_RESULT(ioctl(s->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	if (err < 0) {
		perf_sampler_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

/* The part of a sample or of a read that holds the group: its words. */
static size_t group_words(const struct perf_sampler *s)
{
	return 3 + s->count * (s->lost_told ? 2 : 1);
}

/* from: how many, enabled, running, then each event's value (and lost samples). */
static bool unpack_group(
	const struct perf_sampler *s, const uint64_t *from, uint64_t *values, uint64_t times[2])
{
	size_t stride = s->lost_told ? 2 : 1;

	if (from[0] != s->count)
		return false;
	times[0] = from[1];
	times[1] = from[2];
	/* The first one is the probe itself. */
	for (size_t i = 1; i < s->count; i++)
		values[i - 1] = from[3 + i * stride];
	return true;
}

/* sample: ids, time, group, registers' kind, register. */
static void keep(struct perf_sampler *s, const uint64_t *sample, size_t words)
{
	size_t group = group_words(s);
	uint64_t *to = s->kept + s->next % KEPT * s->words;

	if (words < 2 + group + 2 || sample[2 + group] != REGS_ABI_64 ||
		!unpack_group(s, sample + 2, to + 4, to + 2))
		return;
	to[0] = sample[2 + group + 1] & RING_POSITION_MASK;
	to[1] = sample[1];
	s->next++;
	if (s->next - s->first > KEPT)
		s->first = s->next - KEPT;
}

/* Copies from the buffer, whose end meets its beginning. */
static void copy_out(const struct perf_sampler *s, uint64_t at, void *to, size_t bytes)
{
	const char *buffer = (const char *)s->page + page_bytes();
	size_t offset = at % s->buffer_bytes, straight = MIN(bytes, s->buffer_bytes - offset);

	memcpy(to, buffer + offset, straight);
	memcpy((char *)to + straight, buffer, bytes - straight);
}

static uint64_t load_head(const struct perf_sampler *s)
{
	const _Atomic uint64_t *head = (const _Atomic uint64_t *)(const void *)&s->page->data_head;

	/* The kernel's release in its output. */
	return atomic_load_explicit(head, memory_order_acquire);
}

static void store_tail(struct perf_sampler *s, uint64_t tail)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)(void *)&s->page->data_tail;

	/* The kernel writes there only after it has seen this. */
	atomic_store_explicit(to, tail, memory_order_release);
}

static void drain(struct perf_sampler *s)
{
	uint64_t head = load_head(s), tail = s->page->data_tail;

	while (tail < head) {
		uint64_t sample[8 + 2 * (PERF_GROUP_MAX + 1)];
		struct perf_event_header header;

		copy_out(s, tail, &header, sizeof(header));
		if (header.size < sizeof(header))
			break;
		if (header.type == PERF_RECORD_SAMPLE &&
			header.size - sizeof(header) <= sizeof(sample)) {
			size_t bytes = header.size - sizeof(header);

			copy_out(s, tail + sizeof(header), sample, bytes);
			keep(s, sample, bytes / sizeof(*sample));
		}
		tail += header.size;
	}
	store_tail(s, tail);
}

/* Samples are taken in their order but for markers that interrupted others. */
static void forget_taken(struct perf_sampler *s)
{
	while (s->first < s->next && s->kept[s->first % KEPT * s->words] == TAKEN)
		s->first++;
}

int perf_sampler_find(struct perf_sampler *s, uint64_t position, uint64_t *ret_time_ns,
	uint64_t *ret_values, uint64_t ret_times[2])
{
	drain(s);
	for (uint64_t i = s->first; i < s->next; i++) {
		uint64_t *sample = s->kept + i % KEPT * s->words;

		if (sample[0] != position)
			continue;
		sample[0] = TAKEN;
		*ret_time_ns = sample[1];
		memcpy(ret_times, sample + 2, 2 * sizeof(*ret_times));
		memcpy(ret_values, sample + 4, (s->words - 4) * sizeof(*ret_values));
		forget_taken(s);
		return 0;
	}
	return -ENOENT;
}

int perf_sampler_read(struct perf_sampler *s, uint64_t *ret_values, uint64_t ret_times[2])
{
	uint64_t words[3 + 2 * (PERF_GROUP_MAX + 1)];
	size_t bytes = group_words(s) * sizeof(*words);
	ssize_t n = sys_read(s->fd[0], words, bytes);

	if (n < 0)
		return (int)n;
	return (size_t)n == bytes && unpack_group(s, words, ret_values, ret_times) ? 0 : -ENODATA;
}

struct perf_sampler *perf_sampler_close(struct perf_sampler *s)
{
	if (!s)
		return NULL;
	if (s->page)
		munmap(s->page, s->buffer_bytes + page_bytes());
	close_events(s);
	free(s->kept);
	free(s);
	return NULL;
}
