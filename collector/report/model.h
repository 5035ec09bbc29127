/* SPDX-License-Identifier: MIT */
/*
 * What a report shows: recordings folded into rows, once, for all formats.
 *
 * A value that was not counted is VALUE_NULL and says why; one that its
 * recording does not know at all is VALUE_MISSING.  Texts are as recorded:
 * formats escape them.  They live in the model's pool.
 */
#ifndef REPORT_MODEL_H
#define REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "decoder.h"
#include "metric.h"
#include "report/pool.h"
#include "report/stored.h"
#include "sigspec.h"

#define MODEL_NONE SIZE_MAX

enum column_sum {
	COLUMN_ADD, /* over rows: the sum */
	COLUMN_LEAST,
	COLUMN_MOST,
	COLUMN_SHARE, /* the mean, weighted by time */
};

struct column {
	const char *name;
	const char *source;
	enum metric_unit unit;
	enum column_sum sum;
};

enum value_state {
	VALUE_MISSING,
	VALUE_NULL,
	VALUE_COUNTED,
};

/* The reason for a value whose two boundaries share one reading. */
#define VALUE_UNRESOLVED "unresolved"

#define VALUE_LATE      0x01u /* read delay_us after a boundary */
#define VALUE_SCALED    0x02u /* extrapolated from coverage */
#define VALUE_STEPS     0x04u /* a gauge: looked at now and then */
#define VALUE_COARSE    0x08u /* its counter moves in steps of time, so that it may err by error */
#define VALUE_SHORT     0x10u /* the phase is shorter than such a step */
#define VALUE_ESTIMATED 0x20u
#define VALUE_SYNC      0x40u  /* of a region: a boundary was read while its marker waited */
#define VALUE_CLEARED   0x80u  /* what markers cost is taken away */
#define VALUE_SUMMED    0x100u /* the sizes of several processes */

struct value {
	uint64_t number;  /* percent: in hundredths */
	const char *note; /* of a null value: why; else what to know of it, or NULL */
	double coverage;
	uint64_t error; /* in the column's unit; with VALUE_COARSE and VALUE_SHORT */
	uint32_t step_us;
	uint32_t delay_us;
	uint32_t without;  /* rows or regions that went into this one without being counted */
	uint32_t includes; /* unresolved regions whose work is in it */
	uint64_t over_ns;  /* a merged one: the time of all that went into it */
	uint8_t state;
	uint16_t flags;
};

/* What is to be known of such sizes. */
#define SUMMED_TEXT "several processes added up: pages that they share count once in each"

/* How the counters of a boundary were taken. */
enum taken_how {
	TAKEN_NOT,
	TAKEN_EXACT, /* sampled by the kernel at the marker */
	TAKEN_SYNC,  /* read while the marker waited */
	TAKEN_LATE,  /* read delay_ns after the marker */
	TAKEN_KINDS,
};

struct taken {
	enum taken_how how;
	uint64_t delay_ns;
};

static inline struct taken taken_worse(struct taken a, struct taken b)
{
	return b.how > a.how || (b.how == a.how && b.delay_ns > a.delay_ns) ? b : a;
}

/* A sum of joule_value. */
struct amount {
	struct amount *next;
	const char *name;
	double sum;
	uint64_t parts; /* phases or regions that it is of */
};

/* Why such an amount is not shown. */
#define AMOUNT_NOT_FINITE   "joule_value was given an infinite amount, or none (NaN)"
/* Why nothing is divided by one. */
#define AMOUNT_NOT_POSITIVE "the amount is zero or negative"
#define AMOUNT_OF_SOME      "not all phases of that name have the amount"

/* Amounts of different names that a row can hold; more are counted as lost. */
#define AMOUNTS_MAX 64

