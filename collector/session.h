/* SPDX-License-Identifier: MIT */
/*
 * One session: the shared memory, the readers, the processes, the recording.
 * Everything here belongs to the marker thread but for jobs, through which the
 * control thread speaks to it.
 */
#ifndef COLLECTOR_SESSION_H
#define COLLECTOR_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "consumer.h"
#include "control.h"
#include "jobs.h"
#include "probe.h"
#include "process.h"
#include "readers/cgroup_own.h"
#include "recorder.h"
#include "shared.h"
#include "source.h"

#define SESSION_ERROR_ROOM 512

/* Sampling of one reader's gauges. */
struct sampling {
	uint64_t due_ns;
	unsigned slow; /* how often in a row it took too long to be read at every tick */
	bool told;
	size_t next; /* whose turn it is, where there are too many processes */
	bool crowd_told;
};

struct session {
	const struct config *config;
	struct reader_env env;
	char powercap_root[PATH_MAX];
	char cgroup_root[PATH_MAX];
	struct cgroup_own *group; /* NULL: the user chose none */
	struct source_list sources;
	struct sampling sampling[SOURCE_MAX];
	struct shared shared;
	struct consumer consumer;
	struct taken batch[CONSUMER_BATCH];
	struct jobs jobs;
	struct control *control;
	struct recorder *recorder;
	struct process_table processes;
	size_t crowd; /* more than these are looked through for those that have ended */
	struct jphase_welcome welcome;
	uint8_t token[JPHASE_TOKEN_BYTES];
	uint64_t *values;  /* for the reads of one snapshot */
	uint64_t *sampled; /* for the samples of one batch */
	enum session_mode mode;
	bool regions;      /* begin and end have counters */
	bool samples;      /* the kernel samples some thread */
	bool threads_seen; /* some thread had a region */
	struct probe probe;
	bool probe_checked;                 /* that it is where the markers are */
	char not_exact[READER_REASON_ROOM]; /* why auto did not choose exact, or "" */

	struct {
		pid_t pid; /* while it is under way */
		uint64_t until_ns;
		bool done;
	} calibration;
	bool launched; /* by `jphase run`, which tells when its command has ended */
	bool attached; /* by `jphase attach`, which may go before the processes do */
	bool stopping;
	struct job command; /* its end; kind JOB_COMMAND once it is known */
	uint64_t command_ended_ns;

	uint64_t snapshots;
	uint64_t markers;
	uint64_t phases;
	uint64_t lost;
	uint64_t outside_lost; /* markers that did not come through the ring */
	uint64_t samples_lost; /* that a thread's buffer had no room for */
	uint64_t unknown;      /* records of kinds that we do not know */
	uint64_t due_ns;       /* of the next housekeeping */
	int unwritten;         /* -errno: why the recording is not on the disk at its end */
	uint64_t sweep_due_ns;
};

/* What is known when a session begins. */
struct session_start {
	pid_t pid;              /* the first process */
	bool launched;          /* it is stopped before its exec */
	bool attached;          /* it has been running without us */
	const uint32_t *others; /* pids to attach to as well */
	size_t other_count;
	bool privileged;     /* the kernel will take its counters away at exec */
	bool placed;         /* it is in the group that the user chose */
	uint64_t site;       /* address of the library's probe site; 0: not loaded yet */
	const char *command; /* its arguments, NUL between them */
	size_t command_bytes;
	int output_fd; /* taken */
};

/*
 * Checks what the user chose and whether the readers can work, before any file
 * or process is touched.  On an error ret_error holds a sentence.
 */
int session_prepare(
	struct session *s, const struct config *chosen, char ret_error[SESSION_ERROR_ROOM]);

/*
 * Finds or makes the group that the user chose, if any, for a program that is
 * or will be started by pid.  To be called after session_prepare(); else
 * session_begin() does it.
 */
int session_group(struct session *s, pid_t pid, char ret_error[SESSION_ERROR_ROOM]);

/* The program has ended: its group goes.  Once. */
void session_leave_group(struct session *s);

/*
 * Makes the shared memory and the address, opens the readers on the first
 * process, writes the head of the recording, starts the control thread.
 */
int session_begin(struct session *s, const struct session_start *start, int launcher,
	char ret_error[SESSION_ERROR_ROOM]);

/* What a reader is opened on; on_exec: counting begins with the exec. */
struct reader_target session_target(const struct session *s, pid_t pid, bool on_exec);

/*
 * Defines the probe at site, where the process pid has the library, if the mode
 * is exact and nobody has done it yet; 0: that process has no library.
 */
void session_begin_sampling(struct session *s, pid_t pid, uint64_t site);

/* Losses since the last call, to the recording. */
void session_record_losses(struct session *s);

void session_note(struct session *s, const struct process *p, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Takes half-built sessions, also one of zeros that was never prepared. */
void session_end(struct session *s);

#endif
