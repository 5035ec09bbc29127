/* SPDX-License-Identifier: MIT */
/* Sampling of gauges: who has his turn, and who is said to be slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "internal/util.h"
#include "snapshot.h"
#include "support/recording.h"

#define PROCESSES 90
#define TICKS     30

static struct session s;
static struct config chosen = { .interval_ns = 10 * NSEC_PER_MSEC };
static uint64_t values[8];
static int fd;

struct counting_reader {
	struct reader base;
	unsigned samples;
};

/* A tenth of the interval, where a hundredth may be used. */
static int sample_slowly(struct reader *r, uint64_t *ret_values)
{
	uint64_t start = now_ns();

	(void)r;
	while (now_ns() - start < NSEC_PER_MSEC)
		continue;
	ret_values[0] = 1;
	return 0;
}

static int sample_at_once(struct reader *r, uint64_t *ret_values)
{
	((struct counting_reader *)(void *)r)->samples++;
	ret_values[0] = 1;
	return 0;
}

static struct metric gauge = { .name = (char *)"g", .kind = METRIC_GAUGE };

static const struct reader_ops slow = { .name = "slow", .sample = sample_slowly };
static const struct reader_ops fast = { .name = "fast", .sample = sample_at_once };
static const struct reader_ops each = {
	.name = "each", .per_process = true, .sample = sample_at_once
};

static struct source source_of(const struct reader_ops *ops, struct reader *shared)
{
	return (struct source){
		.ops = ops,
		.present = true,
		.gauges = true,
		.shared = shared,
		.metrics = { .metric = &gauge, .count = 1 },
	};
}

static int begin(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	s.config = &chosen;
	s.values = values;
	fd = recording_fd();
	s.recorder = recording_begin(fd, "sync", NULL, 0);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	recording_end(fd, s.recorder);
	close(fd);
	return 0;
}

static void tick(void)
{
	for (size_t i = 0; i < s.sources.count; i++)
		s.sampling[i].due_ns = 0;
	snapshot_sample(&s, now_ns());
}

/* What comes after it in the same tick has not taken that time. */
static void a_slow_reader_is_told_and_no_other(void **state)
{
	struct reader first = { &slow };
	struct counting_reader second = { .base = { &fast } };

	(void)state;
	s.sources.source[0] = source_of(&slow, &first);
	s.sources.source[1] = source_of(&fast, &second.base);
	s.sources.count = 2;
	for (int i = 0; i < TICKS; i++)
		tick();
	assert_true(s.sampling[0].told);
	assert_false(s.sampling[1].told);
}

static void of_many_processes_each_has_its_turn(void **state)
{
	static struct counting_reader reader[PROCESSES];
	struct process *p;

	(void)state;
	s.sources.source[0] = source_of(&each, NULL);
	s.sources.count = 1;
	for (size_t i = 0; i < PROCESSES; i++) {
		reader[i] = (struct counting_reader){ .base = { &each } };
		p = process_add(&s.processes);
		p->reader[0] = &reader[i].base;
	}
	tick();
	assert_true(s.sampling[0].crowd_told);
	tick();
	for (size_t i = 0; i < PROCESSES; i++) {
		assert_true(reader[i].samples > 0);
		s.processes.live[i]->reader[0] = NULL;
	}
	process_table_clear(&s.processes);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_reader_is_told_and_no_other),
		TEST(of_many_processes_each_has_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
