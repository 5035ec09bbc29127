/* SPDX-License-Identifier: MIT */
/*
 * What the words of an event list mean here: asks sysfs, tracefs and libpfm4.
 * libpfm4 keeps global state: no two threads may resolve or walk events at once.
 */
#ifndef READERS_EVENTS_H
#define READERS_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"
#include "readers/event_words.h"
#include "readers/pmu.h"
#include "readers/reader.h"

/* What of an event is left where the kernel lets us count user space only. */
enum event_reach {
	REACH_CLOCK, /* all of it */
	REACH_USER,  /* what happens in user space */
	REACH_NONE,  /* it happens in the kernel */
};

/* An event as the kernel takes it. */
struct event_code {
	struct perf_event_attr attr; /* what is counted and where; nothing on reading */
	const struct pmu *pmu;       /* NULL: what has no entry of its own in sysfs */
	uint32_t device;             /* hardware events of different devices share no group */
	bool part;                   /* one core type of several */
	char *absent;                /* why it is not counted here; found out later */
};

struct event {
	char *name; /* of the metric */
	char *note;
	struct event_word word;
	enum metric_unit unit;
	enum event_reach reach;
	bool software; /* needs no hardware and fits into any group */
	struct event_code *code;
	size_t count; /* one, or one per core type */
};

struct events {
	struct pmu_list pmus;
	struct event *event;
	size_t count;
};

/* -ENOENT: no such event; -EINVAL: it cannot be meant so.  ret_reason is a sentence. */
int events_resolve(const struct reader_env *env, const struct event_words *words,
	struct events *ret, char ret_reason[READER_REASON_ROOM]);
void events_clear(struct events *events);

/*
 * Walks the events that have names here: generic ones, those of libpfm4 for
 * this machine and those of sysfs.  A non-zero result of fn ends it and is
 * returned.
 */
int events_each(const struct reader_env *env,
	int (*fn)(const char *name, const char *group, const char *description, void *arg),
	void *arg);

#endif
