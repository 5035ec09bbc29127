/* SPDX-License-Identifier: MIT */
#include "report/snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"

#define BUCKETS 4096
/* So many that nobody holds are kept. */
#define RECENT  256

struct snapshots {
	size_t readers;
	struct snap *bucket[BUCKETS];
	struct snap *recent[RECENT]; /* each counts as a holder */
	size_t next_recent;
};

static size_t bucket_of(uint64_t number, uint64_t process)
{
	uint64_t mixed = (number * 31 + process) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed >> 52;
}

int snapshots_open(size_t readers, struct snapshots **ret)
{
	struct snapshots *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->readers = readers;
	*ret = s;
	return 0;
}

static void snap_free(const struct snapshots *s, struct snap *snap)
{
	for (size_t i = 0; i < s->readers; i++)
		free(snap->reading[i].values);
	free(snap);
}

static struct snap *find(struct snapshots *s, uint64_t number, uint64_t process)
{
	struct snap *snap = s->bucket[bucket_of(number, process)];

	while (snap && (snap->number != number || snap->process != process))
		snap = snap->next;
	return snap;
}

struct snap *snapshots_hold(struct snapshots *s, uint64_t number, uint64_t process)
{
	struct snap *snap = find(s, number, process);
	struct snap **head = &s->bucket[bucket_of(number, process)];

	if (!snap) {
		snap = calloc(1, sizeof(*snap) + s->readers * sizeof(snap->reading[0]));
		if (!snap)
			return NULL;
		snap->number = number;
		snap->process = process;
		snap->next = *head;
		*head = snap;
	}
	snap->holders++;
	return snap;
}

void snapshots_drop(struct snapshots *s, struct snap *snap)
{
	struct snap **at;

	if (!snap || --snap->holders)
		return;
	at = &s->bucket[bucket_of(snap->number, snap->process)];
	while (*at != snap)
		at = &(*at)->next;
	*at = snap->next;
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

int snapshots_store(struct snapshots *s, uint64_t number, uint64_t process, size_t reader,
	uint64_t begin_ns, uint64_t end_ns, const uint64_t *values, size_t count)
{
	struct snap *snap = find(s, number, process);
	struct reading *reading;

	if (!snap) {
		snap = snapshots_hold(s, number, process);
		if (!snap)
			return -ENOMEM;
		keep_recent(s, snap);
		snap->holders--;
	}
	reading = &snap->reading[reader];
	if (!reading->values)
		reading->values = malloc((count + 1) * sizeof(*values));
	if (!reading->values)
		return -ENOMEM;
	memcpy(reading->values, values, count * sizeof(*values));
	reading->begin_ns = begin_ns;
	reading->end_ns = end_ns;
	return 0;
}

struct snapshots *snapshots_close(struct snapshots *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (s->bucket[i]) {
			struct snap *next = s->bucket[i]->next;

			snap_free(s, s->bucket[i]);
			s->bucket[i] = next;
		}
	}
	free(s);
	return NULL;
}
