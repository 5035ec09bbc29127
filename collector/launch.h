/* SPDX-License-Identifier: MIT */
/*
 * Starting a program so that its whole run is counted: the program is forked
 * and held, the collector opens its counters, the program is released into its
 * exec.
 */
#ifndef COLLECTOR_LAUNCH_H
#define COLLECTOR_LAUNCH_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "jphase/abi.h"

struct identity {
	uid_t uid;
	gid_t gid;
	char name[LOGIN_NAME_MAX]; /* "": stay who we are */
	char home[PATH_MAX];
};

struct launch {
	char **argv;
	const struct identity *identity;
	const char *preload; /* path of the library, or NULL: nothing is preloaded */
	bool privileged;
	int output; /* becomes the program's standard output; -1: it has ours */

	int collector; /* socket */
	int group;     /* the folder of the cgroup to start the program in; -1: none */
	bool placed;   /* it was started there */
	pid_t collector_pid;
	pid_t pid; /* of the program */
	bool stopped;
	int gate;      /* the program waits at its other end */
	int outcome;   /* tells the errno of a failed exec */
	sigset_t mask; /* the program's */
	struct sigaction old_int;
	struct sigaction old_quit;
	struct sigaction old_chld;
};

#define LAUNCH_ERROR_ROOM 600

/* Starts the collector.  -errno. */
int launch_collector(struct launch *l);

/*
 * Has the collector find or make the cgroup that the user chose, if any; what
 * the user should know of it goes to ret_notes, by lines.
 */
int launch_group(
	struct launch *l, char ret_notes[JPHASE_MESSAGE_ROOM], char ret_error[LAUNCH_ERROR_ROOM]);

/* Forks the program, which waits. */
int launch_hold(struct launch *l);

/* Lets the collector open its counters; a refusal's sentence goes to ret_error. */
int launch_measure(
	struct launch *l, char ret_session[JPHASE_SESSION_ROOM], char ret_error[LAUNCH_ERROR_ROOM]);

/*
 * Lets the collector open the counters of processes that are running.  The
 * first one is the session's.
 */
int launch_attach(
	struct launch *l, const pid_t *pids, size_t count, char ret_error[LAUNCH_ERROR_ROOM]);

/* Releases it.  -errno of its exec. */
int launch_release(struct launch *l, const char *session);

/* Gives up: the held program ends. */
void launch_abandon(struct launch *l);

#endif
