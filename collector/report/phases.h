/* SPDX-License-Identifier: MIT */
/*
 * The phases of each process while a recording is folded: where they begin and
 * end, and when their values are known.
 */
#ifndef REPORT_PHASES_H
#define REPORT_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "decoder.h"
#include "internal/util.h"
#include "jphase/abi.h"
#include "report/model.h"
#include "report/outputs.h"
#include "report/processes.h"
#include "report/snapshots.h"
#include "report/threads.h"

/*
 * A phase that has ended waits as `ended` until its process comes to another
 * snapshot: only then are all readers' values of its last boundary known to be
 * there.  A phase whose two boundaries share a snapshot is unresolved at once;
 * the one that ended at that snapshot has its work, since the snapshot was
 * taken after both.
 */
struct process {
	uint64_t index;
	pid_t pid;
	const char *name;
	const char *reason;         /* why values of this process are nil, or NULL */
	const char *threads_reason; /* why those of its regions are, or NULL */
	uint64_t last_ns;
	bool marked;
	bool gone;
	bool has_exit;
	bool started;
	bool calibrates;        /* it shows what markers cost; no part of the run */
	bool in_total;          /* the first process, also after an exec */
	struct process *before; /* what it was before its exec, until it has a boundary */
	size_t current;         /* row, or MODEL_NONE */
	struct boundary begin;  /* the last one with a snapshot */
	uint32_t skipped;       /* phases since then that ended without one */
	struct range *ranges;   /* since then */
	size_t ended;           /* row, or MODEL_NONE */
	struct boundary ended_begin;
	struct boundary ended_end;
	struct range *ended_ranges;
	struct boundary exit; /* the marker of that kind, while no phase follows it */
	struct thread *threads;
	struct process *next_living; /* these three: while it is not gone */
	struct process *before_living;
	struct process *next_in_bucket;
};

struct fold {
	struct model *model;
	size_t run;
	const struct decoded_header *header;
	bool sync;
	struct outputs *outputs;
	struct snapshots *snapshots;
	struct threads *threads;
	struct processes processes;
	size_t first_row;
	size_t first_region;
	struct boundary total_begin;
	struct boundary total_end;
	uint64_t total_end_ns;
	struct range *total_ranges;
	uint64_t last_ns; /* of the whole recording */
	uint64_t losses;  /* records that tell of one */
};

static inline struct run *fold_run(const struct fold *f)
{
	return &f->model->runs[f->run];
}

static inline bool marker_waited(const struct record_marker *m)
{
	return !(m->flags & JPHASE_FLAG_UNWAITED);
}

/* The line of standard output that it was found in, from 1; 0: none. */
static inline uint64_t marker_line(const struct record_marker *m)
{
	return m->flags & JPHASE_FLAG_TOKEN ? m->id + 1 : 0;
}

/* A boundary holds its snapshots until it is dropped. */
int boundary_make(struct fold *f, const struct process *p, uint64_t time_ns, uint64_t snapshot,
	bool waited, struct boundary *ret);
/* Drops what was in into. */
void boundary_copy(struct fold *f, struct boundary *into, const struct boundary *b);
void boundary_drop(struct fold *f, struct boundary *b);

/* NULL without memory. */
struct range *ranges_new(const struct fold *f);

/* Ends the current phase, if there is one, at b, which it takes. */
int process_boundary(struct fold *f, struct process *p, struct boundary *b, const char *next);
/* The marker m, called name, begins a phase at the process's last time. */
int phase_open(struct fold *f, struct process *p, struct thread *thread,
	const struct record_marker *m, const char *name);
/* What m tells of when its thread's marker before it returned. */
void phase_returned(struct fold *f, struct thread *thread, const struct record_marker *m);
/* All readings of the phase that ended last are there: gives it its values. */
int phase_settle(struct fold *f, struct process *p);

/* The whole run begins with the first process's first boundary. */
int total_begin(struct fold *f, const struct process *p, const struct boundary *b);
int total_fill(struct fold *f);

#endif
