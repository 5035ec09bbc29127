/* SPDX-License-Identifier: MIT */
#include "report/snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

#define FIRST_BUCKETS 4096
/* So many that nobody holds are kept. */
#define RECENT        1024

struct snapshots {
	size_t readers;
	struct snap **bucket;
	size_t buckets; /* a power of two */
	size_t count;
	struct snap *recent[RECENT]; /* each counts as a holder */
	size_t next_recent;
};

static struct snap **bucket_of(const struct snapshots *s, struct snap_key key)
{
	uint64_t mixed =
		((key.number * 31 + key.process) * 31 + key.tid) * UINT64_C(0x9e3779b97f4a7c15);

	return &s->bucket[(mixed >> 32) & (s->buckets - 1)];
}

int snapshots_open(size_t readers, struct snapshots **ret)
{
	struct snapshots *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->readers = readers;
	s->buckets = FIRST_BUCKETS;
	s->bucket = calloc(s->buckets, sizeof(struct snap *));
	if (!s->bucket) {
		snapshots_close(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static void snap_free(const struct snapshots *s, struct snap *snap)
{
	for (size_t i = 0; i < s->readers; i++)
		free(snap->reading[i].values);
	free(snap);
}

static bool same_key(struct snap_key a, struct snap_key b)
{
	return a.number == b.number && a.process == b.process && a.tid == b.tid;
}

static struct snap *find(struct snapshots *s, struct snap_key key)
{
	struct snap *snap = *bucket_of(s, key);

	while (snap && !same_key(snap->key, key))
		snap = snap->next;
	return snap;
}

static void link_to_bucket(struct snapshots *s, struct snap *snap)
{
	struct snap **head = bucket_of(s, snap->key);

	snap->next = *head;
	*head = snap;
}

/* Without memory the table stays as it is: slower, but right. */
static void make_room(struct snapshots *s)
{
	struct snap **old = s->bucket;
	size_t buckets = s->buckets;
	struct snap **grown;

	if (s->count < buckets)
		return;
	grown = calloc(2 * buckets, sizeof(struct snap *));
	if (!grown)
		return;
	s->bucket = grown;
	s->buckets = 2 * buckets;
	for (size_t i = 0; i < buckets; i++) {
		while (old[i]) {
			struct snap *snap = old[i];

			old[i] = snap->next;
			link_to_bucket(s, snap);
		}
	}
	free(old);
}

struct snap *snapshots_hold(struct snapshots *s, struct snap_key key)
{
	struct snap *snap = find(s, key);

	if (!snap) {
		snap = calloc(1, sizeof(*snap) + s->readers * sizeof(snap->reading[0]));
		if (!snap)
			return NULL;
		snap->key = key;
		make_room(s);
		link_to_bucket(s, snap);
		s->count++;
	}
	snap->holders++;
	return snap;
}

void snapshots_drop(struct snapshots *s, struct snap *snap)
{
	struct snap **at;

	if (!snap || --snap->holders)
		return;
	at = bucket_of(s, snap->key);
	while (*at != snap)
		at = &(*at)->next;
	*at = snap->next;
	s->count--;
	snap_free(s, snap);
}

/* Keeps a new one for a while, in place of the one that was new long ago. */
static void keep_recent(struct snapshots *s, struct snap *snap)
{
	struct snap **slot = &s->recent[s->next_recent++ % RECENT];

	snap->holders++;
	snapshots_drop(s, *slot);
	*slot = snap;
}

int snapshots_store(struct snapshots *s, struct snap_key key, size_t reader,
	const struct reading *like, const uint64_t *values, size_t count)
{
	struct snap *snap = find(s, key);
	struct reading *reading;
	uint64_t *kept;

	if (!snap) {
		snap = snapshots_hold(s, key);
		if (!snap)
			return -ENOMEM;
		keep_recent(s, snap);
		snap->holders--;
	}
	reading = &snap->reading[reader];
	kept = reading->values ? reading->values : malloc((count + 1) * sizeof(*values));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, values, count * sizeof(*values));
	*reading = *like;
	reading->values = kept;
	return 0;
}

struct snapshots *snapshots_close(struct snapshots *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->bucket && i < s->buckets; i++) {
		while (s->bucket[i]) {
			struct snap *next = s->bucket[i]->next;

			snap_free(s, s->bucket[i]);
			s->bucket[i] = next;
		}
	}
	free(s->bucket);
	free(s);
	return NULL;
}
