/* SPDX-License-Identifier: MIT */
/* The files of one cgroup: opened once, each read by one pread per snapshot. */
#ifndef READERS_CGROUP_FOLDER_H
#define READERS_CGROUP_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric.h"
#include "readers/cgroup_io.h"
#include "readers/kfile.h"

#define CGROUP_FILES    12
#define CGROUP_KEYS_MAX 10
#define CGROUP_BUFFER   (64u << 10) /* io.stat of some hundred devices */

struct cgroup_key {
	const char *key;
	const char *name; /* of the metric, without the scope */
	enum metric_kind kind;
	enum metric_unit unit;
	const char *note;
};

struct cgroup_file;

/* A file with those of its keys that are there. */
struct cgroup_source {
	const struct cgroup_file *file;
	int fd;               /* -1: the group has been removed, or blind */
	bool blind;           /* the program's group lives, but does not give the file */
	bool resets;          /* the kernel resets what we read, for us alone */
	struct cgroup_io *io; /* NULL: no file of devices */
	size_t count;
	struct kfile_key key[CGROUP_KEYS_MAX];
	const struct cgroup_key *metric[CGROUP_KEYS_MAX];
	uint64_t past[CGROUP_KEYS_MAX]; /* what the groups before this one gave */
	uint32_t rebase;                /* keys that have not been read in this group */
	uint64_t last[CGROUP_KEYS_MAX];
};

struct cgroup_folder {
	struct cgroup_source source[CGROUP_FILES];
	size_t count;
	size_t values;
	int dir;
	bool removed;
	bool lost_file; /* one that went while the group stayed */
};

/* A folder without any of the files is empty and no error; buffer: CGROUP_BUFFER bytes. */
int cgroup_folder_open(struct cgroup_folder *f, const char *path, char *buffer);

/* One value for each key; those of a removed group stay what they were last. */
void cgroup_folder_read(
	struct cgroup_folder *f, bool gauges_only, char *buffer, uint64_t *ret_values);

/* The files go to ret; f keeps its values and awaits a move. */
int cgroup_folder_split(struct cgroup_folder *f, struct cgroup_folder *ret);

/* Reads another group from now on; counters go on from where they are.  An error: reads none. */
int cgroup_folder_move(struct cgroup_folder *f, const char *path, char *buffer);

/* Reads no group until a move: all is absent. */
void cgroup_folder_lose(struct cgroup_folder *f);

/* The first of the files that the group does not give, and how many they are; NULL: none. */
const char *cgroup_folder_lacks(const struct cgroup_folder *f, size_t *ret_count);

enum metric_kind cgroup_source_kind(const struct cgroup_source *s, size_t key);
const char *cgroup_source_note(const struct cgroup_source *s, size_t key);

void cgroup_folder_close(struct cgroup_folder *f);

#endif