struct row {
	const char *name;
	const char *program; /* of its process */
	uint64_t line;       /* of standard output that began it, from 1; 0: none did */
	uint64_t next_line;  /* and ended it */
	const char *next; /* the marker that ended it; "END"; NULL: still open, or several rows */
	size_t run;
	uint64_t process;
	pid_t pid;
	uint32_t tid;
	uint64_t entry_ns; /* of the marker that began it */
	uint64_t begin_ns; /* when that marker returned */
	uint64_t end_ns;
	uint64_t duration_ns;
	uint64_t marker_ns; /* from entry to begin */
	uint64_t count;     /* phases in this row */
	uint32_t includes;  /* unresolved phases whose work is in this one */
	uint32_t unresolved;
	uint64_t inside;           /* markers in it that begin no phase */
	uint64_t inside_ns;        /* that its threads spent in them */
	uint64_t around;           /* of them those that begin or end regions */
	uint64_t clock_ns;         /* its task-clock as it was counted; 0: unknown */
	uint64_t markers_clock_ns; /* of it that of markers */
	uint64_t late_ns;          /* how long after a boundary its counters were read */
	struct taken begin_taken;
	struct taken end_taken;
	bool open;             /* the recording ends before it */
	bool to_death;         /* it ended with its process, not at a marker */
	bool acknowledged;     /* begin_ns is the acknowledgement's time */
	bool several_runs;     /* it is of more than one */
	bool adds_processes;   /* phases of several processes of one run are added up in it */
	bool is_short;         /* half of its task-clock or more is its markers' */
	bool of_thread;        /* the outermost regions of one thread */
	const char *reason;    /* why it has no values at all, or NULL */
	struct stored *stored; /* by the places of the run's columns, value_count of them */
	struct value *values;  /* of several rows as one: by column, in place of stored */
	size_t value_count;
	struct amount *amounts;
};

/* Of a region: all that is in it, or without the regions in it. */
enum region_part {
	REGION_WHOLE,
	REGION_OWN,
	REGION_PARTS,
};

struct region {
	const char *name;
	const char *program; /* of its process */
	size_t run;
	uint64_t process;
	pid_t pid;
	uint32_t tid;
	uint32_t depth; /* from 0 */
	size_t parent;  /* index, or MODEL_NONE */
	size_t phase;   /* row, or MODEL_NONE; before model_finish() a row's number */
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t own_ns;
	uint64_t marker_ns; /* that its own two markers took */
	uint64_t inside;    /* these three as a row's */
	uint64_t inside_ns;
	uint64_t around;
	uint64_t around_own_ns; /* of inside_ns what is in own time, not in the regions within */
	uint64_t children;
	uint64_t clock_ns; /* these two as a row's */
	uint64_t markers_clock_ns;
	struct taken begin_taken;
	struct taken end_taken;
	bool open;
	bool repaired;         /* closed by something else than its own end */
	bool end_lost;         /* by a new one of its name: markers had been lost */
	const char *closed_by; /* of a repaired one: the outer region, or NULL: its process's end */
	const char *reason;    /* why it has no values at all, or NULL */
	struct stored *stored; /* for each part, by the places of the run's columns */
	size_t value_count;    /* of one part */
	struct amount *amounts;
};

/*
 * Regions of the same names in the same nesting, of all threads of a run; with
 * BY_THREAD of one thread.
 */
struct region_node {
	const char *name;
	size_t run;
	uint64_t process; /* these three: with BY_THREAD */
	pid_t pid;
	uint32_t tid;
	size_t parent; /* index, or MODEL_NONE */
	size_t child;
	size_t sibling;
	uint32_t depth;
	uint64_t count;
	uint64_t duration_ns;
	uint64_t own_ns;
	uint64_t inside;
	uint64_t inside_ns;
	uint64_t clock_ns;
	uint64_t markers_clock_ns;
	bool is_short;               /* half of its task-clock, or time, or more is its markers' */
	uint64_t taken[TAKEN_KINDS]; /* boundaries */
	uint64_t delay_ns;           /* the longest */
	uint64_t late_ns;            /* of each region with values the longer one, together */
	uint64_t repaired;
	uint64_t unresolved;
	struct value *values; /* placed as a region's */
	size_t value_count;
};

struct mark {
	const char *name;
	const char *phase; /* or NULL */
	size_t run;
	pid_t pid;
	uint32_t tid;
	uint64_t time_ns;
};

