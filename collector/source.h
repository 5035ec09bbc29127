/* SPDX-License-Identifier: MIT */
/* The readers that a session uses. */
#ifndef COLLECTOR_SOURCE_H
#define COLLECTOR_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"
#include "readers/reader.h"

#define SOURCE_MAX        8
#define SOURCE_ERROR_ROOM 512

struct source {
	const struct reader_ops *ops;
	bool named; /* the user asked for it: it must be there */
	bool present;
	char absent[READER_REASON_ROOM]; /* why not, where it is not */
	struct metric_list metrics;
	bool gauges;           /* it has some that are sampled between boundaries */
	struct reader *shared; /* the session's instance, or NULL if one per process */
};

struct source_list {
	struct source source[SOURCE_MAX];
	size_t count;
	size_t values; /* the most that any reader gives */
};

/*
 * Chooses by text: NULL or "all", or names separated by commas; "-NAME" leaves
 * one out.  -EINVAL with a sentence in ret_error.
 */
int source_choose(const char *text, struct source_list *ret, char ret_error[SOURCE_ERROR_ROOM]);

/* Asks each reader whether it can work here.  An error only for those the user named. */
int source_probe(
	struct source_list *list, const struct reader_env *env, char ret_error[SOURCE_ERROR_ROOM]);

/*
 * Learns the metrics from one instance of each reader; those of a process are
 * taken from instances (NULL where opening failed, with its reason in reasons).
 */
int source_describe(struct source_list *list, struct reader *const *instances,
	char (*reasons)[READER_REASON_ROOM], char ret_error[SOURCE_ERROR_ROOM]);

void source_close(struct source_list *list);

#endif
