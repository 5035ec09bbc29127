/* SPDX-License-Identifier: MIT */
/*
 * The snapshots that are still of use.  A boundary holds what it may need; what
 * nobody holds is forgotten a little later, since a snapshot may stand before or
 * after the marker it was taken for.
 */
#ifndef REPORT_SNAPSHOTS_H
#define REPORT_SNAPSHOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reading {
	uint64_t begin_ns;
	uint64_t end_ns;
	bool sampled;     /* by the kernel, at begin_ns */
	uint64_t *values; /* NULL: not read */
};

struct snapshots;

/* One snapshot of one process or thread, or of the session. */
struct snap_key {
	uint64_t number;
	uint64_t process; /* RECORD_NO_PROCESS: the session */
	uint32_t tid;     /* 0: not of one thread alone */
};

struct snap {
	struct snap *next;
	struct snap_key key;
	size_t holders;
	struct reading reading[]; /* one per reader */
};

int snapshots_open(size_t readers, struct snapshots **ret);

/* Holds it until snapshots_drop(), whether it was read already or will be.  NULL without memory. */
struct snap *snapshots_hold(struct snapshots *s, struct snap_key key);
void snapshots_drop(struct snapshots *s, struct snap *snap);

/* Of like all but the values, of which it copies count. */
int snapshots_store(struct snapshots *s, struct snap_key key, size_t reader,
	const struct reading *like, const uint64_t *values, size_t count);

struct snapshots *snapshots_close(struct snapshots *s);

#endif