struct loss {
	const char *what;
	uint64_t count;
};

struct absent_reader {
	const char *name;
	const char *reason;
};

#define RUN_LOSSES_MAX 16
#define RUN_NOTES_MAX  64

/* What a run knows of one column. */
struct run_column {
	bool known;
	const char *absent; /* why it is never counted, or NULL */
	bool of_threads;    /* regions have it too */
	size_t row_place;   /* among the values of rows, from 1; 0: it is never counted */
	size_t place;       /* the same of regions */
};

/* What one marker costs where nothing else happens: medians. */
struct marker_cost {
	uint64_t samples; /* 0: not measured */
	uint64_t ns;
	struct value *values; /* by column */
	size_t value_count;
};

/* What is wrong with a region that has no begin or no end of its own. */
enum repair_kind {
	REPAIR_STRAY,    /* an end without a begin */
	REPAIR_CROSSED,  /* closed by the end of an outer one */
	REPAIR_UNCLOSED, /* closed by the end of the process */
	REPAIR_END_LOST, /* closed by the next of its name, behind lost markers */
	REPAIR_KINDS,
};

#define REPAIR_NAMES 3

struct repair {
	uint64_t count;
	const char *name[REPAIR_NAMES]; /* the first ones; NULL: no more */
	bool more;
};

struct run {
	const char *file;
	const char *version;
	const char *host;
	const char *kernel;
	const char *cpu;
	const char *command;
	const char *mode;
	const char *token_pattern; /* or NULL */
	uint64_t cpus;
	uint64_t interval_ns; /* between two samples of a gauge; 0: none between boundaries */
	uint64_t started_us;
	uint64_t clock_ns;
	pid_t pid;
	struct absent_reader absent[DECODER_READERS_MAX];
	size_t absent_count;
	struct run_column *columns;
	size_t column_count;
	size_t row_places;
	size_t places;

	struct row total;
	struct marker_cost phase_cost;
	struct marker_cost region_cost;
	uint64_t marker_ns;
	uint64_t user_us; /* these two: VALUE_ABSENT where unknown */
	uint64_t system_us;
	int status; /* as wait() gives it, or RECORD_STATUS_UNKNOWN */

	struct loss losses[RUN_LOSSES_MAX];
	size_t loss_count;
	const char *notes[RUN_NOTES_MAX];
	size_t note_count;
	uint64_t markers;
	uint64_t lost;      /* markers, as the summary says */
	uint64_t processes; /* all, also those not shown */
	uint64_t unresolved;
	struct repair repairs[REPAIR_KINDS];
	uint64_t regions_unresolved;
	uint64_t unknown_records;
	uint64_t invalid_records;
	bool complete;
};

struct model {
	struct pool *pool;
	struct qualities *qualities;
	struct column *columns;
	size_t column_count;
	size_t column_room;
	struct row *rows;
	size_t row_count;
	size_t row_room;
	struct region *regions;
	size_t region_count;
	size_t region_room;
	struct region_node *nodes;
	size_t node_count;
	struct mark *marks;
	size_t mark_count;
	size_t mark_room;
	struct run *runs;
	size_t run_count;
	bool compensate;        /* to be set before model_finish(): take away what markers cost */
	bool several_processes; /* rows of one run come from more than one */
};

enum model_by {
	BY_PHASE,
	BY_NAME,
	BY_PROCESS,
	BY_THREAD, /* regions alone */
};

int model_open(struct model **ret);

/*
 * Adds a recording.  The errors of decoder_feed_fd(), and -ENODATA: it ends
 * within its header.  With -EILSEQ and a header the run is there with all that
 * came before the damage.
 */
int model_read(struct model *m, int fd, const char *file);
/* The same from memory. */
int model_read_bytes(struct model *m, const void *bytes, size_t size, const char *file);

/* Sorts the rows, leaves out processes that never marked, groups.  Once, after all reading. */
int model_finish(struct model *m, enum model_by by);

struct model *model_close(struct model *m);

