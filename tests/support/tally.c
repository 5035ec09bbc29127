/* SPDX-License-Identifier: MIT */
#include "support/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "decoder.h"
#include "internal/util.h"
#include "jphase/abi.h"

#define TIDS_MAX  8192
#define DEPTH_MAX 8

/* One boundary's page faults, by its snapshot and thread. */
struct boundary {
	uint64_t snapshot;
	uint32_t tid;
	uint64_t faults;
	bool sampled;
};

struct open_region {
	uint64_t faults;
	bool sampled;
};

struct walk {
	struct tally *tally;
	size_t reader;                /* of perf */
	size_t metric;                /* page-faults */
	struct boundary latest[1024]; /* more than are taken at a time */
	size_t next;
	uint32_t tid[TIDS_MAX];
	struct open_region open[TIDS_MAX][DEPTH_MAX];
	size_t depth[TIDS_MAX];
	size_t tids;
};

static int on_header(void *data, const struct decoded_header *h)
{
	struct walk *w = data;

	snprintf(w->tally->mode, sizeof(w->tally->mode), "%s", h->mode);
	for (size_t r = 0; r < h->reader_count; r++)
		for (size_t i = 0; i < h->readers[r].metrics.count; i++)
			if (str_eq(h->readers[r].metrics.metric[i].name, "page-faults")) {
				w->reader = r;
				w->metric = i;
			}
	return 0;
}

static int on_thread(void *data, const struct decoded_thread *s)
{
	struct walk *w = data;

	if (s->reader == w->reader)
		w->latest[w->next++ % ARRAY_SIZE(w->latest)] = (struct boundary){
			.snapshot = s->snapshot,
			.tid = s->tid,
			.faults = s->values[w->metric],
			.sampled = str_eq(s->how, "sampled"),
		};
	return 0;
}

static const struct boundary *find_boundary(const struct walk *w, uint64_t snapshot, uint32_t tid)
{
	for (size_t i = 0; i < ARRAY_SIZE(w->latest); i++)
		if (snapshot && w->latest[i].snapshot == snapshot && w->latest[i].tid == tid)
			return &w->latest[i];
	return NULL;
}

static size_t index_of(struct walk *w, uint32_t tid)
{
	for (size_t i = 0; i < w->tids; i++)
		if (w->tid[i] == tid)
			return i;
	assert_true(w->tids < TIDS_MAX);
	w->tid[w->tids] = tid;
	return w->tids++;
}

static void judge(struct tally *t, const char *name, const struct open_region *begin,
	const struct boundary *end)
{
	uint64_t expected = (uint64_t)atoi(name + 1), faults;

	t->regions++;
	if (!end || begin->faults == VALUE_ABSENT) {
		t->without++;
		return;
	}
	/* What was read instead was read later. */
	if (str_eq(t->mode, "exact") && !(begin->sampled && end->sampled)) {
		t->late++;
		return;
	}
	t->sampled += begin->sampled;
	faults = end->faults - begin->faults;
	if (faults == expected)
		t->right++;
	else if (faults == expected + 1 || faults + 1 == expected)
		t->off_by_one++;
	else
		t->wrong++;
}

static int on_marker(void *data, const struct record_marker *m)
{
	struct walk *w = data;
	const struct boundary *b = find_boundary(w, m->snapshot, m->tid);
	size_t i;

	if (m->kind != JPHASE_BEGIN && m->kind != JPHASE_END)
		return 0;
	if (m->flags & JPHASE_FLAG_UNWAITED) {
		w->tally->unwaited++;
		w->tally->cold += m->name[0] != 'r';
	}
	i = index_of(w, m->tid);
	if (m->kind == JPHASE_BEGIN) {
		assert_true(w->depth[i] < DEPTH_MAX);
		w->open[i][w->depth[i]++] = (struct open_region){
			.faults = b ? b->faults : VALUE_ABSENT,
			.sampled = b && b->sampled,
		};
		return 0;
	}
	/* A child that was forked within another's region may end it. */
	if (w->depth[i] == 0)
		return 0;
	w->depth[i]--;
	if (m->name[0] == 'r')
		judge(w->tally, m->name, &w->open[i][w->depth[i]], b);
	return 0;
}

static int on_note(void *data, uint64_t time_ns, uint64_t process, const char *text)
{
	struct walk *w = data;
	size_t used = strlen(w->tally->notes);

	(void)time_ns;
	(void)process;
	snprintf(w->tally->notes + used, sizeof(w->tally->notes) - used, "%s\n", text);
	return 0;
}

static int on_loss(void *data, uint64_t time_ns, const char *what, uint64_t count)
{
	struct walk *w = data;

	(void)time_ns;
	if (str_eq(what, "dropped"))
		w->tally->lost += count;
	else if (str_eq(what, "sample"))
		w->tally->lost_samples += count;
	return 0;
}

struct tally tally_of(const char *file)
{
	static const struct decoder_ops ops = {
		.header = on_header,
		.thread = on_thread,
		.marker = on_marker,
		.loss = on_loss,
		.note = on_note,
	};
	struct tally t = { .regions = 0 };
	struct walk *w = calloc(1, sizeof(*w));
	struct decoder *d;
	size_t bytes = 0;
	char *data = file_read(file, &bytes);

	assert_non_null(w);
	assert_non_null(data);
	w->tally = &t;
	assert_int_equal(decoder_open(&ops, w, &d), 0);
	assert_int_equal(decoder_feed(d, data, bytes), 0);
	decoder_close(d);
	free(data);
	free(w);
	return t;
}

/* How often a busy machine gets another chance. */
#define CALM_ATTEMPTS 10

struct tally tally_calmly(struct measured *m)
{
	struct tally t = { .unwaited = 1 };

	need_perf();
	for (int i = 0; i < CALM_ATTEMPTS && t.unwaited; i++) {
		measure(m);
		if (m->child.code != 0)
			fail_msg("status %d: %s", m->child.code, m->child.err);
		t = tally_of(m->file);
		/* Or it would become an older one beside the next. */
		unlink(m->file);
	}
	measure_clear(m);
	if (t.unwaited)
		skip_because(
			"markers had to wait for more than 50 ms each time: too busy a machine");
	return t;
}

void tally_need_exact(const struct tally *t)
{
	if (!str_eq(t->mode, "exact"))
		skip_because("exact mode cannot be had here: %s", t->notes);
}