/* The value of a column in a row (or a run's total). */
struct value model_value(const struct model *m, const struct row *row, size_t column);

/* The same of a region and of a node of their tree. */
struct value region_value(
	const struct model *m, const struct region *r, enum region_part part, size_t column);
struct value node_value(
	const struct model *m, const struct region_node *n, enum region_part part, size_t column);

/* Is that the reason for a missing value? */
static inline bool is_unresolved(const char *reason)
{
	return reason && strcmp(reason, VALUE_UNRESOLVED) == 0;
}

/* Reasons are kept without the words that formats put before them. */
static inline const char *reason_bare(const char *text)
{
	static const char words[] = "not counted: ";

	return strncmp(text, words, sizeof(words) - 1) == 0 ? text + sizeof(words) - 1 : text;
}

/*
 * Gives a row its values, by column, and a region its own, for each part by
 * place.  -ENOMEM or 0.
 */
int row_store(struct model *m, struct row *row, const struct value *values, size_t count);
int region_store(struct model *m, struct region *r, const struct value *values, size_t count);
/* In place of one that was counted. */
int row_set_value(struct model *m, struct row *row, size_t column, const struct value *v);
int region_set_value(struct model *m, struct region *r, enum region_part part, size_t column,
	const struct value *v);

/* "exact", "sync", "scaled from 43.0 % coverage", "not counted: ..." */
#define QUALITY_ROOM 512
void value_quality(const struct value *v, char text[QUALITY_ROOM]);

/* From 6.16 on the kernel stops perf's counters before it takes the memory away. */
#define ROW_TO_DEATH "what the kernel does to end it is in its time, but may not be in task-clock"

/* The counters of a parent's phase hold what its children do meanwhile. */
#define ROW_ADDS_PROCESSES                                                                         \
	"of several processes: what a child did during its parent's phase of this name counts twice"

/* "includes 2 unresolved phases", or "" */
void row_quality(const struct row *row, char text[QUALITY_ROOM]);
/* Why no value of the row can be divided by its amount, or NULL. */
const char *amount_undivided(const struct amount *amount, const struct row *row);
/* "closed by the end of outer", or "" */
void region_quality(const struct region *r, char text[QUALITY_ROOM]);

/* Their counters were read more than a tenth of their time after a boundary. */
bool row_is_late(const struct row *row);
bool node_is_late(const struct region_node *n);

/* "exact", "sync", "async", "none" */
const char *taken_name(struct taken taken);

/* Percent as "12.34", all else as an integer. */
#define NUMBER_ROOM 32
void value_number(const struct value *v, enum metric_unit unit, char text[NUMBER_ROOM]);

/* Of the program: 0 to 255, 128 + N after signal N; -1: unknown. */
int run_exit_code(const struct run *run);
/* The signal that ended it, as sigspec_name() has it; "": none. */
void run_killer(const struct run *run, char ret[SIGSPEC_NAME_ROOM]);
/* µs since the epoch. */
int64_t run_timestamp_us(const struct run *run, uint64_t time_ns);
/* Losses of markers, all kinds together; and of one kind ("backlog"). */
uint64_t run_lost_markers(const struct run *run);
uint64_t run_lost(const struct run *run, const char *what);

/* For the parts that build a model: each -ENOMEM or 0. */
int model_add_row(struct model *m, const struct row *row, size_t *ret_index);
int model_add_region(struct model *m, const struct region *region, size_t *ret_index);
void region_clear(struct region *r);
int model_add_mark(struct model *m, const struct mark *mark);
/* The column of that name and source, made if it is new. */
int model_column(struct model *m, const struct column *column, size_t *ret_index);
/* The run has this column of the model; absent, of the pool: why it is never counted, or NULL. */
int run_knows(struct run *run, size_t column, const char *absent);
/* Regions have it too; with a place among their values if it may be counted. */
void run_place(struct run *run, size_t column);
/* -ENOBUFS: too many names. */
int model_add_amount(struct amount **list, const char *name, double sum);
/* The same of another phase or region. */
int model_merge_amount(struct amount **list, const struct amount *more);

#endif
